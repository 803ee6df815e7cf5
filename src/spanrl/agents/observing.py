"""Checks of what a learner is told step by step."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from spanrl.errors import InputError, OptionError
from spanrl.models.info import ProblemInfo


def checked_state(what: str, value: Any, info: ProblemInfo, t: int) -> int:
    """Return a state as an int, or refuse it with the step."""
    if type(value) is int and 0 <= value < info.n_states:  # the usual case, told fast
        return value
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < info.n_states:
        raise OptionError(f"{what} must be in 0..{info.n_states - 1}; got {value!r} at step {t + 1}.")
    return int(value)


def checked_reward(value: Any, info: ProblemInfo, t: int) -> float:
    """Return a reward as a float, or refuse it with its value and step."""
    if not (type(value) is float or isinstance(value, Real)) or not info.r_min <= float(value) <= info.r_max:
        raise InputError(
            f"observe: the reward must lie in [{info.r_min:g}, {info.r_max:g}]; got {value!r} at step {t + 1}. "
            "Declare the range of the rewards, r_min and r_max."
        )
    return float(value) + 0.0  # no −0.0: equal rewards are one
