"""The Ray engine: on a real cluster of two nodes on this machine, one of which is killed; its tasks also by themselves."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiment_samples import TABLES, cell_meta, learned, tables, tiny_spec, wait_until

from spanrl import learn
from spanrl.agents import registry
from spanrl.errors import MissingExtraError, OptionError
from spanrl.experiments import on_ray
from spanrl.experiments.driver import job_of
from spanrl.experiments.engine import Event, Failed, Job, Kept, Moved, Stopped
from spanrl.experiments.on_ray import RayEngine, cell_task
from spanrl.experiments.run import drive
from spanrl.experiments.spec import Spec, read_spec
from spanrl.experiments.store import Store
from spanrl.learning.files import computed_with
from spanrl.learning.snapshot import pack, unpack

NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
SETTINGS = {"worker_niceness": 0}  # Ray's default of 15 starves cells where other tests run beside these

LONG = {
    "name": "long",
    "horizon": 1e7,
    "points": 10,
    "seeds": 2,
    "env": [{"id": "knight-quest"}],
    "agent": [{"id": "scal[span_bound=5,p_scale=0.05,r_scale=0.05]"}],
}

PLUGIN = """
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from spanrl import UCRL, register_agent


@dataclass(frozen=True)
class RaisesAtSeedOne:
    delta: float = 0.05

    def start(self, info, rng):
        if rng.bit_generator.seed_seq.entropy == 1:
            os.environ["SPOILT"] = "1"
            raise ValueError("not with\\nthis seed")
        return UCRL(self.delta).start(info, rng)


@dataclass(frozen=True)
class DiesOnce:
    delta: float = 0.05

    def start(self, info, rng):
        assert "SPOILT" not in os.environ, "a worker that has failed a cell was used again"
        mark = Path(__file__).with_name("died")
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return UCRL(self.delta).start(info, rng)


register_agent("raises", RaisesAtSeedOne, summary="For a test.")
register_agent("dies-once", DiesOnce, summary="For a test.")
"""


@pytest.fixture(scope="module")
def ray() -> Any:
    """Return the package, as the engine imports it."""
    pytest.importorskip("ray", reason="the Ray engine needs ray")
    return on_ray._import_ray()


@pytest.fixture(scope="module")
def cluster(ray: Any) -> Iterator[Any]:
    """Yield a cluster whose one node computes one cell at a time."""
    from ray.cluster_utils import Cluster

    out = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False, "_system_config": SETTINGS})
    yield out
    out.shutdown()


@pytest.fixture
def second_node(cluster: Any) -> Iterator[Any]:
    """Add a node for the time of a test, which may kill it."""
    node = cluster.add_node(**NODE)
    cluster.wait_for_nodes(60)
    yield node
    if node in cluster.worker_nodes:
        cluster.remove_node(node)


def resumed_at(out: Path, spec: Spec) -> list[int]:
    """Return all times at which cells went on from checkpoints."""
    return [t for cell in spec.cells() for t in cell_meta(out, cell.folder)["run"]["resumed_at"]]


def started(address: str) -> RayEngine:
    return RayEngine(address, (), (), 0.05)


# --- on a cluster ---------------------------------------------------------------------------------------------------


# the tests that need the first node alone come first: it takes seconds until the cluster forgets a second one


def test_stopping_cancels_and_closing_leaves_a_foreign_connection(cluster: Any, ray: Any) -> None:
    handler = signal.getsignal(signal.SIGTERM)
    with closing(started(cluster.address)):
        assert signal.getsignal(signal.SIGTERM) is handler
        endless = read_spec(LONG | {"horizon": 1e12})
        job = job_of(endless.cells()[0], endless)
        with closing(started("not looked at")) as guest:
            wait_until(lambda: guest.slots == 1)  # a node of an earlier test would be forgotten after a while
            guest.start(job, None)
            seen: list[Event] = []
            wait_until(lambda: seen.extend(guest.events(0.2)) or any(isinstance(event, Kept) for event in seen))
            assert seen[0] == Moved(job.id, 0)
            guest.stop()
            assert guest.events(0) == [Stopped(job.id)]
            wait_until(lambda: ray.available_resources().get("CPU") == 1)
            assert guest.events(0) == []
        assert ray.is_initialized()
    assert not ray.is_initialized()


def test_a_cell_that_takes_too_long_is_ended(cluster: Any, ray: Any) -> None:
    endless = read_spec(LONG | {"horizon": 1e12})
    job = job_of(endless.cells()[0], endless)
    with closing(RayEngine(cluster.address, (), (), 60.0, 0.5)) as engine:
        engine.start(job, None)
        seen: list[Event] = []
        wait_until(lambda: seen.extend(engine.events(0.2)) or any(isinstance(event, Failed) for event in seen))
        assert seen[0] == Moved(job.id, 0)
        assert isinstance(seen[-1], Failed)
        assert seen[-1].reason.startswith("it was not finished after 0.5 seconds (--cell-timeout), so it was ended.")
        wait_until(lambda: ray.available_resources().get("CPU") == 1)


@pytest.mark.usefixtures("second_node")
def test_the_bytes_are_those_of_the_local_engine(cluster: Any, ray: Any, tmp_path: Path) -> None:
    spec = tiny_spec(horizon=3e5)
    for name, options in (("ray", {"engine": "ray", "address": cluster.address}), ("local", {"workers": 1})):
        outcome = drive(spec, out=tmp_path / name, checkpoint_every=0.05, **options)
        assert (outcome.computed, outcome.failed) == (8, {})
    assert not ray.is_initialized()
    assert tables(tmp_path / "ray") == tables(tmp_path / "local") == learned(spec)
    for cell in spec.cells():
        assert Store(tmp_path / "ray").checkpoint_time(cell.folder) == 300_000


def test_a_longer_horizon_goes_on_from_the_last_checkpoints(cluster: Any, tmp_path: Path) -> None:
    spec = tiny_spec(horizon=2e4, seeds=1, env=[{"id": "two-state"}])
    for horizon in (1e4, 2e4):
        outcome = drive(
            tiny_spec(horizon=horizon, seeds=1, env=[{"id": "two-state"}]),
            out=tmp_path / "out", engine="ray", address=cluster.address,
        )  # fmt: skip
        assert outcome.computed == 2
    assert resumed_at(tmp_path / "out", spec) == [10_000, 10_000]
    assert tables(tmp_path / "out") == learned(spec)


def test_cells_of_a_killed_node_go_on_elsewhere(cluster: Any, second_node: Any, tmp_path: Path) -> None:
    spec = read_spec(LONG)
    store = Store(tmp_path / "out")
    killed = threading.Event()

    def kill() -> None:
        wait_until(lambda: all(store.checkpoint_time(cell.folder) for cell in spec.cells()))
        cluster.remove_node(second_node, allow_graceful=False)
        killed.set()

    killer = threading.Thread(target=kill)
    killer.start()
    outcome = drive(spec, out=store.dir, engine="ray", address=cluster.address, checkpoint_every=0.05)
    killer.join(60)
    assert killed.is_set()
    assert (outcome.computed, outcome.failed) == (2, {})
    times = resumed_at(store.dir, spec)
    assert times
    assert all(0 < t < spec.horizon for t in times)
    assert tables(store.dir) == learned(spec)


def test_a_failing_cell_and_a_killed_worker_leave_the_others_intact(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plugin_on_ray.py").write_text(PLUGIN)
    agents = [{"id": "raises"}, {"id": "dies-once"}, {"id": "ucrl"}]
    spec, out = tiny_spec(plugins=["plugin_on_ray"], env=[{"id": "two-state"}], agent=agents), tmp_path / "out"
    outcome = drive(spec, out=out, engine="ray", address=cluster.address)
    assert (outcome.computed, outcome.failed) == (5, {"two-state/raises/001": "ValueError: not with this seed"})
    text = (out / "failed/two-state/raises/001.txt").read_text()
    assert "plugin_on_ray.py" in text
    assert "in start" in text
    assert (tmp_path / "died").exists()
    good = [replace(spec, agents=spec.agents[1:]), replace(spec, agents=spec.agents[:1], seeds=(0,))]
    assert tables(out) == learned(good[0]) | learned(good[1])


# --- no cluster -----------------------------------------------------------------------------------------------------


def free_address() -> str:
    """Return an address without a listener."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.usefixtures("ray")
def test_nobody_at_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = free_address()
    rule = rf"run: no Ray cluster was found at '{address}'. Start one with: ray start --head"
    with pytest.raises(OptionError, match=rule):
        drive(tiny_spec(), out=tmp_path / "out", engine="ray", address=address)
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(OptionError, match=rule):
        drive(tiny_spec(), out=tmp_path / "out", engine="ray")


@pytest.mark.parametrize("address", ["ray://10.0.0.1:10001", "local", "head", "head:", ":6379", "head:x"])
@pytest.mark.usefixtures("ray")
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(
        OptionError, match=rf"--ray takes auto or HOST:PORT; got '{address}'. Run the command on a machine"
    ):
        started(address)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionError("Could not find any"), "no Ray cluster was found at 'auto'"),
        (
            RuntimeError("Version mismatch:\n2 and 3"),
            r"at 'auto' cannot be joined \(RuntimeError: Version mismatch: 2 and 3\)\.",
        ),
    ],
)
def test_what_ray_says_becomes_a_sentence(
    ray: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def init(**options: Any) -> None:
        raise error

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(OptionError, match=words):
        started("auto")


def test_something_that_answers_but_cannot_be_joined(ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**options: Any) -> None:
        raise ConnectionError("Failed to connect")

    monkeypatch.setattr(ray, "init", init)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(
            OptionError, match=rf"'{address}' cannot be joined .*Failed to connect.*RAY_AUTH_MODE=token"
        ):
            started(address)


def test_ray_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        MissingExtraError, match=r"run: ray is not installed. Run: pip install ray .*pip install '\.\[ray\]'\)\."
    ):
        drive(tiny_spec(), out=tmp_path / "out", engine="ray")


# --- a task by itself -----------------------------------------------------------------------------------------------

JOB = Job("two-state/ucrl/003", "two-state/ucrl/003", "two-state", "ucrl", 3, 300_000, 10)


@pytest.fixture
def many_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run come back to Python every 1000 steps: it is kept between two budgets."""
    monkeypatch.setattr("spanrl.learning.session.BUDGET", 1000)


def messages(
    checkpoint: bytes | None = None, *, every: float = 1e-9, versions: dict[str, str | None] | None = None
) -> Sequence[Any]:
    settings = {"plugins": [], "folders": [], "checkpoint_every": every, "versions": versions or computed_with()}
    return list(cell_task(JOB._asdict(), checkpoint, settings))


def kinds(found: Sequence[Any]) -> list[str]:
    return [message["event"] for message in found]


def expected() -> dict[str, bytes]:
    files = learn(JOB.env, JOB.agent, horizon=JOB.horizon, seed=JOB.seed, points=JOB.points).to_files()
    return {name: files[name] for name in TABLES}


@pytest.mark.usefixtures("many_looks")
def test_a_task_sends_checkpoints_and_then_the_files() -> None:
    found = messages()
    assert found[0] == {"event": "moved", "t": 0, "resumed": False}
    assert kinds(found)[-2:] == ["kept", "finished"]
    times = [unpack(message["checkpoint"])["t"] for message in found if message["event"] == "kept"]
    assert times == sorted(times)
    assert len(times) > 1
    assert times[-1] == JOB.horizon
    assert {name: found[-1]["files"][name] for name in TABLES} == expected()


@pytest.mark.usefixtures("many_looks")
def test_a_task_goes_on_from_a_checkpoint() -> None:
    sent = [message["checkpoint"] for message in messages() if message["event"] == "kept"]
    half = sent[len(sent) // 2]
    found = messages(half, every=60)
    assert kinds(found) == ["moved", "kept", "finished"]
    assert found[0] == {"event": "moved", "t": unpack(half)["t"], "resumed": True}
    assert 0 < found[0]["t"] < JOB.horizon
    assert {name: found[-1]["files"][name] for name in TABLES} == expected()


def cut(data: bytes) -> bytes:
    return data[:-1]


def of_another_version(data: bytes) -> bytes:
    return pack(unpack(data) | {"versions": {"spanrl": "0.0"}})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            cut,
            "two-state/ucrl/003: checkpoint: the checkpoint is cut or was changed (its SHA-256 is another). The cell begins anew.",
        ),
        (
            of_another_version,
            "ucrl on two-state: checkpoints were written with other versions of spanrl, its plugins, numpy or numba, so cells begin anew.",
        ),
    ],
)
def test_a_checkpoint_that_is_of_no_use_is_told(change: Callable[[bytes], bytes], words: str) -> None:
    last = messages(every=60)[-2]["checkpoint"]
    found = messages(change(last), every=60)
    assert found[:2] == [{"event": "said", "line": words}, {"event": "moved", "t": 0, "resumed": False}]
    assert {name: found[-1]["files"][name] for name in TABLES} == expected()


def test_a_node_with_other_versions_is_refused() -> None:
    (found,) = messages(versions=computed_with() | {"numpy": "0.1"})
    assert found["event"] == "failed"
    assert (
        f"numpy {computed_with()['numpy']} instead of 0.1. Install the same versions on every node" in found["reason"]
    )


def test_whatever_ends_the_thread_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(*_: Any) -> None:
        sys.exit("gone")

    monkeypatch.setattr("spanrl.experiments.cell.Computation", leave)
    (found,) = messages()
    assert (found["event"], found["reason"]) == ("failed", "SystemExit: gone")


def test_a_node_compiles_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[bool] = []
    monkeypatch.setattr(on_ray, "is_warm", lambda agents: bool(compiled))
    monkeypatch.setattr(on_ray, "warm_up", lambda agents: compiled.append(True))
    assert "compiles for first use" in messages(every=60)[0]["line"]
    assert kinds(messages(every=60))[0] == "moved"
    assert compiled == [True]
