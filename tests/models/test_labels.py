"""Names of states and actions: numbers from names and back, in memory and in files."""

from __future__ import annotations

import enum
from fractions import Fraction
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_samples import entries, rewrite, small_mdp

from spanrl import MDP, Policy, analyse, evaluate, make, solve
from spanrl.errors import ModelError, ModelFileError
from spanrl.models.labels import CoordinateNames, StateNames, shown, state_names, text_of


class Stock(NamedTuple):
    here: int
    coming: int


class Colour(enum.Enum):
    RED = 1


NAMES = {
    "text": ("ä", "b c"),
    "numbers": (7, -3),
    "tuples": ((0, 1), (3, 2)),
    "nested": ((0, ("a", 1)), ("b", (("c",), -(10**30)))),
    "mixed": ("up", (1, "down")),
    "booleans": ((True, 3), (False, 3)),
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_names_stay_with_the_model_and_its_file(tmp_path: Path, names: tuple[Any, ...]) -> None:
    mdp = small_mdp(state_names=names, action_names=names)
    mdp.save(tmp_path / "m.npz")
    for model in (mdp, MDP.load(tmp_path / "m.npz")):
        assert model.state_names == names
        assert names == model.state_names
        assert model.action_names == names
        assert [model.index(name) for name in names] == [0, 1]
        assert list(map(repr, model.state_names)) == list(map(repr, names)), "the same types"
    assert MDP.load(tmp_path / "m.npz") == mdp


def test_other_things_become_text(tmp_path: Path) -> None:
    mdp = small_mdp(state_names=[(Colour.RED, 0.5), Stock(1, 2)], action_names=[Fraction(1, 3), np.int64(4)])
    assert mdp.index((Colour.RED, 0.5)) == 0
    mdp.save(tmp_path / "m.npz")
    loaded = MDP.load(tmp_path / "m.npz")
    assert loaded.state_names == (("Colour.RED", "0.5"), (1, 2))
    assert loaded.action_names == ("1/3", 4)
    assert loaded.index(Stock(1, 2)) == 1
    with pytest.raises(ModelError, match=r"save: state_names must stay different .*; '0.5' comes twice"):
        small_mdp(state_names=[0.5, "0.5"]).save(tmp_path / "n.npz")
    assert not (tmp_path / "n.npz").exists()


@pytest.mark.parametrize("array", [np.array([5, 9, 2]), np.array([[0, 3], [2, -1], [0, 2]]), np.array([[7], [8], [9]])])
def test_coordinates_are_names(tmp_path: Path, array: Any) -> None:
    names = state_names("MDP", array, 3)
    plain = tuple(array.tolist()) if array.ndim == 1 else tuple(map(tuple, array.tolist()))
    assert isinstance(names, CoordinateNames)
    assert (len(names), tuple(names), names[1], names[1:]) == (3, plain, plain[1], plain[1:])
    assert names == plain
    assert names == StateNames(plain)
    assert StateNames(plain) == names
    assert names != plain[:2]
    assert [names.index(name) for name in plain] == [0, 1, 2]
    assert names.coordinates.tolist() == StateNames(plain).coordinates.tolist() == array.reshape(3, -1).tolist()
    assert (0, 99) not in names
    assert "x" not in names
    P = np.full((3, 1, 3), 1 / 3)
    mdp = MDP.from_dense(P, np.zeros((3, 1)), state_names=array)
    mdp.save(tmp_path / "m.npz")
    loaded = MDP.load(tmp_path / "m.npz")
    assert isinstance(loaded.state_names, CoordinateNames)
    assert loaded == mdp
    assert loaded == MDP.from_dense(P, np.zeros((3, 1)), state_names=plain)


def test_coordinates_too_far_apart_for_one_number_are_found_too() -> None:
    far = np.array([[2**62, -(2**62)], [-(2**62), 2**62], [0, 0]])
    names = state_names("MDP", far, 3)
    assert names is not None
    assert [names.index(tuple(row)) for row in far.tolist()] == [0, 1, 2]
    assert (1, 1) not in names
    with pytest.raises(ModelError, match="state_names must be 3 different names; got 3, 2 of them different"):
        state_names("MDP", far[[0, 1, 0]], 3)


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3)), min_size=1, max_size=20, unique=True), st.data())
def test_both_forms_find_the_same(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    forms = StateNames(rows), CoordinateNames(np.array(rows, dtype=np.int16))
    wanted = data.draw(st.tuples(st.integers(-7, 7), st.integers(-1, 5)))
    found = {names.find(wanted) for names in forms}
    assert found == {rows.index(wanted) if wanted in rows else None}


@pytest.mark.parametrize(
    "names", [["a", "b"], [(1, 2), (3,)], [((1, 2), 3), ((1, 2), 4)], [(), (1,)], [1, (2,)], [0.5, 1.5], [2**70, 1]]
)
def test_not_all_names_are_coordinates(names: list[Any]) -> None:
    assert StateNames(names).coordinates is None


def test_texts_of_names() -> None:
    assert text_of((3, "busy", (1,), np.int64(2))) == "(3, busy, (1,), 2)"
    mdp = small_mdp(state_names=[(0, 0), (3, "x")], action_names=[(1, 2), 5])
    assert (mdp.state_label(1), mdp.action_label(0), mdp.action_label(1)) == ("(3, x)", "(1, 2)", "5")
    assert "start: (0, 0)\nactions: (1, 2), 5" in str(mdp)
    assert "(3, x)  (1, 2)" in str(solve(mdp).policy)
    assert shown("a\nb" * 60).endswith("…")
    assert "\n" not in shown("a\nb")
    assert repr(mdp.state_names) == "<2 names: (0, 0), (3, x)>"


@pytest.mark.parametrize(
    ("names", "wanted", "words"),
    [
        (["idle", "busy"], "bussy", "no state is named 'bussy'. Did you mean 'busy'?"),
        (["idle", "busy"], "qqq", "no state is named 'qqq'. The first names are 'idle', 'busy'."),
        ([(0, 0), (3, 2)], (9, 9), r"no state is named \(9, 9\). The first names are \(0, 0\), \(3, 2\)."),
        ([(0, 0), (3, 2)], "(3, 2)", r"Did you mean the tuple \(3, 2\), without quotes"),
        ([(0, 0), (3, 2)], [3, 2], r"no state is named \[3, 2\]"),
        (None, 2, r"states have no names, and numbers 0..1; got 2"),
        (None, True, r"states have no names, and numbers 0..1; got True"),
        (None, "x", r"states have no names, and numbers 0..1; got 'x'"),
    ],
)
def test_unknown_names(names: Any, wanted: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        small_mdp(state_names=names).index(wanted)
    with pytest.raises(ModelError, match=words):
        Policy([[1.0], [1.0]], state_names=names).at(wanted)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a", ["b"]], r"state_names must be hashable; entry 1 is \['b'\]. Use text, numbers or tuples"),
        (count(), "state_names must be 2 different names; got 3, 3 of them"),
        (np.array([[1, 2], [1, 2]]), "state_names must be 2 different names; got 2, 1 of them"),
        (np.array([1, 2, 3]), "state_names must be 2 different names; got 3, 3 of them"),
        ((True, 1), "state_names must be 2 different names; got 2, 1 of them"),
    ],
)
def test_bad_names(names: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        small_mdp(state_names=names)


def test_results_by_name() -> None:
    mdp = make("two-state").mdp
    solution = solve(mdp, span_bound=0.75)
    assert solution.at("s0") == ("s0", "a0", 0.0, False)
    cut = solution.at("s1")
    assert cut.truncated
    assert cut.bias == pytest.approx(0.75)
    assert cut.action == pytest.approx({"a0": 1 / 7, "a1": 6 / 7}, abs=1e-6)
    assert (
        solution.state_names == analyse(mdp).state_names == evaluate(mdp, solution.policy).state_names == ("s0", "s1")
    )
    nameless = small_mdp()
    assert solve(nameless).state_names is None
    assert solve(nameless).at(1).action == 0
    assert nameless.index(np.int64(1)) == 1


def test_large_names_take_little_memory() -> None:
    rows = np.array(list(product(range(100), range(100))), dtype=np.int16)
    names = CoordinateNames(rows)
    assert names.index((31, 4)) == 3104
    assert sum(value.nbytes for value in vars(names).values() if isinstance(value, np.ndarray)) == rows.nbytes


# --- files that anybody may have written ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state_names_json": b"[1"}, "state_names_json is not JSON"),
        ({"state_names_json": b"7"}, "state_names_json must be a list; got int"),
        ({"state_names_json": b"[1,2.5]"}, "names must be text, whole numbers or lists of these; got 2.5"),
        ({"state_names_json": b"[1,{}]"}, "names must be text, whole numbers or lists of these"),
        ({"state_names_json": b"[1,1]"}, "state_names must be 2 different names; got 2, 1"),
        (
            {"state_names_json": b"[1," + b"[" * 900 + b"]" * 900 + b"]"},
            "damaged: names must be nested at most 20 deep",
        ),
        ({"state_names_json": b"[1" + b",1" * 10**4 + b"]"}, "state_names must take at most 1000 bytes each"),
        ({"action_names_json": np.zeros(3)}, "action_names_json is stored as float64"),
        ({"state_coordinates": np.zeros((2, 1))}, "state_coordinates are stored as float64"),
        ({"state_coordinates": np.zeros((2, 0), dtype=int)}, "state_coordinates are stored as int64 of shape"),
        ({"state_coordinates": np.arange(3)}, "state_names must be 2 different names; got 3"),
    ],
)
def test_damaged_names(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = tmp_path / "m.npz"
    small_mdp().save(path)
    rewrite(path, **{k: np.frombuffer(v, np.uint8) if isinstance(v, bytes) else v for k, v in changes.items()})
    with pytest.raises(ModelFileError, match=words):
        MDP.load(path)


def test_names_that_are_text_are_stored_as_before(tmp_path: Path) -> None:
    small_mdp(state_names=["a", "b"]).save(tmp_path / "m.npz")
    assert entries(tmp_path / "m.npz")["state_names"].tolist() == ["a", "b"]
