"""Running intersections: what has been excluded once stays excluded.

A bound that holds the true model in the sets of all episodes at once, with probability 1 − δ, also holds it in their intersection: of all
boxes so far, each interval keeps its greatest lower and its least upper end. Nothing but the ends so far is needed, so it composes with any
box: it runs after ``fill``, on the rows that were written.

A successor that is listed for the first time had the interval of those never seen, [0, rest], until then.

An intersection is empty where a lower end exceeds an upper one, of a probability or of the reward, and also where the box misses the
simplex: Σ low > 1 or Σ high < 1. Then some set so far missed the true model. The fallback: the pair begins anew with its current set,
and this is counted (``run.meta["fallbacks"]``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.kernels.jit import kernel
from spanrl.models.info import ProblemInfo
from spanrl.models.states import StateReader

REST, R_LOW, R_HIGH = range(3)  # rows of Held.pair
LOW, HIGH = range(2)  # rows of Held.succ
_ROUNDING = 1e-12  # by which sums may exceed 1, or fall short of it


class Held(NamedTuple):
    """The intersection of all boxes so far. Unlike what an estimate keeps, it does not follow from the counts."""

    pair: Any  # float64 [3, n_pairs]  the upper end of unlisted states, and both ends of the reward; [3, 0]: no intersection
    succ: Any  # float64 [2, n]        both ends of listed successors, zeros where one is new; columns move as others are listed
    n_fallbacks: Any  # int64 [1]

    def state(self, n_listed: int) -> dict[str, Any]:
        """Return it as numbers and arrays, for a checkpoint."""
        names = ("rest", "r_low", "r_high"), ("low", "high")
        pair = dict(zip(names[0], self.pair.copy(), strict=True))
        succ = dict(zip(names[1], self.succ[:, :n_listed].copy(), strict=True))
        return {f"held.{name}": part for name, part in (pair | succ).items()} | {"fallbacks": int(self.n_fallbacks[0])}

    def moved_to(self, columns: NDArray[np.float64], n_listed: int) -> Held:
        """Return the same with other room for successors."""
        columns[:, :n_listed] = self.succ[:, :n_listed]
        return self._replace(succ=columns)


def new_held(info: ProblemInfo | None) -> Held:
    """Return the intersection of no boxes: all models; without a problem, what stands for no intersection."""
    pair = np.zeros((3, 0 if info is None else info.n_pairs))
    if info is not None:
        pair[REST], pair[R_LOW], pair[R_HIGH] = 1.0, info.r_min, info.r_max
    return Held(pair, np.zeros((2, 0)), np.zeros(1, dtype=np.int64))


def held_from(given: StateReader, info: ProblemInfo, n_listed: int) -> Held:
    """Return the intersection of a checkpoint, once it has proved possible."""
    rest = given.array("held.rest", np.float64, (info.n_pairs,), 0.0, 1.0)
    r_low = given.array("held.r_low", np.float64, (info.n_pairs,), info.r_min, info.r_max)
    r_high = given.array("held.r_high", np.float64, (info.n_pairs,), r_low, info.r_max)
    low = given.array("held.low", np.float64, (n_listed,), 0.0, 1.0)
    high = given.array("held.high", np.float64, (n_listed,), low, 1.0)
    n_fallbacks = np.array([given.integer("fallbacks")])
    return Held(np.stack((rest, r_low, r_high)), np.stack((low, high)), n_fallbacks)


@kernel
def intersect(changed, n_states, held, sets):
    """Intersect the boxes of the pairs that were written with those before; where nothing is left, begin anew with what was written."""
    if held.pair.shape[1] == 0:
        return
    for i in changed:
        if _is_empty(i, n_states, held, sets):
            held.n_fallbacks[0] += 1
            held.pair[REST, i], held.pair[R_LOW, i], held.pair[R_HIGH, i] = 1.0, sets.r_low[i], sets.r_high[i]
            for j in range(sets.succ_ptr[i], sets.succ_ptr[i + 1]):
                held.succ[LOW, j] = held.succ[HIGH, j] = 0.0
        rest = held.pair[REST, i]
        for j in range(sets.succ_ptr[i], sets.succ_ptr[i + 1]):
            low, high = _ends(j, rest, held, sets)
            held.succ[LOW, j], held.succ[HIGH, j] = low, high
            sets.low[j], sets.room[j] = low, high - low
        sets.rest[i] = held.pair[REST, i] = min(rest, sets.rest[i])
        sets.r_low[i] = held.pair[R_LOW, i] = max(held.pair[R_LOW, i], sets.r_low[i])
        sets.r_high[i] = held.pair[R_HIGH, i] = min(held.pair[R_HIGH, i], sets.r_high[i])


@kernel
def _ends(j, rest, held, sets):
    """Return both ends of what is left of the interval of a listed successor; one that is new had [0, rest]."""
    before = held.succ[HIGH, j] if held.succ[HIGH, j] > 0.0 else rest
    return max(held.succ[LOW, j], sets.low[j]), min(before, sets.low[j] + sets.room[j])


@kernel
def _is_empty(i, n_states, held, sets):
    """Tell whether nothing is left: of an interval, or of the box on the simplex."""
    if max(held.pair[R_LOW, i], sets.r_low[i]) > min(held.pair[R_HIGH, i], sets.r_high[i]):
        return True
    first, end, rest = sets.succ_ptr[i], sets.succ_ptr[i + 1], held.pair[REST, i]
    least, greatest = 0.0, min(rest, sets.rest[i]) * (n_states - (end - first))
    for j in range(first, end):
        low, high = _ends(j, rest, held, sets)
        if low > high:
            return True
        least += low
        greatest += high
    return least > 1.0 + _ROUNDING or greatest < 1.0 - _ROUNDING
