"""Where a learner learns: an environment of ours, or one of Gymnasium, behind one small interface for driving it step by step.

A step returns (reward, next state, state to go on from). The last two differ after Gymnasium's ``truncated``, which only resets: the jump
is no transition. After ``terminated`` the process continues at the reset state, which is the next state then. A table P knows nothing of
``truncated``: where episodes are cut, its g* is not what an agent can be held to.

A Gymnasium environment is played from its table by compiled code, where the table is the whole truth
(:mod:`spanrl.envs.from_gymnasium`), otherwise step by step.
"""

from __future__ import annotations

import operator
import os
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from spanrl.envs.env import Env, EnvInfo
from spanrl.envs.from_gymnasium import STANDARD, gym_name, step_limit, wrappers
from spanrl.envs.gym_ids import is_gym_id, make_gymnasium
from spanrl.envs.registry import make
from spanrl.errors import InputError, ModelError, OptionError, SpanrlError
from spanrl.kernels.sampling import ELAPSED, Sampler
from spanrl.models.gym_table import declared_range
from spanrl.models.info import ProblemInfo
from spanrl.models.mdp import MDP

# wrappers that leave the dynamics as the table P says
_HARMLESS = {*STANDARD, "RecordEpisodeStatistics"}


class AnyWorld(Protocol):
    """What :func:`spanrl.learn` needs of an environment."""

    id: str
    mdp: MDP | None
    step_limit: int | None
    """Steps after which an episode is cut; None without such a limit."""
    is_cut: bool
    """Whether episodes are cut, by a limit or, as was seen, by the environment itself."""
    played: str
    """How a Gymnasium environment is played, from its table or step by step; empty for ours."""

    def info(self, horizon: int) -> ProblemInfo:
        """Return what an agent is told."""

    def reset(self, rng: np.random.Generator) -> int:
        """Return the first state."""

    def step(self, state: int, action: int, step: int) -> tuple[float, int, int]:
        """Return (reward, next state, state to go on from)."""


class TableWorld:
    """An environment of ours, or one of Gymnasium with a table."""

    def __init__(self, env: Env) -> None:
        """Take the environment."""
        self.env, self.id, self.mdp, self.played = env, env.info.id, env.mdp, env.info.played
        self.step_limit, self.is_cut = env.step_limit, env.step_limit is not None
        self._rng: np.random.Generator  # since the first reset

    @cached_property
    def sampler(self) -> Sampler:
        """What is drawn from, with a clock of its own where episodes are cut."""
        return self.env.sampler._replace(clock=self.env.new_clock())

    @property
    def elapsed(self) -> int:
        """The steps that the episode of the environment has had; 0 where episodes are not cut."""
        return int(self.sampler.clock[ELAPSED]) if self.is_cut else 0

    def info(self, horizon: int) -> ProblemInfo:
        """Return what an agent is told."""
        return ProblemInfo.from_mdp(self.env.mdp, horizon)

    def reset(self, rng: np.random.Generator) -> int:
        """Return the first state; draw from ``rng`` from now on."""
        self.resume(rng, 0)
        return self.env.reset(rng)

    def resume(self, rng: np.random.Generator, elapsed: int) -> None:
        """Draw from ``rng`` from now on, after ``elapsed`` steps of an episode."""
        self._rng = rng
        if self.is_cut:
            self.sampler.clock[ELAPSED] = elapsed

    def step(self, state: int, action: int, step: int) -> tuple[float, int, int]:
        """Draw an outcome; go on elsewhere after a cut."""
        if self.step_limit is None:
            reward, succ = self.env.step(state, action, self._rng)
            return reward, succ, succ
        reward, succ, ends = self.env.drawn(self.env.mdp.pair(state, action), self._rng)
        clock = self.sampler.clock
        clock[ELAPSED] = 0 if ends else clock[ELAPSED] + 1
        if clock[ELAPSED] < self.step_limit:
            return reward, succ, succ
        clock[ELAPSED] = 0
        return reward, succ, self.env.drawn(self.env.mdp.n_pairs, self._rng)[1]


class GymWorld:
    """A Gymnasium environment with Discrete spaces (1.x: ``reset`` returns two values, ``step`` five)."""

    def __init__(self, env: Any, name: str = "") -> None:
        """Check the spaces."""
        self.env, self.id, self.played = env, name or gym_name(env), "step by step"
        self._first_state, self._n_states = _discrete(self.id, "observation", env.observation_space)
        self._first_action, self._n_actions = _discrete(self.id, "action", env.action_space)
        self.step_limit = step_limit(env)
        self.is_cut = self.step_limit is not None

    @cached_property
    def mdp(self) -> MDP | None:
        """The MDP of the transition table, where there is one and it is the whole truth."""
        table = self._table
        try:
            Env.from_gymnasium(getattr(self.env, "unwrapped", self.env))  # refuses a table that does not tell all
        except SpanrlError:
            return None
        return table

    @cached_property
    def _table(self) -> MDP | None:
        """What the transition table says, where there is one and no wrapper changes it."""
        if any(type(layer).__name__ not in _HARMLESS for layer in wrappers(self.env)):
            return None
        try:
            low, high = self._declared or (None, None)
            return MDP.from_gymnasium(self.env, r_min=low, r_max=high)
        except SpanrlError:
            return None

    @property
    def _declared(self) -> tuple[float, float] | None:
        """The range that the environment declares as ``reward_range``; infinite ends declare nothing."""
        try:
            return declared_range(self.env.get_wrapper_attr("reward_range"))
        except AttributeError:
            return None

    def info(self, horizon: int) -> ProblemInfo:
        """Return what an agent is told: rewards in the declared range, else in that of the table, else in [0, 1]."""
        table = self._table
        low, high = self._declared or ((table.r_min, table.r_max) if table is not None else (0.0, 1.0))
        self._range = low, high
        available = None if self.mdp is None else ProblemInfo.from_mdp(self.mdp).available
        sizes = self._n_states, self._n_actions
        return ProblemInfo(*sizes, r_min=low, r_max=high, available=available, horizon=horizon)

    def reset(self, rng: np.random.Generator) -> int:
        """Seed the environment from ``rng`` and return the first state."""
        self.is_cut = self.step_limit is not None  # and not as it was seen in another run
        state, _ = self.env.reset(seed=int(rng.integers(2**31)))
        return self._state(state, 0)

    def step(self, state: int, action: int, step: int) -> tuple[float, int, int]:
        """Take one step of the environment; go on after an ending."""
        seen, reward, terminated, truncated, _ = self.env.step(action + self._first_action)
        low, high = self._range
        if not isinstance(reward, Real) or not low <= float(reward) <= high:
            came = f"{float(reward):g}" if isinstance(reward, Real) else repr(reward)
            raise InputError(
                f"learn: {self.id} paid a reward of {came} at step {step}, outside [{low:g}, {high:g}]. "
                "Declare the range: env.unwrapped.reward_range = (low, high)."
            )
        if terminated:
            succ = self._state(self.env.reset()[0], step)
            return float(reward), succ, succ
        succ = self._state(seen, step)
        self.is_cut = self.is_cut or bool(truncated)
        return float(reward), succ, self._state(self.env.reset()[0], step) if truncated else succ

    def _state(self, seen: Any, step: int) -> int:
        """Return an observation as a state 0..S−1."""
        try:
            whole = operator.index(seen) - self._first_state
        except TypeError:
            whole = -1
        if not 0 <= whole < self._n_states:
            last = self._first_state + self._n_states - 1
            raise InputError(
                f"learn: {self.id} returned state {seen!r} at step {step}; "
                f"it must lie in {self._first_state}..{last}, as its observation_space says."
            )
        return whole


def about(world: TableWorld | GymWorld, *, gain_given: bool) -> dict[str, Any]:
    """Return what the ``meta`` of a run says of its world, once it is over."""
    out: dict[str, Any] = {"played": world.played} if world.played else {}
    if world.is_cut:
        out["step_limit"] = world.step_limit
        if not gain_given and world.mdp is not None:  # whoever gives a gain knows what it is
            out["regret_exact"] = False
    return out


def _discrete(who: str, what: str, space: Any) -> tuple[int, int]:
    """Return (first value, number of values) of a Discrete space."""
    if type(space).__name__ != "Discrete":
        raise OptionError(
            f"learn: {who} has the {what} space {space}; only Discrete spaces are supported. Number the {what}s, or wrap the environment."
        )
    return int(space.start), int(space.n)


def as_world(env: Any, *, sha256: str | None = None) -> TableWorld | GymWorld:
    """Return the world of a text, an ``Env``, an ``MDP``, a model file (with this digest) or a Gymnasium environment."""
    if isinstance(env, os.PathLike):
        env = os.fspath(env)
    if isinstance(env, str):
        return _by_gym_id(env) if is_gym_id(env) else TableWorld(_by_text(env, sha256))
    if isinstance(env, Env):
        return TableWorld(env)
    if isinstance(env, MDP):
        return TableWorld(Env.from_mdp(env))
    if all(hasattr(env, name) for name in ("reset", "step", "observation_space", "action_space")):
        try:
            return TableWorld(Env.from_gymnasium(env))
        except SpanrlError:
            return GymWorld(env)
    raise OptionError(
        f"learn: the environment must be a text, an Env, an MDP or a Gymnasium environment; got {type(env).__name__}. "
        "Give a name such as 'three-state'."
    )


def _by_text(text: str, sha256: str | None) -> Env:
    """Return the environment of a name of ours, or of a model file."""
    if not (text.endswith(".npz") or "/" in text or os.sep in text):
        return make(text)
    mdp = MDP.load(text, sha256=sha256)
    return Env.from_mdp(mdp, info=EnvInfo(Path(text).stem, f"The model of {Path(text).name}."))


def _by_gym_id(text: str) -> TableWorld | GymWorld:
    """Return the world of a Gymnasium id: played from its table where there is one; who asks for the time in the state needs one."""
    made = make_gymnasium(text)
    try:
        return TableWorld(made.to_env())
    except ModelError:
        if made.time_in_state:
            raise
        return GymWorld(made.env, made.id)
