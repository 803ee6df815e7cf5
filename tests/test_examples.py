"""The examples: the bands of the README's first figure are the intervals of everything else, and the page of environments is up to date."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import spanrl

ROOT = Path(__file__).parents[1]
REGRET, ENVIRONMENTS = (ROOT / "examples" / f"{name}.py" for name in ("regret", "environments"))


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


@pytest.fixture
def environments(monkeypatch):
    """Return the names of examples/environments.py."""
    monkeypatch.setattr(sys, "path", [str(ENVIRONMENTS.parent), *sys.path])
    return runpy.run_path(str(ENVIRONMENTS))


def test_the_page_of_environments_is_made_from_their_docstrings(environments) -> None:
    """What the docstrings say of constants is compared with ``analyse`` in tests/envs."""
    assert (ROOT / "docs" / "environments.md").read_text(encoding="utf-8") == environments["page"]()
    drawn = [name for family in environments["PICTURES"].values() for name in family]
    assert sorted(drawn) == [entry.name for entry in spanrl.list_envs()]
    pictures = {path.stem: path for path in (ROOT / "docs" / "figures" / "envs").iterdir()}
    assert sorted(pictures) == sorted(drawn)
    for path in pictures.values():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 40_000


def test_pictures_of_environments(environments, tmp_path) -> None:
    """One of each kind."""
    names = ("frozen-lake", "inventory", "two-queues")
    environments["main"](tmp_path, *names)
    assert {path.stem for path in (tmp_path / "figures" / "envs").iterdir()} == set(names)
    axes = environments["draw"]("counterexample-nonfeasible").axes[0]
    assert {text.get_text() for text in axes.texts} == {"s0", "s1", "+1"}
