"""The fields of a spec file and their types: each fault becomes one sentence with the key and what came."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from spanrl import names
from spanrl.errors import OptionError
from spanrl.options import whole_number

MOST_CELLS = 10**6
LONGEST_LABEL = 80
_MOST_POINTS = 10**5

_Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Tables = Annotated[list[dict[str, Any]], Meta(min_length=1)]
# no control character, no line or paragraph separator, no half of a surrogate pair
_Label = Annotated[
    str, Meta(min_length=1, max_length=LONGEST_LABEL, pattern=r"\A[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]*\Z")
]


class Fields(msgspec.Struct):
    """A spec file."""

    name: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]+\Z")]
    horizon: int | float
    seeds: int | float | str | Annotated[list[_Seed], Meta(min_length=1)]
    env: _Tables
    agent: _Tables
    points: int | float = 100
    plugins: list[Annotated[str, Meta(pattern=r"\A[^\W\d]\w*(\.[^\W\d]\w*)*\Z")]] = []


class EntryFields(msgspec.Struct):
    """What an [[env]] or [[agent]] table has besides parameters."""

    id: Annotated[str, Meta(min_length=1)]
    label: _Label | None = None
    sha256: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")] | None = None


_RULES = {
    "name": "a word of [A-Za-z0-9_-]",
    "horizon": "a whole number ≥ 1",
    "points": "a whole number ≥ 1",
    "seeds": 'a number n for 0..n−1, a list of different whole numbers from 0 to 2⁶³−1, or a text such as "0:50"',
    "env": "one [[env]] table or more, each with an id",
    "agent": "one [[agent]] table or more, each with an id",
    "plugins": 'a list of names of Python modules, such as ["my_module"]',
    "id": "a text such as 'three-state' or 'scal[span_bound=5]'",
    "label": f"a text of 1 to {LONGEST_LABEL} characters, all on one line",
    "sha256": "64 hexadecimal digits in lower case",
}
_AT = re.compile(r"`\$([^`]*)`")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_RANGE = re.compile(r"([0-9]{1,19}):([0-9]{1,19})")

Kind = TypeVar("Kind", bound=msgspec.Struct)


def parse_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file, or say where it breaks."""
    try:
        return tomllib.loads(path.read_bytes().decode())
    except FileNotFoundError:
        raise OptionError(f"spec: no file {path}. Give the path of a TOML file.") from None
    except OSError as error:
        raise OptionError(f"spec: {path} cannot be read ({error.strerror or error}). Give a TOML file.") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise OptionError(f"spec {path}: must be UTF-8 text; line {line} is not. Save it as UTF-8.") from None
    except (ValueError, RecursionError) as error:  # also of very long numbers and very deep nesting
        raise OptionError(f"spec {path}: not TOML: {error}.") from None


def read_fields(who: str, data: Mapping[str, Any]) -> Fields:
    """Return the fields of a whole spec, horizon and points as whole numbers."""
    known = Fields.__struct_fields__
    for key in data:
        if key not in known:
            raise names.unknown(who, "key", str(key), known)
    fields = convert(who, data, Fields)
    fields.horizon = whole_number(who, "horizon", fields.horizon)
    fields.points = whole_number(who, "points", fields.points, _MOST_POINTS)
    return fields


def convert(who: str, data: Mapping[str, Any], kind: type[Kind], at: str = "") -> Kind:
    """Return ``data`` as ``kind``; ``at`` is where it stands in the file."""
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in data:
            raise OptionError(f"{who}: {at}{field.name} is missing; it must be {_RULES[field.name]}.")
    try:
        return msgspec.convert(dict(data), kind)
    except msgspec.ValidationError as error:
        raise _sentence(who, data, at, error) from None


def read_seeds(who: str, seeds: float | str | list[int]) -> tuple[int, ...]:
    """Return the seeds that a number, a list or a text such as "0:50" stands for."""
    if isinstance(seeds, list):
        _refuse_many(who, len(seeds))
        twice = next((first for first, second in pairwise(sorted(seeds)) if first == second), None)
        if twice is not None:
            raise OptionError(f"{who}: seeds must differ; {twice} is there twice. Give it once.")
        return tuple(seeds)
    if not isinstance(seeds, str):
        count = whole_number(who, "seeds", seeds)
        _refuse_many(who, count)
        return tuple(range(count))
    match = _RANGE.fullmatch(seeds.strip())
    first, end = map(int, match.groups()) if match else (0, 0)
    if not match or end > 2**63:
        raise OptionError(f"{who}: seeds must be {_RULES['seeds']}; got {seeds!r}.")
    if first >= end:
        raise OptionError(f"{who}: seeds = {seeds!r} is empty. Write first:end with first < end; end is not run.")
    _refuse_many(who, end - first)
    return tuple(range(first, end))


def refuse_many_cells(who: str, n_envs: int, n_agents: int, n_seeds: int) -> None:
    """Refuse a spec of an absurd size."""
    total = n_envs * n_agents * n_seeds
    if total > MOST_CELLS:
        raise OptionError(
            f"{who}: an experiment has at most {MOST_CELLS:,} cells; {n_envs:,} environments × {n_agents:,} agents × {n_seeds:,} seeds "
            f"are {total:,}. Divide it."
        )


def shown(value: Any) -> str:
    """Return a value as it stands in an error: its repr, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def told(error: BaseException) -> str:
    """Return the type and the text of an error that is not ours, on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _refuse_many(who: str, n_seeds: int) -> None:
    refuse_many_cells(who, 1, 1, n_seeds)


def _sentence(who: str, data: Any, at: str, error: msgspec.ValidationError) -> OptionError:
    """Return the error for what msgspec found, in our words."""
    found = _AT.search(str(error))
    assert found, error
    steps = [name or int(index) for name, index in _STEP.findall(found[1])]
    for step in steps:
        data = list(data)[step] if isinstance(step, int) else data[step]  # a mapping may hold a set
    return OptionError(f"{who}: {at}{found[1].removeprefix('.')} must be {_RULES[str(steps[0])]}; got {shown(data)}.")
