"""Sparse LU factors of the equations of a frozen policy, front by front and without a subtraction.

The matrix is I − Q = D − B with B ≥ 0 off the diagonal and known row sums σ ≥ 0: 1/H, or 0 where a state is truncated (see
:mod:`spanrl.kernels.krylov` for Q). Grassmann, Taksar and Heyman (1985) noticed that such matrices can be eliminated by additions of
nonnegative numbers alone: a multiplier f = x(k)/pivot(k) adds f·U(k, ·) to the row and f·σ(k) to its sum, and the pivot is what is left of
the row, σ + ΣU. No digit is lost however slowly the chain mixes: every factor is right to a few units in the last place per step.

Neighbouring states that depend on nearly the same others are eliminated together (Duff & Reid 1983): a *front* is a small dense matrix of
its w pivots and its border, the b states on which they depend once those before are gone. It gathers the rows of the model that begin in
it and what its children left for it, eliminates its pivots, and leaves a b × b matrix to its parent. Those wait on a stack, as the tree
is walked from its leaves. Nearly all work is then on rows without gaps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.jit import allocating, kernel

_PADDING = 0.25  # of the entries of a front may be zeros that are there for its shape alone
_FEW = 8  # zeros that are always allowed


class Fronts(NamedTuple):
    """Which states are eliminated together; states are numbered in the order of their elimination."""

    first: Any  # int64 [n+1]   first pivot of each front
    of: Any  # int64 [S]        the front of each state
    parent: Any  # int64 [n]    the front of the first state of the border; −1: there is no border
    border_ptr: Any  # int64 [n+1]
    value_ptr: Any  # int64 [n+1]


class Size(NamedTuple):
    """How large factors are, and what they cost."""

    fronts: int
    values: float  # numbers of both factors
    listed: float  # states in all borders
    waiting: float  # numbers on the stack, at most
    widest: int  # states in a front, at most
    products: float


class Factors(NamedTuple):
    """The factors. A front has w rows of length w + b, upper factor and multipliers of its pivots, and b rows of multipliers."""

    fronts: Fronts
    border: Any  # int32 [listed], sorted in each front
    value: Any  # float64 [values]   −U, and the multipliers
    pivot: Any  # float64 [S]
    row_sum: Any  # float64 [S]      σ of the rows of U: what elimination makes of that of the matrix


@allocating
def gather_fronts(parent, length):
    """Return fronts and their size, given the elimination tree in postorder and the length of each row of the upper factor."""
    S = parent.size
    first, of = np.empty(S + 1, np.int64), np.empty(S, np.int64)
    n, padding = 0, 0
    for k in range(S):
        w = k - first[n - 1] if n > 0 else 0
        padding += w * (length[k] - length[k - 1] + 1) if k > 0 else 0
        entries = (w + 1) * (length[k] + w / 2)
        if k == 0 or parent[k - 1] != k or padding > max(_PADDING * entries, _FEW):
            first[n], padding = k, 0
            n += 1
        of[k] = n - 1
    first[n] = S
    first, up = first[: n + 1].copy(), np.full(n, -1)
    border_ptr, value_ptr, left = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    stack, waiting, most, products = 0, 0, 0, 0.0
    for j in range(n):
        w, b, last = first[j + 1] - first[j], length[first[j + 1] - 1] - 1, first[j + 1] - 1
        border_ptr[j + 1], value_ptr[j + 1] = border_ptr[j] + b, value_ptr[j] + w * (w + 2 * b)
        for p in range(w):
            products += np.float64(w + b - p) * (w + b - p)
        stack += b * b - left[j]
        waiting, most = max(waiting, stack), max(most, w + b)
        if b > 0:
            up[j] = of[parent[last]]
            left[up[j]] += b * b
    size = Size(n, np.float64(value_ptr[n]), np.float64(border_ptr[n]), np.float64(waiting), most, products)
    return Fronts(first, of, up, border_ptr, value_ptr), size


@allocating
def borders(ptr, near, order, rank, fronts):
    """Return the states of all borders: k belongs to those on the paths up the tree from the neighbours that are eliminated before it."""
    of, parent, at = fronts.of, fronts.parent, fronts.border_ptr[:-1].copy()
    border, seen = np.empty(fronts.border_ptr[-1], np.int32), np.full(parent.size, -1)
    for k in range(order.size):  # in this order, so that borders are sorted
        s = order[k]
        seen[of[k]] = k
        for e in range(ptr[s], ptr[s + 1]):
            if rank[near[e]] < k:
                j = of[rank[near[e]]]
                while seen[j] != k:
                    seen[j] = k
                    border[at[j]] = k
                    at[j] += 1
                    j = parent[j]
    return border


@allocating
def columns_below(chain, horizon, rank, fronts):
    """Return, compressed by columns, the entries of Q whose column is eliminated in an earlier front than their row: (ptr, row, value)."""
    S, gamma, first, of = rank.size, 1.0 - 1.0 / horizon, fronts.first, fronts.of
    ptr = np.zeros(S + 1, np.int64)
    for s in range(S):
        begin = first[of[rank[s]]]
        for j in range(chain.ptr[s], chain.ptr[s + 1]):
            c = rank[chain.succ[j]]
            ptr[c + 1] += c < begin
    for k in range(S):
        ptr[k + 1] += ptr[k]
    at, row, value = ptr[:-1].copy(), np.empty(ptr[S], np.int32), np.empty(ptr[S])
    for s in range(S):
        k, weight = rank[s], 1.0 if chain.cut[s] else gamma
        begin = first[of[k]]
        for j in range(chain.ptr[s], chain.ptr[s + 1]):
            c = rank[chain.succ[j]]
            if c < begin:
                row[at[c]], value[at[c]] = k, weight * chain.prob[j]
                at[c] += 1
    return ptr, row, value


class Room(NamedTuple):
    """What a factorisation works in."""

    front: Any  # float64 [widest²]  the front that is eliminated, by rows
    stack: Any  # float64 [waiting]  what fronts have left for their parents
    waiting: Any  # int64 [fronts]   those fronts
    place: Any  # int64 [S]          of each state in the front
    to: Any  # uint64 [widest]       of the states of a child


def new_room(S: int, size: Size) -> Room:
    """Allocate for factors of that size."""
    n = int(size.widest)
    place, to = np.empty(S, dtype=np.int64), np.empty(n, dtype=np.uint64)
    return Room(np.empty(n * n), np.empty(int(size.waiting)), np.empty(size.fronts, dtype=np.int64), place, to)


class EliminationProgress(NamedTuple):
    """Where a factorisation stands between two calls."""

    front: int  # that comes next; −1: a pivot is 0
    row: int  # of it that comes next
    depth: int  # fronts that wait
    top: int  # of the stack


@kernel
def eliminate(chain, horizon, tree, below, f, room, progress, budget):
    """Fill in the values of the factors f, until about so many multiplications were done. ``below`` is from :func:`columns_below`.

    On the first call ``row_sum`` holds σ of the rows of the matrix.
    """
    parent, first, border_ptr, border = f.fronts.parent, f.fronts.first, f.fronts.border_ptr, f.border
    front, stack, waiting = room.front, room.stack, room.waiting
    j, at, depth, top = progress
    left = budget
    while j < parent.size and left > 0.0:
        begin, b0 = first[j], border_ptr[j]
        w, b = first[j + 1] - begin, border_ptr[j + 1] - b0
        n = w + b
        if at == 0:
            assemble(chain, horizon, tree, below, border, begin, w, b0, n, front, room.place)
            while depth > 0 and parent[waiting[depth - 1]] == j:
                depth -= 1
                child = waiting[depth]
                ends = border_ptr[child], border_ptr[child + 1]
                top = add_child(border, *ends, room.place, room.to, stack, top, front, n)
        at, left = reduce(front, w, n, begin, border, b0, f.pivot, f.row_sum, at, left)
        if at < 0:
            return EliminationProgress(-1, 0, depth, top)
        if at == n:
            top = keep(front, w, n, f.value, f.fronts.value_ptr[j], stack, top)
            if b > 0:
                waiting[depth] = j
                depth += 1
            j, at = j + 1, 0
    return EliminationProgress(j, at, depth, top)


@kernel
def assemble(chain, horizon, tree, below, border, begin, w, b0, n, front, place):
    """Begin a front of n states with the rows and columns of the matrix that belong to its w pivots; note the ``place`` of each state."""
    ptr, row, value = below
    gamma = 1.0 - 1.0 / horizon
    for e in range(n * n):
        front[e] = 0.0
    for i in range(w):
        place[begin + i] = i
    for i in range(w, n):
        place[border[b0 + i - w]] = i
    for i in range(w):
        s = tree.order[begin + i]
        weight = 1.0 if chain.cut[s] else gamma
        for e in range(chain.ptr[s], chain.ptr[s + 1]):
            c = tree.rank[chain.succ[e]]
            if c >= begin:
                front[i * n + place[c]] += weight * chain.prob[e]
        for e in range(ptr[begin + i], ptr[begin + i + 1]):
            front[place[row[e]] * n + i] += value[e]


@kernel
def add_child(border, begin, end, place, to, stack, top, front, n):
    """Add what a child with that border left on top of the stack; return what the top is then."""
    m = end - begin
    for i in range(m):
        to[i] = place[border[begin + i]]
    top -= m * m
    for i in range(m):
        u, u0 = to[i] * np.uint64(n), np.uint64(top + i * m)
        for j in range(m):
            front[u + to[j]] += stack[u0 + np.uint64(j)]
    return top


@kernel
def reduce(front, w, n, begin, border, b0, pivot, row_sum, i, left):
    """Eliminate the w pivots of a front from its n rows, four at a time: from row i on, until about so many multiplications were done.

    Returns (row that comes next, multiplications left); −1 where a pivot is 0. Left of the pivots then stand the multipliers, and on the
    diagonal nothing of interest. The first pivot is the state ``begin``, and the border stands from ``b0`` on.
    """
    while i < n and left > 0.0:
        left -= np.float64(min(i, w) + 1) * n
        k = begin + i if i < w else border[b0 + i - w]
        at, done, total, p = i * n, min(i, w), row_sum[k], 0
        while p + 4 <= done:
            p0, q = p * n, begin + p
            p1, p2, p3 = p0 + n, p0 + 2 * n, p0 + 3 * n
            a0 = front[at + p] / pivot[q]
            a1 = (front[at + p + 1] + a0 * front[p0 + p + 1]) / pivot[q + 1]
            a2 = (front[at + p + 2] + a0 * front[p0 + p + 2] + a1 * front[p1 + p + 2]) / pivot[q + 2]
            a3 = front[at + p + 3] + a0 * front[p0 + p + 3] + a1 * front[p1 + p + 3]
            a3 = (a3 + a2 * front[p2 + p + 3]) / pivot[q + 3]
            front[at + p], front[at + p + 1], front[at + p + 2], front[at + p + 3] = a0, a1, a2, a3
            p += 4
            if a0 + a1 + a2 + a3 > 0.0:
                total += a0 * row_sum[q] + a1 * row_sum[q + 1] + a2 * row_sum[q + 2] + a3 * row_sum[q + 3]
                u, u0, u1, u2, u3 = np.uint64(at), np.uint64(p0), np.uint64(p1), np.uint64(p2), np.uint64(p3)
                for e in range(p, n):
                    x = np.uint64(e)
                    front[u + x] += a0 * front[u0 + x] + a1 * front[u1 + x] + a2 * front[u2 + x] + a3 * front[u3 + x]
        while p < done:
            p0, a0 = p * n, front[at + p] / pivot[begin + p]
            front[at + p] = a0
            total += a0 * row_sum[begin + p]
            p += 1
            if a0 > 0.0:
                u, u0 = np.uint64(at), np.uint64(p0)
                for e in range(p, n):
                    front[u + np.uint64(e)] += a0 * front[u0 + np.uint64(e)]
        row_sum[k] = total
        if i < w:
            u = np.uint64(at)
            for e in range(i + 1, n):
                total += front[u + np.uint64(e)]
            pivot[k] = total
            if not total > 0.0:
                return -1, left
        i += 1
    return i, left


@kernel
def keep(front, w, n, value, at, stack, top):
    """Write the rows and columns of the pivots to the factors, and the rest to the stack; return what its top is then."""
    u = np.uint64(at)
    for e in range(w * n):
        value[u + np.uint64(e)] = front[e]
    for i in range(w, n):
        u, u0, u1 = np.uint64(at + i * w + w * (n - w)), np.uint64(i * n), np.uint64(top)
        for j in range(w):
            value[u + np.uint64(j)] = front[u0 + np.uint64(j)]
        for j in range(w, n):
            stack[u1 + np.uint64(j - w)] = front[u0 + np.uint64(j)]
        top += n - w
    return top


@kernel
def substitute(f, order, b, y, x):
    """Solve for x but for a constant, both of them in the order of the states; y is the same in the order of elimination.

    A constant that a long horizon adds to every value would cost digits. The matrix makes σ of the constant 1, so U makes ``row_sum`` of
    it: what the last state would have is subtracted before it is ever added.
    """
    first, _, _, border_ptr, value_ptr = f.fronts
    S, border, value = order.size, f.border, f.value
    for k in range(S):
        y[k] = b[order[k]]
    for front in range(first.size - 1):
        begin, end, b0, b1 = first[front], first[front + 1], border_ptr[front], border_ptr[front + 1]
        w, at = end - begin, value_ptr[front]
        for k in range(begin, end):
            total = y[k]
            for j in range(k - begin):
                total += value[at + j] * y[begin + j]
            y[k] = total
            at += w + b1 - b0
        for e in range(b0, b1):
            total = y[border[e]]
            for j in range(w):
                total += value[at + j] * y[begin + j]
            y[border[e]] = total
            at += w
    constant = y[S - 1] / f.row_sum[S - 1]
    for front in range(first.size - 2, -1, -1):
        begin, end, b0, b1 = first[front], first[front + 1], border_ptr[front], border_ptr[front + 1]
        w = end - begin
        n = w + b1 - b0
        for k in range(end - 1, begin - 1, -1):
            total, at = y[k] - constant * f.row_sum[k], value_ptr[front] + (k - begin) * n
            for j in range(k - begin + 1, w):
                total += value[at + j] * y[begin + j]
            at += w - b0
            for e in range(b0, b1):
                total += value[at + e] * y[border[e]]
            y[k] = x[order[k]] = total / f.pivot[k]
