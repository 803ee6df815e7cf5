"""A run under way: it can be looked at between two budgets, written down exactly, and resumed elsewhere.

Whoever runs it gives ``run`` a function that is called whenever the state is whole: about every 30 ms where the steps are compiled, every
64 steps otherwise. It may call ``state``, and it may raise to stop. A run that is resumed from a state has the same bits as one that
never stopped; the horizon may have become longer meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.agents.learner import Columns, Episode, Learner
from spanrl.agents.loop import (
    BEFORE,
    BEGUN,
    DONE,
    MARKED,
    MEAN,
    MEAN_BEFORE,
    MIXES,
    PLANNING,
    REWARD,
    STATE,
    TO_BEGIN,
    Stage,
    T,
)  # fmt: skip
from spanrl.agents.offers import EPISODES, HOOK, RESUME, SETS, STEPS, offers
from spanrl.agents.registry import Agent, AnyLearner
from spanrl.agents.stepwise import StepLearner, World, walk
from spanrl.errors import OptionError, RunFileError
from spanrl.kernels.interact import add_up, harvest, interact
from spanrl.learning.learned import Learned, learned_model
from spanrl.learning.recorder import Recorder
from spanrl.learning.run import Run
from spanrl.learning.snapshot import State
from spanrl.learning.worlds import GymWorld, TableWorld
from spanrl.models.box_checks import keys
from spanrl.models.counts import Batch, Counts
from spanrl.models.info import ProblemInfo
from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.models.states import StateReader
from spanrl.seeding import get_state, is_compilable, set_state, streams

_NOBODY = np.zeros(4, dtype=np.uint64)
BUDGET = 1 << 22  # steps
_SHORT = 10**6
_STEPS_BY_HAND = 64
_RECORDS = 1024
_NO_EPISODES: Columns = tuple([] for _ in Episode._fields)

Tick = Callable[[int], None]


class Session:
    """An agent in a world, ``horizon`` steps, from one seed."""

    def __init__(
        self, world: TableWorld | GymWorld, agent: Agent, name: str, *, horizon: int, seed: int, points: int,
        audit: bool = False,
    ) -> None:  # fmt: skip
        """Start the learner of the agent called ``name``; no step is taken yet."""
        self._world, self._audit = world, audit
        self.info = world.info(horizon)
        self._env_rng, self._agent_rng = streams(seed)
        self.learner: Any = agent.start(self.info, self._agent_rng)
        if not isinstance(self.learner, AnyLearner):
            raise OptionError(
                f"learn: start(info, rng) must return a learner with act and observe; got {self.learner!r}."
            )
        if audit and (world.mdp is None or not {HOOK, SETS} <= offers(self.learner)):
            raise OptionError("learn: audit needs the true model and an agent with confidence sets. Leave audit out.")
        self.meta: dict[str, Any] = {
            "env": world.id, "agent": name, "seed": seed, "horizon": horizon, "points": points,
            "audit": audit, "r_min": self.info.r_min, "r_max": self.info.r_max,
            "n_states": int(self.info.n_states), "n_actions": int(self.info.n_actions),
        }  # fmt: skip
        if world.mdp is not None and world.mdp.costs:
            self.meta["costs"] = True  # numbers stay rewards; whoever shows them turns them round
        self._recorder = Recorder(horizon, points, None, world.mdp, audit)
        self._simulating = 0.0
        self._t, self._state = 0, -1  # before the first step there is no state
        self._sums = 0.0, 0.0  # reward and Σ r(s, a) before the episode under way
        self._tally = np.zeros(0, dtype=np.int64)
        self._words = _NOBODY  # the environment's random state, while compiled code draws from it

    def run(self, gain: float | None, tick: Tick) -> None:
        """Go on to the horizon; ``gain`` is g*, None where it is unknown."""
        self._recorder.gain = gain
        if self._state < 0:
            self._state = self._world.reset(self._env_rng)
        offered = offers(self.learner)
        alone = self.is_compiled and not self._audit and bool({EPISODES, STEPS} & offered)
        watches = not alone and (HOOK in offered or isinstance(self.learner, Learner))  # by hand it has hooks, too
        if watches:
            self.learner.on_episode.append(self._recorder.begin)
        try:
            self._go_on(alone, tick)
        finally:
            if watches:
                self.learner.on_episode.remove(self._recorder.begin)

    def _go_on(self, alone: bool, tick: Tick) -> None:
        """Run in the way that the learner offers; ``alone``: compiled code alone begins its episodes."""
        world, learner = self._world, self.learner
        if not self.is_compiled:
            self._run_by_hand(tick)
            return
        assert isinstance(world, TableWorld)
        if STEPS in offers(learner):
            self._run_steps(world, learner, tick)
        else:
            (self._run_compiled if alone else self._run_watched)(world, learner, tick)

    def result(self, interrupted: bool) -> Run:
        """Return what was measured so far."""
        _, planning, simulating = self.spent()
        seconds = {"planning": planning, "simulating": simulating}
        notes = self.learner.notes if isinstance(self.learner, Learner | StepLearner) else {}
        return self._recorder.run(self.meta | {"gain": self._recorder.gain} | notes, seconds, interrupted)

    def learned(self) -> Learned:
        """Return the policy and the model of the learner, as arrays of their own."""
        learner, mdp = self.learner, self._world.mdp
        policy = _policy_of(learner, self.info)
        if isinstance(policy, Policy) and mdp is not None:
            policy = Policy.trusted(policy.probs, mdp.state_names, mdp.action_names)
        counts = getattr(learner, "counts", None)
        if not isinstance(counts, Counts):
            return Learned(policy, f"{self.meta['agent']} has no table of counts. Use an agent that plans")
        return Learned(policy, learned_model(self.info, counts, self._since(learner), mdp))

    def _since(self, learner: Any) -> Batch:
        """Return what was seen in the episode under way, and is in no counts yet."""
        if not self._tally.any():
            return Batch.from_dict(learner.since if isinstance(learner, Learner) else {})
        assert isinstance(self._world, TableWorld)
        sampler, outcome = self._world.sampler, np.flatnonzero(self._tally)
        pair = np.searchsorted(sampler.out_ptr, outcome, side="right") - 1
        return Batch(pair, sampler.reward[outcome], sampler.succ[outcome], self._tally[outcome])

    def spent(self) -> tuple[int, float, float]:
        """Return the steps done, the seconds spent planning and those spent simulating."""
        return self._t, float(getattr(self.learner, "seconds", 0.0)), self._simulating

    @property
    def mdp(self) -> MDP | None:
        """The true model, where it is known; for the measuring side."""
        return self._world.mdp

    @property
    def is_compiled(self) -> bool:
        """Whether the steps are taken in compiled code."""
        offered, rng = offers(self.learner), getattr(self.learner, "rng", None)
        compilable = isinstance(rng, np.random.Generator) and is_compilable(rng)
        return isinstance(self._world, TableWorld) and compilable and bool({HOOK, STEPS} & offered)

    @property
    def is_resumable(self) -> bool:
        """Whether the state can be written down: world, learner and generator are ours, or the learner has methods of its own for it."""
        learner = self.learner
        if RESUME in offers(learner):
            known = learner.rng is self._agent_rng  # the state of another generator would not be kept
        else:
            known = _has(learner, "get_state") and _has(learner, "set_state")
        return isinstance(self._world, TableWorld) and known

    def state(self) -> State:
        """Return the exact state, as ``run`` has it when it calls its function."""
        if self._words is not _NOBODY:
            set_state(self._env_rng, self._words)
        return {
            **{key: self.meta[key] for key in ("env", "agent", "seed", "horizon", "points", "audit")},
            "t": self._t, "state": self._state, "sums": list(self._sums), "tally": self._tally.copy(),
            "simulating": self._simulating, "horizon_was_read": self.info.horizon_was_read,
            "env_rng": _rng_state(self._env_rng), "agent_rng": _rng_state(self._agent_rng),
            "elapsed": self._world.elapsed if isinstance(self._world, TableWorld) else 0,
            **self._recorder.state(),
            **{f"learner.{name}": value for name, value in self.learner.get_state().items()},
        }  # fmt: skip

    def restore(self, state: State) -> None:
        """Go on from a state of the same run, which may have had a shorter horizon."""
        given, info = StateReader(state), self.info
        for key in ("env", "agent", "seed", "points", "audit"):
            given.require(key, self.meta[key])
        self._t = t = given.integer("t")
        if t > self.meta["horizon"]:
            raise RunFileError(f"checkpoint: it is at step {t}, beyond the horizon {self.meta['horizon']}.")
        self._state = given.integer("state", -1 if t == 0 else 0, info.n_states - 1)
        assert isinstance(self._world, TableWorld)
        self._tally = self._read_tally(given, self._world)
        self._sums = given.row("sums", (float, float))
        self._simulating = given.number("simulating")
        _set_rng(self._env_rng, given.inner("env_rng"))
        _set_rng(self._agent_rng, given.inner("agent_rng"))
        if given.flag("horizon_was_read"):
            _ = info.horizon  # and so it stays
        limit = self._world.step_limit
        self._world.resume(self._env_rng, given.integer("elapsed", 0, 0 if limit is None else limit - 1))
        self._recorder.restore(given, t)
        prefix = "learner."
        self.learner.set_state({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
        if isinstance(self.learner, (Learner, StepLearner)) and self.learner.t != t:
            raise RunFileError(f"checkpoint: the learner is at step {self.learner.t} and the run at step {t}.")
        if isinstance(self.learner, Learner):
            self._check_learner(self.learner, self._world.env.mdp)

    def _read_tally(self, given: StateReader, world: TableWorld) -> NDArray[np.int64]:
        """Return how often each outcome was drawn in the episode under way; empty where steps are not compiled."""
        n_outcomes = world.sampler.succ.size
        tally = given.array("tally", np.int64, (None,), 0, self._t)
        if tally.size not in (0, n_outcomes):
            raise RunFileError(f"checkpoint: 'tally' must have {n_outcomes} entries; got {tally.size}.")
        return tally

    def _check_learner(self, learner: Learner, mdp: MDP) -> None:
        """Check that a learner has seen as much as this world can show: there is room for nothing else."""
        counts, S = learner.counts, mdp.n_states
        seen, possible = keys(counts.succ_ptr, counts.succ, S), keys(mdp.succ_ptr, mdp.succ, S)
        if not np.isin(seen, possible).all():
            raise RunFileError("checkpoint: the learner has seen what cannot have happened.")

    def _run_compiled(self, world: TableWorld, learner: Learner, tick: Tick) -> None:
        """Play whole episodes in compiled code: Python is met about every 30 ms."""
        recorder, env = self._recorder, world.env
        stage = self._stage(world, learner)
        while self._t < recorder.horizon or stage.where[PLANNING] != DONE:
            if stage.where[PLANNING] == DONE:
                tick(self._t)
            before = learner.phases
            times = recorder.upcoming(_RECORDS)
            is_first = self._t == 0 and recorder.horizon > _SHORT  # a long run soon has something to return
            steps = 1 if is_first else BUDGET
            episodes = learner.play(world.sampler, env.mdp.reward, stage, times, steps)
            marks = stage.marks[: stage.where[MARKED]]
            recorder.take(episodes, marks)
            spent = {name: seconds - before[name] for name, seconds in learner.phases.items()}
            self._simulating += spent.pop("sampling")
            learner.seconds += sum(spent.values())
            self._t, self._state = int(stage.where[T]), int(stage.where[STATE])
            self._sums = float(stage.sums[BEFORE]), float(stage.sums[MEAN_BEFORE])
            set_state(learner.rng, stage.agent_words)
            recorder.reach(self._t, float(stage.sums[REWARD]), float(stage.sums[MEAN]))
        tick(self._t)

    def _stage(self, world: TableWorld, learner: Learner) -> Stage:
        """Return the run as compiled code takes it."""
        if not self._tally.size:
            self._tally = np.zeros(world.sampler.succ.size, dtype=np.int64)
        self._words = get_state(self._env_rng)
        plan = learner.plan
        where = np.array([self._t, self._state, TO_BEGIN, False, 0, 0, 0, learner.steps_left, 1, learner.began_in])
        if plan is not None and learner.episode is not None:
            where[PLANNING], where[MIXES], where[BEGUN] = DONE, plan.mixes, learner.episode.start
        sums, records = np.array([*self._sums, *self._sums]), np.empty((_RECORDS, 6))
        words = self._words, get_state(learner.rng)
        return Stage(where, sums, self._tally, _room(world), *words, records, np.empty((_RECORDS, 3)))

    def _run_watched(self, world: TableWorld, learner: Learner, tick: Tick) -> None:
        """Play the steps in compiled code and meet Python at the end of every episode: a hook looks at it, or a method is overridden."""
        sampler, mean, recorder = world.sampler, world.env.mdp.reward, self._recorder
        table, batch = (sampler.out_ptr, sampler.reward, sampler.succ), _room(world)
        if not self._tally.size:
            self._tally = np.zeros(sampler.succ.size, dtype=np.int64)
        tally, before = self._tally, self._sums
        self._words = words = get_state(self._env_rng)
        if learner.plan is None:
            learner.begin_episode(None, self._state)
        while learner.t < recorder.horizon:
            plan, over = learner.plan, False
            assert plan is not None
            while not over and learner.t < recorder.horizon:
                self._t = learner.t
                tick(learner.t)
                begun = perf_counter()
                draws = get_state(learner.rng) if plan.mixes else _NOBODY
                stop = min(BUDGET, recorder.next_time - learner.t)
                done, self._state, over = interact(
                    sampler, plan.pairs, plan.weight, plan.mixes, plan.left, tally, words, draws, self._state,
                    min(stop, learner.steps_left),
                )  # fmt: skip
                if plan.mixes:
                    set_state(learner.rng, draws)
                learner.moved_on(done)
                over = done < stop  # also where the episode may have no more steps
                if not over:
                    paid, expected = add_up(*table[:2], mean, plan.pairs, tally)
                    recorder.reach(learner.t, before[0] + paid, before[1] + expected)
                self._simulating += perf_counter() - begun
            if over and learner.episode is not None and learner.t < learner.episode.start:
                raise learner.is_stuck()
            if over:
                begun = perf_counter()
                paid, expected, n = harvest(*table, mean, plan.choice, tally, batch)
                self._sums = before = (before[0] + paid, before[1] + expected)
                recorder.reach(learner.t, *before)
                self._simulating += perf_counter() - begun
                learner.begin_episode(batch.first(n), self._state)
        self._t = learner.t
        tick(learner.t)

    def _run_steps(self, world: TableWorld, learner: StepLearner, tick: Tick) -> None:
        """Play the compiled steps of an agent that decides anew at each."""
        recorder, env = self._recorder, world.env
        self._words = words = get_state(self._env_rng)
        where, sums = np.array([self._t, self._state]), np.array(self._sums)
        marks = np.empty((_RECORDS, 3))
        inside = World(world.sampler, env.mdp.reward, words, where, sums)
        while self._t < recorder.horizon:
            tick(self._t)
            begun = perf_counter()
            times = recorder.upcoming(_RECORDS)
            n = walk(learner.rules.steps, inside, learner.memory, times, marks, BUDGET)
            recorder.take(_NO_EPISODES, marks[:n])
            (self._t, self._state), self._sums = where.tolist(), tuple(sums.tolist())
            learner.after(self._t)
            recorder.reach(self._t, *self._sums)
            self._simulating += perf_counter() - begun
        tick(self._t)

    def _run_by_hand(self, tick: Tick) -> None:
        """Play step by step, for environments and agents that are not compiled."""
        world, learner, recorder, info = self._world, self.learner, self._recorder, self.info
        mdp, (paid, expected), state = world.mdp, self._sums, self._state
        available = set(zip(info.pair_state.tolist(), info.action.tolist(), strict=True))
        begun = perf_counter() - self._simulating - getattr(learner, "seconds", 0.0)
        for t in range(self._t + 1, recorder.horizon + 1):
            chosen = learner.act(state)
            action = int(chosen) if isinstance(chosen, Integral) else -1
            if (state, action) not in available:
                raise OptionError(
                    f"learn: the agent played action {chosen!r} in state {state} at step {t}, where it is not available."
                )
            reward, succ, onwards = world.step(state, action, t)
            learner.observe(reward, succ)
            paid += reward
            expected = expected + mdp.reward[mdp.pair(state, action)] if mdp is not None else nan
            state = onwards
            recorder.reach(t, paid, expected)
            if t % _STEPS_BY_HAND == 0 or t == recorder.horizon:
                self._t, self._state, self._sums = t, state, (paid, expected)
                self._simulating = perf_counter() - begun - getattr(learner, "seconds", 0.0)
                tick(t)


def _policy_of(learner: Any, info: ProblemInfo) -> Policy | str:
    """Return the policy of a learner, or say that it has none; one that is none of ours may have anything there."""
    try:
        policy = getattr(learner, "policy", None)
    except OptionError as error:
        return str(error).partition(": ")[2].rstrip(".")
    if isinstance(policy, Policy) and policy.probs.shape == (info.n_states, info.n_actions):
        return policy
    return "the learner of this agent has none. Give its class a property that returns a spanrl.Policy of the problem's shape"


def _room(world: TableWorld) -> Batch:
    """Allocate for all that can happen in an episode, with its two pairs per state."""
    sampler = world.sampler
    most = 2 * world.env.mdp.n_states * int(np.diff(sampler.out_ptr).max())
    return Batch.room(min(most, sampler.succ.size))


def _has(learner: Any, name: str) -> bool:
    """Tell whether a class below our own learners defines a method: what it inherits from them knows nothing of its additions."""
    for kind in type(learner).__mro__:
        if kind in (Learner, StepLearner):
            return False
        if name in vars(kind):
            return True
    return False


def _set_rng(rng: np.random.Generator, given: StateReader) -> None:
    """Put back what :func:`_rng_state` returned."""
    words = given.integers("words", 2**64 - 1)
    inner = given.inner("rest")
    rest = {"has_uint32": inner.integer("has_uint32", 0, 1), "uinteger": inner.integer("uinteger", 0, 2**32 - 1)}
    if len(words) != 4:
        raise RunFileError(f"checkpoint: a random state must have four words; got {len(words)}.")
    state = {"state": np.array(words, dtype=np.uint64)}
    rng.bit_generator.state = {**rng.bit_generator.state, **rest, "state": state}


def _rng_state(rng: np.random.Generator) -> dict[str, Any]:
    """Return the state of an SFC64 generator as JSON has it."""
    state = rng.bit_generator.state
    rest = {key: state[key] for key in ("has_uint32", "uinteger")}
    return {"words": state["state"]["state"].tolist(), "rest": rest}
