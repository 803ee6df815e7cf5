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
def update_shares(pair, n, r_sq, succ_ptr, times, shares):
    """Compute the shares of the pairs that were visited; entries of a pair stand together."""
    p_hat, p_error, r_error, inverse = shares
    for e in range(pair.size):
        if e > 0 and pair[e] == pair[e - 1]:
            continue
        i = pair[e]
        N = n[i]
        for j in range(succ_ptr[i], succ_ptr[i + 1]):
            p = times[j] / N
            p_hat[j], p_error[j] = p, np.sqrt(p * (1 - p) / N)
        r_error[i] = np.sqrt(r_sq[i] / max(N - 1, 1) / N) if N > 1 else 0.0
        inverse[i] = 1 / max(N - 1, 1)


@kernel
def list_successors(pair, succ_new, succ_ptr, succ, times, p_hat, p_error):
    """Return (succ_ptr, succ, times, p_hat, p_error) with rows for the entries that are not listed yet, seen 0 times so far."""
    n_pairs = succ_ptr.size - 1
    ptr, size = np.zeros(n_pairs + 1, np.int64), np.empty(n_pairs, np.int64)
    for e in range(pair.size):  # entries that are listed, or twice here, leave a gap, which is closed below
        ptr[pair[e] + 1] += 1
    for i in range(n_pairs):
        size[i] = succ_ptr[i + 1] - succ_ptr[i]
        ptr[i + 1] += ptr[i] + size[i]
    n = ptr[-1]
    wide, seen, hat, error = np.empty(n, np.uint32), np.empty(n, np.int64), np.empty(n), np.empty(n)
    for i in range(n_pairs):
        shift = ptr[i] - succ_ptr[i]
        for j in range(succ_ptr[i], succ_ptr[i + 1]):
            wide[j + shift], seen[j + shift], hat[j + shift], error[j + shift] = succ[j], times[j], p_hat[j], p_error[j]
    for e in range(pair.size):
        i = pair[e]
        first, end = ptr[i], ptr[i] + size[i]
        j = _find(wide, first, end, succ_new[e])
        if j < end and wide[j] == succ_new[e]:
            continue
        for b in range(end, j, -1):
            wide[b], seen[b], hat[b], error[b] = wide[b - 1], seen[b - 1], hat[b - 1], error[b - 1]
        wide[j], seen[j], hat[j], error[j] = succ_new[e], 0, 0.0, 0.0
        size[i] += 1
    out = 0
    for i in range(n_pairs):
        shift, first = ptr[i] - out, out
        out += size[i]
        ptr[i] = first
        if shift > 0:
            for j in range(first, out):
                wide[j], seen[j], hat[j], error[j] = wide[j + shift], seen[j + shift], hat[j + shift], error[j + shift]
    ptr[n_pairs] = out
    return ptr, wide[:out].copy(), seen[:out].copy(), hat[:out].copy(), error[:out].copy()
