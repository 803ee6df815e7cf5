"""Environments by name: ``make("three-state[delta=0.01]")``, and a place to add one's own.

An environment is a name and a factory. The factory's parameters, all with defaults, are the parameters of the text form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from spanrl.envs.env import Env, EnvInfo
from spanrl.errors import OptionError
from spanrl.registry import Registered, add, listed, look_up

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


_ENTRIES = {
    name: Registered(name, f"spanrl.envs.{where}", (summary, source)) for name, where, source, summary in _BUILT_IN
}


def make(name: str, /, **given: Any) -> Env:
    """Make an environment from its text form or its name and parameters.

    Args:
        name: ``name`` or ``name[key=value,…]``.
        given: further parameters; a key may be given in one of the two places.

    Returns:
        An :class:`Env`.

    Raises:
        UnknownNameError: the name or a parameter is not known.
        OptionError: a value is of another type or out of its range.

    >>> make("three-state[delta=0.01]") == make("three-state", delta=0.01)
    True
    >>> make("riverswim", n_states=6, variant="osband").info.id
    'riverswim[variant=osband]'
    """
    entry, values = look_up("make", "environment", _ENTRIES, name, given)
    env = entry.load()(**values)
    if not isinstance(env, Env):
        raise OptionError(f"{entry.name}: the factory must return an Env; got {type(env).__name__}. Try Env.from_mdp.")
    return replace(env, info=EnvInfo(entry.text(values), entry.summary, entry.source, values))


def list_envs() -> list[Registered]:
    """Return all environments, sorted by name, each with name, summary, source and defaults.

    Returns:
        The entries.

    >>> [entry.name for entry in list_envs()][-2:]
    ['three-state', 'two-state']
    """
    return listed(_ENTRIES)


def register_env(name: str, factory: Factory, *, summary: str, source: str = "") -> None:
    """Add an environment, so that ``make(name)`` calls ``factory``.

    Args:
        name: a new name of [A-Za-z0-9_.-].
        factory: a function that returns an Env. Each of its parameters has a default that is a bool, int, float or str;
            its annotation, or else the default, declares the type.
        summary: one sentence.
        source: where the environment was published.

    Raises:
        OptionError: the name is taken or no word, or a parameter has no default that a text can hold.

    >>> import spanrl
    >>> spanrl.register_env("riverswim", lambda: spanrl.make("two-state"), summary="Another one.")
    Traceback (most recent call last):
        ...
    spanrl.errors.OptionError: register_env: 'riverswim' is registered already. Choose another name.
    """
    entry = Registered(name, factory, (summary, source))
    without = [key for key, one in entry.parameters.items() if one.default is None] if callable(factory) else []
    if without:
        raise OptionError(f"{name}: every parameter of an environment has a default; {without[0]!r} has none.")
    add("register_env", _ENTRIES, entry, "a function that returns an Env")
