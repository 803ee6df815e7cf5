"""The report on an experiment, from experiments written by hand: files, numbers, words, and what users may call things."""

from __future__ import annotations

import errno
import math
import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from by_hand import AGENTS, ENVS, EVIL, HORIZON, experiment, root, times
from reading import Reader, read
from scipy import stats

from spanrl import axes
from spanrl.errors import MissingExtraError, RunFileError
from spanrl.experiments.results import Results
from spanrl.experiments.spec import Cell, SpecEntry
from spanrl.report import write
from spanrl.report.chapters import chapters, thinned
from spanrl.report.page import page
from spanrl.report.plots import figures, plot_curves, plot_planning_share
from spanrl.report.standings import holm, mark
from spanrl.report.text import display_names, interval, number
from spanrl.report.write import write_report

MANY = tuple(SpecEntry(f"scal[span_bound={i + 1}]", f"agent {i:02d}") for i in range(14))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return experiment(tmp_path_factory.mktemp("report") / "x")


@pytest.fixture(scope="module")
def reader(results: Results) -> Reader:
    return read(results)


def unknown_gain(cell: Cell, place: int, t: np.ndarray) -> np.ndarray:
    return root(cell, place, t) * (np.nan if cell.env.id == "riverswim" else 1.0)


# --- files ----------------------------------------------------------------------------------------------------------


def test_the_files(tmp_path: Path) -> None:
    results = experiment(tmp_path / "x", envs=ENVS[:1], seeds=2)
    target = write_report(results)
    assert target == tmp_path / "x" / "report.html"
    assert target.read_text("utf-8").startswith("<!DOCTYPE html>")
    quantities = ("regret", "pseudo_regret", "span", "n_episodes", "planning_share")
    names = {f"{value}--three-state--delta-0.01.{kind}" for value in quantities for kind in ("png", "pdf")}
    assert {path.name for path in (tmp_path / "x" / "figures").iterdir()} == names
    for path in (tmp_path / "x" / "figures").iterdir():
        assert path.read_bytes().startswith(b"\x89PNG" if path.suffix == ".png" else b"%PDF")
    assert {path.name for path in (tmp_path / "x").iterdir()} == {"spec.toml", "cells", "figures", "report.html"}


def test_a_full_disk_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        path.write_bytes(data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    results = experiment(tmp_path / "x", envs=ENVS[:1], agents=AGENTS[:1], seeds=1)
    (results.dir / "report.html").write_text("old")
    before = sorted(results.dir.iterdir())
    monkeypatch.setattr(write, "write_bytes", full)
    monkeypatch.setattr(write, "chapters", lambda *_: [])
    with pytest.raises(RunFileError, match=r"report: cannot write .*report.html \(No space left on device\)"):
        write_report(results)
    assert (results.dir / "report.html").read_text() == "old"
    assert sorted(results.dir.iterdir()) == before


def test_without_plotly(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(
        MissingExtraError, match=r"plotly is not installed. Run: pip install plotly .*pip install '\.\[report\]'"
    ):
        page(results, [])


def test_without_jinja2() -> None:
    code = "import sys; sys.modules['jinja2'] = None; import spanrl.report.write"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert "MissingExtraError: report: jinja2 is not installed. Run: pip install jinja2 (or, " in done.stderr


def test_nothing_heavy_is_imported_early() -> None:
    code = (
        "import sys, spanrl.report.write;"
        "print([m for m in ('numba', 'scipy', 'polars', 'matplotlib', 'plotly') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


# --- words ----------------------------------------------------------------------------------------------------------


def test_the_caption_says_how_much_there_is(reader: Reader) -> None:
    assert (
        "3 agents on 2 environments, 4 seeds each, for T = 10,000 steps: 24 runs. All 24 are finished." in reader.text
    )
    assert "Regret on three states: mean with 95 % t intervals, 4 runs per agent, T = 10,000." in reader.text
    assert "Final regret on riverswim, at T = 10,000, 4 runs per agent, best first." in reader.text
    assert not [tag for tag, _ in reader.tags if tag == "details"]


def test_failed_and_missing_cells_are_listed(tmp_path: Path) -> None:
    failed, missing = "three-state[delta=0.01]/ucrl/001", "riverswim/ucrl2/003"
    reader = read(experiment(tmp_path / "x", failed=[failed], missing=[missing]))
    assert "22 of 24 runs are finished; 1 failed and 1 missing." in reader.text
    assert f"1 run failed{failed} ValueError: <script>alert(2)</script>" in reader.text
    assert f"1 run missing{missing}" in reader.text
    assert "3 to 4 runs per agent" in reader.text


def test_settings_and_provenance(results: Results, reader: Reader) -> None:
    assert " ".join(results.spec.to_toml().split()) in reader.text
    assert reader.row("python")[1] == ", ".join(results.versions["python"])
    assert reader.row("Computation")[1] == "48.0 s in all finished runs together: 12.0 s planning, 30.0 s simulating"
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", reader.row("Report written")[1])


def test_nothing_finished_yet(tmp_path: Path) -> None:
    ids = [f"{env.id}/{agent.id}/{seed:03d}" for env in ENVS for agent in AGENTS for seed in range(4)]
    results = experiment(tmp_path / "x", missing=ids)
    reader = Reader(write_report(results).read_text("utf-8"))
    assert "0 of 24 runs are finished; 24 missing." in reader.text
    assert reader.data["chapters"] == []
    assert not (results.dir / "figures").exists()


def test_headings_descend_in_steps_and_buttons_say_their_state(reader: Reader) -> None:
    levels = [int(tag[1]) for tag, _ in reader.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    switches = [attributes for tag, attributes in reader.tags if tag == "button" and "data-set" in attributes]
    assert {attributes["aria-pressed"] for attributes in switches} == {"true", "false"}
    tables = sum(tag == "table" for tag, _ in reader.tags)
    assert tables == sum(tag == "caption" for tag, _ in reader.tags) == 4


def test_no_address_outside_the_file(reader: Reader) -> None:
    assert len(reader.scripts) == 3
    loaded = [attributes.get("src") or attributes.get("href") or "#" for _, attributes in reader.tags]
    assert all(address.startswith("#") for address in loaded)
    policy = next(a["content"] for tag, a in reader.tags if tag == "meta" and "http-equiv" in a)
    assert policy is not None
    assert re.fullmatch(
        r"default-src 'none'; script-src 'nonce-\S{20,}'; style-src 'unsafe-inline'; img-src data: blob:", policy
    )


# --- numbers --------------------------------------------------------------------------------------------------------


def test_the_curves_are_means_with_t_intervals(reader: Reader) -> None:
    chapter = reader.data["chapters"][0]
    assert [one["key"] for one in chapter["quantities"]] == ["regret", "pseudo_regret", "span", "n_episodes"]
    assert [one["agent"] for one in chapter["series"]] == [0, 1, 2]
    one = chapter["series"][1]
    t = times(HORIZON, 20)
    assert one["t"] == t.tolist()
    factors = 2.0 + 0.1 * np.arange(4)
    half = stats.t.ppf(0.975, 3) * stats.sem(factors)
    expected = {"mean": factors.mean(), "low": factors.mean() - half, "high": factors.mean() + half}
    for name, factor in expected.items():
        np.testing.assert_allclose(one["values"]["regret"][name], factor * np.sqrt(t), rtol=1e-5)
        np.testing.assert_allclose(one["values"]["pseudo_regret"][name], 0.5 * factor * np.sqrt(t), rtol=1e-5)
    np.testing.assert_allclose(one["values"]["span"]["high"], 2.0 + 1.0 / t, rtol=1e-5)


def test_the_table_of_final_regrets(tmp_path: Path) -> None:
    final = {"scal[span_bound=5]": [100, 120, 90, 130], "ucrl": [150, 160, 155, 172], "ucrl2": [118, 121, 99, 140]}
    reader = read(
        experiment(
            tmp_path / "x", envs=ENVS[:1], regret=lambda cell, _, t: final[cell.agent.id][cell.seed] * np.sqrt(t / 1e4)
        )
    )
    ours = {agent: np.array(values, dtype=float) for agent, values in final.items()}
    best = ours["scal[span_bound=5]"]
    p = {agent: stats.ttest_rel(ours[agent], best).pvalue for agent in ("ucrl", "ucrl2")}
    assert p["ucrl"] < p["ucrl2"]
    low, high = stats.ttest_rel(ours["ucrl"], best).confidence_interval()
    assert reader.row("SCAL")[1:7] == ["4", "110", interval(*_t_interval(best)), "110", "best", ""]
    row = reader.row("ucrl")
    assert row[5] == f"{number(ours['ucrl'].mean() - 110)} {interval(low, high)}"
    assert row[6] == f"{number(round(2 * p['ucrl'], 4))} {mark(2 * p['ucrl'])}".strip()
    assert reader.row("UCRL2")[6] == number(round(max(2 * p["ucrl"], p["ucrl2"]), 4))
    assert row[7] == "0.5 [0.5, 0.5]"
    assert [line[0] for line in reader.rows[1:4]] == ["SCAL", "UCRL2", "ucrl"]


def _t_interval(values: np.ndarray) -> tuple[float, float]:
    half = stats.t.ppf(0.975, values.size - 1) * stats.sem(values)
    return values.mean() - half, values.mean() + half


def test_holm_is_the_step_down_test() -> None:
    p_values = dict(zip("abcdefg", [0.001, 0.2, 0.011, 0.04, 0.011, math.nan, 0.6], strict=True))
    corrected = holm(p_values)
    tested = {key: p for key, p in p_values.items() if not math.isnan(p)}
    for level in np.linspace(0.0005, 0.9995, 500):
        rejected: set[str] = set()
        for i, key in enumerate(sorted(tested, key=lambda key: tested[key])):
            if tested[key] > level / (len(tested) - i):
                break
            rejected.add(key)
        assert {key for key in tested if corrected[key] <= level} == rejected
    assert math.isnan(corrected["f"])
    assert max(corrected[key] for key in tested) <= 1.0


def test_marks() -> None:
    assert [mark(p) for p in (0.05, 0.049, 0.009, 0.0009, math.nan)] == ["", "*", "**", "***", ""]


def test_planning_share(reader: Reader) -> None:
    assert reader.row("UCRL2", 2) == ["UCRL2", "25.0 %", "25.0 %"]


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    reader = read(experiment(tmp_path / "x", seeds=1))
    assert set(reader.data["chapters"][0]["series"][0]["values"]["regret"]) == {"mean"}
    assert reader.row("ucrl")[1:] == ["1", "200", "–", "200", "100 –", "–", "0.5 –"]
    assert "Regret on riverswim: mean, 1 run per agent, T = 10,000." in reader.text


def test_an_unknown_gain_shows_the_reward(tmp_path: Path) -> None:
    results = experiment(tmp_path / "x", regret=unknown_gain)
    known, unknown = chapters(results)
    assert (known.measure, unknown.measure) == ("regret", "reward")
    assert list(unknown.curves) == ["reward", "span", "n_episodes"]
    reader = read(results)
    assert "Final cumulative reward on riverswim" in reader.text
    assert reader.data["chapters"][1]["unknown"] is True
    assert [name for name, _ in figures(unknown, display_names(results.agents), HORIZON)] == [
        "reward--riverswim", "span--riverswim", "n_episodes--riverswim", "planning_share--riverswim",
    ]  # fmt: skip


def test_the_highest_reward_is_the_best(tmp_path: Path) -> None:
    results = experiment(tmp_path / "x", envs=ENVS[1:], regret=unknown_gain)
    rewards = {AGENTS[0].id: 1.0, AGENTS[1].id: 3.0, AGENTS[2].id: 2.0}
    frame = results.final("reward")
    changed = frame.with_columns(frame["agent"].replace_strict(rewards).alias("mean"))
    patched = _Patched(results, changed)
    assert [row.agent for row in chapters(patched)[0].ranking] == ["ucrl", "ucrl2", "scal[span_bound=5]"]  # type: ignore[arg-type]


class _Patched:
    """Results with another final table."""

    def __init__(self, results: Results, final: Any) -> None:
        self._results, self._final = results, final

    def __getattr__(self, name: str) -> Any:
        return getattr(self._results, name)

    def final(self, _: str) -> Any:
        return self._final


@pytest.mark.parametrize("n", [1, 199, 200, 201, 3000])
def test_thinning_keeps_both_ends_and_spreads_evenly(n: int) -> None:
    t = np.unique(np.rint(np.logspace(0, 8, n)).astype(np.int64))
    kept = thinned(t)
    assert len(kept) <= 200
    assert (kept[0], kept[-1]) == (0, len(t) - 1)
    assert (np.diff(kept) > 0).all()
    if len(t) > 200:
        far = t[kept] > 1000
        assert np.diff(np.log(t[kept][far])).max() < 2.5 * np.log(1e8) / 199
        assert np.diff(t[kept]).max() < 2 * max(t[-1] / 79, np.diff(t).max()), "on a linear axis, too"


def test_numbers_that_are_none_are_null(tmp_path: Path) -> None:
    def regret(cell: Cell, place: int, t: np.ndarray) -> np.ndarray:
        return np.where(t == 1, np.inf, root(cell, place, t))

    mean = read(experiment(tmp_path / "x", regret=regret)).data["chapters"][0]["series"][0]["values"]["regret"]["mean"]
    assert mean[0] is None
    assert None not in mean[1:]


# --- names of users -------------------------------------------------------------------------------------------------


def test_names_are_escaped_everywhere(tmp_path: Path) -> None:
    agents = tuple(replace(agent, label=label) for agent, label in zip(AGENTS, EVIL, strict=True))
    envs = (replace(ENVS[0], label="</title><script>alert(3)</script>"), ENVS[1])
    text = page(results := experiment(tmp_path / "x", envs=envs, agents=agents), chapters(results))
    reader = Reader(text)
    assert reader.data["agents"] == list(EVIL)
    assert not any(letter in reader.scripts[0] for letter in "<>&\u2028\u2029")
    assert not [tag for tag, _ in reader.tags if tag in ("img", "b", "i")]
    assert len(reader.scripts) == 3
    for label in (*EVIL, envs[0].label):
        assert label in reader.text
        assert [row for row in reader.rows if label in "".join(row)]


def test_names_are_one_line_and_told_apart() -> None:
    entries = [
        SpecEntry("a", "SCAL"),
        SpecEntry("b", "SCAL"),
        SpecEntry("c", "two\n\u202elines\x00"),
        SpecEntry("d", " "),
    ]
    assert display_names(entries) == {"a": "SCAL (a)", "b": "SCAL (b)", "c": "two lines", "d": "d"}


# --- figures for print ----------------------------------------------------------------------------------------------


def test_a_figure_has_a_line_and_a_band_an_agent(results: Results) -> None:
    figure = plot_curves(chapters(results)[0], "pseudo_regret", display_names(results.agents), HORIZON)
    (ax,) = figure.axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step t", "pseudo-regret")
    assert (len(ax.lines), len(ax.collections)) == (3, 3)
    np.testing.assert_allclose(ax.lines[0].get_ydata()[-1], 0.5 * 1.15 * 100.0)
    assert ax.get_title() == "mean with 95 % intervals; 4 runs per agent, T = 10,000"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["SCAL", "ucrl", "UCRL2"]


def test_many_agents_leave_the_twelve_best(tmp_path: Path) -> None:
    results = experiment(
        tmp_path / "x", envs=ENVS[:1], agents=MANY, seeds=2, regret=lambda cell, place, t: root(cell, 13 - place, t)
    )
    (chapter,), names = chapters(results), display_names(results.agents)
    figure = plot_curves(chapter, "regret", names, HORIZON)
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown == [f"agent {i:02d}" for i in range(13, 1, -1)]
    looks = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}
    assert len(looks) == 12
    assert figure.axes[0].get_title().endswith("; the 12 best of 14 agents")
    assert len(plot_planning_share(chapter, names, HORIZON).axes[0].patches) == 12
    reader = read(results)
    assert reader.data["chapters"][0]["first"] == 10
    assert [attributes for tag, attributes in reader.tags if attributes.get("data-show") == "best"]


def test_figures_take_names_literally(tmp_path: Path) -> None:
    labels = ("$x^2$ and $", "_hidden", "漢字")
    agents = tuple(replace(agent, label=label) for agent, label in zip(AGENTS, labels, strict=True))
    results = experiment(tmp_path / "x", agents=agents, envs=ENVS[:1], seeds=1)
    (chapter,), names = chapters(results), display_names(results.agents)
    figure = plot_curves(chapter, "regret", names, HORIZON)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == [r"\$x^2\$ and \$", " _hidden", "漢字"]
    assert figure.axes[0].get_title() == "1 run per agent, T = 10,000"
    assert not figure.axes[0].collections
    assert axes.image(figure, "pdf").startswith(b"%PDF")


def test_images_have_the_same_bytes_each_time(results: Results) -> None:
    chapter, names = chapters(results)[0], display_names(results.agents)
    for kind in ("png", "pdf"):
        one, two = (axes.image(plot_planning_share(chapter, names, HORIZON), kind) for _ in range(2))
        assert one == two
