"""BiCGSTAB for the equations of a frozen policy (van der Vorst 1992), preconditioned by a Gauss–Seidel sweep.

The system is (I − Q)x = b with Q(s, ·) = weight(s)·P(s, ·) and weight γ < 1 or, where a state is truncated, 1. Divided by its diagonal it
is (I − Q̂)x = b̂, and with M the lower triangle of I − Q̂, M⁻¹(I − Q̂)x is x less one Gauss–Seidel sweep from x: one pass over the rows.
Constants are nearly solutions, (I − Q)e = (1 − γ)·one with one = 1 or, where truncated, 0; they are of no interest, so they are taken
away: with one·νᵀx added to the left-hand side, ν the mean, x changes by a constant alone, and no eigenvalue is near 0 because of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.jit import kernel

_SMALLEST = 1e-280  # norms below are noise of numbers that have lost their digits


class System(NamedTuple):
    """The equations of a frozen policy with a horizon, divided by their diagonal, and the vectors of the iteration."""

    ptr: Any  # int64 [S+1]
    succ: Any  # uint32 [n]
    prob: Any  # float64 [n]
    scale: Any  # float64 [S]   what the rows of P are multiplied with: weight / diagonal
    one: Any  # float64 [S]     M⁻¹ of ``one``
    x: Any  # float64 [S]       the solution so far
    b: Any  # float64 [S]       right-hand side, then M⁻¹ of it, then the residual
    shadow: Any  # float64 [S]
    p: Any  # float64 [S]
    ap: Any  # float64 [S]
    half: Any  # float64 [S]
    ahalf: Any  # float64 [S]
    swept: Any  # float64 [S]


class Progress(NamedTuple):
    """Where the iteration stands between two calls."""

    n: int  # iterations so far
    first: float  # squared norm of the first residual
    norm: float  # squared norm of the last one
    rho: float


def new_system(ptr: Any, succ: Any, prob: Any) -> System:
    """Allocate the vectors of an iteration over rows that belong to the caller."""
    return System(ptr, succ, prob, *np.empty((10, ptr.size - 1)))


@kernel
def apply(system, x, out):
    """Set out = M⁻¹(I − Q̂ + one·νᵀ)x: x less a Gauss–Seidel sweep from x, and its mean times M⁻¹one."""
    ptr, succ, prob, scale, one, swept = system.ptr, system.succ, system.prob, system.scale, system.one, system.swept
    mean = 0.0
    for s in range(x.size):
        swept[s] = x[s]
        mean += x[s]
    mean /= x.size
    j, step = np.uint64(0), np.uint64(1)
    for s in range(x.size):
        total, end = 0.0, np.uint64(ptr[s + 1])
        while j < end:
            total += prob[j] * swept[succ[j]]
            j += step
        total *= scale[s]
        swept[s] = total
        out[s] = x[s] - total + one[s] * mean


@kernel
def solve_lower(system, b, c):
    """Set b ← M⁻¹b and c ← M⁻¹c in place."""
    ptr, succ, prob, scale = system.ptr, system.succ, system.prob, system.scale
    j, step = np.uint64(0), np.uint64(1)
    for s in range(b.size):
        of_b, of_c, end = 0.0, 0.0, np.uint64(ptr[s + 1])
        while j < end:
            x = succ[j]
            p = prob[j] * np.float64(x < s)  # no branch: it could not be foretold
            of_b += p * b[x]
            of_c += p * c[x]
            j += step
        b[s] += scale[s] * of_b
        c[s] += scale[s] * of_c


@kernel
def dot(x, y):
    """Return xᵀy."""
    total = 0.0
    for s in range(x.size):
        total += x[s] * y[s]
    return total


@kernel
def start(system, chain, horizon, d):
    """Set the system up for (I − Q)x = d with γ = 1 − 1/horizon, x = 0; rows of cut states say x(s) − x(s_min) = d(s)."""
    gamma, out, cuts = 1.0 - 1.0 / horizon, chain.out, chain.cut
    scale, one, b, x = system.scale, system.one, system.b, system.x
    for s in range(d.size):
        cut = cuts[s] != 0
        diagonal = 1.0 if cut else 1.0 / horizon + gamma * out[s]
        scale[s] = 1.0 if cut else gamma / diagonal
        one[s] = 0.0 if cut else 1.0 / diagonal
        b[s] = d[s] / diagonal
        x[s] = 0.0
    solve_lower(system, system.one, system.b)
    shadow, p = system.shadow, system.p
    for s in range(d.size):
        shadow[s] = p[s] = b[s]
    norm = dot(b, b)
    return Progress(0, norm, norm, norm)


@kernel
def iterate(system, progress, reduction, budget):
    """Iterate until the residual is ``reduction`` times the first, the budget is spent, or it breaks down (its norm is then NaN)."""
    n, first, norm, rho = progress
    x, res, shadow, p, ap, half, ahalf = (
        system.x, system.b, system.shadow, system.p, system.ap, system.half, system.ahalf,
    )  # fmt: skip
    most, S = n + budget, x.size
    while n < most and norm > reduction * reduction * first and norm > _SMALLEST:
        n += 1
        apply(system, p, ap)
        against = dot(shadow, ap)
        alpha = rho / against if against != 0.0 else np.nan
        for s in range(S):
            half[s] = res[s] - alpha * ap[s]
        apply(system, half, ahalf)
        square = dot(ahalf, ahalf)
        omega = dot(ahalf, half) / square if square > 0.0 else 0.0
        norm, new_rho = 0.0, 0.0
        for s in range(S):
            x[s] += alpha * p[s] + omega * half[s]
            r = half[s] - omega * ahalf[s]
            res[s] = r
            norm += r * r
            new_rho += r * shadow[s]
        if not norm < np.inf:
            norm = np.nan
            break
        if norm <= _SMALLEST:
            break
        beta = new_rho / rho * alpha / omega if omega != 0.0 and rho != 0.0 else np.nan
        rho = new_rho
        for s in range(S):
            p[s] = res[s] + beta * (p[s] - omega * ap[s])
    return Progress(n, first, norm, rho)


@kernel
def remainder(system, chain, horizon, d):
    """Return the largest residual of the system itself at x, in units of the largest d: that of M⁻¹ times it can be far smaller."""
    ptr, succ, prob, x = system.ptr, system.succ, system.prob, system.x
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
