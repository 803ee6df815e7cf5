"""IDR(4) for the equations of a frozen policy (Sonneveld & van Gijzen 2008), preconditioned by Gauss–Seidel sweeps to and fro.

The system is (I − Q)x = d with Q(s, ·) = weight(s)·P(s, ·) and weight γ < 1 or, where a state is truncated, 1. Divided by its diagonal it
is (I − L − U)x = b, L and U the parts below and above the diagonal, and the iteration works on

    (I − L)⁻¹(I − L − U)(I − U)⁻¹y = (I − L)⁻¹b,        x = (I − U)⁻¹y.

With t = (I − U)⁻¹y the left-hand side is t + (I − L)⁻¹(y − t): one pass over the rows, backwards through U and forwards through L
(Eisenstat 1981). Constants are nearly solutions, (I − Q)e = (1 − γ)·one with one = 1 or, where truncated, 0; they are of no interest, so
they are taken away: with one·νᵀx added to the left-hand side, ν the mean, x changes by a constant alone, and no eigenvalue is near 0
because of them.

IDR forces the residual into spaces that shrink by four dimensions with every cycle of five iterations. A few slow modes, as a chain of
many parts has them, cost it little, however slow they are; it keeps some twenty vectors and needs no restarts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.jit import kernel

SIDES = 4
"""Vectors of the shadow space; a cycle is one iteration more."""

_SMALLEST = 1e-280  # norms below are noise of numbers that have lost their digits
_ANGLE = 0.7  # least cosine between the residual and its image for which the step along it is the shortest (van Gijzen & Sonneveld 2011)


class System(NamedTuple):
    """The equations of a frozen policy with a horizon, divided by their diagonal, and the vectors of the iteration."""

    middle: Any  # int64 [S]    where the entries of U begin in each row of the chain: those of L stand before them
    scale: Any  # float64 [S]   what makes the rows of the chain those of L and U
    one: Any  # float64 [S]     ``one``, divided by the diagonal
    x: Any  # float64 [S]
    y: Any  # float64 [S]
    b: Any  # float64 [S]       (I − L)⁻¹b
    r: Any  # float64 [S]       the residual
    t: Any  # float64 [S]
    shadow: Any  # float64 [SIDES, S]   random, always the same
    steps: Any  # float64 [SIDES, S]    directions of y
    images: Any  # float64 [SIDES, S]   the left-hand side at each of them
    inner: Any  # float64 [SIDES, SIDES]   shadow·images, lower triangular
    projected: Any  # float64 [SIDES]   shadow·residual
    weights: Any  # float64 [SIDES]     of the older directions in the next one
    along: Any  # float64 [1]           length of the last step along the residual


class KrylovProgress(NamedTuple):
    """Where the iteration stands between two calls."""

    n: int  # iterations so far
    first: float  # norm of the first residual
    norm: float  # norm of the last one


def new_system(chain: Any) -> System:
    """Allocate for chains with as many states as this one."""
    S = chain.out.size
    scale, one, x, y, b, r, t = np.empty((7, S))
    shadow, (steps, images) = np.random.default_rng(0).random((SIDES, S)) - 0.5, np.empty((2, SIDES, S))
    middle, inner, (projected, weights) = np.empty(S, dtype=np.int64), np.empty((SIDES, SIDES)), np.empty((2, SIDES))
    return System(middle, scale, one, x, y, b, r, t, shadow, steps, images, inner, projected, weights, np.empty(1))


@kernel
def backward(chain, system, y, t):
    """Set t = (I − U)⁻¹y; return its mean.

    Each state waits for those after it, most of all for the next one: where rows are sorted that comes last, and its value is taken from
    where it was calculated, not from memory. Queues, planes and rivers are swept up to twice as fast.
    """
    ptr, middle, succ, prob, scale = chain.ptr, system.middle, chain.succ, chain.prob, system.scale
    mean, last, one = 0.0, 0.0, np.uint64(1)
    for k in range(y.size):
        s = y.size - 1 - k
        total, by, j, end = y[s], scale[s], np.uint64(ptr[s + 1]), np.uint64(middle[s])
        while j > end + one:
            j -= one
            total += by * prob[j] * t[succ[j]]
        if j > end:
            j -= one
            if succ[j] == s + 1:
                total += by * prob[j] * last
            else:
                total += by * prob[j] * t[succ[j]]
        t[s] = last = total
        mean += total
    return mean / y.size


@kernel
def forward(chain, system, z):
    """Set z ← (I − L)⁻¹z in place, as :func:`backward` does."""
    ptr, middle, succ, prob, scale = chain.ptr, system.middle, chain.succ, chain.prob, system.scale
    last, one = 0.0, np.uint64(1)
    for s in range(z.size):
        total, by, j, end = z[s], scale[s], np.uint64(ptr[s]), np.uint64(middle[s])
        while j + one < end:
            total += by * prob[j] * z[succ[j]]
            j += one
        if j < end:
            if succ[j] == s - 1:
                total += by * prob[j] * last
            else:
                total += by * prob[j] * z[succ[j]]
        z[s] = last = total


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
    """Return xᵀy. Eight sums at a time, as each addition waits for the one before."""
    a, b, c, d, e, f, g, h, n = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, x.size // 8 * 8
    for s in range(0, n, 8):
        a += x[s] * y[s]
        b += x[s + 1] * y[s + 1]
        c += x[s + 2] * y[s + 2]
        d += x[s + 3] * y[s + 3]
        e += x[s + 4] * y[s + 4]
        f += x[s + 5] * y[s + 5]
        g += x[s + 6] * y[s + 6]
        h += x[s + 7] * y[s + 7]
    for s in range(n, x.size):
        a += x[s] * y[s]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@kernel
def start(chain, system, horizon, d):
    """Set the system up for (I − Q)x = d with γ = 1 − 1/horizon, y = 0; rows of cut states say x(s) − x(s_min) = d(s).

    The rows of the chain are reordered where they must be.
    """
    gamma, ptr, succ, prob, out, cuts = 1.0 - 1.0 / horizon, chain.ptr, chain.succ, chain.prob, chain.out, chain.cut
    for s in range(d.size):
        cut = cuts[s] != 0
        diagonal = 1.0 if cut else 1.0 / horizon + gamma * out[s]
        system.scale[s] = 1.0 if cut else gamma / diagonal
        system.one[s] = 0.0 if cut else 1.0 / diagonal
        system.b[s] = d[s] / diagonal
        system.y[s] = 0.0
        middle = ptr[s]
        for j in range(ptr[s], ptr[s + 1]):  # in place, and most often in order already
            if succ[j] < s:
                succ[j], succ[middle] = succ[middle], succ[j]
                prob[j], prob[middle] = prob[middle], prob[j]
                middle += 1
        system.middle[s] = middle
    forward(chain, system, system.b)
    norm = renew(chain, system)
    return KrylovProgress(0, norm, norm)


@kernel
def renew(chain, system):
    """Begin anew at y, with its true residual: that of the iteration may have drifted from it. Return its norm."""
    b, r = system.b, system.r
    apply(chain, system, system.y, r)
    system.steps[:], system.images[:], system.along[0] = 0.0, 0.0, 1.0
    for i in range(SIDES):
        for k in range(SIDES):
            system.inner[i, k] = 1.0 if i == k else 0.0
    for s in range(b.size):
        r[s] = b[s] - r[s]
    return np.sqrt(dot(r, r))


@kernel
def gather(chain, system):
    """Set x to the solution so far."""
    backward(chain, system, system.y, system.x)


@kernel
def iterate(chain, system, progress, goal, budget):
    """Iterate until the norm of the residual is ``goal`` times the first, or for whole cycles until the budget is spent.

    Where the iteration breaks down the norm is NaN.
    """
    n, first, norm = progress
    most = n + budget
    while n < most and norm > goal * first and norm > _SMALLEST:
        for i in range(SIDES):
            system.projected[i] = dot(system.shadow[i], system.r)
        for k in range(SIDES):
            if norm > goal * first and norm > _SMALLEST:
                norm = step(chain, system, k)
                n += 1
        if norm > goal * first and norm > _SMALLEST:
            norm = shrink(chain, system)
            n += 1
    return KrylovProgress(n, first, norm)


@kernel
def step(chain, system, k):
    """Make the residual orthogonal to one more shadow vector; return its norm.

    Loops have one vector of each kind, so that several of their entries are calculated at a time.
    """
    y, r, shadow, steps, images, inner = system.y, system.r, system.shadow, system.steps, system.images, system.inner
    f, c, along = system.projected, system.weights, system.along[0]
    new, image = steps[k], images[k]
    for i in range(k, SIDES):
        c[i] = f[i]
        for j in range(k, i):
            c[i] -= inner[i, j] * c[j]
        c[i] /= inner[i, i]
    part = c[k]
    for s in range(y.size):
        new[s] = along * (r[s] - part * image[s]) + part * new[s]
    for i in range(k + 1, SIDES):
        part, other, its_image = c[i], steps[i], images[i]
        for s in range(y.size):
            new[s] += part * (other[s] - along * its_image[s])
    apply(chain, system, new, image)
    for i in range(k):  # one after the other: all at once would lose digits where modes are slow
        part, other, its_image = dot(shadow[i], image) / inner[i, i], steps[i], images[i]
        for s in range(y.size):
            image[s] -= part * its_image[s]
            new[s] -= part * other[s]
    for i in range(k, SIDES):
        inner[i, k] = dot(shadow[i], image)
    if not abs(inner[k, k]) > 0.0:
        return np.nan
    length = f[k] / inner[k, k]
    for s in range(y.size):
        y[s] += length * new[s]
        r[s] -= length * image[s]
    for i in range(k + 1, SIDES):
        f[i] -= length * inner[i, k]
    square = dot(r, r)
    return np.sqrt(square) if square < np.inf else np.nan


@kernel
def shrink(chain, system):
    """Go along the residual, into the next smaller space; return the norm of the new one."""
    y, r, image = system.y, system.r, system.x
    apply(chain, system, r, image)
    size, along = np.sqrt(dot(image, image)), dot(image, r)
    if not 0.0 < size < np.inf:
        return np.nan
    cosine, square = abs(along) / (size * np.sqrt(dot(r, r))), 0.0
    length = along / size**2 * (_ANGLE / cosine if 0.0 < cosine < _ANGLE else 1.0)
    system.along[0] = length if length != 0.0 else 1.0
    for s in range(y.size):
        y[s] += length * r[s]
        r[s] -= length * image[s]
        square += r[s] * r[s]
    return np.sqrt(square) if square < np.inf else np.nan


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
