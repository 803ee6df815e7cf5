"""Where the experiments take place, by the names that figures, tables and sentences use."""

from __future__ import annotations

PLACES = {
    "three-state": "Three states, D = 200",
    "infinite-diameter": "Three states, D = ∞",
    "knight-quest": "Knight Quest",
}
"""Experiment → its domain, where SCAL and UCRL are compared."""

SWEPT = ("three-state", "knight-quest")
"""The experiments that have a sweep over c beside them, called by their name and ``-sweep``."""


def sweep_of(name: str) -> str:
    """Return the name of the sweep beside an experiment."""
    return f"{name}-sweep"
