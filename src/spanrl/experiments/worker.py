"""A worker process of the local engine: ``python -m spanrl.experiments.worker``.

It is told its settings first, then jobs, and tells what becomes of them (:mod:`spanrl.experiments.process`).
"""

from __future__ import annotations

import traceback
from pathlib import Path

from spanrl.errors import OptionError
from spanrl.experiments.cell import StopCell, compute
from spanrl.experiments.engine import Job, is_full
from spanrl.experiments.process import Pipes, connect
from spanrl.experiments.spec import import_plugins
from spanrl.experiments.store import Store
from spanrl.experiments.warming import is_warm, warm_up
from spanrl.regular import regular_bytes

_TELL_EVERY = 0.2  # seconds
_LOAD = 10  # steps
_LONGEST_LINE, _LONGEST_TEXT = 500, 100_000


class Worker:
    """The loop of one process: a job at a time."""

    def __init__(self, ends: Pipes) -> None:
        """Wait for the settings."""
        self._ends = ends
        settings = ends.inbox.get()
        self._store = Store(settings["dir"])
        self._every = float(settings["checkpoint_every"])
        self._plugins = settings["plugins"], settings["folders"]
        self._agents: list[str] = settings["agents"]
        self._job: Job
        self._broken: OptionError | None = None

    def serve(self) -> None:
        """Do what comes, until the driver ends this process."""
        try:
            import_plugins(*self._plugins)
        except OptionError as error:
            self._broken = error  # every cell says so
        if is_warm(self._agents):
            warm_up(self._agents, _LOAD)  # kernels are loaded: the first cell's seconds are its own
        while True:
            message = self._ends.inbox.get()
            if message["do"] == "compile":
                warm_up(self._agents)
                self._ends.tell(event="compiled")
            else:
                self._cell(Job(**message["job"]))

    def _cell(self, job: Job) -> None:
        self._job = job
        self._ends.begin()
        try:
            folder = self._compute(job)
        except StopCell:
            self._ends.tell(event="stopped", id=job.id)
        except Exception as error:
            reason, text = one_line(error), traceback.format_exc()[-_LONGEST_TEXT:]
            self._ends.tell(event="failed", id=job.id, reason=reason, text=text, disk_full=is_full(error))
        else:
            self._ends.tell(event="finished", id=job.id, folder=str(folder))

    def _compute(self, job: Job) -> Path:
        if self._broken is not None:
            raise self._broken
        path = self._store.checkpoint(job.folder)
        checkpoint = regular_bytes(path) if path.exists() else None
        files, state = compute(job, checkpoint, self, tell_every=_TELL_EVERY, keep_every=self._every)
        folder = self._store.write_temporary(files)
        if state is not None:
            self.keep(state, wait=False)  # the result is safe; this only serves a longer horizon
        return folder

    def moved(self, t: int, resumed: bool = False) -> None:
        """Tell the driver."""
        self._ends.tell(event="moved", id=self._job.id, t=t, resumed=resumed)

    def keep(self, checkpoint: bytes, *, wait: bool = True) -> None:
        """Write a checkpoint; a disk that is full costs the checkpoint, not the cell."""
        try:
            self._store.write_checkpoint(self._job.folder, checkpoint, wait=wait)
        except OSError as error:
            path = self._store.checkpoint(self._job.folder)
            self.say(f"{self._job.id}: the checkpoint {path} could not be written ({error.strerror or error}).")

    def say(self, line: str) -> None:
        """Have the driver say it."""
        self._ends.tell(event="said", line=line)

    def wants_stop(self) -> bool:
        """Tell whether the driver wants all cells to stop."""
        return self._ends.stop.is_set()


def one_line(error: BaseException) -> str:
    """Return what went wrong in one line."""
    text = " ".join(str(error).split())
    known = type(error).__module__.startswith("spanrl.")
    line = text if known and text else f"{type(error).__name__}: {text}".rstrip(": ")
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} …"


def main() -> None:
    """Serve the driver at the other end of the pipes."""
    Worker(connect()).serve()


if __name__ == "__main__":
    main()
