"""Environments by name: ``make("three-state[delta=0.01]")``, and a place to add one's own.

An environment is a name and a factory. The factory's parameters, all with defaults, are the parameters of the text form, and the
docstring of a factory of ours says what there is to know, under fixed headings (:mod:`spanrl.envs.docstrings`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from spanrl.envs import docstrings
from spanrl.envs.env import Env, EnvInfo
from spanrl.envs.gym_ids import is_gym_id, make_gymnasium
from spanrl.errors import OptionError
from spanrl.registry import Registered, add, listed, look_up

Factory = Callable[..., Env]

_BUILT_IN = {
    # the paper's
    "two-state": "two_state:two_state",
    "three-state": "three_state:three_state",
    "knight-quest": "knight_quest:knight_quest",
    "counterexample-nonfeasible": "counterexamples:nonfeasible",
    "counterexample-fixed-point": "counterexamples:fixed_point",
    "counterexample-cycle": "counterexamples:cycle",
    # hard to explore
    "riverswim": "riverswim:riverswim",
    "ergodic-riverswim": "riverswim:ergodic_riverswim",
    "six-arms": "six_arms:six_arms",
    "nasty-7": "nasty_seven:nasty_seven",
    "deep-sea": "deep_sea:deep_sea",
    "jaksch-lower-bound": "jaksch_lower_bound:jaksch_lower_bound",
    "focus-pair": "focus_pair:focus_pair",
    # grid worlds
    "4-rooms": "rooms:four_rooms",
    "2-rooms": "rooms:two_rooms",
    "frozen-lake": "frozen_lake:frozen_lake",
    "taxi": "taxi:taxi",
    # operations research
    "queue-admission": "queue_admission:queue_admission",
    "two-queues": "two_queues:two_queues",
    "inventory": "inventory:inventory",
    "machine-replacement": "machine_replacement:machine_replacement",
    # random
    "garnet": "garnet:garnet",
    "garnet-chain": "garnet:garnet_chain",
}


class BuiltInEnv(Registered):
    """An environment of ours: what it is, and where it was published, stand in the docstring of its factory."""

    @property
    def summary(self) -> str:
        """One sentence on what it is."""
        return docstrings.summary(self.load())

    @property
    def source(self) -> str:
        """Where it was published."""
        return " ".join(docstrings.sections(self.load()).get("Source", "").split())


_ENTRIES: dict[str, Registered] = {name: BuiltInEnv(name, f"spanrl.envs.{where}") for name, where in _BUILT_IN.items()}


def make(name: str, /, **given: Any) -> Env:
    """Make an environment from its text form or its name and parameters.

    Args:
        name: ``name`` or ``name[key=value,…]``; a name such as ``gym:FrozenLake-v1`` is one of Gymnasium, whose table is read.
        given: further parameters; a key may be given in one of the two places.

    Returns:
        An :class:`Env`.

    Raises:
        UnknownNameError: the name or a parameter is not known.
        OptionError: a value is of another type or out of its range.
        ModelError: an environment of Gymnasium has no table, or one that is not the whole truth.

    >>> make("three-state[delta=0.01]") == make("three-state", delta=0.01)
    True
    >>> make("riverswim", n_states=6, variant="osband").info.id
    'riverswim[variant=osband]'
    """
    if isinstance(name, str) and is_gym_id(name):
        return make_gymnasium(name, given).to_env()
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
    ['two-queues', 'two-state']
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
