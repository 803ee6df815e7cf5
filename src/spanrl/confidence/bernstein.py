"""The paper's sets: empirical Bernstein intervals for each reward and each transition probability.

With N visits, N⁺ = max(1, N), and b = ln(2SAt/δ), an interval has the radius ::

    √(14 α σ̂² b/N⁺) + (49/3) α·size·b/max(1, N−1)

around its mean: Maurer & Pontil 2009, Theorem 4, at level δ/(60 t⁷SA), as SCAL and its UCRL use it for rewards and, with σ̂² = p̂(1 − p̂) and
size 1, for each transition probability (Fruit et al. 2018, Sec. 3.1 and appendix on the regret). All successors never seen from a pair
share the interval [0, (49/3) α b/max(1, N−1)]. Rewards are kept in [r_min, r_max], so that the optimistic one is capped at r_max (paper,
footnote in Sec. 6), and probabilities in [0, 1]; a pair never seen may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.estimate import FILL, Estimate
from spanrl.kernels.jit import kernel, part, passed
from spanrl.kernels.layout import BOX
from spanrl.models.counts import Counts
from spanrl.models.info import ProblemInfo


@part
def bernstein(error, inverse, root, linear, size):
    """Return the radius √(14 α b)·√(σ̂²/N⁺) + (49/3) α b·size/max(1, N−1) of a standard error and 1/max(1, N−1).

    They depend on the counts alone and are kept; ``root`` and ``linear`` are :func:`bernstein_factors`, one pair of numbers per plan.
    """
    return root * error + linear * size * inverse


@kernel
def bernstein_factors(log_term, scale):
    """Return (√(14 α b), (49/3) α b)."""
    return sqrt(14.0 * scale * log_term), 49.0 / 3.0 * scale * log_term


@kernel
def log_term(n_states, max_actions, t, delta):
    """Return b = ln(2SAt/δ); δ < 0 stands for 1/√t."""
    level = 1.0 / np.sqrt(t) if delta < 0.0 else delta
    return np.log(2.0 * float(n_states) * float(max_actions) * t / level)


@kernel
def _keep(n, r_sq, succ_ptr, times, changed, r_error, inverse, p_hat, p_error, p_inverse):
    """Bring the standard errors of pairs that were visited up to date: they depend on the counts alone."""
    for i in changed:
        N = max(n[i], 1)
        inverse[i] = 1 / max(n[i] - 1, 1)
        for j in range(succ_ptr[i], succ_ptr[i + 1]):
            p = times[j] / N
            p_hat[j], p_error[j], p_inverse[j] = p, np.sqrt(p * (1 - p) / N), inverse[i]
        r_error[i] = np.sqrt(r_sq[i] / max(N - 1, 1) / N) if N > 1 else 0.0


@kernel
def _fill_rewards(n, mean, error, inverse, root, linear, r_min, r_max, low, high):
    """Write the reward intervals, capped at [r_min, r_max]."""
    size = r_max - r_min
    for i in range(n.size):
        end = min(r_max, mean[i] + bernstein(error[i], inverse[i], root, linear, size))
        high[i] = end if n[i] > 0 else r_max
    for i in range(n.size):
        end = max(r_min, mean[i] - bernstein(error[i], inverse[i], root, linear, size))
        low[i] = end if n[i] > 0 else r_min


@kernel
def _fill_probabilities(n, listed, p_hat, error, p_inverse, inverse, root, linear, low, room, rest):
    """Write the ends of listed successors, and the interval [0, rest] that those never seen share."""
    for j in range(listed):
        beta = bernstein(error[j], p_inverse[j], root, linear, 1.0)
        lower = max(0.0, p_hat[j] - beta)
        low[j] = lower
        room[j] = min(1.0, p_hat[j] + beta) - lower
    for i in range(n.size):
        end = min(1.0, bernstein(0.0, inverse[i], root, linear, 1.0))
        rest[i] = end if n[i] > 0 else 1.0


@passed(FILL)
def fill_bernstein(known, settings, kept, sets):
    """Write the boxes of all pairs: with t, all radii change. Loops run over flat arrays: those become vector instructions."""
    seen = known.seen
    r_error, inverse = kept.pair[0], kept.pair[1]
    p_hat, p_error, p_inverse = kept.succ[0], kept.succ[1], kept.succ[2]
    _keep(seen.n, seen.r_sq, seen.succ_ptr, seen.times, known.changed, r_error, inverse, p_hat, p_error, p_inverse)
    b = log_term(known.n_states, known.max_actions, known.t, settings[0])
    root, linear = bernstein_factors(b, settings[2])
    _fill_rewards(
        seen.n, seen.r_mean, r_error, inverse, root, linear, known.r_min, known.r_max, sets.r_low, sets.r_high
    )
    root, linear = bernstein_factors(b, settings[1])
    listed = seen.succ_ptr[-1]
    _fill_probabilities(
        seen.n, listed, p_hat, p_error, p_inverse, inverse, root, linear, sets.low, sets.room, sets.rest
    )


@dataclass(frozen=True)
class BernsteinBox(Estimate):
    """The paper's set, at level ``delta``, a number or "rsqrt" for δ_k = 1/√t_k, with the factors α_p and α_r inside the radii."""

    delta: float | str = 0.05
    p_scale: float = 1.0
    r_scale: float = 1.0

    fill: ClassVar = fill_bernstein
    varies_delta: ClassVar = True
    geometry: ClassVar = BOX
    rewrites: ClassVar = True
    roomy: ClassVar = True  # radii are larger where something was seen
    n_kept: ClassVar = (2, 3)

    def settings(self, info: ProblemInfo) -> NDArray[np.float64]:
        """Return δ (−1 for "rsqrt"), α_p and α_r."""
        return np.array([-1.0 if isinstance(self.delta, str) else self.delta, self.p_scale, self.r_scale])

    def radii_at(self, counts: Counts, t: int, info: ProblemInfo, state: int) -> NDArray[np.float64]:
        """Return β_p(s, a, ``state``) of every pair, as the set has them, to the last bit."""
        level, p_scale, _ = self.settings(info).tolist()
        root, linear = bernstein_factors(log_term(int(info.n_states), int(info.max_actions), int(t), level), p_scale)
        row, here = np.repeat(np.arange(info.n_pairs), np.diff(counts.succ_ptr)), counts.succ == state
        N, error = np.maximum(counts.n, 1), np.zeros(info.n_pairs)
        p = counts.times[here] / N[row[here]]
        error[row[here]] = np.sqrt(p * (1 - p) / N[row[here]])
        radii: NDArray[np.float64] = bernstein.py_func(error, 1 / np.maximum(counts.n - 1, 1), root, linear, 1.0)
        return radii
