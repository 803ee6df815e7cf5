"""The elimination tree (Liu 1986) of an order of the states: what depends on what, and how many entries the factors will have.

The factors are those of I − Q with pivots on the diagonal, and so stable, as I − Q is an M-matrix; their pattern is that of A + Aᵀ.
States are numbered anew so that each subtree is a range: the factors are the same, and what is eliminated together stands together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.jit import allocating, kernel


class Tree(NamedTuple):
    """An order of elimination in which each subtree is a range; k is the state that is eliminated as the k-th."""

    order: Any  # int64 [S]   the states
    rank: Any  # int64 [S]    of each state
    parent: Any  # int64 [S]  the first state on which k depends once those before k are gone; −1: none
    length: Any  # int64 [S]  of row k of the upper factor


def new_tree(S: int) -> Tree:
    """Allocate the tree of so many states."""
    return Tree(*np.empty((4, S), dtype=np.int64))


@allocating
def count_factors(ptr, near, order, tree):
    """Fill the tree of an order; return the entries of one factor.

    Row k of the lower factor holds the states on the paths up the elimination tree from the neighbours of k that are eliminated before it.
    They are a subtree. Its states are not walked through but counted by its leaves, in time about proportional to the edges (Gilbert, Ng &
    Peyton 1994): each leaf is one entry in every column on its path, and where two paths meet one is taken back.
    """
    S = ptr.size - 1
    rank, parent, length = tree.rank, tree.parent, tree.length
    above, first, at, up = np.empty(S, np.int64), np.empty(S, np.int64), np.empty(S, np.int64), np.empty(S, np.int64)
    _depend(ptr, near, order, rank, up, above)
    _postorder(up, first, at, above)
    for k in range(S):
        tree.order[k] = order[at[k]]
        above[at[k]] = k
    for k in range(S):
        parent[k] = above[up[at[k]]] if up[at[k]] >= 0 else -1
        rank[tree.order[k]] = k
    last = np.full(S, -1)  # the last leaf of each row
    reached = np.zeros(S, np.int64)  # what comes behind the first state below that leaf
    for k in range(S):
        above[k], length[k], up[k] = k, 1, first[at[k]]
    for k in range(S):
        if parent[k] >= 0:  # row k ends there; only states without any below them are leaves of their own rows
            length[parent[k]] = min(length[parent[k]], 0) - 1
    for j in range(S):
        s = tree.order[j]
        for e in range(ptr[s], ptr[s + 1]):
            i = rank[near[e]]
            if i > j and up[j] >= reached[i]:
                length[j] += 1
                if last[i] >= 0:
                    length[_top(above, last[i])] -= 1
                last[i], reached[i] = j, up[j] + 1
        if parent[j] >= 0:
            above[j] = parent[j]
    entries = 0.0
    for k in range(S):
        if parent[k] >= 0:
            length[parent[k]] += length[k]
        entries += np.float64(length[k])
    return entries


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
