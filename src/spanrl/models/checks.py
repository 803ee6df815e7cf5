"""Validation shared by the models: each rule once, each message with the first offender, the count and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanrl.errors import ModelError

SUM_TOL = 1e-8
_MOST_ACTIONS = 10**6
_SMALL_TABLE = 3 * 10**7  # entries [S, A], 240 MB: up to here a policy may be a table that is nearly empty
_SPARSE = 64  # and beyond, it may have so many entries for each pair
ROUNDING = 1e-12
_ROWS = 2**18

Array = NDArray[Any]
Where = Callable[[int], str]


def immutable(array: ArrayLike, dtype: Any) -> Array:
    """Return a read-only C-ordered copy of ``array`` (no copy where it is one already and owns its memory)."""
    out = np.ascontiguousarray(array, dtype=dtype)
    if out.base is not None or (out is array and out.flags.writeable):  # a read-only view may be written to from behind
        out = out.copy()
    out.flags.writeable = False
    return out


def numeric(who: str, name: str, value: ArrayLike, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """Return ``value`` as a float array of ``shape`` (None: any length), or raise."""
    try:
        if np.iscomplexobj(value):
            raise TypeError("complex numbers")
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{who}: {name} must be an array of numbers; got {type(value).__name__} ({error}).") from None
    fits = array.ndim == len(shape) and all(
        want is None or want == got for want, got in zip(shape, array.shape, strict=True)
    )
    if not fits:
        want = "(" + ", ".join("…" if n is None else str(n) for n in shape) + ")"
        raise ModelError(
            f"{who}: {name} must have shape {want}; got shape {array.shape}. Check the number of states and actions."
        )
    return array


def integers(who: str, name: str, value: ArrayLike) -> Array:
    """Return ``value`` as a one-dimensional int64 array, or raise."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ModelError(
            f"{who}: {name} must be a one-dimensional array of integers; got a ragged one ({error})."
        ) from None
    if array.ndim != 1 or not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
        raise ModelError(
            f"{who}: {name} must be a one-dimensional array of integers; got dtype {array.dtype}, shape {array.shape}."
        )
    return array.astype(np.int64, copy=False)


def indices(who: str, name: str, value: ArrayLike) -> Array:
    """Return ``value`` as a one-dimensional array of integers, in the type that models keep successors in where it has it already."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == np.uint32:
        return value
    return integers(who, name, value)


def row_sums(ptr: Array, values: Array) -> NDArray[np.float64]:
    """Return the sum of each compressed row, added from left to right; a part of the rows at a time, to be sparing with memory."""
    out = np.empty(ptr.size - 1)
    for begin in range(0, out.size, _ROWS):
        part = ptr[begin : begin + _ROWS + 1]
        rows = np.repeat(np.arange(part.size - 1), np.diff(part))
        out[begin : begin + _ROWS] = np.bincount(rows, values[part[0] : part[-1]], part.size - 1)
    return out


def misses_one(sums: Array, n: ArrayLike) -> NDArray[np.bool_]:
    """Tell which sums of n probabilities are off by more than adding them may be."""
    return np.abs(sums - 1.0) > 2.0**-52 * (np.asarray(n) + 1.0)


def reject(who: str, bad: NDArray[np.bool_], where: Where, rule: str, values: Array | None, remedy: str) -> None:
    """Raise a ModelError that names the first of the ``bad`` entries and how many there are."""
    if not bad.any():
        return
    first = int(np.argmax(bad))
    came = f" is {values[first]:.12g}," if values is not None else ""
    count = int(np.count_nonzero(bad))
    raise ModelError(f"{who}: {where(first)}{came} {rule} ({count} {'fails' if count == 1 else 'fail'}). {remedy}")


def reward_range(who: str, r_min: Any, r_max: Any) -> tuple[float, float]:
    """Check r_min < r_max, both finite."""
    try:
        low, high = float(r_min), float(r_max)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(
            f"{who}: r_min and r_max must be numbers; got {r_min!r} and {r_max!r}. Give the range of the rewards."
        ) from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high and np.isfinite(high - low)):
        raise ModelError(
            f"{who}: r_min must be below r_max, both finite; got r_min={low:g}, r_max={high:g}. Give the range of the rewards."
        )
    return low, high


def rewards(who: str, name: str, r: NDArray[np.float64], r_min: float, r_max: float, where: Where) -> None:
    """Check that rewards are finite and inside [r_min, r_max]."""
    reject(who, ~np.isfinite(r), where, "must be finite", r, f"Replace NaN and infinite entries of {name}.")
    outside = (r < r_min - ROUNDING) | (r > r_max + ROUNDING)
    reject(
        who,
        outside,
        where,
        f"must lie in [r_min, r_max] = [{r_min:g}, {r_max:g}]",
        r,
        "Scale the rewards or pass r_min= and r_max=.",
    )


def pair_table(who: str, state: Array, action: Array) -> NDArray[np.int64]:
    """Check pairs sorted by (state, action), unique, each state with an action; return pair_ptr [S+1]."""
    if state.size == 0:
        raise ModelError(f"{who}: must have at least one state with one action; got no pairs.")
    if state.shape != action.shape:
        raise ModelError(f"{who}: state and action must have the same length; got {state.size} and {action.size}.")
    for name, array in (("state", state), ("action", action)):
        label = f"{name}["
        remedy = "Number states and actions from 0."
        reject(who, array < 0, partial(_numbered, label), "must not be negative", array, remedy)
    n_states = int(state.max()) + 1
    if n_states > state.size:  # also where a stray number would ask for terabytes
        missing = int(np.setdiff1d(np.arange(state.size + 1), state)[0])
        raise ModelError(
            f"{who}: state {missing} has no action; every state of 0..{n_states - 1} must have at least one. Number states from 0."
        )
    sorted_ = (state[1:] > state[:-1]) | ((state[1:] == state[:-1]) & (action[1:] > action[:-1]))
    reject(
        who,
        ~sorted_,
        lambda i: f"pair {i + 1} (s={state[i + 1]}, a={action[i + 1]})",
        "must come after the pair before it",
        None,
        "Sort the pairs by (state, action), each once.",
    )
    counts = np.bincount(state, minlength=n_states)
    states_have_actions(who, counts)
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


def _numbered(label: str, i: int) -> str:
    return f"{label}{i}]"


def states_have_actions(who: str, counts: Array) -> None:
    """Check that every state has an available action."""
    reject(
        who,
        counts == 0,
        lambda s: f"state {s}",
        "has no action; every state must have at least one",
        None,
        "Add an action or remove the state.",
    )


def rises(ptr: Array, end: int, least: int = 0) -> bool:
    """Tell whether ``ptr`` goes from 0 to ``end`` in steps of ``least`` (0 or 1) or more; differences could overflow and hide a fall."""
    steps = ptr[1:] >= ptr[:-1] if least == 0 else ptr[1:] > ptr[:-1]
    return bool(ptr.size > 0 and ptr[0] == 0 and ptr[-1] == end and steps.all())


def pair_states(who: str, pair_ptr: ArrayLike, n_pairs: int) -> Array:
    """Return the state of each pair from where the pairs of each state begin."""
    ptr = integers(who, "pair_ptr", pair_ptr)
    if not rises(ptr, n_pairs, 1):
        raise ModelError(
            f"{who}: pair_ptr must rise from 0 to the number of pairs = {n_pairs}; it ends with {ptr[-1:].tolist()}."
        )
    return np.repeat(np.arange(ptr.size - 1), np.diff(ptr))


def successor_table(who: str, succ_ptr: Array, succ: Array, n_pairs: int, n_states: int, where: Where) -> None:
    """Check the successor lists of all pairs."""
    if succ_ptr.size != n_pairs + 1 or not rises(succ_ptr, succ.size):
        raise ModelError(
            f"{who}: succ_ptr must rise from 0 to len(succ) = {succ.size} in {n_pairs + 1} entries (one more than pairs); "
            f"got {succ_ptr.size} entries. Build it as a CSR row pointer over the pairs."
        )
    outside = (succ < 0) | (succ >= n_states)
    reject(
        who,
        outside,
        lambda j: f"successor {succ[j]} of {where(pair_of(succ_ptr, j))}",
        f"must be a state in 0..{n_states - 1}",
        None,
        "Every state needs an action of its own.",
    )


def pair_of(succ_ptr: Array, j: int) -> int:
    """Return the pair that the j-th entry of the successor lists belongs to."""
    return int(np.searchsorted(succ_ptr, j, side="right")) - 1


def canonical_order(succ_ptr: Array, succ: Array, keep: NDArray[np.bool_]) -> tuple[Array, Array] | None:
    """Return (permutation, new succ_ptr) that drops entries and sorts each row, or None if nothing is to do."""
    if succ.size == 0:
        return None
    rising = np.empty(succ.size, dtype=bool)
    rising[0] = True
    np.greater(succ[1:], succ[:-1], out=rising[1:])
    starts = succ_ptr[:-1]
    rising[starts[starts < succ.size]] = True
    if rising.all() and keep.all():
        return None
    rows = np.repeat(np.arange(succ_ptr.size - 1), np.diff(succ_ptr))
    index = np.flatnonzero(keep)
    keys = rows[index] << 32 | succ[index].astype(
        np.int64
    )  # one key: rows are in order, and a stable sort is fast on what nearly is
    index = index[np.argsort(keys, kind="stable")]
    counts = np.bincount(rows[index], minlength=succ_ptr.size - 1)
    return index, np.concatenate(([0], np.cumsum(counts)))


def start_distribution(who: str, start: ArrayLike, n_states: int) -> NDArray[np.float64]:
    """Return the start distribution [S] from a state or a distribution."""
    try:
        array = np.asarray(start)
    except ValueError:
        array = np.empty((0, 0))  # ragged: refused below by its shape
    if array.ndim == 0 and np.issubdtype(array.dtype, np.integer):
        if not 0 <= int(array) < n_states:
            raise ModelError(
                f"{who}: start must be a state in 0..{n_states - 1} or a distribution over states; got {int(array)}. Number states from 0."
            )
        out = np.zeros(n_states)
        out[int(array)] = 1.0
        return out
    out = numeric(who, "start", array, (n_states,))
    total = out.sum()
    if not np.all(np.isfinite(out)) or (out < 0).any() or abs(total - 1.0) > SUM_TOL:
        raise ModelError(
            f"{who}: start must be a state or a distribution (entries ≥ 0 that sum to 1 within {SUM_TOL:g}); got sum {total:.12g}, "
            f"smallest entry {out.min():.12g}. Normalise it."
        )
    return out


def span_bound(who: str, value: float) -> float:
    """Check a bound on the span: a number ≥ 0, infinity allowed."""
    try:
        bound = float(value)
    except (TypeError, ValueError, OverflowError):
        bound = float("nan")
    if not bound >= 0:
        raise ModelError(
            f"{who}: the span bound must be a number ≥ 0 (inf for none); got {value!r}. Use inf to leave it out."
        )
    return bound


def vector(who: str, name: str, value: ArrayLike, n_states: int) -> NDArray[np.float64]:
    """Return a finite vector [S]."""
    out = numeric(who, name, value, (n_states,))
    reject(who, ~np.isfinite(out), lambda s: f"{name}[{s}]", "must be finite", out, "Replace NaN and infinite entries.")
    return out


def action_count(
    who: str, actions: Array, n_states: int, n_actions: int | None, action_names: Sequence[Any] | None
) -> int:
    """Return the number of actions: as given, or by the names, or the largest action + 1.

    More than that may be given, for actions that no state has. Policies are tables [S, A], so a large one must not be mostly empty.
    """
    needed = int(actions.max()) + 1
    if needed > _MOST_ACTIONS:
        raise ModelError(
            f"{who}: actions must be numbered below {_MOST_ACTIONS}; got action {needed - 1}. Number them from 0."
        )
    count = n_actions if n_actions is not None else len(action_names) if action_names is not None else needed
    if not isinstance(count, (int, np.integer)) or count < needed:
        raise ModelError(
            f"{who}: the number of actions must be at least {needed}, since action {needed - 1} is used; got {count}."
        )
    if count > _MOST_ACTIONS:
        raise ModelError(
            f"{who}: the number of actions must be at most {_MOST_ACTIONS}; got {count}. Leave out unused ones."
        )
    if n_states * int(count) > max(_SMALL_TABLE, _SPARSE * actions.size):
        raise ModelError(
            f"{who}: a large table of states × actions must not be nearly empty; got {n_states} × {count} for {actions.size} pairs. "
            "Number the actions of each state from 0, and leave out those that no state has."
        )
    return int(count)
