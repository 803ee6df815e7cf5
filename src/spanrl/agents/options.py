"""Checks of the options that agents share."""

from __future__ import annotations

from math import inf, nan
from numbers import Real
from typing import Any

from spanrl.options import is_bool, require


def number(value: Any) -> float:
    """Return a real number as a float, NaN for anything else."""
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else nan


def check_level(who: str, delta: Any) -> None:
    """Check a confidence level: a number in (0, 1), or "rsqrt"."""
    fits = (isinstance(delta, str) and delta == "rsqrt") or 0 < number(delta) < 1
    require(fits, who, "delta must lie in (0, 1) or be 'rsqrt'", delta, "Use 0.05, say.")


def check_scale(who: str, name: str, scale: Any) -> None:
    """Check a factor of the radii."""
    require(0 < number(scale) < inf, who, f"{name} must be a finite number > 0", scale, "1 is the theory.")


def check_flag(who: str, name: str, flag: Any) -> None:
    """Check a truth value: the text "False" is none."""
    require(is_bool(flag), who, f"{name} must be true or false", flag, "Leave it out for its default.")
