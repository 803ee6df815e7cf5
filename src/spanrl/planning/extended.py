"""Plan on the plausible models of a learner, episode after episode: arrays are kept, nothing is validated twice."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.radii import bernstein
from spanrl.confidence.regions import Ends, Region, fill_rows, new_ends
from spanrl.errors import NotConvergedError
from spanrl.kernels.extended import CONVERGED, TOO_WIDE, choose, improve
from spanrl.kernels.layout import Arrays, new_workspace
from spanrl.models.counts import Counts
from spanrl.models.info import ProblemInfo
from spanrl.models.policy import Policy
from spanrl.planning.solve import solve

_MOST_ROUNDS = 10**8
_INNER = 8  # sweeps over frozen actions between two full ones


class Plan(NamedTuple):
    """A policy as pairs: in state s pair ``pairs[2s]``, with probability weight[s] pair ``pairs[2s+1]``; and what is known of it."""

    pairs: NDArray[np.int64]
    weight: NDArray[np.float64]
    mixes: bool
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
        self._u, self._best, self._all = np.empty(S), np.zeros(S, dtype=np.int64), np.arange(k)
        self._least = _read_only(np.full(k, info.r_min))  # rewards augmented: B_r reaches down to r_min
        self._ends, self._workspaces = new_ends(k, 0), (new_workspace(S, k, 0), new_workspace(S, k, 0))
        self._budget = max(1, int(2e7 / (50 * k)))  # full sweeps in about 0.1 s: Ctrl-C is seen in between

    def plan(self, counts: Counts, t: int, *, span_bound: float, mixture: bool, from_bias: bool, plain: bool = False) -> Plan:
        """Run ScOpt (span_bound = ∞: EVI) on the set at time t, to a gain bracket of (r_max − r_min)/√t.

        ``from_bias`` starts at the last bias instead of 0. ``plain`` runs EVI from 0 first and keeps its policy if no iterate's span exceeds
        the bound.
        """
        model, reward = self._build(counts, t)
        tol, c = self.info.size / sqrt(t), span_bound
        sweeps = 0.0
        if plain:
            self.bias[:] = 0.0
            outcome, low, high, sweeps = self._iterate(model, reward, inf, tol, c, 0)
            if outcome == CONVERGED:
                return self._decide(model, inf, tol, mixture, low, high, sweeps)
        if not from_bias or plain:
            self.bias[:] = 0.0
        _, low, high, more = self._iterate(model, reward, c, tol, inf, _INNER)
        return self._decide(model, c, tol, mixture, low, high, sweeps + more)

    def plan_perturbed(self, counts: Counts, t: int, *, span_bound: float, mixture: bool) -> Plan:
        """Run ScOpt as in the theorem: on M‡ with η_k, from 0, and with the paper's stopping rule for γ_k = 1 − η_k (Fig. 4)."""
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
        rule, self.bias = solution._rule, solution.bias.copy()
        pairs = np.stack((rule.pair, rule.least_pair), axis=1).ravel()
        weight = np.where(rule.pair == rule.least_pair, 0.0, rule.weight)
        return Plan(pairs, weight, bool(weight.any()), solution.gain_bounds, solution.span, solution.sweeps)

    def _eta(self, counts: Counts, t: int, c: float) -> float:
        """Return η_k = min{1, (r_max − r_min)/(c t_k), min_{s,a} β_p(s, a, s̄)} with s̄ = 0."""
        law, info = self.region.law(t, self.info), self.info
        rows = np.repeat(self._all, np.diff(counts.succ_ptr))
        p = np.zeros(info.n_pairs)
        p[rows[counts.succ == 0]] = counts.times[counts.succ == 0]
        p /= np.maximum(counts.n, 1)
        radii = [
            bernstein(q * (1.0 - q), int(n), law.p_log, law.p_scale, 1.0) for q, n in zip(p, counts.n, strict=True)
        ]
        return min(1.0, info.size / (c * t) if c > 0 else 1.0, *radii)

    def _build(self, counts: Counts, t: int) -> tuple[Arrays, NDArray[np.float64]]:
        """Write the set at time t; return it as the kernels take it, with the optimistic rewards."""
        info, n = self.info, counts.succ.size
        if self._ends.low.size < n:
            room = 2 * n  # successors still come
            self._ends = Ends(np.empty(room), np.empty(room), *self._ends[2:])
            self._workspaces = (
                new_workspace(info.n_states, info.n_pairs, room),
                new_workspace(info.n_states, info.n_pairs, room),
            )
        ends, ws = self._ends, self._workspaces[0]
        law = self.region.law(t, info)
        fill_rows(self.region.kind, law, self._all, *counts.statistics(), counts.succ_ptr, counts.times, *ends)
        ws.succ[:n], ws.low[:n], ws.room[:n] = counts.succ, ends.low[:n], ends.room[:n]
        parts = (counts.succ_ptr, counts.succ, ends.low, ends.room, ends.slack, ends.rest)
        return Arrays(self.region.kind, info.pair_ptr, *map(_read_only, parts)), _read_only(ends.r_high)

    def _iterate(
        self, model: Arrays, reward: Any, c: float, tol: float, widest: float, inner: int
    ) -> tuple[int, float, float, float]:
        """Sweep until the bracket closes (or, with ``widest``, an iterate is too wide); return (outcome, low, high, sweeps)."""
        progress = np.array([0.0, 1.0, 0.0, inf, 4.0])
        shared = (model, reward, self._workspaces[0], self.bias, self._u, self._best, c, tol, widest, inner, progress)
        while progress[2] < _MOST_ROUNDS:
            outcome, low, high = improve(*shared, self._budget)
            if outcome in (CONVERGED, TOO_WIDE):
                return outcome, low, high, progress[0]
        raise NotConvergedError(
            f"learn: planning did not converge in {int(progress[0])} sweeps: the gain is in [{low:.9g}, {high:.9g}], wider than {tol:g}.", None
        )

    def _decide(
        self, model: Arrays, c: float, tol: float, mixture: bool, low: float, high: float, sweeps: float
    ) -> Plan:
        pairs, weight = np.empty(2 * self.info.n_states, dtype=np.int64), np.empty(self.info.n_states)
        room = max(tol - (high - low), 0.0)
        ws, ws_least = self._workspaces
        mixes = choose(model, ws, self._least, ws_least, self.bias, c, room, mixture, pairs, weight)
        return Plan(pairs, weight, mixes, (low, high), float(np.ptp(self.bias)), int(sweeps))


def _read_only(array: Any) -> Any:
    """Return a view that may not be written to: one type for all models, so that kernels compile once."""
    view = array.view()
    view.flags.writeable = False
    return view
