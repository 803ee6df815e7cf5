"""Environments by name: ``make("three-state[delta=0.01]")``, and a place to add one's own.

An environment is a name and a factory. The factory's parameters, all with defaults, are the parameters of the text
form; the modules of the built-in environments are imported when they are first used.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, NamedTuple

from spanrl import names
from spanrl.envs.env import Env, EnvInfo
from spanrl.envs.options import require, typed
from spanrl.errors import OptionError
from spanrl.names import Value

Factory = Callable[..., Env]

_PAPER = "Fruit, Pirotta, Lazaric & Ortner, ICML 2018"
_BUILT_IN = (
    (
        "two-state",
        "two_state:two_state",
        f"{_PAPER}, Example 1",
        "Two states, deterministic: under a span bound the best policy is randomised.",
    ),
    (
        "three-state",
        "three_state:three_state",
        f"{_PAPER}, Section 6",
        "Three states, Bernoulli rewards: diameter 1/delta, span near 1.",
    ),
    (
        "knight-quest",
        "knight_quest:knight_quest",
        f"{_PAPER}, appendix on experiments",
        "A 4x4 game with a mine, a town, a dragon and a princess: 360 states, diameter near 250, span near 3.28.",
    ),
    (
        "counterexample-nonfeasible",
        "counterexamples:nonfeasible",
        f"{_PAPER}, appendix on the limitations of ScOpt",
        "Two states in which one step of the truncated operator belongs to no decision rule.",
    ),
    (
        "counterexample-fixed-point",
        "counterexamples:fixed_point",
        f"{_PAPER}, appendix on the limitations of ScOpt",
        "Three states in which the truncated operator is not feasible at its own fixed point.",
    ),
    (
        "counterexample-cycle",
        "counterexamples:cycle",
        f"{_PAPER}, appendix on the limitations of ScOpt",
        "Three states in which iterating the truncated operator cycles for ever.",
    ),
    (
        "riverswim",
        "riverswim:riverswim",
        "Strehl & Littman 2008; Osband, Russo & Van Roy 2013; Bourel et al. 2020",
        "A chain against the current: a small reward at the left end, a large one at the right end.",
    ),
)


class Parameter(NamedTuple):
    """The declared type and default of a parameter."""

    kind: type[Value]
    default: Value


@dataclass(frozen=True)
class EnvEntry:
    """A registered environment: what :func:`list_envs` shows."""

    name: str
    summary: str
    source: str
    factory: Factory | str

    def load(self) -> Factory:
        """Return the factory, importing its module where it is a built-in one."""
        if not isinstance(self.factory, str):
            return self.factory
        module, _, function = self.factory.partition(":")
        built_in: Factory = getattr(import_module(f"spanrl.envs.{module}"), function)
        return built_in

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters of the factory, in order of declaration."""
        return _parameters(self.name, self.load())

    @property
    def defaults(self) -> dict[str, Value]:
        """The default of each parameter, in order of declaration."""
        return {key: parameter.default for key, parameter in self.parameters.items()}


_ENTRIES = {name: EnvEntry(name, summary, source, where) for name, where, source, summary in _BUILT_IN}


def make(name: str, /, **parameters: Any) -> Env:
    """Make an environment from its text form or its name and parameters.

    Args:
        name: ``name`` or ``name[key=value,…]``.
        parameters: further parameters; a key may be given in one of the two places.

    >>> make("three-state[delta=0.01]") == make("three-state", delta=0.01)
    True
    >>> make("riverswim", n_states=6, variant="osband").info.id
    'riverswim[variant=osband]'
    """
    require(isinstance(name, str), "make", "the environment must be a text such as 'two-state'", name, "Give its name.")
    bare, given = names.parse(name)
    twice = sorted(given.keys() & parameters.keys())
    if twice:
        raise OptionError(f"make: {twice[0]!r} is given in the text {name!r} and as a keyword. Give it once.")
    if bare not in _ENTRIES:
        raise names.unknown("make", "environment", bare, _ENTRIES)
    entry = _ENTRIES[bare]
    values = _values(entry, given | parameters)
    env = entry.load()(**values)
    if not isinstance(env, Env):
        raise OptionError(f"{bare}: the factory must return an Env; got {type(env).__name__}. Try Env.from_mdp.")
    text = names.canonical(bare, values, entry.defaults)
    return replace(env, info=EnvInfo(text, entry.summary, entry.source, values))


def list_envs() -> list[EnvEntry]:
    """Return all environments, sorted by name, each with name, summary, source and defaults.

    >>> [entry.name for entry in list_envs()][-2:]
    ['three-state', 'two-state']
    """
    return [_ENTRIES[name] for name in sorted(_ENTRIES)]


def register_env(name: str, factory: Factory, *, summary: str, source: str = "") -> None:
    """Add an environment, so that ``make(name)`` calls ``factory``.

    Args:
        name: a new name of [A-Za-z0-9_.-].
        factory: a function that returns an Env. Each of its parameters has a default that is a bool, int, float or str;
            its annotation, or else the default, declares the type.
        summary: one sentence.
        source: where the environment was published.
    """
    if not isinstance(name, str) or not callable(factory):
        raise OptionError(
            f"register_env: takes a name and a function that returns an Env; got {name!r} and {factory!r}."
        )
    if names.parse(name) != (name, {}):
        raise OptionError(f"register_env: a name must be a word of [A-Za-z0-9_.-]; got {name!r}. Drop the brackets.")
    if name in _ENTRIES:
        raise OptionError(f"register_env: {name!r} is registered already. Choose another name.")
    _parameters(name, factory)
    _ENTRIES[name] = EnvEntry(name, summary, source, factory)


def _values(entry: EnvEntry, given: dict[str, Any]) -> dict[str, Value]:
    """Return the value of every parameter: those given, checked for their type, and the defaults of the rest."""
    declared = entry.parameters
    for key in given:
        if key not in declared:
            raise names.unknown(entry.name, "parameter", key, declared)
    return {
        key: typed(entry.name, key, given[key], parameter.kind) if key in given else parameter.default
        for key, parameter in declared.items()
    }


def _parameters(name: str, factory: Factory) -> dict[str, Parameter]:
    """Read parameters, types and defaults from the signature of ``factory``."""
    kinds: dict[str, type[Value]] = {"bool": bool, "int": int, "float": float, "str": str}
    out = {}
    for key, parameter in inspect.signature(factory).parameters.items():
        # annotations are strings where the factory's module postpones their evaluation
        annotation = getattr(parameter.annotation, "__name__", parameter.annotation)
        kind = kinds.get(annotation) or kinds.get(type(parameter.default).__name__)
        by_keyword = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if kind is None or not by_keyword or parameter.default is parameter.empty:
            raise OptionError(
                f"{name}: every parameter of the factory must be a keyword with a default of type bool, int, float or "
                f"str; {key!r} is not. Give it such a default."
            )
        out[key] = Parameter(kind, typed(name, key, parameter.default, kind))
    return out
