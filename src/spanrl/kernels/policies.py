"""Policy evaluation by sweeps: freeze a policy, sweep over it alone; and rounds of improvement where that is done quickly.

A frozen policy is a Markov reward process. States that a span bound truncates have no row of their own in it: the truncation sets their
value to that of the lowest state s₀ plus c, so their row leads to s₀ (see :mod:`spanrl.planning.resolvent`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.improvement import improve, improve_from
from spanrl.kernels.iterate import bracket
from spanrl.kernels.jit import kernel

_SHORTEST = 1e-3  # probabilities of leaving below which steps are not made longer: they would cost digits
_LEAST_NARROWER = 1e-4
_EVERY = 6  # sweeps between two looks for a leap
_FEW_SWEEPS = 25  # over one policy: not worth leaving compiled code
_LONGEST_LEAP = 1e-6  # 1 − λ: beyond that digits are lost
_IDLE, _HARDLY = 8, 0.9  # rounds that made the bracket hardly narrower: the caller is to look


class Chain(NamedTuple):
    """A frozen policy: the rows of its transitions to *other* states, what they sum to, and the rewards."""

    ptr: Any  # int64 [S+1]
    succ: Any  # uint32 [n]
    prob: Any  # float64 [n]
    out: Any  # float64 [S]  the probability of leaving each state: summed, as 1 − p(s, s) would lose digits
    reward: Any  # float64 [S]
    cut: Any  # uint8 [S]    1: truncated


def new_chain(n_states: int, n_listed: int) -> Chain:
    """Allocate a chain with room for so many transitions."""
    S = n_states
    rows = np.zeros(S + 1, dtype=np.int64), np.empty(n_listed, dtype=np.uint32), np.empty(n_listed)
    return Chain(*rows, np.empty(S), np.empty(S), np.zeros(S, dtype=np.uint8))


@kernel
def longest_rows(pair_ptr, succ_ptr):
    """Return the number of listed successors of any policy, at most: the longest row of each state, summed."""
    total = 0
    for s in range(pair_ptr.size - 1):
        longest = 0
        for i in range(pair_ptr[s], pair_ptr[s + 1]):
            longest = max(longest, succ_ptr[i + 1] - succ_ptr[i])
        total += longest
    return total


@kernel
def lowest_state(u):
    """Return s₀, the first state of the smallest value."""
    s_min = 0
    for s in range(u.size):
        if u[s] < u[s_min]:
            s_min = s
    return s_min


@kernel
def truncate(u, ceiling, cut):
    """Set u ← min(u, ceiling) and mark the states that were above."""
    for s in range(u.size):
        cut[s] = u[s] > ceiling
        u[s] = min(u[s], ceiling)


@kernel
def freeze(ptr, succ, prob, reward, pairs, s_min, chain):
    """Write ``pairs`` [S] of compressed rows and their rewards to a chain; cut states lead to s_min. Returns the largest ``out``."""
    to_ptr, to_succ, to_prob, to_out, to_reward, cut = chain
    n, one, most = np.uint64(0), np.uint64(1), 0.0
    to_ptr[0] = 0
    for s in range(pairs.size):
        i = np.uint64(pairs[s])
        to_reward[s] = reward[i]
        if cut[s]:
            to_succ[n], to_prob[n], to_out[s] = s_min, 1.0, 1.0
            n += one
        else:
            j, end, out = np.uint64(ptr[i]), np.uint64(ptr[i + one]), 0.0
            while j < end:
                x, p = succ[j], prob[j]
                to_succ[n], to_prob[n] = x, p  # overwritten by the next one where it is the state itself
                other = (x != s) & (p > 0.0)
                out += p if other else 0.0
                n += np.uint64(other)
                j += one
            to_out[s] = out
        most = max(most, to_out[s])
        to_ptr[s + 1] = n
    return most


@kernel
def follow(ptr, succ, prob, reward, pairs, frozen, chain):
    """Let a chain without cut states that holds the ``frozen`` pairs hold ``pairs``; both are then the same. All −1: it holds none yet.

    Rows that change are written in place as long as each is as long as the one before. Returns (changes, the largest ``out``).
    """
    to_ptr, to_succ, to_prob, to_out, to_reward, _ = chain
    changes, fits, most = 0, frozen[0] >= 0, 0.0
    for s in range(pairs.size):
        if pairs[s] != frozen[s]:
            i = frozen[s] = pairs[s]
            changes += 1
            n = 0
            for j in range(ptr[i], ptr[i + 1]):
                n += (succ[j] != s) & (prob[j] > 0.0)
            fits = fits and n == to_ptr[s + 1] - to_ptr[s]
            if fits:
                to_reward[s], to_out[s], n = reward[i], 0.0, to_ptr[s]
                for j in range(ptr[i], ptr[i + 1]):
                    if succ[j] != s and prob[j] > 0.0:
                        to_succ[n], to_prob[n] = succ[j], prob[j]
                        to_out[s] += prob[j]
                        n += 1
    if not fits:
        return changes, freeze(ptr, succ, prob, reward, pairs, 0, chain)
    for s in range(pairs.size):
        most = max(most, to_out[s])
    return changes, most


@kernel
def chain_sweep(chain, c, v, a, shift, u):
    """Set u = v + a(Γ_c F_d v − v) − shift for a frozen policy d, F_d v = r + Pv; return the smallest and the largest of Γ_c F_d v − v."""
    ptr, succ, prob, out, reward, _ = chain
    lo, hi, lowest, is_bounded = np.inf, -np.inf, np.inf, c < np.inf
    j, one, two = np.uint64(0), np.uint64(1), np.uint64(2)
    for s in range(v.size):
        x, other = v[s], 0.0
        d = reward[s] - out[s] * x
        end = np.uint64(ptr[s + 1])
        while j + one < end:
            d += prob[j] * v[succ[j]]
            other += prob[j + one] * v[succ[j + one]]
            j += two
        if j < end:
            d += prob[j] * v[succ[j]]
            j += one
        d += other
        u[s] = x + a * d - shift
        lo, hi = min(lo, d), max(hi, d)
        if is_bounded:
            u[s] = d
            lowest = min(lowest, x + d)
    if is_bounded:
        lo, hi = np.inf, -np.inf
        for s in range(v.size):
            d = min(u[s], lowest + c - v[s])
            u[s] = v[s] + a * d - shift
            lo, hi = min(lo, d), max(hi, d)
    return lo, hi


@kernel
def truncated_sweeps(ptr, succ, prob, reward, pairs, c, horizon, v, w, u, n):
    """Set w ← Γ_c F_d(v/H + (1 − 1/H)w), n − 1 times, and u = F_d(v/H + (1 − 1/H)w), for ``pairs`` [S] of compressed rows."""
    back = 1.0 / horizon
    for k in range(n):
        lowest = np.inf
        for s in range(pairs.size):
            i = pairs[s]
            total = reward[i]
            for j in range(ptr[i], ptr[i + 1]):
                x = succ[j]
                total += prob[j] * (w[x] - back * (w[x] - v[x]))
            u[s] = total
            lowest = min(lowest, total)
        if k < n - 1:
            for s in range(pairs.size):
                w[s] = min(u[s], lowest + c)


@kernel
def residual(chain, v, d):
    """Set d = r + Pv − v, summed from differences: where v is large and moves are rare, digits are left that u − v would have lost."""
    for s in range(v.size):
        d[s] = chain.reward[s]
        for j in range(chain.ptr[s], chain.ptr[s + 1]):
            d[s] += chain.prob[j] * (v[chain.succ[j]] - v[s])


@kernel
def move(v, u, a, shift):
    """Set v ← (1−a)v + a·u − shift."""
    for s in range(v.size):
        v[s] = (1.0 - a) * v[s] + a * u[s] - shift


@kernel
def copy(x, y):
    """Set y = x, whatever stood there: new room may hold NaN, of which :func:`move` would keep something."""
    for s in range(x.size):
        y[s] = x[s]


@kernel
def chain_sweeps(chain, c, v, u, w, a, target, budget):
    """Sweep over a frozen policy with steps of length a until its bracket is at most ``target`` wide, or the budget is spent.

    Returns (sweeps, first width, last width). v goes to and fro between v and u, and ends in v; w is room for the leaps, which are looked
    for now and then. Sweeps never lower the lower end of the bracket; a leap that does is taken back, and is the last one.
    """
    n, first, width, shift, leapt, floor = 0, np.inf, np.inf, 0.0, 0.0, -np.inf
    leaps = True
    while n < budget and not width <= target:
        is_leap_due = leaps and n % _EVERY == _EVERY - 1
        x, y = (v, u) if n % 2 == 0 else (u, v)
        if is_leap_due:
            copy(y, w)
        lo, hi = chain_sweep(chain, c, x, a, shift, y)
        if leapt != 0.0 and lo < floor:
            for s in range(x.size):
                x[s] -= leapt * w[s]
            lo, hi = chain_sweep(chain, c, x, a, shift, y)
            leaps = False
        leapt = 0.0
        width, shift = hi - lo, a * (lo + hi) / 2.0
        first = width if n == 0 else first
        n += 1
        if is_leap_due and n < budget and width > target:
            leapt, floor = leap(w, x, y), lo
    if n % 2 == 1:
        copy(u, v)
    return n, first, width


@kernel
def leap(x, y, z):
    """Go to the limit of the sweeps x → y → z over a policy, z + λ/(1−λ)·(z − y), where one slow mode is all that is left (Aitken).

    λ is the number for which z − y is best λ(y − x). What is left over, up to constants, is what the next step would be
    but for 1/(1−λ); z moves only where that is certain to halve the step. Returns λ/(1−λ), with z − y in x, or 0.
    """
    S, sum_1, sum_2, squares, products = x.size, 0.0, 0.0, 0.0, 0.0
    for s in range(S):
        d, e = y[s] - x[s], z[s] - y[s]
        sum_1 += d
        sum_2 += e
        squares += d * d
        products += d * e
    squares -= sum_1 * sum_1 / S
    mode = (products - sum_1 * sum_2 / S) / squares if squares > 0.0 else 0.0
    low, high, rest_low, rest_high = np.inf, -np.inf, np.inf, -np.inf
    for s in range(S):
        e = z[s] - y[s]
        rest = e - mode * (y[s] - x[s])
        low, high, rest_low, rest_high = min(low, e), max(high, e), min(rest_low, rest), max(rest_high, rest)
    if mode == 0.0 or 1.0 - mode <= _LONGEST_LEAP or rest_high - rest_low > 0.5 * (1.0 - mode) * (high - low):
        return 0.0
    length = mode / (1.0 - mode)
    for s in range(S):
        x[s] = z[s] - y[s]
        z[s] += length * x[s]
    return length


@kernel
def fast_rounds(
    m,
    reward,
    blank,
    q,
    v,
    u,
    w,
    pair,
    pair_frozen,
    chain,
    step,
    tol,
    rounding,
    narrower,
    warm,
    look,
    budget,
    most_sweeps,
):
    """Run rounds of policy improvement on a plain model, as long as a few sweeps over a policy are enough for it.

    A round is a sweep over all actions, whose bracket is tested, and sweeps over the policy that it chose. It ends, too, after some rounds
    that made the bracket hardly narrower: news travels slowly, or rounding is all that is left. ``blank`` tells that v = 0: then
    the rewards are the values. The first ``warm`` rounds are full sweeps alone, and so are those after them, as long as each makes the
    bracket ``narrower`` as a round is to make it; ``step`` is that of the policy frozen so far.
    No more than ``most_sweeps`` sweeps of either kind are made. Returns (rounds, sweeps over policies, lo, hi, changes, step, and of the
    last policy: target, sweeps, first width, last width). With hi − lo ≤ tol the bracket is closed: v and q are those it belongs to, and
    nothing is swept.
    """
    lo, hi, changes, total, n, rounds, narrowest, idle = -np.inf, np.inf, 0, 0, 0, 0, np.inf, 0
    target, first, last, before = 0.0, 0.0, 0.0, 0.0  # before: the last bracket, where the sweep before was a full one
    while rounds < budget and rounds + total < most_sweeps and last <= target and idle < _IDLE:
        if blank and rounds == 0:
            for i in range(q.size):
                q[i] = reward[i]
            improve_from(m.pair_ptr, q, u, pair)
        else:
            improve(m, reward, v, q, u, pair)
        lo, hi = bracket(v, u, rounding)
        rounds += 1
        if hi - lo <= tol:
            break
        idle = 0 if hi - lo < _HARDLY * narrowest else idle + 1
        narrowest = min(narrowest, hi - lo)
        most = most_sweeps - rounds - total
        if (
            rounds < budget and most > 0 and (rounds <= warm or hi - lo <= narrower * before)
        ):  # the last one freezes a policy
            before = hi - lo
            move(v, u, 1.0, (lo + hi) / 2.0)
            continue
        before = 0.0
        changes, out = follow(m.succ_ptr, m.succ, m.low, reward, pair, pair_frozen, chain)
        step = step_of(out)
        target = target_of(hi - lo, tol, narrower, changes / pair.size)
        move(v, u, step, step * (lo + hi) / 2.0)
        n, first, last = chain_sweeps(chain, np.inf, v, u, w, step, target, min(look, most))
        total += n
        left = sweeps_left(n, first, last, target)
        if 0.0 < left <= _FEW_SWEEPS:
            n, first, last = chain_sweeps(chain, np.inf, v, u, w, step, target, min(2 + int(1.5 * left), most - n))
            total += n
    return rounds, total, lo, hi, changes, step, target, n, first, last


@kernel
def target_of(width, tol, narrower, changed):
    """Return how narrow the bracket of a policy is to become, given that of the last full sweep and the part of the states that changed.

    It is to be ``narrower`` at least. The fewer change, the nearer the policy is to the last one, and the better an evaluation pays.
    Where it comes near the tolerance it is to keep it.
    """
    target = width * min(max(10.0 * changed, _LEAST_NARROWER), narrower)
    return target if target > 2.0 * tol else tol / 2.0


@kernel
def sweeps_left(n, first, last, target):
    """Predict how many more sweeps over a policy are needed, after n that took its bracket from ``first`` to ``last``."""
    if last <= target:
        return 0.0
    return np.log(last / target) / np.log(first / last) * (n - 1) if last < first else np.inf


@kernel
def step_of(most):
    """Return how long a step may be where every state is left with probability ``most`` or less."""
    return 1.0 / most if most > _SHORTEST else 1.0


@kernel
def recentre(v):
    """Shift v so that its largest and smallest value are opposite: numbers are dense near 0. Returns False where v is not finite."""
    low, high, finite = np.inf, -np.inf, True
    for s in range(v.size):
        low, high = min(low, v[s]), max(high, v[s])
        finite = finite and abs(v[s]) < np.inf
    middle = low / 2.0 + high / 2.0
    for s in range(v.size):
        v[s] -= middle
    return finite
