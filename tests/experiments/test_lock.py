"""The lock of a directory: one holder, given back however that ends, and no other file is touched."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from experiment_samples import tiny_spec, tree

from spanrl.errors import DirectoryInUseError, OptionError
from spanrl.experiments.lock import Lock
from spanrl.experiments.store import Store

HOLDER = (
    "import sys, time; from pathlib import Path; from spanrl.experiments.lock import Lock;"
    "Lock(Path(sys.argv[1])).take(); print('held', flush=True); time.sleep(60)"
)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Return another process that holds the lock ``tmp_path/lock``."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "lock")], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_holder_is_refused_by_name(tmp_path: Path, held: subprocess.Popen[str]) -> None:
    lock = Lock(tmp_path / "lock")
    with pytest.raises(
        DirectoryInUseError,
        match=rf"in use by another spanrl run \(process {held.pid} on {socket.gethostname()}\)\. Wait",
    ):
        lock.take()
    assert lock.holder() == {"pid": held.pid, "host": socket.gethostname(), "running": []}


def test_a_second_holder_in_the_same_process_is_refused(tmp_path: Path) -> None:
    first, second = Lock(tmp_path / "lock"), Lock(tmp_path / "lock")
    first.take()
    with pytest.raises(DirectoryInUseError, match=f"process {os.getpid()} "):
        second.take()
    first.release()
    second.take()
    second.release()


def test_the_system_gives_the_lock_back_when_its_holder_is_killed(tmp_path: Path, held: subprocess.Popen[str]) -> None:
    lock = Lock(tmp_path / "lock")
    held.send_signal(signal.SIGKILL)
    held.wait()
    assert json.loads(lock.path.read_text())["pid"] == held.pid, "its name is still there"
    assert lock.holder() is None, "which does not count"
    lock.take()
    assert json.loads(lock.path.read_text())["pid"] == os.getpid()
    lock.release()


def test_who_holds_it(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "lock")
    assert lock.holder() is None
    lock.take()
    told = {"pid": os.getpid(), "host": socket.gethostname()}
    assert Lock(tmp_path / "lock").holder() == told | {"running": []}
    lock.note(["a/b/000", "a/b/001"])
    assert Lock(tmp_path / "lock").holder() == told | {"running": ["a/b/000", "a/b/001"]}
    lock.path.write_text("[]")
    assert Lock(tmp_path / "lock").holder() == {}
    with pytest.raises(DirectoryInUseError, match=r"in use by another spanrl run\. Wait"):
        Lock(tmp_path / "lock").take()
    lock.release()
    assert lock.holder() is None
    assert lock.path.read_bytes() == b""


def test_a_look_does_not_take_the_lock(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "lock")
    lock.path.touch()
    assert lock.holder() is None
    lock.take()
    lock.release()


def test_a_look_that_coincides_is_waited_for(
    tmp_path: Path, held: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that holds the lock for a moment, as spanrl status does, keeps no driver out."""
    waited = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        held.kill()  # the moment is over
        held.wait()

    monkeypatch.setattr("spanrl.experiments.lock.time.sleep", wait)
    lock = Lock(tmp_path / "lock")
    lock.take()
    lock.release()
    assert waited == [0.1]


@pytest.mark.parametrize("target", ["thesis.tex", "nothing"])
def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "lock").symlink_to(tmp_path / target)
    with pytest.raises(
        OptionError, match=r"out/lock is a symbolic link, which is not followed\. Move it away, or give"
    ):
        Store(tmp_path / "out").open(tiny_spec())
    assert Store(tmp_path / "out").lock.holder() is None
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["lock", "out", "thesis.tex"]
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_a_file_of_another_in_the_place_of_the_lock_is_left_alone(tmp_path: Path) -> None:
    for content in ("mine", '{"pip": 3}', "{}"):
        (tmp_path / "lock").write_text(content)
        with pytest.raises(OptionError, match=r"lock is something else than a lock of ours\. Move it away, or give"):
            Store(tmp_path).open(tiny_spec())
        assert tree(tmp_path) == {"lock": content.encode()}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_in_the_place_of_the_lock_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    with pytest.raises(OptionError, match="something else than a lock of ours"):
        Lock(tmp_path / "lock").take()
    assert Lock(tmp_path / "lock").holder() is None


@pytest.mark.parametrize("content", ['{"pid": 1, "host": "h", "running": ["a/b', '{"pi', ""])
def test_the_note_of_a_killed_driver_may_be_cut(tmp_path: Path, content: str) -> None:
    (tmp_path / "lock").write_text(content)
    lock = Lock(tmp_path / "lock")
    lock.take()
    assert json.loads(lock.path.read_text())["pid"] == os.getpid()
    lock.release()


@pytest.mark.parametrize("content", [b'{"pid": 1, "precious": true}', b"precious"])
def test_what_only_looks_like_a_lock_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lock").write_bytes(content)
    with pytest.raises(OptionError, match="something else than a lock of ours"):
        Lock(tmp_path / "lock").take()
    assert (tmp_path / "lock").read_bytes() == content


def test_a_lock_with_another_name_is_left_alone(tmp_path: Path) -> None:
    note = json.dumps({"pid": 1, "host": "h", "running": []})
    (tmp_path / "other").write_text(note)
    os.link(tmp_path / "other", tmp_path / "lock")
    with pytest.raises(OptionError, match="something else than a lock of ours"):
        Lock(tmp_path / "lock").take()
    assert (tmp_path / "other").read_text() == note


def test_a_directory_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(OptionError, match=r"lock is not a file\. Move it away"):
        Lock(tmp_path / "lock").take()
