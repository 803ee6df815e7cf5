"""Statistics over runs, against scipy.stats, closed forms and numbers made by hand; warnings are errors throughout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from spanrl.errors import OptionError, UnknownNameError
from spanrl.experiments import statistics
from spanrl.experiments.statistics import (
    log_log_slopes,
    mean_interval,
    paired_difference,
    quantiles,
    standard_deviation,
)

ALPHA = 1e-3
"""Level of each statistical test."""


def sample(k: int = 12, n: int = 7, seed: int = 3) -> Any:
    return np.random.default_rng(seed).normal(5.0, 2.0, size=(k, n))


# --- mean and t interval --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 30])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_t_interval_is_that_of_scipy(k: int, level: float) -> None:
    values = sample(k)
    found = mean_interval(values, level=level)
    low, high = stats.t.interval(level, k - 1, loc=values.mean(axis=0), scale=stats.sem(values, axis=0))
    np.testing.assert_allclose(found.mean, values.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(found.low, low, rtol=1e-10)
    np.testing.assert_allclose(found.high, high, rtol=1e-10)


def test_t_interval_by_hand() -> None:
    # mean 2, s = 1, k = 3: 2 ± 4.302653 / √3
    found = mean_interval(np.array([[1.0], [2.0], [3.0]]))
    assert [float(x[0]) for x in found] == pytest.approx([2.0, 2.0 - 2.484138, 2.0 + 2.484138], abs=1e-6)


def test_standard_deviation_has_one_degree_less() -> None:
    np.testing.assert_allclose(standard_deviation(sample()), sample().std(axis=0, ddof=1), rtol=1e-13)


def test_a_large_offset_costs_no_digits() -> None:
    values = np.array([[1.0], [2.0], [3.0]])
    shifted = mean_interval(values + 2.0**40)
    for one, other in zip(shifted, mean_interval(values), strict=True):
        assert one[0] - 2.0**40 == pytest.approx(other[0], abs=1e-3)


# --- bootstrap ------------------------------------------------------------------------------------------------------


def test_bootstrap_is_near_that_of_scipy() -> None:
    values = np.random.default_rng(8).exponential(size=(25, 3))
    found = mean_interval(values, interval="bootstrap", level=0.9)
    for i in range(3):
        other = stats.bootstrap(
            (values[:, i],), np.mean, confidence_level=0.9, n_resamples=50_000, method="percentile", rng=1
        ).confidence_interval
        width = other.high - other.low
        # the 5 % quantile of 2000 resamples has a standard error of about 0.015 widths
        assert found.low[i] == pytest.approx(other.low, abs=0.06 * width)
        assert found.high[i] == pytest.approx(other.high, abs=0.06 * width)
    np.testing.assert_array_equal(found.mean, mean_interval(values).mean)


def test_bootstrap_covers_the_mean() -> None:
    level, k, trials = 0.9, 60, 1500
    values = np.random.default_rng(2).normal(size=(k, trials))
    found = mean_interval(values, interval="bootstrap", level=level)
    # for normal data the percentile interval is x̄ ± z s √((k − 1)/k) / √k, up to the resampling
    z = stats.norm.ppf(0.5 + level / 2) * np.sqrt((k - 1) / k)
    expected = 1 - 2 * stats.t.sf(z, k - 1)
    covered = int(((found.low <= 0.0) & (found.high >= 0.0)).sum())
    assert stats.binomtest(covered, trials, expected).pvalue > ALPHA
    assert stats.binomtest(covered, trials, 0.8).pvalue < ALPHA


def test_bootstrap_is_the_same_every_time_and_in_any_portion(monkeypatch: pytest.MonkeyPatch) -> None:
    once = mean_interval(sample(9, 50), interval="bootstrap")
    again = mean_interval(sample(9, 50), interval="bootstrap")
    monkeypatch.setattr(statistics, "_TIMES_AT_ONCE", 7)
    portions = mean_interval(sample(9, 50), interval="bootstrap")
    for one, two, three in zip(once, again, portions, strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_allclose(one, three, rtol=1e-13)


def test_bootstrap_of_two_runs_by_hand() -> None:
    # means of resamples are 0, 1, 2 with probabilities 1/4, 1/2, 1/4
    found = mean_interval(np.array([[0.0], [2.0]]), interval="bootstrap", level=0.4)
    assert [float(x[0]) for x in found] == [1.0, 1.0, 1.0]
    found = mean_interval(np.array([[0.0], [2.0]]), interval="bootstrap", level=0.9)
    assert [float(x[0]) for x in found] == [1.0, 0.0, 2.0]


# --- quantiles ------------------------------------------------------------------------------------------------------


def test_quantiles_by_hand() -> None:
    found = quantiles(np.array([[4.0, 1.0], [0.0, 1.0], [2.0, 1.0]]), (0.0, 0.25, 0.5, 1.0))
    assert found.tolist() == [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [4.0, 1.0]]


@pytest.mark.parametrize("at", [(), (0.5, 1.5), (-0.1,), (np.nan,)])
def test_quantiles_out_of_range(at: tuple[float, ...]) -> None:
    with pytest.raises(OptionError, match=r"quantiles: at must hold one number or more of \[0, 1\]; got \("):
        quantiles(sample(), at)


# --- paired difference ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 10, 40])
def test_paired_difference_is_that_of_scipy(k: int) -> None:
    first = sample(k)
    second = first + np.random.default_rng(1).normal(0.3, 0.5, size=first.shape)
    found = paired_difference(first, second, level=0.9)
    other = stats.ttest_rel(first, second, axis=0)
    interval = other.confidence_interval(0.9)
    np.testing.assert_allclose(found.mean, (first - second).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.p_value, other.pvalue, rtol=1e-9)
    np.testing.assert_allclose(found.low, interval.low, rtol=1e-9)
    np.testing.assert_allclose(found.high, interval.high, rtol=1e-9)


def test_a_difference_without_variance() -> None:
    first = np.array([[1.0, 3.0, 0.1], [5.0, 7.0, 0.1], [2.0, 4.0, 0.1]])
    second = np.array([[1.0, 1.0, 0.3], [5.0, 5.0, 0.3], [2.0, 2.0, 0.3]])
    found = paired_difference(first, second)
    assert found.p_value.tolist() == [1.0, 0.0, 0.0]
    assert found.mean.tolist() == found.low.tolist() == found.high.tolist() == [0.0, 2.0, 0.1 - 0.3]


# --- slopes ---------------------------------------------------------------------------------------------------------


def test_power_laws_have_their_exponent() -> None:
    t = np.array([10.0, 30.0, 100.0, 1e4, 1e6])
    exponents = np.array([0.5, 1.0, 0.0, -2.0])
    np.testing.assert_allclose(log_log_slopes(t, 7.0 * t ** exponents[:, None]), exponents, atol=1e-13)


def test_slope_is_that_of_polyfit_on_the_positive_points() -> None:
    t = np.geomspace(10, 1e6, 40)
    values = np.sqrt(t) * np.exp(np.random.default_rng(4).normal(size=(5, 40)))
    values[1, 3], values[1, 20], values[2, :30], values[3, 7] = 0.0, -5.0, -1.0, np.nan
    found = log_log_slopes(t, values)
    for i, row in enumerate(values):
        keep = row > 0
        assert found[i] == pytest.approx(np.polyfit(np.log(t[keep]), np.log(row[keep]), 1)[0], rel=1e-10)


def test_too_few_positive_points_have_no_slope() -> None:
    t = np.array([1.0, 10.0, 100.0, 1000.0])
    values = np.array([[1.0, 2.0, 0.0, -1.0], [1.0, 10.0, 100.0, 0.0], [np.nan] * 4, [0.0] * 4])
    found = log_log_slopes(t, values)
    assert np.isnan(found).tolist() == [True, False, True, True]
    assert found[1] == pytest.approx(1.0)


# --- runs that agree, one run, no number ----------------------------------------------------------------------------


@pytest.mark.parametrize("interval", ["t", "bootstrap"])
@pytest.mark.parametrize("k", [2, 3, 7, 10])
def test_equal_runs_give_width_0(interval: str, k: int) -> None:
    values = np.tile([0.1, 1e300, -1 / 3, 0.0], (k, 1))  # sums of 0.1 would not be exact
    found = mean_interval(values, interval=interval)
    for part in found:
        np.testing.assert_array_equal(part, values[0])
    assert standard_deviation(values).tolist() == [0.0] * 4


@pytest.mark.parametrize("interval", ["t", "bootstrap"])
def test_one_run_has_a_mean_and_no_interval(interval: str) -> None:
    found = mean_interval(sample(1), interval=interval)
    np.testing.assert_array_equal(found.mean, sample(1)[0])
    assert np.isnan(found.low).all()
    assert np.isnan(found.high).all()
    assert np.isnan(standard_deviation(sample(1))).all()


def test_one_pair_has_a_difference_and_no_p_value() -> None:
    found = paired_difference(sample(1), sample(1) - 2.0)
    np.testing.assert_allclose(found.mean, 2.0)
    assert np.isnan([found.low, found.high, found.p_value]).all()


@pytest.mark.parametrize("interval", ["t", "bootstrap"])
@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_is_unknown_stays_unknown_and_alone(interval: str, odd: float) -> None:
    values = sample(5, 3)
    values[2, 1] = odd
    found = mean_interval(values, interval=interval)
    clean = mean_interval(sample(5, 3), interval=interval)
    assert not np.isfinite(found.mean[1])
    for part, other in zip(found, clean, strict=True):
        np.testing.assert_allclose(part[[0, 2]], other[[0, 2]], rtol=1e-13)
        assert not np.isfinite(part[1])
    assert np.isnan(paired_difference(values, sample(5, 3)).p_value).tolist()[::2] == [False, False]
    assert np.isnan(paired_difference(values, sample(5, 3)).p_value[1])


def test_nothing_but_nan() -> None:
    values = np.full((4, 2), np.nan)
    for found in (*mean_interval(values), *mean_interval(values, interval="bootstrap"), quantiles(values, [0.5])):
        assert np.isnan(found).all()
    assert np.isnan(np.array(paired_difference(values, values))).all()


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.5, np.nan, "0.95", True])
def test_levels_out_of_range(level: Any) -> None:
    for call in (
        lambda: mean_interval(sample(), level=level),
        lambda: paired_difference(sample(), sample(), level=level),
    ):
        with pytest.raises(OptionError, match=r"must lie strictly between 0 and 1; got .*\. Usual is 0.95"):
            call()


def test_unknown_interval() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown interval 'bootstap'. Did you mean 'bootstrap'\?"):
        mean_interval(sample(), interval="bootstap")
