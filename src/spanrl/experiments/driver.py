"""The driver of an experiment: it finds out what is missing, hands cells to an engine, and puts what comes back into place.

Nothing that happens to a cell stops the others. Whatever happens to the driver, the directory is left in a state from which the same
command resumes.
"""

from __future__ import annotations

import signal
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from types import FrameType

from spanrl.errors import RunFileAccessError, RunFileError
from spanrl.experiments.engine import Engine, Event, Failed, Finished, Job, Kept, Lost, Moved, Said, Stopped, is_full
from spanrl.experiments.progress import Display, Tally
from spanrl.experiments.spec import Cell, Spec
from spanrl.experiments.store import Store
from spanrl.learning.snapshot import check_seal

_PATIENCE = 10.0  # seconds that cells have to write their checkpoints when the driver is interrupted
_TRIES = 3  # of a cell whose worker is lost
_WAIT = 0.2
_REMEMBERED = 10_000  # lines that are not said twice


@dataclass
class DriverResult:
    """What a driver did: how many cells are finished now, which failed and why, and whether it was interrupted."""

    cells: int
    finished: int = 0
    computed: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    waiting: int = 0  # not begun, because the disk is full
    interrupted: bool = False


class Driver:
    """One run of ``spanrl run``."""

    def __init__(self, spec: Spec, store: Store, engine: Engine, display: Display, cells: Sequence[Cell]) -> None:
        """Take an open store and an engine."""
        self._spec, self._store, self._engine, self._display = spec, store, engine, display
        self._cells = cells
        self._tally = Tally(spec.name, cells=len(cells))
        self._outcome = DriverResult(len(cells))
        self._queue: deque[Job] = deque()
        self._running: dict[str, Job] = {}
        self._tries: Counter[str] = Counter()
        self._reached: dict[str, int] = {}  # steps at the last checkpoint, of cells that lost a worker
        self._said: set[str] = set()
        self._stopping = False

    def run(self, *, retry_failed: bool = False) -> DriverResult:
        """Compute what is missing; return what was done."""
        with self._interruptible():
            self._look_around(retry_failed)
            stopped_at = None
            while self._running or (self._queue and not self._stopping):
                if self._stopping and stopped_at is None:
                    stopped_at = monotonic()
                    self._engine.stop()
                    self._display.say("stopping …")
                if stopped_at is not None and monotonic() - stopped_at > _PATIENCE:
                    break
                while not self._stopping and self._queue and len(self._running) < self._engine.slots:
                    self._start(self._queue.popleft())
                for event in self._engine.events(_WAIT):
                    self._handle(event)
                self._show()
        done = self._outcome.finished + len(self._outcome.failed)
        self._outcome.interrupted = self._stopping and done < self._outcome.cells
        return self._outcome

    def _look_around(self, retry_failed: bool) -> None:
        """Find what is finished, failed, and still to be computed; damaged cells are named and set aside."""
        begun = 0
        self._tally.note = "looking at what is there …"
        for cell in self._cells:
            self._display.update(self._tally)
            try:
                if self._is_finished(cell):
                    self._outcome.finished += 1
                elif self._store.failure(cell.folder).exists() and not retry_failed:
                    self._outcome.failed[cell.id] = self._store.reason(cell.folder)
                else:
                    begun += self._store.checkpoint(cell.folder).exists()
                    self._queue.append(job_of(cell, self._spec))
            except OSError as error:
                self._refuse(job_of(cell, self._spec), error)
            if self._stopping:
                return
        self._tally.note = ""
        parts = [f"{len(self._cells)} cells: {self._outcome.finished} finished before, {len(self._queue)} to compute"]
        if begun:
            parts.append(f"{begun} of them from checkpoints")
        if self._outcome.failed:
            parts.append(f"{len(self._outcome.failed)} failed before (--retry-failed computes them again)")
        self._display.say(", ".join(parts))

    def _is_finished(self, cell: Cell) -> bool:
        try:
            return self._store.finished_horizon(cell) == self._spec.horizon
        except RunFileAccessError:
            raise  # it may be whole, and is not ours to move
        except RunFileError as error:
            aside = self._store.set_aside(self._store.cell_folder(cell.folder))
            what = str(error).rpartition(". ")[0]  # without the remedy, which is ours here
            self._display.say(f"{cell.id}: {what}. It was set aside as {aside} and is computed anew.")
            return False

    def _start(self, job: Job) -> None:
        try:
            checkpoint = self._checkpoint(job)
        except OSError as error:
            self._refuse(job, error)
            return
        self._running[job.id] = job
        self._tally.running[job.id] = (0, job.horizon)
        self._store.lock.note(self._running)
        self._engine.start(job, checkpoint)

    def _checkpoint(self, job: Job) -> Path | None:
        """Return the checkpoint of a cell where there is a good one; a damaged one is named and set aside."""
        path = self._store.checkpoint(job.folder)
        if not path.exists():
            return None
        try:
            check_seal(path)
        except RunFileError as error:
            aside = self._store.set_aside(path)
            self._display.say(f"{job.id}: {error} It was set aside as {aside}; the cell begins anew.")
            return None
        return path

    def _handle(self, event: Event) -> None:
        if isinstance(event, Said):
            if event.line not in self._said:
                if len(self._said) < _REMEMBERED:
                    self._said.add(event.line)
                self._display.say(event.line)
            return
        job = self._running.get(event.id)
        if job is None:
            return
        if isinstance(event, Moved):
            before, _ = self._tally.running[job.id]
            self._tally.running[job.id] = (event.t, job.horizon)
            self._tally.steps += 0 if event.resumed else max(event.t - before, 0)
        elif isinstance(event, Kept):
            self._keep(job, event.checkpoint)
        else:
            del self._running[job.id]
            self._store.lock.note(self._running)
            done, _ = self._tally.running.pop(job.id)
            if isinstance(event, Finished):
                self._tally.steps += job.horizon - done
                self._adopt(job, event)
            elif isinstance(event, Failed):
                self._fail(job, event.reason, event.text)
                if event.disk_full:
                    self._hold()
            elif isinstance(event, Lost):
                self._retry(job, event.why)
            else:
                assert isinstance(event, Stopped)
                self._queue.append(job)

    def _adopt(self, job: Job, event: Finished) -> None:
        try:
            files = event.files
            if isinstance(files, dict):
                files = self._store.write_temporary(files)
            self._store.adopt(job.folder, files)
        except OSError as error:
            self._fail(job, f"its files could not be written ({error.strerror or error})", "")
            if is_full(error):
                self._hold()
            return
        self._outcome.finished += 1
        self._outcome.computed += 1

    def _keep(self, job: Job, checkpoint: bytes) -> None:
        try:
            self._store.write_checkpoint(job.folder, checkpoint)
        except OSError as error:
            which = "checkpoints" if is_full(error) else f"the checkpoint {self._store.checkpoint(job.folder)}"
            self._handle(Said(f"{which} cannot be written ({error.strerror or error})."))

    def _fail(self, job: Job, reason: str, text: str) -> None:
        self._outcome.failed[job.id] = reason
        self._display.say(f"{job.id} failed: {reason}")
        content = f"{reason}\n\ncell {job.id}\n\n{text}".rstrip() + "\n"
        try:
            self._store.write(f"failed/{job.folder}.txt", content.encode())
        except OSError as error:
            self._handle(Said(f"the reasons of failures cannot be written ({error.strerror or error})."))

    def _refuse(self, job: Job, error: OSError) -> None:
        """Let a cell fail whose files are not ours to read or move."""
        path = error.filename or self._store.checkpoint(job.folder)
        why = f"{path} cannot be used ({error.strerror or error}). Put it right or remove it, then use --retry-failed"
        self._fail(job, why, "")

    def _hold(self) -> None:
        """Begin no further cells: their results could not be written."""
        self._outcome.waiting += len(self._queue)
        self._queue.clear()
        self._handle(
            Said("the disk is full: no further cells are begun. Free some space, then run again with --retry-failed.")
        )

    def _retry(self, job: Job, why: str) -> None:
        """Try a cell whose worker is lost again, unless it was lost too often without getting further."""
        if self._stopping:
            self._queue.append(job)
            return
        reached = self._store.checkpoint_time(job.folder) or 0
        if reached > self._reached.get(job.id, 0):
            self._reached[job.id] = reached
            self._tries[job.id] = 0
        self._tries[job.id] += 1
        if self._tries[job.id] >= _TRIES:
            first, _, rest = why.partition("\n")
            self._fail(job, f"{first} ({_TRIES} times)", rest)
        else:
            self._display.say(f"{job.id}: {why.partition(chr(10))[0].rstrip('.')}. It is tried again.")
            self._queue.appendleft(job)

    def _show(self) -> None:
        tally = self._tally
        tally.finished, tally.failed = self._outcome.finished, len(self._outcome.failed)
        tally.waiting = len(self._queue)
        under_way = sum(horizon - t for t, horizon in tally.running.values())
        tally.steps_left = under_way + len(self._queue) * self._spec.horizon
        compiling = self._queue and self._engine.slots == 0
        tally.note = "compiling for first use, about 30 seconds, once …" if compiling else ""
        tally.tick()
        self._display.update(tally)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let the first Ctrl-C (or SIGTERM, or the end of the terminal) ask for an orderly end, and the second one end at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def ask(number: int, frame: FrameType | None) -> None:
            if self._stopping:
                raise KeyboardInterrupt
            self._stopping = True

        asked = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
        heard = [number for number in asked if signal.getsignal(number) != signal.SIG_IGN]  # nohup stays in force
        before = {number: signal.signal(number, ask) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: it was set outside Python


def job_of(cell: Cell, spec: Spec) -> Job:
    """Return the cell as a job."""
    env = cell.env.model or cell.env.id
    return Job(cell.id, cell.folder, env, cell.agent.id, cell.seed, spec.horizon, spec.points, cell.env.sha256)
