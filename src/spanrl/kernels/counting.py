"""Bring a learner's counts up to date with the experience of an episode.

``seen`` is :class:`spanrl.models.counts.Seen`: arrays with room for more successors than are listed; the table of successors is
``succ[: succ_ptr[-1]]``. New experience is (pair, reward, succ, times), sorted, so that the entries of a pair stand together.
"""

from __future__ import annotations

import numpy as np

from spanrl.kernels.jit import allocating, kernel, part


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


@part
def add_rewards(pair, reward, times, seen):
    """Add rewards by Welford's recurrence in blocks, one a pair; see :mod:`spanrl.models.counts`."""
    n, r_mean, r_sq = seen.n, seen.r_mean, seen.r_sq
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


@allocating
def list_successors(pair, succ_new, seen, moved):
    """List successors that are not listed yet, seen 0 times so far; return how many, or −1, with nothing done, where there is no room.

    ``moved`` [m, n] holds numbers of others, one column per listed successor: they move along, and those of new ones are zeros.
    """
    succ_ptr, succ = seen.succ_ptr, seen.succ
    at, who, n_new = np.empty(pair.size, np.int64), np.empty(pair.size, np.int64), 0
    for e in range(pair.size):
        end = succ_ptr[pair[e] + 1]
        j = _find(succ, succ_ptr[pair[e]], end, succ_new[e])
        if j < end and succ[j] == succ_new[e]:
            continue
        k = n_new  # find its place among the new ones, and whether it is there already, with another reward
        while k > 0 and (
            pair[who[k - 1]] > pair[e] or (pair[who[k - 1]] == pair[e] and succ_new[who[k - 1]] > succ_new[e])
        ):
            k -= 1
        if k > 0 and pair[who[k - 1]] == pair[e] and succ_new[who[k - 1]] == succ_new[e]:
            continue
        for b in range(n_new, k, -1):
            at[b], who[b] = at[b - 1], who[b - 1]
        at[k], who[k] = j, e
        n_new += 1
    if n_new == 0:
        return 0
    listed = succ_ptr[-1]
    if listed + n_new > succ.size:
        return -1
    _make_gaps(at[:n_new], listed, seen.succ, seen.times, moved)
    for k in range(n_new):
        succ[at[k] + k], seen.times[at[k] + k] = succ_new[who[k]], 0
        for row in range(moved.shape[0]):
            moved[row, at[k] + k] = 0.0
    k = 0
    for i in range(pair[who[0]], succ_ptr.size - 1):
        while k < n_new and pair[who[k]] <= i:
            k += 1
        succ_ptr[i + 1] += k
    return n_new


@part
def _make_gaps(at, listed, succ, times, moved):
    """Move what stands from at[k] on by k+1 places, from the back."""
    end = listed
    for k in range(at.size - 1, -1, -1):
        shift = k + 1
        for j in range(end - 1, at[k] - 1, -1):
            succ[j + shift] = succ[j]
        for j in range(end - 1, at[k] - 1, -1):
            times[j + shift] = times[j]
        for row in range(moved.shape[0]):
            line = moved[row]
            for j in range(end - 1, at[k] - 1, -1):
                line[j + shift] = line[j]
        end = at[k]


@part
def add_successors(pair, succ_new, times_new, seen):
    """Add to the counts of successors, which must be listed."""
    succ_ptr, succ, times = seen.succ_ptr, seen.succ, seen.times
    for e in range(pair.size):
        times[_find(succ, succ_ptr[pair[e]], succ_ptr[pair[e] + 1], succ_new[e])] += times_new[e]


@kernel
def add_batch(pair, reward, succ, times, seen, moved):
    """Take in the experience of an episode; return how many successors are new, or −1, with nothing done, where there is no room."""
    n_new = list_successors(pair, succ, seen, moved)
    if n_new >= 0:
        add_rewards(pair, reward, times, seen)
        add_successors(pair, succ, times, seen)
    return n_new


@kernel
def note_changes(pair, changed, n_changed):
    """Add the pairs of a batch to those that have changed since the last plan; return how many these are.

    Where some stand there already, all pairs count as changed: it is right, and happens only to those who count without planning.
    """
    if n_changed > 0:
        for i in range(changed.size):
            changed[i] = i
        return changed.size
    for e in range(pair.size):
        if e == 0 or pair[e] != pair[e - 1]:
            changed[n_changed] = pair[e]
            n_changed += 1
    return n_changed
