"""Specs: what they stand for, what is refused and in which words, files and back, and what is compatible with what."""

from __future__ import annotations

import hashlib
import os
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from spanrl.agents import registry as agents
from spanrl.agents.registry import list_agents, make_agent, register_agent
from spanrl.agents.ucrl import UCRL
from spanrl.envs import registry as envs
from spanrl.envs.registry import make, register_env
from spanrl.errors import InputError, MissingExtraError, ModelFileError, OptionError, SpanrlError, UnknownNameError
from spanrl.experiments.spec import (
    Cell,
    Entry,
    Spec,
    differences,
    import_plugins,
    list_experiments,
    load_spec,
    read_spec,
)

SMALL = """
name = "try"
horizon = 1e3
seeds = 2
[[env]]
id = "two-state"
[[agent]]
id = "ucrl"
"""


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test registers, imports and puts on the path."""
    monkeypatch.setattr(agents, "_ENTRIES", dict(agents._ENTRIES))
    monkeypatch.setattr(envs, "_ENTRIES", dict(envs._ENTRIES))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes a spec file."""

    def to_file(text: str) -> Path:
        path = tmp_path / "spec.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return to_file


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Return a function that writes a module beside the spec file and returns its name."""
    written = []

    def to_file(text: str) -> str:
        name = f"plugin_of_a_test_{len(written)}"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        written.append(name)
        return name

    yield to_file
    for name in written:
        sys.modules.pop(name, None)


def small(**changes: Any) -> dict[str, Any]:
    return {**tomllib.loads(SMALL), **changes}


def one(key: str, **table: Any) -> tuple[Entry, ...]:
    """Return the entries of a spec with one table under ``key``."""
    spec = read_spec(small(**{key: [table]}))
    return spec.envs if key == "env" else spec.agents


def refused(data: Any, *words: str, kind: type[SpanrlError] = OptionError) -> str:
    """Read a spec that is wrong; the error is of ``kind``, one line, and has the words."""
    with pytest.raises(kind) as caught:
        read_spec(data)
    text = str(caught.value)
    assert type(caught.value) is kind
    assert "\n" not in text
    for word in words:
        assert word in text
    return text


# --- what a spec stands for -----------------------------------------------------------------------------------------


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
        envs=(Entry("three-state[delta=0.01]", "three-state[delta=0.01]"),),
        agents=(
            Entry("scal[span_bound=2]", "SCAL, span_bound=2"),
            Entry("scal[span_bound=5]", "SCAL, span_bound=5"),
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
    env, agent = Entry("three-state[delta=0.01]", "x"), Entry("scal[span_bound=5,p_scale=0.05]", "y")
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
    assert entry == Entry("three-state[delta=0.5]", "one")


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


# --- wrong keys and values ------------------------------------------------------------------------------------------


def test_unknown_keys_suggest_the_nearest(write: Callable[[str], Path]) -> None:
    path = write("horizn = 5\n" + SMALL)
    refused(path, f"spec {path}: unknown key 'horizn'", "Did you mean 'horizon'?", kind=UnknownNameError)
    refused(small(zzzzz=1), "unknown key 'zzzzz'", "Known: agent, env", kind=UnknownNameError)
    refused({**small(), 3: 1}, "unknown key '3'", kind=UnknownNameError)


@pytest.mark.parametrize("key", ["name", "horizon", "seeds", "env", "agent"])
def test_missing_keys(key: str) -> None:
    data = small()
    del data[key]
    refused(data, f"spec: {key} is missing; it must be ")


@pytest.mark.parametrize("horizon", [1.5, 0, -1, -1e6, float("nan"), float("inf"), 10**400])
@pytest.mark.parametrize("key", ["horizon", "points"])
def test_horizon_and_points_are_whole_numbers(key: str, horizon: float) -> None:
    refused(small(**{key: horizon}), f"spec: {key} must be a whole number ≥ 1; got {horizon!r}")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("horizon", True, "horizon must be a whole number ≥ 1; got True"),
        ("horizon", "1e6", "horizon must be a whole number ≥ 1; got '1e6'"),
        ("points", [100], "points must be a whole number ≥ 1; got [100]"),
        ("points", 10**5 + 1, "more than 100000"),
        ("name", "a b", "name must be a word of [A-Za-z0-9_-]; got 'a b'"),
        ("name", "", "name must be a word"),
        ("name", "../up", "name must be a word"),
        ("name", "new\n", "name must be a word"),
        ("name", 3, "name must be a word of [A-Za-z0-9_-]; got 3"),
        ("env", [], "env must be one [[env]] table or more, each with an id; got []"),
        ("env", {"id": "two-state"}, "env must be one [[env]] table or more"),
        ("agent", ["ucrl"], "agent[0] must be one [[agent]] table or more, each with an id; got 'ucrl'"),
        ("agent", [{1: 2}], "agent[0] must be one [[agent]] table"),
        ("plugins", "mine", "plugins must be a list of names of Python modules"),
        ("plugins", ["mine", "a-b"], "plugins[1] must be a list of names of Python modules"),
        ("plugins", ["..up"], "got '..up'"),
    ],
)
def test_wrong_values(key: str, value: Any, words: str) -> None:
    refused(small(**{key: value}), f"spec: {key}", words)


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        (0, "seeds must be a whole number ≥ 1; got 0"),
        (-3, "seeds must be a whole number ≥ 1; got -3"),
        (2.5, "seeds must be a whole number ≥ 1; got 2.5"),
        (True, "seeds must be a number n for 0..n−1"),
        ([], "seeds must be a number n for 0..n−1, a list of different whole numbers"),
        ([0, -1], "seeds[1] must be a number n"),
        ([2**63], f"got {2**63}"),
        ([1.0], "seeds[0] must be"),
        ({-1}, "got -1"),
        ([4, 2, 7, 2], "seeds must differ; 2 is there twice"),
        ("5:5", "seeds = '5:5' is empty"),
        ("5:2", "seeds = '5:2' is empty"),
        ("0-5", "got '0-5'"),
        ("-1:5", "got '-1:5'"),
        (f"0:{2**63 + 1}", "from 0 to 2⁶³−1"),
        ("٠:٥", "got '٠:٥'"),
    ],
)
def test_wrong_seeds(seeds: Any, words: str) -> None:
    refused(small(seeds=seeds), words)


@pytest.mark.parametrize("seeds", [10**6 + 1, "0:9000000000000000000", 1e15, list(range(10**6 + 1))])
def test_absurd_numbers_of_seeds_are_refused_at_once(seeds: Any) -> None:
    refused(small(seeds=seeds), "at most 1,000,000 cells", "Divide it.")


def test_absurd_numbers_of_cells_are_refused_before_anything_is_made() -> None:
    def never(x: int = 0, y: int = 0, z: int = 0) -> Any:
        raise AssertionError("made")

    register_env("never", never, summary="Must not be made.")
    grid = list(range(10**4))
    refused(
        small(env=[{"id": "never", "x": grid, "y": grid, "z": grid}]),
        "1,000,000,000,000 environments × 1 agents × 2 seeds",
    )
    most = read_spec(small(seeds=5 * 10**5, agent=[{"id": "ucrl"}, {"id": "ucrl2"}]))
    assert len(most.seeds) == 5 * 10**5
    refused(small(seeds=5 * 10**5 + 1, agent=[{"id": "ucrl"}, {"id": "ucrl2"}]), "are 1,000,002")


# --- wrong entries --------------------------------------------------------------------------------------------------


def test_wrong_names_and_parameters_say_where(write: Callable[[str], Path]) -> None:
    path = write(SMALL + '[[agent]]\nid = "skal"\n')
    refused(path, f"spec {path}: agent[1]: ", "unknown agent 'skal'", "Did you mean 'scal'?", kind=UnknownNameError)
    wrong_env = small(env=[{"id": "two-state"}, {"id": "three-sate"}])
    refused(wrong_env, "env[1]: ", "unknown environment", "'three-state'", kind=UnknownNameError)
    wrong_key = small(env=[{"id": "three-state", "dleta": 0.1}])
    refused(wrong_key, "env[0]: three-state: unknown parameter 'dleta'", "Did you mean 'delta'?", kind=UnknownNameError)
    wrong_label = small(agent=[{"id": "ucrl", "lable": "x"}])
    refused(wrong_label, "unknown parameter 'lable'", "Did you mean 'label'?", kind=UnknownNameError)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "agent[0].id is missing; it must be a text such as"),
        ({"id": ""}, "agent[0].id must be a text such as"),
        ({"id": 5}, "agent[0].id must be a text such as 'three-state' or 'scal[span_bound=5]'; got 5"),
        ({"id": "scal"}, "agent[0]: scal: span_bound must be given"),
        ({"id": "scal[span_bound=2"}, "agent[0]: text form: must read name or name[key=value,...]"),
        ({"id": "scal[span_bound=2]", "span_bound": 5}, "agent[0]: agent: 'span_bound' is given in the text"),
        ({"id": "scal", "span_bound": [2, -1]}, "agent[0]: SCAL: span_bound must be a number ≥ 0; got -1"),
        ({"id": "scal", "span_bound": [[2], [3]]}, "agent[0]: scal: span_bound must be a number; got [2]"),
        ({"id": "scal", "span_bound": {"a": 1}}, "agent[0]: scal: span_bound must be a number; got {'a': 1}"),
        ({"id": "scal", "span_bound": []}, "agent[0].span_bound must be a value or a list of values; got the empty list"),
        ({"id": "ucrl", "label": ""}, "agent[0].label must be a text of 1 to 80 characters, all on one line; got ''"),
        ({"id": "ucrl", "label": "x" * 81}, "agent[0].label must be a text of 1 to 80 characters"),
        ({"id": "ucrl", "label": "a\nb"}, r"got 'a\nb'"),
        ({"id": "ucrl", "label": "a\x7f"}, r"got 'a\x7f'"),
        ({"id": "ucrl", "label": "\ud800"}, r"got '\ud800'"),
        ({"id": "ucrl", "label": ["a"]}, "agent[0].label must be"),
        ({"id": "ucrl", "label": "x" * 75, "delta": [0.1, 0.2]}, "the keys of the grid included"),
        ({"id": "ucrl", "sha256": "a" * 64}, "agent[0].sha256 is for models (.npz) alone; got the id 'ucrl'"),
        ({"id": "ucrl", "sha256": "A" * 64}, "agent[0].sha256 must be 64 hexadecimal digits in lower case"),
    ],
)  # fmt: skip
def test_wrong_tables(table: dict[str, Any], words: str) -> None:
    refused(small(agent=[table]), "spec: agent[0]", words)


def test_labels_may_be_any_text_of_one_line() -> None:
    label = "Ω 'q' <b>\"&\\" + "é" * 60
    (entry,) = one("agent", id="ucrl", label=label)
    assert entry.label == label


def test_a_factory_that_raises_is_told_with_its_type() -> None:
    def broken(x: int = 0) -> Any:
        raise ZeroDivisionError("by\n  nothing")

    register_env("broken", broken, summary="Raises.")
    refused(small(env=[{"id": "broken"}]), "env[0]: cannot be made (ZeroDivisionError: by nothing)")


def test_the_same_id_twice() -> None:
    refused(
        small(env=[{"id": "three-state"}, {"id": "three-state[delta=0.005]"}]), "the env 'three-state' is there twice"
    )
    refused(small(agent=[{"id": "scal", "span_bound": [2, 2.0]}]), "the agent 'scal[span_bound=2]' is there twice")


def test_the_path_of_a_file_may_have_braces(tmp_path: Path) -> None:
    path = tmp_path / "{0} {x}.toml"
    path.write_text(SMALL + '[[agent]]\nid = "ucrl"\n')
    refused(path, f"spec {path}: the agent 'ucrl' is there twice")


def test_the_same_label_twice() -> None:
    refused(small(agent=[{"id": "ucrl", "label": "A"}, {"id": "ucrl2", "label": "A"}]), "two agents have the label 'A'")
    refused(small(agent=[{"id": "ucrl", "label": "ucrl2"}, {"id": "ucrl2"}]), "two agents have the label 'ucrl2'")


@pytest.mark.parametrize("other", ["UCRL", "ucrl--delta-0.1"])
def test_the_same_folder_twice(other: str) -> None:
    register_agent(other, UCRL, summary="Again.")
    refused(
        small(agent=[{"id": "ucrl"}, {"id": "ucrl[delta=0.1]"}, {"id": other}]), "would share a folder", repr(other)
    )


def test_ids_that_make_no_good_folder() -> None:
    register_agent("..", UCRL, summary="Up.")
    register_agent("x" * 201, UCRL, summary="Long.")
    register_agent("y" * 200, UCRL, summary="Just not too long.")
    refused(small(agent=[{"id": ".."}]), "must not start with a dot; got the agent '..'")
    refused(small(agent=[{"id": "x" * 201}]), "folder name of 200 bytes")
    assert one("agent", id="y" * 200)[0].folder == "y" * 200


# --- models ---------------------------------------------------------------------------------------------------------


def saved_model(path: Path) -> str:
    """Save a model and return the SHA-256 of its file."""
    make("two-state").mdp.save(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_model_is_looked_for_beside_the_file(tmp_path: Path, write: Callable[[str], Path]) -> None:
    (tmp_path / "models").mkdir()
    digest = saved_model(tmp_path / "models" / "my_model.v2.npz")
    path = write(SMALL.replace("two-state", "models/../models/my_model.v2.npz"))
    expected = Entry("my_model.v2", "my_model.v2", str(tmp_path / "models" / "my_model.v2.npz"), digest)
    assert read_spec(path).envs == (expected,)
    assert read_spec(path).cells()[0].folder == "my_model.v2/ucrl/000"


def test_a_model_of_a_mapping_is_looked_for_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    digest = saved_model(tmp_path / "m.npz")
    assert one("env", id="m.npz", label="Mine", sha256=digest) == (
        Entry("m", "Mine", os.path.join(os.getcwd(), "m.npz"), digest),
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


# --- files ----------------------------------------------------------------------------------------------------------


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
    assert spec.envs == (Entry("m", "m", "/no/such/m.npz", "0" * 64), Entry("nowhere[x=1]", "nowhere[x=1]"))


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
    with pytest.raises(MissingExtraError, match=r"pip install 'spanrl\[experiments\]'"):
        read_spec(small()).to_toml()


# --- plugins --------------------------------------------------------------------------------------------------------

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


# --- shipped experiments --------------------------------------------------------------------------------------------


def test_the_shipped_experiments_have_names_and_summaries() -> None:
    listed = list_experiments()
    assert [experiment.name for experiment in listed] == [
        "diameter", "infinite-diameter", "knight-quest", "small", "three-state",
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
        ("knight-quest", 400_000_000, 15, 1, [5, 10]),
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


# --- compatible specs -----------------------------------------------------------------------------------------------

OLD = Spec(
    "a", 1000, 100, (0, 1, 2), (Entry("e", "e"), Entry("m", "m", "/m.npz", "1" * 64)), (Entry("x", "X"), Entry("y", "y")), ("p",)
)  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"seeds": (9, 2, 1, 0)},
        {"horizon": 1001},
        {"envs": (Entry("f", "f"), *OLD.envs)},
        {"agents": (*reversed(OLD.agents), Entry("z", "z"))},
        {"plugins": ("q", "p")},
        {"folders": ("/elsewhere",)},
        {"envs": (OLD.envs[0], Entry("m", "m", "/moved/m.npz", "1" * 64))},
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
        ({"agents": (Entry("x", "new"), Entry("y", "y"))}, "label of agent x: 'X' there, 'new' here"),
        (
            {"envs": (OLD.envs[0], Entry("m", "m", "/m.npz", "2" * 64))},
            "model of env m: SHA-256 111111111111… there, SHA-256 222222222222… here",
        ),
        (
            {"envs": (OLD.envs[0], Entry("m", "m"))},
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
