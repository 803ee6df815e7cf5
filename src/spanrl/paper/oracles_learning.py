"""The formulas of learning, written once more from the paper, in exact fractions and 40 decimal digits.

Nothing here imports kernels, planning or confidence sets. What was seen of a pair is a :class:`Seen`; its sets are those of App. F
(``bernstein_ends``) and of Jaksch, Ortner & Auer 2010 (``hoeffding_ends``); S and A = max_s |A_s| are given as numbers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import log, log2, sqrt
from typing import NamedTuple

DIGITS = 40
Level = float | str


@dataclass
class Seen:
    """What was seen of one pair: how often each reward, and each successor."""

    rewards: Counter[float] = field(default_factory=Counter)
    successors: Counter[int] = field(default_factory=Counter)

    def add(self, reward: float, successor: int) -> None:
        """Take in one step."""
        self.rewards[reward] += 1
        self.successors[successor] += 1

    @property
    def n(self) -> int:
        """N, the number of samples."""
        return sum(self.rewards.values())

    @property
    def mean(self) -> Fraction:
        """The mean reward."""
        return sum((Fraction(r) * times for r, times in self.rewards.items()), Fraction(0)) / self.n

    @property
    def variance(self) -> Fraction:
        """Σ (r − r̂)²/(N − 1); 0 for N ≤ 1."""
        if self.n <= 1:
            return Fraction(0)
        mean = self.mean
        return sum((Fraction(r) - mean) ** 2 * times for r, times in self.rewards.items()) / Fraction(self.n - 1)


class Intervals(NamedTuple):
    """A pair's box: the ends of the reward interval, and of the interval of each of the S successors."""

    r_low: float
    r_high: float
    p_low: list[float]
    p_high: list[float]


class Ball(NamedTuple):
    """A pair's L1 ball: the ends of the reward interval, the centre [S] (None: any) and the radius."""

    r_low: float
    r_high: float
    centre: list[float] | None
    radius: float


class Setting(NamedTuple):
    """What a radius depends on besides the samples: S, A, t, δ ("rsqrt" is 1/√t), α_p, α_r and the range of the rewards."""

    S: int
    A: int
    t: int
    delta: Level = 0.05
    p_scale: float = 1.0
    r_scale: float = 1.0
    r_min: float = 0.0
    r_max: float = 1.0


def decimal(x: Fraction | float) -> Decimal:
    """Return ``x`` in 40 digits."""
    exact = Fraction(x)
    return Decimal(exact.numerator) / Decimal(exact.denominator)


@lru_cache(maxsize=4096)
def _log(numerator: Fraction, t: int, delta: Level) -> Decimal:
    """Return ln(numerator·t/δ)."""
    with localcontext() as context:
        context.prec = DIGITS
        return (decimal(numerator) * t * (Decimal(t).sqrt() if delta == "rsqrt" else 1 / decimal(float(delta)))).ln()


def bernstein(variance: Fraction, n: int, b: Decimal, alpha: float, size: float) -> Decimal:
    """Return √(14 α σ̂² b/max{1, N}) + 49 α r_max b/(3 max{1, N − 1})."""
    a = decimal(alpha)
    root = (14 * a * decimal(variance) * b / max(1, n)).sqrt()
    return root + 49 * a * decimal(size) * b / (3 * max(1, n - 1))


def _interval(centre: Fraction, radius: Decimal, low: float, high: float) -> tuple[float, float]:
    """Return [centre ± radius] ∩ [low, high]."""
    return float(max(decimal(low), decimal(centre) - radius)), float(min(decimal(high), decimal(centre) + radius))


def bernstein_ends(seen: Seen, at: Setting) -> Intervals:
    """Return B_r and B_p of a pair: centre ± β, cut to [r_min, r_max] and [0, 1]; everything where N = 0."""
    if seen.n == 0:
        return Intervals(at.r_min, at.r_max, [0.0] * at.S, [1.0] * at.S)
    with localcontext() as context:
        context.prec = DIGITS
        b = _log(Fraction(2 * at.S * at.A), at.t, at.delta)
        radius = bernstein(seen.variance, seen.n, b, at.r_scale, at.r_max - at.r_min)
        reward = _interval(seen.mean, radius, at.r_min, at.r_max)
        ends = []
        for s in range(at.S):
            p = Fraction(seen.successors[s], seen.n)
            ends.append(_interval(p, bernstein(p * (1 - p), seen.n, b, at.p_scale, 1.0), 0.0, 1.0))
    return Intervals(*reward, [low for low, _ in ends], [high for _, high in ends])


def hoeffding_ends(seen: Seen, at: Setting) -> Ball:
    """Return UCRL2's sets: r̂ ± √(7 ln(2SAt/δ)/(2N)) r_max, ‖p − p̂‖₁ ≤ √(14 S ln(2At/δ)/N) (2 allows everything)."""
    if seen.n == 0:
        return Ball(at.r_min, at.r_max, None, 2.0)
    with localcontext() as context:
        context.prec = DIGITS
        b_r, b_p = (_log(Fraction(2 * states * at.A), at.t, at.delta) for states in (at.S, 1))
        radius = decimal(at.r_max - at.r_min) * (7 * b_r / (2 * seen.n)).sqrt()
        reward = _interval(seen.mean, radius, at.r_min, at.r_max)
        distance = min(Decimal(2), (14 * at.S * b_p / seen.n).sqrt())
    return Ball(*reward, [seen.successors[s] / seen.n for s in range(at.S)], float(distance))


def perturbation(pairs: list[Seen], at: Setting, c: float, state: int) -> float:
    """Return η_k = min{1, r_max/(c t_k), min over pairs of β_p(s, a, s̄)}."""
    with localcontext() as context:
        context.prec = DIGITS
        b = _log(Fraction(2 * at.S * at.A), at.t, at.delta)
        radii = []
        for seen in pairs:
            p = Fraction(seen.successors[state], seen.n) if seen.n else Fraction(0)
            radii.append(bernstein(p * (1 - p), seen.n, b, at.p_scale, 1.0))
        return float(min(Decimal(1), decimal(at.r_max - at.r_min) / (decimal(c) * at.t), *radii))


def regret_bound(T: int, S: int, A: int, support: int, c: float, delta: float, r_max: float) -> float:
    """Return the long formula that ends App. F, term by term as printed; r_max √(SAT) for T < SA."""
    with localcontext() as context:
        context.prec = DIGITS
        two, r, c_ = Decimal(2), decimal(r_max), decimal(c)
        if T < S * A:
            return float(r * Decimal(S * A * T).sqrt())
        L = (two * S * A * T / decimal(delta)).ln()
        azuma = (Decimal(5) / 2 * T * (Decimal(11) * T / decimal(delta)).ln()).sqrt()
        roots = Decimal(28).sqrt() + Decimal(14).sqrt()
        log_T = Decimal(T).ln()
        terms = (
            roots * c_ * (Decimal((support - 1) * S * A * T) * L).sqrt(),
            Decimal(98) / 3 * c_ * S**2 * A * L * (3 + log_T),
            2 * roots * r * (Decimal(S * A * T) * L).sqrt(),
            Decimal(196) / 3 * r * S * A * L * (3 + log_T),
            3 * (c_ + r) * azuma,
            c_ * S * A * (Decimal(8 * T) / (S * A)).ln() / two.ln(),
            3 * (two.sqrt() + 1) * r * Decimal(S * A * T).sqrt(),
            r * Decimal(T).sqrt(),
        )
        return float(sum(terms))


def most_episodes(T: int, S: int, A: int) -> float:
    """Return SA log₂(8T/SA), for T ≥ SA (Jaksch et al. 2010, App. C.2)."""
    return S * A * log2(8 * T / (S * A))


def root_sum_bound(T: int, S: int, A: int) -> float:
    """Return (√2 + 1)√(SAT), which bounds Σ_k Σ ν_k/√max{1, N_k}."""
    return (sqrt(2) + 1) * sqrt(S * A * T)


def harmonic_sum_bound(T: int, S: int, A: int) -> float:
    """Return 6SA + 2SA ln T, which bounds Σ_k Σ ν_k/max{1, N_k − 1}."""
    return 6 * S * A + 2 * S * A * log(T)
