"""Policy improvement in rounds: a sweep over all actions chooses a policy and tests the bracket, then the policy is evaluated, roughly.

A round *improves* by full sweeps and *evaluates* the chosen policy in the cheaper of two ways: by sweeps over its rows alone, until their
bracket is ten times narrower (modified policy iteration), or by one linear system with a horizon H (:mod:`spanrl.planning.resolvent`).
A few sweeps measure how fast the policy mixes; what each way would cost follows from that. The first way wins where mixing is fast,
the second where it is slow. Where full sweeps alone narrow the bracket as much as a round is to, no policy is evaluated. Where every
state is left with probability p or less, sweeps over the policy take steps of length 1/p: that is the aperiodicity transformation
(Puterman 1994, Sec. 8.5.4) read backwards.

After a system, what is better in a few states only spreads from state to state (:mod:`spanrl.kernels.spreading`), for its price at the
most. Sets, where that is not possible, and a solution that did harm are followed by full sweeps for the price of the system, so that no
more than half of the time goes to systems that do not help.

For L and T_c, λ-policy iteration never lowers min(Fv − v) (:mod:`spanrl.planning.policy_evaluation`). A step that does so was solved
badly; it is taken back and the other way, or a shorter horizon, is tried. Nature's minimum has no such rule; there a step must not widen
the bracket much. Nothing of this touches the certificate: it is the bracket of the last full sweep.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log
from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.layout import PLAIN
from spanrl.kernels.policies import (
    chain_sweeps,
    fast_rounds,
    move,
    recentre,
    sweeps_left,
    target_of,
)
from spanrl.kernels.projection import clip
from spanrl.kernels.spreading import predecessors, spread
from spanrl.planning import prices, threads
from spanrl.planning.forecast import PROGRESS, Forecast
from spanrl.planning.iteration import Iteration
from spanrl.planning.multichain import gain_gap
from spanrl.planning.policy_evaluation import PolicyEvaluation
from spanrl.planning.problem import Vector
from spanrl.planning.resolvent import Resolvent

# Rules of thumb; none of them touches the certificate.
_NARROWER = 0.1  # how much narrower the bracket of a policy becomes in a round of sweeps
_WARM, _FEW_ACTIONS = 2, 6  # full sweeps before the first policy is worth an evaluation, with so many actions per state
_TRIAL = 5  # sweeps over a policy that show how fast it mixes
_INNER = 1000  # most sweeps over one policy
_DAMPED = 0.9  # of a step: for policies that may be periodic
_SYSTEMS = 5.0  # linear systems that a solve takes, about
_FAR = 3.0  # in units of the bracket of the gain: a rise that is news
_HIDDEN = 0.1  # of the states with a better action: where fewer are left, spreading did harm
_NOISY = 3  # rounds without progress, after which noise counts as such: the best of some is kept
_STALE = 8  # rounds without progress, after which value iteration has about as much time as the sweeps before, …
_FEWEST = 32  # … and sweeps enough to see that it stalls
_LOWER, _WIDER = 0.1, 2.0  # in units of the last width: how far min(Lv − v) may fall, how wide the bracket may become


class _Trial(NamedTuple):
    """What some sweeps over a policy made of its bracket, and how narrow it is to become."""

    target: float
    sweeps: int
    first: float
    last: float


class _Before(NamedTuple):
    """Where a linear system began."""

    v: Vector
    lo: float
    width: float


class Rounds:
    """The rounds of one :class:`Iteration`, whose v, bracket and count of sweeps they change."""

    def __init__(
        self,
        iteration: Iteration,
        *,
        may_solve: bool,
        memory: float,
        tell_missed: Callable[[float], None] | None = None,
    ) -> None:
        """Start at the iteration's v; ``may_solve=False`` leaves out the linear systems.

        ``tell_missed`` is called once, with the bytes that factors need, where they are more than ``memory`` and would save much.
        """
        p = iteration.problem
        m = p.arrays
        self._it, self._may_solve = iteration, may_solve
        self._pair = m.pair_ptr[:-1].copy()
        self._policy = PolicyEvaluation(p, iteration.c)
        self._is_simple = m.kind == PLAIN and iteration.c == inf and m.succ.size < threads.PAYS
        self._is_monotone = m.kind == PLAIN or p.sign > 0
        self._predecessors: tuple[Any, Any] | None = None
        self._blank = m.kind == PLAIN and not iteration.v.any()
        self._values, self._w = np.empty(p.n_pairs), np.empty(p.n_states)
        self._width_then = inf
        self._forecast = Forecast()
        self._resolvent = Resolvent(memory, is_cautious=not self._is_monotone, tell=iteration.tell)
        self._tell_missed = tell_missed
        self._slowness, self._is_hopeless = inf, False
        self._before: _Before | None = None
        self._best_lo, self._best_hi, self._marked, self._narrowest, self._stale = -inf, inf, inf, inf, 0
        self._v_then = iteration.v  # v when the bracket was last narrowed
        self._full_cost = prices.full_sweep(p)
        self._warm = _WARM if p.n_pairs <= _FEW_ACTIONS * p.n_states else 0
        self._narrower = min(_NARROWER, p.n_states / p.n_pairs)
        self._due = 0 if self._is_simple else max(self._warm - 1, 0)  # full sweeps before the next policy

    @property
    def method(self) -> str:
        """How policies were evaluated, last and at the most effort."""
        if self._resolvent.factor_size:
            return "policy-iteration, factorised"
        return "policy-iteration, Krylov" if self._resolvent.iterations else "modified-policy-iteration"

    @property
    def factor_size(self) -> int:
        """Entries of the largest factors."""
        return self._resolvent.factor_size

    def run(self) -> bool:
        """Go on until the bracket closes or there is no hope; return False where a policy has too many entries to be written out."""
        it = self._it
        while not it.over:
            if self._is_simple and self._before is None and not self._due:
                trial: _Trial | None = self._run_fast()
            else:
                self._improve()
                if it.over:
                    break
                trial = self._try_sweeps() if self._freeze() else None
            if trial is None:
                return False
            if it.over or not self._goes_on():
                break
            self._evaluate(trial)
        if not it.converged:
            self._end()
        return True

    def _end(self) -> None:
        """Let v, its bracket and its policy belong together; where gains differ between states, at a v that is not large if it can be."""
        last = self._it.v.copy()
        if self._is_hopeless:
            self._it.certify(self._v_then)
            if gain_gap(self._it.problem, self._it.v) is not None:
                return
        self._it.certify(last)

    def _run_fast(self) -> _Trial:
        """Run rounds in compiled code as long as policies mix fast."""
        it, p = self._it, self._it.problem
        chain = self._policy.chain
        with it.phase("sweeps"):
            rounds, n, it.lo, it.hi, self._policy.changes, self._policy.step, *trial = fast_rounds(
                p.arrays, p.reward, self._blank, self._values, it.v, it.u, self._w, self._pair, self._policy.pair, chain,
                self._policy.step, it.tol, p.rounding, self._narrower, self._warm, _TRIAL, it.budget, it.left,
            )  # fmt: skip
        it.sweeps += rounds + n
        it.converged = it.width <= it.tol
        if rounds > 1 or self._policy.changes:
            self._resolvent.forget()
        it.values, self._blank, self._warm = self._values, False, 0
        return _Trial(*trial)

    def _improve(self) -> None:
        """Sweep over all actions; the last sweep chooses the policy, and is not yet taken."""
        it, due, self._due = self._it, self._due, 0
        self._full_sweep()
        if self._before is not None and not it.over and (self._take_back() or not self._spread()):
            due = max(due, int(self._resolvent.spent / self._full_cost))
        if due > 0 and not it.over:
            move(it.v, it.u, 1.0, (it.lo + it.hi) / 2)
            self._is_hopeless = not it.run(due)
            while not it.over:
                before = it.width
                self._full_sweep()
                if it.over or not it.width <= self._narrower * before:
                    break
                move(it.v, it.u, 1.0, (it.lo + it.hi) / 2)  # it does as well as a round

    def _spread(self) -> bool:
        """Raise v where other actions earn more than the policy earns anywhere, at most for the price of the system.

        It is undone where most of what was better before is hidden by it: raised values can make the frozen policy greedy again. Returns
        False where sweeps must do it: in sets, whose order of the states changes with v.
        """
        it, p, spent = self._it, self._it.problem, self._resolvent.spent
        if p.arrays.kind != PLAIN:
            return False
        n_better = self._policy.count_others(self._pair)
        if spent < self._full_cost or not n_better:
            return True
        if self._predecessors is None:
            self._predecessors = predecessors(p.arrays)
        level = float((self._values[self._policy.pair] - it.v)[self._policy.truncated == 0].max())
        far, risen = _FAR * self._known_gap, np.zeros(p.n_states)
        left, chunk = (int(x / prices.SPREAD_ENTRY) for x in (spent, prices.KERNEL_CALL))
        v, ceiling = it.v.copy(), float(it.v.min()) + it.c
        with it.phase("sweeps"):
            work, it.u[:] = chunk, self._values[self._pair]  # not truncated
            while left > 0 and work >= chunk:
                work = spread(
                    p.arrays, p.reward, *self._predecessors, level, far, ceiling, it.v, self._values, it.u, self._pair, risen,
                    min(left, chunk),
                )  # fmt: skip
                left -= work
                it.tell()
            self._policy.truncate(it.u)
            it.test()
        if not it.over and self._policy.count_others(self._pair) < _HIDDEN * n_better:
            it.v[:] = v
            self._full_sweep()
        if not it.over:
            it.centre()
        return True

    def _full_sweep(self) -> None:
        """Set u = Fv and the greedy pairs, and test the bracket."""
        it, p = self._it, self._it.problem
        with it.phase("sweeps"):
            clip(it.v, it.c)  # sweeps over a policy may leave a span a little above c
            it.sweeper.improve(p, it.v, self._values, it.u, self._pair, blank=self._blank)
            self._blank = False
            self._policy.truncate(it.u)
            it.test()
        it.values = self._values

    def _take_back(self) -> bool:
        """Undo the last linear system where it did harm, and prepare to do better."""
        it, before = self._it, self._before
        assert before is not None
        self._before = None
        if self._is_monotone:
            harmful = it.lo < before.lo - _LOWER * before.width
        else:
            harmful = not it.width <= _WIDER * before.width
        if not harmful:
            return False
        self._resolvent.distrust()
        it.v[:] = before.v
        self._full_sweep()
        return True

    def _goes_on(self) -> bool:
        """Tell whether there is any hope, and note whether rounds still narrow what is known of the gain."""
        it = self._it
        self._best_lo, self._best_hi = max(self._best_lo, it.lo), min(self._best_hi, it.hi)
        gap = self._best_hi - self._best_lo
        if gap <= PROGRESS * self._marked or it.width <= PROGRESS * self._narrowest:
            self._marked, self._narrowest, self._stale = gap, min(self._narrowest, it.width), 0
            self._v_then = it.v.copy()
            return True
        self._stale += 1
        if self._stale >= _NOISY:
            it.look_for_noise()
        in_vain = it.at_rounding or self._is_hopeless or self._stale % _STALE == 0
        if in_vain and self._may_solve and self._resolvent.turn_to_factors():
            it.at_rounding, self._is_hopeless, self._stale = False, False, 0
            return True
        if self._stale % _STALE == 0:
            self._due = max(_FEWEST, int(it.sweeps * self._policy.sweep_cost / self._full_cost))
        return not (it.over or it.at_rounding or self._is_hopeless)

    def _freeze(self) -> bool:
        """Freeze the chosen policy; False where its rows are too wide."""
        fits = self._policy.become(self._pair, self._it.v)
        if not self._policy.is_kept:
            self._resolvent.forget()
        return fits

    def _try_sweeps(self) -> _Trial:
        """Take the last full sweep, and a few over the policy that it chose."""
        it = self._it
        target = target_of(it.width, it.tol, self._narrower, self._policy.changes / it.v.size)
        move(it.v, it.u, self._policy.step, self._policy.step * (it.lo + it.hi) / 2)
        with it.phase("sweeps"):
            n, *widths = chain_sweeps(
                self._policy.chain, it.c, it.v, it.u, self._w, self._policy.step, target, min(_TRIAL, it.left)
            )
        it.sweeps += n
        return _Trial(target, n, *widths)

    def _evaluate(self, trial: _Trial) -> None:
        """Improve v on the frozen policy further: by sweeps, or by a linear system where that is cheaper."""
        chain, price = self._policy.chain, self._policy.sweep_cost
        target, n, first, last = trial
        need = sweeps_left(n, first, last, target)
        self._slowness = need / log(last / target) if need else 1.0
        if self._may_solve:
            rounds = self._forecast.rounds_left(self._it.width, self._it.tol, target / self._it.width)
            by_sweeps = rounds * (self._full_cost + (n + need) * price)
            again = self._it.width <= _NARROWER * self._width_then  # the last factors still do much
            by_systems = _SYSTEMS * (self._full_cost + self._resolvent.cost(chain, self._slowness, again=again))
            if (need or rounds == inf) and by_systems < by_sweeps:
                self._solve(again)
                return
        if need > 0.0:
            self._sweep(target, min(need, float(_INNER)), price)

    @property
    def _known_gap(self) -> float:
        """The width of what is known of the gain, from all brackets so far."""
        return min(self._best_hi, self._it.hi) - max(self._best_lo, self._it.lo)

    def _sweep(self, target: float, most: float, price: float) -> None:
        """Sweep over the policy until its bracket is as narrow as the target, or for so many sweeps."""
        it, chunk = self._it, max(1, int(prices.KERNEL_CALL / price))
        left = min(max(1, int(1.2 * most)), it.left)
        a = (_DAMPED if most >= _INNER else 1.0) * self._policy.step
        with it.phase("sweeps"):
            while left > 0:
                n, _, width = chain_sweeps(self._policy.chain, it.c, it.v, it.u, self._w, a, target, min(left, chunk))
                it.sweeps += n
                left = 0 if width <= target else left - n
                it.tell()

    def _solve(self, again: bool) -> None:
        """Evaluate the policy by a linear system; ``again``: by the factors of the last one, if there are any."""
        it = self._it
        self._width_then = it.width
        with it.phase("linear systems"):
            before = self._policy.passes + self._resolvent.iterations
            moved = self._policy.evaluate(
                self._resolvent, it.v, self._slowness, min(it.width, max(self._known_gap, it.tol)), it.width / it.tol * 2,
                is_settled=self._policy.changes == 0, again=again,
            )  # fmt: skip
            it.sweeps += self._policy.passes + self._resolvent.iterations - before
            if self._tell_missed is not None and self._resolvent.missed_memory:
                self._tell_missed(self._resolvent.missed_memory)
                self._tell_missed = None
            if moved is None or not recentre(moved):
                self._resolvent.distrust()
                return
        self._forecast.begin_anew()
        self._before = _Before(it.v.copy(), it.lo, it.width)
        it.v[:] = moved
