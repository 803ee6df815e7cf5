"""Models from functions on arrays: the same models as from functions of one state, and errors that name a state."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np
import pytest
from queueing import two_queues, two_queues_of_arrays

from spanrl import MDP, solve
from spanrl.errors import ModelError
from spanrl.models.labels import CoordinateNames

NAN = float("nan")


def same_by_name(one: MDP, other: MDP) -> None:
    """Check that two models are the same up to the numbers of their states."""
    assert sorted(one.state_names or ()) == sorted(other.state_names or ())
    assert one.action_names == other.action_names
    order = [one.index(name) for name in other.state_names or ()]
    for mine, theirs in zip(one.to_dense(), other.to_dense(), strict=True):
        picked = mine[order][:, :, order] if mine.ndim == 3 else mine[order]
        np.testing.assert_allclose(picked, theirs, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(one.start[order], other.start)


@pytest.mark.parametrize("entries", [1, 1000, 2**20], ids="blocks of {} entries".format)
@pytest.mark.parametrize("reachable", [True, False])
def test_the_model_of_the_functions_of_one_state(
    monkeypatch: pytest.MonkeyPatch, entries: int, reachable: bool
) -> None:
    monkeypatch.setattr("spanrl.models.from_grid._ENTRIES", entries)
    options: dict[str, Any] = {"start": (0, 0), "costs": True}
    mdp = MDP.from_grid((10, 10), ["x", "y"], two_queues_of_arrays(9), reachable=reachable, **options)
    same_by_name(mdp, MDP.from_function(*two_queues(9), costs=True))
    assert isinstance(mdp.state_names, CoordinateNames)
    assert mdp.state_names.coordinates.tolist() == [[x, y] for x in range(10) for y in range(10)], (
        "in the order of the grid"
    )


def test_only_what_is_reached() -> None:
    """A walk on even numbers from −4 to 6, in a grid with odd ones and a second coordinate that never changes."""

    def outcomes(states: Any, action: int) -> Any:
        there = states + np.array([2 * action, 0])
        inside = (there[:, 0] >= -4) & (there[:, 0] <= 6)
        return [(0.75 * inside, there, 1.0), (1 - 0.75 * inside, states, 0.0)]

    shape = (range(-5, 8), 3)
    mdp = MDP.from_grid(shape, [-1, 1], outcomes, start=(2, 1), reachable=True)
    assert mdp.state_names == tuple((x, 1) for x in range(-4, 7, 2))
    assert mdp.index((-4, 1)) == 0
    assert list(mdp.successors(0, 0)) == [(0, 1.0)]
    assert list(mdp.successors(0, 1)) == [(0, 0.25), (1, 0.75)]
    assert mdp.reward.tolist() == [0.0] + [0.75] * 10 + [0.0]
    everywhere = MDP.from_grid(shape, [-1, 1], outcomes, reachable=False)
    assert everywhere.n_states == 39
    assert everywhere.start[0] == 1.0


def test_what_is_allowed() -> None:
    """Stock of up to 5: one may order what still fits; demand takes one or two."""

    def allowed(states: Any, order: int) -> Any:
        return states[:, 0] + order <= 5

    def outcomes(states: Any, order: int) -> Any:
        assert (states[:, 0] + order <= 5).all(), "asked for what is allowed alone"
        for p, demand in ((0.4, 1), (0.6, 2)):
            yield p, np.maximum(states + order - demand, 0), 3.0 * (order > 0) + states[:, 0]

    mdp = MDP.from_grid(6, [0, 1, 4], outcomes, allowed=allowed, start=0, reachable=True, costs=True)
    assert mdp.state_names == (0, 1, 2, 3, 4), "numbers where the shape is one"

    def slow(stock: int, order: int) -> Any:
        for p, demand in ((0.4, 1), (0.6, 2)):
            yield p, max(stock + order - demand, 0), 3.0 * (order > 0) + stock

    same = MDP.from_function(0, lambda x: [a for a in (0, 1, 4) if x + a <= 5], slow, costs=True)
    same_by_name(mdp, same)
    assert solve(mdp, tol=1e-9).gain == pytest.approx(solve(same, tol=1e-9).gain, abs=1e-8)


def test_rows_are_rescaled_and_repeated_successors_added() -> None:
    mdp = MDP.from_grid(1, ["a"], lambda s, a: [(0.5, 0, 1.0), (0.25, s, 3.0), (0.25 + 5e-9, s, 3.0)], reachable=False)
    assert mdp.prob.tolist() == [1.0]
    assert mdp.reward[0] == pytest.approx(2.0, abs=1e-7)


def test_names_are_kept_narrow() -> None:
    mdp = MDP.from_grid((20, 20), ["a"], lambda s, a: [(1.0, (0, 0), 0.0)], reachable=False)
    assert mdp.state_names is not None
    assert mdp.state_names._rows.dtype == np.int8  # type: ignore[attr-defined]
    wide = MDP.from_grid(range(120, 140), ["a"], lambda s, a: [(1.0, 120, 0.0)], reachable=False)
    assert wide.state_names == tuple(range(120, 140))


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (None, r"outcomes must be listed or yielded; got None for state \(0, 0\), action 'go'"),
        ([], r"outcomes of state \(0, 0\), action 'go' must be 1 to 2,000; got none"),
        (repeat((0.0, (0, 0), 0.0)), "must be 1 to 2,000; got more"),
        ([(1.0, (0, 0))], r"outcome 0 of state \(0, 0\), action 'go' must be a triple"),
        ([("x", (0, 0), 0.0)], r"the probability of outcome 0, action 'go' must be a number or \[6\] numbers; got 'x'"),
        ([(np.ones(5), (0, 0), 0.0)], r"the probability of outcome 0, action 'go' must be a number or \[6\]"),
        ([(1.0, (0, 0), None)], r"outcome 0 of state \(0, 0\), action 'go' has reward nan, must be finite"),
        ([(1.0, (0.5, 0), 0.0)], r"next states of outcome 0, action 'go' must be whole numbers \[6, 2\]; got dtype float64"),
        ([(1.0, (0, 0, 0), 0.0)], r"must be whole numbers \[6, 2\]; got dtype int64, shape \(3,\)"),
        ([(np.arange(6) < 4, (0, 0), 0.0)], r"outcomes of state \(1, 1\), action 'go' sum to 0, must sum to 1 within 1e-08 \(2 of 6"),
        ([(NAN, (0, 0), 0.0)], "has probability nan, must be a number ≥ 0"),
        ([(1.5, (0, 0), 0.0), (-0.5, (0, 1), 0.0)], r"outcome 1 of state \(0, 0\), action 'go' has probability -0.5"),
        ([(1.0, (1, 3), 0.0)], r"outcome 0 of state \(0, 0\), action 'go' leads to \(1, 3\), must lead into the grid"),
    ],
)  # fmt: skip
def test_bad_outcomes(outcome: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        MDP.from_grid((2, 3), ["go"], lambda states, action: outcome, reachable=False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shape": 0}, "shape must be numbers ≥ 1 or ranges of step 1"),
        ({"shape": ()}, "shape must be numbers ≥ 1"),
        ({"shape": (2, "x")}, "shape must be numbers ≥ 1"),
        ({"shape": range(0, 9, 2)}, "shape must be numbers ≥ 1 or ranges of step 1"),
        ({"shape": (2**20, 2**20)}, "a grid must have at most 2²⁸ cells; got 1,099,511,627,776. Use from_function"),
        ({"actions": []}, "actions must be a list of at least one name"),
        ({"actions": ["a", "a"]}, "action_names must be 2 different names"),
        ({"actions": "go"}, "actions must be a list of at least one name; got 'go'"),
        ({"actions": iter("go")}, "actions must be a list of at least one name"),
        ({"max_states": "x"}, "max_states must be a whole number ≥ 1; got 'x'"),
        ({"costs": "yes"}, "costs must be True or False; got 'yes'"),
        ({"outcomes": 5}, "outcomes and allowed must be functions"),
        ({"reachable": "yes"}, r"reachable must be True \(what start leads to\) or False \(the full grid\); got 'yes'"),
        ({"start": None}, "start must be given where the reachable part is wanted"),
        ({"start": (0, 9)}, r"start must be states of the grid; got \(0, 9\)"),
        ({"start": 0}, "start must be states of the grid; got 0"),
        ({"start": {(0, 0): 0.3}}, "got sum 0.3"),
        ({"allowed": lambda s, a: s[:, 0]}, r"what allowed returns for action 'go' must be booleans of shape \(1,\)"),
        ({"allowed": lambda s, a: s[:, 0] < 0}, r"state \(0, 0\) has no action; every state must have at least one"),
        ({"r_max": -1.0}, r"outcome 0 of state \(0, 0\), action 'go' pays or costs 0, must lie in \[r_min, r_max\] = \[-inf, -1\]"),
        ({"max_states": 4}, r"at most 4 states may be reached \(max_states\); \(1, 2\) is one more"),
        ({"max_states": 4, "reachable": False}, "at most 4 states are allowed .*; the grid has 6"),
    ],
)  # fmt: skip
def test_bad_arguments(changes: dict[str, Any], words: str) -> None:
    def outcomes(states: Any, action: str) -> Any:
        return [(1 / 6, (x, y), 0.0) for x in range(2) for y in range(3)]

    given = {"shape": (2, 3), "actions": ["go"], "outcomes": outcomes, "start": (0, 0), "reachable": True} | changes
    with pytest.raises(ModelError, match=words):
        MDP.from_grid(**given)


def test_what_a_function_raises_passes_with_a_note() -> None:
    def late(states: Any, action: str) -> Any:
        yield 1.0, states, 0.0
        raise KeyError("lost")

    for outcomes in (late, lambda states, action: {}["lost"]):
        with pytest.raises(KeyError, match="lost") as caught:
            MDP.from_grid((2, 3), ["go"], outcomes, reachable=False)
        assert caught.value.__notes__ == [
            "MDP.from_grid: raised for a block of 6 states, the first state (0, 0), action 'go'."
        ]
