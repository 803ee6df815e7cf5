"""When a run is measured."""

from __future__ import annotations

import numpy as np
import pytest

from spanrl.learning.times import measurement_times


@pytest.mark.parametrize("points", [1, 3, 10, 100])
@pytest.mark.parametrize("horizon", [1, 2, 9, 10, 11, 999, 1000, 123_456, 10**7])
def test_the_integers_nearest_the_powers_and_the_horizon(horizon, points):
    times = measurement_times(horizon, points).tolist()
    wanted, i = set(), 0
    while 10 ** (i / points) < horizon + 1:
        wanted.add(round(10 ** (i / points)))
        i += 1
    assert times == sorted({t for t in wanted if t <= horizon} | {horizon})
    assert times[0] == 1
    assert times[-1] == horizon


@pytest.mark.parametrize("points", [1, 7, 100])
def test_a_longer_horizon_only_adds(points):
    long = set(measurement_times(10**6, points).tolist())
    for horizon in (1, 10, 37, 1000, 99_999):
        short = measurement_times(horizon, points).tolist()
        assert set(short) - {horizon} <= long
        assert {t for t in long if t <= horizon} <= set(short)


def test_as_many_a_decade_as_asked_for():
    times = measurement_times(10**8, 100)
    assert np.sum((times > 10**6) & (times <= 10**7)) == 100
    assert times.dtype == np.int64


def test_powers_of_ten_are_exact():
    assert {10**k for k in range(13)} <= set(measurement_times(10**12, 100).tolist())


@pytest.mark.parametrize("horizon", [10**18, 2**62 - 1])
def test_the_longest_horizons(horizon):
    times = measurement_times(horizon, 1)
    assert times[0] == 1
    assert times[-1] == horizon
    assert (np.diff(times) > 0).all()
