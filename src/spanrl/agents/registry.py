"""Agents by name: ``make_agent("scal[span_bound=5]")``, and a place to add one's own.

An agent is a frozen dataclass with ``start(info, rng)``, which returns a learner with ``act(state)`` and ``observe(reward, next_state)``.
Its fields are the parameters of the text form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from spanrl import parameters
from spanrl.agents import BUILT_IN
from spanrl.errors import OptionError
from spanrl.models.info import ProblemInfo
from spanrl.registry import Registered, add, listed, look_up


@runtime_checkable
class AnyLearner(Protocol):
    """What an agent's ``start`` returns."""

    def act(self, state: int) -> int:
        """Return the action to play."""

    def observe(self, reward: float, next_state: int) -> None:
        """Take what it brought."""


@runtime_checkable
class Agent(Protocol):
    """A configuration that starts learners."""

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> AnyLearner:
        """Return a learner for the problem."""


_ENTRIES = {name: Registered(name, f"spanrl.agents.{where}") for name, where in BUILT_IN.items()}


def make_agent(name: str, /, **given: Any) -> Agent:
    """Make an agent from its text form or its name and parameters.

    Args:
        name: ``name`` or ``name[key=value,…]``.
        given: further parameters; a key may be given in one of the two places.

    Returns:
        The agent.

    Raises:
        UnknownNameError: the name or a parameter is not known.
        OptionError: a value is of another type or out of its range.

    >>> make_agent("scal[span_bound=5]") == make_agent("scal", span_bound=5)
    True
    """
    entry, values = look_up("make_agent", "agent", _ENTRIES, name, given)
    agent = entry.load()(**values)
    if not isinstance(agent, Agent):
        raise OptionError(
            f"{entry.name}: the factory must return an agent with start(info, rng); got {type(agent).__name__}."
        )
    return agent


def agent_id(agent: Agent | str) -> str:
    """Return the canonical text form of an agent or of its text; the name of its class where that is not a registered one.

    What no text can hold stands there as a word for it (:class:`spanrl.BiasDifferences`, its digest).

    >>> from spanrl.agents.scal import SCAL
    >>> agent_id(SCAL(5.0, p_scale=0.05))
    'scal[span_bound=5,p_scale=0.05]'
    """
    if isinstance(agent, str):
        entry, values = look_up("make_agent", "agent", _ENTRIES, agent, {})
        return entry.text(values)
    for entry in list(_ENTRIES.values()):  # a copy: another thread may register one
        factory = entry.load()
        if type(agent) is factory and is_dataclass(agent):
            given = {field.name: getattr(agent, field.name) for field in fields(agent) if field.init}
            in_text = {key: value for key, value in given.items() if key in entry.parameters}
            others = {key: str(value) for key, value in given.items() if key not in in_text and value is not None}
            return entry.text(parameters.values(entry.name, entry.parameters, in_text) | others)
    return type(agent).__name__


def list_agents() -> list[Registered]:
    """Return all agents, sorted by name, each with name, summary, source and parameters.

    Returns:
        The entries.

    >>> [entry.name for entry in list_agents()]
    ['focus', 'imed-rl', 'kl-ucrl', 'psrl', 'qlearning', 'scal', 'scal-plus', 'tsde', 'tucrl', 'ucrl', 'ucrl2', 'ucrl2b', 'ucrl3']
    """
    return listed(_ENTRIES)


def register_agent(name: str, factory: Callable[..., Agent], *, summary: str, source: str = "") -> None:
    """Add an agent, so that ``make_agent(name)`` calls ``factory``.

    Args:
        name: a new name of [A-Za-z0-9_.-].
        factory: a frozen dataclass with ``start(info, rng)``, or a function that returns one. Each parameter is a bool, int, float or str.
        summary: one sentence.
        source: where the agent was published.

    Raises:
        OptionError: the name is taken or no word, or a parameter has no type that a text can hold.

    >>> import spanrl
    >>> spanrl.register_agent("scal", spanrl.SCAL, summary="Again.")
    Traceback (most recent call last):
        ...
    spanrl.errors.OptionError: register_agent: 'scal' is registered already. Choose another name.
    """
    add("register_agent", _ENTRIES, Registered(name, factory, (summary, source)), "a class or function")
