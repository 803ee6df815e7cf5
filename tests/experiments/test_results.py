"""Results of an experiment, from a folder made by hand whose every number is known."""

from __future__ import annotations

import csv
import hashlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiment_samples import reseal
from scipy import stats

import spanrl
from spanrl import tables
from spanrl.errors import MissingExtraError, OptionError, RunFileError, UnknownNameError
from spanrl.experiments import results as module
from spanrl.experiments.results import Results, load_results
from spanrl.experiments.spec import Cell, Spec, SpecEntry
from spanrl.learning.run import Run

ENVS = (SpecEntry("three-state[delta=0.01]", "three states"), SpecEntry("two-state", "two-state"))
AGENTS = (SpecEntry("scal[span_bound=5]", "SCAL"), SpecEntry("ucrl", "ucrl"))
THREE, TWO, SCAL, UCRL = ENVS[0].id, ENVS[1].id, AGENTS[0].id, AGENTS[1].id
SPEC = Spec("small", 1000, 1, (0, 1, 4), ENVS, AGENTS)
TIMES = np.array([1, 10, 100, 1000])


def scale(cell: Cell) -> float:
    """Return the regret of a cell over t ** exponent: another number in each cell."""
    return 1.0 + ENVS.index(cell.env) + 0.25 * cell.seed**2 + (0.5 + 0.1 * cell.seed) * AGENTS.index(cell.agent)


def exponent(cell: Cell) -> float:
    return (0.5 + 0.125 * cell.seed) / (1 + AGENTS.index(cell.agent))


def make_run(cell: Cell, t: Any = TIMES, *, gain: float | None = 0.75) -> Run:
    regret = scale(cell) * t ** exponent(cell) if gain is not None else np.full(t.size, np.nan)
    meta = {
        "env": cell.env.id, "agent": cell.agent.id, "seed": cell.seed, "horizon": int(t[-1]), "points": 1, "gain": gain,
        "interrupted": False, "audit": False, "r_min": 0.0, "r_max": 1.0, "n_states": 3, "n_actions": 2,
        "seconds": {"planning": 0.25 + cell.seed, "simulating": 0.125, "total": 8},
    }  # fmt: skip
    episodes = {
        "start": np.array([0]), "gain": np.array([1.0]), "span": np.array([2.0]),
        "sweeps": np.array([3]), "deterministic": np.array([True]),
    }  # fmt: skip
    return Run(
        t=t, reward=0.5 * t, regret=regret, pseudo_regret=regret - 0.5, span=np.full(t.size, 2.0),
        n_episodes=np.arange(1, t.size + 1) + cell.seed, episodes=episodes, meta=meta,
    )  # fmt: skip


def write(folder: Path, cells: Iterable[Cell], *, spec: Spec = SPEC, **options: Any) -> Path:
    """Write an experiment with these cells finished."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spec.toml").write_text(spec.to_toml(), "utf-8")
    for cell in cells:
        make_run(cell, **options).save(folder / "cells" / cell.folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "DIR", SPEC.cells())


@pytest.fixture
def found(folder: Path) -> Results:
    return load_results(folder)


def group(env: SpecEntry, agent: SpecEntry) -> list[Cell]:
    return [Cell(env, agent, seed) for seed in SPEC.seeds]


# --- what is there --------------------------------------------------------------------------------------------------


def test_what_the_spec_says(found: Results, folder: Path) -> None:
    assert (found.dir, found.name, found.horizon, found.envs, found.agents) == (folder, "small", 1000, ENVS, AGENTS)
    assert found.spec == SPEC
    assert (found.failed, found.missing) == ({}, ())
    assert repr(found) == "<Results: small, 12 of 12 cells done>"
    with pytest.raises(FrozenInstanceError):
        found.missing = ("x",)  # type: ignore[misc]


def test_versions(found: Results, folder: Path) -> None:
    assert list(found.versions) == ["python", "spanrl", "numpy", "numba", "polars", "git"]
    assert found.versions["numpy"] == (np.__version__,)

    def other(content: dict[str, Any]) -> None:
        content["versions"] |= {"numpy": "1.0.0", "numba": None}
        content["git"] = None

    reseal(folder / "cells" / SPEC.cells()[3].folder, other)
    mixed = load_results(folder).versions
    assert mixed["numpy"] == ("1.0.0", np.__version__)
    assert mixed["numba"] == found.versions["numba"]
    assert mixed["git"] == found.versions["git"]


def test_cells(found: Results) -> None:
    table = found.cells
    assert table.columns == [
        "env", "agent", "label", "seed", "horizon", "gain", "reward", "regret", "pseudo_regret", "span", "n_episodes",
        "planning", "simulating", "total",
    ]  # fmt: skip
    order = [cell for env in ENVS for agent in AGENTS for cell in group(env, agent)]
    assert table.rows() == [
        (
            cell.env.id, cell.agent.id, cell.agent.label, cell.seed, 1000, 0.75, 500.0, make_run(cell).regret[-1],
            make_run(cell).regret[-1] - 0.5, 2.0, 4 + cell.seed, 0.25 + cell.seed, 0.125, 8.0,
        )
        for cell in order
    ]  # fmt: skip


def test_curves_hold_every_bit(found: Results) -> None:
    table = found.curves()
    assert table.columns == ["env", "agent", "seed", "t", "reward", "regret", "pseudo_regret", "span", "n_episodes"]
    assert [str(kind) for kind in table.dtypes] == ["String", "String", *["Int64"] * 2, *["Float64"] * 4, "Int64"]
    assert table.height == 12 * TIMES.size
    cell = Cell(ENVS[1], AGENTS[0], 4)
    run = make_run(cell)
    rows = [row for row in table.rows() if row[:3] == (TWO, SCAL, 4)]
    columns = (run.t, run.reward, run.regret, run.pseudo_regret, run.span, run.n_episodes)
    assert [row[3:] for row in rows] == list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_cell_is_what_learn_gives(tmp_path: Path) -> None:
    spec = replace(SPEC, envs=ENVS[1:], agents=AGENTS[1:], seeds=(2,), points=10)
    run = spanrl.learn("two-state", "ucrl", horizon=1000, seed=2, points=10)
    write(tmp_path, [], spec=spec)
    run.save(tmp_path / "cells" / spec.cells()[0].folder)
    results = load_results(tmp_path)
    for value in module.VALUES:
        t, seeds, values = results.array("two-state", "ucrl", value)
        assert (t.tolist(), seeds.tolist()) == (run.t.tolist(), [2])
        np.testing.assert_array_equal(values, [getattr(run, value)])
    assert results.cells["gain"].to_list() == [run.meta["gain"]]


# --- statistics -----------------------------------------------------------------------------------------------------


def test_array(found: Results) -> None:
    t, seeds, values = found.array(THREE, UCRL, "regret")
    assert (t.tolist(), seeds.tolist()) == (TIMES.tolist(), [0, 1, 4])
    np.testing.assert_array_equal(values, [make_run(cell).regret for cell in group(ENVS[0], AGENTS[1])])


def test_mean(found: Results) -> None:
    table = found.mean("pseudo_regret", level=0.9)
    assert table.columns == ["env", "agent", "label", "t", "n", "mean", "low", "high"]
    assert table.height == 4 * TIMES.size
    values = np.array([make_run(cell).pseudo_regret for cell in group(*ENVS[:1], AGENTS[0])])
    low, high = stats.t.interval(0.9, 2, loc=values.mean(axis=0), scale=stats.sem(values, axis=0))
    first = table.head(TIMES.size)
    assert first["label"].to_list() == ["SCAL"] * 4
    assert first["t"].to_list() == TIMES.tolist()
    assert first["n"].to_list() == [3] * 4
    np.testing.assert_allclose(first["mean"].to_numpy(), values.mean(axis=0))
    np.testing.assert_allclose(first["low"].to_numpy(), low)
    np.testing.assert_allclose(first["high"].to_numpy(), high)


def test_the_default_is_the_regret_at_95_percent(found: Results) -> None:
    assert found.mean().equals(found.mean("regret", interval="t", level=0.95))
    assert found.final().equals(found.final("regret", interval="t", level=0.95))


def test_bootstrap_is_another_interval_of_the_same_mean(found: Results) -> None:
    t, bootstrap = found.mean(), found.mean(interval="bootstrap")
    assert t["mean"].to_list() == bootstrap["mean"].to_list()
    assert t["low"].to_list() != bootstrap["low"].to_list()
    # a percentile of means of resamples lies between the smallest and the largest run
    _, _, values = found.array(THREE, SCAL, "regret")
    assert (bootstrap["low"].to_numpy()[:4] >= values.min(axis=0)).all()
    assert (bootstrap["high"].to_numpy()[:4] <= values.max(axis=0)).all()


def test_final(found: Results) -> None:
    table = found.final()
    assert table.columns == ["env", "agent", "label", "t", "n", "mean", "low", "high", "std", "median"]
    assert [row[:5] for row in table.rows()] == [
        (env.id, agent.id, agent.label, 1000, 3) for env in ENVS for agent in AGENTS
    ]
    ends = np.array([make_run(cell).regret[-1] for cell in group(ENVS[1], AGENTS[1])])
    last = table.row(3, named=True)
    assert last["mean"] == pytest.approx(ends.mean())
    assert last["std"] == pytest.approx(ends.std(ddof=1))
    assert last["median"] == sorted(ends)[1]
    end = found.mean().row(-1, named=True)
    assert (last["low"], last["high"]) == pytest.approx((end["low"], end["high"]))


def test_quantiles(found: Results) -> None:
    table = found.quantiles("n_episodes", at=(0, 0.5, 0.75, 1))
    assert table.columns == ["env", "agent", "label", "t", "n", "q0", "q0.5", "q0.75", "q1"]
    assert table.row(0) == (THREE, SCAL, "SCAL", 1, 3, 1.0, 2.0, 3.5, 5.0)  # of 1, 2 and 5
    assert found.quantiles().columns[-3:] == ["q0.25", "q0.5", "q0.75"]


def test_compare(found: Results) -> None:
    table = found.compare(UCRL, SCAL)
    assert table.columns == ["env", "first", "second", "t", "n", "difference", "low", "high", "p_value"]
    for env, row in zip(ENVS, table.rows(), strict=True):
        ucrl, scal = ([make_run(cell).regret[-1] for cell in group(env, agent)] for agent in AGENTS[::-1])
        other = stats.ttest_rel(ucrl, scal)
        interval = other.confidence_interval(0.95)
        assert row[:5] == (env.id, UCRL, SCAL, 1000, 3)
        expected = (np.mean(ucrl) - np.mean(scal), interval.low, interval.high, other.pvalue)
        assert row[5:] == pytest.approx(expected, rel=1e-9)


def test_an_agent_against_itself(found: Results) -> None:
    assert [row[5:] for row in found.compare(SCAL, SCAL).rows()] == [(0.0, 0.0, 0.0, 1.0)] * 2


def test_compare_takes_the_seeds_that_both_have(tmp_path: Path) -> None:
    cells = [
        cell
        for cell in SPEC.cells()
        if cell != Cell(ENVS[0], AGENTS[0], 1) and (cell.env, cell.agent) != (ENVS[1], AGENTS[1])
    ]
    table = load_results(write(tmp_path, cells)).compare(SCAL, UCRL)
    ends = {cell: make_run(cell).regret[-1] for cell in cells if cell.env == ENVS[0]}
    differences = [ends[Cell(ENVS[0], AGENTS[0], s)] - ends[Cell(ENVS[0], AGENTS[1], s)] for s in (0, 4)]
    assert [row[:5] for row in table.rows()] == [(THREE, SCAL, UCRL, 1000, 2)]
    assert table["difference"].to_list() == pytest.approx([np.mean(differences)])


def test_slope_of_power_laws(found: Results) -> None:
    table = found.slope()
    assert table.columns == ["env", "agent", "label", "n", "slope", "low", "high"]
    exponents = [exponent(cell) for cell in group(ENVS[0], AGENTS[0])]
    low, high = stats.t.interval(0.95, 2, loc=np.mean(exponents), scale=stats.sem(exponents))
    assert table.row(0) == (THREE, SCAL, "SCAL", 3, *map(pytest.approx, (np.mean(exponents), low, high)))


def test_slope_starts_two_decades_before_the_end(tmp_path: Path) -> None:
    cell = SPEC.cells()[0]
    run = make_run(cell)
    bent = np.array([50.0, 1.0, 10.0, 100.0])  # falls, then t / 10
    write(tmp_path, [], spec=replace(SPEC, envs=ENVS[:1], agents=AGENTS[:1], seeds=(0,)))
    replace(run, regret=bent).save(tmp_path / "cells" / cell.folder)
    results = load_results(tmp_path)
    assert results.slope()["slope"].to_list() == pytest.approx([1.0])
    assert results.slope(start=1)["slope"].to_list() == pytest.approx([np.polyfit(range(4), np.log10(bent), 1)[0]])
    assert np.isnan(results.slope(start=100)["slope"].to_list()).all()  # two points


def test_unknown_gain_gives_nan(tmp_path: Path) -> None:
    results = load_results(write(tmp_path, SPEC.cells(), gain=None))
    for table in (results.mean(), results.mean(interval="bootstrap"), results.final()):
        assert np.isnan(table.select("mean", "low", "high").to_numpy()).all()
    assert np.isnan(results.quantiles()["q0.5"].to_numpy()).all()
    assert np.isnan(results.compare(SCAL, UCRL).select("difference", "p_value").to_numpy()).all()
    assert np.isnan(results.slope().select("slope", "low", "high").to_numpy()).all()
    assert np.isnan(results.cells["gain"].to_numpy()).all()
    assert results.final("reward")["mean"].to_list() == [500.0] * 4
    assert "nan" in str(results)


# --- while it is being run ------------------------------------------------------------------------------------------


def test_missing_failed_and_others(tmp_path: Path) -> None:
    cells = SPEC.cells()
    folder = write(tmp_path, cells[:5])
    for cell, text in ((cells[6], "ValueError: no luck\nTraceback …\n"), (cells[7], ""), (cells[0], "old\n")):
        path = folder / "failed" / f"{cell.folder}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    make_run(Cell(ENVS[0], AGENTS[0], 9)).save(folder / "cells" / ENVS[0].folder / AGENTS[0].folder / "009")
    (folder / "cells" / "notes.txt").write_text("mine")
    results = load_results(folder)
    assert results.failed == {cells[6].id: "ValueError: no luck", cells[7].id: ""}
    assert results.missing == tuple(cell.id for cell in (cells[5], *cells[8:]))
    assert sorted(results.cells["seed"].to_list()) == [0, 0, 0, 0, 1]
    assert repr(results) == "<Results: small, 5 of 12 cells done, 2 failed>"


def test_one_run_has_no_interval(tmp_path: Path) -> None:
    results = load_results(write(tmp_path, SPEC.cells()[:4]))
    row = results.final().row(0, named=True)
    assert row["mean"] == row["median"] == make_run(SPEC.cells()[0]).regret[-1]
    assert np.isnan([row["low"], row["high"], row["std"]]).all()
    assert results.compare(SCAL, UCRL)["n"].to_list() == [1, 1]
    assert "–" in str(results)


def test_nothing_yet(tmp_path: Path) -> None:
    results = load_results(write(tmp_path, []))
    assert len(results.missing) == 12
    found = (results.cells, results.curves(), results.mean(), results.final(), results.quantiles(), results.slope())
    assert [table.height for table in (*found, results.compare(SCAL, UCRL))] == [0] * 7
    assert results.mean().columns == ["env", "agent", "label", "t", "n", "mean", "low", "high"]
    t, seeds, values = results.array(THREE, SCAL, "regret")
    assert (t.size, seeds.size, values.shape) == (0, 0, (0, 0))
    assert str(results) == "Results: small, 0 of 12 cells done"


def test_cells_at_a_shorter_horizon_are_missing(tmp_path: Path) -> None:
    first, second, third = group(ENVS[0], AGENTS[0])
    write(tmp_path, [first, third])
    write(tmp_path, [second], t=np.array([1, 10, 100, 500]))
    results = load_results(tmp_path)
    t, seeds, _ = results.array(THREE, SCAL, "regret")
    assert (t[-1], seeds.tolist()) == (1000, [0, 4])
    assert second.id in results.missing
    assert "2 of" in str(results)


def test_rounding_is_no_difference(tmp_path: Path) -> None:
    """Sums of rewards that were added in another order differ in their last bits."""
    pairs = [Cell(ENVS[0], agent, seed) for agent in AGENTS[:2] for seed in (0, 1, 4)]
    write(tmp_path, pairs)
    results = load_results(tmp_path)
    runs = {
        cell.id: curve
        for group in results.groups
        for cell, curve in zip([found.cell for found in group.cells], results._curves(group), strict=True)
    }
    row = module.VALUES.index("regret")
    for seed in (0, 1, 4):
        one, other = (runs[Cell(ENVS[0], agent, seed).id] for agent in AGENTS[:2])
        other.values[:] = one.values
        other.values[row] += 4e-13 * one.values[module.VALUES.index("reward"), -1]
    found = results.compare(SCAL, UCRL).row(0, named=True)
    assert (found["difference"], found["low"], found["high"], found["p_value"]) == (0.0, 0.0, 0.0, 1.0)


def test_plugins_are_not_imported(tmp_path: Path) -> None:
    spec = replace(SPEC, plugins=("no_such_module_anywhere",), agents=(SpecEntry("mine[x=1]", "mine"),))
    results = load_results(write(tmp_path, [], spec=spec))
    assert results.agents == spec.agents
    assert results.missing[0] == f"{THREE}/mine[x=1]/000"


def test_each_curve_is_read_once(found: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def counted(path: Path, **options: Any) -> Any:
        read.append(path)
        return original(path, **options)

    original = tables.read_table
    monkeypatch.setattr(tables, "read_table", counted)
    found.array(TWO, UCRL, "span")
    assert len(read) == 3
    for _ in range(2):
        str(found), found.mean("span"), found.compare(SCAL, UCRL), found.curves(), found.cells, found.slope()
    assert len(read) == len(set(read)) == 12


# --- words and files ------------------------------------------------------------------------------------------------


def test_str_is_a_table_of_final_regrets(found: Results) -> None:
    lines = str(found).splitlines()
    assert lines[0] == "Results: small, 12 of 12 cells done"
    assert lines[1].split() == ["env", "agent", "runs", "t", "regret", "95", "%", "interval"]
    row = found.final().row(0, named=True)
    assert lines[2].split() == [
        THREE, "SCAL", "3", "1,000", f"{row['mean']:.4g}", f"{row['low']:.4g}", "…", f"{row['high']:.4g}",
    ]  # fmt: skip
    assert len(lines) == 6


def test_csv(found: Results, tmp_path: Path) -> None:
    target = tmp_path / "a" / "b"
    target.mkdir(parents=True)
    (target / "cells.csv").write_text("old")
    (target / "notes.csv").write_text("mine")
    found.to_csv(target)
    names = ["cells.csv", "curves.csv", "mean_pseudo_regret.csv", "mean_regret.csv", "notes.csv"]
    assert sorted(path.name for path in target.iterdir()) == names
    for name, table in (("cells", found.cells), ("curves", found.curves()), ("mean_regret", found.mean())):
        with (target / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            head, *rows = csv.reader(stream)
        assert head == table.columns
        assert len(rows) == table.height
        assert [float(row[-1]) for row in rows] == table[table.columns[-1]].to_list()
        assert [row[0] for row in rows] == table["env"].to_list()
    assert (target / "mean_pseudo_regret.csv").read_text() != (target / "mean_regret.csv").read_text()


def test_csv_where_nothing_can_be_written(found: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFileError, match=r"to_csv: cannot write into .*file"):
        found.to_csv(tmp_path / "file")
    (tmp_path / "full" / "curves.csv").mkdir(parents=True)
    with pytest.raises(RunFileError, match=r"to_csv: cannot write into .*full"):
        found.to_csv(tmp_path / "full")
    assert sorted(path.name for path in (tmp_path / "full").iterdir()) == ["cells.csv", "curves.csv"]


def test_pandas(found: Results) -> None:
    pytest.importorskip("pandas")
    frame = found.to_pandas()
    table = found.curves()
    assert list(frame.columns) == table.columns
    assert [frame[name].tolist() for name in table.columns] == [table[name].to_list() for name in table.columns]
    assert [frame[name].dtype.kind for name in ("seed", "t", "regret", "n_episodes")] == ["i", "i", "f", "i"]


def test_without_pandas(found: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"to_pandas: pandas is not installed. Run: pip install pandas"):
        found.to_pandas()


def test_without_polars(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    results = load_results(folder)
    assert results.missing == ()
    with pytest.raises(
        MissingExtraError, match=r"polars is not installed. Run: pip install polars .*pip install '\.\[experiments\]'"
    ):
        results.mean()


# --- what is refused ------------------------------------------------------------------------------------------------


def test_names_that_are_unknown(found: Results) -> None:
    for call in (found.mean, found.final, found.quantiles, found.slope, lambda value: found.array(TWO, UCRL, value)):
        with pytest.raises(UnknownNameError, match=r"unknown value 'regrets'. Did you mean 'regret'\?"):
            call("regrets")
    with pytest.raises(UnknownNameError, match=r"unknown value 't'. Known: n_episodes, pseudo_regret"):
        found.compare(SCAL, UCRL, "t")
    with pytest.raises(UnknownNameError, match=r"unknown environment 'twostate'. Did you mean 'two-state'\?"):
        found.array("twostate", UCRL, "regret")
    with pytest.raises(UnknownNameError, match=r"unknown agent 'SCAL'"):  # the label is no id
        found.compare(UCRL, "SCAL")
    with pytest.raises(UnknownNameError, match=r"unknown interval 'normal'"):
        found.mean(interval="normal")
    with pytest.raises(OptionError, match=r"strictly between 0 and 1; got 95"):
        found.compare(SCAL, UCRL, level=95)


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_text("")])
def test_no_experiment(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    make(tmp_path / "x")
    with pytest.raises(
        RunFileError, match=r"load_results: .*x is no experiment \(it has no spec.toml\). Give the folder"
    ):
        load_results(tmp_path / "x")


def test_a_damaged_meta(folder: Path) -> None:
    path = folder / "cells" / SPEC.cells()[2].folder / "meta.json"
    text = path.read_text()
    for content, words in (
        (text.replace("0.75", "0.5"), r"was changed after it was saved \(its SHA-256 is another\)"),
        (text[:50], "is not JSON; it is damaged or of another program"),
        (
            text.replace('"format_version": 1', '"format_version": 9'),
            "has format version 9, this spanrl reads version 1",
        ),
    ):
        path.write_text(content)
        with pytest.raises(RunFileError, match=rf"{path} {words}.*\. Run the experiment again to recompute it\.$"):
            load_results(folder)
    path.unlink()
    with pytest.raises(RunFileError, match=rf"{path} is missing. Run the experiment again to recompute it\.$"):
        load_results(folder)


def test_meta_of_another_cell_or_shape(folder: Path) -> None:
    cell = folder / "cells" / SPEC.cells()[2].folder
    before = (cell / "meta.json").read_bytes()
    reseal(cell, lambda content: content.pop("seconds"))
    with pytest.raises(
        RunFileError, match=r"meta.json does not describe a run \(.*`seconds`\). Run the experiment again"
    ):
        load_results(folder)
    (cell / "meta.json").write_bytes(before)
    reseal(cell, lambda content: content.update(id="two-state/ucrl/007"))
    with pytest.raises(
        RunFileError, match=r"meta.json is of the cell two-state/ucrl/007, not two-state/scal.*/000. Run"
    ):
        load_results(folder)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), r"is cut or was changed \(its SHA-256 is another\)"),
        (lambda path: path.write_bytes(b""), "is cut or was changed"),
        (lambda path: path.unlink(), "is missing"),
        (lambda path: (path.unlink(), path.mkdir()), r"cannot be read \(Is a directory\)"),
    ],
)
def test_a_damaged_curve(folder: Path, damage: Callable[[Path], Any], words: str) -> None:
    path = folder / "cells" / SPEC.cells()[2].folder / "curve.parquet"
    results = load_results(folder)
    damage(path)
    assert results.array(THREE, UCRL, "regret")[2].shape == (3, 4)  # the others are as they were
    with pytest.raises(RunFileError, match=rf"{path} {words}.*Run the experiment again to recompute it\.$"):
        results.mean()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"regret": np.array(["a", "b", "c", "d"])}, "must hold float64 in column 'regret'; got <U1"),
        ({"t": TIMES[::-1].copy()}, "must hold rising times ≥ 0"),
        ({"t": TIMES + 1}, "does not end at the horizon 1000"),
        ({"t": None}, "is damaged or no Parquet file"),
    ],
)
def test_a_forged_curve(folder: Path, changes: dict[str, Any], words: str) -> None:
    rewrite(folder, **changes)
    with pytest.raises(RunFileError, match=rf"curve.parquet {words}.*Run the experiment again to recompute it\.$"):
        load_results(folder).mean()


def test_curves_of_other_times(folder: Path) -> None:
    rewrite(folder, t=np.array([1, 10, 200, 1000]))
    with pytest.raises(
        RunFileError, match=r"two-state/scal\[span_bound=5\]/001 is measured at other times than .*/000"
    ):
        load_results(folder).mean()


def rewrite(folder: Path, **changes: Any) -> None:
    """Change columns of a curve under a right seal; None drops one."""
    cell = folder / "cells" / next(cell.folder for cell in SPEC.cells() if (cell.env.id, cell.seed) == (TWO, 1))
    columns = tables.read_table(cell / "curve.parquet") | changes
    tables.write_table(cell / "curve.parquet", {name: x for name, x in columns.items() if x is not None})
    digest = hashlib.sha256((cell / "curve.parquet").read_bytes()).hexdigest()
    reseal(cell, lambda content: content["sha256"].update({"curve.parquet": digest}))
