"""A learner in plain Python with replaceable parts: the same sets, plans and episodes as the fast one, one line a formula.

As :mod:`slow_planning` is for planning: unbroken it must pass every claim; with one part replaced it is a mutant in which the mistake
reaches the confidence set, the plan and the play alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.agents.episodes import UNLIMITED
from spanrl.agents.learner import Episode, Learner
from spanrl.agents.offers import HOOK, SETS
from spanrl.agents.planner import Plan
from spanrl.agents.registry import Agent
from spanrl.confidence.estimate import Estimate
from spanrl.confidence.hoeffding import HoeffdingBall
from spanrl.models.bounded import BoundedMDP
from spanrl.models.counts import Batch, Counts
from spanrl.models.info import ProblemInfo
from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.paper.system import System

Radius = Callable[[float, int, float, float, float], float]


def bernstein_with(root: float = 14.0, slope: float = 49 / 3, less: int = 1, inside: bool = True) -> Radius:
    """Return the radius √(14 α σ̂² b/max{1, N}) + (49/3) α r_max b/max{1, N − 1}, with other constants on demand."""

    def radius(variance: float, n: int, b: float, alpha: float, size: float) -> float:
        factor = sqrt(alpha) if inside else alpha
        return factor * sqrt(root * variance * b / max(1, n)) + slope * alpha * size * b / max(1, n - less)

    return radius


def log_with(S: bool = True, A: bool = True, t: bool = True) -> Callable[[ProblemInfo, int, float, bool], float]:
    """Return b = ln(2SAt/δ) as a function of (info, t, δ, whether S counts), with factors left out on demand."""

    def b(info: ProblemInfo, time: int, delta: float, states: bool) -> float:
        most = int(np.bincount(info.pair_state).max())
        return log(2 * (info.n_states if S and states else 1) * (most if A else 1) * (time if t else 1) / delta)

    return b


def unbiased(squares: float, n: int) -> float:
    """Return the sample variance Σ(r − r̂)²/(N − 1), 0 for N ≤ 1."""
    return squares / (n - 1) if n > 1 else 0.0


def cut(centre: float, radius: float, low: float, high: float) -> tuple[float, float]:
    """Return [centre ± radius] ∩ [low, high]."""
    return max(low, centre - radius), min(high, centre + radius)


def double(n: int) -> int:
    """Return how often a pair with N = n may be played in an episode: max{1, N}."""
    return max(1, n)


def accuracy(info: ProblemInfo, t: int) -> float:
    """Return ε_k = (r_max − r_min)/√t_k."""
    return info.size / sqrt(t)


def as_planned(plan: Plan, info: ProblemInfo) -> Plan:
    """Play what was planned."""
    return plan


_BERNSTEIN, _LOG = bernstein_with(), log_with()


@dataclass(frozen=True)
class LearningParts:
    """The formulas of the learner; a mutant replaces one."""

    bernstein: Radius = _BERNSTEIN
    log_term: Callable[[ProblemInfo, int, float, bool], float] = _LOG
    variance: Callable[[float, int], float] = unbiased
    r_ends: Callable[[float, float, float, float], tuple[float, float]] = cut
    p_ends: Callable[[float, float, float, float], tuple[float, float]] = cut
    hoeffding: float = 3.5  # 7/2
    weissman: float = 14.0
    limit: Callable[[int], int] = double
    accuracy: Callable[[ProblemInfo, int], float] = accuracy
    first_step: int = 1  # t_1
    play: Callable[[Plan, ProblemInfo], Plan] = as_planned
    augments: bool = True
    perturbs: bool = True


def plausible(parts: LearningParts, region: Any, counts: Counts, t: int, info: ProblemInfo) -> BoundedMDP:
    """Return the set of plausible models at time t."""
    delta = 1 / sqrt(t) if isinstance(region.delta, str) else region.delta
    r_min, r_max, S = info.r_min, info.r_max, int(info.n_states)
    b = parts.log_term(info, t, delta, True)
    r_ends, p_hats = [], []
    for i, n in enumerate(counts.n.tolist()):
        p_hat = np.zeros(S)
        at = slice(counts.succ_ptr[i], counts.succ_ptr[i + 1])
        p_hat[counts.succ[at]] = counts.times[at] / max(1, n)
        p_hats.append(p_hat)
        if n == 0:
            r_ends.append((r_min, r_max))
            continue
        if isinstance(region, HoeffdingBall):
            radius = (r_max - r_min) * sqrt(parts.hoeffding * b / n)
        else:
            radius = parts.bernstein(parts.variance(counts.r_sq[i], n), n, b, region.r_scale, r_max - r_min)
        r_ends.append(parts.r_ends(counts.r_mean[i], radius, r_min, r_max))
    r_low, r_high = np.array(r_ends).T
    around = {"r_min": min(r_min, r_low.min()), "r_max": max(r_max, r_high.max())}
    build = _balls if isinstance(region, HoeffdingBall) else _boxes
    return build(
        parts, region, counts, p_hats, parts.log_term(info, t, delta, build is _boxes), info, (r_low, r_high), around
    )


def _boxes(
    parts: LearningParts,
    region: Any,
    counts: Counts,
    p_hats: Any,
    b: float,
    info: ProblemInfo,
    rewards: Any,
    around: Any,
) -> BoundedMDP:
    low, high = np.zeros((info.n_pairs, info.n_states)), np.ones((info.n_pairs, info.n_states))
    for i, n in enumerate(counts.n.tolist()):
        for s, p in enumerate(p_hats[i].tolist() if n else ()):
            low[i, s], high[i, s] = parts.p_ends(p, parts.bernstein(p * (1 - p), n, b, region.p_scale, 1.0), 0.0, 1.0)
    table = (np.arange(info.n_pairs + 1) * info.n_states, np.tile(np.arange(info.n_states), info.n_pairs))
    ends = (low.ravel(), high.ravel(), np.zeros(info.n_pairs), *rewards)
    return BoundedMDP.from_pairs(info.pair_state, info.action, *table, *ends, **around, n_actions=info.n_actions)


def _balls(
    parts: LearningParts,
    region: Any,
    counts: Counts,
    p_hats: Any,
    b: float,
    info: ProblemInfo,
    rewards: Any,
    around: Any,
) -> BoundedMDP:
    unknown = np.eye(info.n_states)[0]
    centre = np.array([p if n else unknown for p, n in zip(p_hats, counts.n, strict=True)])
    table = (np.arange(info.n_pairs + 1) * info.n_states, np.tile(np.arange(info.n_states), info.n_pairs))
    mdp = MDP.from_pairs(
        info.pair_state, info.action, *table, centre.ravel(), np.zeros(info.n_pairs), n_actions=info.n_actions
    )
    radius = [min(2.0, sqrt(parts.weissman * info.n_states * b / n)) if n else 2.0 for n in counts.n]
    return BoundedMDP.l1_ball(mdp, radius, *rewards, **around)


class SlowLearner(Learner):
    """The learner, made of ``parts``; it plans with the functions of ``planner``."""

    offers = frozenset({HOOK, SETS})

    def __init__(self, fast: Learner, parts: LearningParts, planner: System) -> None:
        """Take over the rules of a learner that has not begun."""
        super().__init__(fast.rules, fast.info, fast.rng)
        self._parts, self._with = parts, planner
        self._v = np.zeros(fast.info.n_states)
        self._history: Counter[tuple[int, float, int]] = Counter()

    @property
    def bias(self) -> NDArray[np.float64]:
        """The optimistic bias."""
        return self._v.copy()

    def confidence_set(self) -> BoundedMDP:
        """Return M_k."""
        assert self.episode is not None
        return plausible(self._parts, self.rules.estimate, self.counts, self.episode.start, self.info)

    def begin_episode(self, batch: Batch | None, state: int) -> None:
        """Count, plan, and say how long each pair may be played."""
        parts, start = self._parts, self.t + 1
        for pair, reward, succ, times in zip(*(column.tolist() for column in batch or ()), strict=True):
            self._history[pair, reward, succ] += times
        self.counts = counts_of(self._history, self.info.n_pairs)
        plan = parts.play(self._plan(start, state), self.info)
        allowed = np.array([parts.limit(int(n)) for n in self.counts.n[plan.pairs]])
        self.plan = plan._replace(left=allowed.copy(), allowed=allowed)
        self._steps_left = plan.steps
        low, high = plan.gain_bounds
        begun = start - 1 + parts.first_step
        self.episode = Episode(begun, (low + high) / 2, plan.span, plan.sweeps, not plan.mixes, low, high)
        self.n_episodes += 1
        for told in self.on_episode:
            told(self)

    def _plan(self, t: int, state: int) -> Plan:
        rules, parts, info = self.rules, self._parts, self.info
        model = plausible(parts, rules.estimate, self.counts, t, info)
        model = self._with.augment(model) if parts.augments else model
        options: dict[str, Any] = {"v_init": self._v} if rules.warm_start else {"method": "value-iteration"}
        if rules.perturb and parts.perturbs:
            eta = self._eta(t)
            model, options = self._with.perturb(model, eta, 0), {"contraction": 1 - eta}
        found = self._with.solve(
            model,
            span_bound=rules.span_bound,
            tol=parts.accuracy(info, t),
            policy="mixture" if rules.mixture else "greedy",
            **options,
        )
        self._v = np.array(found.bias)
        return plan_of(found.policy, info, found.gain_bounds, found.span, found.sweeps)

    def _eta(self, t: int) -> float:
        region: Any = self.rules.estimate
        counts, info = self.counts, self.info
        assert not isinstance(region, HoeffdingBall)
        delta = 1 / sqrt(t) if isinstance(region.delta, str) else region.delta
        b, radii = self._parts.log_term(info, t, delta, True), []
        for i, n in enumerate(counts.n.tolist()):
            at = slice(counts.succ_ptr[i], counts.succ_ptr[i + 1])
            p = float(counts.times[at][counts.succ[at] == 0].sum()) / max(1, n)
            radii.append(self._parts.bernstein(p * (1 - p), n, b, region.p_scale, 1.0))
        return float(min(1.0, info.size / (self.rules.span_bound * t), *radii))


def counts_of(history: Counter[tuple[int, float, int]], n_pairs: int) -> Counts:
    """Return the statistics of {(pair, reward, successor): times}."""
    n, means, squares, ends = [], [], [], [0]
    succ: list[int] = []
    times: list[int] = []
    for i in range(n_pairs):
        mine = {(r, s): k for (pair, r, s), k in history.items() if pair == i}
        n.append(sum(mine.values()))
        means.append(sum(r * k for (r, _), k in mine.items()) / max(1, n[-1]))
        squares.append(sum((r - means[-1]) ** 2 * k for (r, _), k in mine.items()))
        seen = sorted({s for _, s in mine})
        succ += seen
        times += [sum(k for (_, x), k in mine.items() if x == s) for s in seen]
        ends.append(len(succ))
    whole, real = np.int64, np.float64
    statistics = (np.array(n, dtype=whole), np.array(means, dtype=real), np.array(squares, dtype=real))
    return Counts(
        *statistics, np.array(ends, dtype=whole), np.array(succ, dtype=np.uint32), np.array(times, dtype=whole)
    )


def plan_of(policy: Policy, info: ProblemInfo, bounds: tuple[float, float], spread: float, sweeps: int) -> Plan:
    """Return a policy of at most two actions a state as pairs and weights."""
    pairs, weight = np.zeros(2 * info.n_states, dtype=np.int64), np.zeros(info.n_states)
    for s in range(info.n_states):
        first = int(info.pair_ptr[s])
        chance = policy.probs[s, info.action[first : info.pair_ptr[s + 1]]]
        order = np.argsort(-chance, kind="stable")[:2] + first
        pairs[2 * s : 2 * s + 2] = order[0]
        if order.size == 2 and chance[order[1] - first] > 0:
            pairs[2 * s + 1], weight[s] = order[1], chance[order[1] - first]
    nobody = np.zeros(2 * info.n_states, dtype=np.int64)
    return Plan(pairs, weight, bool(weight.any()), nobody, bounds, spread, sweeps, nobody, UNLIMITED)


def slow_learners(system: System, planner: System | None = None, **parts: Any) -> System:
    """Return a system whose learners are slow ones, some :class:`LearningParts` replaced; they plan with ``planner`` (default: itself)."""
    made = LearningParts(**parts)

    def start(agent: Agent, info: ProblemInfo, rng: Any) -> SlowLearner:
        return SlowLearner(system.start(agent, info, rng), made, planner or system)

    def confidence_set(region: Estimate, counts: Counts, t: int, info: ProblemInfo) -> BoundedMDP:
        return plausible(made, region, counts, t, info)

    return system.changed(start=start, confidence_set=confidence_set)
