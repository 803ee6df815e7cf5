"""Drive the compiled loops: small budgets, damping when the bracket stalls, frozen policies when mixing is slow."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from spanrl.kernels.hasten import CLOSED, GO_ON, Pace, Rows, hasten
from spanrl.kernels.iterate import bracket, clip, relax
from spanrl.kernels.layout import PLAIN
from spanrl.models.checks import frozen
from spanrl.planning import threads
from spanrl.planning.multichain import gain_gap
from spanrl.planning.problem import Problem, Vector, longest_step
from spanrl.planning.shortlist import Shortlist
from spanrl.planning.threads import Crew, Outcome

# The numbers below are rules of thumb; none of them touches the certificate.
_FIRST_LOOK = 16  # sweeps before the first look at the speed; then at every doubling
_STALL = 0.9  # narrowing by less than this factor while the sweeps doubled: dampen
_HARD_STALL = 0.999  # the same, once damped: slow mixing is no reason to dampen more
_DAMPINGS = (1.0, 0.9, 0.5)
_SLOW = 300  # predicted sweeps above which freezing the actions pays
_HAND_OVER = 50_000  # predicted sweeps above which a direct solution is cheaper
_INNER = 1000  # most sweeps over frozen actions before they are chosen anew
_PATIENCE = 60  # full sweeps without halving the bracket before freezing is given up
_ROUNDING = 1.4e-14  # a bracket this narrow, in units of v, is noise


class Iteration:
    """The state of one solve: v, the bracket [lo, hi] of its last full sweep, and the number of sweeps so far."""

    def __init__(
        self,
        problem: Problem,
        v: Vector,
        c: float,
        tol: float,
        s_ref: int,
        damping: float | None,
        gamma: float | None,
        max_sweeps: int,
        crew: Crew | None = None,
    ) -> None:
        """Start at v, which is changed in place."""
        self.problem, self.v, self.u, self._crew = problem, v, np.empty_like(v), crew or Crew()
        self.c, self.tol, self.s_ref, self.max_sweeps = c, tol, s_ref, max_sweeps
        self.lo, self.hi, self.sweeps = -inf, inf, 0
        self.converged = self.at_rounding = self.handed_over = False
        self.values: Vector | None = None  # of all pairs at v, where they are known
        self._damping, self._fixed = damping or 1.0, damping is not None
        self._hastened = 0  # sweeps with short lists and extrapolation
        self._stretch = 1.0  # how far beyond Fv a sweep may go
        self._list = Shortlist(problem)
        self._gamma, self._extra = gamma or 0.0, -1.0 if gamma else 0.0
        # a kernel call is to last 0.1 s at the most, at about 5 ns an entry: Ctrl-C is seen in between
        self._budget = max(1, int(2e7 / (problem.arrays.succ.size + 4 * problem.n_pairs)))

    @property
    def width(self) -> float:
        """The width of the gain bracket."""
        return self.hi - self.lo

    @property
    def plain_only(self) -> bool:
        """Whether the options forbid every change of the iteration."""
        return self._fixed or self._gamma > 0.0

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""
        return self.converged or self.sweeps >= self.max_sweeps

    def run(self, *, adapt: bool, may_hand_over: Callable[[], bool] = lambda: False) -> None:
        """Iterate until the bracket closes.

        With ``adapt`` slow mixing is met with frozen policies; a model that would take very long is left to a direct method where
        ``may_hand_over`` allows it, and ``handed_over`` says so.
        """
        look, before = self._done + _FIRST_LOOK, inf
        while not self.over:
            self._sweep_to(min(self._hastened + look, self.max_sweeps))
            if before < inf and not self.over and self._hopeless(before):
                return
            if before < inf and self._gamma == 0.0 and not self.over:
                predicted = self._predicted(before, look // 2)
                if adapt and predicted > _SLOW and self.problem.n_pairs > self.problem.n_states:
                    self._alternate()
                    adapt = False
                elif not self._dampen(before) and predicted > _HAND_OVER and may_hand_over():
                    self.handed_over = True
                    return
            before, look = self.width, 2 * max(look, self._done)

    @property
    def _done(self) -> int:
        """The sweeps since short lists and extrapolation were given up."""
        return self.sweeps - self._hastened

    def hasten(self) -> None:
        """Iterate with lists of actions and extrapolation where that is possible, until the bracket closes or does not narrow any more.

        Not where the options say how to iterate, with a span bound, for sets, or where threads may share the sweeps.
        """
        p, m = self.problem, self.problem.arrays
        if self.plain_only or self.c < inf or m.kind != PLAIN or m.succ.size >= threads.PAYS:
            return
        model = Rows(m.pair_ptr, m.succ_ptr, m.succ, m.low, p.reward)
        x, q, pace, outcome = np.empty((3, p.n_states)), np.empty(p.n_pairs), Pace(not self.v.any()), GO_ON
        x[0] = self.v
        while outcome == GO_ON and not self.over:
            left = self.max_sweeps - self.sweeps
            n, outcome, pace = hasten(model, x, q, pace, self.tol, self._stretch, self._budget, left)
            self.sweeps += n
            self._hastened += n
        self.v, self.lo, self.hi = x[pace.at].copy(), pace.lo, pace.hi
        if outcome == CLOSED:
            self.converged, self.values = True, q

    def run_modified(self) -> None:
        """Alternate full sweeps with frozen policies first; iterate plainly where that does not close the bracket."""
        self._alternate()
        self.run(adapt=False)

    def certify(self, v: Vector) -> None:
        """Go to v, apply F once and test the bracket."""
        self.v[:] = v
        self._list.forget()
        self._test(self.problem.backup(self.v))
        self.at_rounding = not self.converged and self._is_noise()

    def _alternate(self) -> None:
        """Alternate one full sweep with sweeps over the actions it chose, as long as that halves the bracket now and then."""
        best, since = inf, 0
        while not self.over and since <= _PATIENCE:
            choice = self.problem.best(self.v, most=self.tol / 10)
            if self._test(choice.value):
                return
            since = 0 if self.width <= best / 2 else since + 1
            best = min(best, self.width)
            relax(self.v, self.u, self._stretch * self._damping, self.s_ref)
            self._sweep_frozen(choice.pair)

    def overrelax(self) -> None:
        """Take steps as long as the self-loops allow, unless the options say how long they are; Γ_c has no self-loops to rely on."""
        if not self.plain_only and self.c == inf:
            self._stretch = longest_step(self.problem.arrays)

    def _test(self, value: Vector) -> bool:
        """Take ``value`` = Lv as one full sweep."""
        self.u[:] = value
        clip(self.u, self.c)
        self.lo, self.hi = bracket(self.v, self.u)
        self.sweeps += 1
        self.converged = self.width <= self.tol
        return self.converged

    def _sweep_to(self, target: int) -> None:
        """Run full sweeps until ``target`` sweeps are done or the bracket closes."""
        while self.sweeps < target and not self.converged:
            actions = self._list
            actions.update(self.v, self.sweeps, self.width, self.tol, self._stretch * self._damping)
            most = actions.most_sweeps(self.sweeps, target)
            n, self.lo, self.hi, self._extra, self.converged, actions.left = self._call(
                actions.problem, self.tol, self._extra, self._damping, most, actions.left
            )
            self.sweeps += n

    def _sweep_frozen(self, pairs: NDArray[np.int64]) -> None:
        """Sweep over the chosen actions alone until their own bracket is ten times narrower, or for a while."""
        chosen = self.problem.restricted(pairs, self._one_each)
        tol = max(self.width / 10, self.tol / 2)
        damping = min(self._damping, _DAMPINGS[1])  # a frozen policy may well be periodic
        left = min(_INNER, self.max_sweeps - self.sweeps)
        while left > 0:
            n, _, _, _, done, _ = self._call(chosen, tol, 0.0, damping, left, inf)
            self.sweeps += n
            left = 0 if done else left - n
        self._list.forget()

    @cached_property
    def _one_each(self) -> NDArray[np.int64]:
        """The pointer of a problem with one pair a state."""
        return frozen(np.arange(self.problem.n_states + 1), np.int64)

    def _call(self, p: Problem, tol: float, extra: float, damping: float, most: int, reach: float) -> Outcome:
        """Run one budget of sweeps on v; return (sweeps, lo, hi, extra, closed, what is left of reach)."""
        budget, a = min(self._budget, most), self._stretch * damping
        return self._crew.sweep(p, self.v, self.u, self.c, tol, extra, self._gamma, a, self.s_ref, budget, reach)

    def _dampen(self, before: float) -> bool:
        """Lower the damping where the bracket stalls; False where there is nothing to lower."""
        stalls = self.width > (_STALL if self._damping == 1.0 else _HARD_STALL) * before
        if self._fixed or not stalls or self._damping == _DAMPINGS[-1]:
            return False
        self._damping = _DAMPINGS[_DAMPINGS.index(self._damping) + 1]
        return True

    def _predicted(self, before: float, n: int) -> float:
        """Return how many more sweeps the bracket needs at the speed of the last n: infinite where it does not narrow."""
        ratio = self.width / before
        return inf if ratio >= 1.0 else n * log(self.width / self.tol) / -log(ratio)

    def _is_noise(self) -> bool:
        """Tell whether the bracket is as narrow as rounding allows."""
        size = float(np.abs(self.u).max() + np.abs(self.problem.reward).max())
        return self.width <= _ROUNDING * size

    def _hopeless(self, before: float) -> bool:
        """Tell whether going on is useless: only noise is left, or the gains of two parts of the model are certified to differ."""
        self.at_rounding = self._gamma == 0.0 and self._is_noise()  # with γ the width waits for the other term
        flat = self.width > _HARD_STALL * before and (self._damping < 1.0 or self._fixed or self._gamma > 0.0)
        return self.at_rounding or (flat and self.c == inf and gain_gap(self.problem, self.v) is not None)
