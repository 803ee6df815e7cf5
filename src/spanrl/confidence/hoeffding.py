"""UCRL2's sets: an interval for each reward, an L1 ball for each transition distribution (Jaksch, Ortner & Auer 2010, Eq. 3 and 4)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.estimate import FILL, Estimate
from spanrl.kernels.jit import kernel, passed
from spanrl.kernels.layout import BALL
from spanrl.models.info import ProblemInfo


@kernel
def hoeffding(n, log_term, size):
    """Return size·√(7 b/(2N⁺)) with b = ln(2SAt/δ): the radius of a reward."""
    return size * sqrt(7.0 * log_term / (2.0 * max(1, n)))


@kernel
def weissman(n, n_states, log_term):
    """Return √(14 S b/N⁺) with b = ln(2At/δ): the L1 radius of a distribution over S states, from the bound of Weissman et al. 2003."""
    return sqrt(14.0 * n_states * log_term / max(1, n))


@passed(FILL)
def fill_hoeffding(known, settings, kept, sets):
    """Write the balls of all pairs; their centres change with their counts alone."""
    seen, t, r_min, r_max = known.seen, known.t, known.r_min, known.r_max
    n, r_mean = seen.n, seen.r_mean
    delta = 1.0 / np.sqrt(t) if settings[0] < 0.0 else settings[0]
    S, A = float(known.n_states), float(known.max_actions)
    r_log, p_log = np.log(2.0 * S * A * t / delta), np.log(2.0 * A * t / delta)
    for i in range(n.size):
        if n[i] == 0:
            sets.size[i], sets.r_low[i], sets.r_high[i] = 1.0, r_min, r_max
            continue
        radius = hoeffding(n[i], r_log, r_max - r_min)
        sets.r_low[i], sets.r_high[i] = max(r_min, r_mean[i] - radius), min(r_max, r_mean[i] + radius)
        sets.size[i] = weissman(n[i], known.n_states, p_log) / 2.0
    for i in known.changed:
        for j in range(seen.succ_ptr[i], seen.succ_ptr[i + 1]):
            sets.low[j] = seen.times[j] / n[i]


@dataclass(frozen=True)
class HoeffdingBall(Estimate):
    """UCRL2's set, at level ``delta``, a number or "rsqrt" for δ_k = 1/√t_k."""

    delta: float | str = 0.05

    fill: ClassVar = fill_hoeffding
    varies_delta: ClassVar = True
    geometry: ClassVar = BALL

    def settings(self, info: ProblemInfo) -> NDArray[np.float64]:
        """Return δ, −1 for "rsqrt"."""
        return np.array([-1.0 if isinstance(self.delta, str) else self.delta])
