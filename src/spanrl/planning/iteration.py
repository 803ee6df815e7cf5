"""The state of one solve, and value iteration on it: small budgets, and damping when the bracket stalls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from time import perf_counter

import numpy as np

from spanrl.kernels.iterate import bracket, sharp_bracket
from spanrl.kernels.layout import PLAIN
from spanrl.kernels.projection import new_differences, project
from spanrl.planning.multichain import gain_gap
from spanrl.planning.problem import Problem, Vector
from spanrl.planning.threads import Sweeper

# The numbers below are rules of thumb; none of them touches the certificate.
_FIRST_LOOK = 16  # sweeps before the first look at the speed; then at every doubling
_STALL = 0.9  # narrowing by less than this factor while the sweeps doubled: dampen
_HARD_STALL = 0.999  # the same, once damped: slow mixing is no reason to dampen more
_DAMPINGS = (1.0, 0.9, 0.5)
_WITHIN = 1 - 1e-9  # of c: then nothing is truncated, also in exact numbers
_NOISE = 1.4e-14  # a bracket this narrow, in units of v, is noise


class Iteration:
    """v, u = Fv, the bracket [lo, hi] of the last full sweep, and what it took so far."""

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
        sweeper: Sweeper | None = None,
        watch: Callable[[Iteration], None] | None = None,
        differences: Vector | None = None,
    ) -> None:
        """Start at v, which is changed in place; ``watch`` is called about every 0.1 s. ``differences`` [S, S] take the place of c."""
        self.problem, self.v, self.u, self.sweeper = problem, v, np.empty_like(v), sweeper or Sweeper()
        self.c, self.tol, self.s_ref, self.max_sweeps = c, tol, s_ref, max_sweeps
        self._differences, self.has_differences = new_differences(differences), differences is not None
        self.is_projected = c < inf or self.has_differences
        self.lo, self.hi, self.sweeps = -inf, inf, 0
        self.converged = self.at_rounding = False
        self.values: Vector | None = None  # of all pairs at v, where the last sweep wrote them down
        self.seconds: dict[str, float] = {}
        self._watch = watch
        self._damping, self._fixed = damping or 1.0, damping is not None
        self._gamma, self._extra = gamma or 0.0, -1.0 if gamma else 0.0
        # a kernel call is to last 0.1 s at the most, at about 5 ns per entry: Ctrl-C is seen in between
        entries = problem.arrays.succ.size + 4 * problem.n_pairs + self._differences.bound.size
        self.budget = max(1, int(2e7 / entries))

    @property
    def width(self) -> float:
        """The width of the gain bracket."""
        return self.hi - self.lo

    @property
    def plain_only(self) -> bool:
        """Whether the options forbid every change of the iteration."""
        return self._fixed or self._gamma > 0.0

    @property
    def left(self) -> int:
        """Sweeps that may still be made."""
        return max(self.max_sweeps - self.sweeps, 0)

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""
        return self.converged or self.sweeps >= self.max_sweeps

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the seconds within to those of a phase, and tell who watches."""
        begun = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - begun
        self.tell()

    def tell(self) -> None:
        """Let those who watch look."""
        if self._watch is not None:
            self._watch(self)

    def test(self) -> None:
        """Take u = Fv as one full sweep: test its bracket."""
        self.lo, self.hi = bracket(self.v, self.u, self.problem.rounding)
        self.sweeps += 1
        self.converged, self.at_rounding = self.width <= self.tol, False

    def centre(self) -> None:
        """Shift v and u by the same constant, so that v keeps its digits."""
        middle = self.v.min() / 2 + self.v.max() / 2
        self.v -= middle
        self.u -= middle

    def run(self, most: int | None = None) -> bool:
        """Iterate v ← (1−a)v + a·Fv until the bracket closes, or for ``most`` sweeps; return False where going on is useless.

        a falls below 1 where the bracket stalls, unless the options fix it, and stays so.
        """
        begun, before, look = self.sweeps, inf, _FIRST_LOOK
        end = self.max_sweeps if most is None else min(self.sweeps + most, self.max_sweeps)
        while not self.converged and self.sweeps < end:
            self.sweep_to(min(begun + look, end))
            if before < inf and not self.over:
                if self._hopeless(before):
                    return False
                if self._gamma == 0.0 and self.sweeps == begun + look:
                    self._dampen(before)
            before, look = self.width, 2 * look
        return True

    def start_anew(self) -> None:
        """Go to v = 0."""
        self.v[:], self.values, self._damping = 0.0, None, self._damping if self._fixed else 1.0

    def certify(self, v: Vector) -> None:
        """Go to v, apply F once and test the bracket."""
        self.v[:], self.values = v, None
        self.u[:] = self.problem.backup(self.v)
        project(self.u, self.c, self._differences)
        self.test()
        self.look_for_noise()

    def sweep_to(self, target: int) -> None:
        """Run full sweeps until ``target`` sweeps are done or the bracket closes."""
        self.values, self.at_rounding = None, False
        while self.sweeps < target and not self.converged:
            budget = min(self.budget, target - self.sweeps)
            with self.phase("sweeps"):
                n, self.lo, self.hi, self._extra, self.converged = self.sweeper.sweep(
                    self.problem, self.v, self.u, self.c, self._differences, self.tol, self._extra, self._gamma, self._damping,
                    self.s_ref, budget,
                )  # fmt: skip
            self.sweeps += n

    def _dampen(self, before: float) -> None:
        """Lower the damping where the bracket stalls."""
        stalls = self.width > (_STALL if self._damping == 1.0 else _HARD_STALL) * before
        if stalls and not self._fixed and self._damping != _DAMPINGS[-1]:
            self._damping = _DAMPINGS[_DAMPINGS.index(self._damping) + 1]

    def is_noise(self) -> bool:
        """Tell whether the bracket is as narrow as rounding allows."""
        size = float(np.abs(self.u).max() + np.abs(self.problem.reward).max())
        return self.width <= _NOISE * size

    def look_for_noise(self) -> None:
        """Where rounding is all that is left of the bracket, take the one that keeps more digits; note where that does not close either."""
        if self.converged or not self.is_noise():
            return
        m = self.problem.arrays
        if m.kind == PLAIN and not self.has_differences:
            gains = np.empty(self.problem.n_pairs)
            sharp = sharp_bracket(m, self.problem.reward, self.v, gains)
            if np.ptp(self.v + np.maximum.reduceat(gains, m.pair_ptr[:-1])) < _WITHIN * self.c:
                self.values = gains if self.c == inf else None
                self.lo, self.hi = sharp
                self.converged = self.width <= self.tol
        self.at_rounding = not self.converged

    def _hopeless(self, before: float) -> bool:
        """Tell whether going on is useless: only noise is left, or the gains of two parts of the model are certified to differ."""
        if self._gamma == 0.0:  # with γ the width waits for the other term
            self.look_for_noise()
        flat = self.width > _HARD_STALL * before and (self._damping < 1.0 or self._fixed or self._gamma > 0.0)
        if self.converged or self.at_rounding:
            return True
        return flat and not self.is_projected and gain_gap(self.problem, self.v) is not None
