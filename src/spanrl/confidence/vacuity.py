"""How much a confidence set still leaves open: the mass that nature may place as it likes, and the pairs where that is nearly all.

A box leaves m = 1 − Σ low of the mass free, for successors that have room for R = Σ room + rest·(number of those not listed) in all. Two
of its distributions can differ by ::

    min(m, R − m)

in total variation, up to the part of one successor, and by no more: where R < 2m both must give to the same ones. In an L1 ball around p̂
two differ by the radius, 1 at the most, and in a KL ball of size x it moves 1 − e⁻ˣ to a state never seen, where there is one. This
is the *free mass* of a set. A set is **vacuous** where it is 0.9 or more: it holds two
models that agree on a tenth of the mass at the most, whatever was seen. (Lower ends decide it in practice: with the paper's constants
they are 0 for the first thousands of visits, with KT bounds for a dozen or so.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.estimate import Estimate
from spanrl.confidence.intersection import Held
from spanrl.kernels.layout import BALL, KL
from spanrl.models.counts import Counts
from spanrl.models.info import ProblemInfo

VACUOUS = 0.9
"""The free mass from which a set is called vacuous."""


class Vacuity(NamedTuple):
    """The part of the visited pairs whose sets are vacuous, the part of all visits that they had, and the number of visited pairs."""

    of_pairs: float
    of_visits: float
    n_visited: int


def free_mass(
    estimate: Estimate, counts: Counts, t: int, info: ProblemInfo, state: int = 0, held: Held | None = None
) -> NDArray[np.float64] | None:
    """Return the free mass [n_pairs] of the sets of an episode that begins at time t in ``state``; None where it is one model.

    Where the agent intersects its sets, they are intersected with those ``held`` so far.
    """
    if not estimate.is_set:
        return None
    sets = estimate.sets(counts, t, info, state=state, checked=False, held=held)
    if estimate.geometry in (BALL, KL):
        moved: NDArray[np.float64] = (
            np.minimum(2.0 * sets.size, 1.0) if estimate.geometry == BALL else -np.expm1(-sets.size)
        )
        return moved
    ptr, n = sets.succ_ptr, int(sets.succ_ptr[-1])
    row = np.repeat(np.arange(info.n_pairs), np.diff(ptr))
    others = info.n_states - np.diff(ptr)
    if sets.flagged.size:
        others = others - sets.flagged * sets.closed.sum()
    free = 1.0 - np.bincount(row, sets.low[:n], info.n_pairs)
    room = np.bincount(row, sets.room[:n], info.n_pairs) + sets.rest * others
    mass: NDArray[np.float64] = np.clip(np.minimum(free, room - free), 0.0, 1.0)
    return mass


def vacuity(
    estimate: Estimate, counts: Counts, t: int, info: ProblemInfo, state: int = 0, held: Held | None = None
) -> Vacuity | None:
    """Return how many of the visited pairs have vacuous sets; None where nothing was visited, or there are no sets."""
    visited = counts.n > 0
    mass = free_mass(estimate, counts, t, info, state, held) if visited.any() else None
    if mass is None:
        return None
    vacuous = mass[visited] >= VACUOUS
    visits = counts.n[visited]
    return Vacuity(float(vacuous.mean()), float(visits[vacuous].sum() / visits.sum()), int(visits.size))
