"""Checks of the options of learning."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from spanrl.errors import OptionError


def whole_number(who: str, name: str, value: Any, most: int = 2**62) -> int:
    """Return a whole number ≥ 1; a float with an integer value, such as 1e6, is one."""
    fits = isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer())
    if isinstance(value, bool) or not fits or value < 1:
        raise OptionError(f"{who}: {name} must be a whole number ≥ 1; got {value!r}. 1e6 is one, too.")
    if value > most:
        raise OptionError(f"{who}: {name} must be a whole number ≥ 1; got {value!r}, which is more than {most}.")
    return int(value)
