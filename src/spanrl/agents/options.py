"""Checks of the options that agents share."""

from __future__ import annotations

from math import inf

from spanrl.options import require


def check_level(who: str, delta: float | str) -> None:
    """Check a confidence level: a number in (0, 1), or "rsqrt"."""
    fits = delta == "rsqrt" if isinstance(delta, str) else 0 < delta < 1
    require(fits, who, "delta must lie in (0, 1) or be 'rsqrt'", delta, "Use 0.05, say.")


def check_scale(who: str, name: str, scale: float) -> None:
    """Check a factor of the radii."""
    require(0 < scale < inf, who, f"{name} must be a finite number > 0", scale, "1 is the theory.")
