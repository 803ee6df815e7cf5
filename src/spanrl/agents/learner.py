"""The learner behind the optimistic agents: confidence set × operator × policy rule × episode rule.

::

    for episodes k = 1, 2, …
        t_k ← steps done + 1;  N_k ← visits so far
        M_k ← the region around what was seen, at time t_k
        v, g ← T_c iterated on M_k until the gain bracket is (r_max − r_min)/√t_k wide (c = ∞: extended value iteration)
        π_k ← the mixture (or the greedy action) of G_c v
        play π_k until the pair about to be played has ν_k(s,a) ≥ max{1, N_k(s,a)}

``act`` and ``observe`` take one step at a time; :func:`spanrl.learn` runs the same episodes in compiled code and hands the experience of
an episode over at once. Both see the same numbers in the same order, so both make the same decisions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.experience import take_in
from spanrl.confidence.play import RECORDED, Stage, T
from spanrl.confidence.regions import Region
from spanrl.errors import InputError, OptionError
from spanrl.kernels.desk import new_choice
from spanrl.kernels.sampling import Sampler
from spanrl.models.bounded import BoundedMDP
from spanrl.models.counts import Batch, Counts
from spanrl.models.info import ProblemInfo
from spanrl.models.policy import Policy
from spanrl.models.states import LARGEST, StateReader
from spanrl.planning.extended import ExtendedPlanner, Plan


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
    """What makes an optimistic agent: its region, and how it plans on it."""

    region: Region
    span_bound: float = inf
    mixture: bool = True
    perturb: bool = False
    best_of_both: bool = False
    warm_start: bool = True


class Learner:
    """The state of an optimistic agent. Make one with ``agent.start(info, rng)``.

    Attributes:
        info: what it was told.
        counts: what it has seen, up to the start of the episode under way.
        t: steps done.
        episode: the record of the episode under way; None before the first step.
        plan: the policy of the episode, as pairs and weights.
        seconds: spent planning.
        phases: seconds spent sampling, counting, building sets, sorting and sweeping, as far as compiled code took part.
    """

    def __init__(self, rules: Rules, info: ProblemInfo, rng: np.random.Generator) -> None:
        """Start with nothing seen."""
        self.rules, self.info, self.rng = rules, info, rng
        self.counts = Counts.empty(info.n_pairs)
        self.t, self.n_episodes, self.seconds = 0, 0, 0.0
        self.episode: Episode | None = None
        self.plan: Plan | None = None
        self._planner = ExtendedPlanner(info, rules.region)
        self._seen: dict[tuple[int, float, int], int] = {}
        self._hand: _Hand | None = None
        self._last: tuple[int, int] | None = None

    def act(self, state: int) -> int:
        """Return the action to play in ``state``; plan a new episode first where the rule says so."""
        s = self._state("act: the state", state)
        if self._last is not None:
            raise OptionError(f"act: step {self.t + 1} has no reward yet. Call observe(reward, next_state) first.")
        if self._hand is None:
            self._hand = self._begin_by_hand()
        choice = self._draw(s)
        if self._hand.left[choice] <= 0:
            self._hand = self._begin_by_hand()
            choice = self._draw(s)
        self._last = choice, self._hand.pairs[choice]
        return self._hand.actions[choice]

    def observe(self, reward: float, next_state: int) -> None:
        """Take the reward and the next state that the last action brought."""
        if self._last is None or self._hand is None:
            raise OptionError("observe: no action is waiting for its reward. Call act(state) first.")
        succ = self._state("observe: the next state", next_state)
        choice, pair = self._last
        key = pair, self._reward(reward), succ
        self._seen[key] = self._seen.get(key, 0) + 1
        self._hand.left[choice] -= 1
        self.t, self._last = self.t + 1, None

    @property
    def policy(self) -> Policy:
        """The policy of the episode under way."""
        if self.plan is None:
            raise OptionError("policy: there is no episode yet. Call act(state) first.")
        return self.plan.policy(self.info)

    @property
    def bias(self) -> NDArray[np.float64]:
        """The optimistic bias v of the episode under way, 0 in state 0 [S]: a copy."""
        return self._planner.bias.copy()

    def confidence_set(self) -> BoundedMDP:
        """Return M_k, the set of plausible models of the episode under way."""
        if self.episode is None:
            raise OptionError("confidence_set: there is no episode yet. Call act(state) first.")
        return self.rules.region.bounded(self.counts, self.episode.start, self.info)

    def begin_episode(self, batch: Batch | None) -> None:
        """Take in the experience of the last episode, and plan the next."""
        begun = perf_counter()
        if batch is not None:
            take_in(self.counts, batch)
        start = self.t + 1
        self.plan = self._plan(start)
        self._record(start)
        self.seconds += perf_counter() - begun

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
    def plans_compiled(self) -> bool:
        """Whether compiled code can go on from one episode to the next by itself."""
        return not (self.rules.perturb or self.rules.best_of_both)

    def play(
        self, sampler: Sampler, mean: NDArray[np.float64], stage: Stage, times: NDArray[np.int64], steps: int
    ) -> Columns:
        """Go on in compiled code, as :func:`spanrl.confidence.play.play` says; return the episodes begun."""
        rules, info, planner = self.rules, self.info, self._planner
        goal = planner.goal(rules.span_bound, rules.mixture, rules.warm_start)
        choice = new_choice(info.n_states) if self.plan is None else self.plan.choice
        planner.play(sampler, mean, self.counts, goal, rules.warm_start, choice, stage, times, steps)
        begun = _episodes(stage.records[: stage.where[RECORDED]], info.r_min)
        n = len(begun[0])
        if n:
            last = self.episode = Episode(*(column[-1] for column in begun))
            bounds = last.gain_low, last.gain_high
            mixes = not last.deterministic
            self.plan = Plan(choice.pairs, choice.weight, mixes, choice.left, bounds, last.span, last.sweeps)
            self.n_episodes += n
        self.t = int(stage.where[T])
        return begun

    def get_state(self) -> dict[str, Any]:
        """Return all that the learner knows, as numbers, lists and arrays; its generator is not part of it. Not between act and observe."""
        counts, plan, seen = self.counts, self.plan, Batch.from_dict(self._seen)
        assert self._last is None
        state: dict[str, Any] = {
            "t": self.t, "n_episodes": self.n_episodes, "seconds": self.seconds, "by_hand": self._hand is not None,
            "bias": self._planner.bias.copy(), "record": self.episode and list(self.episode),
            **counts.arrays(),
            **{f"seen.{name}": part for name, part in seen._asdict().items()},
        }  # fmt: skip
        if plan is not None:
            left = plan.left.copy() if self._hand is None else np.array(self._hand.left, dtype=np.int64)
            parts = plan._asdict() | {"left": left, "gain_bounds": list(plan.gain_bounds)}
            state |= {f"plan.{name}": value for name, value in parts.items()}
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Resume where another learner of the same agent and problem was; a state that cannot be one raises a RunFileError."""
        given, info = StateReader(state), self.info
        self.t, self.n_episodes = given.integer("t"), given.integer("n_episodes")
        self.seconds = given.number("seconds")
        self.counts = Counts.from_state(given, info, self.t)
        self._planner.bias[:] = given.array("bias", np.float64, (info.n_states,))
        self._seen = self._batch_from(given)
        if self.t == 0 and given.holds("record", None):
            return  # there is no episode yet
        self.episode = Episode(*given.row("record", (int, float, float, int, bool, float, float)))
        self.plan = self._plan_from(given)
        self._hand = self._by_hand(self.plan) if given.flag("by_hand") else None

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
        doubles = type(self) is Learner  # others may end episodes otherwise
        most = np.maximum(self.counts.n[pairs], 1) if doubles else LARGEST
        left = given.array("plan.left", np.int64, (2 * S,), 0, most)
        low, high = given.row("plan.gain_bounds", (float, float))
        span, sweeps = given.number("plan.span"), given.integer("plan.sweeps")
        return Plan(pairs, weight, given.flag("plan.mixes"), left, (low, high), span, sweeps)

    def _plan(self, t: int) -> Plan:
        rules = self.rules
        counts, c, mixture = self.counts, rules.span_bound, rules.mixture
        if rules.perturb:
            return self._planner.plan_perturbed(counts, t, span_bound=c, mixture=mixture)
        return self._planner.plan(
            counts, t, span_bound=c, mixture=mixture, from_bias=rules.warm_start, plain=rules.best_of_both
        )

    def _begin_by_hand(self) -> _Hand:
        self.begin_episode(Batch.from_dict(self._seen))
        self._seen = {}
        assert self.plan is not None
        return self._by_hand(self.plan)

    def _by_hand(self, plan: Plan) -> _Hand:
        actions = self.info.action[plan.pairs]
        return _Hand(plan.pairs.tolist(), plan.weight.tolist(), actions.tolist(), plan.left.tolist())

    def _draw(self, state: int) -> int:
        assert self._hand is not None
        weight = self._hand.weight[state]
        return 2 * state + (weight > 0.0 and self.rng.random() < weight)

    def _state(self, what: str, value: Any) -> int:
        """Return a state as an int, or refuse it with the step."""
        if type(value) is int and 0 <= value < self.info.n_states:  # the usual case, told fast
            return value
        if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < self.info.n_states:
            raise OptionError(f"{what} must be in 0..{self.info.n_states - 1}; got {value!r} at step {self.t + 1}.")
        return int(value)

    def _reward(self, value: Any) -> float:
        """Return a reward as a float, or refuse it with its value and step."""
        info = self.info
        if not (type(value) is float or isinstance(value, Real)) or not info.r_min <= float(value) <= info.r_max:
            raise InputError(
                f"observe: the reward must lie in [{info.r_min:g}, {info.r_max:g}]; got {value!r} at step {self.t + 1}. "
                "Declare the range of the rewards, r_min and r_max."
            )
        return float(value) + 0.0  # no −0.0: equal rewards are one


def _episodes(records: NDArray[np.float64], r_min: float) -> Columns:
    """Return what compiled code has recorded (see :class:`spanrl.confidence.play.Stage`), in the user's units."""
    start, low, high, span, sweeps, mixes = records.T
    low, high = low + r_min, high + r_min
    columns = start.astype(np.int64), (low + high) / 2, span, sweeps.astype(np.int64), mixes == 0.0, low, high
    return tuple(column.tolist() for column in columns)


class _Hand(NamedTuple):
    """The plan as Python lists: what act and observe touch at every step."""

    pairs: list[int]
    weight: list[float]
    actions: list[int]
    left: list[int]
