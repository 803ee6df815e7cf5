"""The radii against their printed formulas, on numbers worked out by hand and in plain Python."""

from __future__ import annotations

from math import isclose, log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanrl.confidence.radii import bernstein, hoeffding, weissman

CASES = settings(deadline=None, derandomize=True, max_examples=100)
ROUNDING = 1e-14

visits = st.integers(0, 10**12)
logs = st.floats(0.1, 100.0)
scales = st.sampled_from([0.005, 0.05, 1.0])
sizes = st.sampled_from([1.0, 2.5, 40.0])


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
def test_bernstein_by_hand(arguments, radius):
    assert bernstein(*arguments) == pytest.approx(radius, rel=ROUNDING)
    assert bernstein.py_func(*arguments) == pytest.approx(radius, rel=ROUNDING)


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
def test_hoeffding_by_hand(arguments, radius):
    assert hoeffding(*arguments) == pytest.approx(radius, rel=ROUNDING)
    assert hoeffding.py_func(*arguments) == pytest.approx(radius, rel=ROUNDING)


@pytest.mark.parametrize(
    ("arguments", "radius"),
    [((28, 2, 1.0), 1.0), ((14, 1, 4.0), 2.0), ((0, 2, 7.0), 14.0), ((1, 2, 7.0), 14.0), ((14, 9, 1.0), 3.0)],
)
def test_weissman_by_hand(arguments, radius):
    assert weissman(*arguments) == pytest.approx(radius, rel=ROUNDING)
    assert weissman.py_func(*arguments) == pytest.approx(radius, rel=ROUNDING)


@CASES
@given(st.floats(0.0, 100.0), visits, logs, scales, sizes)
def test_bernstein_is_the_formula(variance, n, b, alpha, size):
    wanted = sqrt(14 * alpha * variance * b / max(1, n)) + 49 / 3 * alpha * size * b / max(1, n - 1)
    assert isclose(bernstein(variance, n, b, alpha, size), wanted, rel_tol=ROUNDING)


@CASES
@given(st.floats(0.0, 0.25), st.integers(1, 10**9), logs, scales)
def test_bernstein_shrinks_with_visits_and_grows_with_all_else(variance, n, b, alpha):
    radius = bernstein(variance, n, b, alpha, 1.0)
    assert bernstein(variance, n + 1, b, alpha, 1.0) <= radius
    assert bernstein(variance + 0.1, n, b, alpha, 1.0) >= radius
    assert bernstein(variance, n, b + 1, alpha, 1.0) >= radius
    assert bernstein(variance, n, b, 2 * alpha, 1.0) >= radius
    assert bernstein(variance, n, b, alpha, 2.0) >= radius


@CASES
@given(visits, logs, sizes, st.integers(1, 10**6))
def test_hoeffding_and_weissman_are_their_formulas(n, b, size, n_states):
    assert isclose(hoeffding(n, b, size), size * sqrt(7 * b / (2 * max(1, n))), rel_tol=ROUNDING)
    assert isclose(weissman(n, n_states, b), sqrt(14 * n_states * b / max(1, n)), rel_tol=ROUNDING)


def test_bernstein_at_the_printed_level():
    """b = ln(2 S A t/δ) of the paper's three-state problem at t = 1000, δ = 0.05: S = 3, A = 2."""
    b = log(2 * 3 * 2 * 1000 / 0.05)
    assert b == pytest.approx(12.388394202324129, rel=1e-15)
    assert bernstein(2 / 9, 301, b, 1.0, 1.0) == pytest.approx(sqrt(14 * 2 / 9 * b / 301) + 49 * b / 900, rel=ROUNDING)
