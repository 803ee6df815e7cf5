"""The policy of G_c v on a learner's set: the best pair of each state, mixed with the smallest where T_c truncates."""

from __future__ import annotations

import numpy as np

from spanrl.kernels.backups import ball_values, pick, plain_sweep, sorted_box_values
from spanrl.kernels.box_sweeps import has_less_room, walk_with_flags
from spanrl.kernels.extremes import extremes
from spanrl.kernels.jit import kernel
from spanrl.kernels.kl import kl_values
from spanrl.kernels.layout import BALL, BOX, KL
from spanrl.kernels.order import rank_open, rank_states

_TIE = 1e-10
_NOISE = 2e-15
_ROUNDING = 1e-12


@kernel
def choose(
    m, sets, ws, ranked, rows, least_reward, ws_least, ranked_least, v, best, n_live, c, room, mixture, pairs, weight
):
    """Write the policy of G_c v: pair ``pairs[2s]``, with probability weight[s] the pair ``pairs[2s+1]``; return whether any weight is > 0.

    The workspace is ranked by v and holds the values there of all pairs that can be best, the first ``n_live`` of ``rows.live`` (see
    :func:`spanrl.kernels.extended.improve`).
    Ties within 1e-10 of their spread, and within the ``room`` left in the bracket, go to the lowest action.
    """
    q, pair_ptr, state, top = ws.q, m.pair_ptr, rows.state, rows.top
    low, high, size = np.inf, -np.inf, 0.0
    for s in range(best.size):
        x = q[best[s]]
        low, high, size = min(low, x), max(high, x), max(size, abs(x))
        top[s], pairs[2 * s], weight[s] = x, best[s], 0.0
    least, _ = extremes(q)  # of pairs that are left out, the last value will do for the scale
    tie = max(min(_TIE * (high - least), room), _NOISE * max(size, abs(least)))
    margin = max(_ROUNDING * (high - low), _NOISE * size)
    for pair in rows.live[:n_live]:
        i = np.uint64(pair)
        s = np.uint64(state[i])
        at = np.uint64(pairs[s + s])
        pairs[s + s] = np.int64(pick((q[i] >= top[s] - tie) & (i < at), i, at))
    n, cut = 0, ws.todo
    for s in range(best.size):
        pairs[2 * s + 1] = pairs[2 * s]
        if mixture and top[s] > low + c + margin:
            for k in range(pair_ptr[s], pair_ptr[s + 1]):
                cut[n] = k
                n += 1
    if n == 0:
        return False
    _least_values(m, sets, ws, ranked, rows, least_reward, ws_least, ranked_least, v, cut[:n])
    return _mix(pair_ptr, q, ws_least.q, cut[:n], low + c, margin, tie, pairs, weight)


@kernel
def _least_values(m, sets, ws_high, ranked, rows, least, ws, ranked_least, v, cut):
    """Set ws_least.q to r_min(i) + min{pᵀv : p in set i} of the pairs ``cut``."""
    if m.kind == BOX:
        n = _least_of_boxes(
            m.succ_ptr, m.succ, m.low, m.room, m.rest, least, ranked.keys, ranked.prefix, ws_high.w, rows.slack, rows.stop,
            rows.part, sets.flagged, ranked.n_open[0], cut, ws.todo, ws.q,
        )  # fmt: skip
        if n > 0:
            rank_states(-1.0, v, ws)
            if sets.flagged.size == 0:
                sorted_box_values(m, least, -1.0, ws, ws.todo[:n], ws.q)
            else:
                rank_open(sets.closed, ws, ranked_least)
                walk_with_flags(m, sets.flagged, least, -1.0, ws, ranked_least, ws.todo[:n], ws.q)
    elif m.kind == BALL:
        rank_states(-1.0, v, ws)
        ball_values(m, least, -1.0, ws, cut, ws.q)
    elif m.kind == KL:
        rank_states(-1.0, v, ws)
        kl_values(m, least, -1.0, ws, cut, ws.q)
    else:
        plain_sweep(m.succ_ptr, m.succ, m.low, least, cut, v, ws.q)


@kernel
def _least_of_boxes(
    succ_ptr,
    listed,
    lows,
    rooms,
    rests,
    least,
    keys,
    prefix,
    w,
    slack,
    stop,
    part,
    flagged,
    n_open,
    cut,
    todo,
    q,
):
    """Do it where unlisted states take all of the slack, from the other end; write the others to ``todo`` and return how many."""
    n, one = 0, np.uint64(1)
    for pair in cut:
        i = np.uint64(pair)
        j, end, total, worst = np.uint64(succ_ptr[i]), np.uint64(succ_ptr[i + one]), 0.0, np.inf
        while j < end:
            x = w[listed[j]]
            total += lows[j] * x
            worst = min(worst, x)
            j += one
        first, last = np.uint64(0), np.uint64(w.size - 1)
        if flagged.size > 0 and flagged[i]:
            first, last = np.uint64(w.size + 1), np.uint64(w.size + n_open)
        k = last - (np.uint64(stop[i]) - first)
        q[i] = least[i] + (total + rests[i] * (prefix[last + one] - prefix[k + one]) + part[i] * keys[k])
        todo[n] = pair
        n += worst < keys[k] or (
            worst == keys[k] and has_less_room(rooms, succ_ptr[i], succ_ptr[i + one], min(rests[i], slack[i]))
        )
    return n


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
