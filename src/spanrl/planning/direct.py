"""One block of a Markov chain by a sparse LU factorisation in double precision, or by sweeps where the factors would fill up.

Each answer comes with a bound on its error that holds whatever the factorisation did. With A = I − P: residuals give
|g − ĝ| ≤ max|r − ĝ − Aĥ|; and as A without a reference state is an M-matrix, any τ with Aτ ≥ c > 0 elsewhere shows that its inverse is at
most max τ/c, which turns residuals into errors of the solution. Rounding of the residuals themselves is counted; where it is too much,
solutions are refined with residuals in extended precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import SpanrlError
from spanrl.kernels.chains import solve_transient, stationary_sweeps
from spanrl.kernels.iterate import value_iteration
from spanrl.kernels.layout import PLAIN, Arrays, workspace
from spanrl.models.checks import frozen
from spanrl.planning.banded import band_order
from spanrl.planning.elimination import Numbers
from spanrl.planning.multichain import closed_components
from spanrl.planning.problem import Vector, longest_step

DIRECT = 2000
"""Up to this many states in a class the linear systems are solved directly; beyond, only where their band is narrow."""

_RESIDUAL = 1e-11
_ROUNDING = 1.4e-14  # in units of the vector: below this a residual is noise
_DAMPING = 0.9  # a chain may be periodic
_MAX_SWEEPS = 10**7
_ENTRIES_A_CALL = 2 * 10**7  # a kernel call lasts 0.1 s at the most
_REFINEMENTS = 3
_RARE = 1e-6  # sweeps do not see what happens more rarely


class Recurrent(NamedTuple):
    """Gain and bias of an irreducible chain, bounds on their errors, and the largest expected time to its reference state."""

    gain: Any
    bias: NDArray[Any]
    gain_error: float
    bias_error: float
    time: float


class Transient(NamedTuple):
    """The solution of x = b + Px on transient states, a bound on its error, and the largest expected time until they are left."""

    x: NDArray[Any]
    error: float
    time: float


class Direct:
    """Blocks in double precision, by sparse factorisation or sweeps; ``refined`` ones in extended precision where there is one."""

    def __init__(self, *, refined: bool = False) -> None:
        """Set the precision of solutions and residuals."""
        self._type: Any = np.longdouble if refined else np.float64

    def numbers(self, values: Vector) -> Numbers:
        """Return ``values`` as this way calculates with them."""
        return values.astype(self._type)

    def product(self, M: Any, x: Numbers) -> Numbers:
        """Return Mx of a sparse M."""
        return np.asarray(M.astype(self._type) @ x)

    def recurrent(self, P: Any, r: Numbers) -> Recurrent:
        """Return gain and bias of an irreducible chain."""
        order = self._order(P)
        return _recurrent_sweeps(P, r) if order is None else self._recurrent(P, r, order)

    def transient(self, P: Any, left: Numbers, b: Numbers) -> Transient:
        """Solve x = b + Px for a transient block P that is left with the probabilities ``left``."""
        order = self._order(P)
        if order is None:
            return _transient_sweeps(P, left, b)
        A = _leaving(P.astype(self._type), left).tocsr()
        factor = _factor(A.astype(np.float64)[order][:, order])

        def solve(b: Vector) -> Vector:
            x = np.empty(b.size)
            x[order] = factor.solve(b[order])
            return x

        system = _System(A)
        x = self._refine(solve, lambda x: np.asarray(b - system.product(x)), b)
        time = _time(_System(A), solve(np.ones(b.size)), np.ones(b.size, dtype=bool))
        residual = system.largest(b - system.product(x), x) + 2 * system.unit * float(np.abs(b).max())
        return Transient(x, bound(residual * time), time)

    def _order(self, P: Any) -> NDArray[Any] | None:
        order = elimination_order(P)
        if order is None and self._type is not np.float64:
            raise SpanrlError(
                f"evaluate: a chain of {P.shape[0]} states is too large to refine: its factors would fill up."
            )
        return order

    def _recurrent(self, P: Any, r: Numbers, order: NDArray[Any]) -> Recurrent:
        """Solve (I − P)h + g e = r with h = 0 in the last state, and μ(I − P) = 0, by one sparse factorisation.

        With the columns of I − P but the last, and ones in its place, the solution has g in the last place, and the transposed system
        has μᵀ(I − P) = 0 in all columns but the last, μᵀe = 1.
        """
        from scipy.sparse import csc_array, hstack

        n = r.size
        A = _leaving(P.astype(self._type), np.zeros(n)).tocsr()
        matrix = A.astype(np.float64)[order][:, order].tocsc()
        factor = _factor(hstack((matrix[:, : n - 1], csc_array(np.ones((n, 1))))))
        system, transposed = _System(A), _System(A.T.tocsr())
        last = order[-1]

        def solve(b: Vector) -> Vector:
            x = np.empty(n)
            x[order] = factor.solve(b[order])
            return x

        def residual(x: Numbers) -> Numbers:
            h = x.copy()
            h[last] = 0
            return np.asarray(r - x[last] - system.product(h))

        def imbalance(mu: Numbers) -> Numbers:
            out = -transposed.product(mu)
            out[last] = 1 - mu.sum()
            return out

        def solve_transposed(b: Vector) -> Vector:
            mu = np.empty(n)
            mu[order] = factor.solve(b[order], trans="T")
            return mu

        raw = self._refine(solve, residual, r)
        gain, raw[last] = raw[last], 0
        one = np.zeros(n)
        one[last] = 1.0
        mu = self._refine(solve_transposed, imbalance, one)
        bias = raw - mu[order] @ raw[order]
        error = system.largest(r - gain - system.product(bias), bias) + 4 * system.unit * float(
            np.abs(r).max() + abs(gain)
        )
        often = int(np.argmax(mu))
        toward = np.zeros(n)
        toward[often] = -1.0
        tau = solve(toward)
        tau[last] = 0.0
        time = _time(_System(A), tau - tau[often], np.arange(n) != often)
        astray = float(np.abs(transposed.product(mu)).sum() + transposed.doubt(mu).sum())
        shift = astray * time * float(np.ptp(bias)) + abs(float(mu.sum() - 1)) * float(np.abs(bias).max())
        return Recurrent(gain, bias, bound(error), bound(2 * error * time + shift), time)

    def _refine(self, solve: Callable[[Vector], Vector], residual: Callable[[Numbers], Numbers], b: Numbers) -> Numbers:
        """Solve, and correct the solution by its residuals where they are more precise than the factors."""
        x = solve(b.astype(np.float64)).astype(self._type)
        for _ in range(_REFINEMENTS if self._type is not np.float64 else 0):
            x = x + solve(residual(x).astype(np.float64))
        return x


class _System:
    """A sparse matrix, products with it in its own precision, and bounds on their rounding."""

    def __init__(self, A: Any) -> None:
        self._A, self.unit = A, float(np.finfo(A.dtype).eps / 2)
        self._width = (
            2 * int(np.diff(A.indptr).max()) + 4
        )  # roundings of a product, those of the diagonal of A included

    def product(self, x: Numbers) -> Numbers:
        """Return Ax."""
        return np.asarray(self._A @ x, dtype=self._A.dtype)

    def doubt(self, x: Numbers) -> Numbers:
        """Return by how much each entry of the product may be off."""
        return np.asarray(self.unit * self._width * (abs(self._A) @ np.abs(x)), dtype=self._A.dtype)

    def largest(self, residual: Numbers, x: Numbers) -> float:
        """Return a bound on the true residuals of the system at x, given computed ones."""
        return float((np.abs(residual) + self.doubt(x)).max())


def _time(system: _System, tau: Vector, where: NDArray[np.bool_]) -> float:
    """Return a bound on the largest row sum of the inverse on the states ``where``, given τ whose product should be constant there."""
    rise = (system.product(tau) - system.doubt(tau))[where].min()
    return float(tau.max() / rise) if rise > 0 else inf


def bound(x: Any) -> float:
    """Return x as a float; what is not a number bounds nothing."""
    value = float(x)
    return inf if isnan(value) else value


def _recurrent_sweeps(P: Any, r: Vector) -> Recurrent:
    """Iterate damped relative values and the stationary distribution until both equations hold to 1e-11 of the scale."""
    check_links(P, np.zeros(r.size))
    arrays = _plain(P)
    reward, ws = frozen(r, np.float64), workspace(arrays)
    v, u = np.zeros(r.size), np.empty(r.size)
    tol, a = _RESIDUAL * max(float(np.ptp(r)), 1e-300), _DAMPING * longest_step(arrays)
    for n in _calls(arrays):
        _, lo, hi, _, done, _ = value_iteration(arrays, reward, 1.0, ws, v, u, np.inf, tol, 0.0, 0.0, a, 0, n, np.inf)
        tol = max(tol, _ROUNDING * float(np.abs(v).max()))
        if done:
            break
    else:
        raise _too_slow(r.size)
    transposed = _plain(P.T.tocsr())
    mu, work = np.full(r.size, 1.0 / r.size), np.empty(r.size)
    for n in _calls(arrays):
        if stationary_sweeps(transposed, mu, work, a, _RESIDUAL, n) <= _RESIDUAL:
            return Recurrent((lo + hi) / 2, v - mu @ v, (hi - lo) / 2, 0.0, 0.0)
    raise _too_slow(r.size)


def _transient_sweeps(P: Any, left: Vector, b: Vector) -> Transient:
    check_links(P, left)
    arrays, x = _plain(P.tocsr()), np.zeros(b.size)
    scale = max(float(np.abs(b).max()), 1e-300)
    for n in _calls(arrays):
        if solve_transient(arrays, b, x, n) <= _RESIDUAL * max(scale, float(np.abs(x).max())):
            return Transient(x, 0.0, 0.0)
    raise _too_slow(b.size)


def check_links(P: Any, left: Vector) -> None:
    """Raise where sweeps would not notice what holds a chain together: transitions too rare to move a value."""
    n = P.shape[0]
    P = P.tocsr()
    row, col = np.repeat(np.arange(n), np.diff(P.indptr)), P.indices
    out = np.flatnonzero(left > 0)  # the outside is one more state
    start, end = np.concatenate((row, out)), np.concatenate((col, np.full(out.size, n)))
    common = np.concatenate((P.data, left[out])) >= _RARE
    if closed_components(n + 1, start[common], end[common])[1].size > closed_components(n + 1, start, end)[1].size:
        raise SpanrlError(
            f"evaluate: {n} states of a chain hang together only by transitions with probabilities below {_RARE:g}: too many states "
            "to solve directly, too rare for sweeps to be trusted. Leave such transitions out, or aggregate the states between them."
        )


def elimination_order(P: Any) -> NDArray[Any] | None:
    """Return the order in which to eliminate the states of a small or banded chain; None where that would fill too much."""
    n = P.shape[0]
    if n <= DIRECT:
        return np.arange(n)
    P = P.tocsr()
    return band_order(n, np.repeat(np.arange(n), np.diff(P.indptr)), P.indices)


def _leaving(P: Any, left: Vector) -> Any:
    """Return I − P with 1 − p(s, s) summed from what leaves s: exact also where p(s, s) rounds to 1 (the idea of GTH)."""
    from scipy.sparse import diags_array

    others = P - diags_array(P.diagonal())
    return diags_array(others.sum(axis=1) + left) - others


def _factor(matrix: Any) -> Any:
    """Return the sparse LU factors of a matrix, or say that it is singular to working precision.

    A large one comes in the order of its band; with row pivots its factors stay within three times the band.
    """
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    natural = {"permc_spec": "NATURAL"} if matrix.shape[0] > DIRECT else {}
    try:
        return splu(csc_array(matrix), **natural)
    except RuntimeError:
        raise SpanrlError(
            f"evaluate: the linear system of a chain of {matrix.shape[0]} states is singular to working precision: some states are "
            "left with a probability too small to compute with. Drop such transitions."
        ) from None


def _calls(arrays: Arrays) -> Iterator[int]:
    """Yield the number of sweeps of each kernel call: short calls, until the sweeps are used up."""
    n = max(1, _ENTRIES_A_CALL // max(1, arrays.succ.size))
    return (n for _ in range(-(-_MAX_SWEEPS // n)))


def _too_slow(n: int) -> SpanrlError:
    return SpanrlError(
        f"evaluate: no convergence on {n} states of a chain after {_MAX_SWEEPS:g} sweeps: it mixes too slowly."
    )


def _plain(P: Any) -> Arrays:
    empty = frozen(np.empty(0), np.float64)
    return Arrays(
        PLAIN,
        frozen(np.arange(P.shape[0] + 1), np.int64),
        frozen(P.indptr, np.int64),
        frozen(P.indices, np.uint32),
        frozen(P.data, np.float64),
        empty,
        empty,
        empty,
    )
