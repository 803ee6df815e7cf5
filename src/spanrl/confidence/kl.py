"""KL bounds: a ball of the Kullback–Leibler divergence around each transition distribution, and a kl interval for each reward.

Filippi, Cappé & Garivier 2010 (KL-UCRL) take for a pair that was seen N times all q with N·KL(p̂, q) ≤ C and choose C by a union over the
entries of q, S(ln(2eS²A ln T/δ) + …); Talebi & Maillard 2018 prove a bound on the regret that depends on the variances of the bias for such
sets; Boone & Gaujal 2025 take S ln(2et). This C is another, smaller one: of a pair with K different successors, seen n₁, …, n_K times,

    C = ln(2m/δ) + ln(S·binom(S, K)) + ln[Π p̂ⱼ^nⱼ / KT(n₁, …, n_K)],   m the number of pairs,
    KT(n₁, …, n_K) = Γ(K/2)/Γ(½)ᴷ · Π Γ(nⱼ + ½)/Γ(N + K/2),

the average of Π qⱼ^nⱼ over the distributions q on K states with the law Dirichlet(½, …, ½) of Krichevsky & Trofimov 1981.

What is proved: with probability 1 − δ the true model is in the sets of all episodes. Average the likelihood over q as follows: draw K
uniformly from 1..S, K of the S states uniformly, and q on these from Dirichlet(½, …, ½). Divided by the likelihood of the true distribution
this is a supermartingale in the number of visits that starts at 1, so by Ville's inequality it stays below 1/d for ever, with probability
1 − d. The states that were seen are one of the choices, and its share KT/(S·binom(S, K)) is no more than the whole: so the true q has
Π qⱼ^nⱼ ≥ d·KT/(S·binom(S, K)), which is N·KL(p̂, q) ≤ C for d = δ/(2m). There is one such event per pair, and one for its reward, whose
interval is that of :mod:`spanrl.confidence.kt_interval` at the same level: N·kl(r̂, r) ≤ ln(1/d) + excess. States that were not seen need no
bound of their own, and of S only the logarithm enters besides: for one successor C = ln(2m/δ) + 2 ln S however large N is, and each
further one adds about ½ ln N + ln S.

What is not: a bound on the regret with this C. The proofs cited ask of a set that it holds the true model, and by Pinsker's inequality
that ‖q − p̂‖₁ ≤ √(2C/N); as C is of the order K ln(SN) + ln(m/δ), they can be expected to go through.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, lgamma, log, log1p, pi
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.estimate import FILL, Estimate
from spanrl.confidence.kt_interval import kt_interval, log_gamma_rest
from spanrl.kernels.jit import kernel, passed
from spanrl.kernels.layout import KL
from spanrl.models.info import ProblemInfo


@kernel
def log_choices(n_states, k):
    """Return ln(S·binom(S, K)): how many choices of successors there are, each size as likely as the others."""
    return log(n_states) + lgamma(n_states + 1.0) - lgamma(k + 1.0) - lgamma(n_states - k + 1.0)


@kernel
def mixture_excess(times, first, end, n):
    """Return ln[Π p̂ⱼ^nⱼ / KT(n₁, …, n_K)] of the counts ``times[first:end]``, which sum to n: about ½(K − 1) ln n.

    As in :func:`spanrl.confidence.kt_interval.kt_excess`, which is the case K = 2, all that is of the order of n cancels on paper.
    """
    k = float(end - first)
    m = 0.5 * (k - 1.0)
    total = n * log1p(m / n) - m + m * log(n + m) + 0.5 * log(2.0 * pi) - 0.5 * k * log(2.0) - lgamma(0.5 * k)
    total += log_gamma_rest(n + m)
    for j in range(first, end):
        total -= log_gamma_rest(float(times[j]))
    return max(total, 0.0)


@passed(FILL)
def fill_kl(known, settings, kept, sets):
    """Write the balls of the pairs that were visited; the others are what they were."""
    seen, log_level, size = known.seen, settings[0], known.r_max - known.r_min
    for i in known.changed:
        if seen.n[i] == 0:
            sets.size[i], sets.r_low[i], sets.r_high[i] = inf, known.r_min, known.r_max
            continue
        n, first, end = float(seen.n[i]), seen.succ_ptr[i], seen.succ_ptr[i + 1]
        for j in range(first, end):
            sets.low[j] = seen.times[j] / n
        choices = log_choices(float(known.n_states), float(end - first))
        sets.size[i] = (log_level + choices + mixture_excess(seen.times, first, end, n)) / n
        paid = n * min(max((seen.r_mean[i] - known.r_min) / size, 0.0), 1.0)
        low, high = kt_interval(paid, n, log_level)
        sets.r_low[i] = known.r_min + size * low
        sets.r_high[i] = min(known.r_max, known.r_min + size * high)


@dataclass(frozen=True)
class KLBall(Estimate):
    """KL balls and kl intervals that hold the true model, in all episodes at once, with probability 1 − ``delta``."""

    delta: float = 0.05

    fill: ClassVar = fill_kl
    geometry: ClassVar = KL

    def settings(self, info: ProblemInfo) -> NDArray[np.float64]:
        """Return ln(1/d), d = δ/(2m) for m pairs."""
        return np.array([log(2 * info.n_pairs / self.delta)])
