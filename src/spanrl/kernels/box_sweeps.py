"""Sweeps over the boxes of a learner: what a row needs is kept from sweep to sweep of a plan, and most rows are not walked at all.

A pair is worth its lower ends and its slack, which goes to the best states. Most often it is spent on states that the row does not list
before a listed successor has its turn: then its value is a prefix sum (:func:`_box_sweep`). The other rows are walked in the
order of the states (:func:`spanrl.kernels.backups.sorted_box_values`).
"""

from __future__ import annotations

import numpy as np

from spanrl.kernels.backups import sorted_box_values
from spanrl.kernels.jit import kernel
from spanrl.kernels.layout import Workspace

_HAIR = 1e-12
_UNKNOWN = 2  # whether a row is narrow


@kernel
def has_less_room(rooms, first, end, size):
    """Tell whether a listed successor has less room than ``size``; a hair, 1e-12 of all mass, does not count."""
    less = False
    for j in range(first, end):
        less |= rooms[j] < size - _HAIR
    return less


@kernel
def keep_due(todo, n, value, keys, stop, narrow, rooms, succ_ptr, rests, slack):
    """Keep of ``todo[:n]`` the rows that must be walked: a listed successor is worth more than the last state that is given any.

    Where the two are worth the same, it does not matter who of them is given it, unless a listed successor has less room than what an
    unlisted one is given. Returns how many are left.
    """
    due = 0
    for e in range(n):
        i = todo[e]
        if value[i] == keys[stop[i]]:
            if narrow[i] == _UNKNOWN:
                size = min(rests[i], slack[i])
                narrow[i] = has_less_room(rooms, succ_ptr[i], succ_ptr[i + 1], size)
            if narrow[i] == 0:
                continue
        todo[due] = i
        due += 1
    return due


@kernel
def _first_box_sweep(
    succ_ptr,
    listed,
    lows,
    rests,
    reward,
    pairs,
    keys,
    prefix,
    w,
    slack,
    stop,
    part,
    peak,
    flagged,
    n_open,
    exact,
    todo,
    q,
):
    """Close all boxes, and do what :func:`_box_sweep` does: both walk the rows, so they do it together.

    What comes after the walk is done for all pairs at once: such loops become vector instructions.
    """
    one, last = np.uint64(1), w.size - 1.0
    for pair in pairs:
        i = np.uint64(pair)
        j, end = np.uint64(succ_ptr[i]), np.uint64(succ_ptr[i + one])
        low, total, best = 0.0, 0.0, -np.inf
        while j < end:
            x, p = w[listed[j]], lows[j]
            low += p
            total += p * x
            best = max(best, x)
            j += one
        slack[i], q[i], peak[i] = low, total, best
    for i in range(q.size):
        mass, rest = max(0.0, 1.0 - slack[i]), rests[i]
        full = min(np.floor(mass / rest), last)
        full = full if (mass > 0.0) & (rest < 1.0) else 0.0
        slack[i] = mass
        stop[i], part[i] = np.int64(full), mass - full * rest
    for i in range(flagged.size):
        if flagged[i]:  # its slack ends among the open states, which are ranked behind all states
            mass, rest = slack[i], rests[i]
            full = min(np.floor(mass / rest), n_open - 1.0) if mass > 0.0 and rest < 1.0 else 0.0
            stop[i], part[i] = w.size + 1 + np.int64(full), mass - full * rest
    n = 0
    for i in range(q.size):
        k = np.uint64(stop[i])
        q[i] = reward[i] + (q[i] + rests[i] * prefix[k] + part[i] * keys[k])
        todo[n] = i
        n += peak[i] > keys[k]
    if exact:  # with those that are worth the same: a second loop, which spares the first a comparison
        n = 0
        for i in range(q.size):
            todo[n] = i
            n += peak[i] >= keys[np.uint64(stop[i])]
    return n


@kernel
def _box_sweep(succ_ptr, listed, lows, rests, reward, pairs, keys, prefix, w, stop, part, peak, exact, todo, q):
    """Set q(i) = r(i) + max{pᵀv : p in box i} of ``pairs``, at the values that the states are ranked by, if unlisted states take the slack.

    Most often it is spent on these before a listed successor has its turn: the best one, of value ``peak``, is then worth less than the
    last state that is given any. The other pairs are written to ``todo``; returns how many. If ``exact``, those
    that are worth the same are among them.
    """
    n, one = 0, np.uint64(1)
    for pair in pairs:
        i = np.uint64(pair)
        j, end, total, best = np.uint64(succ_ptr[i]), np.uint64(succ_ptr[i + one]), 0.0, -np.inf
        while j < end:
            x = w[listed[j]]
            total += lows[j] * x
            best = max(best, x)
            j += one
        k = np.uint64(stop[i])
        q[i] = reward[i] + (total + rests[i] * prefix[k] + part[i] * keys[k])
        todo[n] = pair
        peak[i] = best
        n += (best > keys[k]) | (exact & (best == keys[k]))
    return n


@kernel
def walk_with_flags(m, flagged, reward, sign, ws, ranked, todo, q):
    """Do what :func:`sorted_box_values` does for the pairs ``todo``; flagged rows are walked in the order of the open states."""
    n = 0  # the others first
    for e in range(todo.size):
        if not flagged[todo[e]]:
            todo[n], todo[e] = todo[e], todo[n]
            n += 1
    sorted_box_values(m, reward, sign, ws, todo[:n], q)
    first = ws.keys.size + 1
    end = first + ranked.n_open[0]
    keys, prefix = ranked.keys[first:end], ranked.prefix[first : end + 1]
    among = Workspace(
        ranked.order[first:end], keys, prefix, ws.w, ranked.rank, ws.tmp_keys, ws.tmp_order, ws.succ, ws.low, ws.room,
        ws.q, ws.pairs, ws.todo, ws.taken, ws.version,
    )  # fmt: skip
    sorted_box_values(m, reward, sign, among, todo[n:], q)


@kernel
def sweep_boxes(m, flagged, exact, reward, ws, ranked, rows, pairs, is_first):
    """Set ws.q of ``pairs`` to r + max{pᵀv : p in its box}; the workspace is ranked by v. The first sweep of a plan closes all boxes."""
    if is_first:
        rows.narrow[:] = _UNKNOWN
        n = _first_box_sweep(
            m.succ_ptr, m.succ, m.low, m.rest, reward, pairs, ranked.keys, ranked.prefix, ws.w, rows.slack, rows.stop,
            rows.part, rows.peak, flagged, ranked.n_open[0], exact, ws.todo, ws.q,
        )  # fmt: skip
    else:
        n = _box_sweep(
            m.succ_ptr, m.succ, m.low, m.rest, reward, pairs, ranked.keys, ranked.prefix, ws.w, rows.stop, rows.part,
            rows.peak, exact, ws.todo, ws.q,
        )  # fmt: skip
    if exact:
        n = keep_due(ws.todo, n, rows.peak, ranked.keys, rows.stop, rows.narrow, m.room, m.succ_ptr, m.rest, rows.slack)
    if flagged.size == 0:
        sorted_box_values(m, reward, 1.0, ws, ws.todo[:n], ws.q)
    else:
        walk_with_flags(m, flagged, reward, 1.0, ws, ranked, ws.todo[:n], ws.q)
