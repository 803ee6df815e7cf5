"""Costs, and ranges that nobody gave: the one place where signs change.

A model with costs keeps rewards = −costs and remembers the sense. What a user gives and gets is a cost: :func:`flip` and
:func:`flip_ends` stand at every border between the two, and are their own inverses.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import ModelError
from spanrl.models import checks

Number = TypeVar("Number", float, NDArray[np.float64])


def flip(costs: bool, value: Number) -> Number:
    """Return rewards for costs and costs for rewards; without ``costs`` the value itself.

    >>> flip(True, 2.5), flip(True, 0.0), flip(False, 2.5)
    (-2.5, 0.0, 2.5)
    """
    return 0.0 - value if costs else value  # from 0, so that nothing becomes −0.0


def flip_ends(costs: bool, low: Number, high: Number) -> tuple[Number, Number]:
    """Return the ends of intervals of rewards for those of costs, and the other way round; without ``costs`` the ends themselves.

    >>> flip_ends(True, 1.0, 4.0)
    (-4.0, -1.0)
    """
    return (flip(costs, high), flip(costs, low)) if costs else (low, high)


def declared_ends(who: str, r_min: float | None, r_max: float | None) -> tuple[float, float]:
    """Return the declared range of rewards or costs, with −∞ or ∞ in the place of an end that was left out.

    >>> declared_ends("MDP", 0, None)
    (0.0, inf)
    """
    try:
        return -np.inf if r_min is None else float(r_min), np.inf if r_max is None else float(r_max)
    except (TypeError, ValueError, OverflowError):
        return checks.reward_range(who, r_min, r_max)  # says what is wrong


class RewardRange(NamedTuple):
    """The range of the rewards of a model."""

    r_min: float
    r_max: float
    is_found: bool
    """Whether it is that of the data, which nobody declared."""


def reward_range(
    who: str, costs: bool, r_min: float | None, r_max: float | None, least: NDArray[np.float64], most: NDArray[np.float64]
) -> RewardRange:  # fmt: skip
    """Return the range of the rewards: as given, [0, 1] where that holds the data, else that of the data.

    ``r_min`` and ``r_max`` are None where they were left out, and costs in a model with costs; ``least`` and ``most`` are the rewards, or
    the ends of their intervals, in the same units. Entries that are not finite are left to the model, which names them.
    """
    if not isinstance(costs, (bool, np.bool_)):
        raise ModelError(f"{who}: costs must be True or False; got {costs!r}.")
    try:
        low, high = 0.0 if r_min is None else float(r_min), 1.0 if r_max is None else float(r_max)
    except (TypeError, ValueError, OverflowError):
        low, high = checks.reward_range(who, r_min, r_max)  # says what is wrong
    finite = [end[np.isfinite(end)] for end in (least, most)]
    smallest = min(float(end.min(initial=np.inf)) for end in finite)
    largest = max(float(end.max(initial=-np.inf)) for end in finite)
    fits = low < high and low - checks.ROUNDING <= smallest and largest <= high + checks.ROUNDING
    is_found = (r_min is None or r_max is None) and not fits and smallest <= largest
    if is_found:
        low, high = smallest if r_min is None else low, largest if r_max is None else high
        if not low < high:  # all rewards are the same
            low, high = (low, low + 1.0) if r_max is None else (high - 1.0, high)
    return RewardRange(*flip_ends(costs, *checks.reward_range(who, low, high)), is_found)
