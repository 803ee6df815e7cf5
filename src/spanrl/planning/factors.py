"""Sparse LU factors of the equations of a policy: what they would cost, counted beforehand, and how to make and use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.kernels.elimination_tree import Tree, count_factors, new_tree
from spanrl.kernels.factors import (
    EliminationProgress,
    Factors,
    Fronts,
    Size,
    borders,
    columns_below,
    eliminate,
    gather_fronts,
    new_room,
    substitute,
)
from spanrl.kernels.policies import Chain
from spanrl.planning import prices
from spanrl.planning.problem import Vector

Graph = tuple[NDArray[np.int64], NDArray[np.uint32]]
"""The neighbours of each state, compressed."""

# Bytes: of a number and a place in a list; per state and per front, for tree, pivots and places; per transition.
_NUMBER, _PLACE = 8.0, 4.0
_STATES, _FRONTS, _ENTRIES = 80.0, 40.0, 12.0

_CALL_PRODUCTS = 5e8  # multiplications of a kernel call: Ctrl-C is seen in between


class Elimination(NamedTuple):
    """In which order the states of a policy are eliminated, what together, and how large the factors will be."""

    graph: Graph
    tree: Tree
    fronts: Fronts
    size: Size

    @property
    def cost(self) -> float:
        """Nanoseconds of the factors."""
        return prices.factors(self.tree.order.size, self.size)

    @property
    def n_bytes(self) -> float:
        """What the factors take, and what is needed to make them."""
        one = self.size
        lists = _STATES * self.tree.order.size + _FRONTS * one.fronts + _ENTRIES * self.graph[1].size / 2
        return float(lists + _PLACE * one.listed + _NUMBER * (one.values + one.waiting + one.widest**2))


def eliminate_in(order: NDArray[np.int64], graph: Graph) -> Elimination:
    """Return how the states of a policy are eliminated in an order, or in one that has the same factors."""
    tree = new_tree(order.size)
    count_factors(*graph, order, tree)
    return Elimination(graph, tree, *gather_fronts(tree.parent, tree.length))


def most_entries(memory: float) -> float:
    """Return how many entries a factor may have at most to fit in so many bytes."""
    return memory / (2 * _NUMBER)


def most_products(nanoseconds: float) -> float:
    """Return how many multiplications may be done in that time."""
    return nanoseconds / prices.PRODUCT


class Solver:
    """The factors of one matrix."""

    def __init__(self, factors: Factors, order: Any) -> None:
        """Keep them, and the order of the states."""
        self._factors, self._order, self.n_states = factors, order, order.size
        self.nnz = factors.value.size + order.size
        """Numbers that are kept."""

    def solve(self, b: Vector) -> Vector:
        """Return the solution for a right-hand side, but for a constant."""
        x = np.empty_like(b)
        substitute(self._factors, self._order, b, np.empty_like(b), x)
        return x


def factorise(
    chain: Chain, horizon: float, plan: Elimination, tell: Callable[[], None] = lambda: None
) -> Solver | None:
    """Factorise the equations of a policy with a horizon; None where they are singular to working precision.

    ``tell`` is called about every 0.1 s.
    """
    tree, fronts, size = plan.tree, plan.fronts, plan.size
    S = tree.order.size
    border = borders(*plan.graph, tree.order, tree.rank, fronts)
    factors = Factors(fronts, border, np.empty(int(size.values)), *np.empty((2, S)))
    factors.row_sum[tree.rank] = (1.0 - chain.cut) / horizon
    below = columns_below(chain, horizon, tree.rank, fronts)
    room, progress = new_room(S, size), EliminationProgress(0, 0, 0, 0)
    while 0 <= progress.front < size.fronts:
        progress = eliminate(chain, horizon, tree, below, factors, room, progress, _CALL_PRODUCTS)
        tell()
    return Solver(factors, tree.order) if progress.front > 0 else None
