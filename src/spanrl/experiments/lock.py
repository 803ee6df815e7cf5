"""One driver per directory: a lock that the system gives back when its holder ends, however it ends.

The file is opened where it lies, never through a symbolic link, and written to only if it is empty or holds what a driver has noted.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from spanrl.errors import DirectoryInUseError, OptionError

if os.name == "posix":
    import fcntl

    def _try_lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

else:
    import msvcrt

    def _try_lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]


_TRIES = 4
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # nor is a pipe waited for
_BEGINNING = b'{"pid": '
_TAKEN = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


class Lock:
    """The file ``lock``; who holds it is written in it."""

    def __init__(self, path: Path, who: str = "run") -> None:
        """Point at the file; ``who`` speaks in errors."""
        self.path, self._who = path, who
        self._handle = -1

    def take(self) -> None:
        """Take the lock, or raise a DirectoryInUseError that says who has it, or an OptionError where the file is not ours."""
        handle = self._open()
        for patience in reversed(range(_TRIES)):
            try:
                _try_lock(handle)
                break
            except OSError as error:
                if patience and error.errno in _TAKEN:  # perhaps only a look of spanrl status
                    time.sleep(0.1)
                    continue
                named = _named(handle)
                os.close(handle)
                if error.errno not in _TAKEN:
                    raise
                raise DirectoryInUseError(
                    f"{self._who}: {self.path.parent} is in use by another spanrl {self._who}{named}. "
                    "Wait for it, stop it, or give another --out."
                ) from None
        if not _is_ours(handle):
            os.close(handle)
            raise self._foreign("something else than a lock of ours")
        self._handle = handle
        self.note([])

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o644)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._foreign("a symbolic link, which is not followed") from None
            if error.errno in (errno.EISDIR, errno.ENXIO):
                raise self._foreign("not a file") from None
            raise

    def _foreign(self, what: str) -> OptionError:
        return OptionError(f"{self._who}: {self.path} is {what}. Move it away, or give another --out.")

    def note(self, running: Iterable[str]) -> None:
        """Write down who holds the lock and which cells are under way, for whoever looks."""
        told = {"pid": os.getpid(), "host": socket.gethostname(), "running": list(running)}
        with suppress(OSError):  # it may go unwritten where the disk is full
            os.truncate(self._handle, 0)
            os.pwrite(self._handle, json.dumps(told).encode(), 0)

    def release(self) -> None:
        """Give the lock back; the file stays, empty."""
        if self._handle >= 0:
            with suppress(OSError):
                os.truncate(self._handle, 0)
            os.close(self._handle)
            self._handle = -1

    def holder(self) -> dict[str, Any] | None:
        """Return what the driver that holds the lock has noted, {} where it does not tell, None where it is free."""
        try:
            handle = os.open(self.path, os.O_RDONLY | _NO_LINK)
        except OSError:
            return None
        try:
            _try_lock(handle)
        except OSError as error:
            return _read(handle) if error.errno in _TAKEN else None
        else:
            return None
        finally:
            os.close(handle)


def _is_ours(handle: int) -> bool:
    """Tell whether a file is empty or holds what a driver has noted, perhaps cut when that was killed; and has no other name."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        return False
    content = os.pread(handle, found.st_size, 0)
    try:
        told = json.loads(content)
    except ValueError:
        return content.startswith(_BEGINNING) or _BEGINNING.startswith(content)  # cut
    return isinstance(told, dict) and told.keys() == {"pid", "host", "running"}


def _named(handle: int) -> str:
    told = _read(handle)
    return f" (process {told['pid']} on {told['host']})" if told else ""


def _read(handle: int) -> dict[str, Any]:
    """Return what the holder has noted; nothing where that cannot be read."""
    try:
        told = json.loads(os.pread(handle, os.fstat(handle).st_size, 0))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) and {"pid", "host"} <= told.keys() else {}
