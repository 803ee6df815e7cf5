"""A policy with nature's answer to it, both frozen: a linear operator, swept at a fraction of the cost of a set model.

Nature's distribution in a row is ::

    Σ_j coef_j·[s_j] + rest·Σ_{k < stop} [order_k] + part·[order_at]

over its listed successors s_j, and the states in the order that they had when it was frozen: unlisted states above ``stop`` have all that
they may have, one more has a part, and listed states above ``stop`` have ``rest`` taken off their coefficient again. In a KL ball nothing
is shared: the best state, listed or not, has a part besides its coefficient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.extremes import extremes
from spanrl.kernels.jit import allocating, kernel
from spanrl.kernels.kl import kl_row
from spanrl.kernels.layout import BOX, KL
from spanrl.kernels.projection import keep_differences


class FrozenPolicy(NamedTuple):
    """One row per state, filled up with zeros to the longest row of any action there.

    States with shorter rows come first, so that loops over neighbouring rows end alike.
    """

    state: Any  # int64 [S]     the state of each row
    pair: Any  # int64 [S]      the pair i frozen there; −2 − i where its row depends on the values; −1: none yet
    ptr: Any  # int64 [S+1]     where the row begins
    succ: Any  # uint32 [n]
    coef: Any  # float64 [n]
    reward: Any  # float64 [S]
    rest: Any  # float64 [S]
    part: Any  # float64 [S]
    stop: Any  # int64 [S]
    at: Any  # int64 [S]
    listed: Any  # int64 [1]    how many successors were listed when the rows got their places; there are only ever more


def new_frozen_policy(n_states: int, n_listed: int) -> FrozenPolicy:
    """Allocate for a number of states, with at most ``n_listed`` coefficients."""
    S = n_states
    whole, real = (lambda n: np.empty(n, dtype=np.int64)), np.empty
    rows = np.empty(n_listed, dtype=np.uint32), real(n_listed), real(S), real(S), real(S)
    return FrozenPolicy(whole(S), whole(S), whole(S + 1), *rows, whole(S), whole(S), np.array([-1]))


@allocating
def by_length(ptr, chosen, out):
    """Write the positions 0.. of ``chosen`` to ``out``, rows of ``ptr`` with fewer entries first; equal ones keep their order."""
    longest = 0
    for i in chosen:
        longest = max(longest, ptr[i + 1] - ptr[i])
    first = np.zeros(longest + 2, np.int64)
    for i in chosen:
        first[ptr[i + 1] - ptr[i] + 1] += 1
    for n in range(longest):
        first[n + 1] += first[n]
    for e in range(chosen.size):
        n = ptr[chosen[e] + 1] - ptr[chosen[e]]
        out[first[n]] = e
        first[n] += 1


@allocating
def _assign_places(pair_ptr, succ_ptr, frozen):
    """Give every state a place, states with short rows first."""
    S = frozen.state.size
    longest = np.zeros(S + 1, np.int64)
    for s in range(S):
        for i in range(pair_ptr[s], pair_ptr[s + 1]):
            longest[s] = max(longest[s], succ_ptr[i + 1] - succ_ptr[i])
    ptr = np.zeros(S + 1, np.int64)
    for s in range(S):
        ptr[s + 1] = ptr[s] + longest[s]
    by_length(ptr, np.arange(S), frozen.state)
    frozen.ptr[0] = 0
    for e in range(S):
        frozen.ptr[e + 1] = frozen.ptr[e] + longest[frozen.state[e]]


@kernel
def freeze(m, flagged, reward, ws, ranked, rows, pairs, frozen, afresh, owned):
    """Freeze ``pairs`` [S], not of L1 balls, as nature answers at the values that the states are ranked by; return how many changed.

    Rows that were walked (:mod:`spanrl.kernels.box_sweeps`) must stand in order in the workspace. Other rows of boxes do not depend
    on the values: where the pair is the same, it stays as it is, unless all is to be done ``afresh``. Rows that are ``owned`` by an
    estimate may have other lengths in every plan; those of counts only grow.
    """
    succ_ptr, listed, lows, rests = m.succ_ptr, m.succ, m.low, m.rest
    state, pair, ptr, succ, coef = frozen.state, frozen.pair, frozen.ptr, frozen.succ, frozen.coef
    rewards, rest, part, stop, at = frozen.reward, frozen.rest, frozen.part, frozen.stop, frozen.at
    one, changed, is_box, is_kl = np.uint64(1), 0, m.kind == BOX, m.kind == KL
    if afresh:
        if owned or frozen.listed[0] != succ_ptr[-1]:
            _assign_places(m.pair_ptr, succ_ptr, frozen)
            frozen.listed[0] = succ_ptr[-1]
        pair[:] = -1
    for e in range(pairs.size):
        i = np.uint64(pairs[state[e]])
        before = pair[e]
        changed += np.int64(i) != (before if before >= 0 else -2 - before)
        walked = is_kl
        if is_box:
            peak, last = rows.peak[i], ranked.keys[rows.stop[i]]
            walked = peak > last or (peak == last and rows.narrow[i] == 1)
        if np.int64(i) == before and not walked:
            continue
        n = np.uint64(ptr[e])
        j, end = np.uint64(succ_ptr[i]), np.uint64(succ_ptr[i + one])
        while j < end:
            succ[n], coef[n] = listed[j], lows[j]
            j += one
            n += one
        while n < np.uint64(ptr[e + 1]):
            succ[n], coef[n] = 0, 0.0
            n += one
        pair[e], rewards[e] = np.int64(i), reward[i]
        if not is_box:
            rest[e], stop[e], at[e], part[e] = 0.0, 0, 0, 0.0
            if is_kl:
                pair[e], part[e] = -2 - np.int64(i), kl_row(m, ws, i, coef, ptr[e])
            continue
        k = rows.stop[i]
        rest[e], stop[e], at[e], part[e] = rests[i], k, k, rows.part[i]
        if walked:
            pair[e] = -2 - np.int64(i)
            first, end = succ_ptr[i], succ_ptr[i + one]
            if flagged.size > 0 and flagged[i]:
                _freeze_sorted(m.slack[i], first, end, ws, ranked.rank, ranked.n_open[0], ws.keys.size + 1, frozen, e)
            else:
                _freeze_sorted(m.slack[i], first, end, ws, ws.rank, ws.keys.size, 0, frozen, e)
    return changed


@kernel
def _freeze_sorted(mass, first, end, ws, rank, S, base, frozen, e):
    """Freeze row e as the row first:end of the workspace is walked (see :func:`spanrl.kernels.backups.sorted_box_values`).

    It can reach S states, whose ranking begins at position ``base``.
    """
    listed, low, room = ws.succ, ws.low, ws.room
    succ, coef, rest, to = frozen.succ, frozen.coef, frozen.rest[e], frozen.ptr[e] - first
    position, part, spent = 0, 0.0, False
    for j in range(first, end + 1):
        k = np.int64(rank[listed[j]]) if j < end else S
        if not spent and rest > 0.0 and k > position:
            full = np.floor(mass / rest)
            if full < k - position:
                position += np.int64(full)
                part, spent = mass - full * rest, True
            else:
                mass = max(mass - (k - position) * rest, 0.0)
        if j == end:
            break
        succ[to + j], coef[to + j] = listed[j], low[j]
        if not spent:
            give = min(room[j], mass)
            mass -= give
            coef[to + j] += give - rest
            position, spent = k + 1, mass <= 0.0
    if not spent:
        position = S
    frozen.stop[e], frozen.at[e], frozen.part[e] = base + position, base + min(position, S - 1), part


@kernel
def sweep_frozen(frozen, scratch, ranked, v, u, c, differences, a):
    """Set v ← (1−a)v + a·Γ_c Proj_d u, 0 in state 0, for the value u of the frozen rows at v; return how far they are from equal steps.

    The keys and prefix sums of the ranking are written to; ``scratch`` [S] is the first part of these keys.
    """
    order, keys, prefix = ranked.order, ranked.keys, ranked.prefix
    state, ptr, succ, coef = frozen.state, frozen.ptr, frozen.succ, frozen.coef
    rewards, rest, part, stop, at = frozen.reward, frozen.rest, frozen.part, frozen.stop, frozen.at
    sum_of_keys, j, one = 0.0, np.uint64(0), np.uint64(1)
    for e in range(v.size):  # two things at a time: the sum of the keys alone would wait for itself
        keys[e] = v[order[e]]
        sum_of_keys += keys[e]
        prefix[e + 1] = sum_of_keys
        total, end = rewards[e], np.uint64(ptr[e + 1])
        while j < end:
            total += coef[j] * v[succ[j]]
            j += one
        u[np.uint64(state[e])] = total
    if ranked.rank.size > 0:
        sum_of_keys, first = 0.0, v.size + 1
        for e in range(first, first + ranked.n_open[0]):
            keys[e] = v[order[e]]
            sum_of_keys += keys[e]
            prefix[e + 1] = sum_of_keys
    for e in range(v.size):
        u[np.uint64(state[e])] += rest[e] * prefix[np.uint64(stop[e])] + part[e] * keys[np.uint64(at[e])]
    keep_differences(u, differences)
    least, _ = extremes(u)
    ceiling = least + c
    shift = (1.0 - a) * v[0] + a * min(u[0], ceiling)
    for s in range(v.size):
        x = min(u[s], ceiling)
        scratch[s] = x - v[s]
        v[s] = (1.0 - a) * v[s] + a * x - shift
    lo, hi = extremes(scratch)
    return hi - lo
