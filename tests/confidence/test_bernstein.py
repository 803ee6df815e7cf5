"""The paper's sets: radii on numbers worked out by hand, and the intervals of every pair in plain Python."""

from __future__ import annotations

from math import isclose, log, sqrt

import numpy as np
import pytest
from estimate_samples import dense, frequencies, problem
from hypothesis import given, settings
from hypothesis import strategies as st

from spanrl import ProblemInfo
from spanrl.confidence.bernstein import BernsteinBox, bernstein, bernstein_factors, log_term

CASES = settings(deadline=None, derandomize=True, max_examples=100)
FEWER = settings(deadline=None, derandomize=True, max_examples=60)
ROUNDING = 1e-14
ENDS = 1e-12

visits = st.integers(0, 10**12)
logs = st.floats(0.1, 100.0)
scales = st.sampled_from([0.005, 0.05, 1.0])
sizes = st.sampled_from([1.0, 2.5, 40.0])
seeds = st.integers(0, 10**6)
times = st.integers(1, 10**8)
estimates = st.sampled_from([BernsteinBox(), BernsteinBox(0.01, 0.05, 0.5), BernsteinBox("rsqrt")])


def radius_of(variance, n, b, alpha, size, function=bernstein):
    """Return the radius as ``fill`` computes it, from the statistics of the paper's formula."""
    return function(sqrt(variance / max(1, n)), 1 / max(1, n - 1), *bernstein_factors(b, alpha), size)


class TestRadius:
    @pytest.mark.parametrize(
        ("arguments", "radius"),
        [
            # (σ̂², N, b, α, size): √(14 α σ̂² b/N⁺) + (49/3) α·size·b/max(1, N−1)
            ((0.25, 8, 1.0, 1.0, 1.0), 0.6614378277661477 + 7 / 3),  # √0.4375: N in the root, N − 1 outside it
            ((0.25, 8, 1.0, 4.0, 1.0), 2 * 0.6614378277661477 + 28 / 3),  # α stands inside the root
            ((0.25, 8, 4.0, 1.0, 1.0), 2 * 0.6614378277661477 + 28 / 3),
            ((0.25, 8, 1.0, 1.0, 3.0), 0.6614378277661477 + 7.0),  # the range multiplies the second term alone
            ((0.0, 50, 3.0, 1.0, 1.0), 1.0),
            ((0.0, 0, 3.0, 1.0, 1.0), 49.0),
            ((0.0, 1, 3.0, 1.0, 1.0), 49.0),
            ((0.0, 2, 3.0, 1.0, 1.0), 49.0),
            ((0.0, 3, 3.0, 1.0, 1.0), 24.5),
            ((0.5, 7, 1.0, 1.0, 1.0), 1.0 + 49 / 18),
        ],
    )
    def test_by_hand(self, arguments, radius):
        assert radius_of(*arguments) == pytest.approx(radius, rel=ROUNDING)
        assert radius_of(*arguments, bernstein.py_func) == pytest.approx(radius, rel=ROUNDING)

    @CASES
    @given(st.floats(0.0, 100.0), visits, logs, scales, sizes)
    def test_is_the_formula(self, variance, n, b, alpha, size):
        wanted = sqrt(14 * alpha * variance * b / max(1, n)) + 49 / 3 * alpha * size * b / max(1, n - 1)
        assert isclose(radius_of(variance, n, b, alpha, size), wanted, rel_tol=ROUNDING)

    @CASES
    @given(st.floats(0.0, 0.25), st.integers(1, 10**9), logs, scales)
    def test_shrinks_with_visits_and_grows_with_all_else(self, variance, n, b, alpha):
        radius = radius_of(variance, n, b, alpha, 1.0)
        assert radius_of(variance, n + 1, b, alpha, 1.0) <= radius
        assert radius_of(variance + 0.1, n, b, alpha, 1.0) >= radius
        assert radius_of(variance, n, b + 1, alpha, 1.0) >= radius
        assert radius_of(variance, n, b, 2 * alpha, 1.0) >= radius
        assert radius_of(variance, n, b, alpha, 2.0) >= radius

    def test_at_the_printed_level(self):
        """b = ln(2 S A t/δ) of the paper's three-state problem at t = 1000, δ = 0.05: S = 3, A = 2."""
        b = log(2 * 3 * 2 * 1000 / 0.05)
        assert b == pytest.approx(12.388394202324129, rel=1e-15)
        assert log_term(3, 2, 1000, 0.05) == pytest.approx(b, rel=1e-15)
        wanted = sqrt(14 * 2 / 9 * b / 301) + 49 * b / 900
        assert radius_of(2 / 9, 301, b, 1.0, 1.0) == pytest.approx(wanted, rel=ROUNDING)


class TestLevel:
    def test_a_number_is_itself(self):
        assert BernsteinBox(0.05).settings(ProblemInfo(1, 1))[0] == 0.05
        assert log_term(1, 1, 10**6, 0.05) == pytest.approx(log(2 * 10**6 / 0.05), rel=1e-15)

    def test_rsqrt(self):
        level = BernsteinBox("rsqrt").settings(ProblemInfo(1, 1))[0]
        for t, delta in ((400, 1 / 20), (1, 1.0)):
            assert log_term(1, 1, t, level) == pytest.approx(log(2 * t / delta), rel=1e-15)

    @pytest.mark.parametrize("level", [0.05, 0.01, -1.0])
    def test_compiled_and_interpreted_are_the_same(self, level):
        for t in (1, 2, 400, 12_345, 10**12):
            assert log_term(7, 3, t, level) == log_term.py_func(7, 3, t, level)

    def test_the_settings_are_level_and_scales(self):
        info = ProblemInfo(3, 5, r_min=-1, r_max=4)
        assert BernsteinBox(0.1, p_scale=0.5, r_scale=0.25).settings(info).tolist() == [0.1, 0.5, 0.25]
        assert BernsteinBox("rsqrt").settings(info).tolist() == [-1.0, 1.0, 1.0]

    def test_an_estimate_is_frozen_and_compares_by_its_numbers(self):
        with pytest.raises(AttributeError, match="cannot assign"):
            BernsteinBox().delta = 0.1
        assert BernsteinBox(0.1) == BernsteinBox(0.1) != BernsteinBox(0.2)
        assert hash(BernsteinBox()) == hash(BernsteinBox(0.05))


class TestSets:
    @FEWER
    @given(seeds, times, estimates)
    def test_intervals(self, seed, t, estimate):
        """A in the logarithm is the largest number of actions of a state, not the number of their names."""
        info, counts = problem(seed)
        bounded = estimate.bounded(counts, t, info)
        delta = 1 / sqrt(t) if estimate.delta == "rsqrt" else estimate.delta
        A = max(np.bincount(info.pair_state))
        b = log(2 * info.n_states * A * t / delta)
        p_hat, (low, high) = frequencies(counts, info.n_states), dense(bounded)
        for i in range(info.n_pairs):
            n = int(counts.n[i])
            if n == 0:
                assert (bounded.r_low[i], bounded.r_high[i]) == (info.r_min, info.r_max)
                assert (low[i] == 0).all()
                assert (high[i] == 1).all()
                continue
            variance = counts.r_sq[i] / (n - 1) if n > 1 else 0.0
            size = info.r_max - info.r_min
            beta = sqrt(14 * estimate.r_scale * variance * b / n) + 49 / 3 * estimate.r_scale * size * b / max(1, n - 1)
            assert bounded.r_low[i] == pytest.approx(max(info.r_min, counts.r_mean[i] - beta), abs=ENDS)
            assert bounded.r_high[i] == pytest.approx(min(info.r_max, counts.r_mean[i] + beta), abs=ENDS)
            for s, p in enumerate(p_hat[i]):
                beta = sqrt(14 * estimate.p_scale * p * (1 - p) * b / n) + 49 / 3 * estimate.p_scale * b / max(1, n - 1)
                assert low[i, s] == pytest.approx(max(0.0, p - beta), abs=ENDS)
                assert high[i, s] == pytest.approx(min(1.0, p + beta), abs=ENDS)

    @FEWER
    @given(seeds, times, estimates, st.integers(0, 4))
    def test_radii_of_one_successor(self, seed, t, estimate, state):
        """β_p(s, a, s̄), never seen from the pair or seen; by the formula, and to the last bit that of the set."""
        info, counts = problem(seed)
        state %= info.n_states
        radii = estimate.radii_at(counts, t, info, state)
        delta = 1 / sqrt(t) if estimate.delta == "rsqrt" else estimate.delta
        b = log(2 * info.n_states * info.max_actions * t / delta)
        p_hat, (low, high) = frequencies(counts, info.n_states), dense(estimate.bounded(counts, t, info))
        for i in range(info.n_pairs):
            n, p = int(counts.n[i]), p_hat[i, state]
            variance = p * (1 - p) / max(1, n)
            wanted = sqrt(14 * estimate.p_scale * variance * b) + 49 / 3 * estimate.p_scale * b / max(1, n - 1)
            assert radii[i] == pytest.approx(wanted, rel=1e-12)
            if low[i, state] > 0:
                assert low[i, state] == p - radii[i]
            if n and p == 0.0 and high[i, state] < 1:
                assert high[i, state] == radii[i]
