"""Plan on the estimates of a learner, episode after episode: arrays are kept, nothing is validated twice."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.agents.episodes import LIMIT, TOLERANCE, EpisodeRule
from spanrl.agents.loop import Problem, Stage, plan_once, play
from spanrl.confidence.estimate import FILL, Estimate, Known, new_numbers, read_only
from spanrl.confidence.intersection import new_held
from spanrl.errors import NotConvergedError, OptionError
from spanrl.kernels.counting import add_batch, note_changes
from spanrl.kernels.extended import CONVERGED, TOO_WIDE, start_planning
from spanrl.kernels.frozen_policy import by_length, new_frozen_policy
from spanrl.kernels.jit import Passed, check_part
from spanrl.kernels.layout import BALL, BONUS, BOX, KL, NOSS, PLAIN, Arrays, new_workspace
from spanrl.kernels.noss import MOST_SWEEPS
from spanrl.kernels.plan_workspace import (
    N_SWEEPS,
    ROUNDS,
    WIDTH,
    EpisodePolicy,
    Goal,
    PlanWorkspace,
    new_episode_policy,
    new_ranking,
    new_rows,
)
from spanrl.kernels.projection import new_differences
from spanrl.models.counts import Batch, Counts, Seen
from spanrl.models.info import ProblemInfo
from spanrl.models.policy import Policy
from spanrl.planning.solve import solve

_MOST_ROUNDS = 10**8
_INNER = 6  # sweeps over frozen actions between two full ones


class Plan(NamedTuple):
    """A policy as pairs: in state s pair ``pairs[2s]``, with probability weight[s] pair ``pairs[2s+1]``; and what is known of it.

    The episode rule has ``allowed`` [2S] each of the pairs so many visits, and the episode ``steps`` in all; ``left`` [2S] are left.
    """

    pairs: NDArray[np.int64]
    weight: NDArray[np.float64]
    mixes: bool
    left: NDArray[np.int64]
    gain_bounds: tuple[float, float]
    span: float
    sweeps: int
    allowed: NDArray[np.int64]
    steps: int

    @property
    def choice(self) -> EpisodePolicy:
        """The arrays of the policy, as the kernels take them."""
        return EpisodePolicy(self.pairs, self.weight, self.left, self.allowed)

    def policy(self, info: ProblemInfo) -> Policy:
        """Return it as a table of probabilities."""
        probs = np.zeros((info.n_states, info.n_actions))
        states = np.arange(info.n_states)
        probs[states, info.action[self.pairs[::2]]] = 1.0 - self.weight
        probs[states, info.action[self.pairs[1::2]]] += self.weight
        return Policy(probs)


class Start(NamedTuple):
    """Where an episode begins: its first step t_k, its first state, the steps of the one before, and the agent's random words."""

    t: int
    state: int
    steps: int
    words: NDArray[np.uint64]


class Planner:
    """The planner of one learner: the numbers of its estimate, the sorted states, and the bias of the last episode."""

    def __init__(
        self, info: ProblemInfo, estimate: Estimate, episodes: EpisodeRule, tolerance: Passed, intersect: bool = False,
        differences: NDArray[np.float64] | None = None,
    ) -> None:  # fmt: skip
        """Allocate for a problem; what depends on the number of successors comes with the first plan.

        ``differences`` [S, S], closed and finite, take the place of a span bound.
        """
        S, k = info.n_states, info.n_pairs
        if getattr(estimate, "geometry", None) not in (PLAIN, BOX, BALL, KL, BONUS, NOSS):
            raise OptionError(
                f"Rules: the geometry of {type(estimate).__name__} must be PLAIN, BOX, BALL, KL, BONUS or NOSS."
            )
        if intersect and not (estimate.is_uniform and estimate.geometry == BOX and not estimate.rewrites):
            raise OptionError(
                f"Rules: the sets of {type(estimate).__name__} cannot be intersected. Leave intersect out."
            )
        self.info, self.estimate, self.bias = info, estimate, np.zeros(S)
        self.intersects, self.held = intersect, new_held(info if intersect else None)
        self.clock, self.n_cut = np.zeros(5), np.zeros(1, dtype=np.int64)
        parts = (estimate.fill, FILL), (episodes.limit, LIMIT), (tolerance, TOLERANCE)
        self._parts = tuple(check_part(part, signature) for part, signature in parts)
        self._settings = _numbers(estimate.settings(info)), _numbers(episodes.settings(info))
        self._u, self._best, self._all = np.empty(S), np.empty(S, dtype=np.int64), np.arange(k)
        self._rows = new_rows(info.pair_ptr)
        self._least, self._progress = read_only(np.zeros(k)), np.zeros(9)
        self._seen: Seen | None = None
        self._listed = -1
        self._work: PlanWorkspace
        self._problem: Problem
        self._differences = new_differences(differences)
        if differences is not None:
            self.bias[:] = differences.min(axis=1) - differences[0].min()  # the projection of 0
        self._budget = max(
            1, int(2e7 / (50 * k + self._differences.bound.size))
        )  # full sweeps in about 0.1 s: Ctrl-C is seen in between

    @property
    def is_cut(self) -> bool:
        """Whether plans end after a number of sweeps, converged or not: with NOSS."""
        return self.estimate.geometry == NOSS

    @property
    def notes(self) -> dict[str, int]:
        """What was counted: with intersections, how often one was empty; with NOSS, how many plans were cut."""
        found = {"fallbacks": int(self.held.n_fallbacks[0])} if self.intersects else {}
        return found | ({"plans_cut": int(self.n_cut[0])} if self.is_cut else {})

    def take_in(self, counts: Counts, batch: Batch) -> None:
        """Bring ``counts`` up to date with the experience of an episode."""
        work = self._lay_out(counts)
        if add_batch(*batch, counts.seen, self._problem.moved) < 0:
            counts.reserve(2 * (counts.succ.size + batch.pair.size))  # more will come
            work = self._lay_out(counts)
            add_batch(*batch, counts.seen, self._problem.moved)
        work.n_changed[0] = note_changes(batch.pair, work.changed, work.n_changed[0])

    def plan(
        self, counts: Counts, start: Start, *, span_bound: float, mixture: bool, from_bias: bool, plain: bool = False
    ) -> Plan:
        """Run ScOpt (span_bound = ∞: EVI) on what the estimate says at the start of an episode, to the gain bracket of the tolerance.

        ``from_bias`` starts at the last bias instead of 0. ``plain`` runs EVI from 0 first and keeps its policy if no iterate's span
        exceeds the bound.
        """
        before = 0
        if plain:
            plan, before = self._iterate(counts, start, self.goal(inf, mixture, False, span_bound), False)
            if plan is not None:
                return plan
        goal = self.goal(span_bound, mixture, from_bias)
        plan, _ = self._iterate(counts, start, goal, from_bias and not plain)
        assert plan is not None
        return plan._replace(sweeps=plan.sweeps + before) if before else plan

    def goal(self, span_bound: float, mixture: bool, from_bias: bool, widest: float = inf) -> Goal:
        """Return the goal of a plan: span bound, sweeps between two over all actions, budget."""
        c = inf if self._differences.bound.size else float(span_bound)
        if self.is_cut:  # not monotone: sweeps over frozen actions and skipped pairs rest on that
            return Goal(c, float(widest), 0, bool(mixture), self._budget, float(MOST_SWEEPS))
        return Goal(c, float(widest), _INNER if from_bias else 0, bool(mixture), self._budget)

    def play(
        self, sampler: Any, mean: NDArray[np.float64], counts: Counts, goal: Goal, from_bias: bool, choice: EpisodePolicy,
        stage: Stage, times: NDArray[np.int64], steps: int,
    ) -> None:  # fmt: skip
        """Go on with a run in compiled code, planning included: see :func:`spanrl.agents.loop.play`."""
        counts.reserve(sampler.succ.size)  # no more successors than that can be seen
        work = self._lay_out(counts)
        play(
            *self._parts, sampler, mean, work, self._problem, counts.seen, goal, from_bias, choice, stage, times, steps
        )
        self._listed = counts.succ_ptr[-1]
        self._check_rounds()

    def plan_perturbed(self, counts: Counts, start: Start, *, span_bound: float, mixture: bool) -> Plan:
        """Run ScOpt as in the theorem: on M‡ with η_k, from 0, and with the paper's stopping rule for γ_k = 1 − η_k (Fig. 1)."""
        t, info = start.t, self.info
        eta = self._eta(counts, t, span_bound)
        bounded = self.estimate.bounded(counts, t, info, start.state).augment().perturb(eta, 0)
        solution = solve(
            bounded,
            span_bound=span_bound,
            tol=info.size / sqrt(t),
            contraction=1.0 - eta,
            policy="mixture" if mixture else "greedy",
            max_sweeps=_MOST_ROUNDS,
        )
        rule: Any = solution._rule
        self.bias[:] = solution.bias
        pairs = np.stack((rule.pair, rule.least_pair), axis=1).ravel()
        weight = np.where(rule.pair == rule.least_pair, 0.0, rule.weight)
        numbers = int(info.n_states), int(info.max_actions), float(info.r_min), float(info.r_max), info.pair_ptr
        known = Known(counts.seen, self._all, t, start.state, start.steps, *numbers, start.words)
        allowed = np.empty_like(pairs)
        steps = int(self._parts[1](known, self._settings[1], pairs, allowed))
        found = solution.gain_bounds, solution.span, solution.sweeps
        return Plan(pairs, weight, bool(weight.any()), allowed.copy(), *found, allowed, steps)

    def _eta(self, counts: Counts, t: int, c: float) -> float:
        """Return η_k = min{1, (r_max − r_min)/(c t_k), min_{s,a} β_p(s, a, s̄)} with s̄ = 0."""
        estimate: Any = self.estimate
        radii = estimate.radii_at(counts, t, self.info, 0)
        return float(min(1.0, self.info.size / (c * t) if c > 0 else 1.0, radii.min()))

    def _lay_out(self, counts: Counts) -> PlanWorkspace:
        """Return the arrays for the kernels; they are made anew only when the counts were moved to larger ones."""
        info, seen, estimate = self.info, counts.seen, self.estimate
        before = self._seen
        if before is None or before.succ is not seen.succ or before.succ_ptr is not seen.succ_ptr:
            S, k = int(info.n_states), info.n_pairs
            kept, sets, moved = new_numbers(estimate, info, seen, 2 if self.intersects else 0)
            if self.intersects:
                self.held = self.held.moved_to(moved[-2:], int(seen.succ_ptr[-1]))
            self._seen, self._listed = seen, -1
            slack = sets.size if estimate.geometry in (BALL, KL, BONUS, NOSS) else self._rows.slack
            parts = (sets.succ_ptr, sets.succ, sets.low, sets.room, slack, sets.rest)
            model, room = Arrays(estimate.geometry, info.pair_ptr, *map(read_only, parts)), sets.succ.size
            shifted = sets.r_high if info.r_min == 0 else np.empty(k)
            listed = 0 if estimate.geometry == PLAIN else room  # rows of plain models are not sorted
            one, other = (new_ranking(new_workspace(S, k, listed), estimate.closes_states) for _ in range(2))
            self._work = PlanWorkspace(
                model, sets, estimate.owns_rows, self.intersects or not estimate.roomy, np.arange(k), np.array([k]),
                read_only(shifted), shifted, self._least, one[0], other[0], one[1], other[1], self._rows,
                new_frozen_policy(S, room), self._differences, self.bias, self._u, self._best, self._all, self._progress, self.n_cut,
                self.clock, np.zeros(2, dtype=np.int64),
            )  # fmt: skip
            numbers = S, int(info.max_actions), float(info.r_min), float(info.r_max), info.pair_ptr
            self._problem = Problem(*numbers, *self._settings, kept, moved, self.held)
        if not estimate.owns_rows and self._listed != seen.succ_ptr[-1]:
            self._listed = seen.succ_ptr[-1]
            by_length(seen.succ_ptr, self._all, self._work.ws.pairs)
        return self._work

    def _iterate(self, counts: Counts, start: Start, goal: Goal, from_bias: bool) -> tuple[Plan | None, int]:
        """Sweep until the bracket closes; return the plan (None where an iterate's span exceeds ``goal.widest``) and the sweeps."""
        choice, progress, work = new_episode_policy(self.info.n_states), self._progress, self._lay_out(counts)
        start_planning(progress, work.rows.lead, work.v, work.differences, from_bias)
        while True:
            outcome, low, high, mixes, span, steps = plan_once(
                *self._parts, work, self._problem, counts.seen, goal, *start, choice
            )
            if outcome == CONVERGED:
                sweeps = int(progress[N_SWEEPS])
                bounds = low + self.info.r_min, high + self.info.r_min
                found = choice.left, bounds, span, sweeps, choice.allowed, int(steps)
                return Plan(choice.pairs, choice.weight, mixes, *found), sweeps
            if outcome == TOO_WIDE:
                return None, int(progress[N_SWEEPS])
            self._check_rounds()

    def _check_rounds(self) -> None:
        """Give up on a plan that does not converge."""
        if self._progress[ROUNDS] >= _MOST_ROUNDS:
            sweeps, width = int(self._progress[N_SWEEPS]), self._progress[WIDTH]
            raise NotConvergedError(
                f"learn: planning did not converge in {sweeps} sweeps; the gain bracket is {width:g} wide. "
                "A tolerance must be > 0, and above rounding.",
                None,
            )


def _numbers(settings: Any) -> NDArray[np.float64]:
    """Return the settings of a part as the kernels take them."""
    return np.ascontiguousarray(settings, dtype=np.float64)
