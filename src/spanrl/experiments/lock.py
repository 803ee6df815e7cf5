"""One driver a directory: a lock that the system gives back when its holder ends, however it ends."""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from spanrl.errors import DirectoryInUseError

if os.name == "posix":
    import fcntl

    def _try_lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

else:
    import msvcrt

    def _try_lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]


_TRIES = 4
_TAKEN = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


class Lock:
    """The file ``lock``; who holds it is written in it."""

    def __init__(self, path: Path, who: str = "run") -> None:
        """Point at the file; ``who`` speaks in errors."""
        self.path, self._who = path, who
        self._handle = -1

    def take(self) -> None:
        """Take the lock, or raise a DirectoryInUseError that says who has it."""
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        for patience in reversed(range(_TRIES)):
            try:
                _try_lock(handle)
                break
            except OSError as error:
                if patience and error.errno in _TAKEN:  # perhaps only a look of spanrl status
                    time.sleep(0.1)
                    continue
                os.close(handle)
                if error.errno not in _TAKEN:
                    raise
                raise DirectoryInUseError(
                    f"{self._who}: {self.path.parent} is in use by another spanrl {self._who}{self._named()}. "
                    "Wait for it, stop it, or give another --out."
                ) from None
        self._handle = handle
        self.note([])

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
        """Return what the driver that holds the lock has noted, {} where it does not tell, None where nobody holds it."""
        try:
            handle = os.open(self.path, os.O_RDONLY)
        except OSError:
            return None
        try:
            _try_lock(handle)
        except OSError as error:
            return self._read() if error.errno in _TAKEN else None
        else:
            return None
        finally:
            os.close(handle)

    def _named(self) -> str:
        told = self._read()
        return f" (process {told['pid']} on {told['host']})" if told else ""

    def _read(self) -> dict[str, Any]:
        try:
            told = json.loads(self.path.read_text())
        except (OSError, ValueError):
            return {}
        return told if isinstance(told, dict) and {"pid", "host"} <= told.keys() else {}
