"""KT bounds: the beta-binomial mixture interval (:mod:`spanrl.confidence.kt_interval`) for each reward and each transition probability.

There are S²A probabilities and SA mean rewards. Each interval has the level δ/(S²A + SA), and holds for all numbers of visits at once
(Robbins 1970; Howard, Ramdas, McAuliffe & Sekhon 2021): with probability 1 − δ the true model lies in the sets of all episodes. No t, no
horizon: a set changes only where something was seen, so that ``fill`` looks at those pairs alone.

Rewards are rescaled to [0, 1]. N visits with rewards of that kind count as Σr successes in N trials, which need not be whole: by concavity
of the logarithm the mixture is a supermartingale for every law on [0, 1] with that mean, the Bernoulli being the worst.

Differs from the paper: SCAL's regret is proved with Bernstein radii. Its proof asks of a set that it holds the true model throughout, and
radii of that order, which these have; its martingale terms need a share of δ of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.estimate import FILL, Estimate
from spanrl.confidence.kt_interval import kt_interval
from spanrl.kernels.jit import passed
from spanrl.kernels.layout import BOX
from spanrl.models.info import ProblemInfo


@passed(FILL)
def fill_kt(known, settings, kept, sets):
    """Write the boxes of the pairs that were visited; the others are what they were."""
    seen, log_level, size = known.seen, settings[0], known.r_max - known.r_min
    for i in known.changed:
        N = seen.n[i]
        if N == 0:
            sets.rest[i], sets.r_low[i], sets.r_high[i] = 1.0, known.r_min, known.r_max
            continue
        n = float(N)
        for j in range(seen.succ_ptr[i], seen.succ_ptr[i + 1]):
            low, high = kt_interval(float(seen.times[j]), n, log_level)
            sets.low[j], sets.room[j] = low, high - low
        sets.rest[i] = kt_interval(0.0, n, log_level)[1]
        paid = n * min(max((seen.r_mean[i] - known.r_min) / size, 0.0), 1.0)
        low, high = kt_interval(paid, n, log_level)
        sets.r_low[i] = known.r_min + size * low
        sets.r_high[i] = min(known.r_max, known.r_min + size * high)


@dataclass(frozen=True)
class KT(Estimate):
    """Boxes of KT intervals that hold the true model, in all episodes at once, with probability 1 − ``delta``."""

    delta: float = 0.05

    fill: ClassVar = fill_kt
    geometry: ClassVar = BOX
    is_uniform: ClassVar = True

    def settings(self, info: ProblemInfo) -> NDArray[np.float64]:
        """Return ln(1/d), d = δ/(S²A + SA)."""
        S, A = int(info.n_states), int(info.max_actions)
        return np.array([log((S * S * A + S * A) / self.delta)])
