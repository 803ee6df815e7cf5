"""spanrl reproduce: what it writes, what it goes on with, what it refuses, and its exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from spanrl.cli import main
from spanrl.errors import DirectoryInUseError, OptionError, UnknownNameError
from spanrl.experiments.driver import DriverResult as Driven
from spanrl.paper import folder, reproduce
from spanrl.paper.claims import QUICK, SCALES, SMOKE, CheckResult, all_claims, expected_verdicts
from spanrl.paper.experiments import EXPERIMENTS, experiment_spec
from spanrl.paper.folder import Folder
from spanrl.paper.pool import SLIPS, Answer

ASKED = ["E1", "L2", "F3", "X1"]
FIELDS = {"verdict", "expected", "reason", "title", "statement", "place", "tolerance", "scale", "numbers"}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A small reproduction: four claims."""
    out = tmp_path_factory.mktemp("reproduction") / "out"
    return reproduce.reproduce(out=out, scale="smoke", only=ASKED)


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """One of a small experiment."""
    out = tmp_path_factory.mktemp("experiment") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduce, "experiment_spec", tiny)
        return reproduce.reproduce(out=out, scale="smoke", only=["g1"], workers=2)


@pytest.fixture
def computed(judged, tmp_path, monkeypatch):
    """Return a directory in which the runs of that experiment are there already."""
    monkeypatch.setattr(reproduce, "experiment_spec", tiny)
    shutil.copytree(judged.dir, tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def _undrawn(monkeypatch):
    """Draw nothing: it takes longer than the rest, and other tests here look at the page."""
    monkeypatch.setattr("spanrl.paper.page.write.write_pages", lambda found: {})


def test_claims_json_names_every_claim(done):
    entries = json.loads((done.dir / "claims.json").read_text("utf-8"))
    assert entries == done.claims
    assert list(entries) == list(expected_verdicts()) == [claim.id for claim in all_claims()]
    for name, entry in entries.items():
        assert entry.keys() == FIELDS
        assert entry["expected"] == expected_verdicts()[name]["verdict"]
        assert entry["place"]
        assert entry["tolerance"]
        assert entry["verdict"] == ("holds" if name in ASKED else "not-run")
    assert entries["L2"]["numbers"]
    assert "reason" in entries["S1"]["numbers"]
    assert done.surprises == ()


def test_page_and_run_are_written(done):
    assert (done.dir / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    run = json.loads((done.dir / "run.json").read_text("utf-8"))
    assert run["scale"] == "smoke"
    assert run["machine"]["cores"] >= 1
    assert set(run["seconds"]) == {"claims", "pages"}
    assert run["versions"]["spanrl"]


@pytest.mark.usefixtures("_undrawn")
def test_same_call_goes_on_where_it_stopped(done, capfd):
    before = {path.name: path.stat().st_mtime_ns for path in (done.dir / "claims").iterdir()}
    again = reproduce.reproduce(out=done.dir, scale="smoke", only=[*ASKED, "O5"], show=True)
    assert "checked before: 4 claims" in capfd.readouterr().err
    after = {path.name: path.stat().st_mtime_ns for path in (done.dir / "claims").iterdir()}
    assert {name: after[name] for name in before} == before
    assert again.claims["O5"]["verdict"] == "holds"
    assert again.claims["E1"] == done.claims["E1"]


def test_other_sources_of_the_checkers_make_claims_anew(done, monkeypatch):
    place = Folder(done.dir, SMOKE)
    assert place.kept("E1") is not None
    monkeypatch.setattr(folder, "claim_digest", lambda: "others")
    assert place.kept("E1") is None


def test_damaged_claim_is_made_anew(tmp_path):
    place = Folder(tmp_path, SMOKE)
    place.keep("E1", {"verdict": "holds", "numbers": {"a": 1.0}}, 0.5)
    assert place.kept("E1") == {"verdict": "holds", "numbers": {"a": 1.0}, "seconds": 0.5}
    path = tmp_path / "claims" / "E1.json"
    for text in ("{", "[]", "{}", path.read_text().replace("0.5", '"x"')):
        path.write_text(text)
        assert place.kept("E1") is None


def test_what_gives_no_answer_is_named(tmp_path, monkeypatch):
    def ask(tasks, scale, *, done, **_):
        for task in tasks:
            done(task, Answer(None, 1.0, "given up after 1 s"))

    monkeypatch.setattr(reproduce, "ask", ask)
    monkeypatch.setattr(reproduce, "experiments_at", lambda scale: [])
    found = reproduce.reproduce(out=tmp_path, scale="smoke")
    assert found.claims["E1"]["verdict"] == "not-run"
    assert found.claims["E1"]["numbers"] == {"reason": "given up after 1 s"}
    assert set(found.surprises) == set(found.claims)
    assert found.slips == ()
    assert json.loads((tmp_path / "claims" / f"{SLIPS}.json").read_text())["found"]["reason"] == "given up after 1 s"
    asked = []
    monkeypatch.setattr(reproduce, "ask", lambda tasks, *_, **__: asked.extend(tasks))
    monkeypatch.setattr("spanrl.paper.page.write.write_pages", lambda found: {})
    reproduce.reproduce(out=tmp_path, scale="smoke")
    assert set(asked) == {SLIPS, *(claim.id for claim in all_claims() if claim.experiment is None)}  # tried again


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scale": "large"}, "scale must be quick or smoke or paper; got"),
        ({"only": ["E9"]}, "unknown claim 'E9'"),
        ({"engine": "cloud"}, "engine must be local or ray"),
        ({"workers": 0}, "workers must be a whole number"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_touched(options, words, tmp_path):
    with pytest.raises((OptionError, UnknownNameError), match=words):
        reproduce.reproduce(out=tmp_path / "new", **{"scale": "smoke", **options})
    assert not (tmp_path / "new").exists()


def test_directory_of_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(OptionError, match=r"holds other things \(thesis.tex, …\), not a reproduction"):
        reproduce.reproduce(out=tmp_path, scale="smoke", only=["X1"])
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_other_scale_and_other_sources_are_refused(done, monkeypatch):
    with pytest.raises(OptionError, match="holds a reproduction at scale 'smoke'; got --scale quick"):
        reproduce.reproduce(out=done.dir, scale="quick", only=["X1"])
    with monkeypatch.context() as patch:
        patch.setattr(folder, "versions", lambda: {"numpy": "9.9"})
        with pytest.raises(OptionError, match=r"was computed with python .*; here are numpy 9\.9"):
            reproduce.reproduce(out=done.dir, scale="smoke", only=["X1"])
    monkeypatch.setattr(folder, "source_digest", lambda: "others")
    with pytest.raises(OptionError, match="was computed by other sources"):
        reproduce.reproduce(out=done.dir, scale="smoke", only=["X1"])


def test_machines_and_commits_are_told_one_after_the_other(tmp_path, monkeypatch):
    for processor, commit in (("A", "1"), ("A", "1"), ("B", "2"), ("A", "2")):
        monkeypatch.setattr(folder, "machine", lambda name=processor: {"processor": name, "cores": 2})
        monkeypatch.setattr(folder, "git_hash", lambda name=commit: name)
        place = Folder(tmp_path, SMOKE)
        place.open()
        place.close()
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["machine"] == {"processor": "A, then B", "cores": 2}
    assert run["git"] == "1, then 2"


def test_second_driver_is_refused(tmp_path):
    first = Folder(tmp_path, SMOKE)
    first.open()
    try:
        with pytest.raises(DirectoryInUseError, match=r"reproduce: .* is in use by another spanrl reproduce"):
            reproduce.reproduce(out=tmp_path, scale="smoke", only=["X1"])
    finally:
        first.close()


def test_experiment_is_run_and_judged(judged):
    entry = judged.claims["G1"]
    assert entry["verdict"] == "fails"  # 10⁴ steps are too few to see it
    assert "log-log slope in" in entry["numbers"]["broken"]
    assert entry["numbers"]["runs per agent"] == 2
    assert entry["numbers"]["horizon"] == 10**4
    assert len(list((judged.dir / "experiments" / "diameter" / "cells").rglob("curve.parquet"))) == 16
    assert [experiment.horizon for experiment in judged.experiments.values()] == [10**4]
    assert "experiment diameter" in judged.run["seconds"]


def test_every_claim_about_an_experiment_is_judged_from_the_same_runs(tmp_path, monkeypatch):
    driven = []
    monkeypatch.setattr(reproduce, "drive", lambda spec, **_: driven.append(spec.name) or Driven(len(spec.cells())))
    monkeypatch.setattr(reproduce, "_judge", lambda claim, *_: CheckResult("holds", {"judge": claim.id}))
    monkeypatch.setattr("spanrl.paper.page.write.write_pages", lambda found: {})
    found = reproduce.reproduce(out=tmp_path, scale="smoke", only=["G2", "G5"])
    assert driven == ["three-state"]
    assert {name: found.claims[name]["numbers"] for name in ("G2", "G5")} == {
        name: {"judge": name} for name in ("G2", "G5")
    }
    assert found.surprises == ("G5",)  # expected to fail


def test_failed_runs_leave_the_claim_unchecked_and_are_named(computed, monkeypatch):
    text = computed / "experiments" / "diameter" / "failed" / "three-state" / "ucrl" / "001.txt"
    monkeypatch.setattr(reproduce, "drive", failing(reproduce.drive, text))
    found = reproduce.reproduce(out=computed, scale="smoke", only=["G1"], workers=1)
    assert found.claims["G1"]["verdict"] == "not-run"
    assert "1 of 16 runs failed, three-state/ucrl/001 first: it broke" in found.claims["G1"]["numbers"]["error"]
    assert found.surprises == ("G1",)
    assert found.experiments == {}


@pytest.mark.usefixtures("_undrawn")
def test_missing_runs_leave_the_claim_unchecked(computed, monkeypatch):
    monkeypatch.setattr(reproduce, "drive", losing(reproduce.drive))
    found = reproduce.reproduce(out=computed, scale="smoke", only=["G1"], workers=2)
    assert found.claims["G1"]["verdict"] == "not-run"
    assert found.claims["G1"]["numbers"] == {"reason": "1 of 16 runs are missing"}


def losing(drive):
    """Return a drive after which one cell is gone."""

    def broken(spec, *, out, **options):
        outcome = drive(spec, out=out, **options)
        shutil.rmtree(out / "cells" / "three-state" / "ucrl" / "001")
        return outcome

    return broken


def test_what_goes_wrong_without_a_claim_is_told_and_fails_the_command(tmp_path, monkeypatch, capsys):
    slip = {"id": "eta", "title": "t", "place": "p", "printed": "a", "found": "b", "numbers": {}, "shown": False}

    def ask(tasks, scale, *, done, **_):
        for task in tasks:
            verdict = expected_verdicts().get(task, {}).get("verdict")
            done(task, Answer({"slips": [slip]} if task == SLIPS else {"verdict": verdict, "numbers": {}}, 1.0))

    def drive(spec, **_):
        return Driven(len(spec.cells()), failed={"three-state/ucrl/000": "broken"})

    monkeypatch.setattr(reproduce, "ask", ask)
    monkeypatch.setattr(reproduce, "drive", drive)
    monkeypatch.setattr(reproduce, "experiments_at", lambda scale: ["three-state-sweep"])
    monkeypatch.setattr(reproduce, "select_claims", lambda only: [c for c in all_claims() if c.experiment is None])
    monkeypatch.setattr("spanrl.paper.page.write.write_pages", lambda found: {"diameter": "no numbers"})
    assert main(["--quiet", "reproduce", "--scale", "smoke", "--out", str(tmp_path / "out")]) == 1
    err = capsys.readouterr().err
    assert "experiment three-state-sweep: 1 runs failed." in err
    assert "slip eta: its numbers do not show it." in err
    assert "figure diameter could not be drawn: no numbers" in err


def test_error_in_a_checker_is_told_and_fails_the_command(tmp_path, monkeypatch, capsys):
    """As it comes back from a worker: not-run, which is never the expected verdict."""

    def ask(tasks, scale, *, done, **_):
        for task in tasks:
            done(task, Answer(CheckResult("not-run", {"error": f"ImportError: {task}"}).to_json(), 1.0))

    monkeypatch.setattr(reproduce, "ask", ask)
    monkeypatch.setattr("spanrl.paper.page.write.write_pages", lambda found: {})
    out = str(tmp_path / "out")
    assert main(["--quiet", "reproduce", "--scale", "smoke", "--out", out, "--only", "L2", "R3"]) == 1
    err = capsys.readouterr().err
    assert "L2 not-run, expected holds: ImportError: L2" in err
    assert "R3 not-run, expected fails: ImportError: R3" in err


def test_remains_of_a_kill_do_not_lock_the_directory_out(tmp_path):
    for name in ("lock", ".run.json.tmp-123"):
        (tmp_path / name).write_text("")
    assert Folder(tmp_path, SMOKE).run == {}


def tiny(name, scale):
    return replace(experiment_spec(name, scale), horizon=10**4, seeds=(0, 1))


def failing(drive, text):
    """Return a drive after which one cell has failed."""

    def broken(spec, *, out, **options):
        outcome = drive(spec, out=out, **options)
        shutil.rmtree(out / "cells" / "three-state" / "ucrl" / "001")
        text.parent.mkdir(parents=True)
        text.write_text("it broke\n")
        return outcome

    return broken


def test_cluster_that_is_not_there_is_told_before_any_work(tmp_path):
    pytest.importorskip("ray")
    with pytest.raises(OptionError, match="no Ray cluster was found"):
        reproduce.reproduce(out=tmp_path / "new", scale="smoke", only=["X1"], engine="ray", address="127.0.0.1:1")
    assert not (tmp_path / "new").exists()


def test_a_kill_loses_nothing(done, tmp_path, capfd):
    """SIGKILL to the whole group, while the first claim is checked and again after it; the end equals an uninterrupted reproduction."""
    out, words = tmp_path / "cut", ["--scale", "smoke", "--workers", "1", "--only", *ASKED]
    command = [sys.executable, "-m", "spanrl.cli", "--quiet", "reproduce", "--out", str(out), *words]
    for begun in ((out / "run.json").exists, lambda: any((out / "claims").glob("*.json"))):
        driver, end = (
            subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL),
            time.monotonic() + 60,
        )
        while not begun():
            assert driver.poll() is None
            assert time.monotonic() < end
            time.sleep(0.01)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    kept = {path: path.stat().st_mtime_ns for path in (out / "claims").glob("*.json")}
    assert 0 < len(kept) < len(ASKED)
    assert main(["reproduce", "--out", str(out), *words]) == 0
    assert f"checked before: {len(kept)} claim" in capfd.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert json.loads((out / "claims.json").read_text("utf-8")) == done.claims
    assert not (out / "experiments").exists()
    assert {path.name for path in (out / "claims").glob("*.json")} == {f"{name}.json" for name in ASKED}


def test_command_prints_verdicts_and_the_page(done, capsys):
    assert main(["reproduce", "--scale", "smoke", "--out", str(done.dir), "--only", "E1", "l2", "F3,X1"]) == 0
    out = capsys.readouterr().out
    assert "4 of 4 verdicts are as expected: 4 hold, 0 fail, 0 are vacuous." in out
    assert "report.html" in out
    assert "L2" in out
    assert "S1" not in out


@pytest.mark.usefixtures("_undrawn")
def test_command_fails_where_a_verdict_is_not_expected(done, monkeypatch, capsys):
    table = expected_verdicts() | {"X1": {"verdict": "fails", "reason": "a test"}}
    monkeypatch.setattr(reproduce, "expected_verdicts", lambda: table)
    assert main(["--quiet", "reproduce", "--scale", "smoke", "--out", str(done.dir), "--only", "X1"]) == 1
    assert "X1 holds, expected fails" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--scale", "huge"], "scale must be quick or smoke or paper; got"),
        (["--only", "Q7"], "unknown claim 'Q7'"),
        (["q7"], "Claims are E0, E1,"),
        (["--only", ","], "--only must name claims"),
        (["--workers", "none"], "--workers must be a whole number"),
    ],
)
def test_command_refuses_in_one_line(words, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *words]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_interrupted_command_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "ask", interrupted)
    assert main(["reproduce", "--scale", "smoke", "--out", str(tmp_path / "out"), "--only", "X1"]) == 130
    assert "The same command resumes." in capsys.readouterr().err


def test_paper_scale_is_the_papers():
    sizes = {name: experiment_spec(name, SCALES["paper"]) for name in EXPERIMENTS}
    for name in ("diameter", "three-state", "infinite-diameter"):
        assert (sizes[name].horizon, len(sizes[name].seeds)) == (25_000_000, 20)
    assert len(sizes["diameter"].envs) >= 6
    assert [agent.id for agent in sizes["three-state"].agents] == [
        "ucrl", *(f"scal[span_bound={c}]" for c in (2, 5, 10, 15, 20, 25))
    ]  # fmt: skip
    knight = sizes["knight-quest"]
    assert (knight.horizon, len(knight.seeds)) == (400_000_000, 15)
    bounds = [reproduce_bound(agent.id) for agent in knight.agents if agent.id.startswith("scal")]
    assert {5, 10} < set(bounds)
    assert min(bounds) < 3.28
    assert max(bounds) >= 50
    assert all("p_scale=0.05,r_scale=0.05" in agent.id for agent in knight.agents)
    assert len(experiment_spec("three-state", QUICK).seeds) < 20


def reproduce_bound(agent):
    return float(agent.partition("span_bound=")[2].partition(",")[0])
