"""Validation of bounded-parameter MDPs: boxes that hold a distribution, intervals the right way round."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from spanrl.models import checks
from spanrl.models.checks import SUM_TOL, Array


def pairs(who: str, state: ArrayLike, action: ArrayLike) -> tuple[Array, Array, Array]:
    """Return states, actions and pair_ptr of sorted pairs."""
    states, actions = checks.integers(who, "state", state), checks.integers(who, "action", action)
    return states, actions, checks.pair_table(who, states, actions)


def keys(ptr: Array, succ: Array, n_states: int) -> Array:
    """Return pair · S + successor for every listed entry: sorted, unique numbers."""
    return np.repeat(np.arange(ptr.size - 1), np.diff(ptr)) * n_states + succ.astype(np.int64)


def box(who: str, ptr: Array, succ: Array, low: Array, high: Array, rest: Array, where: checks.Where) -> None:
    """Check 0 ≤ low ≤ high ≤ 1 and 0 ≤ rest ≤ 1."""

    def entry(name: str) -> checks.Where:
        return lambda j: f"{name}{where(checks.pair_of(ptr, j))[:-1]}, s'={succ[j]}]"

    for name, array in (("p_low", low), ("p_high", high)):
        bad = ~((array >= 0) & (array <= 1 + checks.ROUNDING))
        checks.reject(who, bad, entry(name), "must be a probability in [0, 1]", array, "Cut the interval to [0, 1].")
    checks.reject(
        who,
        ~((rest >= 0) & (rest <= 1 + checks.ROUNDING)),
        lambda i: f"rest_high{where(i)}",
        "must be a probability in [0, 1]",
        rest,
        "Cut it to [0, 1].",
    )
    checks.reject(
        who,
        low > high,
        lambda j: f"{entry('p_low')(j)} = {low[j]:.12g} > p_high = {high[j]:.12g},",
        "p_low must not exceed p_high",
        None,
        "Swap or widen the interval.",
    )


def unique(who: str, ptr: Array, succ: Array, where: checks.Where) -> None:
    """Check that no row lists a successor twice."""
    same = np.zeros(succ.size, dtype=bool)
    same[1:] = succ[1:] == succ[:-1]
    same[ptr[:-1][ptr[:-1] < succ.size]] = False
    checks.reject(
        who,
        same,
        lambda j: f"successor {succ[j]} of {where(checks.pair_of(ptr, j))}",
        "is listed twice",
        None,
        "List each successor once.",
    )


def with_mass(
    who: str, ptr: Array, low: Array, high: Array, rest: Array, S: int, where: checks.Where
) -> tuple[Array, Array, Array]:
    """Check that every box holds a distribution, Σ low ≤ 1 ≤ Σ high; return the ends, rescaled where they miss 1 by rounding."""
    n = np.diff(ptr)
    least, most = checks.row_sums(ptr, low), checks.row_sums(ptr, high) + rest * (S - n)
    for bad, sums, ends, rule in (
        (least > 1 + SUM_TOL, least, "lower", "must not exceed 1"),
        (most < 1 - SUM_TOL, most, "upper", "must reach 1"),
    ):
        text = partial(_no_distribution, where, sums, ends)
        checks.reject(who, bad, text, rule, None, "Widen the intervals.")
    over, under = np.maximum(least, 1.0), np.minimum(most, 1.0)
    if (over > 1).any():
        low = low / np.repeat(over, n)
    if (under < 1).any():
        high, rest = np.minimum(high / np.repeat(under, n), 1.0), np.minimum(rest / under, 1.0)
    return low, high if (low <= high).all() else np.maximum(low, high), rest


def _no_distribution(where: checks.Where, sums: Array, ends: str, i: int) -> str:
    return f"box {where(i)} contains no distribution: its {ends} ends sum to {sums[i]:.12g},"


def reward_intervals(
    who: str, r_low: ArrayLike, r_high: ArrayLike, r_min: float, r_max: float, n_pairs: int, where: checks.Where
) -> tuple[Array, Array]:
    """Check r_min ≤ r_low ≤ r_high ≤ r_max."""
    low, high = checks.numeric(who, "r_low", r_low, (n_pairs,)), checks.numeric(who, "r_high", r_high, (n_pairs,))
    checks.rewards(who, "r_low", low, r_min, r_max, lambda i: f"r_low{where(i)}")
    checks.rewards(who, "r_high", high, r_min, r_max, lambda i: f"r_high{where(i)}")
    checks.reject(
        who,
        low > high,
        lambda i: f"r_low{where(i)} = {low[i]:.12g} > r_high = {high[i]:.12g},",
        "r_low must not exceed r_high",
        None,
        "Swap or widen the interval.",
    )
    return low, high
