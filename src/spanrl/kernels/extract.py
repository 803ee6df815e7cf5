"""From values to decisions: the best and the smallest pair of each state, and the transition rows that attain them."""

from __future__ import annotations

import numpy as np

from spanrl.kernels.jit import allocating, kernel
from spanrl.kernels.kl import kl_row
from spanrl.kernels.layout import BALL, BOX, FREE, KL
from spanrl.kernels.order import sort_row

_DUST = 1e-14


@kernel
def longest_row(ptr):
    """Return the length of the longest compressed row, 0 where there is none."""
    longest = 0
    for i in range(ptr.size - 1):
        longest = max(longest, ptr[i + 1] - ptr[i])
    return longest


@kernel
def best_pairs(pair_ptr, q, sign, tie, most, noise, top, pair, at_pair):
    """Set top(s) to the best q of the pairs of s, the largest sign·q, pair(s) to the first one that ties with it and at_pair(s) to its q.

    Ties are values within ``tie`` times the spread of all values, or within ``noise`` times the largest one, but never farther apart than
    ``most``. To find them, all pairs are looked at, from the last to the first: where to stop could not be foretold, and a wrong guess
    costs more.
    """
    low, high, i, one = np.inf, -np.inf, np.uint64(0), np.uint64(1)
    for s in range(top.size):
        best, end = -np.inf, np.uint64(pair_ptr[s + 1])
        while i < end:
            x = q[i]
            low, high = min(low, x), max(high, x)
            best = max(best, sign * x)
            i += one
        top[s] = sign * best
    behind = min(max(tie * (high - low), noise * max(abs(low), abs(high))), most)
    for s in range(pair.size):
        least, at = sign * top[s] - behind, 0
        for k in range(pair_ptr[s + 1] - 1, pair_ptr[s] - 1, -1):
            at = k if sign * q[k] >= least else at
        pair[s], at_pair[s] = at, q[at]


@kernel
def _put(idx, p, n, s, weight, floor):
    """Append (s, weight) to a row where the weight is above ``floor``: dust left by rounding is no transition."""
    if weight > floor:
        idx[n] = s
        p[n] = weight
        return n + 1
    return n


@kernel
def _take_row(m, ws, i):
    """Copy row i of the model into the workspace, where it may be sorted; once for each version of the model."""
    if ws.taken[i] != ws.version[0]:
        ws.taken[i] = ws.version[0]
        for j in range(m.succ_ptr[i], m.succ_ptr[i + 1]):
            ws.succ[j], ws.low[j] = m.succ[j], m.low[j]
            ws.room[j] = m.room[j] if m.kind == BOX else 0.0


@kernel
def _fill_block(m, ws, i, position, end, mass, idx, p, n):
    """Give ``rest`` each to the unlisted states of rank position:end until the mass is spent; return (mass, entries)."""
    rest = m.rest[i]
    full = int(
        min(np.float64(end - position), np.floor(mass / rest))
    )  # as floats first: the quotient may exceed every int
    for k in range(position, position + full):
        n = _put(idx, p, n, ws.order[k], rest, 0.0)
    mass -= rest * full
    if full < end - position:
        n = _put(idx, p, n, ws.order[position + full], mass, _DUST)
        mass = 0.0
    return mass, n


@kernel
def _box_row(m, ws, i, idx, p):
    """Write the maximising distribution over the box of pair i; return its number of entries."""
    mass = m.slack[i]
    if mass == FREE:
        return _put(idx, p, 0, ws.order[0], 1.0, 0.0)
    first, end = m.succ_ptr[i], m.succ_ptr[i + 1]
    _take_row(m, ws, i)
    sort_row(first, end, ws.w, ws.succ, ws.low, ws.room)
    n, position = 0, 0
    for j in range(first, end):
        k = np.int64(ws.rank[ws.succ[j]])
        if m.rest[i] > 0.0 and mass > 0.0 and k > position:
            mass, n = _fill_block(m, ws, i, position, k, mass, idx, p, n)
        give = max(min(ws.room[j], mass), 0.0)
        n = _put(idx, p, n, ws.succ[j], ws.low[j] + give, 0.0 if ws.low[j] > 0.0 else _DUST)
        mass -= give
        position = k + 1
    if m.rest[i] > 0.0 and mass > 0.0 and ws.order.size > position:
        mass, n = _fill_block(m, ws, i, position, ws.order.size, mass, idx, p, n)
    return n


@kernel
def _ball_row(m, ws, i, idx, p):
    """Write the maximising distribution over the L1 ball of pair i; return its number of entries."""
    first, end = m.succ_ptr[i], m.succ_ptr[i + 1]
    _take_row(m, ws, i)
    sort_row(first, end, ws.w, ws.succ, ws.low, ws.room)
    listed = ws.succ[first] == ws.order[0]
    add = min(m.slack[i], 1.0 - (ws.low[first] if listed else 0.0))
    take = add
    n = 0
    for j in range(end - 1, first - 1, -1):
        removed = min(take, ws.low[j])
        take -= removed
        bonus = add if listed and j == first else 0.0
        n = _put(idx, p, n, ws.succ[j], ws.low[j] - removed + bonus, _DUST if removed > 0.0 else 0.0)
    if not listed:
        n = _put(idx, p, n, ws.order[0], add, 0.0)
    return n


@kernel
def _kl_ball_row(m, ws, i, idx, p):
    """Write the maximising distribution over the KL ball of pair i; return its number of entries."""
    first, n, best = m.succ_ptr[i], m.succ_ptr[i + 1] - m.succ_ptr[i], ws.order[0]
    moved = kl_row(m, ws, i, p, 0)
    for j in range(n):
        idx[j] = m.succ[first + j]
        if idx[j] == best:
            p[j] += moved
            moved = 0.0
    return _put(idx, p, n, best, moved, 0.0)


@kernel
def row(m, ws, i, idx, p):
    """Write the distribution that attains the inner value of pair i; return its number of entries."""
    if m.kind == BOX:
        return _box_row(m, ws, i, idx, p)
    if m.kind == BALL:
        return _ball_row(m, ws, i, idx, p)
    if m.kind == KL:
        return _kl_ball_row(m, ws, i, idx, p)
    n = 0
    for j in range(m.succ_ptr[i], m.succ_ptr[i + 1]):
        n = _put(idx, p, n, m.succ[j], m.low[j], 0.0)
    return n


@allocating
def rows(m, ws, pairs):
    """Return the rows of ``pairs`` as compressed (ptr, successor, probability). The workspace must be ranked for set models."""
    S = m.pair_ptr.size - 1
    idx, p = np.empty(S + 1, np.uint32), np.empty(S + 1)
    ptr = np.zeros(pairs.size + 1, np.int64)
    for r in range(pairs.size):
        ptr[r + 1] = ptr[r] + row(m, ws, pairs[r], idx, p)
    succ, prob = np.empty(ptr[-1], np.uint32), np.empty(ptr[-1])
    for r in range(pairs.size):
        n = row(m, ws, pairs[r], idx, p)
        for b in range(n):
            succ[ptr[r] + b] = idx[b]
            prob[ptr[r] + b] = p[b]
    return ptr, succ, prob
