"""Checks of options: each rule once, each error one sentence."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from math import inf, nan
from typing import Any

from spanrl.errors import OptionError, SpanrlError
from spanrl.names import Value, parse_value

Kind = type[Value] | tuple[type[Value], ...]

_WANTED: dict[type[Value], str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a word of [A-Za-z0-9_.+-]",
}


def require(holds: bool, who: str, rule: str, came: object, remedy: str) -> None:
    """Raise the OptionError "who: rule; got came. remedy" unless ``holds``.

    >>> require(False, "three-state", "delta must lie in [0, 1)", 2.0, "Use 0.005 as the paper does.")
    Traceback (most recent call last):
        ...
    spanrl.errors.OptionError: three-state: delta must lie in [0, 1); got 2.0. Use 0.005 as the paper does.
    """
    if not holds:
        raise OptionError(f"{who}: {rule}; got {came!r}. {remedy}")


def one_of(who: str, name: str, value: object, allowed: Sequence[str]) -> None:
    """Raise an OptionError unless ``value`` is one of the ``allowed`` words.

    >>> one_of("knight-quest", "rewards", "mean", ("outcome", "mean"))
    """
    require(value in allowed, who, f"{name} must be {' or '.join(allowed)}", value, f"Leave it out for {allowed[0]!r}.")


def typed(who: str, name: str, value: Any, kind: Kind) -> Value:
    """Return ``value`` as the declared ``kind`` (bool, int, float or str, or the first that fits of several), or raise an OptionError.

    An integer is accepted where a float is declared, a float with an integer value where an int is, true and false only
    where a bool is.

    >>> typed("riverswim", "n_states", 1e2, int), typed("three-state", "delta", 0, float)
    (100, 0.0)
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    for one in kinds:
        out = _as(value, one)
        if out is not None:
            return out
    wanted, types = " or ".join(_WANTED[one] for one in kinds), " or ".join(one.__name__ for one in kinds)
    raise OptionError(f"{who}: {name} must be {wanted}; got {value!r}. Give {name} as {types}.")


def _as(value: Any, kind: type[Value]) -> Value | None:
    """Return ``value`` as ``kind``, None where it is not one."""
    if kind is bool and is_bool(value):
        return bool(value)
    if kind is int and _is_number(value) and float(value).is_integer():
        return int(value)
    if kind is float and _is_number(value):
        return float(value) + 0.0  # -0.0 becomes 0.0, so that equal values have equal names
    if kind is str and _is_word(value):
        return str(value)
    return None


def number(value: Any) -> float:
    """Return a real number as a float, NaN for anything else."""
    return float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else nan


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


def whole_number(who: str, name: str, value: Any, most: int = 2**62) -> int:
    """Return a whole number ≥ 1; a float with an integer value, such as 1e6, is one."""
    fits = isinstance(value, numbers.Integral) or (isinstance(value, numbers.Real) and float(value).is_integer())
    if isinstance(value, bool) or not fits or value < 1:
        raise OptionError(f"{who}: {name} must be a whole number ≥ 1; got {value!r}. 1e6 is one, too.")
    if value > most:
        raise OptionError(f"{who}: {name} must be a whole number ≥ 1; got {value!r}, which is more than {most}.")
    return int(value)


def is_bool(value: Any) -> bool:
    """Tell whether ``value`` is true or false of Python or numpy."""
    return type(value).__name__ in ("bool", "bool_")


def _is_number(value: Any) -> bool:
    """Tell whether ``value`` is a real number that a float can hold, and no truth value."""
    if not isinstance(value, numbers.Real) or is_bool(value):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _is_word(value: Any) -> bool:
    """Tell whether ``value`` can stand in the text form and is read back as the same word."""
    try:
        return isinstance(value, str) and parse_value(value) == value
    except SpanrlError:
        return False
