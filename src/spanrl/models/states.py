"""A state that was read from a file, which anybody may have written: each entry is checked when it is taken.

Compiled code trusts shapes, types and ranges; what it is handed after a restart comes through here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanrl.errors import RunFileError
from spanrl.models.checks import Array

LARGEST = 2**62
_SHOWN = 60  # characters


class StateReader:
    """The entries of a state by name; one that is not what it must be raises a RunFileError."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        """Take the state; nothing is checked yet."""
        self._state = state

    def holds(self, name: str, value: Any) -> bool:
        """Tell whether an entry is there and equal to ``value``, type included."""
        there = self._state.get(name)
        return name in self._state and type(there) is type(value) and bool(there == value)

    def require(self, name: str, value: Any) -> None:
        """Refuse a state whose entry is another than ``value``."""
        if not self.holds(name, value):
            raise RunFileError(f"checkpoint: {name} is {_shown(self._state.get(name))} there and {value!r} here.")

    def integer(self, name: str, low: int = 0, high: int = LARGEST) -> int:
        """Return a whole number in low..high."""
        value = self._get(name)
        self._require(name, type(value) is int and low <= value <= high, f"a whole number in {low}..{high}", value)
        return int(value)

    def number(self, name: str) -> float:
        """Return a finite number ≥ 0."""
        value = self._get(name)
        self._require(name, type(value) in (int, float) and 0 <= value <= float_info.max, "a finite number ≥ 0", value)
        return float(value)

    def flag(self, name: str) -> bool:
        """Return true or false."""
        value = self._get(name)
        self._require(name, type(value) is bool, "true or false", value)
        return bool(value)

    def row(self, name: str, kinds: Sequence[type], *, finite: bool = True) -> tuple[Any, ...]:
        """Return a list of values of these types; ``finite``: no NaN, nothing infinite."""
        value = self._get(name)
        fits = type(value) is list and [type(entry) for entry in value] == list(kinds)
        fits = fits and not (finite and any(isinstance(entry, float) and not isfinite(entry) for entry in value))
        self._require(name, fits, f"a list of {', '.join(kind.__name__ for kind in kinds)}", value)
        return tuple(value)

    def integers(self, name: str, high: int) -> list[int]:
        """Return a list of whole numbers in 0..high."""
        value = self._get(name)
        fits = type(value) is list and all(type(entry) is int and 0 <= entry <= high for entry in value)
        self._require(name, fits, f"a list of whole numbers in 0..{high}", value)
        return list(value)

    def inner(self, name: str) -> StateReader:
        """Return a state within the state."""
        value = self._get(name)
        self._require(name, type(value) is dict, "a dict", value)
        return StateReader(value)

    def array(
        self, name: str, kind: type[np.generic], shape: tuple[int | None, ...], low: ArrayLike = -inf, high: ArrayLike = inf
    ) -> Array:  # fmt: skip
        """Return an array of one type and shape (None: any length) with entries in [low, high]; no NaN, nothing infinite."""
        value = self._get(name)
        fits = isinstance(value, np.ndarray) and value.dtype == kind and value.ndim == len(shape)
        if not fits or any(want not in (None, got) for want, got in zip(shape, value.shape, strict=True)):
            came = (str(value.dtype), value.shape) if isinstance(value, np.ndarray) else value
            self._require(name, False, f"an array of {kind.__name__} of shape {shape}", came)
        bad = ~((value >= low) & (value <= high) & np.isfinite(value))
        if bad.any():
            first, count = int(np.argmax(bad)), int(np.count_nonzero(bad))
            raise RunFileError(
                f"checkpoint: {name!r} must hold possible values; entry {first} is {value[first]} ({count} fail)."
            )
        array: Array = value
        return array

    def table(self, prefix: str, kinds: Mapping[str, type[np.generic]]) -> dict[str, Array]:
        """Return the columns ``prefix.name`` of these types; numbers may be anything, lengths are equal."""
        columns = {name: self._get(f"{prefix}.{name}") for name in kinds}
        fits = all(isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype == kinds[name] for name, x in columns.items())
        if not fits or len({column.size for column in columns.values()}) != 1:
            types = ", ".join(kind.__name__ for kind in kinds.values())
            raise RunFileError(f"checkpoint: {prefix!r} must be columns of one length, of types {types}; got others.")
        return columns

    def _get(self, name: str) -> Any:
        if name not in self._state:
            raise RunFileError(f"checkpoint: {name!r} is missing.")
        return self._state[name]

    def _require(self, name: str, holds: bool, rule: str, came: Any) -> None:
        if not holds:
            raise RunFileError(f"checkpoint: {name!r} must be {rule}; got {_shown(came)}.")


def _shown(value: Any) -> str:
    """Return a value as it stands in an error: short, on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
