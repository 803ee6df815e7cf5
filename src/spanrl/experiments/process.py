"""A worker process and how it is spoken to: one JSON object a line over its standard streams, so that nothing is pickled.

The driver makes a :class:`Process`; in the worker, :func:`connect` gives the other ends. When the driver ends, however it ends, the
standard input of its workers closes, and they end with it, at once. What a worker prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import warnings
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple, TextIO

_LAST_LINES = 30


class Process:
    """One worker process and the two threads that read what it says: (process, message), or (process, None) when it has gone."""

    def __init__(self, module: str, settings: dict[str, Any], inbox: queue.SimpleQueue[Any]) -> None:
        """Start ``python -m module`` and tell it its settings."""
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._inbox = inbox
        self._popen = subprocess.Popen(
            [sys.executable, "-P", "-m", module],  # -P: no module of the current directory
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


class Ends(NamedTuple):
    """What a worker holds: messages that came, whether it is asked to stop, and where it writes."""

    inbox: queue.SimpleQueue[dict[str, Any]]
    stop: threading.Event
    outbox: TextIO

    def tell(self, **message: Any) -> None:
        """Tell the driver."""
        self.outbox.write(json.dumps(message) + "\n")
        self.outbox.flush()


def connect() -> Ends:
    """Take over the standard streams of this process, a worker."""
    warnings.showwarning = lambda message, *_: print(message, file=sys.stderr, flush=True)
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # they may reach the whole group; the driver decides what follows
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    outbox = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    ends = Ends(queue.SimpleQueue(), threading.Event(), outbox)
    threading.Thread(target=_listen, args=(ends,), daemon=True).start()
    return ends


def _listen(ends: Ends) -> None:
    """Pass on what the driver says; end the process when it has gone."""
    for line in sys.stdin:
        message = json.loads(line)
        if message["do"] == "stop":
            ends.stop.set()
        else:
            ends.inbox.put(message)
    os._exit(0)
