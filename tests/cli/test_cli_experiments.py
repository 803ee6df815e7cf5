"""``spanrl run``, ``status``, ``report`` and ``list experiments``: what they print, write and refuse, with which exit code."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spanrl import cli, learn
from spanrl.experiments.run import drive
from spanrl.experiments.spec import read_spec
from spanrl.experiments.store import Store
from spanrl.learning.session import Session
from spanrl.learning.snapshot import pack

SPEC = """
name = "tiny"
horizon = 2e3
points = 10
seeds = 2
[[env]]
id = "three-state"
delta = [0.01, 0.02]
[[agent]]
id = "ucrl"
label = "UCRL"
[[agent]]
id = "scal"
span_bound = 2
"""
IDS = [
    f"three-state[delta={delta}]/{agent}/{seed}"
    for seed in ("000", "001") for delta in ("0.01", "0.02") for agent in ("ucrl", "scal[span_bound=2]")
]  # fmt: skip

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*argv: str | Path) -> tuple[int, str, str]:
        """Run the command; return exit code, standard output and standard error."""
        code = cli.main([str(word) for word in argv])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def fail(call: Call) -> Callable[..., str]:
    def run(*argv: str | Path, code: int = 2) -> str:
        """Run the command, which must refuse; return its one line."""
        found, out, err = call(*argv)
        assert (found, out) == (code, ""), err
        assert err.startswith("spanrl: ")
        assert err.endswith("\n")
        assert err.count("\n") == 1
        assert "Traceback" not in err
        return err

    return run


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(SPEC)
    return tmp_path / "tiny.toml"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def partly(spec: Path, out: Path) -> Store:
    """Return a directory with two cells finished, one begun at step 1000, one failed, and four waiting."""
    content, store = read_spec(spec), Store(out)
    cells = content.cells()
    store.open(content)
    for cell in cells[:2]:
        run = learn(cell.env.id, cell.agent.id, horizon=2000, seed=cell.seed, points=10)
        store.adopt(cell.folder, store.write_temporary(run.to_files()))
    store.write_checkpoint(cells[2].folder, halfway(cells[2].env.id, cells[2].agent.id, cells[2].seed))
    store.write(f"failed/{cells[3].folder}.txt", b"no luck [at all]\n\nTraceback\n")
    store.close()
    return store


def halfway(env: str, agent: str, seed: int) -> bytes:
    """Return the state of a run at step 1000."""
    from spanrl.agents.registry import make_agent
    from spanrl.learning.worlds import as_world

    one = Session(as_world(env), make_agent(agent), agent, horizon=1000, seed=seed, points=10)
    one.run(0.5, lambda t: None)
    return pack(one.state())


def only_json(text: str) -> dict[str, Any]:
    assert text.count("\n") == 1
    value = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert isinstance(value, dict)
    return value


# --- list experiments -----------------------------------------------------------------------------------------------


def test_list_experiments(call: Call) -> None:
    code, out, err = call("list", "experiments")
    assert (code, err) == (0, "")
    for name in ("small", "three-state", "knight-quest"):
        assert re.search(rf"^\s*{name}\s", out, re.MULTILINE)
    assert "two small environments, four agents, ten seeds" in out


def test_list_experiments_as_json(call: Call) -> None:
    code, out, err = call("list", "experiments", "--json")
    assert (code, err) == (0, "")
    (found,) = only_json(out).values()
    assert {"small", "knight-quest"} <= {entry["name"] for entry in found}
    assert all(entry["summary"] for entry in found)


def test_a_shipped_experiment_goes_by_its_name(call: Call, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanrl.experiments.estimate._BUDGET", 0.08)
    code, shown, _ = call("run", "small", "--out", out, "--dry-run")
    assert code == 0
    assert shown.splitlines()[0].split() == ["waiting", "three-state[delta=0.01]/ucrl/000"]
    assert shown.splitlines()[-1].startswith("80 cells, 80 to compute: about ")


# --- dry run --------------------------------------------------------------------------------------------------------


def test_a_dry_run_prints_all_cells_and_an_estimate_and_writes_nothing(
    call: Call, spec: Path, out: Path, tmp_path: Path
) -> None:
    code, shown, err = call("run", spec, "--out", out, "--dry-run", "--workers", 2)
    assert code == 0
    lines = shown.splitlines()
    assert [line.split() for line in lines[:-1]] == [["waiting", name] for name in IDS]
    last = r"8 cells, 8 to compute: about \d:\d\d:\d\d with 2 workers \([\d.e-]+ s of computing\)\."
    assert re.fullmatch(last, lines[-1])
    assert err == "spanrl: trying each kind of cell for a moment …\n"
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.toml"]


def test_a_dry_run_knows_what_is_there(call: Call, spec: Path, partly: Store) -> None:
    before = sorted(path for path in partly.dir.rglob("*"))
    code, shown, _ = call("run", spec, "--out", partly.dir, "--dry-run", "--quiet")
    assert code == 0
    states = [line.split()[0] for line in shown.splitlines()[:-1]]
    assert states == ["finished", "finished", "begun", "failed", *["waiting"] * 4]
    assert shown.splitlines()[-1].startswith("8 cells, 5 to compute: ")
    assert sorted(path for path in partly.dir.rglob("*")) == before


def test_a_dry_run_of_some_cells(call: Call, spec: Path, out: Path) -> None:
    code, shown, err = call("run", spec, "--out", out, "--dry-run", "--only", "ucrl/001", "--quiet")
    assert (code, err) == (0, "")
    assert [line.split()[1] for line in shown.splitlines()[:-1]] == [name for name in IDS if name.endswith("ucrl/001")]


def test_a_dry_run_refuses_a_directory_of_another_spec(fail: Callable[..., str], spec: Path, partly: Store) -> None:
    spec.write_text(SPEC.replace("points = 10", "points = 20"))
    assert "holds another experiment: points: 10 there, 20 here" in fail(
        "run", spec, "--out", partly.dir, "--dry-run", "--quiet"
    )


# --- bad specs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("horizon =", "horizn =", "unknown key 'horizn'. Did you mean 'horizon'?"),
        ("[[agent]]", "[[agnet]]", "unknown key 'agnet'. Did you mean 'agent'?"),
        ("horizon = 2e3\n", "", "horizon is missing; it must be a whole number ≥ 1"),
        ("horizon = 2e3", "horizon = 2.5", "horizon must be a whole number ≥ 1; got 2.5"),
        ("seeds = 2", "seeds = [1, 1]", "seeds must differ; 1 is there twice"),
        ("seeds = 2", 'seeds = "5:5"', "seeds = '5:5' is empty"),
        ('"tiny"', '"a name"', "name must be a word of [A-Za-z0-9_-]; got 'a name'"),
        ("three-state", "three-stat", "unknown environment 'three-stat'. Did you mean 'three-state'?"),
        ('"ucrl"', '"ucrls"', "unknown agent 'ucrls'. Did you mean 'ucrl'"),
        ("span_bound = 2", "span_bond = 2", "unknown parameter 'span_bond'. Did you mean 'span_bound'?"),
        ("span_bound = 2", "span_bound = -1", "span_bound must be a number ≥ 0; got -1"),
        ("span_bound = 2", "", "span_bound"),
        ('label = "UCRL"', 'label = ""', "agent[0].label must be a text of 1 to 80 characters"),
        (
            "seeds = 2",
            'seeds = 2\nplugins = ["no_such_module_here"]',
            "plugins: 'no_such_module_here' cannot be imported",
        ),
        ("[[env]]", "[[env]", "not TOML"),
    ],
)
def test_bad_specs(fail: Callable[..., str], spec: Path, out: Path, old: str, new: str, words: str) -> None:
    assert old in SPEC
    spec.write_text(SPEC.replace(old, new))
    line = fail("run", spec, "--out", out)
    assert words in line
    assert "spec" in line
    assert not out.exists()


def test_no_such_spec(fail: Callable[..., str], out: Path, tmp_path: Path) -> None:
    assert "no file" in fail("run", tmp_path / "none.toml", "--out", out)
    assert "unknown experiment 'smal'. Did you mean 'small'?" in fail("run", "smal", "--out", out)
    assert not out.exists()


# --- options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--workers", "0"), "workers must be a whole number"),
        (("--workers", "-1"), "workers must be a whole number"),
        (("--workers", "1.5"), "workers must be a whole number"),
        (("--workers", "inf"), "workers must be a whole number"),
        (("--workers", "x"), "--workers must be a whole number"),
        (("--checkpoint-every", "0"), "--checkpoint-every must be a number of seconds > 0; got 0.0"),
        (("--checkpoint-every", "-3"), "--checkpoint-every must be a number of seconds > 0; got -3.0"),
        (("--checkpoint-every", "nan"), "--checkpoint-every must be a number of seconds > 0; got nan"),
        (("--checkpoint-every", "inf"), "--checkpoint-every must be a number of seconds > 0; got inf"),
        (("--checkpoint-every", "x"), "--checkpoint-every must be a number"),
        (("--cell-timeout", "0"), "--cell-timeout must be a number of seconds > 0; got 0.0"),
        (("--cell-timeout", "inf"), "--cell-timeout must be a number of seconds > 0; got inf"),
        (("--cell-timeout", "soon"), "--cell-timeout must be a number"),
        (("--workers", "2", "--ray", "auto"), "--workers is for this machine, --ray for a cluster. Give one of them."),
        (
            ("--only", "nonsense"),
            "--only 'nonsense' matches no cell. Cells are named like three-state[delta=0.01]/ucrl/0",
        ),
        (("--only", "ucrl", "--only", "[x"), "--only '[x' matches no cell"),
        (("--frob",), "No such option: --frob"),
    ],
)
def test_wrong_options(fail: Callable[..., str], spec: Path, out: Path, options: tuple[str, ...], words: str) -> None:
    assert words in fail("run", spec, "--out", out, *options)
    assert not out.exists(), "options are looked at before anything is touched"


@pytest.mark.parametrize("options", [("--workers", "0"), ("--workers", "1.5"), ("--only", "nonsense")])
def test_wrong_options_of_a_dry_run(fail: Callable[..., str], spec: Path, out: Path, options: tuple[str, ...]) -> None:
    assert options[1].rstrip(".5") in fail("run", spec, "--out", out, "--dry-run", *options)


def test_out_is_needed(fail: Callable[..., str], spec: Path) -> None:
    assert "Missing option '--out'" in fail("run", spec)
    assert "Missing argument 'SPEC'" in fail("run")


def test_a_directory_that_is_something_else(fail: Callable[..., str], spec: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("mine")
    assert "is no experiment of ours and not an empty folder" in fail("run", spec, "--out", tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_a_directory_in_use(fail: Callable[..., str], spec: Path, out: Path) -> None:
    store = Store(out)
    store.open(read_spec(spec))
    try:
        assert "is in use by another spanrl run (process " in fail("run", spec, "--out", out)
    finally:
        store.close()


# --- run ------------------------------------------------------------------------------------------------------------


def test_run_tells_what_it_does_and_where_the_results_are(call: Call, spec: Path, out: Path) -> None:
    code, shown, err = call("run", spec, "--out", out, "--workers", 2)
    assert code == 0
    first, *rest = err.splitlines()
    assert first == "spanrl: 8 cells: 0 finished before, 8 to compute"
    assert all(" of 8 cells finished, " in line for line in rest), "a slow machine shows how far it is"
    assert shown.splitlines()[-1] == f"8 of 8 cells finished in {out}. Next: spanrl report {out}"
    assert all(words in shown for words in ("three-state[delta=0.02]", "scal[span_bound=2]", "2,000"))
    code, _, err = call("run", spec, "--out", out)
    assert (code, err) == (0, "spanrl: 8 cells: 8 finished before, 0 to compute\n")
    assert call("run", spec, "--out", out, "--quiet") == (0, "", "")

    code, shown, err = call("status", out, "--json")
    assert (code, err) == (0, "")
    assert (only_json(shown)["finished"], only_json(shown)["steps"], only_json(shown)["failures"]) == (8, {}, {})


def test_quiet_run_prints_nothing(call: Call, spec: Path, out: Path) -> None:
    assert call("run", spec, "--out", out, "--workers", 1, "--only", "ucrl/000", "--quiet") == (0, "", "")
    assert len(list(out.rglob("curve.parquet"))) == 2


def test_cells_that_failed_before_still_count(call: Call, spec: Path, partly: Store) -> None:
    only = ("--only", IDS[0], "--only", IDS[3])
    code, shown, err = call("run", spec, "--out", partly.dir, *only)
    assert code == 1
    assert "1 of 2 cells finished" in shown
    assert f"spanrl: {IDS[3]} failed: no luck [at all]\n" in err
    assert err.splitlines()[-1].startswith(f"spanrl: 1 of 2 cells failed; the texts are in {partly.dir / 'failed'}.")


# --- status ---------------------------------------------------------------------------------------------------------


def test_status_of_what_is_no_experiment(fail: Callable[..., str], tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        line = fail("status", folder)
        assert "is no experiment, it has no spec.toml. Give the directory of spanrl run." in line


def test_status_of_an_experiment_that_has_lost_its_spec(fail: Callable[..., str], partly: Store) -> None:
    (partly.dir / "spec.toml").unlink()
    line = fail("status", partly.dir)
    assert "It has lost its spec.toml: spanrl run with the original spec and this --out restores it." in line


def test_status_as_json(call: Call, partly: Store) -> None:
    code, shown, err = call("status", partly.dir, "--json")
    assert (code, err) == (0, "")
    assert only_json(shown) == {
        "name": "tiny", "horizon": 2000, "cells": 8, "driver": None, "running": 0,
        "finished": 2, "begun": 1, "waiting": 4, "failed": 1,
        "steps": {IDS[2]: 1000}, "failures": {IDS[3]: "no luck [at all]"},
    }  # fmt: skip


def test_status_while_a_driver_runs(call: Call, spec: Path, out: Path) -> None:
    store = Store(out)
    store.open(read_spec(spec))
    store.lock.note(IDS[:2])
    try:
        before = only_json(call("status", out, "--json")[1])
        text = call("status", out)[1]
    finally:
        store.close()
    assert (before["driver"], before["running"], before["waiting"], before["finished"]) == (os.getpid(), 2, 6, 0)
    assert re.search(r"driver\s+process \d+ on ", text)
    after = only_json(call("status", out, "--json")[1])
    assert (after["driver"], after["running"], after["waiting"]) == (None, 0, 8)


def test_status_for_people(call: Call, partly: Store) -> None:
    code, shown, err = call("status", partly.dir)
    assert (code, err) == (0, "")
    for label, value in (("horizon", "2,000"), ("driver", "none"), ("cells", "8"), ("finished", "2"), ("waiting", "4")):
        assert re.search(rf"^\s*{label}\s+{value}\s*$", shown, re.MULTILINE), label
    assert re.search(r"three-state\[delta=0\.02\] / scal\[span_bound=2\]\s+1\s+1\s*$", shown, re.MULTILINE)
    assert "1,000 of 2,000 steps" in shown
    assert "no luck [at all]" in shown


def test_status_of_a_damaged_checkpoint(call: Call, spec: Path, partly: Store) -> None:
    partly.checkpoint(read_spec(spec).cells()[2].folder).write_bytes(b"damage")
    assert only_json(call("status", partly.dir, "--json")[1])["steps"] == {IDS[2]: None}
    assert "0 of 2,000 steps" in call("status", partly.dir)[1]


def test_status_reads_only(call: Call, partly: Store) -> None:
    before = {path: path.stat().st_mtime_ns for path in partly.dir.rglob("*")}
    call("status", partly.dir)
    assert {path: path.stat().st_mtime_ns for path in partly.dir.rglob("*")} == before


# --- report ---------------------------------------------------------------------------------------------------------


def test_report_of_what_is_no_experiment(fail: Callable[..., str], tmp_path: Path) -> None:
    assert str(tmp_path) in fail("report", tmp_path, "--quiet")
    assert list(tmp_path.iterdir()) == []


def test_report_before_the_first_result(call: Call, spec: Path, out: Path) -> None:
    store = Store(out)
    store.open(read_spec(spec))
    store.close()
    code, shown, err = call("report", out, "--quiet")
    assert (code, err) == (0, "")
    assert shown == f"{out / 'report.html'}\n{out / 'figures'}\n"
    assert "tiny" in (out / "report.html").read_text()


# --- exit codes -----------------------------------------------------------------------------------------------------


def test_an_interrupted_run_is_130(call: Call, spec: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **options: Any) -> Any:
        outcome = drive(*arguments, **options | {"only": [IDS[0]]})
        outcome.interrupted, outcome.cells = True, 8
        return outcome

    monkeypatch.setattr("spanrl.experiments.run.drive", interrupted)
    code, shown, err = call("run", spec, "--out", out, "--workers", 1, "--quiet")
    assert (code, shown) == (130, "")
    assert err.splitlines()[0] == "spanrl: 1 of 8 cells are finished. The same command resumes."
