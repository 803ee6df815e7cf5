"""The local engine: worker processes on this machine, each a fresh Python that computes one cell after another.

They are started as ``python -m spanrl.experiments.worker`` and speak JSON over pipes, so nothing is pickled and the caller's script is not
imported again. The first one compiles the kernels where that has not been done; the others start afterwards.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from spanrl.experiments.engine import Event, Failed, Finished, Job, Lost, Moved, Said, Stopped
from spanrl.kernels.cache import cache_dir, is_compiled

_LAST_LINES = 30


class LocalEngine:
    """Up to ``workers`` processes; they are started when there is work for them, and again when they were lost."""

    def __init__(
        self,
        dir: Path,  # noqa: A002
        *,
        workers: int,
        plugins: Sequence[str],
        folders: Sequence[str],
        checkpoint_every: float,
    ) -> None:
        """Start nothing yet."""
        self._most = workers
        self._settings = {
            "do": "set", "dir": str(dir), "plugins": list(plugins), "folders": list(folders), "checkpoint_every": checkpoint_every,
        }  # fmt: skip
        self._inbox: queue.SimpleQueue[tuple[_Process, dict[str, Any] | None]] = queue.SimpleQueue()
        self._idle: list[_Process] = []
        self._busy: dict[str, _Process] = {}
        self._due: list[Event] = []
        self._compiler: _Process | None = None
        self._compiled = cache_dir() is None or is_compiled("run")

    @property
    def slots(self) -> int:
        """How many cells can be computed at a time."""
        return self._most if self._compiled else 0

    def start(self, job: Job, checkpoint: Path | None) -> None:
        """Hand a cell to a worker; it finds the checkpoint by itself."""
        try:
            process = self._idle.pop() if self._idle else _Process(self._settings, self._inbox)
        except OSError as error:
            self._most = max(1, len(self._busy))  # the system allows no more processes
            self._due.append(Lost(job.id, f"no worker process could be started ({error.strerror or error})"))
            return
        self._busy[job.id] = process
        process.send({"do": "cell", "job": job._asdict()})

    def events(self, timeout: float) -> Sequence[Event]:
        """Return what the workers told."""
        if not self._compiled and self._compiler is None:
            self._compiler = _Process(self._settings, self._inbox)
            self._compiler.send({"do": "compile"})
        found, self._due = self._due, []
        if found:
            timeout = 0.0
        with suppress(queue.Empty):
            found += self._take(*self._inbox.get(timeout=timeout))
            while True:
                found += self._take(*self._inbox.get_nowait())
        return found

    def stop(self) -> None:
        """Ask every worker to write its checkpoint and stop."""
        for process in self._busy.values():
            process.send({"do": "stop"})

    def close(self) -> None:
        """Kill what is left; workers hold nothing that could be lost."""
        for process in (*self._idle, *self._busy.values(), *([self._compiler] if self._compiler else [])):
            process.end()
        self._idle, self._busy, self._compiler = [], {}, None

    def _take(self, process: _Process, message: dict[str, Any] | None) -> list[Event]:
        if message is None:
            return self._lost(process)
        kind = message.pop("event")
        if kind == "compiled":
            self._compiled, self._compiler = True, None
            self._idle.append(process)
            return []
        if kind == "said":
            return [Said(**message)]
        if kind == "moved":
            return [Moved(**message)]
        self._idle.append(self._busy.pop(message["id"]))
        if kind == "finished":
            return [Finished(message["id"], Path(message["folder"]))]
        return [Failed(**message) if kind == "failed" else Stopped(**message)]

    def _lost(self, process: _Process) -> list[Event]:
        """Tell which cell a worker that has gone was at, if any."""
        why = process.obituary()
        if process is self._compiler:
            self._compiled, self._compiler = True, None  # each worker compiles for itself then, and says what is wrong
            return [Said(f"compiling failed: {why.partition(chr(10))[0]}.")]
        if process in self._idle:
            self._idle.remove(process)
        lost = [job for job, one in self._busy.items() if one is process]
        for job in lost:
            del self._busy[job]
        return [Lost(job, why) for job in lost]


class _Process:
    """One worker process and the two threads that read what it says."""

    def __init__(self, settings: dict[str, Any], inbox: queue.SimpleQueue[Any]) -> None:
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._inbox = inbox
        self._popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "spanrl.experiments.worker"],  # -P: no module of the current directory
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "POLARS_MAX_THREADS": "1"},
            text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read_events, self._read_errors)]
        for reader in self._readers:
            reader.start()
        self.send(settings)

    def send(self, message: dict[str, Any]) -> None:
        """Say something; a process that has gone is noticed by its reader."""
        assert self._popen.stdin is not None
        with suppress(OSError, ValueError):
            self._popen.stdin.write(json.dumps(message) + "\n")
            self._popen.stdin.flush()

    def end(self) -> None:
        """Kill the process and wait until it has gone."""
        self._popen.kill()
        self._popen.wait()
        popen, readers = self._popen, self._readers
        for stream, reader in ((popen.stdin, None), (popen.stdout, readers[0]), (popen.stderr, readers[1])):
            if reader is not None:
                reader.join(timeout=1)
                if reader.is_alive():  # a process that a plugin has started holds the other end
                    continue
            with suppress(OSError):
                stream.close()  # type: ignore[union-attr]

    def obituary(self) -> str:
        """Say how the process ended and what it said last: in one line, and in all."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout=2)
        self.end()
        code = self._popen.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        said = f", saying {self._last[-1]!r}" if self._last else ""
        return "\n".join([f"the worker process {how}{said}", *self._last])

    def _read_events(self) -> None:
        assert self._popen.stdout is not None
        with suppress(ValueError):  # a line that was cut is the last one
            for line in self._popen.stdout:
                self._inbox.put((self, json.loads(line)))
        self._inbox.put((self, None))

    def _read_errors(self) -> None:
        assert self._popen.stderr is not None
        for line in self._popen.stderr:
            self._last.append(line.rstrip())
            self._inbox.put((self, {"event": "said", "line": line.rstrip()}))
