"""The regret bound: its formula term by term, in other words; its growth; what it refuses."""

from __future__ import annotations

from fractions import Fraction
from math import inf, log, nan, sqrt

import pytest

from spanrl import regret_bound

SIZES = {"n_states": 3, "n_actions": 2, "max_support": 2, "span_bound": 2.0}


def by_terms(T, S, A, gamma, c, delta, r_max):
    """The long formula that ends the paper's appendix, each term as it stands there."""
    b = log(2 * S * A * T / delta)
    squares = [28, 14]
    first = c * sum(sqrt(n * (gamma - 1) * S * A * T * b) for n in squares)
    second = float(Fraction(98, 3)) * c * S**2 * A * b * (3 + log(T))
    third = 2 * r_max * sum(sqrt(n * S * A * T * b) for n in squares)
    fourth = float(Fraction(196, 3)) * r_max * S * A * b * (3 + log(T))
    martingale = 3 * (c + r_max) * sqrt(5 / 2 * T * log(11 * T / delta))
    episodes = c * S * A * log(8 * T / (S * A)) / log(2)
    planning = 3 * (1 + sqrt(2)) * r_max * sqrt(S * A * T)
    return first + second + third + fourth + martingale + episodes + planning + r_max * sqrt(T)


@pytest.mark.parametrize("T", [6, 10, 10**3, 10**6, 25 * 10**6, 10**12])
@pytest.mark.parametrize(
    ("S", "A", "gamma", "c", "delta", "r_max"),
    [(3, 2, 2, 2.0, 0.05, 1.0), (1, 1, 1, 0.0, 0.5, 1.0), (2, 3, 2, 10.0, 0.01, 4.0)],
)
def test_the_formula(T, S, A, gamma, c, delta, r_max):
    found = regret_bound(T, n_states=S, n_actions=A, max_support=gamma, span_bound=c, delta=delta, r_max=r_max)
    assert found == pytest.approx(by_terms(T, S, A, gamma, c, delta, r_max), rel=1e-13)


@pytest.mark.parametrize("T", [1, 5])
def test_before_every_pair_could_be_seen(T):
    assert regret_bound(T, **SIZES) == sqrt(6 * T)
    assert regret_bound(T, **SIZES, r_max=3.0) == 3 * sqrt(6 * T)


def test_it_grows_with_everything_but_the_level():
    base = {**SIZES, "delta": 0.05, "r_max": 1.0}
    least = regret_bound(10**6, **base)
    for name, value in {
        "n_states": 4,
        "n_actions": 3,
        "max_support": 3,
        "span_bound": 2.5,
        "delta": 0.01,
        "r_max": 2.0,
    }.items():
        assert regret_bound(10**6, **base | {name: value}) > least, name
    assert regret_bound(2 * 10**6, **base) > least


def test_it_grows_like_the_square_root():
    ratio = regret_bound(4 * 10**14, **SIZES) / regret_bound(10**14, **SIZES)
    assert 2.0 < ratio < 2.05


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"horizon": 0}, "regret_bound: horizon must be a whole number ≥ 1; got 0"),
        ({"horizon": nan}, "regret_bound: horizon must be a whole number ≥ 1; got nan"),
        ({"n_states": 0}, "regret_bound: n_states must be a whole number ≥ 1; got 0"),
        ({"n_actions": -2}, "regret_bound: n_actions must be a whole number ≥ 1; got -2"),
        ({"max_support": 0}, "regret_bound: max_support must be a whole number ≥ 1; got 0"),
        ({"span_bound": -0.5}, "regret_bound: the span bound must be a number ≥ 0 .*; got -0.5"),
        ({"span_bound": nan}, "regret_bound: the span bound must be a number ≥ 0 .*; got nan"),
        ({"delta": 0}, r"regret_bound: delta must lie in \(0, 1\) and r_max be positive; got 0 and 1.0"),
        ({"delta": 1.0}, r"regret_bound: delta must lie in \(0, 1\)"),
        ({"r_max": 0.0}, r"regret_bound: .*r_max be positive; got 0.05 and 0.0"),
        ({"r_max": nan}, r"regret_bound: .*r_max be positive; got 0.05 and nan"),
    ],
)
def test_wrong_values(change, words):
    given = {"horizon": 10**6, **SIZES} | change
    with pytest.raises(ValueError, match=words):
        regret_bound(given.pop("horizon"), **given)


def test_without_a_bound_on_the_span_nothing_is_promised():
    assert regret_bound(10**6, **SIZES | {"span_bound": inf}) == inf


def test_without_a_bound_on_the_span_of_a_deterministic_model():
    assert regret_bound(10**6, **SIZES | {"span_bound": inf, "max_support": 1}) == inf
