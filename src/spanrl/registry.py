"""Things that are made by name, ``name[key=value,…]``: environments and agents alike.

An entry is a name and a factory, whose parameters are those of the text form. The modules of built-in ones are imported when they are
first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

from spanrl import names, parameters
from spanrl.errors import OptionError
from spanrl.names import Value


@dataclass(frozen=True)
class Registered:
    """A registered environment or agent.

    Attributes:
        name: the name, unique among its kind.
        factory: what makes it, or "module:function" for a built-in one, which is imported when it is first needed.
        description: summary and source; None where the factory has them as attributes.
    """

    name: str
    factory: Callable[..., Any] | str
    description: tuple[str, str] | None = None

    def load(self) -> Callable[..., Any]:
        """Return the factory."""
        if not isinstance(self.factory, str):
            return self.factory
        module, _, function = self.factory.partition(":")
        built_in: Callable[..., Any] = getattr(import_module(module), function)
        return built_in

    @property
    def summary(self) -> str:
        """One sentence on what it is or does."""
        return self.description[0] if self.description else str(getattr(self.load(), "summary", ""))

    @property
    def source(self) -> str:
        """Where it was published."""
        return self.description[1] if self.description else str(getattr(self.load(), "source", ""))

    @cached_property
    def parameters(self) -> dict[str, parameters.Parameter]:
        """The parameters of the factory, in order of declaration."""
        return parameters.declared(self.name, self.load())

    @property
    def defaults(self) -> dict[str, Value]:
        """The default of each parameter that has one, in order of declaration."""
        return parameters.defaults(self.parameters)

    def text(self, values: Mapping[str, Value]) -> str:
        """Return the canonical text form with these values."""
        return names.canonical(self.name, values, self.defaults)


def look_up(
    who: str, kind: str, entries: Mapping[str, Registered], text: str, given: Mapping[str, Any]
) -> tuple[Registered, dict[str, Value]]:
    """Return the entry of a text form and the value of each parameter, those ``given`` as keywords included."""
    bare, given = parameters.split(who, text, given)
    if bare not in entries:
        raise names.unknown(who, kind, bare, entries)
    return entries[bare], parameters.values(bare, entries[bare].parameters, given)


def add(who: str, entries: dict[str, Registered], entry: Registered, wanted: str) -> None:
    """Register an entry; ``wanted`` says in the error what the factory must be."""
    if not callable(entry.factory):
        raise OptionError(f"{who}: takes a name and {wanted}; got {entry.factory!r}.")
    parameters.check_new_name(who, entry.name, entries)
    _ = entry.parameters  # refuses a signature that has no text form
    entries[entry.name] = entry


def listed(entries: Mapping[str, Registered]) -> list[Registered]:
    """Return the entries, sorted by name."""
    return [entries[name] for name in sorted(entries)]
