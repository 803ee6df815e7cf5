"""Statistics over runs: arrays in, arrays out.

Values are [k, n]: k independent runs, n times; each time is treated by itself. Runs that agree to the bit give an interval of width 0,
one run alone gives a mean without an interval (NaN), and NaN stays NaN, all without a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl import names
from spanrl.errors import OptionError

Floats = NDArray[np.float64]

INTERVALS = ("t", "bootstrap")

_RESAMPLES = 2000
_TIMES_AT_ONCE = 1024  # 2000 resamples of 1024 means are 16 MB
_FEWEST_POINTS = 3


class Estimate(NamedTuple):
    """A mean and the ends of its confidence interval, [n] each."""

    mean: Floats
    low: Floats
    high: Floats


class Difference(NamedTuple):
    """A mean difference, the ends of its confidence interval and the p value of "no difference", [n] each."""

    mean: Floats
    low: Floats
    high: Floats
    p_value: Floats


def mean_interval(values: Floats, *, interval: str = "t", level: float = 0.95) -> Estimate:
    """Return the mean over runs of ``values`` [k, n] with its confidence interval, ``interval`` being "t" or "bootstrap".

    "t" is Student's: x̄ ± t₍ₖ₋₁₎ s/√k. "bootstrap" is the percentile interval of the mean over 2000 resamples of whole runs, the same ones
    at every call.

    >>> [float(x[0].round(4)) for x in mean_interval(np.array([[1.0], [2.0], [3.0]]))]
    [2.0, -0.4841, 4.4841]
    """
    if interval not in INTERVALS:
        raise names.unknown("mean", "interval", str(interval), INTERVALS)
    check_level(level)
    mean, deviation = _moments(values)
    if interval == "bootstrap":
        return Estimate(mean, *_bootstrap(values, level))
    half = _t_quantile(level, len(values)) * deviation / np.sqrt(max(len(values), 1))
    return Estimate(mean, mean - half, mean + half)


def standard_deviation(values: Floats) -> Floats:
    """Return the standard deviation over runs, with k − 1 in the denominator; NaN for one run."""
    return _moments(values)[1]


def quantiles(values: Floats, at: Sequence[float]) -> Floats:
    """Return the quantiles over runs at the levels ``at``, [len(at), n]; linear between the order statistics."""
    check_quantiles(at)
    if not len(values):
        return np.full((len(at), values.shape[1]), np.nan)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.quantile(values, at, axis=0))


def paired_difference(first: Floats, second: Floats, *, level: float = 0.95, noise: float = 0.0) -> Difference:
    """Return the mean of first − second [k, n] over runs of the same seeds, its t interval, and p of the paired t-test (two-sided).

    Where the difference is the same in all runs, p is 1 if it is 0 and 0 if it is not. Differences of at most ``noise`` count as 0.

    >>> paired_difference(np.array([[3.0], [5.0]]), np.array([[1.0], [3.0]])).p_value
    array([0.])
    """
    from scipy.special import stdtr

    with np.errstate(invalid="ignore"):
        values = first - second
    values = np.where(np.abs(values) <= noise, 0.0, values)
    mean, low, high = mean_interval(values, level=level)
    deviation = _moments(values)[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.abs(mean) / (deviation / np.sqrt(max(len(values), 1)))
    freedom = max(len(values) - 1, 1)  # of no consequence for one run, whose deviation is NaN
    p_value = np.where((mean == 0.0) & (deviation == 0.0), 1.0, 2.0 * stdtr(freedom, -statistic))
    return Difference(mean, low, high, p_value)


def log_log_slopes(t: Floats, values: Floats) -> Floats:
    """Return for each run the least-squares slope of log value against log t, [k].

    Values ≤ 0 or unknown are left out of their run's fit; fewer than 3 points give NaN.

    >>> t = np.array([1.0, 10.0, 100.0])
    >>> log_log_slopes(t, np.array([3.0 * t**0.5])).round(6)
    array([0.5])
    """
    used = (values > 0.0) & np.isfinite(values)
    count = np.maximum(used.sum(axis=1, keepdims=True), 1)
    x = np.where(used, np.log(t), 0.0)
    y = np.log(np.where(used, values, 1.0))
    x = np.where(used, x - x.sum(axis=1, keepdims=True) / count, 0.0)
    y = y - y.sum(axis=1, keepdims=True) / count
    enough = used.sum(axis=1) >= _FEWEST_POINTS
    slope = (x * y).sum(axis=1) / np.where(enough, (x * x).sum(axis=1), 1.0)
    return np.where(enough, slope, np.nan)


def check_quantiles(at: Sequence[float]) -> None:
    """Raise an OptionError unless ``at`` holds levels of quantiles."""
    listed = isinstance(at, Sequence | np.ndarray) and len(at) > 0
    if not listed or not all(isinstance(q, Real) and 0.0 <= q <= 1.0 for q in at):
        raise OptionError(f"quantiles: at must hold one number or more of [0, 1]; got {at!r}. (0.5,) is the median.")


def check_level(level: float) -> None:
    """Raise an OptionError unless ``level`` is a confidence level."""
    if isinstance(level, bool) or not isinstance(level, float | int) or not 0.0 < level < 1.0:
        raise OptionError(f"level: a confidence level must lie strictly between 0 and 1; got {level!r}. Usual is 0.95.")


def _moments(values: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation over runs; exactly the common value and 0 where all runs agree."""
    k, n = values.shape
    if k == 0:
        return np.full(n, np.nan), np.full(n, np.nan)
    with np.errstate(invalid="ignore", over="ignore"):
        centred = values - values[0]  # a common value then leaves no rounding behind
        mean = values[0] + centred.mean(axis=0)
        variance = np.square(centred - centred.mean(axis=0)).sum(axis=0) / (k - 1) if k > 1 else np.full(n, np.nan)
    return mean, np.sqrt(variance)


def _t_quantile(level: float, k: int) -> float:
    """Return the t quantile of a two-sided interval over ``k`` runs."""
    from scipy.special import stdtrit

    return float(stdtrit(k - 1, 0.5 + level / 2.0)) if k > 1 else np.nan


def _bootstrap(values: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the ends of the percentile bootstrap interval of the mean."""
    k, n = values.shape
    ends = np.full((2, n), np.nan)
    if k > 1:
        # How often each run is drawn is all that a mean needs to know, and turns resampling into a product of matrices.
        weights = np.random.default_rng(0).multinomial(k, np.full(k, 1.0 / k), size=_RESAMPLES) / k
        at = (0.5 - level / 2.0, 0.5 + level / 2.0)
        with np.errstate(invalid="ignore", over="ignore"):
            for i in range(0, n, _TIMES_AT_ONCE):
                part = values[:, i : i + _TIMES_AT_ONCE]
                ends[:, i : i + _TIMES_AT_ONCE] = part[0] + np.quantile(weights @ (part - part[0]), at, axis=0)
    return ends[0], ends[1]
