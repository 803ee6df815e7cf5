"""Plan on the plausible models of a learner, episode after episode: arrays are kept, nothing is validated twice."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.episode import plan_episode
from spanrl.confidence.play import Stage, play
from spanrl.confidence.radii import bernstein_factors
from spanrl.confidence.regions import Region, new_ends
from spanrl.errors import NotConvergedError
from spanrl.kernels.desk import Choice, Desk, Goal, new_choice, new_rows
from spanrl.kernels.extended import CONVERGED, TOO_WIDE, start_planning
from spanrl.kernels.frozen import by_length, new_frozen
from spanrl.kernels.layout import Arrays, new_workspace
from spanrl.models.counts import Counts, Seen
from spanrl.models.info import ProblemInfo
from spanrl.models.policy import Policy
from spanrl.planning.solve import solve

_MOST_ROUNDS = 10**8
_INNER = 6  # sweeps over frozen actions between two full ones


class Plan(NamedTuple):
    """A policy as pairs: in state s pair ``pairs[2s]``, with probability weight[s] pair ``pairs[2s+1]``; and what is known of it.

    ``left`` [2S] is max{1, N_k} of each of the pairs: how often it may be played.
    """

    pairs: NDArray[np.int64]
    weight: NDArray[np.float64]
    mixes: bool
    left: NDArray[np.int64]
    gain_bounds: tuple[float, float]
    span: float
    sweeps: int

    @property
    def choice(self) -> Choice:
        """The arrays of the policy, as the kernels take them."""
        return Choice(self.pairs, self.weight, self.left)

    def policy(self, info: ProblemInfo) -> Policy:
        """Return it as a table of probabilities."""
        probs = np.zeros((info.n_states, info.n_actions))
        states = np.arange(info.n_states)
        probs[states, info.action[self.pairs[::2]]] = 1.0 - self.weight
        probs[states, info.action[self.pairs[1::2]]] += self.weight
        return Policy(probs)


class ExtendedPlanner:
    """The planner of one learner: the arrays of its set, the sorted states, and the bias of the last episode."""

    def __init__(self, info: ProblemInfo, region: Region) -> None:
        """Allocate for a problem; what depends on the number of successors comes with the first plan."""
        S, k = info.n_states, info.n_pairs
        self.info, self.region, self.bias = info, region, np.zeros(S)
        self.clock = np.zeros(5)
        self._rule = region.rule(info)
        self._u, self._best, self._all = np.empty(S), np.empty(S, dtype=np.int64), np.arange(k)
        self._rows = new_rows(info.pair_ptr)
        self._least, self._progress = _read_only(np.zeros(k)), np.zeros(9)
        self._seen: Seen | None = None
        self._listed = -1
        self._desk: Desk
        self._budget = max(1, int(2e7 / (50 * k)))  # full sweeps in about 0.1 s: Ctrl-C is seen in between

    def plan(
        self, counts: Counts, t: int, *, span_bound: float, mixture: bool, from_bias: bool, plain: bool = False
    ) -> Plan:
        """Run ScOpt (span_bound = ∞: EVI) on the set at time t, to a gain bracket of (r_max − r_min)/√t.

        ``from_bias`` starts at the last bias instead of 0. ``plain`` runs EVI from 0 first and keeps its policy if no iterate's span
        exceeds the bound.
        """
        before = 0
        if plain:
            plan, before = self._iterate(counts, t, self.goal(inf, mixture, False, span_bound), False)
            if plan is not None:
                return plan
        goal = self.goal(span_bound, mixture, from_bias)
        plan, _ = self._iterate(counts, t, goal, from_bias and not plain)
        assert plan is not None
        return plan._replace(sweeps=plan.sweeps + before) if before else plan

    def goal(self, span_bound: float, mixture: bool, from_bias: bool, widest: float = inf) -> Goal:
        """Return what is asked of the kernels."""
        return Goal(float(span_bound), float(widest), _INNER if from_bias else 0, bool(mixture), self._budget)

    def play(
        self, sampler: Any, mean: NDArray[np.float64], counts: Counts, goal: Goal, from_bias: bool, choice: Choice,
        stage: Stage, times: NDArray[np.int64], steps: int,
    ) -> None:  # fmt: skip
        """Go on with a run in compiled code, planning included: see :func:`spanrl.confidence.play.play`."""
        counts.reserve(sampler.succ.size)  # no more successors than that can be seen
        desk = self._lay_out(counts)
        play(sampler, mean, desk, self._rule, counts.seen, goal, from_bias, choice, stage, times, steps)
        self._listed = counts.succ_ptr[-1]
        self._check_rounds(stage.where[0] + 1)

    def plan_perturbed(self, counts: Counts, t: int, *, span_bound: float, mixture: bool) -> Plan:
        """Run ScOpt as in the theorem: on M‡ with η_k, from 0, and with the paper's stopping rule for γ_k = 1 − η_k (Fig. 1)."""
        eta = self._eta(counts, t, span_bound)
        bounded = self.region.bounded(counts, t, self.info).augment().perturb(eta, 0)
        solution = solve(
            bounded,
            span_bound=span_bound,
            tol=self.info.size / sqrt(t),
            contraction=1.0 - eta,
            policy="mixture" if mixture else "greedy",
            max_sweeps=_MOST_ROUNDS,
        )
        rule: Any = solution._rule
        self.bias[:] = solution.bias
        pairs = np.stack((rule.pair, rule.least_pair), axis=1).ravel()
        weight = np.where(rule.pair == rule.least_pair, 0.0, rule.weight)
        left = np.maximum(counts.n[pairs], 1)
        return Plan(pairs, weight, bool(weight.any()), left, solution.gain_bounds, solution.span, solution.sweeps)

    def _eta(self, counts: Counts, t: int, c: float) -> float:
        """Return η_k = min{1, (r_max − r_min)/(c t_k), min_{s,a} β_p(s, a, s̄)} with s̄ = 0."""
        law, info, seen = self.region.law(t, self.info), self.info, counts.seen
        row, here = np.repeat(np.arange(info.n_pairs), np.diff(counts.succ_ptr)), counts.succ == 0
        error = np.zeros(info.n_pairs)
        error[row[here]] = seen.p_error[: here.size][here]
        root, linear = bernstein_factors(law.p_log, law.p_scale)
        radii = root * error + linear * seen.inverse  # as the set has them, to the last bit
        return float(min(1.0, info.size / (c * t) if c > 0 else 1.0, radii.min()))

    def _lay_out(self, counts: Counts) -> Desk:
        """Return the arrays for the kernels; they are made anew only when the counts were moved to larger ones."""
        info, seen = self.info, counts.seen
        before = self._seen
        if before is None or before.succ is not seen.succ or before.succ_ptr is not seen.succ_ptr:
            room = seen.succ.size
            ends, self._seen, self._listed = new_ends(info.n_pairs, room), seen, -1
            parts = (seen.succ_ptr, seen.succ, ends.low, ends.room, ends.slack, ends.rest)
            model = Arrays(self.region.kind, info.pair_ptr, *map(_read_only, parts))
            one, other = (new_workspace(info.n_states, info.n_pairs, room) for _ in range(2))
            self._desk = Desk(
                model, ends, _read_only(ends.r_high), self._least, one, other, self._rows,
                new_frozen(info.n_states, room), self.bias, self._u, self._best, self._all, self._progress, self.clock,
                np.zeros(2, dtype=np.int64),
            )  # fmt: skip
        if self._listed != seen.succ_ptr[-1]:
            self._listed = seen.succ_ptr[-1]
            by_length(seen.succ_ptr, self._all, self._desk.ws.pairs)
        return self._desk

    def _iterate(self, counts: Counts, t: int, goal: Goal, from_bias: bool) -> tuple[Plan | None, int]:
        """Sweep until the bracket closes; return the plan (None where an iterate's span exceeds ``goal.widest``) and the sweeps."""
        choice, progress, desk = new_choice(self.info.n_states), self._progress, self._lay_out(counts)
        start_planning(progress, desk.rows.lead, desk.v, from_bias)
        while True:
            outcome, low, high, mixes, span = plan_episode(desk, self._rule, counts.seen, goal, t, choice)
            if outcome == CONVERGED:
                sweeps = int(progress[0])
                bounds = low + self.info.r_min, high + self.info.r_min
                return Plan(choice.pairs, choice.weight, mixes, choice.left, bounds, span, sweeps), sweeps
            if outcome == TOO_WIDE:
                return None, int(progress[0])
            self._check_rounds(t)

    def _check_rounds(self, t: int) -> None:
        """Give up on a plan that does not converge."""
        if self._progress[2] >= _MOST_ROUNDS:
            sweeps, tol = int(self._progress[0]), self.info.size / sqrt(t)
            raise NotConvergedError(
                f"learn: planning did not converge in {sweeps} sweeps to a gain bracket of {tol:g}.", None
            )


def _read_only(array: Any) -> Any:
    """Return a view that may not be written to: one type for all models, so that kernels compile once."""
    view = array.view()
    view.flags.writeable = False
    return view
