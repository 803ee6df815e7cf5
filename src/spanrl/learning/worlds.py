"""Where a learner learns: an environment of ours, or one of Gymnasium, behind one small interface for driving it step by step.

A step returns (reward, next state, state to go on from). The last two differ after Gymnasium's ``truncated``, which only resets: the jump
is no transition. After ``terminated`` the process continues at the reset state, which is the next state then. A table P knows nothing of
``truncated``: where episodes are cut, its g* is not what an agent can be held to.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from spanrl.envs.env import Env, EnvInfo
from spanrl.envs.registry import make
from spanrl.errors import InputError, OptionError, SpanrlError
from spanrl.models.gym_table import declared_range
from spanrl.models.info import ProblemInfo
from spanrl.models.mdp import MDP

# wrappers that leave the dynamics as the table P says
_HARMLESS = {"TimeLimit", "OrderEnforcing", "PassiveEnvChecker", "RecordEpisodeStatistics"}


class AnyWorld(Protocol):
    """What :func:`spanrl.learn` needs of an environment."""

    id: str
    mdp: MDP | None
    step_limit: int | None
    """Steps after which an episode is cut; None without such a limit."""
    is_cut: bool
    """Whether episodes are cut, by a limit or, as was seen, by the environment itself."""

    def info(self, horizon: int) -> ProblemInfo:
        """Return what an agent is told."""

    def reset(self, rng: np.random.Generator) -> int:
        """Return the first state."""

    def step(self, state: int, action: int, step: int) -> tuple[float, int, int]:
        """Return (reward, next state, state to go on from)."""


class TableWorld:
    """An environment of ours."""

    step_limit, is_cut = None, False

    def __init__(self, env: Env) -> None:
        """Take the environment."""
        self.env, self.id, self.mdp = env, env.info.id, env.mdp
        self._rng: np.random.Generator  # since the first reset

    def info(self, horizon: int) -> ProblemInfo:
        """Return what an agent is told."""
        return ProblemInfo.from_mdp(self.env.mdp, horizon)

    def reset(self, rng: np.random.Generator) -> int:
        """Return the first state; draw from ``rng`` from now on."""
        self.resume(rng)
        return self.env.reset(rng)

    def resume(self, rng: np.random.Generator) -> None:
        """Draw from ``rng`` from now on."""
        self._rng = rng

    def step(self, state: int, action: int, step: int) -> tuple[float, int, int]:
        """Draw an outcome."""
        reward, succ = self.env.step(state, action, self._rng)
        return reward, succ, succ


class GymWorld:
    """A Gymnasium environment with Discrete spaces (1.x: ``reset`` returns two values, ``step`` five)."""

    def __init__(self, env: Any) -> None:
        """Check the spaces."""
        self.env = env
        spec = getattr(env, "spec", None)
        self.id = str(getattr(spec, "id", None) or type(getattr(env, "unwrapped", env)).__name__)
        self._first_state, self._n_states = _discrete(self.id, "observation", env.observation_space)
        self._first_action, self._n_actions = _discrete(self.id, "action", env.action_space)
        limits = [getattr(layer, "_max_episode_steps", None) for layer in self._layers()]  # as TimeLimit calls it
        self.step_limit = min((int(limit) for limit in limits if limit is not None), default=None)
        self.is_cut = self.step_limit is not None

    @cached_property
    def mdp(self) -> MDP | None:
        """The MDP of the transition table, where there is one and it is the whole truth."""
        table, inner = self._table, getattr(self.env, "unwrapped", self.env)
        if table is None or getattr(inner, "fickle_passenger", False):  # Taxi's passengers may change their mind
            return None
        fits = table.n_states == self._n_states and table.n_actions == self._n_actions
        return table if fits and self._first_state == self._first_action == 0 else None

    @cached_property
    def _table(self) -> MDP | None:
        """What the transition table says, where there is one and no wrapper changes it."""
        if any(type(layer).__name__ not in _HARMLESS for layer in self._layers()):
            return None
        try:
            low, high = self._declared or (None, None)
            return MDP.from_gymnasium(self.env, r_min=low, r_max=high)
        except SpanrlError:
            return None

    def _layers(self) -> Iterator[Any]:
        """Yield the wrappers, the outermost first."""
        layer = self.env
        while hasattr(layer, "env") and layer is not getattr(layer, "unwrapped", layer):
            yield layer
            layer = layer.env

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
    if isinstance(env, str) and (env.endswith(".npz") or "/" in env or os.sep in env):
        mdp = MDP.load(env, sha256=sha256)
        return TableWorld(Env.from_mdp(mdp, info=EnvInfo(Path(env).stem, f"The model of {Path(env).name}.")))
    if isinstance(env, str):
        return TableWorld(make(env))
    if isinstance(env, Env):
        return TableWorld(env)
    if isinstance(env, MDP):
        return TableWorld(Env.from_mdp(env))
    if all(hasattr(env, name) for name in ("reset", "step", "observation_space", "action_space")):
        return GymWorld(env)
    raise OptionError(
        f"learn: the environment must be a text, an Env, an MDP or a Gymnasium environment; got {type(env).__name__}. "
        "Give a name such as 'three-state'."
    )
