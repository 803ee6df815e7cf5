"""Names of states and actions: any hashable, most often text, whole numbers or tuples of these.

A model has its state names in one of two forms behind one class. :class:`StateNames` keeps the names themselves; :class:`CoordinateNames`
keeps an integer array [S, k] and makes a tuple only when it is asked for one, so that 10⁶ states take some megabytes. Both are read-only
sequences, equal to the tuple of the same names, and both know the number of a name.
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from numbers import Integral
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import ModelError
from spanrl.models.checks import Array, immutable
from spanrl.terminal import visible

_SHOWN = 3
_COMPARED = 2000  # names that are looked through for one that is near
_LONGEST = 80  # characters of a name in an error
_ROWS = 2**14


def text_of(name: Hashable) -> str:
    """Return a name as it is printed: text as it is, a tuple in brackets, anything else by ``str``.

    >>> text_of((3, "busy", (1,))), text_of("idle"), text_of(7)
    ('(3, busy, (1,))', 'idle', '7')
    """
    if isinstance(name, str):
        return str(name)
    if isinstance(name, tuple):
        return f"({', '.join(map(text_of, name))}{',' if len(name) == 1 else ''})"
    return str(name)


def shown(name: object) -> str:
    """Return a name as it stands in an error: on one line, cut where it is long, text in quotes."""
    try:
        text = visible(repr(name) if isinstance(name, str) or not isinstance(name, Hashable) else text_of(name))
    except Exception:  # a name may be any object, and its text may be anything
        text = f"a {type(name).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def name_in_error(names: Sequence[Any] | None, number: int) -> str:
    """Return what an error calls a state or an action: its name, or its number where there are no names."""
    return str(number) if names is None else shown(names[number])


class StateNames(Sequence[Any]):
    """The names of the states of a model, in the order of their numbers.

    >>> names = StateNames(["idle", "busy"])
    >>> names[1], names.index("busy"), names == ("idle", "busy"), names.coordinates is None
    ('busy', 1, True, True)
    """

    def __init__(self, names: Iterable[Hashable]) -> None:
        """Keep names that are hashable and different; :func:`state_names` checks."""
        self._names: tuple[Any, ...] = tuple(names)

    def __len__(self) -> int:
        """Return the number of states."""
        return len(self._names)

    @overload
    def __getitem__(self, s: int) -> Any: ...
    @overload
    def __getitem__(self, s: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, s: int | slice) -> Any:
        """Return the name of state s; of a slice, a tuple."""
        return self._names[s]

    def __iter__(self) -> Iterator[Any]:
        """Yield the names in order."""
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        """Tell whether a state has this name."""
        return self.find(name) is not None

    def __eq__(self, other: object) -> bool:
        """Equal to any names, and to any tuple, that hold the same in the same order."""
        if other is self:
            return True
        if not isinstance(other, (StateNames, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def find(self, name: object) -> int | None:
        """Return the number of the state of this name; None where there is none."""
        try:
            return self._number.get(name)
        except TypeError:  # not hashable
            return None

    def index(self, name: object) -> int:  # type: ignore[override]
        """Return the number of the state of this name, or raise a ModelError that suggests a name."""
        found = self.find(name)
        if found is None:
            raise ModelError(f"no state is named {shown(name)}. {self._hint(name)}")
        return found

    def text(self, s: int) -> str:
        """Return the name of state s as it is printed."""
        return text_of(self[s])

    @cached_property
    def coordinates(self) -> NDArray[np.int64] | None:
        """The names as whole numbers [S, k], where every name is a number (k = 1) or a tuple of k numbers; otherwise None."""
        first = self._names[0]
        width = len(first) if isinstance(first, tuple) else 0
        alike = all((len(name) if isinstance(name, tuple) else 0) == width for name in self._names)
        if not alike or (width == 0 and isinstance(first, tuple)):
            return None
        try:
            array = np.array([list(name) for name in self._names] if width else list(self._names))
        except (ValueError, OverflowError):
            return None
        if array.dtype.kind not in "bi" or array.ndim != (2 if width else 1):
            return None
        return immutable(array.reshape(len(self), -1), np.int64)

    @cached_property
    def _number(self) -> dict[Any, int]:
        return {name: s for s, name in enumerate(self)}

    def _hint(self, name: object) -> str:
        """Suggest the name that was meant, or show the first ones."""
        known = {text_of(near): near for near in islice(self, _COMPARED)}
        if isinstance(name, str) and name in known:
            return f"Did you mean the {type(known[name]).__name__} {name}, without quotes?"
        near = difflib.get_close_matches(text_of(name), known, n=1, cutoff=0.6) if isinstance(name, str) else []
        if near:
            return f"Did you mean {shown(known[near[0]])}?"
        first = ", ".join(map(shown, islice(self, _SHOWN)))
        return f"The first names are {first}{', …' if len(self) > _SHOWN else '.'}"

    def __repr__(self) -> str:
        """Show the first names."""
        first = ", ".join(map(shown, islice(self, _SHOWN)))
        return f"<{len(self)} names: {first}{', …' if len(self) > _SHOWN else ''}>"


class _Keys(NamedTuple):
    """Rows of whole numbers as single numbers, sorted: key = Σ (c − low)·stride."""

    low: list[int]
    high: list[int]
    stride: list[int]
    sorted: NDArray[np.int64]
    order: NDArray[np.int64] | None
    """The state of each key; None where states are in the order of their keys."""


class CoordinateNames(StateNames):
    """Names that are whole numbers [S] or tuples of k whole numbers [S, k], kept as an array.

    >>> names = CoordinateNames(np.array([[0, 0], [0, 1], [2, 5]]))
    >>> names[2], names.index((0, 1)), names == ((0, 0), (0, 1), (2, 5))
    ((2, 5), 1, True)
    """

    def __init__(self, coordinates: Array) -> None:
        """Keep an array of whole numbers, [S] or [S, k], with different rows; :func:`state_names` checks."""
        self._is_flat = coordinates.ndim == 1
        self._rows = immutable(coordinates.reshape(len(coordinates), -1), coordinates.dtype)

    def __len__(self) -> int:
        """Return the number of states."""
        return len(self._rows)

    def __getitem__(self, s: int | slice) -> Any:
        """Return the name of state s; of a slice, a tuple."""
        rows = self._rows[s].tolist()
        if isinstance(s, slice):
            return tuple(row[0] for row in rows) if self._is_flat else tuple(map(tuple, rows))
        return rows[0] if self._is_flat else tuple(rows)

    def __iter__(self) -> Iterator[Any]:
        """Yield the names in order."""
        for begin in range(0, len(self), _ROWS):
            yield from self[begin : begin + _ROWS]

    def __eq__(self, other: object) -> bool:
        """Equal to any names, and to any tuple, that hold the same in the same order."""
        if isinstance(other, CoordinateNames):
            return self._is_flat == other._is_flat and np.array_equal(self._rows, other._rows)
        return super().__eq__(other)

    __hash__ = None

    @property
    def array(self) -> Array:
        """The names as they are stored in a file: [S] for numbers, [S, k] for tuples."""
        return self._rows[:, 0] if self._is_flat else self._rows

    @property
    def coordinates(self) -> NDArray[np.int64]:
        """The names as whole numbers [S, k]."""
        return immutable(self._rows, np.int64)

    @property
    def are_different(self) -> bool:
        """Whether no two states have the same name."""
        keys = self._keys
        if keys is None:
            return len(self._number) == len(self)
        return bool((keys.sorted[1:] > keys.sorted[:-1]).all())

    def find(self, name: object) -> int | None:
        """Return the number of the state of this name; None where there is none."""
        row = (name,) if self._is_flat else name
        if not isinstance(row, tuple) or len(row) != self._rows.shape[1]:
            return None
        keys = self._keys
        if keys is None:
            return super().find(name)
        key = 0
        for c, low, high, stride in zip(row, keys.low, keys.high, keys.stride, strict=True):
            if not isinstance(c, (Integral, np.bool_)) or not low <= int(c) <= high:
                return None
            key += (int(c) - low) * stride
        at = int(np.searchsorted(keys.sorted, key))
        if at == len(self) or keys.sorted[at] != key:
            return None
        return at if keys.order is None else int(keys.order[at])

    @cached_property
    def _keys(self) -> _Keys | None:
        """Return the sorted keys; None where the rows span more than 2⁶² cells."""
        low, high = self._rows.min(axis=0).tolist(), self._rows.max(axis=0).tolist()
        stride: list[int] = []
        cells = 1
        for first, last in zip(reversed(low), reversed(high), strict=True):
            stride.insert(0, cells)
            cells *= last - first + 1
            if cells > 2**62:
                return None
        keys = np.zeros(len(self), dtype=np.int64)
        for column, first, step in zip(self._rows.T, low, stride, strict=True):
            keys += (column.astype(np.int64) - first) * step
        if (keys[1:] > keys[:-1]).all():
            return _Keys(low, high, stride, keys, None)
        order = np.argsort(keys, kind="stable")
        return _Keys(low, high, stride, keys[order], order)


def state_names(who: str, value: Any, n_states: int) -> StateNames | None:
    """Check the names of all states: hashable, all different. An array of whole numbers [S] or [S, k] is kept as it is."""
    if value is None:
        return None
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.ndim in (1, 2) and value.size:
        named: StateNames = CoordinateNames(value.astype(np.int64) if value.dtype == np.uint64 else value)
        if len(named) == n_states and named.are_different:  # type: ignore[attr-defined]
            return named
        n_different = len(np.unique(value, axis=0))
        raise ModelError(_wrong_number(who, "state_names", n_states, len(named), n_different))
    if isinstance(value, StateNames) and len(value) == n_states:
        return value
    return StateNames(_different(who, "state_names", value, n_states))


def action_names(who: str, value: Iterable[Hashable] | None, n_actions: int) -> tuple[Any, ...] | None:
    """Check the names of all actions: hashable, all different."""
    return None if value is None else _different(who, "action_names", value, n_actions)


def state_number(who: str, names: StateNames | None, n_states: int, state: object) -> int:
    """Return the number of a state that is given by its name, or by its number where states have no names."""
    if names is not None:
        try:
            return names.index(state)
        except ModelError as error:
            raise ModelError(f"{who}: {error}") from None
    if isinstance(state, bool) or not isinstance(state, Integral) or not 0 <= int(state) < n_states:
        raise ModelError(f"{who}: states have no names, and numbers 0..{n_states - 1}; got {shown(state)}.")
    return int(state)


def _different(who: str, what: str, value: Any, length: int) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ModelError(f"{who}: {what} must be a list of names; got {value!r}. Put one name an entry.")
    names = tuple(islice(value, length + 1))  # no more, should it never end
    try:
        n_different = len(set(names))
    except TypeError:
        at = next(i for i, name in enumerate(names) if not is_hashable(name))
        raise ModelError(
            f"{who}: {what} must be hashable; entry {at} is {shown(names[at])}. Use text, numbers or tuples of these."
        ) from None
    if len(names) != length or n_different != length:
        raise ModelError(_wrong_number(who, what, length, len(names), n_different))
    return names


def is_hashable(name: object) -> bool:
    """Tell whether something can be a name."""
    try:
        hash(name)
    except TypeError:
        return False
    return True


def _wrong_number(who: str, what: str, length: int, came: int, n_different: int) -> str:
    return f"{who}: {what} must be {length} different names; got {came}, {n_different} of them different."
