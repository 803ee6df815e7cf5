"""What rounds of sweeps promise: by hand on a few widths."""

from math import inf, log, nan

import pytest

from spanrl.planning.forecast import Forecast


def test_without_three_rounds_each_is_assumed_to_do_what_is_asked():
    assert Forecast().rounds_left(1e-2, 1e-6, 0.1) == pytest.approx(1 + 4)
    assert Forecast().rounds_left(1e-2, 1e-6, 0.01) == pytest.approx(1 + 2)


def test_the_mean_of_three_rounds_counts():
    forecast = Forecast()
    for width in (1.0, 0.5, 0.25):
        forecast.rounds_left(width, 1e-6, 0.1)
    assert forecast.rounds_left(0.125, 1e-6, 0.1) == pytest.approx(1 + log(0.125e6) / log(2))


def test_the_last_round_counts_where_it_did_better():
    forecast = Forecast()
    for width in (1.0, 0.9, 0.8):
        forecast.rounds_left(width, 1e-6, 0.1)
    assert forecast.rounds_left(0.008, 1e-6, 0.1) == pytest.approx(1 + log(8e3) / log(100))


@pytest.mark.parametrize("widths", [(1.0, 1.0, 1.0, 1.0), (1.0, 2.0, 3.0, 4.0), (1.0, 1.0, 1.0, 0.95)])
def test_without_progress_it_takes_for_ever(widths):
    forecast = Forecast()
    assert [forecast.rounds_left(width, 1e-6, 0.1) for width in widths][-1] == inf


def test_after_a_system_it_begins_anew():
    forecast = Forecast()
    for width in (1.0, 1.0, 1.0, 1.0):
        forecast.rounds_left(width, 1e-6, 0.1)
    forecast.begin_anew()
    assert forecast.rounds_left(1.0, 1e-6, 0.1) == pytest.approx(1 + 6)


@pytest.mark.parametrize("width", [inf, nan, 1e-300, 1e300])
def test_no_width_is_too_odd(width):
    forecast = Forecast()
    for one in (width, 1.0, width, width, 1.0, width):
        assert not forecast.rounds_left(one, 1e-6, 0.1) < 1.0
