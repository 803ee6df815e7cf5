"""UCRL2B's sets: empirical Bernstein intervals whose logarithm has the visits of the pair in it, and neither the time nor the horizon.

With N ≥ 1 visits and l = ln(6SAN/δ), an interval has the radius ::

    2 √(σ̂² l/N) + 6·size·l/N

around its mean, for each reward and, with σ̂² = p̂(1 − p̂) and size 1, for each transition probability (Fruit, Pirotta & Lazaric 2020,
arXiv 2007.05456). σ̂² is the mean of squared deviations (1/N, not 1/(N−1)). All successors never seen from a pair share [0, 6l/N]. Rewards
are kept in [r_min, r_max] and probabilities in [0, 1]; a pair never seen may be anything.

What is proved: by Audibert, Munos & Szepesvári 2009, Theorem 1, the mean of N samples in an interval of length 1 is farther than
√(2σ̂²x/N) + 3x/N from the true one with probability at most 3e⁻ˣ. The radius is that of x = 2l, so the probability is 3(δ/(6SAN))², and
over all N = 1, 2, … together at most (π²/72)(δ/(SA))². With S²A probabilities and SA rewards, the true model is in the sets of all
episodes at once with probability at least 1 − (π²/72)(1 + 1/S)δ²/A, more than 1 − 0.28 δ². So the sets hold for all times, with room to
spare: Fruit, Pirotta & Lazaric ask for 1 − δ/3. They prove that the regret of UCRL with these sets is of the order √(DΓSAT), up to
logarithms; for SCAL with them nothing is proved. Some public implementations have δ/3 in place of δ.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.estimate import FILL, Estimate
from spanrl.kernels.jit import kernel, passed
from spanrl.kernels.layout import BOX
from spanrl.models.info import ProblemInfo


@kernel
def ucrl2b_radius(variance, n, log_term, size):
    """Return 2 √(σ̂² l/N) + 6·size·l/N."""
    return 2.0 * sqrt(variance * log_term / n) + 6.0 * size * log_term / n


@passed(FILL)
def fill_ucrl2b(known, settings, kept, sets):
    """Write the boxes of the pairs that were visited; the others are what they were."""
    seen, size = known.seen, known.r_max - known.r_min
    for i in known.changed:
        if seen.n[i] == 0:
            sets.rest[i], sets.r_low[i], sets.r_high[i] = 1.0, known.r_min, known.r_max
            continue
        n = float(seen.n[i])
        log_term = settings[0] + log(n)
        radius = ucrl2b_radius(seen.r_sq[i] / n, n, log_term, size)
        sets.r_low[i] = max(known.r_min, seen.r_mean[i] - radius)
        sets.r_high[i] = min(known.r_max, seen.r_mean[i] + radius)
        sets.rest[i] = min(1.0, ucrl2b_radius(0.0, n, log_term, 1.0))
        for j in range(seen.succ_ptr[i], seen.succ_ptr[i + 1]):
            p = seen.times[j] / n
            radius = ucrl2b_radius(p * (1.0 - p), n, log_term, 1.0)
            sets.low[j] = max(0.0, p - radius)
            sets.room[j] = min(1.0, p + radius) - sets.low[j]


@dataclass(frozen=True)
class UCRL2BBox(Estimate):
    """UCRL2B's boxes: they hold the true model, in all episodes at once, with probability 1 − ``delta`` and more."""

    delta: float = 0.05

    fill: ClassVar = fill_ucrl2b
    geometry: ClassVar = BOX
    roomy: ClassVar = True  # radii are larger where something was seen
    is_uniform: ClassVar = True

    def settings(self, info: ProblemInfo) -> NDArray[np.float64]:
        """Return ln(6SA/δ)."""
        return np.array([log(6.0 * int(info.n_states) * int(info.max_actions) / self.delta)])
