"""What a spec takes from elsewhere: models, plugins, and the specs that ship with the package."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from spec_samples import SMALL, one, refused, saved_model, small

from spanrl.agents.registry import list_agents, make_agent
from spanrl.agents.ucrl import UCRL
from spanrl.envs.registry import make
from spanrl.errors import ModelFileError, UnknownNameError
from spanrl.experiments.spec import (
    SpecEntry,
    import_plugins,
    list_experiments,
    load_spec,
    read_spec,
)

pytestmark = pytest.mark.usefixtures("clean_registries")


def test_a_model_is_looked_for_beside_the_file(tmp_path: Path, write: Callable[[str], Path]) -> None:
    (tmp_path / "models").mkdir()
    digest = saved_model(tmp_path / "models" / "my_model.v2.npz")
    path = write(SMALL.replace("two-state", "models/../models/my_model.v2.npz"))
    expected = SpecEntry("my_model.v2", "my_model.v2", str(tmp_path / "models" / "my_model.v2.npz"), digest)
    assert read_spec(path).envs == (expected,)
    assert read_spec(path).cells()[0].folder == "my_model.v2/ucrl/000"


def test_a_model_of_a_mapping_is_looked_for_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    digest = saved_model(tmp_path / "m.npz")
    assert one("env", id="m.npz", label="Mine", sha256=digest) == (
        SpecEntry("m", "Mine", os.path.join(os.getcwd(), "m.npz"), digest),
    )


def test_wrong_models(tmp_path: Path, write: Callable[[str], Path]) -> None:
    def spec(table: str) -> Path:
        return write(SMALL.replace('id = "two-state"', table))

    digest = saved_model(tmp_path / "m.npz")
    saved_model(tmp_path / "riverswim.npz")
    saved_model(tmp_path / "a b.npz")
    (tmp_path / "text.npz").write_text("no model")
    refused(spec('id = "none.npz"'), "env[0]: load: no file", "none.npz", kind=ModelFileError)
    refused(spec('id = "text.npz"'), "env[0]: load:", "not a model file", kind=ModelFileError)
    refused(spec('id = "m.npz"\ndelta = 0.1'), "a model file takes no parameters; got 'delta'")
    refused(spec('id = "riverswim.npz"'), "has the name of an environment, 'riverswim'")
    refused(spec('id = "a b.npz"'), "must be named by letters, digits", "'a b.npz'")
    refused(spec(f'id = "m.npz"\nsha256 = "{"0" * 64}"'), "m.npz has changed", digest[:12], "000000000000…")


MINE = """
from spanrl import UCRL, make, register_agent, register_env
register_agent("plugged", UCRL, summary="Mine.")
register_env("world", lambda: make("two-state"), summary="Mine, too.")
"""


def test_plugins_are_imported_from_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[str], Path], plugin: Callable[[str], str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    name = plugin(MINE)
    path = write(f'plugins = ["{name}"]\n' + SMALL.replace("ucrl", "plugged").replace("two-state", "world"))
    spec = read_spec(path)
    assert spec.plugins == (name,)
    assert spec.folders == (str(tmp_path), str(elsewhere))
    assert sys.path[:2] == [str(tmp_path), str(elsewhere)]
    assert spec.cells()[0].id == "world/plugged/000"
    assert read_spec(path) == spec  # the module is not imported again
    assert load_spec(write(spec.to_toml())) == replace(spec, folders=())


def test_plugins_of_a_mapping_are_looked_for_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: Callable[[str], str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = plugin(MINE)
    spec = read_spec(small(plugins=[name], agent=[{"id": "plugged"}]))
    assert spec.folders == (os.getcwd(),)


def test_importing_plugins_twice_and_none(tmp_path: Path, plugin: Callable[[str], str]) -> None:
    before = list(sys.path)
    import_plugins((), (str(tmp_path),))
    assert sys.path == before
    name = plugin(MINE)
    for _ in range(2):
        import_plugins((name,), (str(tmp_path),))
    assert sys.path == [str(tmp_path), *before]
    assert "plugged" in {entry.name for entry in list_agents()}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_thing", "(ModuleNotFoundError: No module named 'no_such_thing')"),
        ("raise KeyError('k')", "(KeyError: 'k')"),
        ("raise ValueError('two\\nlines')", "(ValueError: two lines)"),
        ("import sys\nsys.exit(3)", "(SystemExit: 3)"),
    ],
)
def test_plugins_that_raise(
    text: str, words: str, tmp_path: Path, write: Callable[[str], Path], plugin: Callable[[str], str]
) -> None:
    name = plugin(text)
    path = write(f'plugins = ["{name}"]\n' + SMALL)
    refused(path, f"spec {path}: plugins: {name!r} cannot be imported", words, str(tmp_path))


def test_a_plugin_that_is_missing() -> None:
    refused(small(plugins=["no_such_plugin"]), "'no_such_plugin' cannot be imported (ModuleNotFoundError")


def test_the_shipped_experiments_have_names_and_summaries() -> None:
    listed = list_experiments()
    assert [experiment.name for experiment in listed] == [
        "diameter", "infinite-diameter", "knight-quest", "knight-quest-sweep", "small", "three-state", "three-state-sweep",
    ]  # fmt: skip
    for experiment in listed:
        assert read_spec(experiment.name).name == experiment.name
        assert 20 < len(experiment.summary) < 140
        assert not experiment.summary.startswith("#")


def test_unknown_experiments_suggest_the_nearest() -> None:
    refused("smal", "unknown experiment 'smal'", "Did you mean 'small'?", kind=UnknownNameError)


@pytest.mark.parametrize(
    ("name", "horizon", "n_seeds", "n_envs", "bounds"),
    [
        ("diameter", 25_000_000, 20, 8, []),
        ("three-state", 25_000_000, 20, 1, [2, 5, 10, 15, 20, 25]),
        ("infinite-diameter", 25_000_000, 20, 1, [2, 5, 10, 15, 20, 25]),
        ("knight-quest", 400_000_000, 15, 1, [2, 5, 10, 100]),
    ],
)
def test_the_experiments_of_the_paper(name: str, horizon: int, n_seeds: int, n_envs: int, bounds: list[float]) -> None:
    spec = read_spec(name)
    made = [make_agent(entry.id) for entry in spec.agents]
    assert (spec.horizon, spec.points, spec.seeds) == (horizon, 100, tuple(range(n_seeds)))
    assert len(spec.envs) == n_envs
    assert type(made[0]) is UCRL
    assert [agent.span_bound for agent in made[1:]] == bounds  # type: ignore[attr-defined]
    scale = 0.05 if name == "knight-quest" else 1.0
    assert {(agent.p_scale, agent.r_scale, agent.delta) for agent in made} == {(scale, scale, 0.05)}  # type: ignore[attr-defined]


def test_the_environments_of_the_paper() -> None:
    deltas = {name: [make(entry.id).info.parameters["delta"] for entry in read_spec(name).envs]
              for name in ("three-state", "infinite-diameter", "diameter")}  # fmt: skip
    assert deltas["three-state"] == [0.005]
    assert deltas["infinite-diameter"] == [0]
    assert np.allclose(1 / np.array(deltas["diameter"]), [10, 20, 40, 80, 100, 125, 160, 200])
    assert [entry.id for entry in read_spec("knight-quest").envs] == ["knight-quest"]
