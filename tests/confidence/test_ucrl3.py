"""UCRL3's sets: every end against the definition in decimals, rewards by hand, and coverage by simulation."""

from __future__ import annotations

from decimal import Decimal, localcontext
from math import log, sqrt

import numpy as np
import pytest
from estimate_samples import dense, problem
from hypothesis import given, settings
from hypothesis import strategies as st
from test_ucrl3_interval import DIGITS, Definition

from coverage_samples import N_RUNS, is_refuted, leaves
from spanrl import ProblemInfo
from spanrl.confidence.ucrl3 import UCRL3Box, ucrl3_radius

FEWER = settings(deadline=None, derandomize=True, max_examples=12)
ENDS = Decimal("1e-12")
SEVEN_THIRDS = Decimal(7) / 3


def reward_radius(set_, variance):
    """Return the smaller of the two radii, from the numbers of a definition."""
    first = set_.beta / 2
    if set_.ell is None:
        return first
    a = set_.ell / set_.n
    return min(first, (2 * variance * a).sqrt() + SEVEN_THIRDS * a)


@pytest.mark.parametrize("function", [ucrl3_radius, ucrl3_radius.py_func], ids=["compiled", "interpreted"])
def test_reward_radius_by_hand(function):
    level = log(100)
    assert function(0.25, 8.0, level) == pytest.approx(sqrt(2 * 9 / 8 * log(300) / 8) / 2, rel=1e-14)
    assert function(0.0, 1.0, level) == pytest.approx(sqrt(log(sqrt(2) * 100)), rel=1e-14)
    a = 1.12 * log(log(1e6) * log(1.12e6) * 100 / log(1.12) ** 2) / 1e6
    assert function(0.0, 1e6, level) == pytest.approx(7 / 3 * a, rel=1e-14)
    assert function(0.01, 1e6, level) == pytest.approx(sqrt(0.02 * a) + 7 / 3 * a, rel=1e-14)


def test_the_level_is_shared_by_3_and_3S():
    (level,) = UCRL3Box(0.3).settings(ProblemInfo(7, 3))
    assert level == pytest.approx(log(24 * 21 / 0.3), rel=1e-15)


@FEWER
@given(st.integers(0, 10**6), st.sampled_from([UCRL3Box(), UCRL3Box(0.9), UCRL3Box(1e-6)]))
def test_intervals(seed, estimate):
    info, counts = problem(seed)
    bounded = estimate.bounded(counts, 7, info)
    low, high = dense(bounded)
    times = np.zeros((info.n_pairs, info.n_states), dtype=int)
    times[np.repeat(np.arange(info.n_pairs), np.diff(counts.succ_ptr)), counts.succ] = counts.times
    (level,) = estimate.settings(info)
    r_min, r_max = Decimal(info.r_min), Decimal(info.r_max)
    with localcontext(DIGITS):
        for i in range(info.n_pairs):
            n = int(counts.n[i])
            if n == 0:
                assert (bounded.r_low[i], bounded.r_high[i]) == (info.r_min, info.r_max)
                assert (low[i] == 0).all()
                assert (high[i] == 1).all()
                continue
            size, mean = r_max - r_min, Decimal(counts.r_mean[i])
            variance = Decimal(counts.r_sq[i]) / n / size**2
            beta = size * reward_radius(Definition(0, n, level), variance)
            assert bounded.r_low[i] == pytest.approx(float(max(r_min, mean - beta)), abs=1e-12)
            assert bounded.r_high[i] == pytest.approx(float(min(r_max, mean + beta)), abs=1e-12)
            for s in range(info.n_states):
                set_ = Definition(int(times[i, s]), n, level)
                lower, upper = Decimal(low[i, s]), Decimal(high[i, s])
                assert set_.holds(min(lower + ENDS, set_.p))
                assert lower == 0 or not set_.holds(lower - ENDS)
                assert set_.holds(max(upper - ENDS, set_.p))
                assert upper == 1 or not set_.holds(upper + ENDS)


class TestCoverage:
    """Each share of δ has the level d = δ/((3+3S)S). A reward is missed with probability ≤ 1.33 d, a coin, whose two intervals mirror each
    other, with probability ≤ 2.22 d: less than δ, and near enough to what happens that a fault shows."""

    DELTA = 0.9
    CASES = ((1, 200, 1.33 * 0.9 / 6), (2, 120, 1 - (1 - 1.33 * 0.05) ** 2 * (1 - 2.22 * 0.05) ** 2))

    @pytest.mark.parametrize(("S", "n_visits", "most"), CASES)
    def test_the_model_is_outside_as_rarely_as_promised(self, S, n_visits, most):
        failures = leaves(UCRL3Box(self.DELTA), S, N_RUNS, n_visits)
        assert not is_refuted(failures, N_RUNS, most)
        assert is_refuted(failures, N_RUNS, most / 10), "and not much more rarely: the sets are not too wide"

    @pytest.mark.parametrize(("S", "n_visits", "most"), CASES)
    @pytest.mark.parametrize("fault", ["level times 8", "two thirds of the width"])
    def test_a_fault_shows(self, S, n_visits, most, fault):
        estimate = UCRL3Box(self.DELTA)
        wrong = estimate.settings(ProblemInfo(S, 1)) - np.log(8)
        options = {"settings": lambda n: wrong} if fault == "level times 8" else {"narrower": 1.5}
        assert is_refuted(leaves(estimate, S, N_RUNS, n_visits, **options), N_RUNS, most)
