"""Evaluate a frozen policy d as if it were played for a geometric time of mean H: x = (I − γP_d)⁻¹(F_d v − v), γ = 1 − 1/H.

v + x is what H sweeps over d would make of v, for the price of one linear system (λ-policy iteration, Bertsekas & Ioffe 1996). H = 1 is
value iteration and H = ∞ policy iteration, but a finite H has an answer for every policy: several recurrent classes, a period, or
states that take 3²⁰⁰⁰ steps to leave do no harm, as no value grows beyond H times the rewards.

*Truncated states.* With a span bound c, F_d v(s) = F_d v(s₀) + c in them, s₀ the lowest state. Subtracting the equation of s₀ leaves
x(s) − x(s₀) = c + v(s₀) − v(s): a row with one entry besides the diagonal. All rows make an M-matrix. Who is truncated is found in
:mod:`spanrl.planning.policy_evaluation`.

*Two ways to solve it.* A Krylov method, IDR (:mod:`spanrl.kernels.krylov`), where it takes few iterations; and sparse factors
(:mod:`spanrl.kernels.factors`) in an order by nested dissection (:mod:`spanrl.kernels.dissection`), whose cost is counted beforehand.
Which one is the cheaper is predicted in nanoseconds from the last iteration count and the size of the factors; when iterations have cost as
much as the factors would, these take over. On some hundred states a look at the factors costs no more than two calls, and comes first.
Costs are counted, not measured, so that results do not depend on the machine's mood.

*The horizon* of IDR begins short and grows eightfold from system to system, as long horizons cost iterations. Factors cost the same for
each, so they have the longest at once, where a step cannot do harm: for L and T_c, whose lower end never falls. Nature's minimum keeps the
growing one for both. A solution that did harm makes it 64 times shorter.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isnan, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.kernels.dissection import PATIENCE, dissect, neighbours
from spanrl.kernels.krylov import KrylovProgress, System, gather, iterate, new_system, remainder, renew, start
from spanrl.kernels.policies import Chain
from spanrl.planning import prices
from spanrl.planning.factors import (
    Elimination,
    Graph,
    Solver,
    eliminate_in,
    factorise,
    most_entries,
    most_products,
)
from spanrl.planning.problem import Vector

_FIRST_HORIZON, _LONGEST_HORIZON, _LONGER = 64.0, 1e8, 8.0  # of IDR, of both, and the growth from system to system
_MUCH_LONGER, _MOST_HORIZON = 1e4, 1e15  # where the policy stays the same, and its factors did little
_PART = 0.3  # of the residual that is wanted: what IDR may leave once the policy is settled, …
_ROUGHLY = 3e-3  # … and before, of the residual itself
_SMALLEST_PART, _SMALLEST_GOAL = 1e-8, 1e-14  # of the residual, and of that of the preconditioned system
_LARGER = 10.0  # the largest residual may be so many times as large as asked for: what is asked is the mean
_TRIAL = 0.25  # of the price of looking at the factors: what iterations may cost before
_SLOWLY = 2.0  # residuals fall slowly at first: so many times too much is promised
_SMALL = 2.0  # calls of IDR: where looking costs less, it comes first
_PARTIAL = 0.3  # a residual that is good enough where nothing better is to be had
_MOST_ITERATIONS = 3000
_COUNTED = 16.0  # times the allowed entries: an order is made up to there, so that what its factors need can be said
_MISSED = 10.0  # times the price of factors that are not allowed, …
_SECOND = 1e9  # … and at least: a loss that is worth to be told


class _Run(NamedTuple):
    """How far IDR has come with one system."""

    part: float  # of the residual that may be left
    progress: KrylovProgress
    goal: float  # of the preconditioned system, for that
    left: float = 1.0


class _Order(NamedTuple):
    """In which order the states are eliminated, and for which policies it was made."""

    states: NDArray[np.int64]
    cost: float  # nanoseconds of the factors of the policy that it was made at


class Resolvent:
    """The linear systems of one solve. What was learnt about one policy predicts the cost of the next."""

    def __init__(self, memory: float, *, is_cautious: bool, tell: Callable[[], None] = lambda: None) -> None:
        """Allow the factors so many bytes; a cautious one lets the horizon of factors grow, too. ``tell`` is called about every 0.1 s."""
        self._is_cautious, self._tell = is_cautious, tell
        self._memory = memory
        self._order: _Order | None = None
        self._elimination: Elimination | None = None  # of the last policy looked at
        self._horizon, self._longest = _FIRST_HORIZON, _LONGEST_HORIZON
        self._iterations = 0  # of the last system; 0: none yet
        self._prefers_factors = False  # IDR was no good, or they were made once
        self._factor_cost = None if memory > 0 else inf  # of the last policy looked at; infinite: too large
        self._width, self._part = inf, 1.0  # of the bracket before the last system, and what that might leave of it
        self._system: System | None = None
        self._factors: Solver | None = None  # of the last system, where it was solved by them
        self._has_counted = False
        self._refused: tuple[float, float] | None = None  # the bytes and the price of factors that are not allowed
        self._lost = 0.0  # nanoseconds of IDR beyond that price, system by system
        self.spent = 0.0
        """Nanoseconds that the last system cost, about."""
        self.factor_size = 0
        """Entries of the largest factors that were made."""
        self.iterations = 0
        """Iterations of IDR in all."""

    @property
    def missed_memory(self) -> float:
        """Bytes of factors that were not allowed and would have saved much; 0 where there are none."""
        if self._refused is None or self._lost <= max(_MISSED * self._refused[1], _SECOND):
            return 0.0
        return self._refused[0]

    def cost(self, chain: Chain, slowness: float, *, again: bool) -> float:
        """Predict the nanoseconds of the next system, on a chain that takes ``slowness`` sweeps for a factor of e.

        ``again``: the factors of the last one serve, if there are any.
        """
        if again and self._factors is not None:
            return prices.substitution(self._factors.n_states, self._factors.nnz)
        krylov = self._krylov_cost(chain, slowness)
        if self._factor_cost is None:
            return krylov if krylov < inf else self._counting_cost(chain)
        return min(krylov, self._factor_cost)

    def forget(self) -> None:
        """Note that the next policy is another one than the last."""
        self._factors = None

    def solve_again(self, d: Vector) -> Vector | None:
        """Return x for the same policy and another d, by the factors of the last system; None where it had none."""
        if self._factors is None:
            return None
        self.spent = prices.substitution(self._factors.n_states, self._factors.nnz)
        return self._factors.solve(d)

    def solve(
        self, chain: Chain, d: Vector, slowness: float, width: float, wanted: float, *, is_settled: bool
    ) -> Vector | None:
        """Return x up to a constant, or None where neither way got there.

        The bracket of that ``width`` is to become ``wanted`` times narrower, in one go where the policy ``is_settled``: there IDR has the
        horizon that this takes. What IDR leaves is measured against the bracket where d is larger, as in truncated states that are far off.
        """
        if self._factors is not None:  # of the same policy, and they did little
            self._longest = min(self._longest * _MUCH_LONGER, _MOST_HORIZON)
        else:
            self._longest = min(self._longest * _LONGER, _LONGEST_HORIZON)
        self._factors, self._has_counted, self.spent = None, False, 0.0
        self._horizon = min(self._horizon * _LONGER, self._longest)
        if is_settled:
            self._horizon = min(max(self._horizon, wanted * slowness), self._longest)
        if self._factor_cost is None and self._counting_cost(chain) < _SMALL * prices.KRYLOV_CALL:
            self._count_factors(chain)
        self._width, self._part = width, max(_PART / wanted if is_settled else _ROUGHLY, _SMALLEST_PART)
        krylov = self._krylov_cost(chain, slowness)
        iterates = krylov < inf and krylov <= (inf if self._factor_cost is None else self._factor_cost)
        x = self._by_iterations(chain, d, krylov) if iterates else None
        if x is None:
            x = self._by_new_factors(chain, d)
        if x is None and not iterates and self._factor_cost == inf:  # this policy's are too large
            x = self._by_iterations(chain, d, self._krylov_cost(chain, slowness))
        return x

    def solve_in(self, chain: Chain, d: Vector) -> Vector | None:
        """Return x for the same policy with other states truncated, in the same way and with the same horizon."""
        if self._factors is None:
            return self._by_iterations(chain, d, 0.0)
        self._has_counted, self._factors = False, None
        return self._by_new_factors(chain, d)

    def distrust(self) -> None:
        """Note that the last solution was no good: the next one has a shorter horizon, and factors if they can be had."""
        self._longest = max(self.horizon / _LONGER**2, 2.0)
        self._horizon = min(self._horizon, self._longest)
        self._factors, self._prefers_factors = None, True

    def turn_to_factors(self) -> bool:
        """Note that IDR does not get on; return whether there are factors to be tried instead."""
        turns = self.iterations > 0 and not self._prefers_factors and self._factor_cost != inf
        self._prefers_factors = True
        return turns

    @property
    def horizon(self) -> float:
        """The horizon of the last system."""
        return self._longest if self._factors is not None and not self._is_cautious else self._horizon

    def _krylov_cost(self, chain: Chain, slowness: float) -> float:
        """Predict the cost of IDR: half as many iterations again as the last system took, or a guess from the speed of sweeps.

        Infinite where factors are preferred, unless they are known to be too large.
        """
        if self._prefers_factors and self._factor_cost != inf:
            return inf
        n = 1.5 * self._iterations if self._iterations else 4 + 7 * sqrt(min(self._horizon, slowness))
        return prices.KRYLOV_CALL + n * prices.krylov_iteration(chain)

    def _by_iterations(self, chain: Chain, d: Vector, predicted: float) -> Vector | None:
        """Iterate until as little of the residual is left as is wanted, or until factors are the better way; then return None.

        The factors are looked at when iterations have cost a quarter of what that costs, unless their residual promises that as much
        suffices; they take over where iterations are ``predicted`` to cost more, or when they have cost as much.
        """
        if self._system is None:
            self._system = new_system(chain)
        part = self._part / max(1.0, 2.0 * float(np.abs(d).max()) / self._width)
        run = _Run(part, start(chain, self._system, self._horizon, d), part / 3)
        if self._factor_cost is None:
            counting = self._counting_cost(chain)
            run = self._iterate(chain, d, run, _TRIAL * counting)
            if run.left > part and _promised(chain, run) <= _SLOWLY * counting:
                run = self._iterate(chain, d, run, counting)
            if run.left > part:
                self._count_factors(chain)
        if run.left > part and self._factor_cost is not None and predicted <= self._factor_cost:
            run = self._iterate(chain, d, run, self._factor_cost)
        if run.left > part and self._factor_cost == inf and not isnan(run.progress.norm):  # nothing else is to be had
            gather(chain, self._system)
            run = run._replace(left=float(remainder(chain, self._system, self._horizon, d)))
        n = run.progress.n
        self.iterations += n
        self._iterations = n
        price = prices.KRYLOV_CALL + n * prices.krylov_iteration(chain)
        self.spent += price
        self._lost += 0.0 if self._refused is None else price - self._refused[1]
        if run.left <= (_PARTIAL if self._factor_cost == inf else part):
            x: Vector = self._system.x
            return x
        self._prefers_factors = True
        return None

    def _iterate(self, chain: Chain, d: Vector, run: _Run, price: float) -> _Run:
        """Go on until no more than a part of the residual is left, or so much has been spent on this system."""
        system, horizon, one = self._system, self._horizon, prices.krylov_iteration(chain)
        part, progress, goal, left = run
        most, chunk = int(min(price / one, _MOST_ITERATIONS)), max(1, int(prices.KERNEL_CALL / one))
        while progress.n < most and left > part and goal > _SMALLEST_GOAL:
            progress = iterate(chain, system, progress, goal, min(chunk, most - progress.n))
            self._tell()
            if isnan(progress.norm):
                return _Run(part, progress, goal, inf)
            if progress.norm <= goal * progress.first:
                gather(chain, system)
                left = float(remainder(chain, system, horizon, d)) / _LARGER
                if left > part:
                    goal *= max(part / left, _SMALLEST_PART) / 2
                    progress = progress._replace(norm=renew(chain, system))
        return _Run(part, progress, goal, left)

    def _counting_cost(self, chain: Chain) -> float:
        if self._order is not None:
            return prices.counting(chain)
        return prices.ordering(chain)

    def _count_factors(self, chain: Chain) -> None:
        """Order the states for elimination, and count what a factorisation would cost: infinite where the factors are too large."""
        self._has_counted, self._elimination = True, None  # two of them at a time would take too much room
        found = self._elimination = self._eliminated(chain, neighbours(chain.ptr, chain.succ))
        self._factor_cost, self._refused = inf, None
        if found is not None and found.n_bytes <= self._memory:
            self._factor_cost = found.cost
        elif found is not None:
            self._refused = found.n_bytes, found.cost
            self._order = self._elimination = None  # they need room, too

    def _eliminated(self, chain: Chain, graph: Graph) -> Elimination | None:
        """Return how a policy is eliminated: in the order of the one before, unless that costs more than another one would."""
        old = self._order
        if old is None:
            return self._in_new_order(chain, graph)
        kept = eliminate_in(old.states, graph)
        self.spent += prices.counting(chain)
        if kept.cost > old.cost + prices.ordering(chain):
            found = self._in_new_order(chain, graph)
            if found is not None and found.cost < kept.cost:
                return found
        self._order = old
        return kept

    def _in_new_order(self, chain: Chain, graph: Graph) -> Elimination | None:
        """Return how a policy is eliminated in an order of its own; None where the factors would be far too large."""
        order, products = np.empty(chain.out.size, dtype=np.int64), _MOST_ITERATIONS * prices.krylov_iteration(chain)
        self._order = None
        if not dissect(*graph, _COUNTED * most_entries(self._memory), most_products(products), PATIENCE, order):
            self.spent += prices.counting(chain)
            return None
        self.spent += prices.ordering(chain)
        found = eliminate_in(order, graph)
        self._order = _Order(order, found.cost)
        return found

    def _by_new_factors(self, chain: Chain, d: Vector) -> Vector | None:
        if not self._has_counted and self._memory > 0:
            self._count_factors(chain)
        plan, price = self._elimination, self._factor_cost
        if plan is None or price is None or price == inf:
            return None
        self.spent += price
        horizon = self._horizon if self._is_cautious else self._longest
        self._system = None  # factors need the room
        self._factors = factorise(chain, horizon, plan, self._tell)
        if self._factors is None:
            return None
        self._prefers_factors = True
        self.factor_size = max(self.factor_size, self._factors.nnz)
        return self._factors.solve(d)


def _promised(chain: Chain, run: _Run) -> float:
    """Predict what the whole run costs, from what became of the residual so far: infinite where it did not fall."""
    n, first, norm = run.progress
    if not 0.0 < norm < first:
        return inf
    return n * log(run.goal) / log(norm / first) * prices.krylov_iteration(chain)
