"""Policy improvement: one sweep over all actions that notes which of them is the best in each state."""

from __future__ import annotations

import numpy as np

from spanrl.kernels.backups import some_values
from spanrl.kernels.jit import kernel
from spanrl.kernels.layout import PLAIN


@kernel
def improve(m, reward, v, q, out, pair):
    """Set q to the value of each pair of a plain model at v, out = Lv, and pair to one that attains it.

    This is done on a block of states: ``m.pair_ptr`` is that of the block; ``out`` and ``pair`` are the parts of vectors in it. A
    pair that is among the best is not changed. Indices are unsigned and running: numba then checks for no negative ones. The
    values have the bits of :func:`spanrl.kernels.backups.plain_values`.
    """
    pair_ptr, succ_ptr, succ, prob = m.pair_ptr, m.succ_ptr, m.succ, m.low
    i, one, two = np.uint64(pair_ptr[0]), np.uint64(1), np.uint64(2)
    j = np.uint64(succ_ptr[i])
    for s in range(out.size):
        best, first, last = -np.inf, i, np.uint64(pair_ptr[s + 1])
        while i < last:
            value, other = reward[i], 0.0
            end = np.uint64(succ_ptr[i + one])
            while j + one < end:
                value += prob[j] * v[succ[j]]
                other += prob[j + one] * v[succ[j + one]]
                j += two
            if j < end:
                value += prob[j] * v[succ[j]]
                j += one
            value += other
            q[i] = value
            best = max(best, value)
            i += one
        out[s] = best
        pair[s] = attaining(q, pair[s], first, best)


@kernel
def improve_from(pair_ptr, q, out, pair):
    """Do what :func:`improve` does, given the values q of all pairs: for the block of states whose pairs begin at ``pair_ptr[:-1]``."""
    i, one = np.uint64(pair_ptr[0]), np.uint64(1)
    for s in range(out.size):
        best, first, last = -np.inf, i, np.uint64(pair_ptr[s + 1])
        while i < last:
            best = max(best, q[i])
            i += one
        out[s] = best
        pair[s] = attaining(q, pair[s], first, best)


@kernel
def attaining(q, pair, first, best):
    """Return ``pair`` where it has the best value, otherwise the first pair of its state that has: few pairs change in a sweep."""
    if q[pair] >= best:
        return pair
    i = first
    while q[i] < best:
        i += np.uint64(1)
    return np.int64(i)


@kernel
def block_improve(m, reward, sign, ws, v, q, out, pair):
    """Do what :func:`improve` does on a block of states of any model: ``m.pair_ptr`` and ``ws.pairs`` are those of the block.

    The workspace of a set model must be ranked. Blocks write to different places, so that threads may work on them at the same time.
    """
    if m.kind == PLAIN:
        improve(m, reward, v, q, out, pair)
    else:
        some_values(m, reward, sign, ws, ws.pairs, q)
        improve_from(m.pair_ptr, q, out, pair)
