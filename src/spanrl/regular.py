"""Reading files that anybody may have put there: a pipe or a device in the place of a file is refused, not waited for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def regular_bytes(path: Path) -> bytes:
    """Return the content of a regular file; anything else raises an OSError."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        return stream.read()
