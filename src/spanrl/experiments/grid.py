"""The [[env]] and [[agent]] tables of a spec file, grids and models included, as canonical entries."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from spanrl import names, parameters
from spanrl.agents.registry import list_agents, make_agent
from spanrl.envs.gym_ids import is_gym_id, read_gym_id
from spanrl.envs.registry import list_envs, make
from spanrl.errors import InputError, OptionError
from spanrl.experiments.fields import LONGEST_LABEL, EntryFields, convert, told
from spanrl.experiments.spec_entry import SpecEntry, check_entries
from spanrl.learning.worlds import as_world
from spanrl.models.mdp import MDP
from spanrl.names import Value
from spanrl.registry import Registered
from spanrl.regular import regular_bytes

_MODEL = ".npz"
_STEM = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")


class Table(NamedTuple):
    """An [[env]] or [[agent]] table: where it stands ("env[2]"), its own fields, and its parameters, each with its list of values."""

    where: str
    fields: EntryFields
    grid: Mapping[str, Sequence[Any]]

    @property
    def size(self) -> int:
        """The number of entries it stands for."""
        return prod(len(values) for values in self.grid.values())

    @property
    def is_model(self) -> bool:
        """Whether it names a model file."""
        return self.fields.id.endswith(_MODEL) and not is_gym_id(self.fields.id)


def read_tables(who: str, key: str, tables: Iterable[Mapping[str, Any]]) -> list[Table]:
    """Return the tables under ``key``, their own fields checked and their grids not yet expanded."""
    out = []
    for i, table in enumerate(tables):
        where = f"{key}[{i}]"
        fields = convert(who, table, EntryFields, f"{where}.")
        given = {name: value for name, value in table.items() if name not in EntryFields.__struct_fields__}
        if fields.sha256 is not None and not fields.id.endswith(_MODEL):
            raise OptionError(f"{who}: {where}.sha256 is for models ({_MODEL}) alone; got the id {fields.id!r}.")
        grid = {name: value if isinstance(value, list | tuple) else [value] for name, value in given.items()}
        empty = next((name for name, values in grid.items() if not values), None)
        if empty is not None:
            raise OptionError(f"{who}: {where}.{empty} must be a value or a list of values; got the empty list.")
        out.append(Table(f"{who}: {where}", fields, grid))
    return out


def make_envs(who: str, tables: Sequence[Table], folder: Path) -> tuple[SpecEntry, ...]:
    """Return the environments, each made once; models are looked for from ``folder``."""
    known = {entry.name: entry for entry in list_envs()}
    out: list[SpecEntry] = []
    for table in tables:
        if table.is_model:
            out.append(_model(table, folder, known))
        elif is_gym_id(table.fields.id):
            out += _expand(table, _gym_id, as_world)
        else:
            out += _expand(table, partial(_canonical, "environment", known), make)
    return check_entries(who, "env", out)


def make_agents(who: str, tables: Sequence[Table]) -> tuple[SpecEntry, ...]:
    """Return the agents, each made once."""
    known = {entry.name: entry for entry in list_agents()}
    canonical = partial(_canonical, "agent", known)
    return check_entries(who, "agent", [entry for table in tables for entry in _expand(table, canonical, make_agent)])


def parameter_texts(kind: str, text: str) -> dict[str, str]:
    """Return the value of every parameter of an environment or agent (``kind`` "env" or "agent"), as the text form has it."""
    if kind == "env" and is_gym_id(text):
        values = read_gym_id(text, {}).values
    else:
        known = {entry.name: entry for entry in (list_envs() if kind == "env" else list_agents())}
        values = _canonical(kind, known, text, {})[1]
    return {key: names.format_value(value) for key, value in values.items()}


def load_entries(who: str, key: str, tables: Iterable[Mapping[str, Any]]) -> tuple[SpecEntry, ...]:
    """Return the entries of a normalised file as they stand there; nothing is made or looked up."""
    out = []
    for table in read_tables(who, key, tables):
        if table.grid:
            raise OptionError(f"{table.where} must have id, label and sha256 alone; got {next(iter(table.grid))!r}.")
        text, label = table.fields.id, table.fields.label
        if table.is_model:
            stem = _stem(table)
            out.append(SpecEntry(stem, label or stem, text, table.fields.sha256 or ""))
        else:
            _guarded(table.where, names.parse, text)
            out.append(SpecEntry(text, label or text))
    return check_entries(who, key, out)


Canonical = Callable[[str, Mapping[str, Any]], tuple[str, dict[str, Value]]]
"""From a text form and further parameters to the canonical id and the value of every parameter."""


def _expand(table: Table, canonical: Canonical, build: Callable[[str], Any]) -> list[SpecEntry]:
    """Return an entry for each member of the grid, the last key varying fastest."""
    varying = [key for key, values in table.grid.items() if len(values) > 1]
    out = []
    for values in product(*table.grid.values()):
        given = dict(zip(table.grid, values, strict=True))
        text, chosen = _guarded(table.where, canonical, table.fields.id, given)
        _guarded(table.where, build, text)
        out.append(SpecEntry(text, _label(table, text, {key: chosen[key] for key in varying})))
    return out


def _canonical(
    what: str, known: Mapping[str, Registered], text: str, given: Mapping[str, Any]
) -> tuple[str, dict[str, Value]]:
    """Return the canonical id and the value of every parameter.

    Both come from the registry alone, not from what was made: so the id can be made again, whatever a factory returns.
    """
    bare, given = parameters.split(what, text, given)
    if bare not in known:
        raise names.unknown("id", what, bare, known)
    declared = known[bare].parameters
    for key in given:
        if key not in declared:
            raise names.unknown(bare, "parameter", key, [*declared, "label"])
    values = parameters.values(bare, declared, given)
    return names.canonical(bare, values, parameters.defaults(declared)), values


def _gym_id(text: str, given: Mapping[str, Any]) -> tuple[str, dict[str, Value]]:
    read = read_gym_id(text, given)
    return read.text, read.values


def _label(table: Table, text: str, varying: Mapping[str, Value]) -> str:
    if table.fields.label is None:
        return text
    label = ", ".join([table.fields.label, *(f"{key}={names.format_value(value)}" for key, value in varying.items())])
    if len(label) > LONGEST_LABEL:
        raise OptionError(
            f"{table.where}.label must have at most {LONGEST_LABEL} characters, the keys of the grid included; got {label!r}."
        )
    return label


def _model(table: Table, folder: Path, known: Mapping[str, Registered]) -> SpecEntry:
    """Return the entry of a model file that can be loaded and is the one that was meant."""
    stem, fields = _stem(table), table.fields
    if table.grid:
        raise OptionError(f"{table.where}: a model file takes no parameters; got {next(iter(table.grid))!r}.")
    if stem in known:
        raise OptionError(
            f"{table.where}: the model {fields.id!r} has the name of an environment, {stem!r}. Rename the file."
        )
    path = Path(os.path.abspath(folder / fields.id))
    _guarded(table.where, MDP.load, path)
    digest = hashlib.sha256(regular_bytes(path)).hexdigest()
    if fields.sha256 is not None and fields.sha256 != digest:
        raise OptionError(
            f"{table.where}: the model file {path} has changed (its SHA-256 is {digest[:12]}…, not {fields.sha256[:12]}…). "
            "Bring back the old file, or take sha256 out."
        )
    return SpecEntry(stem, fields.label or stem, str(path), digest)


def _stem(table: Table) -> str:
    stem = Path(table.fields.id).stem
    if not _STEM.fullmatch(stem):
        raise OptionError(
            f"{table.where}: a model file must be named by letters, digits, _, - and dots; got {table.fields.id!r}. Rename it."
        )
    return stem


def _guarded(where: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``function``; an error says where in the spec it arose."""
    try:
        return function(*arguments)
    except InputError as error:
        raise type(error)(f"{where}: {error}") from None
    except Exception as error:  # the factory of a plugin may raise anything
        raise OptionError(f"{where}: cannot be made ({told(error)}).") from error
