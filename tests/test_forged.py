"""Hundreds of forged files of each kind: refused with an error of ours, or as good as any. More of them: raise ATTACKS."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from forgery import attack_checkpoint, attack_model, attack_run, new_session, read_files
from spanrl import learn, make
from spanrl.experiments.spec import Spec, SpecEntry
from spanrl.learning.snapshot import pack, unpack
from spanrl.learning.worlds import TableWorld, as_world

ATTACKS = 100


class Stop(Exception):  # noqa: N818
    """The test has seen enough."""


def checkpoint(world: TableWorld, agent: str) -> dict[str, Any]:
    """Return the state of a run after 100 steps or so."""
    session = new_session(world, agent)

    def stop(t: int) -> None:
        if t >= 100:
            raise Stop

    with pytest.raises(Stop):
        session.run(0.5, stop)
    return unpack(pack(session.state()))


@pytest.mark.parametrize("agent", ["scal[span_bound=0.5,p_scale=0.05,r_scale=0.05]", "ucrl2"])
def test_checkpoints(agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanrl.learning.session.BUDGET", 50)
    world, rng = as_world("three-state"), Random(0)
    state = checkpoint(world, agent)
    refused = sum(attack_checkpoint(rng, world, agent, state) for _ in range(ATTACKS))
    assert ATTACKS / 2 < refused < ATTACKS


def test_models(tmp_path: Path) -> None:
    make("riverswim[n_states=4]").mdp.save(tmp_path / "m.npz")
    raw, rng = (tmp_path / "m.npz").read_bytes(), Random(0)
    refused = sum(attack_model(rng, raw, tmp_path / "m.npz") for _ in range(ATTACKS))
    assert ATTACKS / 2 < refused < ATTACKS


def test_saved_runs(tmp_path: Path) -> None:
    spec = Spec("forged", 100, 5, (0, 1), (SpecEntry("three-state", "three-state"),), (SpecEntry("ucrl", "ucrl"),))
    (tmp_path / "spec.toml").write_text(spec.to_toml(), "utf-8")
    cells = spec.cells()
    for cell in cells:
        learn("three-state", "ucrl", horizon=100, points=5, seed=cell.seed).save(tmp_path / "cells" / cell.folder)
    files, rng = read_files(tmp_path / "cells" / cells[1].folder), Random(0)
    refused = sum(attack_run(rng, files, tmp_path, cells[1].folder) for _ in range(ATTACKS))
    assert ATTACKS / 2 < refused < ATTACKS
