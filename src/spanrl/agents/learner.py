"""The learner behind all agents that plan: estimate × projection × policy rule × episode rule.

::

    for episodes k = 1, 2, …
        t_k ← steps done + 1;  N_k ← visits so far
        M_k ← what the estimate makes of it at time t_k: a set of models, or one
        v, g ← T_c iterated on M_k until the gain bracket is as narrow as the tolerance says (c = ∞: extended value iteration)
        π_k ← the mixture (or the greedy action) of G_c v
        play π_k until the episode rule allows the pair about to be played no more visits, or the episode no more steps

An agent is a description of these parts (:class:`Rules`). ``act`` and ``observe`` take one step at a time; :func:`spanrl.learn` runs the
same episodes in compiled code. Both see the same numbers in the same order, so both make the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.agents.episodes import DOUBLING, EpisodeRule, one_over_root
from spanrl.agents.loop import FROM, LEFT, PLANNING, RECORDED, STUCK, Stage, T
from spanrl.agents.observing import checked_reward, checked_state
from spanrl.agents.offers import EPISODES, HOOK, RESUME, SETS
from spanrl.agents.planner import Plan, Planner, Start
from spanrl.confidence.estimate import Estimate
from spanrl.confidence.intersection import Held, held_from
from spanrl.errors import OptionError
from spanrl.kernels.jit import Passed
from spanrl.kernels.layout import BONUS, NOSS
from spanrl.kernels.plan_workspace import new_episode_policy
from spanrl.kernels.sampling import Sampler
from spanrl.models.bounded import BoundedMDP
from spanrl.models.counts import Batch, Counts
from spanrl.models.info import ProblemInfo
from spanrl.models.policy import Policy
from spanrl.models.states import LARGEST, StateReader
from spanrl.planning.differences import BiasDifferences
from spanrl.seeding import get_state, is_compilable, set_state


class Episode(NamedTuple):
    """The record of one episode."""

    start: int
    gain: float
    span: float
    sweeps: int
    deterministic: bool
    gain_low: float
    gain_high: float


Columns = tuple[list[Any], ...]
"""Many episodes: a list for each field."""


@dataclass(frozen=True)
class Rules:
    """What makes an agent: its estimate, how it plans on it, and when its episodes end.

    Args:
        estimate: what it makes of its experience.
        episodes: when an episode ends.
        tolerance: how wide the gain bracket of a plan may be.
        span_bound: c of T_c; ∞ for none.
        mixture: in truncated states mix with the smallest action, as G_c does; otherwise play greedily.
        perturb: plan as in the theorem of SCAL; its estimate has ``radii_at``.
        best_of_both: run extended value iteration first, see :class:`spanrl.SCAL`.
        warm_start: start each plan at the last bias.
        intersect: plan on the intersection of the sets of all episodes so far, see :mod:`spanrl.confidence.intersection`.
        needs_span: the bound on sp(h*) that the guarantee rests on, ∞ for none; None (default) where it is ``span_bound``.
        differences: constraints h(s) − h(s') ≤ d(s, s') on the bias, besides the span bound; the policy is greedy then, and nothing else.
    """

    estimate: Estimate
    episodes: EpisodeRule = DOUBLING
    tolerance: Passed = one_over_root
    span_bound: float = inf
    mixture: bool = True
    perturb: bool = False
    best_of_both: bool = False
    warm_start: bool = True
    intersect: bool = False
    differences: BiasDifferences | None = None
    needs_span: float | None = None

    def __post_init__(self) -> None:
        """Check what goes together."""
        geometry = getattr(self.estimate, "geometry", None)
        if geometry == NOSS and (self.mixture or self.span_bound < inf or self.differences is not None):
            raise OptionError("Rules: NOSS goes with mixture=False, and without span_bound and differences.")
        if geometry == BONUS and (self.mixture or self.span_bound == inf):
            raise OptionError(
                "Rules: values with a bonus need a finite span_bound, and a greedy policy: mixture=False."
            )
        if self.differences is not None and (self.mixture or self.perturb or self.best_of_both):
            raise OptionError(
                "Rules: differences go with a greedy policy. Leave out mixture, perturb and best_of_both."
            )

    def bounds_within(self, info: ProblemInfo) -> NDArray[np.float64] | None:
        """Return the differences of a problem, closed with the span bound [S, S]; None without any."""
        if self.differences is None:
            return None
        return self.differences.within(self.span_bound, int(info.n_states))


class Learner:
    """The state of an agent that plans. Make one with ``agent.start(info, rng)``.

    Attributes:
        info: what it was told.
        counts: what it has seen, up to the start of the episode under way.
        t: steps done.
        episode: the record of the episode under way; None before the first step.
        began_in: the state that it began in.
        plan: the policy of the episode, as pairs and weights.
        seconds: spent planning.
        phases: seconds spent sampling, counting, building sets, sorting and sweeping, as far as compiled code took part.
        on_episode: functions that are called with the learner after each plan. Where there are any, Python begins every episode.
    """

    def __init__(self, rules: Rules, info: ProblemInfo, rng: np.random.Generator) -> None:
        """Start with nothing seen."""
        self.rules, self.info, self.rng = rules, info, rng
        self.counts = Counts.empty(info.n_pairs)
        self.t, self.n_episodes, self.seconds = 0, 0, 0.0
        self.episode: Episode | None = None
        self.began_in = 0
        self.plan: Plan | None = None
        self.on_episode: list[Callable[[Any], None]] = []
        self._planner = Planner(
            info, rules.estimate, rules.episodes, rules.tolerance, rules.intersect, rules.bounds_within(info)
        )
        self._steps_left = 0
        self._seen: dict[tuple[int, float, int], int] = {}
        self._lists: _PolicyLists | None = None
        self._last: tuple[int, int] | None = None

    def act(self, state: int) -> int:
        """Return the action to play in ``state``; plan a new episode first where the rule says so."""
        s = checked_state("act: the state", state, self.info, self.t)
        if self._last is not None:
            raise OptionError(f"act: step {self.t + 1} has no reward yet. Call observe(reward, next_state) first.")
        lists = self._lists
        if lists is None or self._steps_left <= 0:
            lists, choice = self._begin_by_hand(s)
        else:
            choice = self._draw(lists, s)
            if lists.left[choice] <= 0:
                lists, choice = self._begin_by_hand(s)
        self._last = choice, lists.pairs[choice]
        return lists.actions[choice]

    def observe(self, reward: float, next_state: int) -> None:
        """Take the reward and the next state that the last action brought."""
        if self._last is None or self._lists is None:
            raise OptionError("observe: no action is waiting for its reward. Call act(state) first.")
        succ = checked_state("observe: the next state", next_state, self.info, self.t)
        choice, pair = self._last
        key = pair, checked_reward(reward, self.info, self.t), succ
        self._seen[key] = self._seen.get(key, 0) + 1
        self._lists.left[choice] -= 1
        self._steps_left -= 1
        self.t, self._last = self.t + 1, None

    @property
    def policy(self) -> Policy:
        """The policy of the episode under way."""
        if self.plan is None:
            raise OptionError("policy: there is no episode yet. Call act(state) first.")
        return self.plan.policy(self.info)

    @property
    def since(self) -> dict[tuple[int, float, int], int]:
        """What ``observe`` was told since the episode began: how often each (pair, reward, next state)."""
        return dict(self._seen)

    @property
    def bias(self) -> NDArray[np.float64]:
        """The optimistic bias v of the episode under way, 0 in state 0 [S]: a copy."""
        return self._planner.bias.copy()

    def confidence_set(self) -> BoundedMDP:
        """Return M_k, the set of plausible models of the episode under way."""
        if self.episode is None:
            raise OptionError("confidence_set: there is no episode yet. Call act(state) first.")
        return self.rules.estimate.bounded(self.counts, self.episode.start, self.info, self.began_in, self.held)

    @property
    def held(self) -> Held | None:
        """The intersection of all sets so far, where the agent takes it."""
        return self._planner.held if self.rules.intersect else None

    def begin_episode(self, batch: Batch | None, state: int) -> None:
        """Take in the experience of the last episode, and plan the next, which begins in ``state``."""
        begun = perf_counter()
        if batch is not None:
            self._planner.take_in(self.counts, batch)
        start, self.began_in = self.t + 1, int(state)
        self.plan = self._plan(start, self.began_in)
        self._steps_left = self.plan.steps
        self._record(start)
        self.seconds += perf_counter() - begun
        for told in self.on_episode:
            told(self)

    def _record(self, start: int) -> None:
        """Record the episode of the plan."""
        assert self.plan is not None
        low, high = self.plan.gain_bounds
        self.episode = Episode(
            start, (low + high) / 2, self.plan.span, self.plan.sweeps, not self.plan.mixes, low, high
        )
        self.n_episodes += 1

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of compiled code by phase."""
        return dict(zip(("sampling", "counts", "sets", "sorting", "sweeps"), self._planner.clock.tolist(), strict=True))

    @property
    def offers(self) -> frozenset[str]:
        """What it can do for those who run it: see :mod:`spanrl.agents.offers`."""
        rules = self.rules
        found = {HOOK, RESUME}
        if rules.estimate.is_set:
            found.add(SETS)
        if is_compilable(self.rng) and not (rules.perturb or rules.best_of_both or self.on_episode):
            found.add(EPISODES)
        return frozenset(found)

    @property
    def notes(self) -> dict[str, Any]:
        """What the record of a run tells of this learner: how often an intersection was empty; how many plans with NOSS were cut."""
        return self._planner.notes

    @property
    def steps_left(self) -> int:
        """The steps that the episode under way may still have."""
        return self._steps_left

    def is_stuck(self) -> OptionError:
        """Return the error of an episode rule that allows no step."""
        return OptionError(
            f"learn: the episode of step {self.t + 1} may have no step. "
            "An episode rule must allow a step, and a visit of each pair of the state in which the episode begins."
        )

    def moved_on(self, steps: int) -> None:
        """Count steps that compiled code has taken in the episode under way."""
        self.t += steps
        self._steps_left -= steps

    def play(
        self, sampler: Sampler, mean: NDArray[np.float64], stage: Stage, times: NDArray[np.int64], steps: int
    ) -> Columns:
        """Go on in compiled code, as :func:`spanrl.agents.loop.play` says; return the episodes begun."""
        rules, info, planner = self.rules, self.info, self._planner
        goal = planner.goal(rules.span_bound, rules.mixture, rules.warm_start)
        choice = new_episode_policy(info.n_states) if self.plan is None else self.plan.choice
        planner.play(sampler, mean, self.counts, goal, rules.warm_start, choice, stage, times, steps)
        if stage.where[PLANNING] == STUCK:
            self.t = int(stage.where[T])
            raise self.is_stuck()
        begun = _episodes(stage.records[: stage.where[RECORDED]], info.r_min)
        n = len(begun[0])
        if n:
            last = self.episode = Episode(*(column[-1] for column in begun))
            bounds = last.gain_low, last.gain_high
            allowed = int(stage.where[T] - last.start + 1 + stage.where[LEFT])
            done = bounds, last.span, last.sweeps, choice.allowed, allowed
            self.plan = Plan(choice.pairs, choice.weight, not last.deterministic, choice.left, *done)
            self.n_episodes, self.began_in = self.n_episodes + n, int(stage.where[FROM])
        self.t, self._steps_left = int(stage.where[T]), int(stage.where[LEFT])
        return begun

    def get_state(self) -> dict[str, Any]:
        """Return all that the learner knows, as numbers, lists and arrays; its generator is not part of it. Not between act and observe."""
        counts, plan, seen = self.counts, self.plan, Batch.from_dict(self._seen)
        assert self._last is None
        state: dict[str, Any] = {
            "t": self.t, "steps_left": self._steps_left, "n_episodes": self.n_episodes, "seconds": self.seconds,
            "by_hand": self._lists is not None, "began_in": self.began_in,
            "bias": self._planner.bias.copy(), "record": self.episode and list(self.episode),
            **counts.arrays(),
            **{f"seen.{name}": part for name, part in seen._asdict().items()},
        }  # fmt: skip
        if plan is not None:
            left = plan.left.copy() if self._lists is None else np.array(self._lists.left, dtype=np.int64)
            parts = plan._asdict() | {"left": left, "gain_bounds": list(plan.gain_bounds)}
            state |= {f"plan.{name}": value for name, value in parts.items()}
        if self.rules.intersect:
            state |= self._planner.held.state(int(counts.succ_ptr[-1]))
        if self._planner.is_cut:
            state["plans_cut"] = int(self._planner.n_cut[0])
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Resume where another learner of the same agent and problem was; a state that cannot be one raises a RunFileError."""
        given, info = StateReader(state), self.info
        self.t, self.n_episodes = given.integer("t"), given.integer("n_episodes")
        self.seconds = given.number("seconds")
        self.counts = Counts.from_state(given, info, self.t)
        self._planner.bias[:] = given.array("bias", np.float64, (info.n_states,))
        self._seen = self._batch_from(given)
        if self.rules.intersect:
            self._planner.held = held_from(given, info, int(self.counts.succ_ptr[-1]))
        if self._planner.is_cut:
            self._planner.n_cut[0] = given.integer("plans_cut")
        if self.t == 0 and given.holds("record", None):
            return  # there is no episode yet
        self.episode = Episode(*given.row("record", (int, float, float, int, bool, float, float)))
        self.plan = self._plan_from(given)
        self.began_in = given.integer("began_in", 0, info.n_states - 1)
        self._steps_left = given.integer("steps_left", 0, self.plan.steps)
        self._lists = self._by_hand(self.plan) if given.flag("by_hand") else None

    def _batch_from(self, given: StateReader) -> dict[tuple[int, float, int], int]:
        """Return what was collected one by one."""
        info = self.info
        pair = given.array("seen.pair", np.int64, (None,), 0, info.n_pairs - 1)
        reward = given.array("seen.reward", np.float64, pair.shape, info.r_min, info.r_max)
        succ = given.array("seen.succ", np.uint32, pair.shape, 0, info.n_states - 1)
        times = given.array("seen.times", np.int64, pair.shape, 1, self.t)
        keys = zip(pair.tolist(), reward.tolist(), succ.tolist(), strict=True)
        return dict(zip(keys, times.tolist(), strict=True))

    def _plan_from(self, given: StateReader) -> Plan:
        """Return the plan under way: each state plays pairs of its own."""
        ptr, S = self.info.pair_ptr, self.info.n_states
        pairs = given.array("plan.pairs", np.int64, (2 * S,), np.repeat(ptr[:-1], 2), np.repeat(ptr[1:] - 1, 2))
        weight = given.array("plan.weight", np.float64, (S,), 0.0, 1.0)
        allowed = given.array("plan.allowed", np.int64, (2 * S,), 0, LARGEST)
        left = given.array("plan.left", np.int64, (2 * S,), 0, allowed)
        low, high = given.row("plan.gain_bounds", (float, float))
        span, sweeps = given.number("plan.span"), given.integer("plan.sweeps")
        steps = given.integer("plan.steps")
        return Plan(pairs, weight, given.flag("plan.mixes"), left, (low, high), span, sweeps, allowed, steps)

    def _plan(self, t: int, state: int) -> Plan:
        rules, counts, c, mixture = self.rules, self.counts, self.rules.span_bound, self.rules.mixture
        start = Start(t, state, 0 if self.episode is None else t - self.episode.start, self._words())
        if rules.perturb:
            plan = self._planner.plan_perturbed(counts, start, span_bound=c, mixture=mixture)
        else:
            both, warm = rules.best_of_both, rules.warm_start
            plan = self._planner.plan(counts, start, span_bound=c, mixture=mixture, from_bias=warm, plain=both)
        if rules.estimate.draws and is_compilable(self.rng):
            set_state(self.rng, start.words)
        return plan

    def _words(self) -> NDArray[np.uint64]:
        """Return random words for an estimate that draws: the generator's own, or some that it draws where it has others."""
        if is_compilable(self.rng):
            return get_state(self.rng)
        return (
            self.rng.integers(2**64, size=4, dtype=np.uint64) if self.rules.estimate.draws else np.zeros(4, np.uint64)
        )

    def _begin_by_hand(self, state: int) -> tuple[_PolicyLists, int]:
        batch, self._seen = (
            Batch.from_dict(self._seen),
            {},
        )  # first, or an interrupted plan would leave them to be counted twice
        self.begin_episode(batch, state)
        assert self.plan is not None
        lists = self._lists = self._by_hand(self.plan)
        choice = self._draw(lists, state)
        if min(lists.left[choice], self._steps_left) <= 0:
            raise self.is_stuck()
        return lists, choice

    def _by_hand(self, plan: Plan) -> _PolicyLists:
        actions = self.info.action[plan.pairs]
        return _PolicyLists(plan.pairs.tolist(), plan.weight.tolist(), actions.tolist(), plan.left.tolist())

    def _draw(self, lists: _PolicyLists, state: int) -> int:
        weight = lists.weight[state]
        return 2 * state + (weight > 0.0 and self.rng.random() < weight)


def _episodes(records: NDArray[np.float64], r_min: float) -> Columns:
    """Return what compiled code has recorded (see :class:`spanrl.agents.loop.Stage`), in the user's units."""
    start, low, high, span, sweeps, mixes = records.T
    low, high = low + r_min, high + r_min
    columns = start.astype(np.int64), (low + high) / 2, span, sweeps.astype(np.int64), mixes == 0.0, low, high
    return tuple(column.tolist() for column in columns)


class _PolicyLists(NamedTuple):
    """The plan as Python lists: what act and observe touch at every step."""

    pairs: list[int]
    weight: list[float]
    actions: list[int]
    left: list[int]
