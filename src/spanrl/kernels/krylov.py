"""GMRES for the equations of a frozen policy (Saad & Schultz 1986), preconditioned by Gauss–Seidel sweeps to and fro.

The system is (I − Q)x = d with Q(s, ·) = weight(s)·P(s, ·) and weight γ < 1 or, where a state is truncated, 1. Divided by its diagonal it
is (I − L − U)x = b, L and U the parts below and above the diagonal, and the iteration works on

    (I − L)⁻¹(I − L − U)(I − U)⁻¹y = (I − L)⁻¹b,        x = (I − U)⁻¹y.

With t = (I − U)⁻¹y the left-hand side is t + (I − L)⁻¹(y − t): one pass over the rows, backwards through U and forwards through L (Eisenstat 1981).
Constants are nearly solutions, (I − Q)e = (1 − γ)·one with one = 1 or, where truncated, 0; they are of no interest, so they are taken
away: with one·νᵀx added to the left-hand side, ν the mean, x changes by a constant alone, and no eigenvalue is near 0 because of them.

GMRES never breaks down, and a few slow modes cost it an iteration or two each, however slow they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.jit import kernel

CYCLE = 30
"""Iterations between two restarts, and vectors that are kept for them."""

_SMALLEST = 1e-280  # norms below are noise of numbers that have lost their digits


class System(NamedTuple):
    """The equations of a frozen policy with a horizon, divided by their diagonal, and the vectors of the iteration."""

    middle: Any  # int64 [S]    where the entries of U begin in each row
    succ: Any  # uint32 [n]     the rows of the chain, those of L first
    value: Any  # float64 [n]   of L and U
    one: Any  # float64 [S]     ``one``, divided by the diagonal
    x: Any  # float64 [S]
    y: Any  # float64 [S]
    b: Any  # float64 [S]       (I − L)⁻¹b
    t: Any  # float64 [S]
    basis: Any  # float64 [CYCLE+1, S]   orthonormal, of the Krylov space
    factor: Any  # float64 [CYCLE, CYCLE+1]   column k of R, transposed
    turn: Any  # float64 [2, CYCLE]   cosines and sines of the rotations that make R triangular
    rest: Any  # float64 [CYCLE+1]   the rotated right-hand side; its last entry is the norm of the residual


class Progress(NamedTuple):
    """Where the iteration stands between two calls."""

    n: int  # iterations so far
    first: float  # norm of the first residual
    norm: float  # norm of the last one
    k: int  # iterations since the last restart


def new_system(chain: Any) -> System:
    """Allocate for chains as large as this one."""
    S, n = chain.out.size, chain.succ.size
    small = np.empty((CYCLE, CYCLE + 1)), np.empty((2, CYCLE)), np.empty(CYCLE + 1)
    rows = np.empty(S, dtype=np.int64), np.empty(n, dtype=np.uint32), np.empty(n)
    return System(*rows, *np.empty((5, S)), np.empty((CYCLE + 1, S)), *small)


@kernel
def backward(chain, system, y, t):
    """Set t = (I − U)⁻¹y; return its mean."""
    ptr, middle, succ, value = chain.ptr, system.middle, system.succ, system.value
    mean, one = 0.0, np.uint64(1)
    for k in range(y.size):
        s = y.size - 1 - k
        total, j, end = y[s], np.uint64(middle[s]), np.uint64(ptr[s + 1])
        while j < end:
            total += value[j] * t[succ[j]]
            j += one
        t[s] = total
        mean += total
    return mean / y.size


@kernel
def forward(chain, system, z):
    """Set z ← (I − L)⁻¹z in place."""
    ptr, middle, succ, value = chain.ptr, system.middle, system.succ, system.value
    one = np.uint64(1)
    for s in range(z.size):
        total, j, end = z[s], np.uint64(ptr[s]), np.uint64(middle[s])
        while j < end:
            total += value[j] * z[succ[j]]
            j += one
        z[s] = total


@kernel
def apply(chain, system, y, out):
    """Set out to the left-hand side at y."""
    t, ones = system.t, system.one
    mean = backward(chain, system, y, t)
    for s in range(y.size):
        out[s] = y[s] - t[s] + ones[s] * mean
    forward(chain, system, out)
    for s in range(y.size):
        out[s] += t[s]


@kernel
def dot(x, y):
    """Return xᵀy. Four sums at a time, as each addition waits for the one before."""
    a, b, c, d, n = 0.0, 0.0, 0.0, 0.0, x.size // 4 * 4
    for s in range(0, n, 4):
        a += x[s] * y[s]
        b += x[s + 1] * y[s + 1]
        c += x[s + 2] * y[s + 2]
        d += x[s + 3] * y[s + 3]
    for s in range(n, x.size):
        a += x[s] * y[s]
    return (a + b) + (c + d)


@kernel
def start(chain, system, horizon, d):
    """Set the system up for (I − Q)x = d with γ = 1 − 1/horizon, y = 0; rows of cut states say x(s) − x(s_min) = d(s)."""
    gamma, ptr, succ, prob, out, cuts = 1.0 - 1.0 / horizon, chain.ptr, chain.succ, chain.prob, chain.out, chain.cut
    for s in range(d.size):
        cut = cuts[s] != 0
        diagonal = 1.0 if cut else 1.0 / horizon + gamma * out[s]
        scale = 1.0 if cut else gamma / diagonal
        system.one[s] = 0.0 if cut else 1.0 / diagonal
        system.b[s] = d[s] / diagonal
        system.y[s] = 0.0
        low, high = ptr[s], ptr[s + 1]
        for j in range(ptr[s], ptr[s + 1]):
            is_low = succ[j] < s
            high -= 1 - is_low
            at = low if is_low else high
            low += is_low
            system.succ[at], system.value[at] = succ[j], scale * prob[j]
        system.middle[s] = low
    forward(chain, system, system.b)
    norm = restart(chain, system)
    return Progress(0, norm, norm, 0)


@kernel
def restart(chain, system):
    """Begin a cycle at y; return the norm of its residual."""
    y, b, first = system.y, system.b, system.basis[0]
    apply(chain, system, y, first)
    for s in range(y.size):
        first[s] = b[s] - first[s]
    norm = np.sqrt(dot(first, first))
    system.rest[0] = norm
    for s in range(y.size):
        first[s] *= 1.0 / norm if norm > _SMALLEST else 0.0
    return norm


@kernel
def gather(chain, system, k):
    """Set x to the solution after k iterations of a cycle."""
    y, basis, factor, rest = system.y, system.basis, system.factor, system.rest
    for i in range(k - 1, -1, -1):
        for j in range(i + 1, k):
            rest[i] -= factor[j, i] * rest[j]
        rest[i] /= factor[i, i]
    for i in range(k):
        for s in range(y.size):
            y[s] += rest[i] * basis[i, s]
    backward(chain, system, y, system.x)


@kernel
def iterate(chain, system, progress, goal, budget):
    """Iterate until the norm of the residual is ``goal`` times the first, or the budget is spent; x is then to be gathered."""
    n, first, norm, k = progress
    basis, factor, turn, rest, most = system.basis, system.factor, system.turn, system.rest, n + budget
    while n < most and norm > goal * first and norm > _SMALLEST:
        if k == CYCLE:
            gather(chain, system, k)
            norm, k = restart(chain, system), 0
        n += 1
        column, new = factor[k], basis[k + 1]
        apply(chain, system, basis[k], new)
        for i in range(k + 1):
            column[i] = part = dot(basis[i], new)
            for s in range(new.size):
                new[s] -= part * basis[i, s]
        size = np.sqrt(dot(new, new))
        if not size < np.inf:
            return Progress(n, first, np.nan, k)
        for s in range(new.size):
            new[s] *= 1.0 / size if size > _SMALLEST else 0.0
        for i in range(k):
            x, y = column[i], column[i + 1]
            column[i], column[i + 1] = turn[0, i] * x + turn[1, i] * y, turn[0, i] * y - turn[1, i] * x
        length = np.hypot(column[k], size)
        if not length > 0.0:  # singular
            return Progress(n, first, np.nan, k)
        turn[0, k], turn[1, k] = column[k] / length, size / length
        column[k] = length
        rest[k], rest[k + 1] = turn[0, k] * rest[k], -turn[1, k] * rest[k]
        k += 1
        norm = abs(rest[k])
    return Progress(n, first, norm, k)


@kernel
def remainder(chain, system, horizon, d):
    """Return the largest residual of the system itself at x, in units of the largest d: the preconditioned one can be far smaller."""
    ptr, succ, prob, x = chain.ptr, chain.succ, chain.prob, system.x
    out, cuts, gamma = chain.out, chain.cut, 1.0 - 1.0 / horizon
    mean, size, largest = 0.0, 0.0, 0.0
    for s in range(d.size):
        mean += x[s]
        size = max(size, abs(d[s]))
    mean /= d.size
    for s in range(d.size):
        total = 0.0
        for j in range(ptr[s], ptr[s + 1]):
            total += prob[j] * x[succ[j]]
        if cuts[s]:
            left = d[s] - x[s] + total
        else:
            left = d[s] - (1.0 / horizon + gamma * out[s]) * x[s] + gamma * total - mean
        largest = max(largest, abs(left))
    return largest / size if size > 0.0 else 0.0
