"""A worker process and how it is spoken to: one JSON object per line over pipes, so that nothing is pickled.

The driver makes a :class:`Process`; in the worker, :func:`connect` gives the other ends. When the driver ends, however it ends, the pipe to
its workers closes, and they end with it, at once. What a worker prints goes to standard error.

A worker may have children: a plugin that forks, or starts programs. They are in the worker's process group and end with it. They inherit
its pipes, so the end of a worker is seen by waiting for the process, not by the end of what can be read.
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
_GRACE = 2.0  # seconds to read what a process said last, and for one that has closed its pipe to end by itself
_PATIENCE = 10.0  # seconds for a process that was killed to go
_NEXT = "\x02spanrl: the next cell\x02"  # on standard error


class Process:
    """One worker process and the threads that follow it: (process, message), or (process, None) when it has gone."""

    def __init__(self, module: str, settings: dict[str, Any], inbox: queue.SimpleQueue[Any]) -> None:
        """Start ``python -m module`` and tell it its settings."""
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._inbox, self._gone = inbox, threading.Event()
        self._popen = subprocess.Popen(
            [sys.executable, "-P", "-m", module],  # -P: no module of the current directory
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "POLARS_MAX_THREADS": "1"},
            text=True, encoding="utf-8", errors="replace",
            process_group=0 if os.name == "posix" else None,
        )  # fmt: skip
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read_events, self._read_errors)]
        for thread in (*self._readers, threading.Thread(target=self._watch, daemon=True)):
            thread.start()
        self.send(settings)

    def send(self, message: dict[str, Any]) -> None:
        """Say something; a process that has gone is noticed by its watcher."""
        assert self._popen.stdin is not None
        with suppress(OSError, ValueError):
            self._popen.stdin.write(json.dumps(message) + "\n")
            self._popen.stdin.flush()

    def end(self) -> None:
        """Kill the process with its children, and wait until it has gone; not for ever, since the system may hold it."""
        if not self._gone.is_set():
            self._kill()
            self._gone.wait(_PATIENCE)
        popen, readers = self._popen, self._readers
        for stream, reader in ((popen.stdin, None), (popen.stdout, readers[0]), (popen.stderr, readers[1])):
            if reader is not None:
                reader.join(timeout=1)
                if reader.is_alive():  # a process that a plugin has started, in a group of its own, holds the other end
                    continue
            with suppress(OSError):
                stream.close()  # type: ignore[union-attr]

    def exit_reason(self) -> str:
        """Say how the process ended and what it said last: in one line, and in all."""
        self.end()
        code = self._popen.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        said = f", saying {self._last[-1]!r}" if self._last else ""
        return "\n".join([f"the worker process {how}{said}", *self._last])

    @property
    def last_lines(self) -> str:
        """What the process has printed of late, about its present cell alone."""
        return "\n".join(self._last)

    def _kill(self) -> None:
        """Kill the process and its children."""
        with suppress(OSError):
            if os.name == "posix":
                os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.kill()

    def _watch(self) -> None:
        """Wait for the end of the process, then for all it has said."""
        self._popen.wait()
        self._kill()  # children that it has left; the number of a group is not given again while it has a member
        self._gone.set()
        for reader in self._readers:
            reader.join(timeout=_GRACE)
        self._inbox.put((self, None))

    def _read_events(self) -> None:
        assert self._popen.stdout is not None
        with suppress(ValueError):  # a line that was cut is the last one
            for line in self._popen.stdout:
                self._inbox.put((self, json.loads(line)))
        if not self._gone.wait(_GRACE):
            self._kill()  # its pipe is closed

    def _read_errors(self) -> None:
        assert self._popen.stderr is not None
        for line in self._popen.stderr:
            text = line.rstrip()
            before, is_next, _ = text.partition(_NEXT)
            if before or not is_next:
                self._last.append(before)
                self._inbox.put((self, {"event": "said", "line": before}))
            if is_next:
                self._last.clear()


class Pipes(NamedTuple):
    """What a worker holds: messages that came, whether it is asked to stop, and where it writes."""

    inbox: queue.SimpleQueue[dict[str, Any]]
    stop: threading.Event
    outbox: TextIO

    def tell(self, **message: Any) -> None:
        """Tell the driver."""
        self.outbox.write(json.dumps(message) + "\n")
        self.outbox.flush()

    def begin(self) -> None:
        """Let what is printed from now on be that of another cell."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):  # a plugin may have put anything in their place
                stream.flush()
        with suppress(OSError):
            os.write(2, f"{_NEXT}\n".encode())


def connect() -> Pipes:
    """Take over the standard streams of this process, a worker; its standard input is empty from now on.

    The driver is heard through another descriptor, without a lock: a fork copies locks as they are, and a child closes its standard input.
    """
    warnings.showwarning = lambda message, *_: print(message, file=sys.stderr, flush=True)
    _leave_signals_to_the_driver()
    outbox = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    source, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    ends = Pipes(queue.SimpleQueue(), threading.Event(), outbox)
    threading.Thread(target=_listen, args=(ends, source), daemon=True).start()
    return ends


def _leave_signals_to_the_driver() -> None:
    """Do nothing on signals, which may reach all processes: the driver decides what follows. Children that are forked obey them.

    A pool ends its children with SIGTERM. One that comes before a new child can obey waits until it does.
    """
    asked = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    for number in asked:
        signal.signal(number, lambda *_: None)

    def obey() -> None:
        for number in asked:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, asked)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, asked),
            after_in_parent=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, asked),
            after_in_child=obey,
        )


def _listen(ends: Pipes, source: int) -> None:
    """Pass on what the driver says; end the process, with its children, when the driver has gone."""
    rest = b""
    while data := os.read(source, 1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message["do"] == "stop":
                ends.stop.set()
            else:
                ends.inbox.put(message)
    if os.name == "posix" and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)
