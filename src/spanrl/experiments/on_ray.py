"""The Ray engine: cells as tasks on a Ray cluster. This module alone knows of Ray, and imports it when the engine is made.

Nodes do not see the directory. A cell goes out with the bytes of its checkpoint, and what comes back is a stream: steps done, checkpoints,
at last its files. The stream breaks when a node or a worker is lost; the driver then starts the cell again from the last checkpoint
that reached it.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from queue import Queue
from time import monotonic, sleep
from typing import Any

from spanrl.errors import OptionError, missing_extra
from spanrl.experiments.cell import compute
from spanrl.experiments.engine import Event, Failed, Finished, Job, Kept, Lost, Moved, Said, Stopped, overdue
from spanrl.experiments.plugins import import_plugins
from spanrl.experiments.warming import is_warm, warm_up
from spanrl.experiments.worker import one_line
from spanrl.kernels.cache import cache_dir
from spanrl.learning.files import computed_with
from spanrl.regular import regular_bytes

_TELL_EVERY = 1.0  # seconds; a cluster may have thousands of cells under way
_COUNT_EVERY = 2.0
_UNREAD = 16  # messages; a cell that is ahead of its driver waits
_PATIENCE = 60.0  # for a message that is announced to arrive
_PROBE = 5.0

Message = dict[str, Any]
"""What a task sends: the kind under "event", and plain data."""


class RayEngine:
    """As many cells at a time as the cluster has processors; nodes may come and go."""

    def __init__(
        self, address: str, plugins: Sequence[str], folders: Sequence[str], checkpoint_every: float,
        cell_timeout: float | None = None,
    ) -> None:  # fmt: skip
        """Connect to the cluster; where this process is connected already, that connection is used, and kept."""
        self._ray = _import_ray()
        self._connected_here = not self._ray.is_initialized()
        if self._connected_here:
            _connect(self._ray, address)
        self._settings = {
            "plugins": list(plugins), "folders": list(folders), "checkpoint_every": checkpoint_every, "versions": computed_with(),
        }  # fmt: skip
        self._task = self._ray.remote(num_returns="streaming", max_retries=0, num_cpus=1)(_disposable_task)
        self._streams: dict[Any, str] = {}  # each with the id of its cell
        self._limit, self._begun = cell_timeout, dict[str, float]()  # when the first message of a cell came
        self._due: list[Event] = []
        self._cpus, self._counted = 1, -inf

    @property
    def slots(self) -> int:
        """How many processors the cluster has of late; at least 1, so that cells wait there while it has none."""
        if monotonic() - self._counted >= _COUNT_EVERY:
            self._cpus = max(1, int(self._ray.cluster_resources().get("CPU", 0)))
            self._counted = monotonic()
        return self._cpus

    def start(self, job: Job, checkpoint: Path | None) -> None:
        """Send a cell to the cluster together with its checkpoint."""
        try:
            data = regular_bytes(checkpoint) if checkpoint else None
        except OSError as error:
            self._due.append(Failed(job.id, f"its checkpoint cannot be read ({error.strerror or error}).", ""))
            return
        self._streams[self._task.remote(job._asdict(), data, self._settings)] = job.id

    def events(self, timeout: float) -> Sequence[Event]:
        """Return what has come, at most one message of each cell."""
        found, self._due = self._due, []
        streams = list(self._streams)
        if not streams:
            sleep(0 if found else timeout)
            return found
        ready, _ = self._ray.wait(streams, timeout=0 if found else timeout)
        if ready:
            ready, _ = self._ray.wait(streams, num_returns=len(streams), timeout=0)
        return found + [self._take(stream) for stream in ready] + self._end_overdue()

    def stop(self) -> None:
        """Cancel every cell under way; each is resumed later from the last checkpoint it sent, and what came after that is redone."""
        self._due += [Stopped(cell) for cell in self._streams.values()]
        self._cancel()

    def close(self) -> None:
        """Cancel what is left, and leave the cluster where we joined it."""
        self._cancel()
        if self._connected_here:
            self._ray.shutdown()

    def _cancel(self) -> None:
        for stream in list(self._streams):
            self._end(stream)

    def _end(self, stream: Any) -> None:
        """Kill the worker of a cell, whose messages are not awaited any more."""
        self._begun.pop(self._streams.pop(stream), None)
        with suppress(self._ray.exceptions.RayError):
            self._ray.cancel(stream, force=True)

    def _end_overdue(self) -> list[Event]:
        """End the cells that take too long, counted from when they began: on a busy cluster they wait."""
        limit, now = inf if self._limit is None else self._limit, monotonic()
        late = [stream for stream, cell in self._streams.items() if now - self._begun.get(cell, now) > limit]
        cells = [self._streams[stream] for stream in late]
        for stream in late:
            self._end(stream)
        return [overdue(cell, limit) for cell in cells]

    def _take(self, stream: Any) -> Event:
        """Return the next message of a cell as an event, or tell how its stream broke."""
        cell = self._streams[stream]
        failures = self._ray.exceptions
        try:
            event = _event(cell, self._ray.get(next(stream), timeout=_PATIENCE))
            self._begun.setdefault(cell, monotonic())
        except StopIteration:
            event = Lost(cell, "its task ended without a result.")
        except failures.RayError as error:
            if isinstance(error, failures.RayTaskError) and not isinstance(error.cause, failures.RayError):
                event = Failed(cell, one_line(error.cause), str(error))
            else:
                event = Lost(cell, f"its node or worker was lost ({type(error).__name__}).\n{error}")
        if isinstance(event, (Finished, Lost)):
            self._begun.pop(self._streams.pop(stream), None)
        elif isinstance(event, Failed):
            self._end(stream)
        return event


def _event(cell: str, message: Message) -> Event:
    kind = message.pop("event")
    if kind == "said":
        return Said(**message)
    kinds: dict[str, Callable[..., Event]] = {"moved": Moved, "kept": Kept, "finished": Finished, "failed": Failed}
    return kinds[kind](cell, **message)


def _disposable_task(job: dict[str, Any], checkpoint: bytes | None, settings: dict[str, Any]) -> Iterator[Message]:
    """Say that the cell begins, then compute it; after a failure wait to be ended: no other cell shall meet what it has left."""
    yield {"event": "moved", "t": 0}
    for message in cell_task(job, checkpoint, settings):
        yield message
        if message["event"] == "failed":
            sleep(_PATIENCE)
            os._exit(1)


def cell_task(job: dict[str, Any], checkpoint: bytes | None, settings: dict[str, Any]) -> Iterator[Message]:
    """Compute a cell on a node: yield its messages as they come, "finished" or "failed" last.

    The computation has a thread of its own, because it reports by calls, and a task by what it yields.
    """
    outbox: Queue[Message] = Queue(_UNREAD)
    threading.Thread(target=_cell, args=(Job(**job), checkpoint, settings, outbox.put), daemon=True).start()
    while True:
        message = outbox.get()
        yield message
        if message["event"] in ("finished", "failed"):
            return


def _cell(job: Job, checkpoint: bytes | None, settings: dict[str, Any], put: Callable[[Message], None]) -> None:
    try:
        _check_versions(settings["versions"])
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        import_plugins(settings["plugins"], settings["folders"])
        sender = _Sender(put)
        _compile(job.agent, sender)
        files, state = compute(job, checkpoint, sender, tell_every=_TELL_EVERY, keep_every=settings["checkpoint_every"])
        if state is not None:
            sender.keep(state)
    except BaseException as error:  # whatever is not told leaves the driver waiting
        put({"event": "failed", "reason": one_line(error), "text": traceback.format_exc()})
    else:
        put({"event": "finished", "files": files})


class _Sender:
    """Send what a computation tells to the driver."""

    def __init__(self, put: Callable[[Message], None]) -> None:
        self._put = put

    def moved(self, t: int, resumed: bool = False) -> None:
        self._put({"event": "moved", "t": t, "resumed": resumed})

    def keep(self, checkpoint: bytes) -> None:
        self._put({"event": "kept", "checkpoint": checkpoint})

    def say(self, line: str) -> None:
        self._put({"event": "said", "line": line})

    def wants_stop(self) -> bool:
        return False


def _compile(agent: str, sender: _Sender) -> None:
    """Compile the kernels of an agent where this node has not done so before."""
    if cache_dir() is not None and not is_warm([agent]):
        sender.say(f"{socket.gethostname()} compiles for first use, about 40 seconds, once …")
        warm_up([agent])


def _check_versions(wanted: dict[str, str | None]) -> None:
    """Refuse to compute other bits than the driver's machine would."""
    here = computed_with()
    other = [f"{name} {here[name]} instead of {version}" for name, version in wanted.items() if here[name] != version]
    if other:
        raise OptionError(
            f"run: {socket.gethostname()} has {', '.join(other)}. Install the same versions on every node of the cluster."
        )


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise missing_extra("run", "ray", "ray") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    """Join the cluster, quietly."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address
    missing = OptionError(f"run: no Ray cluster was found at {address!r}. Start one with: ray start --head")
    if address != "auto" and not _is_answered(address):  # Ray itself would try for minutes
        raise missing
    try:
        with warnings.catch_warnings(), _sigterm_kept():
            warnings.simplefilter("ignore", FutureWarning)
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        if address == "auto" and isinstance(error, ConnectionError):
            raise missing from None
        raise OptionError(
            f"run: the Ray cluster at {address!r} cannot be joined ({one_line(error)}). "
            "Versions of Ray and Python must be the same everywhere, and a cluster with tokens needs RAY_AUTH_MODE=token."
        ) from error


def _is_answered(address: str) -> bool:
    """Tell whether something listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        raise OptionError(
            f"run: --ray takes auto or HOST:PORT; got {address!r}. Run the command on a machine of the cluster."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE).close()
    except (OSError, OverflowError):
        return False
    return True


@contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Put the handler of SIGTERM back, which Ray replaces by one of its own."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
