"""A pipe in the place of a file is refused, not waited for."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from spanrl import MDP
from spanrl.errors import ModelFileError
from spanrl.learning.snapshot import check_seal
from spanrl.regular import regular_bytes, written_whole

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    assert regular_bytes(tmp_path / "file") == b"content"


@pytest.mark.parametrize("read", [regular_bytes, check_seal])
def test_a_pipe_is_no_file(read, pipe: Path) -> None:
    with pytest.raises(OSError, match=r"Not a regular file.*pipe"):
        read(pipe)


@pytest.mark.parametrize("digest", [None, "0" * 64])
def test_a_pipe_is_no_model(digest: str | None, pipe: Path) -> None:
    with pytest.raises(ModelFileError, match=r"pipe is not a model file that can be read \(Not a regular file\)"):
        MDP.load(pipe, sha256=digest)


def test_a_file_is_there_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with suppress(KeyboardInterrupt), written_whole(path) as stream:
        stream.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    with written_whole(path) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
