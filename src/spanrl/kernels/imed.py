"""The parts of IMED-RL (:mod:`spanrl.agents.imed_rl`): distinct outcomes and their counts, the solve on the skeleton, and K_inf.

The outcomes of pair i are the first ``listed[i]`` of its ``room + 1`` places, in the order of (successor, reward); room ≥ S. An outcome too
many makes the two with one successor whose rewards are nearest one, with their mean: successors and mean rewards stay exact, and r loses
the variance between the two. There always are two, since S + 1 outcomes cannot all have different successors.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.jit import kernel, part

DAMPING = 0.9  # φ moves 0.9 of the way to Lφ, so that periodic models converge too
MOST_SWEEPS = 1000  # per solve; the next one begins where this one ended
PRECISION = 1e-13  # of K_inf
_MOST_NEWTON = 100
_LEAST = 1e-300  # a divisor that leaves ratios finite


class Experience(NamedTuple):
    """What IMED-RL has seen, and the bias of the last solve. All are 0 at first."""

    n: Any  # int64 [n_pairs]             N(s, a)
    listed: Any  # int64 [n_pairs]        the number of distinct outcomes
    succ: Any  # int64 [n_pairs·(room+1)]
    times: Any  # float64 [as succ]       how often each outcome was seen: whole numbers
    reward: Any  # float64 [as succ]
    paid: Any  # float64 [n_pairs]        Σ rewards
    enough: Any  # float64 [S]            ln²(max_a N(s, a)): the visits that put a pair on the skeleton
    phi: Any  # float64 [S]               φ, with max φ = 0
    backup: Any  # float64 [S]            the next φ, in a sweep
    worth: Any  # float64 [room+1]        X = r + φ(s') of the outcomes of one pair
    unsolved: Any  # int64 [1]            the steps whose solve ended before its tolerance


def memory_sizes(n_states: int, n_pairs: int, room: int) -> tuple[int, int]:
    """Return how many real and whole numbers an :class:`Experience` holds."""
    outcomes = n_pairs * (room + 1)
    return 2 * outcomes + n_pairs + 3 * n_states + room + 1, 2 * n_pairs + outcomes + 1


@part
def experience(values, visits, S, n_pairs, room):
    """Return the arrays that lie one after the other in ``values`` and ``visits``."""
    outcomes = n_pairs * (room + 1)
    paid = 2 * outcomes
    enough = paid + n_pairs
    phi, backup, worth = enough + S, enough + 2 * S, enough + 3 * S
    return Experience(
        visits[:n_pairs], visits[n_pairs : 2 * n_pairs], visits[2 * n_pairs : 2 * n_pairs + outcomes],
        values[:outcomes], values[outcomes:paid], values[paid:enough],
        values[enough:phi], values[phi:backup], values[backup:worth], values[worth:],
        visits[2 * n_pairs + outcomes :],
    )  # fmt: skip


@kernel
def count_outcome(seen, room, pair, reward, succ):
    """Count one outcome of a pair."""
    succs, rewards, times, first = seen.succ, seen.reward, seen.times, pair * (room + 1)
    end, k = first + seen.listed[pair], first
    while k < end and (succs[k] < succ or (succs[k] == succ and rewards[k] < reward)):
        k += 1
    seen.n[pair] += 1
    seen.paid[pair] += reward
    if k < end and succs[k] == succ and rewards[k] == reward:
        times[k] += 1.0
        return
    for j in range(end, k, -1):
        succs[j], rewards[j], times[j] = succs[j - 1], rewards[j - 1], times[j - 1]
    succs[k], rewards[k], times[k] = succ, reward, 1.0
    if seen.listed[pair] < room:
        seen.listed[pair] += 1
    else:
        _merge_nearest(succs, rewards, times, first, end + 1)


@kernel
def _merge_nearest(succs, rewards, times, first, end):
    """Make one outcome of the two neighbours with one successor that are nearest in reward."""
    at, nearest = first, np.inf
    for k in range(first, end - 1):
        gap = rewards[k + 1] - rewards[k]
        if succs[k] == succs[k + 1] and gap < nearest:
            at, nearest = k, gap
    total = times[at] + times[at + 1]
    rewards[at] = min(rewards[at] + nearest * (times[at + 1] / total), rewards[at + 1])
    times[at] = total
    for k in range(at + 1, end - 1):
        succs[k], rewards[k], times[k] = succs[k + 1], rewards[k + 1], times[k + 1]
    times[end - 1] = 0.0  # a free place again


@kernel
def value(seen, room, pair, pseudo):
    """Return r̂ + p̂φ of a pair: the mean of r + φ(s') over its N observations and one worth ``pseudo``."""
    succs, times, phi, first = seen.succ, seen.times, seen.phi, pair * (room + 1)
    total = seen.paid[pair] + pseudo
    for k in range(first, first + seen.listed[pair]):
        total += times[k] * phi[succs[k]]
    return total / (seen.n[pair] + 1.0)


@kernel
def pseudo_value(phi, r_max):
    """Return the mean of r_max + φ(s') over all states s'."""
    total = 0.0
    for s in range(phi.size):
        total += phi[s]
    return r_max + total / phi.size


@kernel
def solve_skeleton(pair_ptr, seen, room, r_max, tol):
    """Improve φ until max − min of Lφ − φ is at most tol, in 1000 sweeps at most; return (min, max), between which the gain is.

    L is the Bellman operator of the empirical model with the actions of the skeleton.
    """
    S, n, enough, phi, backup = pair_ptr.size - 1, seen.n, seen.enough, seen.phi, seen.backup
    low, high = -np.inf, np.inf
    for _ in range(MOST_SWEEPS):
        low, high, top = np.inf, -np.inf, -np.inf
        pseudo = pseudo_value(phi, r_max)
        for s in range(S):
            best = -np.inf
            for i in range(pair_ptr[s], pair_ptr[s + 1]):
                if n[i] >= enough[s]:
                    best = max(best, value(seen, room, i, pseudo))
            change = best - phi[s]
            low, high = min(low, change), max(high, change)
            backup[s] = phi[s] + DAMPING * change
            top = max(top, backup[s])
        for s in range(S):
            phi[s] = backup[s] - top
        if high - low <= tol:
            break
    return low, high


@kernel
def divergence(seen, room, pair, mu, top):
    """Return K_inf of the outcomes of a pair, X = r + φ(s'), for the mean μ and the upper bound ``top`` of X."""
    first, m = pair * (room + 1), seen.listed[pair]
    for k in range(m):
        seen.worth[k] = seen.reward[first + k] + seen.phi[seen.succ[first + k]]
    return k_inf(seen.worth[:m], seen.times[first : first + m], mu, top)


@kernel
def k_inf(x, times, mu, top):
    """Return sup of E ln(1 − (X − μ)λ) over 0 ≤ λ ≤ 1/(top − μ), within 1e-13, for X that is x[k] ≤ top in times[k] of Σ times cases.

    It is the least Kullback–Leibler divergence from the law of X to one on (−∞, top] whose mean is μ or more: 0 if EX ≥ μ, otherwise ∞ if
    top ≤ μ. In y = λ(top − μ) ∈ [0, 1] and d = (X − μ)/(top − μ) ≤ 1 the mean is concave, with the slope −E d/(1 − dy), whose root is
    found by Newton's method with bisection. The first y is 1, which is where the supremum is unless the slope is negative there.
    """
    n, mean = 0.0, 0.0
    for k in range(x.size):
        n += times[k]
        mean += times[k] * (x[k] - mu)
    if mean >= 0.0:
        return 0.0
    if top - mu <= _LEAST:
        return np.inf
    low, high, y = 0.0, 1.0, 1.0
    for _ in range(_MOST_NEWTON):
        slope, bend = 0.0, 0.0
        for k in range(x.size):
            d = min((x[k] - mu) / (top - mu), 1.0)
            ratio = d / (1.0 - d * y)
            slope -= times[k] * ratio
            bend += times[k] * ratio * ratio
        if slope > 0.0:
            low = y
        else:
            high = y
        if (
            abs(slope) * (high - low) <= PRECISION * n
        ):  # the mean is concave: nowhere in [low, high] is it larger by more
            break
        newton = y + slope / bend
        y = newton if low < newton < high else 0.5 * (low + high)
    total = 0.0
    for k in range(x.size):
        total += times[k] * math.log(1.0 - min((x[k] - mu) / (top - mu), 1.0) * y)
    return max(total / n, 0.0)
