"""Specs that are refused, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spec_samples import SMALL, one, refused, small

from spanrl.agents.registry import register_agent
from spanrl.agents.ucrl import UCRL
from spanrl.envs.registry import register_env
from spanrl.errors import UnknownNameError
from spanrl.experiments.spec import (
    read_spec,
)

pytestmark = pytest.mark.usefixtures("clean_registries")


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
