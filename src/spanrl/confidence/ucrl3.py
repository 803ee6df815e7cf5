"""UCRL3's sets (Bourel, Maillard & Talebi 2020): intervals that hold for all numbers of visits at once, without t and horizon.

All inequalities have the level d = δ/((3 + 3S)SA). A transition probability has the interval of
:mod:`spanrl.confidence.ucrl3_interval`; those never seen share that of no success. Rewards are rescaled to [0, 1]. With N visits and
the mean of squared deviations σ̂², the radius of a reward is the smaller one of ::

    ½ β_N,                           β_n² = 2(1 + 1/n) ln(√(n+1)/d)/n
    √(2σ̂² ℓ_N/N) + 7ℓ_N/(3N),        ℓ_n = η ln(ln n · ln(ηn)/(d ln²η)),  η = 1.12;  only for N ≥ 2

(the paper prints the larger one; both hold at once, so the smaller one does). A pair never seen may be anything.

What is proved: with probability 1 − δ the true model is in the sets of all episodes at once, as far as the second radius holds. For
transitions (see there) and for the first radius, which fails with probability d (Laplace's method of mixtures), the proofs are short; they
use 1 + 2.22S of the 3 + 3S shares of δ. The second radius is the authors' empirical Bernstein inequality, taken from them: a proof by
Bernstein's inequality for the samples and for their squared deviations loses a factor near 1 where N is below about 150 ℓ. The regret of
UCRL3 is theirs, too; for SCAL with these sets nothing is proved.

Differs from the paper: the near-optimistic support (NOSS), which leaves unlikely successors out of the inner maximum, is an option
(:mod:`spanrl.kernels.noss`); the sides of g and g̲, and n = 1, for the reasons given with the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.estimate import FILL, Estimate
from spanrl.confidence.ucrl3_interval import laplace, peeling, ucrl3_interval
from spanrl.kernels.jit import kernel, passed
from spanrl.kernels.layout import BOX, NOSS
from spanrl.models.info import ProblemInfo


@kernel
def ucrl3_radius(variance, n, log_level):
    """Return min{½ β, √(2σ̂² ℓ/n) + 7ℓ/(3n)}, the radius of a mean of n ≥ 1 samples in [0, 1]; ``log_level`` is ln(1/d)."""
    first = 0.5 * laplace(n, log_level)
    if n < 2.0:
        return first
    a = peeling(n, log_level) / n
    return min(first, sqrt(2.0 * variance * a) + 7.0 / 3.0 * a)


@passed(FILL)
def fill_ucrl3(known, settings, kept, sets):
    """Write the boxes of the pairs that were visited; the others are what they were."""
    seen, log_level, size = known.seen, settings[0], known.r_max - known.r_min
    for i in known.changed:
        if seen.n[i] == 0:
            sets.rest[i], sets.r_low[i], sets.r_high[i] = 1.0, known.r_min, known.r_max
            continue
        n = float(seen.n[i])
        for j in range(seen.succ_ptr[i], seen.succ_ptr[i + 1]):
            low, high = ucrl3_interval(float(seen.times[j]), n, log_level)
            sets.low[j], sets.room[j] = low, high - low
        sets.rest[i] = ucrl3_interval(0.0, n, log_level)[1]
        radius = size * ucrl3_radius(seen.r_sq[i] / (n * size * size), n, log_level)
        sets.r_low[i] = max(known.r_min, seen.r_mean[i] - radius)
        sets.r_high[i] = min(known.r_max, seen.r_mean[i] + radius)


@dataclass(frozen=True)
class UCRL3Box(Estimate):
    """UCRL3's boxes: they hold the true model, in all episodes at once, with probability 1 − ``delta``."""

    delta: float = 0.05

    fill: ClassVar = fill_ucrl3
    geometry: ClassVar = BOX
    is_uniform: ClassVar = True

    def settings(self, info: ProblemInfo) -> NDArray[np.float64]:
        """Return ln(1/d), d = δ/((3 + 3S)SA)."""
        S, A = int(info.n_states), int(info.max_actions)
        return np.array([log((3 + 3 * S) * S * A / self.delta)])


@passed(FILL)
def fill_with_noss(known, settings, kept, sets):
    """Write the same boxes, and κ/sp(u) = 10·(number of successors seen)/(largest N)^⅔ of every pair."""
    fill_ucrl3(known, settings, kept, sets)
    seen, most = known.seen, 1
    for i in range(seen.n.size):
        most = max(most, seen.n[i])
    for i in range(seen.n.size):
        first, n_seen = seen.succ_ptr[i], seen.succ_ptr[i + 1] - seen.succ_ptr[i]
        sets.size[i] = 10.0 * n_seen / float(most) ** (2.0 / 3.0)
        if n_seen == 1 and settings[1] > 0.0:
            low = max(sets.low[first], 0.5 ** (1.0 / seen.n[i]))
            sets.low[first], sets.room[first] = low, 1.0 - low


@dataclass(frozen=True)
class NearOptimisticBox(UCRL3Box):
    """UCRL3's boxes, whose inner maximum is over a near-optimistic support (:mod:`spanrl.kernels.noss`).

    With ``sole_successors`` the only successor seen in N visits is taken to have the probability (½)^(1/N) or more, which nothing proves.
    """

    sole_successors: bool = False

    fill: ClassVar = fill_with_noss
    geometry: ClassVar = NOSS
    is_uniform: ClassVar = False  # they are not intersected

    def settings(self, info: ProblemInfo) -> NDArray[np.float64]:
        """Return ln(1/d), and whether sole successors are believed in."""
        return np.append(super().settings(info), float(self.sole_successors))
