"""Bring a learner's counts up to date with the experience of an episode."""

from __future__ import annotations

import numpy as np

from spanrl.kernels.jit import kernel


@kernel
def _find(succ, first, end, s):
    """Return the position of s in the sorted part first:end, or where it belongs."""
    while first < end:
        mid = (first + end) // 2
        if succ[mid] < s:
            first = mid + 1
        else:
            end = mid
    return first


@kernel
def add_rewards(pair, reward, times, n, r_mean, r_sq):
    """Add rewards by Welford's recurrence in blocks, one a pair; see :mod:`spanrl.models.counts`. Entries of a pair stand together."""
    first = 0
    while first < pair.size:
        i, nu, total, squares, j = pair[first], 0, 0.0, 0.0, first
        while j < pair.size and pair[j] == i:
            d = reward[j] - r_mean[i]
            nu += times[j]
            total += times[j] * d
            squares += times[j] * (d * d)
            j += 1
        n[i] += nu
        r_mean[i] += total / n[i]
        r_sq[i] = max(r_sq[i] + (squares - total * total / n[i]), 0.0)
        first = j


@kernel
def add_successors(pair, succ_new, times_new, succ_ptr, succ, times):
    """Add to the counts of successors; return False, with nothing done, where one is not listed."""
    at = np.empty(pair.size, np.int64)
    for e in range(pair.size):
        end = succ_ptr[pair[e] + 1]
        j = _find(succ, succ_ptr[pair[e]], end, succ_new[e])
        if j == end or succ[j] != succ_new[e]:
            return False
        at[e] = j
    for e in range(pair.size):
        times[at[e]] += times_new[e]
    return True


@kernel
def list_successors(pair, succ_new, succ_ptr, succ, times):
    """Return (succ_ptr, succ, times) with rows for the entries that are not listed yet, seen 0 times so far."""
    n_pairs = succ_ptr.size - 1
    extra = np.zeros(n_pairs + 1, np.int64)
    for e in range(pair.size):
        extra[pair[e] + 1] += 1
    room = succ_ptr + np.cumsum(extra)
    wide, seen = np.empty(room[-1], np.uint32), np.zeros(room[-1], np.int64)
    size = np.empty(n_pairs, np.int64)
    for i in range(n_pairs):
        size[i] = succ_ptr[i + 1] - succ_ptr[i]
        for j in range(size[i]):
            wide[room[i] + j] = succ[succ_ptr[i] + j]
            seen[room[i] + j] = times[succ_ptr[i] + j]
    for e in range(pair.size):
        i = pair[e]
        first, end = room[i], room[i] + size[i]
        j = _find(wide, first, end, succ_new[e])
        if j < end and wide[j] == succ_new[e]:
            continue
        for b in range(end, j, -1):
            wide[b], seen[b] = wide[b - 1], seen[b - 1]
        wide[j], seen[j] = succ_new[e], 0
        size[i] += 1
    ptr = np.zeros(n_pairs + 1, np.int64)
    for i in range(n_pairs):
        ptr[i + 1] = ptr[i] + size[i]
        for j in range(size[i]):
            wide[ptr[i] + j] = wide[room[i] + j]
            seen[ptr[i] + j] = seen[room[i] + j]
    return ptr, wide[: ptr[-1]].copy(), seen[: ptr[-1]].copy()
