"""Worker processes that fork, fail, hang or print: small scripts in the place of the worker, under the real engine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from experiment_samples import wait_until, write_toml

from spanrl import learn
from spanrl.experiments import process as processes
from spanrl.experiments.engine import Event, Failed, Finished, Job, Lost, Moved, Said, Stopped
from spanrl.experiments.local import LocalEngine
from spanrl.experiments.run import drive
from spanrl.experiments.spec import read_spec
from spanrl.learning.run import Run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="it forks")

CONNECTED = """
import multiprocessing, os, sys, time
from spanrl.experiments.process import connect
ends = connect()
home = os.path.join(ends.inbox.get()["dir"], "tmp", str(os.getpid()))
def tell(**message):
    ends.tell(**message)
while True:
    job = ends.inbox.get()["job"]
    seed, name = job["seed"], job["id"]
    ends.begin()
"""
"""A worker that is told its settings, then jobs; what follows is the body of its loop."""


def job(seed: int) -> Job:
    return Job(f"e/a/{seed:03d}", f"e/a/{seed:03d}", "e", "a", seed, 100, 10)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., LocalEngine]]:
    """Return a function that makes a local engine whose workers run a script."""
    real, made = subprocess.Popen, list[LocalEngine]()
    monkeypatch.setattr("spanrl.experiments.local.is_warm", lambda agents: True)

    def make(body: str, *, cell_timeout: float | None = None) -> LocalEngine:
        script = CONNECTED + "\n".join(f"    {line}" for line in body.splitlines())
        monkeypatch.setattr(
            processes.subprocess, "Popen", lambda argv, **options: real([sys.executable, "-c", script], **options)
        )
        options = {"plugins": (), "folders": (), "agents": (), "checkpoint_every": 1.0, "cell_timeout": cell_timeout}
        made.append(LocalEngine(tmp_path, workers=2, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def events(engine: LocalEngine, n: int, kinds: tuple[type, ...] = (Finished, Failed, Lost)) -> list[Event]:
    """Return the next ``n`` events of some kinds."""
    found: list[Event] = []

    def enough() -> bool:
        found.extend(event for event in engine.events(0.05) if isinstance(event, kinds))
        return len(found) >= n

    wait_until(enough, 20.0)
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


FINISH = 'os.makedirs(home, exist_ok=True); tell(event="finished", id=name, folder=home)'
"""The folder is the number of the process: who has done it."""


def test_a_fork_pool_inside_a_worker_does_not_hang(engine: Callable[..., LocalEngine]) -> None:
    """The children of a pool close their standard input, whose lock must be free at the fork, and are ended by SIGTERM."""
    pool = 'with multiprocessing.get_context("fork").Pool(1) as pool:\n    assert pool.map(abs, [-1]) == [1]'
    child = 'child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))\nchild.start()'
    one = engine(f"{pool}\n{child}\nchild.terminate()\nchild.join()\n{FINISH}")
    one.start(job(0), None)
    assert [event.id for event in events(one, 1) if isinstance(event, Finished)] == [job(0).id]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked for in /proc")
def test_a_worker_that_dies_while_its_child_lives_is_noticed_and_the_child_ended(
    engine: Callable[..., LocalEngine],
) -> None:
    one = engine(
        'child = os.fork()\nif not child:\n    time.sleep(60)\ntell(event="moved", id=name, t=child)\nos._exit(3)'
    )
    one.start(job(0), None)
    moved, lost = events(one, 2, (Moved, Lost))
    assert isinstance(moved, Moved)
    assert isinstance(lost, Lost)
    assert lost.why.startswith("the worker process ended with exit code 3")
    wait_until(lambda: not is_running(moved.t), 5.0)


@pytest.mark.parametrize(
    "message", ["5", "[]", '{"event": "odd"}', '{"event": "moved", "id": 3, "t": "x", "resumed": false}',
                '{"event": "finished", "id": "e/a/000", "folder": "/"}']
)  # fmt: skip
def test_what_no_worker_says_costs_that_worker_alone(engine: Callable[..., LocalEngine], message: str) -> None:
    """A plugin has written into the pipe."""
    odd = f"if seed == 0:\n    os.write(ends.outbox.fileno(), {message!r}.encode() + bytes([10]))\n    time.sleep(60)"
    body = f"{odd}\ntell(event='stopped', id=name)"
    one = engine(body)
    one.start(job(0), None)
    one.start(job(1), None)
    found = events(one, 2, (Stopped, Lost))
    assert {type(event): event.id for event in found} == {Lost: "e/a/000", Stopped: "e/a/001"}


def test_what_is_said_twice_counts_once(engine: Callable[..., LocalEngine]) -> None:
    """A copy that a plugin has forked may tell the same end again."""
    one = engine(f"{FINISH}\n{FINISH}")
    for seed in range(2):
        one.start(job(seed), None)
        assert [event.id for event in events(one, 1)] == [job(seed).id]
    one.events(0.2)


def test_a_worker_that_has_failed_a_cell_is_not_used_again(engine: Callable[..., LocalEngine]) -> None:
    one = engine(
        f'if seed == 1:\n    tell(event="failed", id=name, reason=str(os.getpid()), text="")\n    continue\n{FINISH}'
    )
    who = []
    for seed in range(3):
        one.start(job(seed), None)
        (event,) = events(one, 1)
        who.append(event.reason if isinstance(event, Failed) else event.files.name)  # type: ignore[union-attr]
    assert who[0] == who[1] != who[2]
    assert not is_running(int(who[1]))


def test_a_cell_that_takes_too_long_is_ended(engine: Callable[..., LocalEngine]) -> None:
    printing = 'print("wait for me", file=sys.stderr, flush=True)\n    tell(event="moved", id=name, t=os.getpid())'
    body = f"if seed == 0:\n    {printing}\n    time.sleep(60)\n{FINISH}"
    one = engine(body, cell_timeout=1.5)
    one.start(job(0), None)
    moved, failed = events(one, 2, (Moved, Failed))
    assert isinstance(moved, Moved)
    assert isinstance(failed, Failed)
    assert failed.reason.startswith(
        "it was not finished after 1.5 seconds (--cell-timeout), so it was ended. --retry-failed"
    )
    assert failed.text == "wait for me"
    assert not is_running(moved.t)
    one.start(job(1), None)
    assert [event.id for event in events(one, 1)] == [job(1).id]


def test_what_a_worker_printed_for_an_earlier_cell_is_not_put_down_to_the_next(
    engine: Callable[..., LocalEngine],
) -> None:
    body = f'if seed == 1:\n    os.write(2, b"its own")\n    os._exit(3)\nprint("of the first", end="")\n{FINISH}'
    one = engine(body)
    one.start(job(0), None)
    assert isinstance(events(one, 1)[0], Finished)
    one.start(job(1), None)
    said, lost = events(one, 3, (Said, Lost))[0::2]
    assert said == Said("of the first")
    assert isinstance(lost, Lost)
    assert lost.why == "the worker process ended with exit code 3, saying 'its own'\nits own"


PLUGIN = """
import multiprocessing, os, time
from dataclasses import dataclass
from spanrl import UCRL, register_agent


@dataclass(frozen=True)
class Forks:
    how: str = "both"

    def start(self, info, rng):
        with open(os.environ["FORKED"], "a") as file:
            file.write(f"{os.fork() if self.how == 'both' else 0} ")
        if self.how == "pool":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                assert pool.map(abs, [-1, -2]) == [1, 2]
        return UCRL().start(info, rng)


register_agent("forks", Forks, summary="For a test.")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked for in /proc")
@pytest.mark.usefixtures("clean_registries")
def test_an_agent_that_forks_is_one_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides of a fork return from ``start``; one of them is the worker, and the other ends."""
    monkeypatch.setenv("FORKED", str(tmp_path / "forked"))
    (tmp_path / "forking.py").write_text(PLUGIN)
    agents = [{"id": "forks", "how": ["both", "pool"]}]
    path = write_toml(tmp_path / "s.toml", plugins=["forking"], env=[{"id": "two-state"}], agent=agents, seeds=1)
    outcome = drive(read_spec(path), out=tmp_path / "out", workers=1)
    assert (outcome.computed, outcome.failed) == (2, {})
    copies = [int(pid) for pid in (tmp_path / "forked").read_text().split() if pid != "0"]
    assert copies
    wait_until(lambda: not any(map(is_running, copies)), 5.0)
    plain = learn("two-state", "ucrl", horizon=2000, seed=0, points=10)
    for folder in ("forks", "forks--how-pool"):
        assert np.array_equal(Run.load(tmp_path / "out/cells/two-state" / folder / "000").reward, plain.reward)
