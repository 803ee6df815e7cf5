"""Charts that must not mislead: their axes, curves that hide each other, and slopes of what does not grow."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from by_hand import ENVS, HORIZON, experiment, root
from reading import read

from spanrl.errors import OptionError
from spanrl.experiments.coincidence import WITHIN, coinciding
from spanrl.experiments.spec import Cell
from spanrl.report.chapters import Curve, chapters
from spanrl.report.page import page
from spanrl.report.plots import plot_curves
from spanrl.report.sections import chapter_section
from spanrl.report.text import display_names
from spanrl.report.write import write_report


def test_a_steady_loss_looks_steady(tmp_path: Path) -> None:
    """Linear regret is a straight line on the axes that a chart opens with, in print and on the screen."""
    results = experiment(tmp_path / "x", envs=ENVS[:1], seeds=2, regret=lambda cell, place, t: 0.1 * (1 + place) * t)
    (chapter,), names = chapters(results), display_names(results.agents)
    for value in ("regret", "pseudo_regret"):
        (ax,) = plot_curves(chapter, value, names, HORIZON).axes
        assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")
        for line in ax.lines:
            seen = ax.transData.transform(line.get_xydata())
            assert np.abs(seen[:, 1] - np.polyval(np.polyfit(*seen.T, 1), seen[:, 0])).max() < 1e-6
    assert [plot_curves(chapter, value, names, HORIZON).axes[0].get_xscale() for value in ("span", "n_episodes")] == [
        "log"
    ] * 2
    reader = read(results)
    scales = {one["key"]: (one["x"], one["y"]) for one in reader.data["chapters"][0]["quantities"]}
    assert scales["regret"] == scales["pseudo_regret"] == ("linear", "linear")
    pressed = {
        a["data-set"]: a["data-value"] for tag, a in reader.tags if tag == "button" and a.get("aria-pressed") == "true"
    }
    assert pressed == {"quantity": "regret", "x": "linear", "y": "linear"}


def test_a_logarithmic_report(tmp_path: Path) -> None:
    """Both axes of what is summed over time are logarithmic at first; the time of spans is so either way."""
    results = experiment(tmp_path / "x", envs=ENVS[:1], seeds=2)
    (chapter,), names = chapters(results, "log"), display_names(results.agents)
    scales = {
        value: (ax.get_xscale(), ax.get_yscale())
        for value in chapter.curves
        for ax in plot_curves(chapter, value, names, HORIZON).axes
    }
    assert scales == {
        "regret": ("log", "log"), "pseudo_regret": ("log", "log"), "span": ("log", "linear"), "n_episodes": ("log", "linear"),
    }  # fmt: skip
    assert 'data-set="y" data-value="log" aria-pressed="true"' in page(results, [chapter])
    with pytest.raises(OptionError, match="report: scale must be linear or log; got 'cubic'"):
        write_report(results, scale="cubic")


def test_the_constants_of_an_environment(tmp_path: Path) -> None:
    results = experiment(tmp_path / "x", envs=ENVS[:1], seeds=2)
    (chapter,), names = chapters(results), display_names(results.agents)
    assert chapter_section(chapter, names, HORIZON).constants == "S = 3, A = 2, g* = 0.75", (
        "older cells do not say more"
    )
    known = replace(chapter, problem=chapter.problem | {"span": 1.0, "diameter": math.inf, "exact": False})
    constants = chapter_section(known, names, HORIZON).constants
    assert constants == (
        "S = 3, A = 2, g* = 0.75, sp(h*) = 1, D = ∞. Episodes are cut, which g* ignores: regrets are not exact."
    )
    assert constants in page(results, [known])


def curve(*mean: float) -> Curve:
    values = np.array(mean)
    return Curve(1, np.arange(values.size), values, values, values)


def test_curves_that_coincide_are_found() -> None:
    line = np.linspace(0.0, 100.0, 5)
    near, far = 0.9 * 100 * WITHIN, 1.1 * 100 * WITHIN
    curves = {
        "a": curve(*line),
        "b": curve(*(line - near)),
        "c": curve(*(line - far)),
        "d": curve(*(line - far - near)),
    }
    assert coinciding(curves) == [["a", "b"], ["c", "d"]]
    assert coinciding({"a": curve(*line), "b": curve(*line[:-1], 90.0)}) == [], "they part at the end"
    assert coinciding({"a": curve(*line), "b": replace(curve(*line), t=np.arange(5) + 1)}) == [], "at other times"
    unknown = curve(np.nan, 1.0)
    assert coinciding({"a": unknown, "b": unknown, "c": curve(1.0, 1.0)}) == [["a", "b"]]
    assert coinciding({"a": curve(7.0, 7.0), "b": curve(7.0, 7.0)}) == [["a", "b"]], "a range of its own is not needed"
    assert coinciding({}) == []
    small = {"a": curve(1e-3, 1e6), "b": curve(2e-3, 1e6), "c": curve(-1.0, 1e6), "d": curve(0.0, 1e6)}
    assert coinciding(small) == [["a", "b", "c", "d"]]
    assert coinciding(small, "log") == [["c", "d"]], (
        "a logarithmic axis shows what a linear one hides, and leaves out what is not positive"
    )


def test_a_figure_names_the_curves_that_coincide(tmp_path: Path) -> None:
    results = experiment(tmp_path / "x", envs=ENVS[:1], regret=lambda cell, place, t: root(cell, min(place, 1), t))
    (chapter,), names = chapters(results), display_names(results.agents)
    (ax,) = plot_curves(chapter, "regret", names, HORIZON).axes
    assert ax.get_title().splitlines()[1:] == ["one line: ucrl = UCRL2"]
    (ax,) = plot_curves(chapter, "span", names, HORIZON).axes
    assert ax.get_title().splitlines()[1:] == ["one line: all agents"]


def test_a_regret_that_is_not_positive_has_no_slope_and_the_reason_is_told(tmp_path: Path) -> None:
    def regret(cell: Cell, place: int, t: np.ndarray) -> np.ndarray:
        negative = (t < 0, t > 9000, (t > 500) & (t < 1000))[place]
        return root(cell, place, t) * np.where(negative, -1.0, 1.0)

    results = experiment(tmp_path / "x", envs=ENVS[:1], regret=regret)
    assert results.slope()["slope"].is_nan().to_list() == [False, True, True]
    assert results.slope(start=1000)["slope"].is_nan().to_list() == [False, True, False]
    reader = read(results)
    assert [reader.row(name)[7] for name in ("SCAL", "ucrl", "UCRL2")] == ["0.5 [0.5, 0.5]", "–", "–"]
    assert "None is given for ucrl, UCRL2: the mean regret is not positive all that time" in reader.text
    assert "None is given" not in read(experiment(tmp_path / "y", seeds=1)).text
