"""Drive the compiled loops: small budgets, damping when the bracket stalls, frozen policies when mixing is slow."""

from __future__ import annotations

from math import inf, log

import numpy as np
from numpy.typing import NDArray

from spanrl.kernels.iterate import bracket, clip, relax, value_iteration
from spanrl.planning.multichain import gain_gap
from spanrl.planning.problem import Problem, Vector

# The numbers below are rules of thumb; none of them touches the certificate.
_FIRST_LOOK = 16  # sweeps before the first look at the speed; then at every doubling
_STALL = 0.9  # narrowing by less than this factor while the sweeps doubled: dampen
_HARD_STALL = 0.999  # the same, once damped: slow mixing is no reason to dampen more
_DAMPINGS = (1.0, 0.9, 0.5)
_DEAD = 1.0 - 1e-6  # narrowing by less than this: nothing is gained any more
_DEAD_AFTER = 4096
_SLOW = 300  # predicted sweeps above which freezing the actions pays
_HAND_OVER = 50_000  # predicted sweeps above which a direct solution of a small model is cheaper
_DIRECT_STATES = 1000
_INNER = 1000  # most sweeps over frozen actions before they are chosen anew
_PATIENCE = 60  # full sweeps without halving the bracket before freezing is given up


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
    ) -> None:
        """Start at v."""
        self.problem, self.v, self.u = problem, v, np.empty_like(v)
        self.c, self.tol, self.s_ref, self.max_sweeps = c, tol, s_ref, max_sweeps
        self.lo, self.hi, self.sweeps = -inf, inf, 0
        self.converged = self.stalled = self.handed_over = False
        self._damping, self._fixed = damping or 1.0, damping is not None
        self._gamma, self._extra = gamma or 0.0, -1.0 if gamma else 0.0
        # a kernel call is to last 0.1 s at the most, at about 5 ns an entry: Ctrl-C is seen in between
        self._budget = max(1, int(2e7 / (problem.arrays.succ.size + 4 * problem.n_pairs)))

    @property
    def width(self) -> float:
        """The width of the gain bracket."""
        return self.hi - self.lo

    def run(self, *, adapt: bool, may_hand_over: bool) -> None:
        """Iterate until the bracket closes, changing to frozen policies or a direct method where ``adapt`` allows it."""
        look, before = self.sweeps + _FIRST_LOOK, inf
        while True:
            self._sweep_to(min(look, self.max_sweeps))
            if self.converged or self.sweeps >= self.max_sweeps:
                return
            if before < inf and self._gamma == 0.0:
                if self._give_up(before, look):
                    return
                predicted = self._predicted(self.width / before, look // 2)
                if (
                    not self._dampen(before)
                    and may_hand_over
                    and predicted > _HAND_OVER
                    and self.problem.n_states <= _DIRECT_STATES
                ):
                    self.handed_over = True
                    return
                if adapt and _SLOW < predicted < inf and self.problem.n_pairs > self.problem.n_states:
                    self.run_modified()
                    return
            before, look = self.width, 2 * look

    def run_modified(self) -> None:
        """Alternate one full sweep with sweeps over the actions it chose."""
        best, since = inf, 0
        while self.sweeps < self.max_sweeps:
            value, pairs = self.problem.best(self.v)
            if self._test(value):
                return
            since = 0 if self.width <= best / 2 else since + 1
            best = min(best, self.width)
            if since > _PATIENCE:
                break
            relax(self.v, self.u, self._damping, self.s_ref)
            self._sweep_frozen(pairs)
        self._sweep_rest()

    def restart(self, v: Vector) -> None:
        """Go on from another vector."""
        self.v[:] = v
        self.handed_over = False

    def certify(self) -> None:
        """Apply F once at v and test the bracket."""
        self._test(self.problem.backup(self.v))

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
        p = self.problem
        while self.sweeps < target and not self.converged:
            budget = min(self._budget, target - self.sweeps)
            n, self.lo, self.hi, self._extra, self.converged = value_iteration(
                p.arrays,
                p.reward,
                p.sign,
                p.workspace,
                self.v,
                self.u,
                self.c,
                self.tol,
                self._extra,
                self._gamma,
                self._damping,
                self.s_ref,
                budget,
            )
            self.sweeps += n

    def _sweep_frozen(self, pairs: NDArray[np.int64]) -> None:
        """Sweep over the chosen actions alone until their own bracket is ten times narrower, or for a while."""
        frozen = self.problem.restricted(pairs)
        tol = max(self.width / 10, self.tol / 2)
        left = min(_INNER, self.max_sweeps - self.sweeps)
        damping = min(self._damping, _DAMPINGS[1])  # a frozen policy may well be periodic
        while left > 0:
            n, _, _, _, done = value_iteration(
                frozen.arrays,
                frozen.reward,
                frozen.sign,
                frozen.workspace,
                self.v,
                self.u,
                self.c,
                tol,
                0.0,
                0.0,
                damping,
                self.s_ref,
                min(left, self._budget),
            )
            self.sweeps += n
            left = 0 if done else left - n

    def _sweep_rest(self) -> None:
        """Leave frozen policies: plain damped iteration for what remains."""
        if not self._fixed:
            self._damping = _DAMPINGS[1]
        self.run(adapt=False, may_hand_over=False)

    def _dampen(self, before: float) -> bool:
        """Lower the damping where the bracket stalls; False where there is nothing to lower."""
        stalls = self.width > (_STALL if self._damping == 1.0 else _HARD_STALL) * before
        if self._fixed or not stalls or self._damping == _DAMPINGS[-1]:
            return False
        self._damping = _DAMPINGS[_DAMPINGS.index(self._damping) + 1]
        return True

    @staticmethod
    def _predicted(ratio: float, n: int) -> float:
        """Return how many sweeps halve the bracket forty times at the speed seen: infinite where it does not narrow."""
        return inf if ratio >= _DEAD else 28.0 * n / -log(max(ratio, 1e-300))

    def _give_up(self, before: float, look: int) -> bool:
        """Tell whether going on is useless: the bracket is dead, or the gains of two parts of the model are certified to differ."""
        dead = self.width > _DEAD * before
        if dead and self.c == inf and self._damping < 1.0 and gain_gap(self.problem, self.v) is not None:
            return True
        self.stalled = dead and look >= _DEAD_AFTER and (self._damping == _DAMPINGS[-1] or self._fixed)
        return self.stalled
