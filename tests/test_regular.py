"""A pipe in the place of a file is refused, not waited for."""

import os
from pathlib import Path

import pytest

from spanrl import MDP
from spanrl.errors import ModelFileError
from spanrl.learning.snapshot import check_seal
from spanrl.regular import regular_bytes

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
