"""A policy as a table: a row per state and action that is played there."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from spanrl.models.checks import Array
from spanrl.models.labels import StateNames, text_of

if TYPE_CHECKING:
    from spanrl.models.policy import Policy


def policy_columns(policy: Policy) -> dict[str, Array]:
    """Return the columns of :meth:`spanrl.Policy.to_frame`."""
    state, action = np.nonzero(policy.probs)
    return {
        **state_columns(policy.state_names, policy.n_states, state),
        "action": action_column(policy.action_names, policy.n_actions)[action],
        "probability": policy.probs[state, action],
    }


def state_columns(names: StateNames | None, n_states: int, state: Array) -> dict[str, Array]:
    """Return the columns that name states: x0, x1, … where names are tuples of whole numbers, otherwise ``state``, numbers or text."""
    coordinates = np.arange(n_states)[:, None] if names is None else names.coordinates
    if coordinates is None:
        assert names is not None
        return {"state": _text(names)[state]}
    if coordinates.shape[1] == 1 and not (names is not None and isinstance(names[0], tuple)):
        return {"state": coordinates[state, 0]}
    return {f"x{i}": column[state] for i, column in enumerate(coordinates.T)}


def action_column(names: Sequence[Any] | None, n_actions: int) -> Array:
    """Return the names of the actions [A]: whole numbers where all are, otherwise text; without names their numbers."""
    if names is None:
        return np.arange(n_actions)
    if are_whole(names):
        return np.array(names, dtype=np.int64)
    return _text(names)


def are_whole(names: Sequence[Any]) -> bool:
    """Tell whether all names are whole numbers that fit into 64 bits."""
    return all(isinstance(name, Integral) and not isinstance(name, bool) and abs(int(name)) < 2**63 for name in names)


def column_kinds(columns: dict[str, Array]) -> dict[str, Any]:
    """Return the type of each column, as :func:`spanrl.tables.frame` takes it."""
    types = {"U": str, "i": int, "f": float, "b": bool}
    return {name: types[column.dtype.kind] for name, column in columns.items()}


def _text(names: Sequence[Any]) -> Array:
    return np.array([text_of(name) for name in names], dtype=np.str_)
