"""One block of a Markov chain by a sparse LU factorisation in double precision, or by iteration where the factors would fill up.

Each answer comes with a bound on its error that holds whatever the factorisation did. With A = I − P: residuals give
|g − ĝ| ≤ max|r − ĝ − Aĥ|; and as A without a reference state is an M-matrix, any τ with Aτ ≥ c > 0 elsewhere shows that its inverse is at
most max τ/c, which turns residuals into errors of the solution. Rounding of the residuals themselves is counted; where it is too much,
solutions are refined with residuals in extended precision.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import SpanrlError
from spanrl.kernels.dissection import PATIENCE, dissect, neighbours
from spanrl.kernels.elimination_tree import count_factors, new_tree
from spanrl.planning.blocks import Recurrent, Transient, bound
from spanrl.planning.elimination import Numbers
from spanrl.planning.iterative import leaving_solver, relative_solver
from spanrl.planning.problem import Vector

DIRECT = 2000
"""Up to this many states in a class the linear systems are solved directly; beyond, only where their factors stay small."""

_MOST_ENTRIES = 5e6  # of each triangular factor
_REFINEMENTS = 3
_SHIFT = 1e-15  # ε: as small as rounding, so that nothing slow is slower
_INVERSE_STEPS = 2
_VISITS = 30  # steps from anywhere to a state that is often visited


class Direct:
    """Blocks in double precision, by sparse factors or by iteration; ``refined`` ones in extended precision where there is one."""

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
        order = elimination_order(P)
        return self._recurrent_by_iterations(P, r) if order is None else self._recurrent(P, r, order)

    def transient(self, P: Any, left: Numbers, b: Numbers) -> Transient:
        """Solve x = b + Px for a transient block P that is left with the probabilities ``left``."""
        order = elimination_order(P)
        A = _leaving(P.astype(self._type), left).tocsr()
        matrix = A.astype(np.float64)
        solve = leaving_solver(matrix) if order is None else _by_factors(matrix, order)
        system = _System(A)
        x = self._refine(solve, lambda x: np.asarray(b - system.product(x)), b, always=order is None)
        time = _time(system, solve(np.ones(b.size)), np.ones(b.size, dtype=bool))
        residual = system.largest(b - system.product(x), x) + 2 * system.unit * float(np.abs(b).max())
        return Transient(x, bound(residual * time), time)

    def _recurrent(self, P: Any, r: Numbers, order: NDArray[Any]) -> Recurrent:
        """Solve (I − P)h + g e = r with h = 0 in the last state, and μ(I − P) = 0, by one sparse factorisation.

        I − P is singular, and without a state that is next to never visited it is so to working precision. I − P + ε is an M-matrix whose
        inverse differs from what is wanted by multiples of e and μ, which are known, and by parts ε of the rest, which refinement removes.
        """
        from scipy.sparse import eye_array

        n, last = r.size, order[-1]
        A = _leaving(P.astype(self._type), np.zeros(n)).tocsr()
        matrix = A.astype(np.float64)
        factor = _factor((matrix + _SHIFT * eye_array(n)).tocsr()[order][:, order])
        system, transposed = _System(A), _System(A.T.tocsr())

        def by_factors(b: Vector, trans: str = "N") -> Vector:
            x = np.empty(n)
            x[order] = factor.solve(b[order], trans=trans)
            return x

        visits = np.full(n, 1.0 / n)
        for _ in range(_INVERSE_STEPS):
            visits = by_factors(visits, "T")
            visits /= visits.sum()

        def solve(b: Vector) -> Vector:
            gain = float(visits @ b)
            h = by_factors(b - gain)
            for _ in range(_INVERSE_STEPS):
                h += by_factors(b - gain - matrix @ h)
            h -= h[last]
            h[last] = gain
            return h

        def solve_transposed(b: Vector) -> Vector:
            inflow = b.copy()
            inflow[last] -= b.sum()
            mu = by_factors(inflow, "T")
            return np.asarray(mu + visits * (b[last] - mu.sum()))

        def residual(x: Numbers) -> Numbers:
            h = x.copy()
            h[last] = 0
            return np.asarray(r - x[last] - system.product(h))

        def imbalance(mu: Numbers) -> Numbers:
            out = -transposed.product(mu)
            out[last] = 1 - mu.sum()
            return out

        raw = self._refine(solve, residual, r)
        gain, raw[last] = raw[last], 0
        one = np.zeros(n)
        one[last] = 1.0
        mu = self._refine(solve_transposed, imbalance, one)
        bias = raw - mu[order] @ raw[order]
        error = system.largest(r - gain - system.product(bias), bias)
        error += 4 * system.unit * float(np.abs(r).max() + abs(gain))
        often = int(np.argmax(mu))
        toward = np.zeros(n)
        toward[often] = -1.0
        tau = solve(toward)
        tau[last] = 0.0
        time = _time(system, tau - tau[often], np.arange(n) != often)
        astray = float(np.abs(transposed.product(mu)).sum() + transposed.doubt(mu).sum())
        shift = astray * time * float(np.ptp(bias)) + abs(float(mu.sum() - 1)) * float(np.abs(bias).max())
        return Recurrent(gain, bias, bound(error), bound(2 * error * time + shift), time)

    def _recurrent_by_iterations(self, P: Any, r: Numbers) -> Recurrent:
        """Solve (I − P)h + g e = r, and again for what is left of it; times to a state that is often visited bound the error."""
        A = _leaving(P.astype(self._type), np.zeros(r.size)).tocsr()
        system, solve = _System(A), relative_solver(A.astype(np.float64))

        def relative(b: Numbers) -> tuple[Any, Numbers, float]:
            """Return the gain of the chain that pays b, its relative values, and what is left of the equations at the most."""
            h = np.zeros(b.size, dtype=self._type)
            for _ in range(1 + _REFINEMENTS):
                left = b - system.product(h)
                h += solve((left - (left.min() + left.max()) / 2).astype(np.float64))
            left = b - system.product(h)
            gain = (left.min() + left.max()) / 2
            return gain, h, system.largest(left - gain, h) + 4 * system.unit * float(np.abs(b).max() + abs(gain))

        gain, h, error = relative(r)
        mean, _, off = relative(h)
        often, toward = _often_visited(P), np.zeros(r.size, dtype=self._type)
        toward[often] = -1
        tau = relative(toward)[1]
        time = _time(system, tau - tau[often], np.arange(r.size) != often)
        return Recurrent(gain, h - mean, bound(error), bound(2 * error * time + off), time)

    def _refine(
        self,
        solve: Callable[[Vector], Vector],
        residual: Callable[[Numbers], Numbers],
        b: Numbers,
        *,
        always: bool = False,
    ) -> Numbers:
        """Solve, and correct the solution by its residuals where they are more precise than the factors, or ``always``."""
        x = solve(b.astype(np.float64)).astype(self._type)
        for _ in range(_REFINEMENTS if always or self._type is not np.float64 else 0):
            x = x + solve(residual(x).astype(np.float64))
        return x


class _System:
    """A sparse matrix, products with it in its own precision, and bounds on their rounding."""

    def __init__(self, A: Any) -> None:
        self._A, self.unit = A, float(np.finfo(A.dtype).eps / 2)
        lengths = np.bincount(A.indices), np.diff(A.indptr)  # of the columns, too: this may be the transposed matrix
        self._width = (
            2 * int(max(length.max() for length in lengths)) + 4
        )  # roundings of a product, and of the diagonal

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


def elimination_order(P: Any) -> NDArray[np.int64] | None:
    """Return the order in which to eliminate the states of a chain; None where a large one would fill too much."""
    P = P.tocsr()
    n = P.shape[0]
    order, patience = np.empty(n, dtype=np.int64), inf if n <= DIRECT else PATIENCE
    ptr, near = neighbours(P.indptr.astype(np.int64), P.indices.astype(np.uint32))
    if not dissect(ptr, near, _MOST_ENTRIES, inf, patience, order):
        return None
    entries = count_factors(ptr, near, order, new_tree(n))
    return order if entries <= _MOST_ENTRIES else None


def _often_visited(P: Any) -> int:
    """Return a state that a chain visits often."""
    visits, back = np.full(P.shape[0], 1.0 / P.shape[0]), P.T.tocsr()
    for _ in range(_VISITS):
        visits = (visits + back @ visits) / 2  # also where it is periodic
    return int(np.argmax(visits))


def _leaving(P: Any, left: Vector) -> Any:
    """Return I − P with 1 − p(s, s) summed from what leaves s: exact also where p(s, s) rounds to 1 (the idea of GTH)."""
    from scipy.sparse import diags_array

    others = P - diags_array(P.diagonal())
    return diags_array(others.sum(axis=1) + left) - others


def _by_factors(A: Any, order: NDArray[np.int64]) -> Callable[[Vector], Vector]:
    """Return what solves Ax = b by sparse factors."""
    factor = _factor(A[order][:, order])

    def solve(b: Vector) -> Vector:
        x = np.empty(b.size)
        x[order] = factor.solve(b[order])
        return x

    return solve


def _factor(matrix: Any) -> Any:
    """Return the sparse LU factors of an M-matrix in its order, or say that it is singular to working precision."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    entries, n = matrix.tocoo(), matrix.shape[0]
    row, col = np.concatenate((entries.row, entries.col)), np.concatenate((entries.col, entries.row))
    data = np.concatenate((entries.data, np.zeros(entries.nnz)))
    both = csc_array((data, (row, col)), shape=(n, n))  # zeros make the pattern symmetric
    both.sum_duplicates()
    try:
        return splu(both, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:
        raise SpanrlError(
            f"evaluate: the linear system of a chain of {n} states is singular to working precision: some states are "
            "left with a probability too small to compute with. Drop such transitions."
        ) from None
