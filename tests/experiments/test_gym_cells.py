"""Gymnasium's environments in experiments: entries of a spec, cells bit for bit, and what meta.json says of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from experiment_samples import tiny, tiny_spec

from spanrl import learn
from spanrl.errors import InputError
from spanrl.experiments.cell import Computation
from spanrl.experiments.driver import job_of
from spanrl.experiments.spec import Cell, load_spec, read_spec
from spanrl.learning.files import CURVE_FILE, META_FILE

LAKE = "gym:FrozenLake-v1[is_slippery=false,max_episode_steps=20]"
MODULE = """
import gymnasium
from gymnasium import spaces

class Lever(gymnasium.Env):
    observation_space, action_space = spaces.Discrete(2), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return int(action), float(action) * float(self.np_random.random() < 0.5), False, False, {}

gymnasium.register("Lever-v0", Lever)
"""


@pytest.fixture
def levers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write a plugin that registers an environment with Gymnasium, without a table; yield its folder."""
    (tmp_path / "some_levers.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("some_levers", None)
    gymnasium.registry.pop("Lever-v0", None)


def computed(cell: Cell, spec: Any) -> tuple[dict[str, bytes], dict[str, Any]]:
    files = Computation(job_of(cell, spec), None).run(lambda t, snapshot: None)
    return files, json.loads(files[META_FILE])["run"]


def test_entries_of_a_spec(tmp_path: Path) -> None:
    env = [
        {"id": "gym:FrozenLake-v1", "is_slippery": [True, False], "label": "lake"},
        {"id": "gym:spanrl/TwoState-v0"},
    ]
    spec = tiny_spec(env=env)
    assert [(entry.id, entry.label, entry.folder) for entry in spec.envs] == [
        ("gym:FrozenLake-v1", "lake, is_slippery=true", "gym+FrozenLake-v1"),
        ("gym:FrozenLake-v1[is_slippery=false]", "lake, is_slippery=false", "gym+FrozenLake-v1--is_slippery-false"),
        ("gym:spanrl/TwoState-v0", "gym:spanrl/TwoState-v0", "gym+spanrl++TwoState-v0"),
    ]
    (tmp_path / "spec.toml").write_text(spec.to_toml())
    assert load_spec(tmp_path / "spec.toml") == spec


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"id": "gym:FrozenLak-v1"}, r"env\[0\]: gym:FrozenLak-v1: unknown .*Did you mean 'FrozenLake-v1'\?"),
        ({"id": "gym:FrozenLake-v1", "slip": 1}, r"env\[0\]: gym:FrozenLake-v1: unknown parameter 'slip'"),
        ({"id": "gym:CartPole-v1"}, r"env\[0\]: learn: gym:CartPole-v1 has the observation space Box"),
    ],
)
def test_refused_with_its_place(table: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_spec(tiny(env=[table]))


def test_a_cell_is_learn_bit_for_bit_and_knows_its_problem() -> None:
    spec = tiny_spec(env=[{"id": LAKE}])
    files, meta = computed(spec.cells()[0], spec)
    run = learn(LAKE, "scal[span_bound=2]", horizon=2000, seed=0, points=10)
    assert files[CURVE_FILE] == run.to_files()[CURVE_FILE]
    assert (meta["played"], meta["step_limit"], meta["regret_exact"]) == ("from its table", 20, False)
    assert (meta["gain"], meta["optimal_span"]) == pytest.approx((1 / 6, 1.0))
    assert meta["diameter"] == "inf"
    assert meta["parameters"]["env"]["is_slippery"] == "false"
    assert meta["parameters"]["env"]["map_name"] == "4x4", "defaults included"
    assert meta["parameters"]["agent"]["span_bound"] == "2"


def test_step_by_step(levers: Path) -> None:
    """Through a plugin that registers it, without a table: rewards alone are known, and nothing can be resumed."""
    spec = read_spec(tiny(env=[{"id": "gym:Lever-v0"}], plugins=["some_levers"], horizon=300))
    cell = spec.cells()[0]
    files, meta = computed(cell, spec)
    assert (
        files[CURVE_FILE] == learn("gym:Lever-v0", cell.agent.id, horizon=300, seed=0, points=10).to_files()[CURVE_FILE]
    )
    assert (meta["played"], meta["gain"], meta["optimal_span"], meta["diameter"]) == ("step by step", None, None, None)
    assert Computation(job_of(cell, spec), None).checkpoint() is None
