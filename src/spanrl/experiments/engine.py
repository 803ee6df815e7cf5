"""What the driver asks of an engine, and what an engine reports: cells go out as jobs, events come back.

An engine computes cells wherever it likes, any number at a time and in any order; the bytes of a cell do not depend on it. It never
writes into ``cells/``: the driver alone does.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol


class Job(NamedTuple):
    """One cell to compute: texts and numbers alone, so that it can be sent anywhere."""

    id: str
    folder: str
    env: str  # the text form, or the path of a model
    agent: str
    seed: int
    horizon: int
    points: int
    sha256: str = ""  # of the model file


class Moved(NamedTuple):
    """A cell has done ``t`` steps; ``resumed``: it went on from there."""

    id: str
    t: int
    resumed: bool = False


class Kept(NamedTuple):
    """The checkpoint of a cell, from a worker that does not see the directory."""

    id: str
    checkpoint: bytes


class Finished(NamedTuple):
    """A cell is computed; its files lie in a folder under ``tmp/``, or come as bytes with its final checkpoint."""

    id: str
    files: Path | dict[str, bytes]


class Failed(NamedTuple):
    """A cell raised an error: one line, and the whole text."""

    id: str
    reason: str
    text: str
    disk_full: bool = False


class Lost(NamedTuple):
    """The worker of a cell has gone, through no fault of the cell as far as we know: it may be tried again."""

    id: str
    why: str


class Stopped(NamedTuple):
    """A cell was stopped on request; its checkpoint is written."""

    id: str


class Said(NamedTuple):
    """A worker has something to tell."""

    line: str


def overdue(cell: str, limit: float, text: str = "") -> Failed:
    """Return the failure of a cell that took longer than the ``limit`` in seconds."""
    reason = (
        f"it was not finished after {limit:g} seconds (--cell-timeout), so it was ended. "
        "--retry-failed with a longer limit resumes it from its last checkpoint"
    )
    return Failed(cell, reason, text)


def is_full(error: BaseException) -> bool:
    """Tell whether an error says that the disk, or what one may use of it, is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


Event = Moved | Kept | Finished | Failed | Lost | Stopped | Said


class Engine(Protocol):
    """Where cells are computed."""

    @property
    def slots(self) -> int:
        """How many cells can be computed at a time, now."""

    def start(self, job: Job, checkpoint: Path | None) -> None:
        """Begin a cell, from its checkpoint where there is one. Called only while fewer than ``slots`` are under way."""

    def events(self, timeout: float) -> Sequence[Event]:
        """Return what has happened, waiting at most ``timeout`` seconds for the first of it."""

    def stop(self) -> None:
        """Ask every cell under way to write its checkpoint and stop; ``Stopped`` events follow."""

    def close(self) -> None:
        """End all workers now, whatever they do."""
