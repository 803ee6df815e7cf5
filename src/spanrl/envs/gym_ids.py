"""Gymnasium's environments by name: ``gym:FrozenLake-v1[is_slippery=false]``, wherever an environment is named.

What stands before the brackets is an id of Gymnasium, exactly; ``gym:module:Name-v0`` imports the module first, which registers it. In the
brackets are the keywords of the environment, ``max_episode_steps`` (−1 lifts the time limit), and ``time_in_state``, which is ours: see
:meth:`spanrl.Env.from_gymnasium`. Keywords whose value is their default do not stand in the canonical form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from spanrl import names, parameters
from spanrl.envs.env import Env
from spanrl.envs.from_gymnasium import from_gymnasium
from spanrl.names import Value
from spanrl.options import Kind, typed

PREFIX = "gym:"
TIME_IN_STATE, STEP_LIMIT = "time_in_state", "max_episode_steps"
_KINDS: dict[type, Kind] = {bool: bool, int: (int, float), float: float, str: str}
_ANY: Kind = (bool, int, float, str)


class GymId(NamedTuple):
    """A text form, read: the id of Gymnasium, the canonical text form, and the value of each parameter that has one."""

    name: str
    text: str
    values: dict[str, Value]
    given: dict[str, Value]


class Opened(NamedTuple):
    """An environment of Gymnasium, the canonical text form that it was made from, its parameters, and whether time belongs in the state."""

    env: Any
    id: str
    parameters: dict[str, Value]
    time_in_state: bool

    def to_env(self) -> Env:
        """Return its table as an Env; a ModelError says why it has none that is the whole truth."""
        env = from_gymnasium(self.env, time_in_state=self.time_in_state)
        return replace(env, info=replace(env.info, id=self.id, parameters=self.parameters))


def is_gym_id(text: str) -> bool:
    """Tell whether a text names an environment of Gymnasium."""
    return text.strip().startswith(PREFIX)


def read_gym_id(text: str, given: Mapping[str, Any]) -> GymId:
    """Return what a text form and further parameters say; the module of the environment is imported, the environment not made."""
    from spanrl.envs import gym

    bare, given = parameters.split("make", text, given)
    name = bare.removeprefix(PREFIX)
    spec = gym.find(name)
    declared, is_open = gym.keywords(spec)
    declared |= {STEP_LIMIT: spec.max_episode_steps, TIME_IN_STATE: False}
    for key in given:
        if key not in declared and not is_open:
            raise names.unknown(bare, "parameter", key, declared)
    order = [*declared, *sorted(given.keys() - declared.keys())]
    chosen = {
        key: typed(bare, key, given[key], _KINDS.get(type(declared.get(key)), _ANY)) for key in order if key in given
    }
    changed = {key: value for key, value in chosen.items() if key not in declared or value != declared[key]}
    inside = ",".join(f"{key}={names.format_value(value)}" for key, value in changed.items())
    known = {key: value for key, value in declared.items() if type(value) in _KINDS}
    return GymId(name, f"{bare}[{inside}]" if inside else bare, known | chosen, changed)


def make_gymnasium(text: str, given: Mapping[str, Any] | None = None) -> Opened:
    """Make an environment of Gymnasium from its text form and further parameters."""
    from spanrl.envs import gym

    read = read_gym_id(text, given or {})
    options = {key: value for key, value in read.given.items() if key != TIME_IN_STATE}
    return Opened(gym.open_env(read.name, options), read.text, read.values, bool(read.values[TIME_IN_STATE]))
