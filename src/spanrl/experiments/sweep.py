"""The parameters that an experiment varies, as columns of its tables: ``agent.span_bound``, ``env.delta``.

A parameter is varied where entries of one name differ in it; entries of another name have nothing there. Values come from the cells,
which know the defaults too, or else from the ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spanrl import names
from spanrl.errors import OptionError
from spanrl.experiments.reading import Group
from spanrl.experiments.spec_entry import SpecEntry
from spanrl.names import Value


@dataclass(frozen=True)
class Sweep:
    """The type of each column, and the values of each environment and agent, by ("env" or "agent", id); None where there is none."""

    kinds: dict[str, type[Value]]
    values: dict[tuple[str, str], dict[str, Value | None]]

    def of(self, env: str, agent: str) -> dict[str, Value | None]:
        """Return the columns of an agent in an environment."""
        return self.values["env", env] | self.values["agent", agent]


def sweep(envs: Sequence[SpecEntry], agents: Sequence[SpecEntry], groups: Iterable[Group]) -> Sweep:
    """Return the columns of an experiment."""
    said: dict[tuple[str, str], Mapping[str, str]] = {}
    for group in groups:
        for kind, entry in (("env", group.env), ("agent", group.agent)):
            said[kind, entry.id] = group.cells[0].parameters.get(kind, {})
    found = Sweep({}, {})
    for kind, entries in (("env", envs), ("agent", agents)):
        keys = varied(entries)
        rows = {entry.id: _row(entry, keys, said.get((kind, entry.id), {})) for entry in entries}
        kinds = {key: _common([row[key] for row in rows.values()]) for key in keys}
        found.kinds.update({f"{kind}.{key}": of for key, of in kinds.items()})
        for name, row in rows.items():
            found.values[kind, name] = {f"{kind}.{key}": _as(row[key], kinds[key]) for key in keys}
    return found


def varied(entries: Iterable[SpecEntry]) -> list[str]:
    """Return the parameters in which entries of one name differ, in the order in which they appear.

    >>> varied([SpecEntry(text, text) for text in ("ucrl", "scal[span_bound=2]", "scal[span_bound=5]")])
    ['span_bound']
    """
    given: dict[str, list[dict[str, Value]]] = {}
    for entry in entries:
        if not entry.model:
            name, values = names.parse(entry.id)
            given.setdefault(name, []).append(values)
    keys = {
        key: None
        for of_name in given.values()
        for values in of_name
        for key in values
        if len({names.format_value(other[key]) if key in other else "" for other in of_name}) > 1
    }
    return list(keys)


def _row(entry: SpecEntry, keys: Sequence[str], said: Mapping[str, str]) -> dict[str, Value | None]:
    given = {} if entry.model else names.parse(entry.id)[1]
    return {key: given[key] if key in given else _read(said.get(key)) for key in keys}


def _read(text: str | None) -> Value | None:
    try:
        return None if text is None else names.parse_value(text)
    except OptionError:  # the default of an environment of Gymnasium may be any text
        return text


def _common(values: Sequence[Value | None]) -> type[Value]:
    """Return the type that holds all values: numbers where all are, text otherwise."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) == 1:
        return next(iter(kinds))
    return float if kinds == {int, float} else str


def _as(value: Value | None, kind: type[Value]) -> Value | None:
    if value is None or isinstance(value, kind):
        return value
    return names.format_value(value) if kind is str else kind(value)
