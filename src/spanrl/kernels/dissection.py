"""Nested dissection (George 1973): the order in which to eliminate the states of a chain, and what the factors will cost.

A breadth-first search from a state at the edge cuts a graph into levels; a narrow level in the middle separates what lies before it from
what lies behind. Eliminating both sides first, by the same rule, keeps their factors apart. A graph that is long and thin is not cut:
eliminated from end to end, as the search found it, it fills no more than a band (Cuthill & McKee 1969). States with very many neighbours
come last. A graph without narrow separators is told at its first one. With the elimination tree (Liu 1986) the size of the factors is then
counted, not guessed.

The factors are those of I − Q with pivots on the diagonal, and so stable, as I − Q is an M-matrix; their pattern is that of A + Aᵀ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.jit import allocating, kernel

PATIENCE = 6.0
"""How often cuts that take off little may look at all states before a large graph counts as one without narrow separators."""

_LEAF = 24  # states below which a part is not cut again
_THIN = 4  # times as many levels as the widest has states: nor is such a graph
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


class Tree(NamedTuple):
    """The elimination tree of the states in an order; k is the state that is eliminated as the k-th."""

    rank: Any  # int64 [S]    of each state
    parent: Any  # int64 [S]  the first state on which k depends once those before k are gone; −1: none
    length: Any  # int64 [S]  of row k of the upper factor


def new_tree(S: int) -> Tree:
    """Allocate the tree of so many states."""
    return Tree(*np.empty((3, S), dtype=np.int64))


@allocating
def count_factors(ptr, near, order, tree):
    """Fill ``tree``; return the entries of one factor and the multiplications of the factorisation.

    Row k of the lower factor holds the states on the paths up the elimination tree from the neighbours of k that are eliminated before it.
    They are a subtree. Its states are not walked through but counted by its leaves, in time about proportional to the edges (Gilbert, Ng &
    Peyton 1994): each leaf is one entry in every column on its path, and where two paths meet one is taken back.
    """
    S = ptr.size - 1
    rank, parent, length = tree.rank, tree.parent, tree.length
    above, first, at = np.empty(S, np.int64), np.empty(S, np.int64), np.empty(S, np.int64)
    _depend(ptr, near, order, rank, parent, above)
    _postorder(parent, first, at, above)
    last = np.full(S, -1)  # the last leaf of each row
    reached = np.zeros(S, np.int64)  # what comes behind the first state below that leaf
    for k in range(S):
        above[k], length[k] = k, 1
    for k in range(S):
        if parent[k] >= 0:  # row k ends there; only states without any below them are leaves of their own rows
            length[parent[k]] = min(length[parent[k]], 0) - 1
    for j in at:
        s = order[j]
        for e in range(ptr[s], ptr[s + 1]):
            i = rank[near[e]]
            if i > j and first[j] >= reached[i]:
                length[j] += 1
                if last[i] >= 0:
                    length[_top(above, last[i])] -= 1
                last[i], reached[i] = j, first[j] + 1
        if parent[j] >= 0:
            above[j] = parent[j]
    entries, products = 0.0, 0.0
    for k in range(S):
        if parent[k] >= 0:
            length[parent[k]] += length[k]
        entries += np.float64(length[k])
        products += np.float64(length[k]) * length[k]
    return entries, products


@kernel
def _depend(ptr, near, order, rank, parent, above):
    """Fill in the ranks of the states, and on which state each depends first; ``above`` is room."""
    S = order.size
    for k in range(S):
        rank[order[k]], parent[k], above[k] = k, -1, -1
    for k in range(S):
        s = order[k]
        for e in range(ptr[s], ptr[s + 1]):
            i = rank[near[e]]
            while i < k and above[i] != k:
                up = above[i]
                above[i] = k  # a short cut for the next walk
                if up < 0:
                    parent[i] = k
                    break
                i = up


@kernel
def _postorder(parent, first, at, free):
    """List the tree in ``at`` so that each subtree is a range of it, from ``first[k]`` to k itself; ``free`` is room."""
    S, roots = parent.size, parent.size
    for k in range(S):
        first[k] = 0
    for k in range(S):  # a parent comes after its children
        first[k] += 1  # at first, the states of the subtree
        if parent[k] >= 0:
            first[parent[k]] += first[k]
    for k in range(S - 1, -1, -1):
        n, p = first[k], parent[k]
        end = free[p] if p >= 0 else roots
        first[k], free[k], at[end - 1] = end - n, end - 1, k
        if p >= 0:
            free[p] -= n
        else:
            roots -= n


@kernel
def _top(above, k):
    """Return the root of k's part of the forest, and let the path to it be shorter for the next walk."""
    root = k
    while above[root] != root:
        root = above[root]
    while k != root:
        above[k], k = root, above[k]
    return root


@allocating
def columns(chain, horizon, order, near_ptr, near):
    """Return I − Q by compressed columns, its states in the given order: (ptr, row, value); see :mod:`spanrl.kernels.krylov` for Q.

    Its pattern is that of A + Aᵀ, with zeros: the factorisation takes the elimination tree from it.
    """
    S, gamma = order.size, 1.0 - 1.0 / horizon
    rank, ptr, seen = np.empty(S, np.int64), np.zeros(S + 1, np.int64), np.full(S, -1)
    for k in range(S):
        rank[order[k]] = k
    for s in range(S):
        ptr[rank[s] + 1] += 1
        for e in range(near_ptr[s], near_ptr[s + 1]):
            if seen[near[e]] != s:
                seen[near[e]] = s
                ptr[rank[s] + 1] += 1
    for k in range(S):
        ptr[k + 1] += ptr[k]
    at, row, value = ptr[:-1].copy(), np.empty(ptr[S], np.int32), np.empty(ptr[S])
    prob = np.zeros(S)
    seen[:] = -1
    for k in range(S):  # rows in order: each column is then sorted
        s = order[k]
        weight = 1.0 if chain.cut[s] else gamma
        row[at[k]], value[at[k]] = k, 1.0 if chain.cut[s] else 1.0 / horizon + gamma * chain.out[s]
        at[k] += 1
        for j in range(chain.ptr[s], chain.ptr[s + 1]):
            prob[chain.succ[j]] += chain.prob[j]
        for e in range(near_ptr[s], near_ptr[s + 1]):
            x = near[e]
            if seen[x] != s:
                seen[x] = s
                column = rank[x]
                row[at[column]], value[at[column]] = k, -weight * prob[x]
                prob[x] = 0.0
                at[column] += 1
    return ptr.astype(np.int32), row, value
