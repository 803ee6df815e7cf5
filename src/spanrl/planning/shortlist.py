"""Sweep without the actions that cannot be best before the bracket closes: the same values, to the last bit, for less work.

Temporary action elimination (Puterman 1994, Sec. 8.5.6). A sweep with step a moves v by a·(hi − lo) in span, so that the speed of the
bracket foretells how far v will still go. Actions further than that from the best of their state are left out; where v goes further
after all, they come back.
"""

from __future__ import annotations

from math import inf, log

from spanrl.planning.problem import Problem, Vector

# The numbers below are rules of thumb; none of them touches the values.
_FIRST = 3  # sweeps before the first look at the speed; then at every one and a half times
_SAFETY = 1.25  # how much further than foretold v may go
_WORTH = 5  # sweeps that must be left
_FEW = 0.4  # of the pairs beyond one a state: more than this must be there, and less than this be left


class Shortlist:
    """The problem with the actions that are swept, and how far v may move before others may be better."""

    def __init__(self, problem: Problem) -> None:
        """Start with all actions."""
        self._all = self.problem = problem
        self.left = inf
        self._next, self._last_sweeps, self._last_width = float(_FIRST), 0, inf

    def forget(self) -> None:
        """Take all actions again: v was moved by something else than sweeps over the list."""
        self.left = -1.0

    def most_sweeps(self, sweeps: int, target: int) -> int:
        """Return how many sweeps to make before :meth:`update` is called again."""
        return min(target, int(min(self._next, target))) - sweeps

    def update(self, v: Vector, sweeps: int, width: float, tol: float, step: float) -> None:
        """Cut the list after so many sweeps with a bracket of this width, where it is time and leaves out many."""
        if self.left < 0.0:
            self.problem, self.left, self._next = self._all, inf, sweeps
        if sweeps < self._next:
            return
        n, before = sweeps - self._last_sweeps, self._last_width
        self._last_sweeps, self._last_width, self._next = sweeps, width, sweeps + max(_FIRST, sweeps // 2)
        S, more = self.problem.n_states, self.problem.n_pairs - self.problem.n_states
        if more < _FEW * S:
            self._next = inf
        elif width < before < inf:
            rate = min((width / before) ** (1.0 / n), 1.0 - 1e-9)
            reach = _SAFETY * step * width * rate / (1.0 - rate)
            if reach <= self.left and log(width / tol) >= _WORTH * -log(rate):
                shorter = self.problem.contenders(v, reach, S + int(_FEW * more))
                if shorter is not None:
                    self.problem, self.left = shorter, reach
