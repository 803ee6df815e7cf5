"""Evaluate a frozen policy d as if it were played for a geometric time of mean H: x = (I − γP_d)⁻¹(F_d v − v), γ = 1 − 1/H.

v + x is what H sweeps over d would make of v, for the price of one linear system (λ-policy iteration, Bertsekas & Ioffe 1996). H = 1 is
value iteration and H = ∞ policy iteration, but a finite H has an answer for every policy: several recurrent classes, a period, or
states that take 3²⁰⁰⁰ steps to leave do no harm, as no value grows beyond H times the rewards.

*Truncated states.* With a span bound c, F_d v(s) = F_d v(s₀) + c in them, s₀ the lowest state. Subtracting the equation of s₀ leaves
x(s) − x(s₀) = c + v(s₀) − v(s): a row with one entry besides the diagonal. All rows make an M-matrix.

*Two ways to solve it.* BiCGSTAB (:mod:`spanrl.kernels.krylov`) where it takes few iterations; and sparse factors
(:mod:`spanrl.planning.factors`) in an order by nested dissection (:mod:`spanrl.kernels.dissection`), whose cost is counted beforehand.
Which one is the cheaper is predicted in nanoseconds from the last iteration count and the size of the factors; when BiCGSTAB has cost as
much as the factors would, they take over. Costs are counted, not measured, so that results do not depend on the machine's mood.
"""

from __future__ import annotations

from math import inf, isnan, sqrt
from typing import Any

import numpy as np

from spanrl.kernels.dissection import count_factors, dissect, neighbours, new_tree
from spanrl.kernels.krylov import System, iterate, new_system, remainder, start
from spanrl.kernels.policies import Chain
from spanrl.planning.factors import Solver, cost, factors_of
from spanrl.planning.problem import Vector

ENTRY_BYTES = 16
"""Memory of an entry of the factors: a number, its row, and what the factorisation needs besides."""

# Nanoseconds, measured on one machine; the ratios are what matters.
_KRYLOV_CALL, _KRYLOV_ENTRY, _KRYLOV_STATE = 1e5, 3.6, 8.0  # one iteration: two passes over the rows, and the vectors
_ORDER_ENTRY, _ORDER_STATE = 80.0, 150.0  # neighbours, dissection, count
_COUNT_ENTRY, _COUNT_STATE = 20.0, 40.0  # neighbours and count, where there is an order
_AGAIN_ENTRY, _AGAIN_STATE = 3.0, 10.0  # another right-hand side
_CALL = 5e7  # a kernel call: Ctrl-C is seen in between

_SMALLEST_PART, _SMALLEST_GOAL = 1e-8, 1e-14  # of the residual, and of that of the preconditioned system
_LARGER = 3.0  # the largest residual may be so many times as large as asked for
_PARTIAL = 0.3  # a residual that is good enough where nothing better is to be had
_MOST_ITERATIONS = 3000
_NEARLY_CONSTANT = 1e-2  # part of x that is not a constant
_STILL_GOOD = 1.2  # times the entries of the last factors, for which an order is kept
_TRIAL = 0.15  # of the cost of the factors: what BiCGSTAB may take where it seems to be the worse way
_PATIENCE = 4.0  # times the predicted iterations, before the factors are looked at


class Resolvent:
    """The linear systems of one solve. What was learnt about one policy predicts the cost of the next."""

    def __init__(self, memory: float) -> None:
        """Allow the factors so many bytes."""
        self._most_entries = memory / ENTRY_BYTES / 2
        self._order, self._entries = np.empty(0, dtype=np.int64), 0.0  # of one factor, 0: there is no order yet
        self._near: tuple[Any, Any]  # the neighbours of each state of that policy
        self._tree, self._products = new_tree(0), 0.0
        self._iterations = 0.0  # of the last system; 0: none yet
        self._factor_cost: float | None = None  # of the last policy looked at; infinite: too large
        self._trusts_krylov = True
        self._system: System | None = None
        self._factors: Solver | None = None  # of the last system, where it was solved by them
        self.factor_size = 0
        """Entries of the largest factors that were made."""
        self.iterations = 0
        """Iterations of BiCGSTAB in all."""
        self.last_way = ""
        """"krylov" or "factors": how the last system was solved."""

    def cost(self, chain: Chain, horizon: float, slowness: float) -> float:
        """Predict the nanoseconds of the next :meth:`solve`, on a chain that takes ``slowness`` sweeps for a factor of e."""
        krylov = _KRYLOV_CALL + self._predicted(horizon, slowness) * _iteration_cost(chain)
        factors = self._looking_cost(chain) if self._factor_cost is None else self._factor_cost
        return factors if not self._trusts_krylov else krylov if self._factor_cost is None else min(krylov, factors)

    def forget(self) -> None:
        """Note that the next policy is another one than the last."""
        self._factors = None

    def solve_again(self, d: Vector) -> tuple[Vector, float] | None:
        """Return x for the same policy and another d, by the factors of the last system, and what it cost; None where it had none."""
        if self._factors is None:
            return None
        return self._by_factors(self._factors, d), _AGAIN_ENTRY * self._factors.nnz + _AGAIN_STATE * d.size

    def solve(
        self, chain: Chain, horizon: float, d: Vector, slowness: float, part: float
    ) -> tuple[Vector | None, float]:
        """Return x up to a constant, or None where neither way got there, and what it cost in nanoseconds.

        BiCGSTAB may leave a ``part`` of the residual; it is not asked for more than rounding allows.
        """
        part = max(part, _SMALLEST_PART)
        self._factors = None
        spent, one = 0.0, _iteration_cost(chain)
        looking = self._looking_cost(chain)
        predicted = self._predicted(horizon, slowness)
        if self._factor_cost == inf:
            budget = _MOST_ITERATIONS
        elif self._trusts_krylov and self._factor_cost is None and predicted * one < looking:
            budget = int(max(_PATIENCE * predicted, looking / one))
        else:
            spent += looking
            self._factor_cost = self._look(chain)
            self._trusts_krylov = self._trusts_krylov or self._factor_cost == inf
            share = 0.0 if not self._trusts_krylov else _TRIAL if self._factor_cost < predicted * one else 1.0
            budget = int(min(share * self._factor_cost / one, _MOST_ITERATIONS))
        if budget:
            x, n, left = self._iterate(chain, horizon, d, part, budget)
            spent += _KRYLOV_CALL + n * one
            if left <= part:
                return x, spent
            if self._factor_cost is None:
                spent += looking
                self._factor_cost = self._look(chain)
            if self._factor_cost == inf:  # nothing else is to be had
                if left > _PARTIAL and budget < _MOST_ITERATIONS:
                    x, n, left = self._iterate(chain, horizon, d, part, _MOST_ITERATIONS)
                    spent += n * one
                return (x if left <= _PARTIAL else None), spent
            self._trusts_krylov = False
        assert self._factor_cost is not None
        return self._factorise(chain, horizon, d), spent + self._factor_cost

    def distrust(self) -> bool:
        """Note that the last solution was no good; return whether the next one will be found in another way."""
        if self.last_way != "krylov" or not self._trusts_krylov or self._factor_cost == inf:
            return False
        self._trusts_krylov = False
        return True

    def _predicted(self, horizon: float, slowness: float) -> float:
        """Return the iterations of the next system: half as many again as the last one took, or a guess from the speed of sweeps."""
        return 1.5 * self._iterations if self._iterations else 4 + 4 * sqrt(min(horizon, slowness))

    def _iterate(self, chain: Chain, horizon: float, d: Vector, part: float, budget: int) -> tuple[Vector, int, float]:
        """Iterate from 0; return (x, iterations, what is left of the residual)."""
        if self._system is None or self._system.succ is not chain.succ:
            self._system = new_system(chain.ptr, chain.succ, chain.prob)
        system = self._system
        progress, chunk = start(system, chain, horizon, d), max(1, int(_CALL / _iteration_cost(chain)))
        goal, left = part, 1.0
        while progress.n < budget and left > part and goal > _SMALLEST_GOAL:
            before = progress.n
            progress = iterate(system, progress, goal, min(chunk, budget - before))
            reached = progress.norm <= goal * goal * progress.first
            if reached:
                left = float(remainder(system, chain, horizon, d)) / _LARGER
                goal *= min(max(part / left, _SMALLEST_PART), 1.0) / 2 if left > 0.0 else 1.0
            elif progress.n == before or isnan(progress.norm):
                break
        self.last_way = "krylov"
        self.iterations += progress.n
        self._iterations = float(progress.n)
        return system.x, progress.n, inf if isnan(left) or isnan(progress.norm) else left

    def _looking_cost(self, chain: Chain) -> float:
        entry, state = (_COUNT_ENTRY, _COUNT_STATE) if self._entries else (_ORDER_ENTRY, _ORDER_STATE)
        return float(entry * chain.ptr[-1] + state * chain.out.size)

    def _look(self, chain: Chain) -> float:
        """Order the states for elimination; return the nanoseconds of a factorisation, infinite where the factors are too large.

        The order of the last policy is kept where it serves this one, too.
        """
        self._near = ptr, near = neighbours(chain.ptr, chain.succ)
        most = min(_STILL_GOOD * self._entries, self._most_entries)
        entries, products = count_factors(ptr, near, self._order, most, self._tree) if self._entries else (inf, inf)
        if entries == inf:
            self._order, self._tree = np.empty(ptr.size - 1, dtype=np.int64), new_tree(ptr.size - 1)
            if not dissect(ptr, near, self._most_entries, self._order):
                self._entries = 0.0
                return inf
            entries, products = count_factors(ptr, near, self._order, self._most_entries, self._tree)
            self._entries = entries if entries < inf else 0.0
        self._products = products
        return cost(self._order.size, entries, products)

    def _factorise(self, chain: Chain, horizon: float, d: Vector) -> Vector | None:
        self._factors = factors_of(chain, horizon, self._order, self._near, self._tree, self._products)
        if self._factors is None:
            return None
        self.last_way = "factors"
        self.factor_size = max(self.factor_size, self._factors.nnz)
        self._horizon, self._one = horizon, 1.0 - chain.cut
        return self._by_factors(self._factors, d)

    def _by_factors(self, factors: Solver, d: Vector) -> Vector:
        """Solve for x; where it is nearly a constant, which is of no interest, do so without this constant, which costs digits."""
        x = factors.solve(d)
        low, high = x.min(), x.max()
        if high - low < _NEARLY_CONSTANT * max(high, -low):
            x = factors.solve(d - (low + high) / 2 / self._horizon * self._one)
        return x


def _iteration_cost(chain: Chain) -> float:
    return float(_KRYLOV_ENTRY * chain.ptr[-1] + _KRYLOV_STATE * chain.out.size)
