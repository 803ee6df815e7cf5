"""The planner of the learners: T_c v = Γ_c Lv on a set model, from one warm start to the next.

A full sweep evaluates every pair; it alone gives the gain bracket, so it alone can end the iteration. Between two full sweeps the actions
chosen by the first are frozen and only their pairs are swept (modified policy iteration; nature keeps choosing anew), which costs a
fraction.
"""

from __future__ import annotations

import numpy as np

from spanrl.kernels.backups import set_values, some_values
from spanrl.kernels.iterate import bracket, clip, relax
from spanrl.kernels.jit import kernel
from spanrl.kernels.order import rank_states

RUNNING, CONVERGED, TOO_WIDE = 0, 1, 2

_LOOK = 4  # rounds before the first look at the speed; then at every doubling
_STALL = 0.9
_TIE = 1e-10
_NOISE = 2e-15
_ROUNDING = 1e-12


@kernel
def _spread(v):
    """Return sp(v)."""
    low, high = np.inf, -np.inf
    for x in v:
        low, high = min(low, x), max(high, x)
    return high - low


@kernel
def _full_sweep(m, reward, ws, v, u, pairs):
    """Set u = Lv and pairs [S] to pairs that attain it."""
    set_values(m, reward, 1.0, ws, v, ws.q)
    q, pair_ptr = ws.q, m.pair_ptr
    for s in range(u.size):
        best, at = -np.inf, 0
        for i in range(pair_ptr[s], pair_ptr[s + 1]):
            if q[i] > best:
                best, at = q[i], i
        u[s], pairs[s] = best, at


@kernel
def _frozen_sweep(m, reward, ws, v, u, pairs):
    """Set u to the value of ``pairs`` at v."""
    rank_states(1.0, v, ws)
    some_values(m, reward, 1.0, ws, pairs, ws.q)
    for s in range(u.size):
        u[s] = ws.q[pairs[s]]


@kernel
def improve(m, reward, ws, v, u, pairs, c, tol, widest, inner, progress, budget):
    """Iterate v ← (1−a)v + a·T_c v until the gain bracket is at most ``tol`` wide, for at most ``budget`` full sweeps.

    Before each full sweep but the first come at most ``inner`` sweeps over frozen actions. Where the bracket stalls, a goes from 1 to 0.9
    and 0.5. ``progress`` [6] holds (sweeps, a, rounds, width at the last look, rounds at the next, last width), so that the outcome does
    not depend on the budget. An iterate whose span exceeds ``widest`` ends it. Returns (outcome, lo, hi); on success v is the vector that
    the bracket belongs to, and ws.q has the values of all pairs at v.
    """
    for _ in range(budget):
        if progress[2] > 0.0:
            goal = max(0.1 * progress[5], 0.5 * tol)
            a = min(progress[1], 0.9) if progress[2] > _LOOK else progress[1]  # a frozen policy may be periodic
            for _ in range(inner):
                _frozen_sweep(m, reward, ws, v, u, pairs)
                clip(u, c)
                lo, hi = bracket(v, u)
                progress[0] += 1.0
                relax(v, u, a, 0)
                if hi - lo <= goal:
                    break
        _full_sweep(m, reward, ws, v, u, pairs)
        clip(u, c)
        lo, hi = bracket(v, u)
        progress[0] += 1.0
        progress[2] += 1.0
        progress[5] = hi - lo
        if hi - lo <= tol:
            return CONVERGED, lo, hi
        if progress[2] >= progress[4]:
            if hi - lo > _STALL * progress[3]:
                progress[1] = 0.9 if progress[1] == 1.0 else 0.5
            progress[3], progress[4] = hi - lo, 2.0 * progress[4]
        relax(v, u, progress[1], 0)
        if _spread(v) > widest:
            return TOO_WIDE, lo, hi
    return RUNNING, -np.inf, np.inf


@kernel
def choose(m, ws, r_low, ws_low, v, c, room, mixture, pairs, weight):
    """Write the policy of G_c v: pair ``pairs[2s]``, with probability weight[s] the pair ``pairs[2s+1]``; return whether any weight is > 0.

    ws.q holds the values of all pairs at v. Ties within 1e-10 of the spread of all values, and within the ``room`` left in the bracket,
    go to the lowest action.
    """
    S, q, pair_ptr = v.size, ws.q, m.pair_ptr
    best = np.empty(S)
    low, high, size, least = np.inf, -np.inf, 0.0, np.inf
    for s in range(S):
        best[s] = -np.inf
        for i in range(pair_ptr[s], pair_ptr[s + 1]):
            best[s] = max(best[s], q[i])
            least = min(least, q[i])
        low, high, size = min(low, best[s]), max(high, best[s]), max(size, abs(best[s]))
    tie = max(min(_TIE * (high - least), room), _NOISE * max(size, abs(least)))
    margin = max(_ROUNDING * (high - low), _NOISE * size)
    cut = np.empty(q.size, np.int64)
    n = 0
    for s in range(S):
        for i in range(pair_ptr[s], pair_ptr[s + 1]):
            if q[i] >= best[s] - tie:
                pairs[2 * s] = pairs[2 * s + 1] = i
                break
        weight[s] = 0.0
        if mixture and best[s] > low + c + margin:
            for i in range(pair_ptr[s], pair_ptr[s + 1]):
                cut[n] = i
                n += 1
    if n == 0:
        return False
    rank_states(-1.0, v, ws_low)
    some_values(m, r_low, -1.0, ws_low, cut[:n], ws_low.q)
    return _mix(pair_ptr, q, ws_low.q, cut[:n], low + c, margin, tie, pairs, weight)


@kernel
def _mix(pair_ptr, q_high, q_low, cut, ceiling, margin, tie, pairs, weight):
    """Mix the best and the smallest pair of each truncated state, so that its value is ``ceiling`` (paper, Def. 2)."""
    k, mixes = 0, False
    for s in range(weight.size):
        end = pair_ptr[s + 1]
        if k == cut.size or cut[k] >= end:
            continue
        least = np.inf
        while k < cut.size and cut[k] < end:
            least = min(least, q_low[cut[k]])
            k += 1
        for i in range(pair_ptr[s], end):
            if q_low[i] <= least + tie:
                pairs[2 * s + 1] = i
                break
        high, low = q_high[pairs[2 * s]], q_low[pairs[2 * s + 1]]
        if low > ceiling + margin:
            weight[s] = 1.0  # T_c is infeasible at s: the smallest value there is
        elif high > low:
            weight[s] = min(max((high - ceiling) / (high - low), 0.0), 1.0)
        if pairs[2 * s] == pairs[2 * s + 1]:
            weight[s] = 0.0
        mixes = mixes or weight[s] > 0.0
    return mixes
