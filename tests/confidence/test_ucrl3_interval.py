"""UCRL3's interval against its definition in 50 decimal digits, by hand where it has a closed form, and its coverage exactly."""

from __future__ import annotations

import random
from decimal import Context, Decimal, localcontext
from math import inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanrl.confidence.ucrl3_interval import laplace, peeling, ucrl3_interval
from spanrl.kernels.jit import interpreted

CASES = settings(deadline=None, derandomize=True, max_examples=100)
DIGITS = Context(prec=50, Emin=-(10**9), Emax=10**9)
EPS = Decimal(2) ** -53
HALF, QUARTER = Decimal("0.5"), Decimal("0.25")


class Definition:
    """The set itself, in decimals: the doubles k, n and ln(1/d) are taken at their exact values."""

    ETA = Decimal("1.12")

    def __init__(self, k, n, log_level):
        self.n, self.p, level = Decimal(n), Decimal(k) / Decimal(n), Decimal(log_level)
        self.beta = (2 * (1 + 1 / self.n) * (level + (self.n + 1).ln() / 2) / self.n).sqrt()
        self.ell = None
        if n > 1:
            ratio = self.n.ln() * (self.ETA * self.n).ln() / self.ETA.ln() ** 2
            self.ell = self.ETA * (level + ratio.ln())

    @staticmethod
    def g(q):
        if q in (0, 1):
            return Decimal(0)
        return QUARTER if q == HALF else (HALF - q) / (1 / q - 1).ln()

    def bernstein(self, q):
        """Whether |p̂ − q| ≤ √(2q(1−q) ℓ/n) + ℓ/(3n)."""
        if self.ell is None:
            return True
        a = self.ell / self.n
        return abs(self.p - q) <= (2 * q * (1 - q) * a).sqrt() + a / 3

    def gaussian(self, q):
        """Whether p̂ − q ≤ β √g̲(q) and q − p̂ ≤ β √g(q)."""
        if q < self.p:
            return self.p - q <= self.beta * (q * (1 - q) if q >= HALF else self.g(q)).sqrt()
        return q - self.p <= self.beta * self.g(q).sqrt()

    def holds(self, q):
        return 0 <= q <= 1 and self.bernstein(q) and self.gaussian(q)

    def check(self, low, high):
        """Check that the definition holds up to the ends and not beyond, to some roundings of them."""
        for end, side in ((Decimal(low), -1), (Decimal(high), 1)):
            size = 1 - end.ln() if end > 0 else 0  # an end e⁻ˣ is known to some x roundings
            room = 16 * EPS * end * size + Decimal("1e-320")
            inside, outside = end - side * room, end + side * room
            assert (inside - self.p) * side <= 0 or self.holds(inside), (end, side)
            assert not self.holds(outside), (end, side)


def random_cases():
    """Return some (k, n, ln(1/d)): k of all sizes, near 0 and near n too; n up to 1e12."""
    rng, cases = random.Random(1), []
    for _ in range(40):
        n = int(10 ** rng.uniform(0, 9))
        few = int(n ** rng.random())
        cases += [(k, n, 10 ** rng.uniform(0, 2)) for k in (rng.randint(0, n), few, n - few)]
    return cases


EDGES = [
    (k, n, log_level)
    for n in (1, 2, 3, 16, 1000, 10**6, 10**12)
    for k in sorted({0, 1, n // 2, n - 1, n})
    for log_level in (0.1, 12.0, 200.0)
]


@pytest.mark.parametrize("cases", [random_cases(), EDGES], ids=["random", "edges"])
def test_the_definition_holds_up_to_the_ends_and_not_beyond(cases):
    with localcontext(DIGITS):
        for k, n, log_level in cases:
            ends = ucrl3_interval(float(k), float(n), log_level)
            with interpreted():
                assert ucrl3_interval(float(k), float(n), log_level) == ends
            try:
                Definition(k, n, log_level).check(*ends)
            except AssertionError as error:
                raise AssertionError(f"{(k, n, log_level)}: {ends}") from error


def test_the_set_is_an_interval():
    """On a grid, as the convexity of both conditions says."""
    with localcontext(DIGITS):
        for k, n, log_level in ((0, 5, 3.0), (2, 5, 3.0), (5, 5, 3.0), (1, 60, 1.0), (55, 60, 1.0), (30, 60, 0.2)):
            low, high = ucrl3_interval(float(k), float(n), log_level)
            for i in range(201):
                q = Decimal(i) / 200
                assert Definition(k, n, log_level).holds(q) == (low <= q <= high)


class TestByHand:
    def test_the_numbers_in_it(self):
        d = 0.01
        assert peeling(1.0, log(1 / d)) == inf
        assert peeling(2.0, log(1 / d)) == pytest.approx(
            1.12 * log(log(2) * log(2.24) / (0.01 * log(1.12) ** 2)), rel=1e-14
        )
        assert laplace(1.0, log(1 / d)) == pytest.approx(sqrt(4 * log(sqrt(2) / 0.01)), rel=1e-14)
        assert laplace(8.0, log(1 / d)) == pytest.approx(sqrt(2 * 9 / 8 * log(300) / 8), rel=1e-14)

    def test_nothing_seen(self):
        assert ucrl3_interval(0.0, 0.0, 3.0) == (0.0, 1.0)

    def test_bernstein_decides(self):
        """p̂ = 0 and a = ℓ/n: q = a/3 + √(2a q(1−q)), so q = (4a/3 + √(a² + 2a·(a/3)(1 − a/3)))/(1 + 2a)."""
        n = 10_000.0
        a = 1.12 * log(log(n) * log(1.12 * n) / (0.01 * log(1.12) ** 2)) / n
        wanted = (4 / 3 * a + sqrt(a * a + 2 * a * (a / 3) * (1 - a / 3))) / (1 + 2 * a)
        assert ucrl3_interval(0.0, n, log(100)) == (0.0, pytest.approx(wanted, rel=1e-14))

    def test_the_variance_of_the_upper_half_decides(self):
        """p̂ = 1: 1 − q = β √(q(1−q)), so q = 1/(1 + β²), as long as this is ≥ ½."""
        beta = laplace(10_000.0, log(100))
        assert ucrl3_interval(1e4, 1e4, log(100)) == (pytest.approx(1 / (1 + beta**2), rel=1e-14), 1.0)

    def test_even_chances(self):
        """p̂ = ½, many trials: q − ½ is nearly β/2, and g(q) nearly ¼ − (q−½)²/3."""
        low, high = ucrl3_interval(5e7, 1e8, log(100))
        x = laplace(1e8, log(100)) / 2
        assert high - 0.5 == pytest.approx(x / sqrt(1 + 4 * x * x / 3), rel=1e-9)
        assert high + low == pytest.approx(1.0, abs=1e-9)


class TestTableOfTheLiterature:
    """S = 20, A = 4, δ = 0.05: radii of Bernstein by peeling alone, as printed to two digits; the interval is at most as wide."""

    LOG_LEVEL = log(63 * 80 / 0.05)

    @pytest.mark.parametrize(
        ("p", "n", "printed"), [(0.0, 100, 0.39), (0.0, 1000, 0.056), (0.0, 10_000, 0.0059), (0.5, 1000, 0.110)]
    )
    def test_peeling(self, p, n, printed):
        a = peeling(float(n), self.LOG_LEVEL) / n
        m = p + a / 3
        radius = (m + a + sqrt(a * (a + 2 * m * (1 - m)))) / (1 + 2 * a) - p
        assert radius == pytest.approx(printed, rel=0.02)
        _, high = ucrl3_interval(p * n, float(n), self.LOG_LEVEL)
        assert high - p <= radius * (1 + 1e-12)

    def test_the_other_condition_is_sharper_in_two_of_the_four(self):
        found = [ucrl3_interval(p * n, float(n), self.LOG_LEVEL)[1] - p for p, n in ((0, 100), (0.5, 1000))]
        assert found == [pytest.approx(0.2524, abs=1e-4), pytest.approx(0.0861, abs=1e-4)]


@CASES
@given(st.integers(1, 10**9), st.floats(0.0, 1.0), st.floats(0.1, 100.0), st.floats(0.01, 10.0))
def test_it_holds_the_frequency_and_grows_with_the_level(n, share, log_level, more):
    k = float(round(n * share))
    low, high = ucrl3_interval(k, float(n), log_level)
    assert 0 <= low <= k / n <= high <= 1
    wider = ucrl3_interval(k, float(n), log_level + more)
    assert wider[0] <= low <= high <= wider[1]


def leaving_probability(q, table):
    """Return the probability that q is ever outside, by dynamic programming; ``table[n-1][k]`` is an interval."""
    alive, left = np.ones(1), 0.0
    for ends in table:
        alive = np.convolve(alive, (1 - q, q))
        outside = (q < ends[:, 0]) | (q > ends[:, 1])
        left += alive[outside].sum()
        alive[outside] = 0.0
    return left


def table(log_level, n_max=120):
    return [
        np.array([ucrl3_interval(float(k), float(n), log_level) for k in range(n + 1)]) for n in range(1, n_max + 1)
    ]


class TestCoverage:
    """Of all of the first 120 intervals together: exact probabilities, no simulation. Proved is 2.22 d."""

    QS = (0.5, 0.3, 0.1, 0.02, 0.7, 0.9, 0.98)

    @pytest.mark.parametrize("d", [0.05, 0.01])
    def test_the_probability_is_missed_as_rarely_as_proved(self, d):
        missed = [leaving_probability(q, table(log(1 / d))) for q in self.QS]
        assert d / 10 < max(missed) <= 2.22 * d

    @pytest.mark.parametrize("d", [0.05, 0.01])
    def test_a_wrong_level_shows(self, d):
        wrong = table(log(1 / d) / 4, 60)
        assert max(leaving_probability(q, wrong) for q in self.QS) > 2.22 * d

    def test_the_sides_as_printed_cannot_hold(self):
        """One failure at the first trial: q − p̂ = q, but β √(q(1−q)) is less. Its probability is 1 − q = 4 d."""
        q, d = 0.96, 0.01
        assert q > laplace(1.0, log(1 / d)) * sqrt(q * (1 - q))
        assert ucrl3_interval(0.0, 1.0, log(1 / d))[1] > q

    def test_of_the_first_blocks_few_contain_a_whole_number(self):
        """So Σ 1/(k(k+1)) over those that do is below 0.11; from block 17 on, which begins below 7, all count."""
        first = [k for k in range(1, 17) if any(1.12**k <= n < 1.12 ** (k + 1) for n in range(2, 9))]
        assert sum(1 / (k * (k + 1)) for k in first) + 1 / 17 < 0.11
