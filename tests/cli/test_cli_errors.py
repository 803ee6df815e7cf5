"""Wrong input: exit code 2, one line on standard error, nothing on standard output, no traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spanrl
from spanrl import MDP, BoundedMDP, cli
from spanrl.errors import ModelFileError, NotConvergedError, UnknownNameError

Fail = Callable[..., str]


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanrl.kernels.cache.is_compiled", lambda task: True)


@pytest.fixture
def fail(capsys: pytest.CaptureFixture[str]) -> Fail:
    def call(*argv: str, code: int = 2) -> str:
        """Run the command, which must fail as promised; return its one line."""
        found = cli.main(list(argv))
        out, err = capsys.readouterr()
        assert found == code
        assert out == ""
        assert err.startswith("spanrl: ")
        assert err.endswith("\n")
        assert err.count("\n") == 1
        assert "Traceback" not in err
        return err

    return call


# --- usage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("frobnicate",), "No such command 'frobnicate'"),
        (("plan",), "Missing argument 'MODEL'"),
        (("analyse",), "Missing argument 'MODEL'"),
        (("plan", "two-state", "more"), "unexpected extra argument"),
        (("plan", "two-state", "--frob"), "No such option: --frob"),
        (("--frob",), "No such option: --frob"),
        (("plan", "two-state", "--tol"), "requires an argument"),
        (("list", "cats"), "unknown kind of thing 'cats'"),
        (("analyse", "two-state", "--diameter", "maybe"), "--diameter must be auto, yes or no; got 'maybe'"),
    ],
)
def test_usage(fail: Fail, argv: tuple[str, ...], words: str) -> None:
    assert words in fail(*argv)


# --- options of plan ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--span-bound", "-1", "the span bound must be a number ≥ 0 (inf for none); got -1.0"),
        ("--span-bound", "nan", "the span bound must be a number ≥ 0 (inf for none); got nan"),
        ("--span-bound", "-inf", "the span bound must be a number ≥ 0"),
        ("--span-bound", "five", "--span-bound must be a number such as 0.75, 1e7 or inf; got 'five'"),
        ("--span-bound", "", "--span-bound must be a number"),
        ("--tol", "0", "tol must be a finite number > 0; got 0.0"),
        ("--tol", "-1e-6", "tol must be a finite number > 0; got -1e-06"),
        ("--tol", "nan", "tol must be a finite number > 0; got nan"),
        ("--tol", "inf", "tol must be a finite number > 0; got inf"),
        ("--tol", "tiny", "--tol must be a number"),
        (
            "--method",
            "simplex",
            "method must be one of auto, value-iteration, modified-policy-iteration, policy-iteration",
        ),
        ("--sense", "hopeful", "got 'hopeful'"),
        ("--policy", "lazy", "policy must be 'mixture' or 'greedy'; got 'lazy'"),
        ("--max-sweeps", "0", "--max-sweeps must be a whole number ≥ 1; got 0"),
        ("--max-sweeps", "2.5", "--max-sweeps must be a whole number ≥ 1; got 2.5"),
        ("--max-sweeps", "nan", "--max-sweeps must be a whole number ≥ 1; got nan"),
        ("--max-sweeps", "inf", "--max-sweeps must be a whole number ≥ 1; got inf"),
        ("--max-sweeps", "many", "--max-sweeps must be a number"),
        ("--memory", "much", "--memory must be a number"),
        ("--memory", "-1", "memory must be a number of bytes ≥ 0; got -1"),
    ],
)
def test_bad_options(fail: Fail, option: str, value: str, words: str) -> None:
    assert words in fail("plan", "two-state", option, value)
    assert words in fail("plan", "two-state", option, value, "--json")


def test_policy_iteration_with_a_bound(fail: Fail) -> None:
    assert "without a span bound" in fail("plan", "two-state", "--span-bound", "1", "--method", "policy-iteration")


@pytest.mark.parametrize(
    "argv",
    [("--span-bound", "-1"), ("--tol", "0"), ("--method", "simplex"), ("--sense", "hopeful"), ("--policy", "lazy")],
)
def test_wrong_options_are_one_line_before_anything_is_compiled(
    fail: Fail, monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...]
) -> None:
    monkeypatch.setattr("spanrl.kernels.cache.is_compiled", lambda task: False)
    assert "compiling" not in fail("plan", "two-state", *argv)


# --- environments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("two-stat", "unknown environment 'two-stat'. Did you mean 'two-state'?"),
        ("xyzzy", "unknown environment 'xyzzy'. Known: "),
        ("three-state[detla=0.1]", "three-state: unknown parameter 'detla'. Did you mean 'delta'?"),
        ("three-state[delta=2]", "three-state: delta must lie in [0, 1); got 2.0"),
        ("three-state[delta=word]", "three-state: delta must be a number; got 'word'"),
        ("three-state[delta]", "must read key=value"),
        ("three-state[delta=0.1", "must read name or name[key=value,...]"),
        ("three-state[delta=0.5_]", "three-state: delta must be a number|a value must be a number"),
        ("riverswim[n_states=1_]", "n_states must be a whole number|a value must be a number"),
        ("", "must read name or name[key=value,...]"),
        ("two state\nand more", "must read name"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "analyse"])
def test_bad_environments(fail: Fail, command: str, model: str, words: str) -> None:
    line = fail(command, model)
    assert any(choice in line for choice in words.split("|"))


# --- model files ----------------------------------------------------------------------------------------------------


def truncated(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])


def flipped(path: Path) -> None:
    """Flip a bit of a number inside an uncompressed array."""
    with np.load(path) as data:
        arrays = dict(data)
    np.savez(path, **arrays)
    raw = bytearray(path.read_bytes())
    raw[bytes(raw).index(arrays["prob"].tobytes()) + 3] ^= 1
    path.write_bytes(raw)


def flipped_compressed(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    at = raw.index(b"prob.npy") + len("prob.npy") + 25
    raw[at : at + 8] = bytes(8)
    path.write_bytes(raw)


def changed(**changes: Any) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with np.load(path) as data:
            arrays = dict(data) | changes
        np.savez(path, **{name: array for name, array in arrays.items() if array is not None})

    return change


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (truncated, "is not a model file or is damaged"),
        (flipped, "is damaged"),
        (flipped_compressed, "is damaged"),
        (changed(prob=None), "is damaged: 'prob' is missing"),
        (changed(prob=np.array([0.5, 1.0, 1.0, 1.0])), "is damaged: MDP: P[s='s0', a='a0'] sums to 0.5"),
        (changed(succ=np.array([0, 1, 0, 7])), "is damaged: MDP: successor 7"),
        (changed(reward=np.array([0.0, 2.0, 0.0, 0.0])), "is damaged: MDP: r[s='s0', a='a1'] is 2, must lie in"),
        (changed(start=np.array([0.7, 0.7])), "is damaged: MDP: start must be"),
        (changed(version=np.array(99)), "has format version 99, this spanrl reads version 1"),
        (changed(format=np.array("other")), "is not a model file (its format is 'other')"),
        (changed(format=np.array("spanrl-other")), "kind 'other'"),
        (changed(format=None), "is not a model file"),
        (lambda path: path.write_text("a text\n"), "is not a model file"),
        (lambda path: path.write_bytes(b""), "is not a model file"),
        (lambda path: path.unlink(), "no file"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["plan", "analyse"])
def test_bad_files(fail: Fail, tmp_path: Path, command: str, damage: Callable[[Path], object], words: str) -> None:
    path = tmp_path / "m.npz"
    spanrl.make("two-state").mdp.save(path)
    damage(path)
    line = fail(command, str(path), "--json")
    assert words in line
    assert str(path) in line


def test_a_folder_and_an_npy(fail: Fail, tmp_path: Path) -> None:
    assert "is not a model file" in fail("plan", str(tmp_path))
    np.save(tmp_path / "a.npy", np.arange(3))
    assert "is not a model file" in fail("plan", str(tmp_path / "a.npy"))


def test_a_file_name_of_several_lines_is_still_one_line(fail: Fail, tmp_path: Path) -> None:
    assert "no file" in fail("plan", str(tmp_path / "two\nlines.npz"))


def test_analyse_refuses_bounded_models(fail: Fail, tmp_path: Path) -> None:
    path = str(tmp_path / "b.npz")
    BoundedMDP.l1_ball([[[1.0]]], 0.1, 0.0, 1.0).save(path)
    assert "is a bounded model, which is a set of MDPs; analyse takes one MDP. Use plan." in fail("analyse", path)


# --- work that fails ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_not_converged(fail: Fail, json: tuple[str, ...]) -> None:
    argv = ("plan", "counterexample-cycle", "--span-bound", "0.4", "--max-sweeps", "5", *json)
    line = fail(*argv, code=1)
    assert "not converged after " in line
    assert "max_sweeps" in line


def test_multichain(fail: Fail, tmp_path: Path) -> None:
    path = str(tmp_path / "m.npz")
    MDP.from_dense(np.eye(2)[:, None, :], [[0.25], [1.0]]).save(path)
    line = fail("plan", path, code=1)
    assert "the optimal gain is not constant: at least 1 from state 1, at most 0.25 from state 0" in line


def test_interrupted(fail: Fail, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("spanrl.planning.solve.solve", interrupt)
    assert "interrupted" in fail("plan", "knight-quest", code=130)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            MemoryError("Unable to allocate 64.0 GiB for an array"),
            "not enough memory for this (Unable to allocate 64.0 GiB",
        ),
        (MemoryError(), "not enough memory for this (no size was told). Run again with --debug"),
        (OSError(5, "Input/output error", "/a/file"), "/a/file: Input/output error."),
    ],
)
@pytest.mark.parametrize(
    ("function", "argv"),
    [
        ("spanrl.planning.solve.solve", ("plan", "knight-quest")),
        ("spanrl.planning.analyse.analyse", ("analyse", "two-state")),
        ("spanrl.learning.learn.learn", ("learn", "two-state", "ucrl")),
        ("spanrl.models.mdp.MDP.load", ("learn", "m.npz", "ucrl")),
    ],
)
def test_what_the_system_refuses_is_one_line(
    fail: Fail, monkeypatch: pytest.MonkeyPatch, function: str, argv: tuple[str, ...], error: Exception, words: str
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(function, refuse)
    assert words in fail(*argv, code=1)


# --- --debug --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (("--debug", "plan", "two-stat"), UnknownNameError),
        (("plan", "two-stat", "--debug"), UnknownNameError),
        (("plan", "/no/such/file.npz", "--debug"), ModelFileError),
        (("plan", "counterexample-cycle", "--span-bound", "0.4", "--max-sweeps", "5", "--debug"), NotConvergedError),
    ],
)
def test_debug_raises(argv: tuple[str, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        cli.main(list(argv))
