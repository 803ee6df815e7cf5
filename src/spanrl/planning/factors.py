"""Sparse LU factors of the equations of a policy: our own where they are thin, SuperLU's where dense blocks are worth a library.

Our own (:mod:`spanrl.kernels.factors`) touch every entry once and lose no digits. SuperLU needs some hundred nanoseconds for each entry,
but multiplies blocks ten times faster. What each would take follows from the counts of :mod:`spanrl.kernels.dissection`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spanrl.kernels.dissection import Tree, columns
from spanrl.kernels.factors import Factors, eliminate, pattern, substitute
from spanrl.kernels.policies import Chain
from spanrl.planning.problem import Vector

Order = NDArray[np.int64]

# Nanoseconds, measured on one machine; the ratios are what matters.
_OWN_CALL, _OWN_ENTRY, _OWN_STATE, _OWN_PRODUCT = 1e5, 18.0, 40.0, 1.0
_LIBRARY_CALL, _LIBRARY_ENTRY, _LIBRARY_STATE, _LIBRARY_PRODUCT = 3e5, 60.0, 300.0, 0.1

# Bytes per entry of one factor, for both of them: numbers and places, and SuperLU's room to work.
_OWN_BYTES, _LIBRARY_BYTES = 24.0, 32.0


class Solver(Protocol):
    """Factors of one matrix."""

    nnz: int

    def solve(self, b: Vector) -> Vector:
        """Return the solution for a right-hand side, but for a constant."""


def cost(S: int, entries: float, products: float) -> float:
    """Return the nanoseconds of a factorisation in the better way."""
    return min(_own_cost(S, entries, products), _library_cost(S, entries, products))


def n_bytes(S: int, entries: float, products: float) -> float:
    """Return what the factors take, made in the better way."""
    return entries * (_OWN_BYTES if _is_own(S, entries, products) else _LIBRARY_BYTES)


def most_entries(memory: float) -> float:
    """Return how many entries a factor may have at most to fit in so many bytes."""
    return memory / _OWN_BYTES


def most_products(nanoseconds: float) -> float:
    """Return how many multiplications may be done in that time."""
    return nanoseconds / min(_OWN_PRODUCT, _LIBRARY_PRODUCT)


def factors_of(
    chain: Chain, horizon: float, order: Order, near: tuple[Any, Any], tree: Tree, products: float
) -> Solver | None:
    """Factorise the equations of a policy with a horizon; None where they are singular to working precision."""
    S, entries = order.size, float(tree.length.sum())
    if not _is_own(S, entries, products):
        factors = superlu(*columns(chain, horizon, order, *near))
        return None if factors is None else _Library(factors, order, (1.0 - chain.cut) / horizon)
    up_ptr, up, down_ptr, down = pattern(*near, order, tree)
    own = Factors(up_ptr, up, np.empty(up.size), down_ptr, down, np.empty(up.size), *np.empty((2, S)))
    alike, x = np.empty(S, dtype=np.int64), np.zeros(S)
    return _Own(own, order) if eliminate(chain, horizon, order, tree.rank, alike, x, own) else None


class _Own:
    def __init__(self, factors: Factors, order: Order) -> None:
        self._factors, self._order = factors, order
        self.nnz = 2 * factors.up.size + order.size

    def solve(self, b: Vector) -> Vector:
        x = np.empty_like(b)
        substitute(self._factors, self._order, b, np.empty_like(b), x)
        return x


class _Library:
    def __init__(self, factors: Any, order: Order, row_sum: Vector) -> None:
        self._factors, self._order, self._row_sum, self.nnz = factors, order, row_sum, int(factors.nnz)

    def solve(self, b: Vector) -> Vector:
        first = self._solve(b)  # of which a large constant is taken off before it costs digits
        return self._solve(b - (first.min() / 2 + first.max() / 2) * self._row_sum)

    def _solve(self, b: Vector) -> Vector:
        x = np.empty_like(b)
        x[self._order] = self._factors.solve(b[self._order])
        return x


def superlu(ptr: NDArray[np.int32], row: NDArray[np.int32], value: Vector) -> Any:
    """Return the LU factors of an M-matrix, in the order it comes in and with pivots on the diagonal; None where it is singular.

    It is given by sorted columns, and its pattern must be symmetric (some values may be 0).
    """
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    S = ptr.size - 1
    matrix = csc_array((value, row, ptr), shape=(S, S))
    matrix.has_canonical_format = True
    try:
        return splu(matrix, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:
        return None


def _is_own(S: int, entries: float, products: float) -> bool:
    return _own_cost(S, entries, products) <= _library_cost(S, entries, products)


def _own_cost(S: int, entries: float, products: float) -> float:
    return _OWN_CALL + _OWN_STATE * S + _OWN_ENTRY * entries + _OWN_PRODUCT * products


def _library_cost(S: int, entries: float, products: float) -> float:
    return _LIBRARY_CALL + _LIBRARY_STATE * S + _LIBRARY_ENTRY * entries + _LIBRARY_PRODUCT * products
