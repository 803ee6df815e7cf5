"""UCRL2's sets: radii on numbers worked out by hand, and the balls of every pair in plain Python."""

from __future__ import annotations

from math import isclose, log, sqrt

import numpy as np
import pytest
from estimate_samples import frequencies, problem
from hypothesis import given, settings
from hypothesis import strategies as st

from spanrl import ProblemInfo
from spanrl.confidence.hoeffding import HoeffdingBall, hoeffding, weissman
from spanrl.models.counts import Counts

CASES = settings(deadline=None, derandomize=True, max_examples=100)
FEWER = settings(deadline=None, derandomize=True, max_examples=60)
ROUNDING = 1e-14
ENDS = 1e-12


@pytest.mark.parametrize(
    ("arguments", "radius"),
    [
        ((7, 2.0, 1.0), 1.0),
        ((7, 2.0, 3.0), 3.0),
        ((0, 2.0, 1.0), sqrt(7)),
        ((1, 2.0, 1.0), sqrt(7)),
        ((14, 1.0, 1.0), 0.5),
    ],
)
def test_the_radius_of_a_reward_by_hand(arguments, radius):
    assert hoeffding(*arguments) == pytest.approx(radius, rel=ROUNDING)
    assert hoeffding.py_func(*arguments) == pytest.approx(radius, rel=ROUNDING)


@pytest.mark.parametrize(
    ("arguments", "radius"),
    [((28, 2, 1.0), 1.0), ((14, 1, 4.0), 2.0), ((0, 2, 7.0), 14.0), ((1, 2, 7.0), 14.0), ((14, 9, 1.0), 3.0)],
)
def test_the_radius_of_a_distribution_by_hand(arguments, radius):
    assert weissman(*arguments) == pytest.approx(radius, rel=ROUNDING)
    assert weissman.py_func(*arguments) == pytest.approx(radius, rel=ROUNDING)


@CASES
@given(
    st.integers(0, 10**12), st.floats(0.1, 100.0), st.sampled_from([1.0, 2.5, 40.0]), st.integers(1, 10**6)
)  # fmt: skip
def test_radii_are_their_formulas(n, b, size, n_states):
    assert isclose(hoeffding(n, b, size), size * sqrt(7 * b / (2 * max(1, n))), rel_tol=ROUNDING)
    assert isclose(weissman(n, n_states, b), sqrt(14 * n_states * b / max(1, n)), rel_tol=ROUNDING)


def test_an_estimate_is_frozen_and_compares_by_its_level():
    with pytest.raises(AttributeError, match="cannot assign"):
        HoeffdingBall().delta = 0.1
    assert HoeffdingBall(0.1) == HoeffdingBall(0.1) != HoeffdingBall(0.2)
    assert hash(HoeffdingBall()) == hash(HoeffdingBall(0.05))
    assert HoeffdingBall("rsqrt").settings(ProblemInfo(3, 5)).tolist() == [-1.0]


@FEWER
@given(st.integers(0, 10**6), st.integers(1, 10**8), st.sampled_from([HoeffdingBall(), HoeffdingBall("rsqrt")]))
def test_balls(seed, t, estimate):
    """A in the logarithms is the largest number of actions of a state, not the number of their names."""
    info, counts = problem(seed)
    bounded = estimate.bounded(counts, t, info)
    delta = 1 / sqrt(t) if estimate.delta == "rsqrt" else estimate.delta
    S, A, size = info.n_states, max(np.bincount(info.pair_state)), info.r_max - info.r_min
    p_hat = frequencies(counts, S)
    for i in range(info.n_pairs):
        n = int(counts.n[i])
        if n == 0:
            assert (bounded.r_low[i], bounded.r_high[i], bounded.radius[i]) == (info.r_min, info.r_max, 2.0)
            continue
        beta = size * sqrt(7 * log(2 * S * A * t / delta) / (2 * n))
        assert bounded.r_low[i] == pytest.approx(max(info.r_min, counts.r_mean[i] - beta), abs=ENDS)
        assert bounded.r_high[i] == pytest.approx(min(info.r_max, counts.r_mean[i] + beta), abs=ENDS)
        assert bounded.radius[i] == pytest.approx(min(2.0, sqrt(14 * S * log(2 * A * t / delta) / n)), abs=ENDS)
        part = slice(bounded.succ_ptr[i], bounded.succ_ptr[i + 1])
        np.testing.assert_allclose(bounded.p_low[part], p_hat[i, bounded.succ[part]], rtol=0, atol=ENDS)


def test_a_ball_with_unseen_pairs_has_a_centre_for_each():
    """Also at both ends of the table and next to each other."""
    info = ProblemInfo(3, 2)
    counts = Counts(
        np.array([0, 4, 0, 0, 2, 0]), np.zeros(6), np.zeros(6), np.array([0, 0, 2, 2, 2, 3, 3]),
        np.array([0, 2, 1], dtype=np.uint32), np.array([1, 3, 2]),
    )  # fmt: skip
    bounded = HoeffdingBall().bounded(counts, 10, info)
    assert bounded.is_ball
    assert bounded.succ_ptr.tolist() == [0, 1, 3, 4, 5, 6, 7]
    assert bounded.succ.tolist() == [0, 0, 2, 0, 0, 1, 0]
    assert bounded.p_low.tolist() == [1.0, 0.25, 0.75, 1.0, 1.0, 1.0, 1.0]
    assert bounded.radius[[0, 2, 3, 5]].tolist() == [2.0] * 4
