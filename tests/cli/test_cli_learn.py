"""``spanrl learn`` and ``spanrl list agents``: what they print, write and refuse."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from spanrl import MDP, Run, cli, learn
from spanrl.cli import output

THREE = "three-state[delta=0.01]"
SCAL = "scal[span_bound=2]"


@pytest.fixture(autouse=True)
def _compiled(monkeypatch):
    monkeypatch.setattr("spanrl.kernels.cache.is_compiled", lambda task: True)


def run(capsys, *argv, code=0):
    found = cli.main(["learn", *argv])
    out, err = capsys.readouterr()
    assert found == code, err
    return out, err


def test_the_table_tells_what_learn_returns(capsys):
    out, err = run(capsys, THREE, SCAL, "--horizon", "1e4", "--seed", "3")
    expected = learn(THREE, SCAL, horizon=10_000, seed=3)
    assert err == ""
    for text in (
        "10,000",
        f"{expected.regret[-1]:.6g}",
        f"{expected.pseudo_regret[-1]:.6g}",
        f"{expected.n_episodes[-1]:,}",
    ):
        assert text in out


def test_costs_are_shown_where_the_model_has_them_or_when_asked(capsys, tmp_path):
    path = tmp_path / "m.npz"
    MDP.from_dense([[[1.0], [1.0]]], [[2.0, 4.0]], r_min=0, r_max=5, costs=True).save(path)
    out, _ = run(capsys, str(path), "ucrl", "--horizon", "100")
    assert "lowest average cost g*" in out
    found = learn(path, "ucrl", horizon=100, seed=0)
    cells = [line.split() for line in out.splitlines()]
    assert ["average", "cost", f"{-found.reward[-1] / 100:.6g}"] in cells
    assert ["lowest", "average", "cost", "g*", "2"] in cells
    out, _ = run(capsys, THREE, SCAL, "--horizon", "100", "--costs", "--json")
    shown, plain = json.loads(out), learn(THREE, SCAL, horizon=100, seed=0)
    assert shown["meta"]["costs"] is True
    assert shown["reward"] == plain.reward.tolist()
    assert shown["regret"] == plain.regret.tolist()


def test_a_seed_may_be_written_with_an_exponent(capsys):
    out, _ = run(capsys, THREE, SCAL, "--horizon", "100", "--seed", "1e3", "--json")
    assert json.loads(out)["meta"]["seed"] == 1000


def test_json_is_one_object_with_the_fields_of_a_run(capsys):
    out, err = run(capsys, THREE, SCAL, "--horizon", "1000", "--json")
    found, expected = json.loads(out), learn(THREE, SCAL, horizon=1000, seed=0)
    assert err == ""
    assert set(found) == {"t", "reward", "regret", "pseudo_regret", "span", "n_episodes", "episodes", "meta"}
    assert found["t"] == expected.t.tolist()
    assert found["regret"] == expected.regret.tolist()
    assert found["meta"]["agent"] == "scal[span_bound=2]"
    assert found["episodes"]["start"] == expected.episodes["start"].tolist()


def test_out_keeps_the_run_and_is_never_overwritten(capsys, tmp_path):
    folder = tmp_path / "run"
    out, _ = run(capsys, THREE, SCAL, "--horizon", "1000", "--out", str(folder))
    assert "written to" in out
    assert sorted(path.name for path in folder.iterdir()) == ["curve.parquet", "episodes.parquet", "meta.json"]
    np.testing.assert_array_equal(Run.load(folder).regret, learn(THREE, SCAL, horizon=1000, seed=0).regret)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    _, err = run(capsys, THREE, SCAL, "--horizon", "2000", "--out", str(folder), code=2)
    assert "not empty" in err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_plot_writes_a_figure(capsys, tmp_path, ending):
    path = tmp_path / f"figure.{ending}"
    run(capsys, THREE, "ucrl", "--horizon", "1000", "--plot", str(path))
    assert path.stat().st_size > 1000


def test_a_model_file_is_an_environment(capsys, tmp_path):
    path = tmp_path / "model.npz"
    MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]]).save(path)
    out, _ = run(capsys, str(path), "ucrl2", "--horizon", "100")
    assert "ucrl2 on model" in out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ((THREE, "scl[span_bound=2]"), "unknown agent 'scl'. Did you mean 'scal'?"),
        ((THREE, "scal"), "scal: span_bound must be given"),
        ((THREE, "scal[span_bund=2]"), "unknown parameter 'span_bund'. Did you mean 'span_bound'?"),
        ((THREE, "scal[span_bound=-1]"), "span_bound must be a number ≥ 0; got -1"),
        ((THREE, "scal[span_bound=nan]"), "span_bound must be a number ≥ 0; got nan"),
        ((THREE, "ucrl[delta=1]"), "delta must lie in (0, 1) or be 'rsqrt'; got 1"),
        ((THREE, "ucrl[delta=often]"), "delta must lie in (0, 1) or be 'rsqrt'; got 'often'"),
        (("four-state", "ucrl"), "unknown environment 'four-state'"),
        ((THREE, "ucrl", "--horizon", "0"), "horizon must be a whole number ≥ 1; got 0"),
        ((THREE, "ucrl", "--horizon", "1.5"), "horizon must be a whole number ≥ 1; got 1.5"),
        ((THREE, "ucrl", "--horizon", "many"), "--horizon must be a number"),
        ((THREE, "ucrl", "--seed", "0.5"), "--seed must be a whole number"),
        ((THREE, "ucrl", "--seed", "-1"), "--seed must be a whole number ≥ 0; got '-1'"),
        ((THREE, "ucrl", "--points", "0"), "points must be a whole number ≥ 1; got 0"),
        ((THREE, "ucrl", "--plot", "figure.gif"), "--plot must end in .png, .pdf or .svg"),
        ((THREE, "ucrl", "--plot", "/no/such/folder/f.png"), "--plot must be a file in a folder that exists"),
        (("missing.npz", "ucrl"), "missing.npz"),
    ],
)
def test_wrong_input_is_one_line(capsys, argv, words):
    out, err = run(capsys, *argv, code=2)
    assert out == ""
    assert err.startswith("spanrl: ")
    assert err.count("\n") == 1
    assert words in err


def test_list_shows_agents_and_their_parameters(capsys):
    assert cli.main(["list", "agents", "--json"]) == 0
    agents = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["agents"]}
    assert set(agents) >= {"scal", "ucrl", "ucrl2"}
    assert agents["scal"]["parameters"]["span_bound"] is None
    assert agents["ucrl"]["parameters"]["delta"] == 0.05
    assert cli.main(["list"]) == 0
    out = capsys.readouterr().out
    assert "knight-quest" in out
    assert "ucrl2" in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_an_interrupt_shows_and_keeps_what_was_done(tmp_path, number):
    folder = tmp_path / "run"
    command = ["learn", THREE, SCAL, "--horizon", "1e15", "--out", str(folder)]
    code = (
        "import sys, polars; from spanrl.cli import main; main(['--quiet', 'learn', 'two-state', 'scal[span_bound=2]', '--horizon', '10']);"
        "print('ready', flush=True); sys.exit(main(sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while process.stdout.readline().strip() != "ready":
        assert process.poll() is None, process.stderr.read()
    time.sleep(0.3)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted" in out
    kept = Run.load(folder)
    assert kept.interrupted
    assert 0 < kept.t[-1] < 10**15


def test_signals_are_given_back(capsys):
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    run(capsys, THREE, SCAL, "--horizon", "10")
    assert [signal.getsignal(number) for number in numbers] == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_a_figure_that_cannot_be_written_costs_the_figure_alone(capsys, tmp_path, json_too):
    full = tmp_path / "figure.png"
    full.symlink_to("/dev/full")
    out, err = run(capsys, THREE, SCAL, "--horizon", "100", "--plot", str(full), *json_too, code=1)
    assert (
        err == f"spanrl: learn: the figure {full} cannot be written (No space left on device). Give another --plot.\n"
    )
    regret = learn(THREE, SCAL, horizon=100, seed=0).regret[-1]
    assert (json.loads(out)["regret"][-1] == regret) if json_too else (f"{regret:.6g}" in out and str(full) not in out)


def test_a_run_that_cannot_be_saved_is_still_shown(capsys, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spanrl.learning.files.write_bytes", full)
    out, err = run(capsys, THREE, SCAL, "--horizon", "100", "--out", str(tmp_path / "run"), code=1)
    assert "cannot write" in err
    assert f"{learn(THREE, SCAL, horizon=100, seed=0).regret[-1]:.6g}" in out
    assert "written to" not in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers that send signals")
def test_an_interrupt_that_a_callback_has_swallowed_comes_again(monkeypatch):
    monkeypatch.setattr(output, "_AGAIN", 0.05)
    with output.terminable() as heard:
        for asked in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(asked)
            with pytest.raises(KeyboardInterrupt):
                time.sleep(5)
        heard()
        time.sleep(0.1)
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
