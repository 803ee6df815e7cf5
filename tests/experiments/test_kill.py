"""``kill -9`` of the whole process group, again and again at random moments: nothing is lost, and no bit is another."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiment_samples import cell_meta, command, environment, kill_group, started, tables, tree, write_toml

from spanrl.experiments.run import drive
from spanrl.experiments.spec import Spec, read_spec
from spanrl.experiments.store import Store
from spanrl.learning.run import Run
from spanrl.learning.snapshot import read_head

KILLS = 4  # each once a checkpoint has moved on or a cell has appeared
EARLY_KILLS = 1  # at any moment from the start of the command
SPEC: dict[str, Any] = {
    "name": "killed", "horizon": 6e6, "points": 10, "seeds": 2,
    "env": [{"id": "knight-quest"}, {"id": "three-state[delta=0.01]"}],
    "agent": [{"id": "scal[span_bound=5,p_scale=0.05,r_scale=0.05]"}, {"id": "ucrl[p_scale=0.05,r_scale=0.05]"}],
}  # fmt: skip


def arguments(spec: Path, out: Path) -> list[str | Path]:
    return ["run", spec, "--out", out, "--workers", "2", "--checkpoint-every", "0.05"]


def progress(out: Path) -> dict[str, int]:
    """Return the steps done at each checkpoint, and the cells that are there."""
    seen = {str(path): -1 for path in (out / "cells").glob("*/*/*")}
    for path in (out / "checkpoints").rglob("*.ckpt"):
        seen[str(path)] = read_head(path)["t"]
    return seen


def wait_for_progress(process: subprocess.Popen[str], out: Path) -> None:
    before, end = progress(out), time.monotonic() + 60
    while process.poll() is None and progress(out) == before:
        assert time.monotonic() < end, "no progress in a minute"
        time.sleep(0.005)


def finish(spec: Path, out: Path) -> str:
    argv = ("run", spec, "--out", out, "--workers", "2")
    done = subprocess.run(command(*argv), capture_output=True, text=True, timeout=300, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the file of the spec and the directory of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    spec = write_toml(folder / "spec.toml", **SPEC)
    assert drive(read_spec(spec), out=folder / "out", workers=1).finished == 8
    return spec, folder / "out"


@pytest.fixture(scope="module")
def killed(whole: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    """Return the directory of a run that was killed many times, how often, and what its last driver said."""
    spec, rng = whole[0], np.random.default_rng(2018)
    out, kills = tmp_path_factory.mktemp("killed") / "out", 0
    for number in range(KILLS + EARLY_KILLS):
        with started(*arguments(spec, out)) as process:
            if number < KILLS:
                wait_for_progress(process, out)
                time.sleep(rng.uniform(0, 0.4))
            else:
                time.sleep(rng.uniform(0, 1.5))
            kills += process.poll() is None
            kill_group(process)
    return out, kills, finish(spec, out)


def resumptions(out: Path, spec: Spec) -> dict[str, list[int]]:
    return {cell.id: cell_meta(out, cell.folder)["run"]["resumed_at"] for cell in spec.cells()}


def test_it_was_killed_often_and_went_on_from_checkpoints(
    whole: tuple[Path, Path], killed: tuple[Path, int, str]
) -> None:
    """Otherwise the next tests would show nothing."""
    spec = read_spec(whole[0])
    out, kills, _ = killed
    assert kills >= KILLS
    resumed = [times for times in resumptions(out, spec).values() if any(t > 0 for t in times)]
    assert len(resumed) >= 2
    assert any(0 < t < spec.horizon for times in resumed for t in times)
    assert all(times == sorted(times) for times in resumed)
    assert max(map(len, resumed)) >= 2, "a cell that was killed more than once"
    assert not any(resumptions(whole[1], spec).values())


def test_every_table_has_the_bytes_of_an_uninterrupted_run(
    whole: tuple[Path, Path], killed: tuple[Path, int, str]
) -> None:
    wanted, found = tables(whole[1]), tables(killed[0])
    assert len(wanted) == 2 * 8
    assert list(found) == list(wanted)
    assert [name for name in wanted if found[name] != wanted[name]] == []


def test_nothing_else_is_left(whole: tuple[Path, Path], killed: tuple[Path, int, str]) -> None:
    assert list(tree(killed[0])) == list(tree(whole[1]))
    assert sorted(path.name for path in killed[0].iterdir()) == ["cells", "checkpoints", "lock", "spec.toml"]


def test_no_damage_was_found_on_the_way(killed: tuple[Path, int, str]) -> None:
    """Every file was whole at every moment: a kill is no reason to set anything aside."""
    assert "set aside" not in killed[2]
    assert not (killed[0] / "set-aside").exists()


def test_the_cells_are_whole(whole: tuple[Path, Path], killed: tuple[Path, int, str]) -> None:
    spec, store = read_spec(whole[0]), Store(killed[0])
    for cell in spec.cells():
        assert store.finished_horizon(cell) == spec.horizon
        one, other = (Run.load(folder / "cells" / cell.folder).meta for folder in (killed[0], whole[1]))
        own = ("seconds", "resumed_at")
        assert {key: one[key] for key in one if key not in own} == {key: other[key] for key in other if key not in own}
