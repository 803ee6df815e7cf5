"""Sparse LU factors of the equations of a frozen policy, by rows and without a subtraction.

The matrix is I − Q = D − B with B ≥ 0 off the diagonal and known row sums σ ≥ 0: 1/H, or 0 where a state is truncated (see
:mod:`spanrl.kernels.krylov` for Q). Grassmann, Taksar and Heyman (1985) noticed that such matrices can be eliminated by additions of
nonnegative numbers alone: a multiplier f = x(k)/pivot(k) adds f·U(k, ·) to the row and f·σ(k) to its sum, and the pivot is what is left of
the row, σ + ΣU. No digit is lost however slowly the chain mixes: every factor is right to a few units in the last place per step.

U(k, ·) holds the states on which k depends once those before it are gone; the pattern is taken from A + Aᵀ, so that row k of the lower
factor lists the states whose U holds k. Neighbouring rows of U are often the same but for their first entry; four of them are then added at
once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.jit import allocating, kernel


class Factors(NamedTuple):
    """The factors, states in the order of their elimination."""

    up_ptr: Any  # int64 [S+1]
    up: Any  # int32 [n]           columns of U, sorted in each row
    up_value: Any  # float64 [n]   −U
    down_ptr: Any  # int64 [S+1]
    down: Any  # int32 [n]         columns of the lower factor, sorted in each row
    down_value: Any  # float64 [n] the multipliers f
    pivot: Any  # float64 [S]
    row_sum: Any  # float64 [S]    σ of the rows of U: what elimination makes of that of the matrix


@allocating
def pattern(ptr, near, order, tree):
    """Return (up_ptr, up, down_ptr, down): where the factors have entries; ``tree`` is what :func:`count_factors` filled."""
    S, rank, parent = order.size, tree.rank, tree.parent
    up_ptr, down_ptr, seen = np.zeros(S + 1, np.int64), np.zeros(S + 1, np.int64), np.full(S, -1)
    for k in range(S):
        up_ptr[k + 1] = up_ptr[k] + tree.length[k] - 1
    up, down = np.empty(up_ptr[S], np.int32), np.empty(up_ptr[S], np.int32)
    at = up_ptr[:-1].copy()
    for k in range(S):  # in this order, so that rows are sorted
        s, seen[k] = order[k], k
        for e in range(ptr[s], ptr[s + 1]):
            i = rank[near[e]]
            while i < k and seen[i] != k:
                seen[i] = k
                up[at[i]] = k
                at[i] += 1
                down_ptr[k + 1] += 1
                i = parent[i]
    for k in range(S):
        down_ptr[k + 1] += down_ptr[k]
        at[k] = down_ptr[k]
    for k in range(S):
        for e in range(up_ptr[k], up_ptr[k + 1]):
            down[at[up[e]]] = k
            at[up[e]] += 1
    return up_ptr, up, down_ptr, down


@kernel
def eliminate(chain, horizon, order, rank, alike, x, f):
    """Fill in the values of the factors f; return False where a pivot is 0. ``alike`` and ``x`` = 0 are vectors [S]."""
    up_ptr, up, value, row_sum, S, gamma = f.up_ptr, f.up, f.up_value, f.row_sum, order.size, 1.0 - 1.0 / horizon
    _count_alike(up_ptr, up, alike)
    for i in range(S):
        s = order[i]
        weight, total = (1.0, 0.0) if chain.cut[s] else (gamma, 1.0 / horizon)
        for j in range(chain.ptr[s], chain.ptr[s + 1]):
            x[rank[chain.succ[j]]] += weight * chain.prob[j]
        e, end = f.down_ptr[i], f.down_ptr[i + 1]
        while e < end:
            k = f.down[e]
            a0 = x[k] / f.pivot[k]
            x[k], f.down_value[e] = 0.0, a0
            p0, p1 = up_ptr[k], up_ptr[k + 1]
            if alike[k] < 3 or e + 3 >= end or f.down[e + 3] != k + 3:
                e += 1
                if a0 > 0.0:
                    total += a0 * row_sum[k]
                    for j in range(p0, p1):
                        x[up[j]] += a0 * value[j]
                continue
            p2, p3 = up_ptr[k + 2], up_ptr[k + 3]
            a1 = (x[k + 1] + a0 * value[p0]) / f.pivot[k + 1]
            a2 = (x[k + 2] + a0 * value[p0 + 1] + a1 * value[p1]) / f.pivot[k + 2]
            a3 = (x[k + 3] + a0 * value[p0 + 2] + a1 * value[p1 + 1] + a2 * value[p2]) / f.pivot[k + 3]
            x[k + 1], x[k + 2], x[k + 3] = 0.0, 0.0, 0.0
            f.down_value[e + 1], f.down_value[e + 2], f.down_value[e + 3] = a1, a2, a3
            e += 4
            if a0 + a1 + a2 + a3 > 0.0:
                total += a0 * row_sum[k] + a1 * row_sum[k + 1] + a2 * row_sum[k + 2] + a3 * row_sum[k + 3]
                for j in range(up_ptr[k + 4] - p3):
                    x[up[p3 + j]] += (
                        a0 * value[p0 + 3 + j] + a1 * value[p1 + 2 + j] + a2 * value[p2 + 1 + j] + a3 * value[p3 + j]
                    )
        row_sum[i] = total
        for j in range(up_ptr[i], up_ptr[i + 1]):
            value[j] = x[up[j]]
            x[up[j]] = 0.0
            total += value[j]
        x[i], f.pivot[i] = 0.0, total
        if not total > 0.0:
            return False
    return True


@kernel
def _count_alike(up_ptr, up, alike):
    """Count, for each row of U, the rows after it that continue it: each is the one before without its first entry."""
    S = alike.size
    for k in range(S - 1, -1, -1):
        n = up_ptr[k + 1] - up_ptr[k]
        follows = n > 0 and up[up_ptr[k]] == k + 1 and up_ptr[k + 2] - up_ptr[k + 1] == n - 1
        alike[k] = alike[k + 1] + 1 if follows else 0


@kernel
def substitute(f, order, b, y, x):
    """Solve for x but for a constant, both of them in the order of the states; y is the same in the order of elimination.

    A constant that a long horizon adds to every value would cost digits. The matrix makes σ of the constant 1, so U makes ``row_sum`` of
    it: what the last state would have is subtracted before it is ever added.
    """
    S = order.size
    for k in range(S):
        total = b[order[k]]
        for e in range(f.down_ptr[k], f.down_ptr[k + 1]):
            total += f.down_value[e] * y[f.down[e]]
        y[k] = total
    constant = y[S - 1] / f.row_sum[S - 1]
    for k in range(S - 1, -1, -1):
        total = y[k] - constant * f.row_sum[k]
        for e in range(f.up_ptr[k], f.up_ptr[k + 1]):
            total += f.up_value[e] * y[f.up[e]]
        y[k] = x[order[k]] = total / f.pivot[k]
