"""Files as they should be: a pipe or a device in place of one is refused, not waited for; what is written is there whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def regular_bytes(path: Path) -> bytes:
    """Return the content of a regular file; anything else raises an OSError."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        number, what = (
            (errno.EISDIR, os.strerror(errno.EISDIR)) if stat.S_ISDIR(mode) else (errno.EINVAL, "Not a regular file")
        )
        raise OSError(number, what, str(path))
    with os.fdopen(handle, "rb") as stream:
        return stream.read()


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """Provide a stream for the content of ``path``, written under another name and renamed once it is on the disk."""
    temporary = path.with_name(f".{path.name[:40]}.tmp-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:  # also an interrupt leaves no half file behind
        temporary.unlink(missing_ok=True)
