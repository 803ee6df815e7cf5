"""The example behind the README's first figure: its bands are the intervals of everything else."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
from scipy import stats

import spanrl

REGRET = Path(__file__).parents[1] / "examples" / "regret.py"


def test_bands_are_t_intervals() -> None:
    horizon, seeds = 1000, 4
    figure = runpy.run_path(str(REGRET))["draw"](horizon, seeds)
    left = figure.axes[0]
    runs = [spanrl.learn("three-state", "ucrl", horizon=horizon, seed=seed) for seed in range(seeds)]
    values = np.array([run.pseudo_regret for run in runs])
    half = stats.t.ppf(0.975, seeds - 1) * stats.sem(values)
    t, drawn = left.lines[0].get_data()
    np.testing.assert_array_equal(t, runs[0].t)
    np.testing.assert_allclose(drawn, values.mean(axis=0))
    corners = left.collections[0].get_paths()[0].vertices
    at_the_end = corners[corners[:, 0] == horizon][:, 1]
    assert half[-1] > 1
    np.testing.assert_allclose(
        [at_the_end.min(), at_the_end.max()], values.mean(axis=0)[-1] + half[-1] * np.array([-1, 1])
    )
