"""The examples behind figures of the documentation: what they draw is what it says."""

from __future__ import annotations

import re
import runpy
import sys
from math import log
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import spanrl

ROOT = Path(__file__).parents[1]
REGRET, ENVIRONMENTS, WIDTHS, FAMILY, ANSWERS, ALGORITHMS = (
    ROOT / "examples" / f"{name}.py" for name in ("regret", "environments", "widths", "family", "answers", "algorithms")
)


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


def test_the_pages_of_environments_are_made_from_their_docstrings(environments) -> None:
    """What the docstrings say of constants is compared with ``analyse`` in tests/envs."""
    assert (ROOT / "docs" / "environments.md").read_text(encoding="utf-8") == environments["index"]()
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "environments").iterdir()}
    assert pages == environments["pages"]()
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


def test_widths_are_those_of_the_formulas() -> None:
    """S = 20, A = 4, δ = 0.05, t = 10⁶; a successor never seen, and the panels' order from wide to narrow."""
    example = runpy.run_path(str(WIDTHS))
    visits = np.full(80, 10_000)
    found = {label: example["widths"](bound, 0.0, visits)[0] for label, bound in example["BOUNDS"].items()}
    b, term = log(2 * 80 * 1e6 / 0.05), log(6 * 80 * 1e4 / 0.05)
    ball = (14 * 20 * log(2 * 4 * 1e6 / 0.05) / 1e4) ** 0.5 / 2
    assert list(found.values())[:3] == [pytest.approx(x, rel=1e-9) for x in (ball, 49 / 3 * b / 9999, 6 * term / 1e4)]
    assert found["ucrl3"] == pytest.approx(0.0059, rel=0.01)  # literature: to two digits
    assert found["kt"] == pytest.approx(0.00156, rel=0.01)
    drawn = [line.get_ydata()[-1] for ax in example["draw"]().axes for line in ax.lines]
    for panel in np.reshape(drawn, (3, 6)):
        assert (np.diff(panel[:5]) < 0).all(), "the boxes, and the ball before them"


def test_the_figures_of_the_family_are_of_all_agents(tmp_path) -> None:
    example = runpy.run_path(str(FAMILY))
    assert set(example["AGENTS"]) >= {entry.name for entry in spanrl.list_agents()}
    example["curves"].__globals__.update(AGENTS={"ucrl-kt": "ucrl[bounds=kt]", "focus": "focus[span_bound={c}]"})
    found = example["curves"](1000, 2)
    figure = example["draw"](found, "focus")
    t, drawn = figure.axes[0].lines[-1].get_data()
    runs = [spanrl.learn("three-state", "focus[span_bound=2]", horizon=1000, seed=seed) for seed in range(2)]
    np.testing.assert_array_equal(t, runs[0].t)
    np.testing.assert_allclose(drawn, np.maximum(np.mean([run.pseudo_regret for run in runs], axis=0), 1.0))
    assert {path.stem for path in (ROOT / "docs" / "figures" / "family").iterdir()} == set(
        runpy.run_path(str(FAMILY))["AGENTS"]
    )


def test_the_figures_of_the_answers(tmp_path) -> None:
    """Those of the page are the ones that its code draws."""
    example = runpy.run_path(str(ANSWERS))
    page = (ROOT / "docs" / "answers.md").read_text(encoding="utf-8")
    assert f'"{example["QUEUES"]}"' in page
    example["main"](tmp_path)
    for path in tmp_path.iterdir():
        assert f"(figures/{path.name})" in page
        assert (ROOT / "docs" / "figures" / path.name).read_bytes().startswith(b"\x89PNG")
    cells = example["draw"]()["policy-two-queues.png"].axes[0].get_images()[0].get_array()
    policy = spanrl.solve(spanrl.make(example["QUEUES"]).mdp).policy
    blue, orange = cells[0, 0], cells[5, 5]
    for x, y in ((0, 11), (5, 10), (7, 11), (8, 11), (11, 0)):
        assert (cells[y, x] == (blue if policy.at((x, y)) == "serve x" else orange)).all()


def test_the_pages_of_agents_are_made_from_their_docstrings() -> None:
    """Run examples/algorithms.py after a change of a docstring or of the table of docs/family.md."""
    example, docs = runpy.run_path(str(ALGORITHMS)), ROOT / "docs"
    table = (docs / "family.md").read_text(encoding="utf-8")
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (docs / "algorithms").iterdir()}
    assert sorted(pages) == [entry.name for entry in spanrl.list_agents()]
    for name, page in pages.items():
        assert example["refreshed"](page, name, table) == page, f"{name}: run examples/algorithms.py"
        assert "```text\n" in page, "pseudo-code"
        assert "## When to use it" in page
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page):
            assert (docs / "algorithms" / link).exists(), f"{name}: {link}"


def test_docstrings_become_markdown() -> None:
    as_markdown = runpy.run_path(str(ALGORITHMS))["as_markdown"]
    text = "A *new* thing of h* and\ng*, see ``x`` and :mod:`spanrl.kernels.kl`::\n\n    a ← b\n\n      c\n\n* one\n  line\n* two"
    assert as_markdown(text) == (
        "A *new* thing of h\\* and g\\*, see `x` and [`spanrl.kernels.kl`](../../src/spanrl/kernels/kl.py):\n\n"
        "```text\na ← b\n\n  c\n```\n\n* one line\n* two"
    )
