"""Specs: what they stand for, files and back, and what is compatible with what."""

from __future__ import annotations

import hashlib
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from spec_samples import SMALL, one, refused, saved_model, small

from spanrl.agents import registry as agents
from spanrl.agents.registry import make_agent, register_agent
from spanrl.agents.ucrl import UCRL
from spanrl.envs.registry import make
from spanrl.errors import InputError, MissingExtraError, OptionError
from spanrl.experiments.spec import (
    Cell,
    Spec,
    SpecEntry,
    differences,
    load_spec,
    read_spec,
)

pytestmark = pytest.mark.usefixtures("clean_registries")


def test_a_file_as_in_the_design(write: Callable[[str], Path]) -> None:
    path = write(
        'name = "small"\nhorizon = 1e6\npoints = 50\nseeds = 3\n[[env]]\nid = "three-state[delta=0.010]"\n'
        '[[agent]]\nid = "scal"\nspan_bound = [2, 5.0]\nlabel = "SCAL"\n'
    )
    assert read_spec(path) == Spec(
        name="small",
        horizon=1_000_000,
        points=50,
        seeds=(0, 1, 2),
        envs=(SpecEntry("three-state[delta=0.01]", "three-state[delta=0.01]"),),
        agents=(
            SpecEntry("scal[span_bound=2]", "SCAL, span_bound=2"),
            SpecEntry("scal[span_bound=5]", "SCAL, span_bound=5"),
        ),
    )
    assert read_spec(str(path)) == read_spec(path)
    assert type(read_spec(path).horizon) is int


def test_points_and_plugins_have_defaults() -> None:
    spec = read_spec(MappingProxyType(small()))
    assert (spec.points, spec.plugins, spec.folders) == (100, (), ())


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [
        (1, (0,)),
        (3.0, (0, 1, 2)),
        ([7, 3, 2**63 - 1], (7, 3, 2**63 - 1)),
        ("0:4", (0, 1, 2, 3)),
        (" 9:11 ", (9, 10)),
        (f"{2**63 - 1}:{2**63}", (2**63 - 1,)),
    ],
)
def test_seeds(seeds: Any, expected: tuple[int, ...]) -> None:
    assert read_spec(small(seeds=seeds)).seeds == expected


def test_cells_go_seed_by_seed_then_env_then_agent() -> None:
    spec = read_spec(
        small(seeds=[5, 1234], env=[{"id": "two-state"}, {"id": "riverswim"}], agent=[{"id": "ucrl2"}, {"id": "ucrl"}])
    )
    assert [cell.id for cell in spec.cells()] == [
        "two-state/ucrl2/005",
        "two-state/ucrl/005",
        "riverswim/ucrl2/005",
        "riverswim/ucrl/005",
        "two-state/ucrl2/1234",
        "two-state/ucrl/1234",
        "riverswim/ucrl2/1234",
        "riverswim/ucrl/1234",
    ]


def test_folders_are_as_the_design_says() -> None:
    env, agent = SpecEntry("three-state[delta=0.01]", "x"), SpecEntry("scal[span_bound=5,p_scale=0.05]", "y")
    cell = Cell(env, agent, 7)
    assert cell.folder == "three-state--delta-0.01/scal--span_bound-5--p_scale-0.05/007"
    assert cell.id == "three-state[delta=0.01]/scal[span_bound=5,p_scale=0.05]/007"


def test_a_grid_is_the_product_in_the_order_of_the_keys() -> None:
    entries = one("agent", id="scal[policy=greedy]", p_scale=[1, 0.5], span_bound=[2, 5])
    assert [entry.id for entry in entries] == [
        "scal[span_bound=2,policy=greedy]",
        "scal[span_bound=5,policy=greedy]",
        "scal[span_bound=2,p_scale=0.5,policy=greedy]",
        "scal[span_bound=5,p_scale=0.5,policy=greedy]",
    ]
    assert all(entry.label == entry.id for entry in entries)


def test_a_label_of_a_grid_names_what_varies() -> None:
    entries = one("agent", id="scal", label="S", span_bound=[2], p_scale=[0.5, 1.0])
    assert [entry.label for entry in entries] == ["S, p_scale=0.5", "S, p_scale=1"]
    (entry,) = one("env", id="three-state", delta=[0.5], label="one")
    assert entry == SpecEntry("three-state[delta=0.5]", "one")


def test_labels_show_numbers_of_numpy_as_numbers() -> None:
    entries = one("env", id="three-state", label="T", delta=[np.float64(0.25), np.float64(0.5)])
    assert [entry.label for entry in entries] == ["T, delta=0.25", "T, delta=0.5"]


def test_every_id_makes_an_equal_thing_again() -> None:
    spec = read_spec(
        small(
            env=[{"id": "riverswim", "n_states": [4, 6.0], "variant": ["osband", "strehl"]}, {"id": "three-state", "delta": 1e-05}],
            agent=[{"id": "scal", "span_bound": [1e16, 0.1, float("inf")], "delta": ["rsqrt", 0.05]}, {"id": "ucrl", "delta": 0.1}],
        )
    )  # fmt: skip
    assert [make(entry.id).info.id for entry in spec.envs] == [entry.id for entry in spec.envs]
    assert [agents.agent_id(make_agent(entry.id)) for entry in spec.agents] == [entry.id for entry in spec.agents]
    again = read_spec(small(env=[e.table() for e in spec.envs], agent=[e.table() for e in spec.agents]))
    assert (again.envs, again.agents) == (spec.envs, spec.agents)


def test_an_agent_made_by_a_function_has_the_id_of_its_parameters() -> None:
    @dataclass(frozen=True)
    class Mine(UCRL):
        """An agent of a class that is not registered."""

    def mine(level: float = 0.1, boldness: int = 1) -> Mine:
        return Mine(delta=level)

    register_agent("mine", mine, summary="Made by a function.")
    (first, second) = one("agent", id="mine", boldness=[1, 2], level=0.2)
    assert (first.id, second.id) == ("mine[level=0.2]", "mine[level=0.2,boldness=2]")
    assert make_agent(first.id) == Mine(delta=0.2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('name = "a"\nhorizon 5\n', ("not TOML", "line 2, column 9")),
        ('name = "a"\nname = "b"\n', ("not TOML", "line 2")),
        ("horizon = " + "9" * 5000, ("not TOML",)),
        ("x = " + "[" * 100_000, ("not TOML",)),
    ],
)
def test_a_file_that_is_no_toml(text: str, words: tuple[str, ...], write: Callable[[str], Path]) -> None:
    path = write(text)
    refused(path, f"spec {path}: ", *words)
    with pytest.raises(OptionError, match="not TOML"):
        load_spec(path)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes('name = "a"\nlabel = "\xe9"\n'.encode("latin-1"))
    refused(tmp_path / "latin.toml", "must be UTF-8 text; line 2 is not")
    refused(tmp_path / "none.toml", f"spec: no file {tmp_path / 'none.toml'}")
    refused(str(tmp_path), "cannot be read (Is a directory)")
    refused("here/none", "spec: no file here/none")
    refused("small.tom.toml", "spec: no file small.tom.toml")
    refused(5, "takes a path, the name of a shipped experiment or a mapping; got int")


def full_spec(tmp_path: Path, **changes: Any) -> Spec:
    """Return a spec with a bit of everything."""
    saved_model(tmp_path / "m.npz")
    return read_spec(
        small(
            env=[{"id": str(tmp_path / "m.npz"), "label": "model"}, {"id": "three-state", "delta": [0.1, 0.005]}],
            agent=[{"id": "scal", "span_bound": [2, 5], "label": "S \"'\\ Ω"}, {"id": "ucrl[delta=rsqrt]"}],
            **changes,
        )
    )


@pytest.mark.parametrize("seeds", [3, [5, 1, 2], "7:9", [4, 5, 6], [2**63 - 1]])
def test_a_spec_survives_its_file(seeds: Any, tmp_path: Path, write: Callable[[str], Path]) -> None:
    spec = full_spec(tmp_path, seeds=seeds, points=7)
    path = write(spec.to_toml())
    assert load_spec(path) == spec
    assert read_spec(path) == spec
    assert read_spec(path).to_toml() == spec.to_toml()


def test_a_written_file_is_normalised(tmp_path: Path) -> None:
    spec = full_spec(tmp_path)
    content = tomllib.loads(spec.to_toml())
    digest = hashlib.sha256((tmp_path / "m.npz").read_bytes()).hexdigest()
    assert content["horizon"] == 1000
    assert content["points"] == 100
    assert content["env"] == [
        {"id": str(tmp_path / "m.npz"), "label": "model", "sha256": digest},
        {"id": "three-state[delta=0.1]"},
        {"id": "three-state"},
    ]
    assert [table["id"] for table in content["agent"]] == [
        "scal[span_bound=2]",
        "scal[span_bound=5]",
        "ucrl[delta=rsqrt]",
    ]


def test_loading_makes_and_looks_up_nothing(write: Callable[[str], Path]) -> None:
    path = write(
        f'name = "a"\nhorizon = 5\nseeds = 1\nplugins = ["no_such_module"]\n[[env]]\nid = "/no/such/m.npz"\nsha256 = "{"0" * 64}"\n'
        '[[env]]\nid = "nowhere[x=1]"\n[[agent]]\nid = "nobody"\n'
    )
    spec = load_spec(path)
    assert spec.plugins == ("no_such_module",)
    assert spec.envs == (SpecEntry("m", "m", "/no/such/m.npz", "0" * 64), SpecEntry("nowhere[x=1]", "nowhere[x=1]"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SMALL + "span_bound = 5", r"agent\[0\] must have id, label and sha256 alone; got 'span_bound'"),
        (SMALL + '[[agent]]\nid = "../up"', r"agent\[1\]: text form"),
        (SMALL + '[[agent]]\nid = "ucrl"', "the agent 'ucrl' is there twice"),
        (SMALL.replace("1e3", "0"), "horizon must be a whole number"),
        ("hello = 1\n" + SMALL, "unknown key 'hello'"),
    ],
)
def test_a_loaded_file_is_checked(text: str, words: str, write: Callable[[str], Path]) -> None:
    with pytest.raises(InputError, match=words):
        load_spec(write(text))


def test_without_tomli_w_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tomli_w", None)
    with pytest.raises(MissingExtraError, match=r"Run: pip install tomli-w .*pip install '\.\[experiments\]'"):
        read_spec(small()).to_toml()


ENVS = SpecEntry("e", "e"), SpecEntry("m", "m", "/m.npz", "1" * 64)
OLD = Spec("a", 1000, 100, (0, 1, 2), ENVS, (SpecEntry("x", "X"), SpecEntry("y", "y")), ("p",))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"seeds": (9, 2, 1, 0)},
        {"horizon": 1001},
        {"envs": (SpecEntry("f", "f"), *OLD.envs)},
        {"agents": (*reversed(OLD.agents), SpecEntry("z", "z"))},
        {"plugins": ("q", "p")},
        {"folders": ("/elsewhere",)},
        {"envs": (OLD.envs[0], SpecEntry("m", "m", "/moved/m.npz", "1" * 64))},
    ],
)
def test_more_of_everything_is_compatible(changes: dict[str, Any]) -> None:
    assert differences(OLD, replace(OLD, **changes)) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": "b"}, "name: a there, b here"),
        ({"points": 50}, "points: 100 there, 50 here"),
        ({"horizon": 999}, "horizon: 1000 there, only 999 here"),
        ({"seeds": (1, 5)}, "seeds missing here: 0, 2"),
        ({"envs": OLD.envs[1:]}, "envs missing here: e"),
        ({"agents": ()}, "agents missing here: x, y"),
        ({"agents": (SpecEntry("x", "new"), SpecEntry("y", "y"))}, "label of agent x: 'X' there, 'new' here"),
        (
            {"envs": (OLD.envs[0], SpecEntry("m", "m", "/m.npz", "2" * 64))},
            "model of env m: SHA-256 111111111111… there, SHA-256 222222222222… here",
        ),
        (
            {"envs": (OLD.envs[0], SpecEntry("m", "m"))},
            "model of env m: SHA-256 111111111111… there, no model here",
        ),
        ({"plugins": ()}, "plugins missing here: p"),
    ],
)
def test_what_is_changed_or_gone_is_told(changes: dict[str, Any], expected: str) -> None:
    assert differences(OLD, replace(OLD, **changes)) == [expected]


def test_several_differences_and_long_lists() -> None:
    old = replace(OLD, seeds=tuple(range(20)))
    new = replace(old, seeds=(0, 1, 2), points=10)
    assert differences(old, new) == ["points: 100 there, 10 here", "seeds missing here: 3, 4, 5, 6, 7 … and 12 more"]
