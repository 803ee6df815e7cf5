"""Checks of the options of learning."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from spanrl.errors import OptionError

_MOST = 2**62


def whole_number(who: str, name: str, value: Any, least: int = 1) -> int:
    """Return a whole number ≥ ``least``; a float with an integer value, such as 1e6, is one."""
    fits = isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer())
    if isinstance(value, bool) or not fits or not least <= value < _MOST:
        raise OptionError(f"{who}: {name} must be a whole number ≥ {least}; got {value!r}. 1e6 is one, too.")
    return int(value)
