"""A worker process of the local engine: ``python -m spanrl.experiments.worker``.

It reads one JSON object a line from standard input (settings first, then jobs) and writes events the same way to what was standard
output. When the driver ends, however it ends, standard input closes and the worker ends with it, at once. What plugins print goes to
standard error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Any, TextIO

from spanrl.errors import RunFileError
from spanrl.experiments.cell import Computation
from spanrl.experiments.engine import Job
from spanrl.experiments.spec import import_plugins
from spanrl.experiments.store import Store

_TELL_EVERY = 0.2  # seconds


class StopCell(Exception):  # noqa: N818
    """The driver wants the cell to stop where it is."""


class Worker:
    """The loop of one process: a job at a time."""

    def __init__(self, inbox: SimpleQueue[dict[str, Any]], stop: threading.Event, outbox: TextIO) -> None:
        """Wait for the settings."""
        self._inbox, self._stop, self._outbox = inbox, stop, outbox
        settings = inbox.get()
        self._store = Store(settings["dir"])
        self._every = float(settings["checkpoint_every"])
        self._plugins = settings["plugins"], settings["folders"]

    def serve(self) -> None:
        """Do what comes, until the driver ends this process."""
        import_plugins(*self._plugins)
        while True:
            message = self._inbox.get()
            if message["do"] == "compile":
                compile_all()
                self._tell(event="compiled")
            else:
                self._cell(Job(**message["job"]))

    def _cell(self, job: Job) -> None:
        try:
            folder = self._compute(job)
        except StopCell:
            self._tell(event="stopped", id=job.id)
        except Exception as error:
            self._tell(event="failed", id=job.id, reason=one_line(error), text=traceback.format_exc())
        else:
            self._tell(event="finished", id=job.id, folder=str(folder))

    def _compute(self, job: Job) -> Path:
        computation = self._begin(job)
        self._tell(event="moved", id=job.id, t=computation.t, resumed=computation.t > 0)
        kept = told = monotonic()

        def look(t: int, checkpoint: Callable[[], bytes | None]) -> None:
            nonlocal kept, told
            now = monotonic()
            if now - told >= _TELL_EVERY:
                told = now
                self._tell(event="moved", id=job.id, t=t)
            stop = self._stop.is_set()
            if stop or now - kept >= self._every:
                self._keep(job, checkpoint())
                kept = monotonic()
            if stop:
                raise StopCell

        files = computation.run(look)
        folder = self._store.write_temporary(files)
        self._keep(job, computation.checkpoint(), wait=False)  # the result is safe; this only serves a longer horizon
        return folder

    def _begin(self, job: Job) -> Computation:
        """Go on from the checkpoint where there is a good one; a damaged one is named and set aside."""
        path = self._store.checkpoint(job.folder)
        try:
            computation = Computation(job, path.read_bytes() if path.exists() else None)
        except RunFileError as error:
            aside = self._store.set_aside(path)
            self._tell(event="said", line=f"{job.id}: {error} It was set aside as {aside}; the cell begins anew.")
            return Computation(job, None)
        if computation.note:
            self._tell(event="said", line=f"{job.agent} on {job.env}: {computation.note}.")
        return computation

    def _keep(self, job: Job, checkpoint: bytes | None, *, wait: bool = True) -> None:
        """Write a checkpoint; a disk that is full costs the checkpoint, not the cell."""
        try:
            if checkpoint is not None:
                self._store.write_checkpoint(job.folder, checkpoint, wait=wait)
        except OSError as error:
            self._tell(event="said", line=f"{job.id}: no checkpoint could be written ({error.strerror or error}).")

    def _tell(self, **message: Any) -> None:
        self._outbox.write(json.dumps(message) + "\n")
        self._outbox.flush()


def one_line(error: BaseException) -> str:
    """Return what went wrong in one line."""
    text = " ".join(str(error).split())
    known = type(error).__module__.startswith("spanrl.")
    return text if known and text else f"{type(error).__name__}: {text}".rstrip(": ")


def compile_all() -> None:
    """Fill the cache of compiled kernels with all that cells need, so that workers do not compile the same side by side."""
    from spanrl.kernels.cache import is_compiled, mark_compiled
    from spanrl.learning.learn import learn

    if not is_compiled("run"):
        for agent in ("scal[span_bound=0.5]", "ucrl", "ucrl2"):
            for env in ("three-state", "two-state"):
                learn(env, agent, horizon=1000, seed=0)
        mark_compiled("run")


def _listen(inbox: SimpleQueue[dict[str, Any]], stop: threading.Event) -> None:
    """Pass on what the driver says; end the process when it has gone."""
    for line in sys.stdin:
        message = json.loads(line)
        if message["do"] == "stop":
            stop.set()
        else:
            inbox.put(message)
    os._exit(0)


def main() -> None:
    """Serve the driver at the other end of the pipes."""
    warnings.showwarning = lambda message, *_: print(message, file=sys.stderr, flush=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the driver decides what follows
    outbox = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    inbox: SimpleQueue[dict[str, Any]] = SimpleQueue()
    stop = threading.Event()
    threading.Thread(target=_listen, args=(inbox, stop), daemon=True).start()
    Worker(inbox, stop, outbox).serve()


if __name__ == "__main__":
    main()
