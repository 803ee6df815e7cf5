"""One application of the Bellman operator, for plain models, boxes, L1 balls and KL balls.

With ``sign`` = +1 the inner problem is max_p pᵀv, with −1 it is min_p pᵀv = −max_p pᵀ(−v); the maximum over actions stays a
maximum. A box costs O(listed successors) per pair, not O(S): all states that are not listed share one interval [0, rest], and
between two listed successors of neighbouring rank a block of them is filled at once by a difference of prefix sums.

Rows that must be walked in the order of the states are copied into the workspace when they are first needed there, once for each version
of the model, and stay in the order they had in the last sweep; a row that turns out to be out of order is sorted and walked again. Arrays
are taken out of their tuples before the loop, and indices are unsigned: numba then neither counts references nor checks for negative
indices inside it.
"""

from __future__ import annotations

import numpy as np

from spanrl.kernels.jit import kernel, part
from spanrl.kernels.kl import kl_values
from spanrl.kernels.layout import BOX, FREE, KL, PLAIN
from spanrl.kernels.order import rank_states, sort_row


@kernel
def pick(condition, i, j):
    """Return i where the condition holds, else j, by arithmetic: a compiler may make a branch of anything else."""
    return j ^ ((i ^ j) & (np.uint64(0) - np.uint64(condition)))


@kernel
def box_values(m, reward, sign, ws, pairs, q):
    """Set q(i) = r(i) + sign·max{pᵀw : p in box i}: lower ends first, then the slack to the best states that have room.

    Most often the slack is spent on unlisted states before the best listed successor has its turn: then the order within the row does
    not matter and nothing needs to be sorted.
    """
    succ_ptr, slack, rests = m.succ_ptr, m.slack, m.rest
    keys, prefix, w, rank = ws.keys, ws.prefix, ws.w, ws.rank
    listed, lows = m.succ, m.low
    S, one = np.uint64(keys.size), np.uint64(1)
    n_sorted = 0
    for i in pairs:
        mass, rest = slack[i], rests[i]
        if mass == FREE:
            q[i] = reward[i] + sign * keys[0]
            continue
        if rest > 0.0:
            j, end, total, k = np.uint64(succ_ptr[i]), np.uint64(succ_ptr[i + 1]), 0.0, S
            while j < end:
                s = listed[j]
                total += lows[j] * w[s]
                k = min(k, np.uint64(rank[s]))
                j += one
            if k < S and mass <= np.float64(np.int64(k)) * rest:
                full = np.floor(mass / rest)
                stop = np.uint64(np.int64(full))
                total += rest * prefix[stop] + (mass - full * rest) * keys[stop]
                q[i] = reward[i] + sign * total
                continue
        ws.todo[n_sorted] = i
        n_sorted += 1
    sorted_box_values(m, reward, sign, ws, ws.todo[:n_sorted], q)


@kernel
def sorted_box_values(m, reward, sign, ws, pairs, q):  # noqa: PLR0912 - calls from this loop would cost more than it does
    """Do what :func:`box_values` does, row by row in the order of the states."""
    succ_ptr, slack, rests = m.succ_ptr, m.slack, m.rest
    keys, prefix, w, rank = ws.keys, ws.prefix, ws.w, ws.rank
    succ, low, room, taken, version = ws.succ, ws.low, ws.room, ws.taken, ws.version[0]
    listed, lows, rooms = m.succ, m.low, m.room
    S, zero, one = np.uint64(keys.size), np.uint64(0), np.uint64(1)
    for i in pairs:
        if taken[i] != version:
            taken[i] = version
            for e in range(succ_ptr[i], succ_ptr[i + 1]):
                succ[e], low[e], room[e] = listed[e], lows[e], rooms[e]
        first, end, rest = np.uint64(succ_ptr[i]), np.uint64(succ_ptr[i + 1]), rests[i]
        for _ in range(2):
            total, mass, position = 0.0, slack[i], zero  # ranks below position are dealt with
            last_x, last_s, in_order = np.inf, np.uint32(0), True
            j = first
            while j < end:
                s = succ[j]
                x = w[s]
                in_order = in_order and (x < last_x or (x == last_x and s > last_s))
                last_x, last_s = x, s
                p = low[j]
                if mass > 0.0:
                    if rest > 0.0:
                        k = np.uint64(rank[s])
                        if k > position:
                            block = np.float64(k - position)
                            if block * rest <= mass:
                                total += rest * (prefix[k] - prefix[position])
                                mass -= block * rest
                            else:
                                full = np.floor(mass / rest)
                                stop = position + np.uint64(full)
                                total += rest * (prefix[stop] - prefix[position]) + (mass - full * rest) * keys[stop]
                                mass = 0.0
                        position = k + one
                    give = min(room[j], mass)
                    mass -= give
                    p += give
                total += p * x
                j += one
            if in_order:
                break
            sort_row(succ_ptr[i], succ_ptr[i + 1], w, succ, low, room)
        if rest > 0.0 and mass > 0.0 and position < S:
            full = min(np.float64(S - position), np.floor(mass / rest))
            stop = position + np.uint64(full)
            total += rest * (prefix[stop] - prefix[position])
            if stop < S:
                total += (mass - full * rest) * keys[stop]
        q[i] = reward[i] + sign * total


@kernel
def ball_values(m, reward, sign, ws, pairs, q):
    """Set q(i) = r(i) + sign·max{pᵀw : p in ball i}: radius/2 to the best state, taken from the worst (Jaksch et al. 2010, Fig. 2)."""
    succ_ptr, slack, w = m.succ_ptr, m.slack, ws.w
    succ, low, room, taken, version = ws.succ, ws.low, ws.room, ws.taken, ws.version[0]
    listed, lows = m.succ, m.low
    best, best_x, one = ws.order[0], ws.keys[0], np.uint64(1)
    for i in pairs:
        if slack[i] >= 1.0:  # all distributions
            q[i] = reward[i] + sign * best_x
            continue
        if taken[i] != version:
            taken[i] = version
            for e in range(succ_ptr[i], succ_ptr[i + 1]):
                succ[e], low[e], room[e] = listed[e], lows[e], 0.0
        first, end = np.uint64(succ_ptr[i]), np.uint64(succ_ptr[i + 1])
        for _ in range(2):
            total, last_x, last_s, in_order = 0.0, np.inf, np.uint32(0), True
            j = first
            while j < end:
                s = succ[j]
                x = w[s]
                in_order = in_order and (x < last_x or (x == last_x and s > last_s))
                last_x, last_s = x, s
                total += low[j] * x
                j += one
            if in_order:
                break
            sort_row(succ_ptr[i], succ_ptr[i + 1], w, succ, low, room)
        add = min(slack[i], 1.0 - (low[first] if succ[first] == best else 0.0))
        total += add * best_x
        while add > 0.0 and j > first:
            j -= one
            take = min(add, low[j])
            total -= take * w[succ[j]]
            add -= take
        q[i] = reward[i] + sign * total


@kernel
def plain_sweep(succ_ptr, listed, p, reward, pairs, v, q):
    """Set q(i) = r(i) + pᵀv of ``pairs`` of a plain model."""
    one = np.uint64(1)
    for pair in pairs:
        i = np.uint64(pair)
        j, end, total = np.uint64(succ_ptr[i]), np.uint64(succ_ptr[i + one]), 0.0
        while j < end:
            total += p[j] * v[listed[j]]
            j += one
        q[i] = reward[i] + total


@kernel
def plain_backup(m, reward, v, out):
    """Set out(s) = max_a r(s,a) + Σ p(s'|s,a) v(s'). Unsigned running indices: numba then checks no negative index.

    Rows have two sums, as each addition waits for the one before: long ones are read up to half as fast again.
    """
    i, one, two = np.uint64(m.pair_ptr[0]), np.uint64(1), np.uint64(2)
    j = np.uint64(m.succ_ptr[i])
    for s in range(out.size):
        best = -np.inf
        last = np.uint64(m.pair_ptr[s + 1])
        while i < last:
            q, other = reward[i], 0.0
            i += one
            end = np.uint64(m.succ_ptr[i])
            while j + one < end:
                q += m.low[j] * v[m.succ[j]]
                other += m.low[j + one] * v[m.succ[j + one]]
                j += two
            if j < end:
                q += m.low[j] * v[m.succ[j]]
                j += one
            best = max(best, q + other)
        out[s] = best


@part
def some_values(m, reward, sign, ws, pairs, q):
    """Set q to the value of ``pairs``, and leave the others. The workspace must be ranked."""
    if m.kind == BOX:
        box_values(m, reward, sign, ws, pairs, q)
    elif m.kind == KL:
        kl_values(m, reward, sign, ws, pairs, q)
    else:
        ball_values(m, reward, sign, ws, pairs, q)


@part
def set_values(m, reward, sign, ws, v, q):
    """Set q [n_pairs] to the value of every pair of a box or ball model at v."""
    rank_states(sign, v, ws)
    some_values(m, reward, sign, ws, ws.pairs, q)


@kernel
def plain_values(m, reward, v, q):
    """Set q(i) = r(i) + Σ p(s'|i) v(s') for every pair of a plain model; the same bits as in :func:`plain_backup`."""
    i, j, one, two = np.uint64(0), np.uint64(0), np.uint64(1), np.uint64(2)
    last = np.uint64(q.size)
    while i < last:
        total, other = reward[i], 0.0
        end = np.uint64(m.succ_ptr[i + one])
        while j + one < end:
            total += m.low[j] * v[m.succ[j]]
            other += m.low[j + one] * v[m.succ[j + one]]
            j += two
        if j < end:
            total += m.low[j] * v[m.succ[j]]
            j += one
        q[i] = total + other
        i += one


@kernel
def pair_values(m, reward, sign, ws, v, q):
    """Set q [n_pairs] to r(s,a) + the inner value of every pair at v."""
    if m.kind == PLAIN:
        plain_values(m, reward, v, q)
    else:
        set_values(m, reward, sign, ws, v, q)


@part
def block_backup(m, reward, sign, ws, v, out):
    """Set out = Lv on a block of neighbouring states: ``m.pair_ptr`` and ``ws.pairs`` are those of the block, all else is the model's.

    The workspace of a set model must be ranked. Blocks write to different places, so that threads may work on them at the same time.
    """
    if m.kind == PLAIN:
        plain_backup(m, reward, v, out)
        return
    some_values(m, reward, sign, ws, ws.pairs, ws.q)
    for s in range(out.size):
        best = -np.inf
        for i in range(m.pair_ptr[s], m.pair_ptr[s + 1]):
            best = max(best, ws.q[i])
        out[s] = best


@part
def backup(m, reward, sign, ws, v, out):
    """Set out = Lv: the maximum over actions of :func:`pair_values`."""
    if m.kind != PLAIN:
        rank_states(sign, v, ws)
    block_backup(m, reward, sign, ws, v, out)
