"""Agents by name: ``make_agent("scal[span_bound=5]")``, and a place to add one's own.

An agent is a frozen dataclass with ``start(info, rng)``, which returns a learner with ``act(state)`` and ``observe(reward, next_state)``.
Its fields are the parameters of the text form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np

from spanrl import names, parameters
from spanrl.agents import BUILT_IN
from spanrl.errors import OptionError
from spanrl.models.info import ProblemInfo


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


@dataclass(frozen=True)
class AgentEntry:
    """A registered agent: what :func:`list_agents` shows."""

    name: str
    factory: Callable[..., Agent] | str
    told: tuple[str, str] | None = None  # summary and source, where the class does not say them

    def load(self) -> Callable[..., Agent]:
        """Return the factory, importing its module where it is a built-in one."""
        if not isinstance(self.factory, str):
            return self.factory
        module, _, name = self.factory.partition(":")
        built_in: Callable[..., Agent] = getattr(import_module(f"spanrl.agents.{module}"), name)
        return built_in

    @property
    def summary(self) -> str:
        """One sentence on what it does."""
        return self.told[0] if self.told else str(getattr(self.load(), "summary", ""))

    @property
    def source(self) -> str:
        """Where it was published."""
        return self.told[1] if self.told else str(getattr(self.load(), "source", ""))

    @cached_property
    def parameters(self) -> dict[str, parameters.Parameter]:
        """The parameters, in order of declaration."""
        return parameters.declared(self.name, self.load())


_ENTRIES = {name: AgentEntry(name, where) for name, where in BUILT_IN.items()}


def make_agent(name: str, /, **given: Any) -> Agent:
    """Make an agent from its text form or its name and parameters.

    >>> make_agent("scal[span_bound=5]") == make_agent("scal", span_bound=5)
    True
    """
    entry, values = _looked_up(name, given)
    agent = entry.load()(**values)
    if not isinstance(agent, Agent):
        raise OptionError(
            f"{entry.name}: the factory must return an agent with start(info, rng); got {type(agent).__name__}."
        )
    return agent


def _looked_up(name: str, given: dict[str, Any]) -> tuple[AgentEntry, dict[str, names.Value]]:
    """Return the entry of a text form and the value of each parameter."""
    bare, given = parameters.split("make_agent", name, given)
    if bare not in _ENTRIES:
        raise names.unknown("make_agent", "agent", bare, _ENTRIES)
    return _ENTRIES[bare], parameters.values(bare, _ENTRIES[bare].parameters, given)


def agent_id(agent: Agent | str) -> str:
    """Return the canonical text form of an agent or of its text; the name of its class where that is not a registered one.

    >>> from spanrl.agents.scal import SCAL
    >>> agent_id(SCAL(5.0, p_scale=0.05))
    'scal[span_bound=5,p_scale=0.05]'
    """
    if isinstance(agent, str):
        entry, values = _looked_up(agent, {})
        return names.canonical(entry.name, values, parameters.defaults(entry.parameters))
    for entry in list(_ENTRIES.values()):  # a copy: another thread may register one
        factory = entry.load()
        if type(agent) is factory and is_dataclass(agent):
            declared = entry.parameters
            given = {field.name: getattr(agent, field.name) for field in fields(agent) if field.init}
            values = parameters.values(entry.name, declared, given)
            return names.canonical(entry.name, values, parameters.defaults(declared))
    return type(agent).__name__


def list_agents() -> list[AgentEntry]:
    """Return all agents, sorted by name, each with name, summary, source and parameters.

    >>> [entry.name for entry in list_agents()]
    ['psrl', 'qlearning', 'scal', 'ucrl', 'ucrl2']
    """
    return [_ENTRIES[name] for name in sorted(_ENTRIES)]


def register_agent(name: str, factory: Callable[..., Agent], *, summary: str, source: str = "") -> None:
    """Add an agent, so that ``make_agent(name)`` calls ``factory``.

    Args:
        name: a new name of [A-Za-z0-9_.-].
        factory: a frozen dataclass with ``start(info, rng)``, or a function that returns one. Each parameter is a bool, int, float or str.
        summary: one sentence.
        source: where the agent was published.
    """
    if not callable(factory):
        raise OptionError(f"register_agent: takes a name and a class or function; got {factory!r}.")
    parameters.check_new_name("register_agent", name, _ENTRIES)
    parameters.declared(name, factory)
    _ENTRIES[name] = AgentEntry(name, factory, (summary, source))
