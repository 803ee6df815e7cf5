"""What goes wrong around an experiment: closed terminals, odd plugins, dying workers, files that are not ours."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from experiment_samples import (
    command,
    environment,
    learned,
    spanrl,
    started,
    tables,
    tiny,
    tiny_spec,
    wait_until,
    write_toml,
)

from spanrl.errors import OptionError, RunFileAccessError
from spanrl.experiments import process as processes
from spanrl.experiments.progress import Guarded, Tally
from spanrl.experiments.run import drive
from spanrl.experiments.spec import read_spec
from spanrl.experiments.store import Store

ONE = {"env": [{"id": "two-state"}], "agent": [{"id": "ucrl"}], "seeds": 1}
LONG = {**ONE, "env": [{"id": "three-state"}], "agent": [{"id": "scal[span_bound=5]"}], "horizon": 10**11}


def plugin(folder: Path, code: str, **changes: Any) -> Path:
    """Write a plugin and a spec that uses it; return the path of the spec."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mishap.py").write_text(
        f"import os, sys, subprocess\nfrom dataclasses import dataclass\nfrom spanrl import UCRL, register_agent\n{code}"
    )
    return write_toml(folder / "mine.toml", plugins=["mishap"], **{**ONE, **changes})


@pytest.fixture
def own_plugin(clean_registries: None) -> Iterator[None]:
    """Forget the plugin of a test that runs the command in this process."""
    yield
    sys.modules.pop("mishap", None)


class Broken:
    """A display on a terminal that has gone."""

    def __init__(self) -> None:
        self.calls = 0

    def _fail(self, *_: object) -> None:
        self.calls += 1
        raise BrokenPipeError

    update = say = _fail

    def close(self) -> None:
        self._fail()


def test_a_display_that_breaks_turns_silent() -> None:
    broken = Broken()
    shown = Guarded(broken)
    shown.say("a line")
    shown.say("another")
    shown.update(Tally("x"))
    shown.close()
    assert broken.calls == 1


def test_a_reader_that_leaves_does_not_stop_the_run(tmp_path: Path) -> None:
    """As with ``2>&1 | head -1``."""
    spec, out = write_toml(tmp_path / "tiny.toml"), tmp_path / "out"
    process = subprocess.Popen(
        command("run", spec, "--out", out, "--workers", "1"),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert process.stderr is not None
    process.stderr.readline()
    process.stderr.close()
    assert process.wait(timeout=120) == 0
    assert tables(out) == learned(read_spec(tiny()))


def test_a_terminal_that_closes_is_an_orderly_end(tmp_path: Path) -> None:
    """SIGHUP reaches driver and workers, and what is said cannot be seen any more."""
    spec, out = write_toml(tmp_path / "long.toml", **LONG), tmp_path / "out"
    with started("run", spec, "--out", out, "--workers", "1", "--checkpoint-every", "0.2") as process:
        wait_until(lambda: list(out.rglob("*.ckpt")))
        assert process.stderr is not None
        process.stderr.close()
        process.stderr = None
        os.killpg(process.pid, signal.SIGHUP)
        assert process.wait(timeout=30) == 130
    assert not (out / "failed").exists()


def test_a_spec_of_the_user_is_not_overwritten(tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    spec = write_toml(tmp_path / "spec.toml", **ONE)
    before = spec.read_bytes()
    code, _, err = run("run", spec, "--out", tmp_path)
    assert (code, spec.read_bytes()) == (2, before)
    assert "is no experiment of ours and not an empty folder" in err
    assert [path.name for path in tmp_path.iterdir()] == ["spec.toml"]


@pytest.mark.parametrize("out", ["", None])
def test_no_directory_at_all(out: Any) -> None:
    with pytest.raises(OptionError, match="run: the directory must be a path; got"):
        drive(tiny_spec(**ONE), out=out)


def test_the_stored_spec_is_a_spec(tmp_path: Path) -> None:
    out = tmp_path / "out"
    drive(tiny_spec(**ONE), out=out)
    assert drive(read_spec(out / "spec.toml"), out=out).computed == 0


def test_a_line_that_was_cut_is_the_end_of_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys; sys.stdin.readline(); print('{\"event\": \"mov', end='', flush=True)"
    real = subprocess.Popen
    monkeypatch.setattr(
        processes.subprocess, "Popen", lambda argv, **options: real([sys.executable, "-c", code], **options)
    )
    inbox: SimpleQueue[Any] = SimpleQueue()
    process = processes.Process("no_module", {"do": "set"}, inbox)
    assert inbox.get(timeout=30) == (process, None)
    process.end()


def test_a_process_that_a_plugin_leaves_behind_holds_nobody_up(tmp_path: Path) -> None:
    code = """
@dataclass(frozen=True)
class Leaves:
    x: int = 0

    def start(self, info, rng):
        subprocess.Popen(["sleep", "60"])
        return UCRL().start(info, rng)


register_agent("leaves", Leaves, summary="For a test.")
"""
    spec = plugin(tmp_path, code, agent=[{"id": "leaves"}], horizon=100)
    done = subprocess.run(
        command("run", spec, "--out", tmp_path / "out"),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=45, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 0


@pytest.mark.usefixtures("own_plugin")
def test_a_worker_that_ends_by_itself_is_told_so(tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    code = """
@dataclass(frozen=True)
class Pipes:
    x: int = 0

    def start(self, info, rng):
        print("I am off", file=sys.stderr, flush=True)
        os._exit(7)


register_agent("ends", Pipes, summary="For a test.")
"""
    spec, out = plugin(tmp_path, code, agent=[{"id": "ends"}]), tmp_path / "out"
    code, _, err = run("run", spec, "--out", out)
    assert code == 1
    assert "failed: the worker process ended with exit code 7, saying 'I am off' (3 times)" in err


@pytest.mark.usefixtures("own_plugin")
def test_a_plugin_that_workers_cannot_import(tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    """Each cell fails with the reason; none is tried again."""
    code = """
if getattr(sys.modules["__main__"].__spec__, "name", "") == "spanrl.experiments.worker":
    raise RuntimeError("not here")
register_agent("same", UCRL, summary="For a test.")
"""
    spec, out = plugin(tmp_path, code, agent=[{"id": "same"}], seeds=3), tmp_path / "out"
    code, _, err = run("run", spec, "--out", out, "--workers", 1)
    assert code == 1
    assert err.count("'mishap' cannot be imported (RuntimeError: not here)") >= 3
    assert "tried again" not in err


@pytest.mark.usefixtures("own_plugin")
def test_a_state_that_cannot_be_set_begins_anew(tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    code = """
class Moody:
    def __init__(self, learner):
        self.inner, self.act, self.observe = learner, learner.act, learner.observe

    def get_state(self):
        return self.inner.get_state()

    def set_state(self, state):
        raise KeyError("not today")


@dataclass(frozen=True)
class Mood:
    x: int = 0

    def start(self, info, rng):
        return Moody(UCRL().start(info, rng))


register_agent("moody", Mood, summary="For a test.")
"""
    spec, out = plugin(tmp_path, code, agent=[{"id": "moody"}]), tmp_path / "out"
    assert run("run", spec, "--out", out)[0] == 0
    plugin(tmp_path, code, agent=[{"id": "moody"}], horizon=3000)
    exit_code, _, err = run("run", spec, "--out", out)
    assert exit_code == 0
    assert "it cannot be resumed (KeyError: 'not today'). The cell begins anew." in err


def test_checkpoints_of_a_changed_plugin_are_not_resumed(tmp_path: Path) -> None:
    """Also where the change is in a module that the plugin imports, and that late."""
    code = """
@dataclass(frozen=True)
class Same:
    x: int = 0

    def start(self, info, rng):
        import beside
        return beside.UCRL().start(info, rng)


register_agent("same", Same, summary="For a test.")
"""
    (tmp_path / "beside.py").write_text("from spanrl import UCRL\n")
    spec, out = plugin(tmp_path, code, agent=[{"id": "same"}]), tmp_path / "out"
    assert spanrl("run", spec, "--out", out).returncode == 0
    (tmp_path / "beside.py").write_text("from spanrl import UCRL  # changed\n")
    plugin(tmp_path, code, agent=[{"id": "same"}], horizon=3000)
    done = spanrl("run", spec, "--out", out)
    assert (done.returncode, "with other versions of spanrl, its plugins" in done.stderr) == (0, True)
    (meta,) = out.rglob("meta.json")
    assert json.loads(meta.read_text())["run"]["resumed_at"] == []


def test_a_module_of_the_current_directory_shadows_nothing(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("raise RuntimeError('the wrong one')\n")
    spec = write_toml(tmp_path / "specs" / "one.toml", **ONE)
    process = subprocess.run(
        [sys.executable, "-P", *command("run", spec, "--out", tmp_path / "out")[1:]],
        capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False, env=environment(),
    )  # fmt: skip
    assert process.returncode == 0, process.stderr


def test_cells_of_another_format_version_are_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    drive(tiny_spec(**ONE), out=out)
    before = tables(out)
    monkeypatch.setattr("spanrl.learning.files.VERSION", 2)
    with pytest.raises(RunFileAccessError, match="has format version 1, this spanrl reads version 2"):
        drive(tiny_spec(**ONE), out=out)
    assert tables(out) == before
    assert not (out / "set-aside").exists()


def test_the_shorter_cell_is_gone_once_the_longer_one_is_there(tmp_path: Path) -> None:
    spec, store = tiny_spec(**ONE), Store(tmp_path / "out")
    store.open(spec)
    (cell,) = spec.cells()
    for content in (b"short", b"long"):
        store.adopt(cell.folder, store.write_temporary({"curve.parquet": content}))
    assert [path.read_bytes() for path in store.dir.rglob("*.parquet")] == [b"long"]
    store.close()


def test_a_full_disk_keeps_nobody_locked_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    store = Store(tmp_path / "out")
    store.dir.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        store.lock.take()
    store.lock.release()
    again = Store(tmp_path / "out")
    again.lock.take()
    assert again.lock.holder() is not None
    again.lock.release()


@pytest.mark.parametrize("kind", ["agent", "env"])
def test_what_the_script_itself_registers(tmp_path: Path, kind: str) -> None:
    made: dict[str, Callable[..., str]] = {
        "agent": lambda: 'spanrl.register_agent("mine", type("Mine", (spanrl.UCRL,), {}), summary="Mine.")',
        "env": lambda: 'spanrl.register_env("mine", lambda: spanrl.make("two-state"), summary="Mine.")',
    }
    script = tmp_path / "script.py"
    entries = {"env": [{"id": "two-state"}], "agent": [{"id": "ucrl"}], kind: [{"id": "mine"}]}
    script.write_text(
        f"import spanrl\n{made[kind]()}\nspanrl.run_experiment({ {**ONE, 'name': 'a', 'horizon': 10, **entries}!r}, out='out')\n"
    )
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
        env=environment(),
    )
    assert f"run: the {kind} 'mine' is registered by the script, which workers do not import." in done.stderr
    assert "name that in plugins." in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_folder_of_another_cell_is_set_aside_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, spec = tmp_path / "out", tiny_spec(**{**ONE, "seeds": 2})
    drive(spec, out=out, workers=1)
    first, second = (out / "cells" / cell.folder for cell in spec.cells())
    before = tables(out)
    swap = tmp_path / "swap"
    for old, new in ((first, swap), (second, first), (swap, second)):
        old.rename(new)
    assert drive(spec, out=out, workers=1, show=True).computed == 2
    assert f"{first} holds two-state/ucrl/001, not two-state/ucrl/000. It was set aside as" in capsys.readouterr().err
    assert tables(out) == before
