"""Our environments as Gymnasium environments, for agents that are not ours (https://gymnasium.farama.org).

Every built-in environment has an id, its name in camel case: ``spanrl/TwoState-v0``, ``spanrl/RiverSwim-v0``, …; its
parameters are keywords of ``gymnasium.make``. The ids are registered once both packages are imported; Gymnasium itself
imports a module that stands before an id: ``gymnasium.make("spanrl:spanrl/ThreeState-v0", delta=0.01)``. The way back,
from Gymnasium to us, is :meth:`spanrl.MDP.from_gymnasium` and ``make("gym:FrozenLake-v1")`` (:mod:`spanrl.envs.gym_ids`), for which
the functions at the end find and open environments of Gymnasium.
"""

from __future__ import annotations

import inspect
import operator
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl import names
from spanrl.envs.env import Env
from spanrl.envs.registry import list_envs, make
from spanrl.envs.rendering import describe
from spanrl.errors import OptionError, missing_extra
from spanrl.seeding import streams

try:
    import gymnasium
except ImportError:
    raise missing_extra("envs.gym", "gymnasium", "gym") from None

_SPELLING = {"riverswim": "RiverSwim", "ergodic-riverswim": "ErgodicRiverSwim"}
Table = dict[int, dict[int, list[tuple[float, int, float, bool]]]]


class SpanrlEnv(gymnasium.Env[Any, Any]):
    """Run an environment of ours step by step: states and actions are the integers 0 … S−1 and 0 … A−1.

    The process continues for ever: ``terminated`` and ``truncated`` are always False, and the average reward counts.
    ``info["action_mask"]`` (int8, [A]) is 1 for the actions that are available in the new state. An action that is not
    available acts as the lowest available one, because generic agents choose among all A; play by the mask to avoid it.

    After ``reset(seed=seed)`` the random numbers are those of ``learn(env, agent, seed=seed)``.
    Attributes: ``inner`` (the Env), ``mdp`` (its MDP), ``state`` (None before the first reset), ``reward_range``
    (r_min, r_max), and as toy-text environments have them ``P`` and ``initial_state_distrib``, so that
    ``MDP.from_gymnasium`` gives the MDP back (``r_min`` and ``r_max`` from ``reward_range``; names are lost).

    Args:
        env: an Env, or a text such as ``three-state[delta=0.01]``.
        render_mode: None, or "ansi": then :meth:`render` returns text.
        parameters: those of the environment, where it is given by its name.

    >>> SpanrlEnv("three-state", delta=0.01).reset(seed=0)
    (0, {'action_mask': array([1, 0], dtype=int8)})
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(self, env: Env | str, render_mode: str | None = None, **parameters: Any) -> None:
        """Take an Env, or make one by its name and parameters."""
        if render_mode not in (None, "ansi"):
            raise OptionError(f"SpanrlEnv: render_mode must be None or 'ansi'; got {render_mode!r}. Print render().")
        self.inner = env if isinstance(env, Env) and not parameters else make(env, **parameters)  # type: ignore[arg-type]
        self.mdp = self.inner.mdp
        self.reward_range = (self.mdp.r_min, self.mdp.r_max)
        self.initial_state_distrib = self.mdp.start
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Discrete(self.mdp.n_states)
        self.action_space = gymnasium.spaces.Discrete(self.mdp.n_actions)
        self.state: int | None = None
        self._stream: np.random.Generator | None = None
        self._last: tuple[int, float] | tuple[None, None] = (None, None)

    @property
    def np_random(self) -> np.random.Generator:
        """The generator of every draw: the environment's of ``streams(np_random_seed)``, or the one that was set."""
        if self._stream is None:
            self._stream = streams(self.np_random_seed)[0]
        return self._stream

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:
        self._stream, self._np_random_seed = value, -1  # -1 is Gymnasium's "unknown"

    @cached_property
    def P(self) -> Table:
        """The outcomes as toy-text environments have them: ``P[s][a] = [(probability, s', mean reward, False), …]``."""
        table: Table = {s: {} for s in range(self.mdp.n_states)}
        for s, a in zip(self.mdp.pair_state.tolist(), self.mdp.action.tolist(), strict=True):
            table[s][a] = [(o.prob, o.succ, o.reward, False) for o in self.inner.outcomes(s, a)]
        return table

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Draw a start state; with a seed, begin the random numbers anew. ``options`` are ignored."""
        super().reset(seed=seed)
        if seed is not None:
            self._stream = streams(seed)[0]  # beside Gymnasium's own, whose checker cannot compare states of SFC64
        self.state, self._last = self.inner.reset(self.np_random), (None, None)
        return self.state, self._info(self.state)

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Play an action, a whole number in 0 … A−1: (next state, reward, False, False, info)."""
        state, chosen = self._current(), self._action(action)
        available = self._available(state)
        played = chosen if chosen in available else int(available[0])
        reward, self.state = self.inner.step(state, played, self.np_random)
        self._last = played, reward
        return self.state, reward, False, False, self._info(self.state)

    def render(self) -> str | None:
        """Return the current state, the action played last and its reward as text, or None without a render mode."""
        return describe(self.inner, self._current(), *self._last) if self.render_mode else None

    def _current(self) -> int:
        if self.state is None:
            raise gymnasium.error.ResetNeeded("SpanrlEnv: there is no state yet. Call reset() first.")
        return self.state

    def _action(self, action: Any) -> int:
        try:
            chosen = operator.index(action)
        except TypeError:
            chosen = -1
        if not 0 <= chosen < self.mdp.n_actions:
            rule = f"an action must be a whole number in 0..{self.mdp.n_actions - 1}"
            raise OptionError(f"SpanrlEnv: {rule}; got {action!r}. See action_space.")
        return chosen

    def _available(self, state: int) -> NDArray[np.int64]:
        return self.mdp.action[self.mdp.pair_ptr[state] : self.mdp.pair_ptr[state + 1]]

    def _info(self, state: int) -> dict[str, Any]:
        return {"action_mask": np.bincount(self._available(state), minlength=self.mdp.n_actions).astype(np.int8)}


def gym_id(name: str) -> str:
    """Return the Gymnasium id of a built-in environment.

    >>> gym_id("knight-quest"), gym_id("riverswim")
    ('spanrl/KnightQuest-v0', 'spanrl/RiverSwim-v0')
    """
    return f"spanrl/{_SPELLING.get(name) or name.title().replace('-', '')}-v0"


def register() -> None:
    """Register every built-in environment with Gymnasium; ids that are there already stay as they are."""
    for entry in list_envs():
        if isinstance(entry.factory, str) and gym_id(entry.name) not in gymnasium.registry:
            gymnasium.register(gym_id(entry.name), "spanrl.envs.gym:SpanrlEnv", kwargs={"env": entry.name})


def find(name: str) -> Any:
    """Return the specification of the environment ``name``, an id of Gymnasium, or ``module:id``; the module is imported first."""
    module, _, bare = name.rpartition(":")
    if module:
        try:
            import_module(module)
        except Exception as error:
            told = " ".join(str(error).split())
            raise OptionError(f"gym:{name}: {module!r} cannot be imported ({type(error).__name__}: {told}).") from error
    spec = gymnasium.registry.get(bare)
    if spec is None:
        raise names.unknown(
            f"gym:{name}", "Gymnasium environment", bare, gymnasium.registry, "gymnasium.pprint_registry() lists them."
        )
    return spec


def keywords(spec: Any) -> tuple[dict[str, Any], bool]:
    """Return the parameters of an environment with their defaults, and whether it takes others as well."""
    try:
        creator = spec.entry_point
        creator = gymnasium.envs.registration.load_env_creator(creator) if isinstance(creator, str) else creator
        declared = inspect.signature(creator).parameters.values()
    except Exception:  # a module that cannot be imported, a callable without a signature: opening it will tell
        return dict(spec.kwargs), True
    known = {
        one.name: spec.kwargs.get(one.name, None if one.default is one.empty else one.default)
        for one in declared
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) and one.name != "render_mode"
    }
    return known, any(one.kind is one.VAR_KEYWORD for one in declared)


def open_env(name: str, options: dict[str, Any]) -> Any:
    """Return ``gymnasium.make(name, **options)``, or say why not."""
    try:
        return gymnasium.make(name, **options)
    except Exception as error:  # a factory may raise anything
        told = " ".join(str(error).split())
        raise OptionError(f"gym:{name}: cannot be made ({type(error).__name__}: {told.rstrip('.')}).") from error


register()
