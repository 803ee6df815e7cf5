"""The parts of IMED-RL (:mod:`spanrl.agents.imed_rl`): distinct outcomes and their counts, the solve on the skeleton, and K_inf.

The outcomes of pair i are the first ``listed[i]`` of its ``room + 1`` places, in the order of (successor, reward); room ≥ S. An outcome
too many makes the two with one successor whose rewards are nearest one, with their mean: successors and mean rewards stay exact, and X
loses a variance that K_inf hardly sees. There always are two: S + 1 outcomes cannot all have different successors.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.jit import kernel

DAMPING = 0.9  # φ moves 0.9 of the way to its backup, so that periodic models converge too
MOST_SWEEPS = 1000  # per step; the next one begins where this one ended
PRECISION = 1e-13  # of K_inf
_MOST_STEPS = 100  # of its root finding; half of them would do by bisection alone
_LEAST = 1e-300  # a divisor that leaves ratios finite


class Experience(NamedTuple):
    """What IMED-RL has seen, and the bias of the last solve."""

    n: Any  # int64 [n_pairs]             N(s, a)
    listed: Any  # int64 [n_pairs]        distinct outcomes
    succ: Any  # int64 [n_pairs·(room+1)]
    times: Any  # float64 [as succ]       how often each outcome was seen: whole numbers
    reward: Any  # float64 [as succ]
    paid: Any  # float64 [n_pairs]        Σ rewards
    enough: Any  # float64 [S]            the visits that a pair of the skeleton has; 0: the state was never left
    phi: Any  # float64 [S]               φ, with max φ = 0
    backup: Any  # float64 [S]            of the sweep that is on
    worth: Any  # float64 [room+1]        X, of the pair whose index is computed


@kernel
def count_outcome(seen, room, pair, reward, succ):
    """Add one outcome to those of a pair."""
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


@kernel
def value(seen, room, pair):
    """Return r̂ + p̂φ of a pair that was played."""
    succs, times, phi, first = seen.succ, seen.times, seen.phi, pair * (room + 1)
    total = seen.paid[pair]
    for k in range(first, first + seen.listed[pair]):
        total += times[k] * phi[succs[k]]
    return total / seen.n[pair]


@kernel
def solve_skeleton(pair_ptr, seen, room, tol):
    """Improve φ until max − min of Lφ − φ, between which the gain is, is at most tol; return (min, max).

    L is the Bellman operator of the empirical model with the actions of the skeleton. A state never left is worth as much as the best
    of the others, (Lφ)(s) = max Lφ: with that L is monotone and L(φ + λe) = Lφ + λe, and φ = 0 there.
    """
    S, n, enough, phi, backup = pair_ptr.size - 1, seen.n, seen.enough, seen.phi, seen.backup
    low, high = -np.inf, np.inf
    for _ in range(MOST_SWEEPS):
        low, high, top = np.inf, -np.inf, -np.inf
        for s in range(S):
            if enough[s] == 0.0:
                continue
            best = -np.inf
            for i in range(pair_ptr[s], pair_ptr[s + 1]):
                if n[i] >= enough[s]:
                    best = max(best, value(seen, room, i))
            change = best - phi[s]
            low, high = min(low, change), max(high, change)
            backup[s] = phi[s] + DAMPING * change
            top = max(top, backup[s])
        for s in range(S):
            if enough[s] > 0.0:
                phi[s] = backup[s] - top
        if high - low <= tol:
            break
    return low, high


@kernel
def k_inf(x, times, mu, top):
    """Return sup of E ln(1 − (X − μ)λ) over 0 ≤ λ ≤ 1/(top − μ), for X = x[k] ≤ top in times[k] of Σ times, within 1e-13.

    It is the least Kullback–Leibler divergence from X to a law on (−∞, top] of mean μ or more: 0 if X has it, ∞ if top ≤ μ. With
    y = λ(top − μ) in [0, 1] and d = (x − μ)/(top − μ) ≤ 1 it is a concave function of y whose slope is −Σ d/(1 − dy) on average.
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
    for _ in range(_MOST_STEPS):
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
        if abs(slope) * (high - low) <= PRECISION * n:  # by concavity nothing in [low, high] is larger by more than this
            break
        newton = y + slope / bend
        y = newton if low < newton < high else 0.5 * (low + high)
    total = 0.0
    for k in range(x.size):
        total += times[k] * math.log(1.0 - min((x[k] - mu) / (top - mu), 1.0) * y)
    return max(total / n, 0.0)
