"""The driver against an engine that does what the test says."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from experiment_samples import FILES, tables, tiny_spec

from spanrl import learn
from spanrl.experiments import driver as module
from spanrl.experiments.driver import Driver, DriverResult, job_of
from spanrl.experiments.engine import Event, Failed, Finished, Job, Kept, Lost, Moved, Said, Stopped
from spanrl.experiments.progress import Tally
from spanrl.experiments.spec import Spec
from spanrl.experiments.store import Store
from spanrl.learning.run import Run
from spanrl.learning.snapshot import pack

Script = Callable[[Job], Sequence[Event]]


class FakeEngine:
    """An engine without processes: ``script`` says what happens to a job."""

    def __init__(self, script: Script, slots: int = 2) -> None:
        self.script, self.slots = script, slots
        self.jobs: list[tuple[Job, Path | None]] = []
        self.under_way: dict[str, Job] = {}
        self.stopped = False
        self.inbox: deque[Event] = deque()

    def start(self, job: Job, checkpoint: Path | None) -> None:
        assert len(self.under_way) < self.slots, "more cells than slots"
        assert not self.stopped, "a cell was begun after the stop"
        self.jobs.append((job, checkpoint))
        self.under_way[job.id] = job
        self.inbox.extend(self.script(job))

    def events(self, timeout: float) -> Sequence[Event]:
        found = list(self.inbox)
        self.inbox.clear()
        for event in found:
            if isinstance(event, Finished | Failed | Lost | Stopped):
                self.under_way.pop(event.id, None)
        return found

    def stop(self) -> None:
        self.stopped = True
        self.inbox.extend(Stopped(name) for name in self.under_way)

    def close(self) -> None:
        """Nothing to end."""


class Listener:
    """A display that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown: list[str] = []

    def update(self, tally: Tally) -> None:
        self.shown.append(str(tally))

    def say(self, line: str) -> None:
        self.lines.append(line)

    def close(self) -> None:
        """Nothing to take away."""


def files_of(job: Job) -> dict[str, bytes]:
    return learn(job.env, job.agent, horizon=job.horizon, seed=job.seed, points=job.points).to_files()


def finish(job: Job) -> Sequence[Event]:
    return [Moved(job.id, 500), Finished(job.id, files_of(job))]


@pytest.fixture
def spec() -> Spec:
    return tiny_spec(horizon=1000, env=[{"id": "two-state"}])


@pytest.fixture
def store(tmp_path: Path, spec: Spec) -> Iterator[Store]:
    one = Store(tmp_path / "out")
    one.open(spec)
    yield one
    one.close()


class Bench:
    """A driver with its engine and its display, ready to run."""

    def __init__(self, spec: Spec, store: Store, script: Script, slots: int = 2) -> None:
        self.spec, self.store, self.listener = spec, store, Listener()
        self.engine = FakeEngine(script, slots)
        self.driver = Driver(spec, store, self.engine, self.listener, spec.cells())

    def run(self, **options: Any) -> DriverResult:
        return self.driver.run(**options)

    def said(self, words: str) -> int:
        return sum(words in line for line in self.listener.lines)


@pytest.fixture
def bench(spec: Spec, store: Store) -> Callable[..., Bench]:
    return lambda script=finish, **options: Bench(spec, store, script, **options)


def ids(spec: Spec) -> list[str]:
    return [cell.id for cell in spec.cells()]


# --- cells ----------------------------------------------------------------------------------------------------------


def test_all_is_well(bench: Callable[..., Bench], spec: Spec) -> None:
    one = bench()
    assert one.run() == DriverResult(cells=4, finished=4, computed=4)
    assert [job.id for job, _ in one.engine.jobs] == ids(spec)
    for cell in spec.cells():
        folder = one.store.cell_folder(cell.folder)
        assert sorted(path.name for path in folder.iterdir()) == FILES
        assert Run.load(folder).meta["seed"] == cell.seed
    assert one.listener.lines == ["4 cells: 0 finished before, 4 to compute"]
    assert one.listener.shown[-1].startswith("4 of 4 cells finished, 0 running, 0 waiting, 0 failed")


def test_finished_cells_are_not_computed_again(bench: Callable[..., Bench]) -> None:
    bench().run()
    again = bench()
    assert again.run() == DriverResult(cells=4, finished=4, computed=0)
    assert again.engine.jobs == []
    assert again.listener.lines == ["4 cells: 4 finished before, 0 to compute"]


def test_files_in_a_folder_are_adopted_by_a_rename(bench: Callable[..., Bench], store: Store) -> None:
    made: list[Path] = []

    def script(job: Job) -> Sequence[Event]:
        made.append(store.write_temporary(files_of(job)))
        return [Finished(job.id, made[-1])]

    assert bench(script).run().finished == 4
    assert not any(path.exists() for path in made)
    assert len(tables(store.dir)) == 8


def test_no_more_cells_at_a_time_than_there_are_slots(bench: Callable[..., Bench]) -> None:
    most = 0

    def script(job: Job) -> Sequence[Event]:
        nonlocal most
        most = max(most, len(one.engine.under_way))
        return finish(job)

    one = bench(script, slots=3)
    one.run()
    assert most == 3


def test_a_failing_cell_leaves_the_others(bench: Callable[..., Bench], spec: Spec) -> None:
    name = ids(spec)[1]

    def script(job: Job) -> Sequence[Event]:
        return [Failed(job.id, "no luck", "Traceback:\n  deep\n")] if job.id == name else finish(job)

    one = bench(script)
    assert one.run() == DriverResult(cells=4, finished=3, computed=3, failed={name: "no luck"})
    assert one.said(f"{name} failed: no luck") == 1
    text = one.store.failure(spec.cells()[1].folder).read_text()
    assert text == f"no luck\n\ncell {name}\n\nTraceback:\n  deep\n"

    again = bench()
    assert again.run() == DriverResult(cells=4, finished=3, computed=0, failed={name: "no luck"})
    assert again.engine.jobs == []
    assert again.said("1 failed before (--retry-failed computes them again)") == 1

    retried = bench()
    assert retried.run(retry_failed=True) == DriverResult(cells=4, finished=4, computed=1)
    assert not one.store.failure(spec.cells()[1].folder).exists()


def test_a_lost_cell_is_tried_again_from_its_checkpoint(bench: Callable[..., Bench], spec: Spec) -> None:
    first = ids(spec)[0]
    tries = 0

    def script(job: Job) -> Sequence[Event]:
        nonlocal tries
        tries += job.id == first
        if job.id == first and tries < 3:
            return [
                Kept(job.id, pack({"t": 0, "try": tries})),
                Lost(job.id, "the worker has gone; it said last:\nBus error"),
            ]
        return finish(job)

    one = bench(script)
    assert one.run() == DriverResult(cells=4, finished=4, computed=4)
    given = [(path, path and path.name) for job, path in one.engine.jobs if job.id == first]
    assert [name for _, name in given] == [None, "000.ckpt", "000.ckpt"]
    assert one.store.checkpoint(spec.cells()[0].folder).read_bytes() == pack({"t": 0, "try": 2})
    tried = [line for line in one.listener.lines if line.startswith(f"{first}: the worker has gone")]
    assert [line.endswith("It is tried again.") for line in tried] == [True, True]


def test_a_cell_that_is_lost_thrice_has_failed(bench: Callable[..., Bench], spec: Spec) -> None:
    first = ids(spec)[0]

    def script(job: Job) -> Sequence[Event]:
        return [Lost(job.id, "the worker has gone; it said last:\nBus error")] if job.id == first else finish(job)

    one = bench(script)
    outcome = one.run()
    assert (outcome.finished, list(outcome.failed)) == (3, [first])
    assert [job.id for job, _ in one.engine.jobs].count(first) == 3
    assert "(3 times)" in outcome.failed[first]
    text = one.store.failure(spec.cells()[0].folder).read_text()
    assert text.splitlines()[0] == outcome.failed[first]
    assert "Bus error" in text


def test_a_cell_that_gets_further_each_time_is_tried_on(bench: Callable[..., Bench], spec: Spec) -> None:
    first, tries = ids(spec)[0], 0

    def script(job: Job) -> Sequence[Event]:
        nonlocal tries
        tries += job.id == first
        if job.id == first and tries < 8:
            return [Kept(job.id, pack({"t": 100 * tries})), Lost(job.id, "the worker has gone")]
        return finish(job)

    assert bench(script).run() == DriverResult(cells=4, finished=4, computed=4)
    assert tries == 8


def test_what_workers_say_is_shown_once(bench: Callable[..., Bench]) -> None:
    one = bench(lambda job: [Said("careful"), Said(f"of {job.seed}"), *finish(job)])
    one.run()
    assert [one.said(line) for line in ("careful", "of 0", "of 1")] == [1, 1, 1]


def test_events_of_cells_that_are_not_under_way_are_ignored(bench: Callable[..., Bench]) -> None:
    one = bench(lambda job: [Moved("other", 5), Finished("other", {}), *finish(job), Failed(job.id, "late", "")])
    assert one.run() == DriverResult(cells=4, finished=4, computed=4)


def test_a_damaged_cell_is_named_set_aside_and_computed(bench: Callable[..., Bench], spec: Spec) -> None:
    one = bench()
    one.run()
    before = tables(one.store.dir)
    cell = spec.cells()[2]
    (one.store.cell_folder(cell.folder) / "curve.parquet").write_bytes(b"damage")
    again = bench()
    assert again.run() == DriverResult(cells=4, finished=4, computed=1)
    assert [job.id for job, _ in again.engine.jobs] == [cell.id]
    assert again.said(f"{cell.id}: load: ") == 1
    assert again.said("It was set aside as ") == 1
    assert tables(one.store.dir) == before


def test_a_longer_horizon_begins_at_checkpoints(spec: Spec, store: Store) -> None:
    Bench(spec, store, lambda job: [Kept(job.id, pack({"t": 1000})), *finish(job)]).run()
    store.close()
    longer = tiny_spec(horizon=3000, env=[{"id": "two-state"}])
    store.open(longer)
    one = Bench(longer, store, finish)
    assert one.run() == DriverResult(cells=4, finished=4, computed=4)
    assert [path for _, path in one.engine.jobs] == [store.checkpoint(cell.folder) for cell in longer.cells()]
    assert {job.horizon for job, _ in one.engine.jobs} == {3000}
    assert one.said("4 cells: 0 finished before, 4 to compute, 4 of them from checkpoints") == 1


def test_a_job_says_all(spec: Spec) -> None:
    assert job_of(spec.cells()[-1], spec) == Job(
        id="two-state/ucrl/001", folder="two-state/ucrl/001", env="two-state", agent="ucrl", seed=1, horizon=1000,
        points=10,
    )  # fmt: skip


# --- files that cannot be used ----------------------------------------------------------------------------------------


def test_a_directory_in_the_place_of_a_checkpoint_fails_that_cell_alone(
    bench: Callable[..., Bench], spec: Spec
) -> None:
    cell, one = spec.cells()[1], bench()
    path = one.store.checkpoint(cell.folder)
    path.mkdir(parents=True)
    reason = f"{path} cannot be used (Is a directory). Put it right or remove it, then use --retry-failed"
    assert one.run() == DriverResult(cells=4, finished=3, computed=3, failed={cell.id: reason})
    assert one.store.failure(cell.folder).read_text().startswith(reason)
    path.rmdir()
    assert bench().run(retry_failed=True) == DriverResult(cells=4, finished=4, computed=1)


@pytest.mark.parametrize("place", ["exists", "open", "rename"])
def test_a_checkpoint_that_may_not_be_used_fails_that_cell_alone(
    bench: Callable[..., Bench], spec: Spec, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    cell, one = spec.cells()[1], bench()
    path, owner = one.store.checkpoint(cell.folder), Path if place == "exists" else os
    one.store.write_checkpoint(cell.folder, b"damaged")
    real = getattr(owner, place)

    def refuse(this: Path, *rest: Any, **options: Any) -> Any:
        if this == path:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(this, *rest, **options)

    monkeypatch.setattr(owner, place, refuse)
    outcome = one.run()
    assert (outcome.finished, list(outcome.failed)) == (3, [cell.id])
    assert outcome.failed[cell.id].startswith(f"{path} cannot be used (Permission denied). Put it right")


def test_a_checkpoint_that_cannot_be_written_is_named(bench: Callable[..., Bench], spec: Spec) -> None:
    path = bench().store.checkpoint(spec.cells()[0].folder)

    def script(job: Job) -> Sequence[Event]:
        if job.id == ids(spec)[0]:
            path.mkdir(parents=True)
        return [Kept(job.id, b"1"), *finish(job)]

    one = bench(script)
    assert one.run() == DriverResult(cells=4, finished=4, computed=4)
    assert one.said(f"the checkpoint {path} cannot be written (Is a directory).") == 1


# --- a full disk ----------------------------------------------------------------------------------------------------


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("method", ["adopt", "write_temporary"])
def test_a_full_disk_while_a_cell_is_put_into_place(
    bench: Callable[..., Bench], spec: Spec, store: Store, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    kept, calls = getattr(store, method), 0

    def second_fails(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return full() if calls == 2 else kept(*arguments)

    monkeypatch.setattr(store, method, second_fails)
    one = bench(slots=1)
    reason = "its files could not be written (No space left on device)"
    assert one.run() == DriverResult(cells=4, finished=1, computed=1, failed={ids(spec)[1]: reason}, waiting=2)
    assert one.said("the disk is full: no further cells are begun") == 1
    assert store.failure(spec.cells()[1].folder).read_text().startswith(reason)
    assert len(tables(store.dir / "cells")) == 2
    monkeypatch.undo()
    assert bench().run(retry_failed=True) == DriverResult(cells=4, finished=4, computed=3)


def test_a_full_disk_while_a_checkpoint_is_written(
    bench: Callable[..., Bench], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "write_checkpoint", full)
    one = bench(lambda job: [Kept(job.id, b"1"), Kept(job.id, b"2"), *finish(job)])
    assert one.run() == DriverResult(cells=4, finished=4, computed=4)
    assert one.said("checkpoints cannot be written (No space left on device).") == 1


def test_a_full_disk_while_a_reason_is_written(
    bench: Callable[..., Bench], spec: Spec, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "write", full)
    one = bench(lambda job: [Failed(job.id, "no luck", "")] if job.seed == 0 else finish(job))
    assert one.run() == DriverResult(cells=4, finished=2, computed=2, failed=dict.fromkeys(ids(spec)[:2], "no luck"))
    assert one.said("the reasons of failures cannot be written (No space left on device).") == 1


def test_a_full_disk_all_the_time(
    bench: Callable[..., Bench], spec: Spec, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spanrl.learning.files.write_bytes", full)
    monkeypatch.setattr("spanrl.experiments.store.write_bytes", full)
    outcome = bench(lambda job: [Kept(job.id, b"1"), *finish(job)]).run()
    assert (outcome.finished, list(outcome.failed), outcome.waiting) == (0, ids(spec)[:2], 2)
    assert list((store.dir / "tmp").iterdir()) == []


# --- interruption ---------------------------------------------------------------------------------------------------

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def interrupt(job: Job, number: int = signal.SIGINT) -> Sequence[Event]:
    os.kill(os.getpid(), number)
    return []


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_stops_what_is_under_way(bench: Callable[..., Bench], spec: Spec, number: int) -> None:
    def script(job: Job) -> Sequence[Event]:
        if job.id == ids(spec)[2]:
            os.kill(os.getpid(), number)
        return finish(job) if job.seed == 0 else []

    one = bench(script)
    outcome = one.run()
    assert one.engine.stopped
    assert outcome == DriverResult(cells=4, finished=2, computed=2, interrupted=True)
    assert one.said("stopping …") == 1
    assert bench().run() == DriverResult(cells=4, finished=4, computed=2)


def test_a_cell_that_finishes_after_all_counts(bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        first, second = one.engine.under_way.values()
        one.engine.inbox.extend([Finished(first.id, files_of(first)), Stopped(second.id)])

    one = bench(interrupt)
    monkeypatch.setattr(one.engine, "stop", stop)
    one.engine.script = lambda job: interrupt(job) if len(one.engine.under_way) == 2 else []
    assert one.run() == DriverResult(cells=4, finished=1, computed=1, interrupted=True)


def test_workers_that_do_not_stop_are_not_waited_for(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    one = bench(interrupt)
    monkeypatch.setattr(one.engine, "stop", lambda: None)
    assert one.run() == DriverResult(cells=4, finished=0, computed=0, interrupted=True)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_second_signal_ends_at_once(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    one = bench(lambda job: interrupt(job, number))
    monkeypatch.setattr(one.engine, "stop", lambda: os.kill(os.getpid(), number))
    with pytest.raises(KeyboardInterrupt):
        one.run()


@pytest.mark.parametrize("how", ["well", "interrupted", "with an error"])
def test_signal_handlers_are_put_back(bench: Callable[..., Bench], how: str) -> None:
    def script(job: Job) -> Sequence[Event]:
        during.append([signal.getsignal(number) for number in SIGNALS])
        if how == "with an error":
            raise RuntimeError("a fault of the engine")
        if how == "interrupted":
            os.kill(os.getpid(), signal.SIGINT)
        return finish(job)

    during: list[list[Any]] = []
    before = [signal.getsignal(number) for number in SIGNALS]
    one = bench(script)
    if how == "with an error":
        with pytest.raises(RuntimeError, match="a fault of the engine"):
            one.run()
    else:
        assert one.run().interrupted is (how == "interrupted")
    assert [signal.getsignal(number) for number in SIGNALS] == before
    assert all(now != then for now, then in zip(during[0], before, strict=True))


def test_a_signal_that_is_ignored_stays_so(bench: Callable[..., Bench]) -> None:
    """As under nohup."""
    during: list[Any] = []

    def script(job: Job) -> Sequence[Event]:
        during.append(signal.getsignal(signal.SIGTERM))
        return finish(job)

    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert bench(script).run().finished == 4
    finally:
        signal.signal(signal.SIGTERM, before)
    assert during[0] == signal.SIG_IGN


def test_another_thread_has_no_signals_and_needs_none(bench: Callable[..., Bench]) -> None:
    found: list[DriverResult] = []
    thread = threading.Thread(target=lambda: found.append(bench().run()))
    thread.start()
    thread.join()
    assert found == [DriverResult(cells=4, finished=4, computed=4)]


def test_steps_from_before_are_no_speed(bench: Callable[..., Bench]) -> None:
    """A cell that is resumed at step 900 of 1000 has done 100 steps in this run."""
    one = bench(lambda job: [Moved(job.id, 900, resumed=True), Moved(job.id, 950), Finished(job.id, files_of(job))])
    one.run()
    assert one.driver._tally.steps == 4 * 100
