"""Nested dissection (George 1973): the order in which to eliminate the states of a chain.

A breadth-first search from a state at the edge cuts a graph into levels; a narrow level in the middle separates what lies before it from
what lies behind. Eliminating both sides first, by the same rule, keeps their factors apart. A graph that is long and thin is not cut:
eliminated from end to end, as the search found it, it fills no more than a band (Cuthill & McKee 1969). States with very many neighbours
come last. A graph without narrow separators is told at its first one.
"""

from __future__ import annotations

import numpy as np

from spanrl.kernels.jit import allocating, kernel

PATIENCE = 6.0
"""How often cuts that take off little may look at all states before a large graph counts as one without narrow separators."""

_LEAF = 24  # states below which a part is not cut again
_THIN = 6  # times as many levels as the widest has states: nor is such a graph
_HUB = 10  # times √S: neighbours above which a state comes last
_BEHIND = -1
_UNBALANCED = 8  # a cut of less than an eighth off a piece is wasted


@allocating
def neighbours(ptr, succ):
    """Return, compressed, the successors and predecessors of each state but itself, some of them twice."""
    S = ptr.size - 1
    where = np.zeros(S + 1, np.int64)
    for s in range(S):
        for j in range(ptr[s], ptr[s + 1]):
            if succ[j] != s:
                where[s + 1] += 1
                where[succ[j] + 1] += 1
    for s in range(S):
        where[s + 1] += where[s]
    both, at = np.empty(where[S], np.uint32), where[:-1].copy()
    for s in range(S):
        for j in range(ptr[s], ptr[s + 1]):
            x = succ[j]
            if x != s:
                both[at[s]] = x
                both[at[x]] = s
                at[s] += 1
                at[x] += 1
    return where, both


@kernel
def search(ptr, near, part, own, first, queue, ends):
    """Search breadth-first from ``first`` among the states whose ``part`` is ``own``; return (states found, levels).

    The states found stand in ``queue``, those of level k before ``ends[k]``; their part is −own.
    """
    queue[0], part[first], ends[0] = first, -own, 1
    found, done, level = 1, 0, 0
    while True:
        while done < ends[level]:
            s = queue[done]
            done += 1
            for e in range(ptr[s], ptr[s + 1]):
                x = near[e]
                if part[x] == own:
                    part[x] = -own
                    queue[found] = x
                    found += 1
        if found == ends[level]:
            return found, level + 1
        level += 1
        ends[level] = found


@kernel
def widest(ends, n_levels):
    """Return the most states of a level."""
    most = ends[0]
    for k in range(1, n_levels):
        most = max(most, ends[k] - ends[k - 1])
    return most


@kernel
def narrowest(ends, n_levels):
    """Return the level that is the best separator: few states, and many on either side. 0: none is worth a cut.

    Half of the states take so many cuts as have so many on their smaller side; where they are all separators by then, cuts are in vain.
    """
    n, at = ends[n_levels - 1], 0
    least = n / 2.0
    for k in range(1, n_levels - 1):
        smaller = min(ends[k - 1], n - ends[k])
        cost = (ends[k] - ends[k - 1]) * (n / 2.0 + 1.0) / (smaller + 1.0)
        if cost < least:
            at, least = k, cost
    return at


@kernel
def separate(ptr, near, part, queue, ends, level, order):
    """Cut a piece whose levels stand in ``queue`` at one of them; return how many states lie before the separator, and how many it has.

    Writes the states before it to ``order``, then those behind it, then the separator, whose part becomes 0.
    """
    found = order.size
    low, high = ends[level - 1], ends[level]
    for e in range(high, found):
        part[queue[e]] = _BEHIND
    for e in range(low):
        order[e] = queue[e]
    before, n_cut = low, 0
    for e in range(low, high):  # of the level itself, only those that touch what lies behind it
        x, touches = queue[e], False
        for j in range(ptr[x], ptr[x + 1]):
            touches = touches or part[near[j]] == _BEHIND
        if touches:
            n_cut += 1
            order[found - n_cut], part[x] = x, 0
        else:
            order[before] = x
            before += 1
    for e in range(high, found):
        order[before + e - high] = queue[e]
    return before, n_cut


@allocating
def dissect(ptr, near, most, most_products, patience, order):  # noqa: PLR0912 - one loop over pieces, with its bookkeeping
    """Write the states in the order of their elimination; return False where the factors would have more than ``most`` entries each.

    Also where their separators alone would take more than ``most_products`` multiplications, or where so many cuts take off so little that
    they would look at all states more than ``patience`` times.
    """
    S, fill, products, wasted = ptr.size - 1, 0.0, 0.0, 0.0
    part, nodes, queue = np.ones(S, np.int64), np.empty(S, np.int64), np.empty(S, np.int64)
    ends, begins, stops = np.empty(S + 1, np.int64), np.empty(S + 1, np.int64), np.empty(S + 1, np.int64)
    n, last, hub = 0, S, _HUB * np.sqrt(S) + 16.0
    for s in range(S):
        if ptr[s + 1] - ptr[s] > hub:
            last -= 1
            order[last], part[s] = s, 0
        else:
            nodes[n] = s
            n += 1
    begins[0], stops[0] = 0, n
    top, own = 1, 1  # ranges of ``nodes`` to be cut, in the places that they take in ``order``; own: their part
    while top > 0:
        top -= 1
        begin, stop, bottom = begins[top], stops[top], top
        own += 1
        for k in range(begin, stop):
            part[nodes[k]] = own
        at = begin
        for k in range(begin, stop):  # one connected piece after the other
            if part[nodes[k]] != own:
                continue
            found, _ = search(ptr, near, part, own, nodes[k], queue, ends)
            edge = queue[found - 1]
            own += 1
            for e in range(found):
                part[queue[e]] = own
            found, n_levels = search(ptr, near, part, own, edge, queue, ends)
            own -= 1
            width = widest(ends, n_levels)
            is_thin = stop - begin == n and n_levels >= _THIN * width  # later pieces have separators along their sides
            level = 0 if found <= _LEAF or is_thin else narrowest(ends, n_levels)
            if level == 0:
                for e in range(found):
                    order[at + e] = queue[found - 1 - e]
                    part[queue[e]] = 0
                at += found
                if found > _LEAF:
                    fill += found * width / 2.0
                    products += float(found) * width**2
                continue
            before, n_cut = separate(ptr, near, part, queue, ends, level, order[at : at + found])
            fill += n_cut**2 / 2.0
            products += float(n_cut) ** 3 / 3.0
            wasted += found if min(before, found - before) * _UNBALANCED < found else 0
            begins[top], stops[top] = at, at + before
            begins[top + 1], stops[top + 1] = at + before, at + found - n_cut
            top += 2
            at += found
        if fill > most or products > most_products or wasted > patience * S:
            return False
        for k in range(bottom, top):  # what is still to be cut stands in ``order``, as the loop above reads ``nodes``
            for e in range(begins[k], stops[k]):
                nodes[e] = order[e]
    return True
