"""UCRL2B's sets: radii by hand and in decimals, and their coverage."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from math import isclose, log, sqrt

import pytest
from estimate_samples import dense, frequencies, problem
from hypothesis import given, settings
from hypothesis import strategies as st

from spanrl import ProblemInfo
from spanrl.confidence.ucrl2b import UCRL2BBox, ucrl2b_radius

FEWER = settings(deadline=None, derandomize=True, max_examples=30)
DIGITS = Context(prec=40)
ENDS = 1e-12


@pytest.mark.parametrize("function", [ucrl2b_radius, ucrl2b_radius.py_func], ids=["compiled", "interpreted"])
@pytest.mark.parametrize(
    ("arguments", "radius"),
    [
        # (σ̂², N, l, size): 2 √(σ̂² l/N) + 6·size·l/N
        ((0.25, 4.0, 1.0, 1.0), 0.5 + 1.5),
        ((0.25, 4.0, 4.0, 1.0), 1.0 + 6.0),
        ((1.0, 4.0, 1.0, 2.0), 1.0 + 3.0),  # the range multiplies the second term alone
        ((0.0, 12.0, 2.0, 1.0), 1.0),
        ((0.16, 100.0, 9.0, 5.0), 0.24 + 2.7),
    ],
)
def test_radius_by_hand(function, arguments, radius):
    assert function(*arguments) == pytest.approx(radius, rel=1e-15)


@pytest.mark.parametrize(
    ("p", "n", "printed"), [(0.0, 100, 0.83), (0.0, 1000, 0.097), (0.0, 10_000, 0.0110), (0.5, 1000, 0.223)]
)
def test_table_of_the_literature(p, n, printed):
    """S = 20, A = 4, δ = 0.05: the radii that others have worked out, to their digits."""
    log_term = UCRL2BBox().settings(ProblemInfo(20, 4))[0] + log(n)
    assert isclose(ucrl2b_radius(p * (1 - p), float(n), log_term, 1.0), printed, rel_tol=6e-3)


@FEWER
@given(st.integers(0, 10**6), st.sampled_from([UCRL2BBox(), UCRL2BBox(0.9), UCRL2BBox(1e-6)]))
def test_intervals(seed, estimate):
    """A in the logarithm is the largest number of actions of a state; variances are means of squares."""
    info, counts = problem(seed)
    bounded = estimate.bounded(counts, 7, info)
    p_hat, (low, high) = frequencies(counts, info.n_states), dense(bounded)
    r_min, r_max = Decimal(info.r_min), Decimal(info.r_max)
    with localcontext(DIGITS):
        for i in range(info.n_pairs):
            n = Decimal(int(counts.n[i]))
            if n == 0:
                assert (bounded.r_low[i], bounded.r_high[i]) == (info.r_min, info.r_max)
                assert (low[i] == 0).all()
                assert (high[i] == 1).all()
                continue
            term = (6 * int(info.n_states) * int(info.max_actions) * n / Decimal(estimate.delta)).ln()
            mean, variance = Decimal(counts.r_mean[i]), Decimal(counts.r_sq[i]) / n
            beta = 2 * (variance * term / n).sqrt() + 6 * (r_max - r_min) * term / n
            assert bounded.r_low[i] == pytest.approx(float(max(r_min, mean - beta)), abs=ENDS)
            assert bounded.r_high[i] == pytest.approx(float(min(r_max, mean + beta)), abs=ENDS)
            for s, share in enumerate(p_hat[i]):
                p = Decimal(round(share * int(n))) / n
                beta = 2 * (p * (1 - p) * term / n).sqrt() + 6 * term / n
                assert low[i, s] == pytest.approx(float(max(Decimal(0), p - beta)), abs=ENDS)
                assert high[i, s] == pytest.approx(float(min(Decimal(1), p + beta)), abs=ENDS)


class TestCoverage:
    """How rarely the model is outside is a claim of the family: tests/agents/family_claims.py."""

    def test_the_share_of_each_interval(self):
        """√(2σ̂²x/N) + 3x/N of Audibert, Munos & Szepesvári at x = 2l is the radius."""
        variance, n, term = 0.2, 50.0, 3.0
        assert ucrl2b_radius(variance, n, term, 1.0) == pytest.approx(
            sqrt(2 * variance * 2 * term / n) + 3 * 2 * term / n, rel=1e-15
        )
