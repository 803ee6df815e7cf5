"""Reading files that anybody may have put there: a pipe or a device in the place of a file is refused, not waited for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


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
