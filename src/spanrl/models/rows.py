"""The rows of a model: which pairs exist, and distributions in canonical order (sorted, each successor once, no zeros, sums of one)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanrl.errors import ModelError
from spanrl.models import checks
from spanrl.models.checks import SUM_TOL, Array


def available_pairs(who: str, available: ArrayLike | None, S: int, A: int) -> tuple[Array, Array]:
    """Return the (state, action) arrays of the pairs that a mask [S, A] allows."""
    if S == 0 or A == 0:
        raise ModelError(f"{who}: must have at least one state and one action; got S={S}, A={A}.")
    mask: Array
    if available is None:
        mask = np.ones((S, A), dtype=bool)
    else:
        try:
            mask = np.asarray(available)
        except ValueError:
            mask = np.empty(0)  # ragged: refused by its shape
        if mask.shape != (S, A) or mask.dtype != np.bool_:
            raise ModelError(
                f"{who}: available must be a boolean array of shape ({S}, {A}); got dtype {mask.dtype}, shape {mask.shape}. "
                "Use .astype(bool)."
            )
    checks.states_have_actions(who, mask.sum(axis=1))
    states, actions = np.nonzero(mask)
    return states, actions


def clean_rows(
    who: str, ptr: Array, succ: Array, prob: Array, where: checks.Where, state: Callable[[int], str] = str
) -> tuple[Array, Array, Array]:
    """Check the rows and bring them into canonical order: sorted, each successor once, no zeros, sums of one.

    Errors name pair i by ``where(i)`` and a successor by ``state(s)``.
    """

    def entry(j: int) -> str:
        i = checks.pair_of(ptr, j)
        return f"{where(i)[:-1]}, s'={state(int(succ[j]))}]"

    checks.reject(who, ~np.isfinite(prob), entry, "must be finite", prob, "Replace NaN and infinite probabilities.")
    checks.reject(who, prob < 0, entry, "must not be negative", prob, "Probabilities lie in [0, 1].")
    order = checks.canonical_order(ptr, succ, prob > 0)
    if order is not None:
        index, ptr = order
        succ, prob = succ[index], prob[index]
        rows = np.repeat(np.arange(ptr.size - 1), np.diff(ptr))
        first = np.ones(succ.size, dtype=bool)
        first[1:] = (succ[1:] != succ[:-1]) | (rows[1:] != rows[:-1])
        if not first.all():
            prob, succ = np.add.reduceat(prob, np.flatnonzero(first)), succ[first]
            ptr = np.concatenate(([0], np.cumsum(np.bincount(rows[first], minlength=ptr.size - 1))))
    sums = checked_sums(ptr, prob, where)
    off = checks.misses_one(sums, np.diff(ptr))
    if off.any():
        prob = prob / np.repeat(np.where(off, sums, 1.0), np.diff(ptr))
    return ptr, succ, prob


def checked_sums(ptr: Array, prob: Array, where: checks.Where) -> Array:
    """Return the sum of each row, or raise where one is not 1."""
    filled = np.diff(ptr) > 0
    sums = np.zeros(filled.size)
    if prob.size:
        sums[filled] = np.add.reduceat(prob, ptr[:-1][filled])
    checks.reject(
        "MDP",
        ~(np.abs(sums - 1.0) <= SUM_TOL),
        lambda i: f"{where(i)} sums to {sums[i]:.12g},",
        f"must sum to 1 within {SUM_TOL:g}",
        None,
        "Normalise the rows or mark the pair unavailable.",
    )
    return sums


def row_totals(ptr: Array, prob: Array) -> NDArray[np.float64]:
    """Return the sum of each row, none of them empty: exactly one where it is one to rounding."""
    total = np.add.reduceat(prob, ptr[:-1])
    return np.where(np.abs(total - 1.0) > checks.ROUNDING, total, 1.0)


def mean_rewards(ptr: Array, prob: Array, reward: Array) -> NDArray[np.float64]:
    """Return Σ prob · reward of each row, kept between the row's smallest and largest reward against rounding.

    Rows are not empty; what has no probability counts for nothing. Wrong numbers are left to the model, which names them.
    """
    first = ptr[:-1]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = np.add.reduceat(np.where(prob == 0.0, 0.0, prob * reward), first) / row_totals(ptr, prob)
    return np.clip(mean, np.minimum.reduceat(reward, first), np.maximum.reduceat(reward, first))
