"""The KT interval against its definition in 60 decimal digits, by hand where it has a closed form, and its coverage exactly."""

from __future__ import annotations

import random
from contextlib import nullcontext
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from math import comb, factorial, log, nextafter, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanrl.confidence.kt_interval import kt_excess, kt_interval
from spanrl.kernels.jit import interpreted

CASES = settings(deadline=None, derandomize=True, max_examples=100)
DIGITS = Context(prec=60, Emin=-(10**12), Emax=10**12)
EPS = Decimal(2) ** -53
HALF = Decimal("0.5")
PI = Decimal("3.1415926535897932384626433832795028841971693993751058209749445923")

levels = st.floats(0.1, 200.0)
numbers = st.one_of(st.integers(1, 100), st.integers(1, 10**12)).map(float)


def stirling_coefficients(n_terms):
    """Return B₂ⱼ/(2j(2j−1)) for j = 1, …, ``n_terms``."""
    bernoulli = [Fraction(1)]
    for i in range(1, 2 * n_terms + 1):
        bernoulli.append(-sum(comb(i + 1, j) * bernoulli[j] for j in range(i)) / (i + 1))
    even = [bernoulli[2 * j] / (2 * j * (2 * j - 1)) for j in range(1, n_terms + 1)]
    return [Decimal(c.numerator) / c.denominator for c in even]


with localcontext(DIGITS):
    STIRLING = stirling_coefficients(24)
    HALF_LOG_2PI = (2 * PI).ln() / 2


def log_gamma(x):
    """Return ln Γ(x) by Stirling's series from 50 on, where 24 terms are exact to 1e-55."""
    product = Decimal(1)
    while x < 50:
        product, x = product * x, x + 1
    series, z = Decimal(0), 1 / (x * x)
    for c in reversed(STIRLING):
        series = series * z + c
    return (x - HALF) * x.ln() - x + HALF_LOG_2PI + series / x - product.ln()


def log_mixture(k, n):
    """Return ln[B(k+½, n−k+½)/B(½, ½)]."""
    return log_gamma(k + HALF) + log_gamma(n - k + HALF) - log_gamma(n + 1) - PI.ln()


class Definition:
    """The set itself, in decimals: the doubles k, n and ln(1/d) are taken at their exact values."""

    def __init__(self, k, n, log_level):
        self.k, self.n, self.level = Decimal(k), Decimal(n), Decimal(log_level)
        self.mixture = log_mixture(self.k, self.n)

    def holds(self, q):
        """Whether B(k+½, n−k+½)/B(½, ½) ≤ (1/d) qᵏ (1−q)ⁿ⁻ᵏ."""
        parts = ((self.k, q), (self.n - self.k, 1 - q))
        if any(count > 0 and share <= 0 for count, share in parts):
            return False
        return self.mixture <= self.level + sum(count * share.ln() for count, share in parts if count > 0)

    def tolerance(self, q, count):
        """Return 32 roundings of min(q, 1−q), or one of q itself where that is more; ``count`` is what falls towards this end.

        An error of one rounding in ln(1/d) alone moves ln q by ln(1/d)/k roundings where k is small. Below 1e-300 doubles end.
        """
        sensitivity = 1 + (self.level + 16) / count
        return 32 * EPS * min(q, 1 - q) * sensitivity + (EPS if q > HALF else Decimal("1e-300"))

    def check(self, low, high):
        low, high = Decimal(low), Decimal(high)
        if self.k > 0:
            room = self.tolerance(low, self.k)
            assert self.holds(low + room)
            assert not self.holds(low - room)
        else:
            assert low == 0
        if self.k < self.n:
            room = self.tolerance(high, self.n - self.k)
            assert self.holds(high - room)
            assert not self.holds(high + room)
        else:
            assert high == 1


def random_cases():
    """Return some (k, n, ln(1/d)): integer and real k of all sizes, near 0 and near n too; n up to 1e12."""
    rng, cases = random.Random(1), []
    for _ in range(25):
        n = float(int(10 ** rng.uniform(0, 9)))
        few = float(int(n ** rng.random()))
        for k in (
            float(rng.randint(0, int(n))),
            n * rng.random(),
            few,
            n - few,
            10 ** rng.uniform(-3, 0),
            n * few / (few + 1),
        ):
            cases.append((k, n, 10 ** rng.uniform(-1, 2.3)))
    return cases


EDGES = [
    (float(k), float(n), log_level)
    for n in (1, 2, 16, 17, 10**6, 10**12)
    for k in sorted({0, 1e-110, 1e-90, 1e-9, 0.25, 1, 8, nextafter(8, 0), n / 2, n - 1, n - 0.5, nextafter(n, 0), n})
    if k <= n
    for log_level in (0.1, 12.0, 200.0)
]


def test_the_oracle_is_exact():
    """Γ(k+½) = √π (2k)!/(4ᵏ k!), so the mixture is a fraction for integers: C(2k, k) C(2m, m)/(4ⁿ C(n, k)) with m = n − k."""
    with localcontext(DIGITS):
        for k, n in ((0, 1), (1, 2), (3, 10), (40, 60), (100, 101)):
            m = n - k
            exact = Fraction(comb(2 * k, k) * comb(2 * m, m) * factorial(k) * factorial(m), 4**n * factorial(n))
            wanted = (Decimal(exact.numerator) / exact.denominator).ln()
            assert abs(log_mixture(Decimal(k), Decimal(n)) - wanted) < Decimal("1e-50")


@pytest.mark.parametrize("cases", [random_cases(), EDGES], ids=["random", "edges"])
def test_the_definition_holds_up_to_the_ends_and_not_beyond(cases):
    with localcontext(DIGITS):
        for case in cases:
            ends = kt_interval(*case)
            with interpreted():
                assert kt_interval(*case) == ends
            try:
                Definition(*case).check(*ends)
            except AssertionError as error:
                raise AssertionError(f"{case}: {ends}") from error


@pytest.mark.parametrize("d", [0.9, 0.05, 1e-9])
@pytest.mark.parametrize("mode", [nullcontext, interpreted])
def test_by_hand(d, mode):
    level = log(1 / d)

    def near(low, high):
        return pytest.approx((low, high), rel=1e-14, abs=1e-16)

    def function(*arguments):
        with mode():
            return kt_interval(*arguments)

    assert function(0.0, 0.0, level) == (0.0, 1.0)
    assert function(0.0, 1.0, level) == near(0.0, 1 - d / 2)  # the mixture is ½
    assert function(1.0, 1.0, level) == near(d / 2, 1.0)
    assert function(0.0, 2.0, level) == near(0.0, 1 - sqrt(3 * d / 8))  # 3/8
    root = sqrt(0.25 - d / 8)  # q (1−q) ≥ d/8
    assert function(1.0, 2.0, level) == near(d / 8 / (0.5 + root), 0.5 + root)
    root = sqrt(0.25 - (d / pi) ** 2)  # √(q (1−q)) ≥ d/π
    assert function(0.5, 1.0, level) == near((d / pi) ** 2 / (0.5 + root), 0.5 + root)


def test_plain_integers_and_sums_that_rounding_put_outside():
    with interpreted():
        assert kt_interval(3, 10, 2.0) == kt_interval(3.0, 10.0, 2.0)
        assert kt_interval(0, 0, 2.0) == (0.0, 1.0)
    assert kt_interval(-1e-12, 5.0, 2.0) == kt_interval(0.0, 5.0, 2.0)
    assert kt_interval(nextafter(5.0, 6.0), 5.0, 2.0) == kt_interval(5.0, 5.0, 2.0)


@CASES
@given(numbers, st.floats(0.0, 1.0), st.lists(levels, min_size=5, max_size=5, unique=True))
def test_it_holds_the_mean_and_grows_with_the_level(n, share, log_levels):
    k = n * share
    ordered = sorted(log_levels)
    ends = [kt_interval(k, n, log_level) for log_level in ordered]
    assert all(0 <= low <= k / n <= high <= 1 for low, high in ends)
    for (one, other), (inner, outer) in zip(pairwise(ordered), pairwise(ends), strict=True):
        if other - one > 1e-9:  # else rounding decides
            assert outer[0] <= inner[0] <= inner[1] <= outer[1]


@CASES
@given(numbers, st.floats(0.0, 1.0), levels)
def test_failures_are_successes_of_the_complement(n, share, log_level):
    k = round(n * share)
    low, high = kt_interval(float(k), n, log_level)
    assert kt_interval(n - k, n, log_level) == pytest.approx((1 - high, 1 - low), rel=0, abs=2.0**-52)


def intervals(log_level, n_max=200, unit=1.0):
    """Return the intervals of k = 0, unit, 2·unit, …, n for n = 1, …, n_max; ``log_level`` is a function of (k, n)."""
    return [
        np.array(
            [kt_interval(k, float(n), log_level(k, float(n))) for k in np.arange(0.0, n + unit / 2, unit).tolist()]
        )
        for n in range(1, n_max + 1)
    ]


def leaving_probability(q, law, tables):
    """Return the probability that q is ever outside, by dynamic programming; ``law`` has the probabilities of 0, unit, …, 1."""
    alive, left = np.ones(1), 0.0
    for table in tables:
        alive = np.convolve(alive, law)
        outside = (q < table[:, 0]) | (q > table[:, 1])
        left += alive[outside].sum()
        alive[outside] = 0.0
    return left


def greatest_leaving_probability(tables):
    return max(leaving_probability(q, (1 - q, q), tables) for q in (0.5, 0.3, 0.1, 0.02, 0.9))


class TestCoverage:
    """Of all of the first 200 intervals together: exact probabilities, no simulation."""

    @pytest.mark.parametrize("d", [0.3, 0.05])
    def test_the_mean_leaves_with_probability_at_most_d_but_not_much_less(self, d):
        assert d / 2 < greatest_leaving_probability(intervals(lambda k, n: log(1 / d))) <= d

    @pytest.mark.parametrize("d", [0.3, 0.05])
    def test_a_wrong_level_shows(self, d):
        assert greatest_leaving_probability(intervals(lambda k, n: log(1 / d) / 2)) > d
        with interpreted():  # the excess is a kernel of its own only for kernels
            no_excess = intervals(lambda k, n: log(1 / d) - kt_excess(k, n), 60)
        assert greatest_leaving_probability(no_excess) > 2 * d

    def test_samples_between_0_and_1(self):
        d = 0.3
        tables = intervals(lambda k, n: log(1 / d), 100, unit=0.5)
        for q, middle in ((0.5, 0.1), (0.5, 0.6), (0.3, 0.2), (0.1, 0.05)):
            law = (1 - q - middle / 2, middle, q - middle / 2)
            assert 0 < leaving_probability(q, law, tables) <= d
