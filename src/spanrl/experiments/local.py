"""The local engine: worker processes on this machine, each a fresh Python that computes one cell after another.

They are started as ``python -m spanrl.experiments.worker`` and speak JSON over pipes, so nothing is pickled and the caller's script is not
imported again. The first one compiles the kernels where that has not been done; the others start afterwards. A worker in which a cell has
failed is ended: whatever a plugin has left there (limits, threads, a changed global) would be the next cell's.
"""

from __future__ import annotations

import queue
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from spanrl.experiments.engine import Event, Failed, Finished, Job, Lost, Moved, Said, Stopped, overdue
from spanrl.experiments.messages import event_of
from spanrl.experiments.process import Process
from spanrl.experiments.warming import is_warm
from spanrl.kernels.cache import cache_dir

MODULE = "spanrl.experiments.worker"


class LocalEngine:
    """Up to ``workers`` processes; they are started when there is work for them, and again when they were lost."""

    def __init__(
        self,
        dir: Path,  # noqa: A002
        *,
        workers: int,
        plugins: Sequence[str],
        folders: Sequence[str],
        agents: Sequence[str],
        checkpoint_every: float,
        cell_timeout: float | None = None,
    ) -> None:
        """Start nothing yet."""
        self._most, self._limit, self._tmp = workers, cell_timeout, dir / "tmp"
        self._settings = {
            "do": "set", "dir": str(dir), "plugins": list(plugins), "folders": list(folders), "agents": list(agents),
            "checkpoint_every": checkpoint_every,
        }  # fmt: skip
        self._inbox: queue.SimpleQueue[tuple[Process, dict[str, Any] | None]] = queue.SimpleQueue()
        self._idle: list[Process] = []
        self._busy: dict[str, tuple[Process, float]] = {}  # by cell: its worker, and when that got it
        self._due: list[Event] = []
        self._compiler: Process | None = None
        self._compiled = cache_dir() is None or is_warm(agents)

    @property
    def slots(self) -> int:
        """How many cells can be computed at a time."""
        return self._most if self._compiled else 0

    def start(self, job: Job, checkpoint: Path | None) -> None:
        """Hand a cell to a worker; it finds the checkpoint by itself."""
        try:
            process = self._idle.pop() if self._idle else Process(MODULE, self._settings, self._inbox)
        except OSError as error:
            self._most = max(1, len(self._busy))  # the system allows no more processes
            self._due.append(Lost(job.id, f"no worker process could be started ({error.strerror or error})"))
            return
        self._busy[job.id] = process, monotonic()
        process.send({"do": "cell", "job": job._asdict()})

    def events(self, timeout: float) -> Sequence[Event]:
        """Return what the workers told."""
        if not self._compiled and self._compiler is None:
            self._compiler = Process(MODULE, self._settings, self._inbox)
            self._compiler.send({"do": "compile"})
        found, self._due = self._due, []
        if found:
            timeout = 0.0
        with suppress(queue.Empty):
            found += self._take(*self._inbox.get(timeout=timeout))
            while True:
                found += self._take(*self._inbox.get_nowait())
        return found + self._end_overdue()

    def stop(self) -> None:
        """Ask every worker to write its checkpoint and stop."""
        for process, _ in self._busy.values():
            process.send({"do": "stop"})

    def close(self) -> None:
        """Kill what is left; workers hold nothing that could be lost."""
        busy = [process for process, _ in self._busy.values()]
        for process in (*self._idle, *busy, *([self._compiler] if self._compiler else [])):
            process.end()
        self._idle, self._busy, self._compiler = [], {}, None

    def _take(self, process: Process, message: dict[str, Any] | None) -> list[Event]:
        if message is None:
            return self._lost(process)
        try:
            event = event_of(message, self._tmp)
        except ValueError:  # a plugin has written into the pipe: the worker cannot be trusted any more
            process.end()
            return []
        if event is None:
            if process is self._compiler:
                self._compiled, self._compiler = True, None
                self._idle.append(process)
            return []
        if isinstance(event, Said):
            return [event]
        if not self._is_at(process, event.id):
            return []  # it was given up meanwhile
        return [event] if isinstance(event, Moved) else self._end_of_cell(process, event)

    def _end_of_cell(self, process: Process, event: Finished | Failed | Stopped) -> list[Event]:
        del self._busy[event.id]
        if isinstance(event, Failed):
            process.end()
        else:
            self._idle.append(process)
        return [event]

    def _end_overdue(self) -> list[Event]:
        """End the workers of cells that take too long."""
        limit = inf if self._limit is None else self._limit
        late = [job for job, (_, begun) in self._busy.items() if monotonic() - begun > limit]
        out: list[Event] = []
        for job in late:
            process, _ = self._busy.pop(job)
            process.end()
            out.append(overdue(job, limit, process.last_lines))
        return out

    def _is_at(self, process: Process, job: str) -> bool:
        return job in self._busy and self._busy[job][0] is process

    def _lost(self, process: Process) -> list[Event]:
        """Tell which cell a worker that has gone was at, if any."""
        why = process.exit_reason()
        if process is self._compiler:
            self._compiled, self._compiler = True, None  # each worker compiles for itself then, and says what is wrong
            return [Said(f"compiling failed: {why.partition(chr(10))[0].rstrip('.')}.")]
        if process in self._idle:
            self._idle.remove(process)
        lost = [job for job in self._busy if self._is_at(process, job)]
        for job in lost:
            del self._busy[job]
        return [Lost(job, why) for job in lost]
