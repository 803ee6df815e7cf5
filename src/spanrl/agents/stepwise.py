"""Agents that decide anew at every step: a compiled loop of their own around a step of the environment.

Such an agent is three functions (:class:`StepRules`): ``decide(memory, state)`` returns the pair to play, ``update(memory, pair, reward,
next_state)`` learns from what it brought, and ``steps`` takes many steps at once. It is always written like this, so that the compiler sees
the whole loop::

    @passed(STEPS)
    def steps(world, memory, n):
        for _ in range(n):
            pair = decide(memory, current_state(world))
            reward, next_state = take_step(world, pair)
            update(memory, pair, reward, next_state)

It has no episodes: its curve has the span NaN and 0 episodes, its table of episodes is empty, and there is nothing to audit. A checkpoint
holds its memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.agents.loop import MARKED_EPISODES, MARKED_MEAN, MARKED_REWARD
from spanrl.agents.observing import checked_reward, checked_state
from spanrl.agents.offers import RESUME
from spanrl.agents.offers import STEPS as OFFERS_STEPS
from spanrl.confidence.estimate import read_only
from spanrl.errors import OptionError
from spanrl.kernels.jit import Passed, Signature, check_part, loop, part
from spanrl.kernels.sampling import ELAPSED, LIMIT, Sampler, begin_anew, draw, sfc64
from spanrl.models.info import ProblemInfo
from spanrl.models.policy import Policy
from spanrl.models.states import StateReader
from spanrl.seeding import get_state, is_compilable, set_state

_T, _STATE = range(2)  # in World.where
_REWARD, _MEAN = range(2)  # in World.sums


class World(NamedTuple):
    """The environment, for compiled steps."""

    sampler: Any  # :class:`spanrl.kernels.sampling.Sampler`
    mean: Any  # float64 [n_pairs]  r(s, a)
    words: Any  # uint64 [4]         its random state
    where: Any  # int64 [2]          steps done, state
    sums: Any  # float64 [2]         reward received, Σ r(s, a)


class Memory(NamedTuple):
    """All that a step-wise agent knows. What the numbers mean is its own affair."""

    settings: Any  # float64 [n]     its options
    pair_ptr: Any  # int64 [S+1]     the pairs of state s are pair_ptr[s]:pair_ptr[s+1]
    values: Any  # float64 [n]
    visits: Any  # int64 [n]
    words: Any  # uint64 [4]         its random state (:mod:`spanrl.kernels.variates`)


def _step_examples() -> tuple[Any, ...]:
    whole, words = np.zeros(2, dtype=np.int64), np.zeros(4, dtype=np.uint64)
    longs, reals = read_only(words), read_only(np.zeros(1))
    numbers = read_only(np.zeros(1, dtype=np.uint32))
    flags = read_only(np.zeros(1, dtype=np.bool_))
    sampler = Sampler(read_only(whole), numbers, reals, longs, longs, longs, numbers, flags, whole)
    world = World(sampler, reals, words, whole, np.zeros(2))
    return world, Memory(np.zeros(1), read_only(whole), np.zeros(1), whole, words), 1


STEPS = Signature("STEPS", "void", _step_examples)
"""The signature of a ``steps(world, memory, n)``."""


@part
def current_state(world):
    """Return the state that the environment is in."""
    return world.where[_STATE]


@part
def take_step(world, pair):
    """Play a pair; return (reward, next state)."""
    words = world.words
    x, words[0], words[1], words[2], words[3] = sfc64(words[0], words[1], words[2], words[3])
    outcome = draw(world.sampler, pair, x)
    reward, state = world.sampler.reward[outcome], np.int64(world.sampler.succ[outcome])
    world.sums[_REWARD] += reward
    world.sums[_MEAN] += world.mean[pair]
    world.where[_T] += 1
    world.where[_STATE] = state
    if world.sampler.clock.size > 0:
        _turn_clock(world, outcome, words)
    return reward, state


@part
def _turn_clock(world, outcome, words):
    """Let the clock run on, and cut the episode where it is time: the agent is elsewhere then, and sees no transition."""
    clock = world.sampler.clock
    clock[ELAPSED] = 0 if world.sampler.ends[outcome] else clock[ELAPSED] + 1
    if clock[ELAPSED] == clock[LIMIT]:
        x, words[0], words[1], words[2], words[3] = sfc64(words[0], words[1], words[2], words[3])
        world.where[_STATE], clock[ELAPSED] = begin_anew(world.sampler, x), 0


@loop
def walk(steps, world, memory, times, marks, budget):
    """Go on until all ``times`` are measured or ``budget`` steps are done; return how many measurements were written to ``marks``."""
    where, k, last = world.where, 0, world.where[_T] + budget
    while k < times.size and where[_T] < last:
        steps(world, memory, min(times[k], last) - where[_T])
        if where[_T] == times[k]:
            marks[k, MARKED_REWARD], marks[k, MARKED_MEAN] = world.sums[_REWARD], world.sums[_MEAN]
            marks[k, MARKED_EPISODES] = 0.0
            k += 1
    return k


@dataclass(frozen=True)
class StepRules:
    """What makes a step-wise agent.

    Args:
        decide, update, steps: its compiled functions, see the module.
        settings: the options that they read.
        values, visits: how many real and whole numbers it remembers; all are 0 at first.
        greedy: the pair of each state [S] that is best by a memory, for ``run.policy``; None where the agent has none.
        notes: what the record of a run tells of its memory.
    """

    decide: Callable[..., Any]
    update: Callable[..., Any]
    steps: Passed
    settings: tuple[float, ...]
    values: int
    visits: int
    greedy: Callable[[Memory], NDArray[np.int64]] | None = None
    notes: Callable[[Memory], dict[str, Any]] | None = None


def first_best(pair_ptr: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the first pair of each state [S] with the largest of its values [n_pairs].

    >>> first_best(np.array([0, 2, 4]), np.array([1.0, 3.0, 2.0, 2.0])).tolist()
    [1, 2]
    """
    first = pair_ptr[:-1]
    best = np.flatnonzero(values >= np.repeat(np.maximum.reduceat(values, first), np.diff(pair_ptr)))
    found: NDArray[np.int64] = best[np.searchsorted(best, first)]
    return found


class StepLearner:
    """The state of a step-wise agent. Make one with ``agent.start(info, rng)``.

    Attributes:
        info: what it was told.
        memory: what it has learned.
        t: steps done.
    """

    offers: ClassVar[frozenset[str]] = frozenset({OFFERS_STEPS, RESUME})

    def __init__(self, rules: StepRules, info: ProblemInfo, rng: np.random.Generator) -> None:
        """Start with nothing seen."""
        check_part(rules.steps, STEPS)
        self.rules, self.info, self.rng, self.t = rules, info, rng, 0
        values, visits = np.zeros(rules.values), np.zeros(rules.visits, dtype=np.int64)
        words = get_state(rng) if is_compilable(rng) else rng.integers(2**64, size=4, dtype=np.uint64)
        self.memory = Memory(np.array(rules.settings, dtype=np.float64), info.pair_ptr, values, visits, words)
        self._state, self._pair = -1, -1  # −1: no action waits for its reward

    def act(self, state: int) -> int:
        """Return the action to play in ``state``."""
        s = checked_state("act: the state", state, self.info, self.t)
        if self._pair >= 0:
            raise OptionError(f"act: step {self.t + 1} has no reward yet. Call observe(reward, next_state) first.")
        pair, ptr = int(self.rules.decide(self.memory, s)), self.info.pair_ptr
        if not ptr[s] <= pair < ptr[s + 1]:
            raise OptionError(
                f"act: decide must return a pair of state {s}, in {ptr[s]}..{ptr[s + 1] - 1}; got {pair}."
            )
        self._pair = pair
        return int(self.info.action[pair])

    def observe(self, reward: float, next_state: int) -> None:
        """Take the reward and the next state that the last action brought."""
        if self._pair < 0:
            raise OptionError("observe: no action is waiting for its reward. Call act(state) first.")
        succ = checked_state("observe: the next state", next_state, self.info, self.t)
        self.rules.update(self.memory, self._pair, checked_reward(reward, self.info, self.t), succ)
        self.after(self.t + 1)

    @property
    def policy(self) -> Policy:
        """The best action of each state by what it knows now."""
        if self.rules.greedy is None:
            raise OptionError("policy: the agent decides at every step, and its rules have no greedy.")
        pairs, info = self.rules.greedy(self.memory), self.info
        return Policy.deterministic(info.action[pairs], int(info.n_actions))

    def after(self, t: int) -> None:
        """Say that t steps are done."""
        self.t, self._pair = t, -1
        if is_compilable(self.rng):
            set_state(self.rng, self.memory.words)

    @property
    def notes(self) -> dict[str, Any]:
        """What the record of a run tells of this learner."""
        return {} if self.rules.notes is None else self.rules.notes(self.memory)

    def get_state(self) -> dict[str, Any]:
        """Return all that the learner knows, as numbers and arrays; its generator is not part of it. Not between act and observe."""
        assert self._pair < 0
        memory = self.memory
        words = {} if is_compilable(self.rng) else {"words": memory.words.copy()}  # otherwise they are the generator's
        return {"t": self.t, "values": memory.values.copy(), "visits": memory.visits.copy(), **words}

    def set_state(self, state: dict[str, Any]) -> None:
        """Resume where another learner of the same agent and problem was; a state that cannot be one raises a RunFileError."""
        given = StateReader(state)
        self.t = given.integer("t")
        self.memory.values[:] = given.array("values", np.float64, self.memory.values.shape)
        self.memory.visits[:] = given.array("visits", np.int64, self.memory.visits.shape)
        words = get_state(self.rng) if is_compilable(self.rng) else given.array("words", np.uint64, (4,))
        self.memory.words[:] = words
