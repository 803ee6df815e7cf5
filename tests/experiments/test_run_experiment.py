"""Experiments on real worker processes: the bytes of ``learn``, whatever happens on the way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiment_samples import (
    FILES,
    FULL_DISK,
    PLUGIN,
    cell_meta,
    environment,
    learned,
    started,
    tables,
    tiny,
    tiny_spec,
    tree,
    wait_until,
    write_toml,
)

from spanrl import MDP, run_experiment
from spanrl.agents import registry as agent_registry
from spanrl.envs import registry as env_registry
from spanrl.errors import CellsFailedError
from spanrl.experiments.run import drive
from spanrl.experiments.spec import read_spec
from spanrl.experiments.store import Store
from spanrl.learning.run import Run

LONG: dict[str, Any] = {
    "name": "long", "horizon": 1e8, "points": 10, "seeds": 2, "env": [{"id": "three-state[delta=0.01]"}],
    "agent": [{"id": "scal[span_bound=2]"}, {"id": "ucrl"}],
}  # fmt: skip
"""Cells of half a second on a fast machine: some checkpoints each."""


@pytest.fixture(autouse=True)
def _restore(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget plugins after each test."""
    monkeypatch.setattr(env_registry, "_ENTRIES", dict(env_registry._ENTRIES))
    monkeypatch.setattr(agent_registry, "_ENTRIES", dict(agent_registry._ENTRIES))
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("runner_plugin", None)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the tiny experiment, finished by two workers; not to be changed."""
    folder = tmp_path_factory.mktemp("finished") / "out"
    outcome = drive(tiny_spec(), out=folder, workers=2)
    assert (outcome.finished, outcome.computed, outcome.failed, outcome.interrupted) == (8, 8, {}, False)
    return folder


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    """Return a copy of it, to be changed."""
    shutil.copytree(finished, tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture(scope="module")
def long_tables() -> dict[str, bytes]:
    """Return the tables that the long experiment must have."""
    return learned(read_spec(LONG))


def with_plugin(tmp_path: Path, code: str = PLUGIN, **changes: Any) -> Path:
    """Write a spec with a plugin beside it."""
    (tmp_path / "runner_plugin.py").write_text(code)
    return write_toml(tmp_path / "spec.toml", plugins=["runner_plugin"], **changes)


def moments(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return when each file of the cells was written, and its inode."""
    found = {path: path.stat() for path in (folder / "cells").rglob("*") if path.is_file()}
    return {path: (stat.st_mtime_ns, stat.st_ino) for path, stat in found.items()}


# --- the bytes ------------------------------------------------------------------------------------------------------


def test_the_bytes_are_those_of_learn(finished: Path) -> None:
    assert tables(finished) == learned(tiny_spec())


def test_one_worker_and_another_order_give_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    backwards = {"env": tiny()["env"][::-1], "agent": tiny()["agent"][::-1], "seeds": [1, 0]}
    drive(tiny_spec(**backwards), out=tmp_path / "out", workers=1)
    assert tables(tmp_path / "out") == tables(finished)


def test_the_directory_holds_what_the_design_says_and_nothing_else(finished: Path) -> None:
    assert sorted(path.name for path in finished.iterdir()) == ["cells", "checkpoints", "lock", "spec.toml"]
    cells = [f"{env}/{agent}/{seed}" for env in ("three-state--delta-0.01", "two-state")
             for agent in ("scal--span_bound-2", "ucrl") for seed in ("000", "001")]  # fmt: skip
    assert list(tree(finished / "cells")) == sorted(f"{cell}/{name}" for cell in cells for name in FILES)
    assert list(tree(finished / "checkpoints")) == sorted(f"{cell}.ckpt" for cell in cells)
    assert (finished / "lock").read_bytes() == b""


def test_cells_tell_what_they_are(finished: Path) -> None:
    content = cell_meta(finished, "three-state--delta-0.01/scal--span_bound-2/001")
    assert content["id"] == "three-state[delta=0.01]/scal[span_bound=2]/001"
    assert content["spec"] == {
        "env": "three-state[delta=0.01]", "agent": "scal[span_bound=2]", "seed": 1, "horizon": 2000, "points": 10,
    }  # fmt: skip
    assert content["run"]["resumed_at"] == []
    assert content["run"]["interrupted"] is False


def test_polars_reads_all_curves(finished: Path) -> None:
    polars = pytest.importorskip("polars")
    found = polars.read_parquet(f"{finished}/**/curve.parquet")
    assert found.select("env", "agent", "seed").unique().height == 8
    assert found.filter(polars.col("t") == 2000).height == 8


def test_duckdb_reads_all_curves(finished: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    query = f"select count(distinct (env, agent, seed)), max(t) from '{finished}/**/curve.parquet'"
    assert duckdb.sql(query).fetchall() == [(8, 2000)]


def test_a_saved_model(tmp_path: Path) -> None:
    P = np.random.default_rng(0).dirichlet(np.ones(3), size=(3, 2))
    MDP.from_dense(P, np.linspace(0, 1, 6).reshape(3, 2)).save(tmp_path / "mine.npz")
    spec = read_spec(write_toml(tmp_path / "spec.toml", env=[{"id": "mine.npz"}], agent=[{"id": "ucrl"}], seeds=1))
    drive(spec, out=tmp_path / "out", workers=1)
    assert tables(tmp_path / "out") == learned(spec)
    assert cell_meta(tmp_path / "out", "mine/ucrl/000")["id"] == "mine/ucrl/000"


# --- again, and more ------------------------------------------------------------------------------------------------


def test_the_same_command_again_computes_nothing(copy: Path) -> None:
    before, spec = moments(copy), (copy / "spec.toml").read_bytes()
    outcome = drive(tiny_spec(), out=copy, workers=2)
    assert (outcome.finished, outcome.computed) == (8, 0)
    assert moments(copy) == before
    assert (copy / "spec.toml").read_bytes() == spec


def test_more_seeds_and_more_agents(copy: Path) -> None:
    more = tiny_spec(seeds=[0, 1, 7], agent=[{"id": "ucrl2"}, *tiny()["agent"]])
    before = moments(copy)
    outcome = drive(more, out=copy, workers=1)
    assert (outcome.finished, outcome.computed) == (18, 10)
    assert tables(copy) == learned(more)
    assert {path: moment for path, moment in moments(copy).items() if path in before} == before


def test_a_longer_horizon_goes_on_from_the_end(copy: Path) -> None:
    longer = tiny_spec(horizon=5000)
    outcome = drive(longer, out=copy, workers=1)
    assert (outcome.finished, outcome.computed) == (8, 8)
    assert tables(copy) == learned(longer)
    for cell in longer.cells():
        assert cell_meta(copy, cell.folder)["run"]["resumed_at"] == [2000]


def test_agents_that_read_the_horizon_are_computed_anew(
    tmp_path: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    agents = [{"id": "reads"}, {"id": "cannot-be-kept"}, {"id": "ucrl"}]
    spec = with_plugin(tmp_path, agent=agents, env=[{"id": "two-state"}], seeds=1)
    assert run("run", spec, "--out", tmp_path / "out", "--workers", 1)[0] == 0
    assert list(tree(tmp_path / "out" / "checkpoints")) == ["two-state/reads/000.ckpt", "two-state/ucrl/000.ckpt"]

    with_plugin(tmp_path, agent=agents, env=[{"id": "two-state"}], seeds=1, horizon=3000)
    code, _, err = run("run", spec, "--out", tmp_path / "out", "--workers", 1)
    assert code == 0
    assert err.count("reads on two-state: the agent reads the horizon, which is another now") == 1
    assert tables(tmp_path / "out") == learned(read_spec(spec))
    resumed = {a: cell_meta(tmp_path / "out", f"two-state/{a}/000")["run"]["resumed_at"] for a in ("reads", "ucrl")}
    assert resumed == {"reads": [], "ucrl": [2000]}


def test_some_cells_first(tmp_path: Path, run: Callable[..., tuple[int, str, str]], finished: Path) -> None:
    spec = write_toml(tmp_path / "spec.toml")
    only = ("--only", "two-state/*/001", "--only", "[delta=0.01]/scal*/000")
    code, out, _ = run("run", spec, "--out", tmp_path / "out", "--workers", 1, *only)
    assert code == 0
    assert "3 of 3 cells finished" in out
    chosen = (
        "three-state--delta-0.01/scal--span_bound-2/000",
        "two-state/scal--span_bound-2/001",
        "two-state/ucrl/001",
    )
    wanted = tables(finished)
    assert tables(tmp_path / "out") == {
        name: wanted[name] for name in sorted(wanted) if name.removeprefix("cells/").rpartition("/")[0] in chosen
    }
    before = moments(tmp_path / "out")
    assert run("run", spec, "--out", tmp_path / "out", "--workers", 1)[0] == 0
    assert tables(tmp_path / "out") == wanted
    assert before.items() <= moments(tmp_path / "out").items()


# --- damage ---------------------------------------------------------------------------------------------------------


def flip(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:200] + bytes([data[200] ^ 4]) + data[201:])


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-50])


DAMAGE = [
    ("curve.parquet", flip), ("curve.parquet", cut), ("curve.parquet", Path.unlink), ("meta.json", flip),
    ("meta.json", cut), ("meta.json", Path.unlink), ("episodes.parquet", flip),
]  # fmt: skip


def test_damaged_results_are_named_set_aside_and_computed_anew(
    copy: Path, tmp_path: Path, finished: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    cells = tiny_spec().cells()
    for cell, (name, damage) in zip(cells, DAMAGE, strict=False):
        damage(copy / "cells" / cell.folder / name)
    before = moments(copy)
    code, _, err = run("run", write_toml(tmp_path / "spec.toml"), "--out", copy, "--workers", 1)
    assert code == 0
    assert tables(copy) == tables(finished)
    for cell, (name, _) in zip(cells, DAMAGE, strict=False):
        line = next(line for line in err.splitlines() if line.startswith(f"spanrl: {cell.id}: "))
        assert str(copy / "cells" / cell.folder / name) in line
        assert f"It was set aside as {copy / 'set-aside' / 'cells' / cell.folder} and is computed anew" in line
        assert (copy / "set-aside" / "cells" / cell.folder).is_dir()
    untouched = copy / "cells" / cells[-1].folder
    assert {path: moment for path, moment in moments(copy).items() if untouched in path.parents} == {
        path: moment for path, moment in before.items() if untouched in path.parents
    }
    assert len(list((copy / "set-aside" / "cells").glob("*/*/*"))) == len(DAMAGE)


def test_damaged_checkpoints_are_named_set_aside_and_done_without(
    copy: Path, tmp_path: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    longer = tiny_spec(horizon=3000)
    cells = longer.cells()
    damage = [flip, cut, Path.unlink, lambda path: path.write_bytes(b"")]
    for cell, harm in zip(cells, damage, strict=False):
        harm(copy / "checkpoints" / f"{cell.folder}.ckpt")
    code, _, err = run("run", write_toml(tmp_path / "spec.toml", horizon=3000), "--out", copy, "--workers", 1)
    assert code == 0
    assert tables(copy) == learned(longer)
    resumed = [cell_meta(copy, cell.folder)["run"]["resumed_at"] for cell in cells]
    assert resumed == [[]] * 4 + [[2000]] * 4
    for cell, words in zip(
        cells, ("is cut or was changed", "is cut or was changed", None, "no checkpoint"), strict=False
    ):
        lines = [line for line in err.splitlines() if line.startswith(f"spanrl: {cell.id}: ")]
        assert len(lines) == (words is not None)
        if words is not None:
            assert words in lines[0]
            assert "the cell begins anew" in lines[0]
            assert (copy / "set-aside" / "checkpoints" / f"{cell.folder}.ckpt.damaged").is_file()


def test_a_checkpoint_of_another_cell_is_not_gone_on_with(copy: Path, tmp_path: Path) -> None:
    first, second = tiny_spec().cells()[:2]
    shutil.copy(copy / "checkpoints" / f"{first.folder}.ckpt", copy / "checkpoints" / f"{second.folder}.ckpt")
    drive(tiny_spec(horizon=3000), out=copy, workers=1, only=["000"])
    wanted = learned(tiny_spec(horizon=3000))
    name = f"cells/{second.folder}/curve.parquet"
    assert tables(copy)[name] == wanted[name]
    assert cell_meta(copy, second.folder)["run"]["resumed_at"] == []


# --- cells that fail ------------------------------------------------------------------------------------------------


def test_cells_that_fail_leave_the_others(
    tmp_path: Path, run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = [{"id": name} for name in ("fails", "dies", "prints", "ucrl")]
    spec, out = with_plugin(tmp_path, env=[{"id": "two-doors", "p": 0.25}], agent=agents), tmp_path / "out"
    code, shown, err = run("run", spec, "--out", out, "--workers", 2)
    assert code == 1
    assert "6 of 8 cells finished" in shown
    failed, died = "two-doors[p=0.25]/fails/001", "two-doors[p=0.25]/dies/001"
    assert f"{failed} failed: ValueError: I cannot learn [this]\n" in err
    assert f"{died} failed: the worker process ended with exit code 3" in err
    tried = [line for line in err.splitlines() if line.startswith(f"spanrl: {died}: the worker process ended with")]
    assert len([line for line in tried if line.endswith("It is tried again.")]) == 2
    assert "(3 times)" in err
    assert "hello from the plugin" in err
    assert "hello" not in shown
    assert err.splitlines()[-1].startswith(f"spanrl: 2 of 8 cells failed; the texts are in {out / 'failed'}. ")
    texts = tree(out / "failed")
    assert list(texts) == ["two-doors--p-0.25/dies/001.txt", "two-doors--p-0.25/fails/001.txt"]
    assert b"Traceback (most recent call last)" in texts["two-doors--p-0.25/fails/001.txt"]
    assert b'raise ValueError("I cannot' in texts["two-doors--p-0.25/fails/001.txt"]
    for cell in read_spec(spec).cells():
        if cell.id not in (failed, died):
            assert Run.load(out / "cells" / cell.folder).t[-1] == 2000

    before = moments(out)
    code, _, err = run("run", spec, "--out", out)
    assert code == 1
    assert "2 failed before (--retry-failed computes them again)" in err
    assert moments(out) == before

    monkeypatch.setenv("HEALED", "1")
    assert run("run", spec, "--out", out, "--workers", 1, "--retry-failed")[0] == 0
    assert tables(out) == learned(read_spec(spec))
    assert tree(out / "failed") == {}
    assert before.items() <= moments(out).items()


def test_run_experiment_tells_of_failures_in_the_end(tmp_path: Path) -> None:
    spec = with_plugin(tmp_path, env=[{"id": "two-state"}], agent=[{"id": "fails"}])
    with pytest.raises(CellsFailedError, match=r"1 of 2 cells failed, two-state/fails/001 first: ValueError") as caught:
        run_experiment(spec, out=tmp_path / "out", workers=1)
    assert caught.value.results is not None
    assert list(caught.value.results.failed) == ["two-state/fails/001"]


def test_a_disk_that_is_full_for_workers(
    tmp_path: Path, run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, finished: Path
) -> None:
    spec, out = with_plugin(tmp_path, FULL_DISK), tmp_path / "out"
    code, _, err = run("run", spec, "--out", out, "--workers", 1)
    assert code == 1
    assert "No space left on device" in err
    there = assert_some_are_whole(out, finished)
    monkeypatch.setenv("HEALED", "1")
    assert run("run", spec, "--out", out, "--workers", 1, "--retry-failed")[0] == 0
    assert tables(out) == tables(finished)
    assert there.items() <= moments(out).items()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of its own with room for 300 kB."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("only root can mount")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no mounts here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_full(
    small_disk: Path, tmp_path: Path, run: Callable[..., tuple[int, str, str]], finished: Path
) -> None:
    out, ballast = small_disk / "out", small_disk / "ballast"
    ballast.write_bytes(b"x" * 150_000)
    spec = write_toml(tmp_path / "spec.toml")
    code, _, err = run("run", spec, "--out", out, "--workers", 1)
    assert code == 1
    assert "No space left on device" in err
    there = assert_some_are_whole(out, finished)
    ballast.unlink()
    assert run("run", spec, "--out", out, "--workers", 1, "--retry-failed")[0] == 0
    assert tables(out) == tables(finished)
    assert there.items() <= moments(out).items()


def assert_some_are_whole(out: Path, finished: Path) -> dict[Path, tuple[int, int]]:
    """Some cells are finished and right, the others are not there, and nothing is half there."""
    wanted, found = tables(finished), tables(out)
    assert 0 < len(found) < len(wanted)
    assert found.items() <= wanted.items()
    spec = tiny_spec()
    whole = [cell for cell in spec.cells() if Store(out).finished_horizon(cell) is not None]
    assert len(found) == 2 * len(whole)
    assert not (out / "tmp").exists()
    return moments(out)


# --- two drivers, signals -------------------------------------------------------------------------------------------


def begun(out: Path) -> Callable[[], bool]:
    """Tell whether some cell has written a checkpoint."""
    return lambda: any(path.stat().st_size for path in (out / "checkpoints").rglob("*.ckpt"))


def test_a_second_driver_is_refused_and_the_first_goes_on(
    tmp_path: Path, run: Callable[..., tuple[int, str, str]], long_tables: dict[str, bytes]
) -> None:
    spec, out = write_toml(tmp_path / "spec.toml", **LONG), tmp_path / "out"
    with started("run", spec, "--out", out, "--workers", "2", "--checkpoint-every", "0.05") as process:
        wait_until(begun(out))
        code, shown, err = run("run", spec, "--out", out)
        assert (code, shown) == (2, "")
        assert f"is in use by another spanrl run (process {process.pid} on " in err
        assert process.poll() is None
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert tables(out) == long_tables


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_group_is_an_orderly_end(
    tmp_path: Path, run: Callable[..., tuple[int, str, str]], long_tables: dict[str, bytes], number: int
) -> None:
    spec, out = write_toml(tmp_path / "spec.toml", **LONG), tmp_path / "out"
    with started("run", spec, "--out", out, "--workers", "2", "--checkpoint-every", "0.05") as process:
        wait_until(begun(out))
        sent = time.monotonic()
        os.killpg(process.pid, number)
        _, err = process.communicate(timeout=30)
        assert time.monotonic() - sent < 10
        assert process.returncode == 130
    assert "of 4 cells are finished. The same command resumes." in err
    assert "Traceback" not in err
    assert begun(out)()
    assert not (out / "tmp").exists()
    assert len(tables(out)) < len(long_tables)
    assert run("run", spec, "--out", out, "--workers", "2")[0] == 0
    assert tables(out) == long_tables
    resumed = [cell_meta(out, cell.folder)["run"]["resumed_at"] for cell in read_spec(spec).cells()]
    assert any(times and times[0] > 0 for times in resumed)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are found in /proc")
def test_workers_end_with_their_driver(tmp_path: Path) -> None:
    spec, out = write_toml(tmp_path / "spec.toml", **LONG | {"horizon": 10**10}), tmp_path / "out"
    with started("run", spec, "--out", out, "--workers", "2", "--checkpoint-every", "0.05") as process:
        wait_until(begun(out))
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        workers = [pid for pid in children if b"spanrl.experiments.worker" in command_line(pid)]
        assert workers
        process.kill()  # it alone
        process.wait()
        wait_until(lambda: not any(b"spanrl.experiments.worker" in command_line(pid) for pid in workers), 5.0)


def command_line(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_a_script_without_a_guard(tmp_path: Path) -> None:
    """Workers do not import the script of the caller, so it needs no ``if __name__ == "__main__"``."""
    (tmp_path / "script.py").write_text(
        f"import spanrl\nresults = spanrl.run_experiment({tiny(seeds=1)!r}, out='out', workers=2)\n"
        "print('once', len(results.missing), len(results.failed))\n"
    )
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env=environment(),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "once 0 0\n"), done.stderr
    assert tables(tmp_path / "out") == learned(tiny_spec(seeds=1))
