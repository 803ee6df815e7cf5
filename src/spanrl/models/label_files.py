"""Names in files and in JSON: text, whole numbers and nested tuples of these survive, anything else becomes text.

In a model file names that are all text stand as an array of text, names of coordinates as an array of whole numbers, and others as
one JSON array in UTF-8, tuples as lists in it.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from spanrl.errors import ModelError
from spanrl.models.checks import Array
from spanrl.models.labels import CoordinateNames, StateNames, shown, text_of

OPTIONAL = ("state_names", "action_names", "state_coordinates", "state_names_json", "action_names_json")
"""The arrays of a model file that may hold names."""

_DEEPEST = 20  # tuples in tuples
_LONGEST = 1000  # bytes of JSON per name on average; Python takes some twenty times as much


def plain(name: Hashable) -> Any:
    """Return a name as JSON has it: text, a whole number, a list for a tuple; other things as text.

    >>> plain((3, ("a", True), 0.5))
    [3, ['a', True], '0.5']
    """
    if isinstance(name, tuple):
        return [plain(part) for part in name]
    if isinstance(name, (bool, np.bool_)):
        return bool(name)
    if isinstance(name, (int, np.integer)):
        return int(name)
    return text_of(name)


def pack(states: StateNames | None, actions: tuple[Any, ...] | None) -> dict[str, Array]:
    """Return the arrays that hold names, none where there are no names."""
    if isinstance(states, CoordinateNames):
        return {"state_coordinates": states.array} | _packed("action_names", actions)
    return _packed("state_names", states) | _packed("action_names", actions)


def _packed(key: str, names: Sequence[Any] | None) -> dict[str, Array]:
    if names is None:
        return {}
    if all(type(name) is str for name in names):
        return {key: np.array(list(names), dtype=np.str_)}
    content = [plain(name) for name in names]
    kept = [_name(entry) for entry in content]
    if len(set(kept)) != len(kept):
        seen: set[Any] = set()
        twice = next(name for name in kept if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ModelError(
            f"save: {key} must stay different where they become text; {shown(twice)} comes twice. "
            "Name by text, whole numbers or tuples of these."
        )
    data = json.dumps(content, separators=(",", ":")).encode("ascii")
    _check_length(key, len(data), len(kept))
    return {f"{key}_json": np.frombuffer(data, dtype=np.uint8)}


def unpack(data: dict[str, Array], n_states: int, n_actions: int) -> tuple[Any, Any]:
    """Return state names and action names of a file, None where it has none; the model checks them."""
    rows = data.get("state_coordinates")
    if rows is not None and (rows.dtype.kind not in "iu" or rows.ndim not in (1, 2) or rows.size == 0):
        raise ModelError(f"state_coordinates are stored as {rows.dtype} of shape {rows.shape}.")
    states = _unpacked("state_names", data, n_states) if rows is None else rows
    return states, _unpacked("action_names", data, n_actions)


def _unpacked(key: str, data: dict[str, Array], length: int) -> list[Any] | None:
    if key in data:
        return [str(name) for name in data[key]]
    content = data.get(f"{key}_json")
    if content is None:
        return None
    if content.dtype != np.uint8 or content.ndim != 1:
        raise ModelError(f"{key}_json is stored as {content.dtype} of shape {content.shape}.")
    _check_length(key, content.size, length)
    try:
        names = json.loads(content.tobytes().decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{key}_json is not JSON ({error}).") from None
    if not isinstance(names, list):
        raise ModelError(f"{key}_json must be a list; got {type(names).__name__}.")
    return [_name(entry) for entry in names]


def _name(entry: Any, depth: int = 0) -> Any:
    """Return the name that JSON holds."""
    if depth > _DEEPEST:
        raise ModelError(f"names must be nested at most {_DEEPEST} deep.")
    if isinstance(entry, list):
        return tuple(_name(part, depth + 1) for part in entry)
    if isinstance(entry, (str, int)):
        return entry
    raise ModelError(f"names must be text, whole numbers or lists of these; got {shown(entry)}.")


def _check_length(key: str, size: int, length: int) -> None:
    if size > _LONGEST * length:
        raise ModelError(f"{key} must take at most {_LONGEST} bytes each on average; got {size} for {length} names.")
