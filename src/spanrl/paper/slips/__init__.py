"""The slips of the paper's text, each with the numbers that show it, computed when asked for.

None of them touches the main results. :func:`all_slips` gives them theme by theme, in the order of the paper within a theme;
``docs/slips.md`` tells the same in prose.
"""

from __future__ import annotations

from importlib import import_module

from spanrl.paper.slips.base import Slip

_MODULES = ("two_state", "planning", "learning", "experiments", "domains")

__all__ = ["Slip", "all_slips"]


def all_slips() -> tuple[Slip, ...]:
    """Return every slip with its numbers, always the same ones; it takes a few seconds, most of them for one diameter."""
    statements = (one for name in _MODULES for one in import_module(f"spanrl.paper.slips.{name}").SLIPS)
    return tuple(one.measured() for one in statements)
