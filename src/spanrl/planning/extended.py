"""Plan on the plausible models of a learner, episode after episode: arrays are kept, nothing is validated twice."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.episode import plan_episode
from spanrl.confidence.radii import bernstein_factors
from spanrl.confidence.regions import Ends, Region, new_ends
from spanrl.errors import NotConvergedError
from spanrl.kernels.extended import CONVERGED, TOO_WIDE
from spanrl.kernels.layout import Arrays, Workspace, new_workspace
from spanrl.models.counts import Counts
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
        """Allocate for a problem."""
        S, k = info.n_states, info.n_pairs
        self.info, self.region, self.bias = info, region, np.zeros(S)
        self._u, self._best = np.empty(S), np.empty(S, dtype=np.int64)
        self._least = _read_only(np.zeros(k))  # rewards augmented: B_r reaches down to r_min, from where they count
        self._room = -1
        self._table: Any = None
        self._model: Arrays
        self._reward: NDArray[np.float64]
        self._ends: Ends
        self._workspaces: tuple[Workspace, ...]
        self._budget = max(1, int(2e7 / (50 * k)))  # full sweeps in about 0.1 s: Ctrl-C is seen in between

    def plan(
        self, counts: Counts, t: int, *, span_bound: float, mixture: bool, from_bias: bool, plain: bool = False
    ) -> Plan:
        """Run ScOpt (span_bound = ∞: EVI) on the set at time t, to a gain bracket of (r_max − r_min)/√t.

        ``from_bias`` starts at the last bias instead of 0. ``plain`` runs EVI from 0 first and keeps its policy if no iterate's span
        exceeds the bound.
        """
        before = 0
        if plain or not from_bias:
            self.bias[:] = 0.0
        if plain:
            plan, before = self._iterate(counts, t, inf, span_bound, 0, mixture)
            if plan is not None:
                return plan
            self.bias[:] = 0.0
        plan, _ = self._iterate(counts, t, span_bound, inf, _INNER if from_bias else 0, mixture)
        assert plan is not None
        return plan._replace(sweeps=plan.sweeps + before) if before else plan

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
        self.bias = solution.bias.copy()
        pairs = np.stack((rule.pair, rule.least_pair), axis=1).ravel()
        weight = np.where(rule.pair == rule.least_pair, 0.0, rule.weight)
        left = np.maximum(counts.n[pairs], 1)
        return Plan(pairs, weight, bool(weight.any()), left, solution.gain_bounds, solution.span, solution.sweeps)

    def _eta(self, counts: Counts, t: int, c: float) -> float:
        """Return η_k = min{1, (r_max − r_min)/(c t_k), min_{s,a} β_p(s, a, s̄)} with s̄ = 0."""
        law, info, shares = self.region.law(t, self.info), self.info, counts.shares
        row, here = np.repeat(np.arange(info.n_pairs), np.diff(counts.succ_ptr)), counts.succ == 0
        error = np.zeros(info.n_pairs)
        error[row[here]] = shares.p_error[here]
        root, linear = bernstein_factors(law.p_log, law.p_scale)
        radii = root * error + linear * shares.inverse  # as the set has them, to the last bit
        return float(min(1.0, info.size / (c * t) if c > 0 else 1.0, radii.min()))

    def _layout(self, counts: Counts) -> Arrays:
        """Return the set as the kernels take it; its arrays are made anew only when new successors were seen."""
        if self._table is counts.succ:
            return self._model
        info, n = self.info, counts.succ.size
        if self._room < n:
            self._room = 2 * n  # more will come
            self._ends = new_ends(info.n_pairs, self._room)
            self._workspaces = tuple(new_workspace(info.n_states, info.n_pairs, self._room) for _ in range(2))
        ends, self._table = self._ends, counts.succ
        parts = (counts.succ_ptr, counts.succ, ends.low, ends.room, ends.slack, ends.rest)
        self._reward = _read_only(ends.r_high)
        self._model = Arrays(self.region.kind, info.pair_ptr, *map(_read_only, parts))
        return self._model

    def _iterate(
        self, counts: Counts, t: int, c: float, widest: float, inner: int, mixture: bool
    ) -> tuple[Plan | None, int]:
        """Sweep until the bracket closes; return the plan (None where an iterate's span exceeds ``widest``) and the sweeps."""
        S, tol, progress = self.info.n_states, self.info.size / sqrt(t), np.array([0.0, 1.0, 0.0, inf, 4.0, inf])
        pairs, weight, left = np.empty(2 * S, dtype=np.int64), np.empty(S), np.empty(2 * S, dtype=np.int64)
        model = self._layout(counts)
        arrays = (counts.n, counts.r_mean, counts.shares, self._ends, self._reward, self._least)
        options = (c, tol, widest, inner, mixture, progress, self._budget)
        shared = (
            model,
            self.region.law(t, self.info),
            *arrays,
            *self._workspaces,
            self.bias,
            self._u,
            self._best,
            *options,
        )
        while progress[2] < _MOST_ROUNDS:
            outcome, low, high, mixes, span = plan_episode(*shared, pairs, weight, left)
            if outcome == CONVERGED:
                sweeps = int(progress[0])
                bounds = low + self.info.r_min, high + self.info.r_min
                return Plan(pairs, weight, mixes, left, bounds, span, sweeps), sweeps
            if outcome == TOO_WIDE:
                return None, int(progress[0])
        raise NotConvergedError(
            f"learn: planning did not converge in {int(progress[0])} sweeps to a gain bracket of {tol:g}.", None
        )


def _read_only(array: Any) -> Any:
    """Return a view that may not be written to: one type for all models, so that kernels compile once."""
    view = array.view()
    view.flags.writeable = False
    return view
