"""Models from functions: what is explored, in which order, what it is worth, and every way in which functions can be wrong."""

from __future__ import annotations

from fractions import Fraction
from itertools import count, repeat
from typing import Any

import numpy as np
import pytest
from queueing import least_cost, machine, single_queue, stock, two_queues

from spanrl import MDP, solve
from spanrl.errors import ModelError

NAN, INF = float("nan"), float("inf")


def one(outcome: Any, *, actions: Any = lambda state: ["go"], **options: Any) -> MDP:
    """Return the model of a single state "s" whose action has these outcomes."""
    return MDP.from_function("s", actions, lambda state, action: outcome, **options)


# --- what is built --------------------------------------------------------------------------------------------------


def test_two_queues_against_the_linear_program() -> None:
    problem = two_queues(5)
    mdp = MDP.from_function(*problem, costs=True)
    assert (mdp.n_states, mdp.action_names, mdp.start[mdp.index((0, 0))]) == (36, ("x", "y"), 1.0)
    solution = solve(mdp, tol=1e-9)
    assert solution.gain == pytest.approx(least_cost(*problem), abs=1e-7)
    assert solution.at((0, 3)).action == "y"
    assert solution.at((3, 0)).action == "x"


@pytest.mark.parametrize("problem", [stock(), machine()], ids=["stock", "machine"])
def test_stock_and_machines_against_the_linear_program(problem: Any) -> None:
    assert solve(MDP.from_function(*problem, costs=True), tol=1e-9).gain == pytest.approx(
        least_cost(*problem), abs=1e-7
    )


@pytest.mark.parametrize("room", [3, 40])
def test_a_queue_against_its_closed_form(room: int) -> None:
    mdp = MDP.from_function(*single_queue(0.3, 0.5, room), costs=True)
    n, weight = np.arange(room + 1), 0.6 ** np.arange(room + 1)
    assert solve(mdp, tol=1e-10).gain == pytest.approx((n @ weight) / weight.sum(), abs=1e-9)
    assert mdp.state_names == tuple(range(room + 1))


def test_states_are_numbered_breadth_first_and_actions_by_first_appearance() -> None:
    graph = {"a": {"go": "cb", "stay": "a"}, "c": {"stay": "d"}, "b": {"back": "a", "go": "d"}, "d": {"back": "a"}}

    def outcomes(state: str, action: str) -> Any:
        ends = graph[state][action]
        return tuple((1 / len(ends), end, 0.5) for end in ends)

    mdp = MDP.from_function("a", lambda state: reversed(graph[state]), outcomes)
    assert mdp.action_names == ("stay", "go", "back")
    assert mdp.state_names == ("a", "c", "b", "d")
    assert mdp.action.tolist() == [0, 1, 0, 1, 2, 2], "sorted in each state"
    assert list(mdp.successors(mdp.index("a"), 1)) == [(1, 0.5), (2, 0.5)]


def test_rewards_are_means_and_repeated_successors_are_added() -> None:
    mdp = one([(0.25, "s", 8.0), (0.25, "s", 4.0), (0.5, "t", 0.0), (0.0, "u", INF)], max_states=3)
    mdp.to_dense()
    assert mdp.reward[0] == pytest.approx(3.0)
    assert list(mdp.successors(0, 0)) == [(0, 0.5), (1, 0.5)]
    assert mdp.state_names == ("s", "t", "u"), "what is listed is a state, whatever its probability"


@pytest.mark.parametrize(
    ("start", "distribution"),
    [("b", [1, 0]), (["b", "a"], [0.5, 0.5]), ({"b": 0.25, "a": Fraction(3, 4)}, [0.25, 0.75])],
)
def test_starts(start: Any, distribution: list[float]) -> None:
    mdp = MDP.from_function(start, lambda s: [0], lambda s, a: [(1, "a" if s == "b" else "b", 0)])
    assert mdp.state_names == ("b", "a")
    assert mdp.start.tolist() == distribution


def test_numbers_of_any_kind() -> None:
    mdp = one([(Fraction(1, 3), "s", np.int64(2)), (np.float64(2 / 3), "s", True)])
    assert mdp.reward[0] == pytest.approx(4 / 3, rel=1e-6)


def test_generators_and_many_blocks() -> None:
    """More outcomes than a block holds; each of the states has as many successors as there are states."""
    n = 150
    mdp = MDP.from_function(0, lambda s: iter((0, 1)), lambda s, a: ((1 / n, t, s / n) for t in range(n)))
    np.testing.assert_allclose(mdp.to_dense()[0], 1 / n)
    np.testing.assert_allclose(mdp.reward, np.repeat(np.arange(n) / n, 2))


def test_a_bar_is_shown_when_asked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanrl.terminal._PATIENCE", 0.0)
    monkeypatch.setattr("spanrl.models.from_function._BLOCK", 10)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")  # rich draws no bars on a dumb one
    MDP.from_function(*two_queues(4), progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "states" in err
    MDP.from_function(*two_queues(4))
    assert capsys.readouterr() == ("", "")


# --- what is wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ([], "outcomes of state 's', action 'go' must be at least one; got none. An outcome is"),
        (None, "must be listed or yielded; got None"),
        (7, "must be listed or yielded; got 7"),
        ([(1.0, "s")], r"must be triples; outcome 0 is \(1.0, s\)"),
        ([(0.5, "s", 0.0), (0.5, "s", 0.0, False)], r"must be triples; outcome 1 is \(0.5, s, 0.0, False\)"),
        ([0.5, "s", 1.0], "must be triples; outcome 0 is 0.5"),
        ("abc", "must be triples; outcome 0 is 'a'"),
        ([("half", "s", 0.0)], "must have numbers; the probability of outcome 0 is 'half'"),
        ([(1.0, "s", None)], "must have numbers; the reward of outcome 0 is None"),
        ([(1.0, ["s"], 0.0)], r"must lead to hashable states; outcome 0 leads to \['s'\]. Use text"),
        ([(1.0, (1, [2]), 0.0)], "must lead to hashable states; outcome 0"),
        ([(0.5, "s", 0.0), (0.47, "t", 0.0)], r"P\[s='s', a='go'\] sums to 0.97, must sum to 1 within 1e-08 \(2 fail\). Normalise"),
        ([(1.5, "s", 0.0), (-0.5, "t", 0.0)], r"P\[s='s', a='go', s'='t'\] is -0.5, must not be negative"),
        ([(NAN, "s", 0.0)], r"P\[s='s', a='go', s'='s'\] is nan, must be finite"),
        ([(1.0, "s", NAN)], r"r\[s='s', a='go'\] is nan, must be finite"),
        ([(1.0, "s", -INF)], r"r\[s='s', a='go'\] is -inf, must be finite"),
    ],
)  # fmt: skip
def test_bad_outcomes(outcome: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        one(outcome)


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ([], r"actions of state 's' must be at least one; got \[\]"),
        (["a", "b", "a"], r"actions of state 's' must be different; got \['a', 'b', 'a'\]. List each action once"),
        ({"a"}, r"actions of state 's' must be a list; got \{'a'\}|must be a list; got"),
        ("go", "actions of state 's' must be a list; got 'go'"),
        (None, "actions of state 's' must be a list; got None"),
        ([["a"]], r"actions of state 's' must be hashable"),
        ((["a"],), r"actions of state 's' must be hashable"),
    ],
)
def test_bad_actions(listed: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        one([(1.0, "s", 0.0)], actions=lambda state: listed)


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ([], "start must be a state, a list .*; got none"),
        ({}, "got none"),
        (["s", "s"], "a state comes twice"),
        ({"s": "x"}, "got the probability 'x'"),
        ({"s": 0.5}, "start must be a state or a distribution .*got sum 0.5"),
        ([["s"]], r"\['s'\] is not hashable"),
        (bytearray(2), "which is not hashable. Use text"),
    ],
)
def test_bad_starts(start: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        MDP.from_function(start, lambda s: [0], lambda s, a: [(1.0, s, 0.0)])


@pytest.mark.parametrize(("name", "value"), [("actions", ["a"]), ("outcomes", None)])
def test_not_functions(name: str, value: Any) -> None:
    functions = {"actions": lambda s: ["a"], "outcomes": lambda s, a: [(1.0, s, 0.0)], name: value}
    with pytest.raises(ModelError, match=f"{name} must be a function; got"):
        MDP.from_function("s", **functions)


def test_endless_states_end_at_the_limit() -> None:
    with pytest.raises(
        ModelError, match=r"at most 50 states may be reached \(max_states\); state 49, action 'up' leads to one more"
    ):
        MDP.from_function(0, lambda s: ["up"], lambda s, a: [(1.0, s + 1, 0.0)], max_states=50)
    assert MDP.from_function(0, lambda s: ["up"], lambda s, a: [(1.0, (s + 1) % 50, 0.0)], max_states=50).n_states == 50
    with pytest.raises(ModelError, match=r"at most 1 states may be reached \(max_states\); start has 2"):
        MDP.from_function(["a", "b"], lambda s: [0], lambda s, a: [(1.0, s, 0.0)], max_states=1)
    for wrong in (0, 2.5, True, "x"):
        with pytest.raises(ModelError, match="max_states must be a whole number ≥ 1; got"):
            one([(1.0, "s", 0.0)], max_states=wrong)


def test_endless_lists_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanrl.models.from_function._MOST", 1000)
    with pytest.raises(
        ModelError, match=r"outcomes of state 's', action 'go' must be below 1,000; these may have no end"
    ):
        one(repeat((0.0, "s", 0.0)))
    with pytest.raises(ModelError, match="actions of state 's' must be different"):
        one([(1.0, "s", 0.0)], actions=lambda s: repeat("a"))
    with pytest.raises(ModelError, match="must be at most 1,000 in all"):
        one([(1.0, "s", 0.0)], actions=lambda s: count())


def test_what_a_function_raises_passes_with_a_note() -> None:
    def outcomes(state: Any, action: Any) -> Any:
        yield 0.5, state, 0.0
        yield {}["lost"], state, 0.0

    with pytest.raises(KeyError, match="lost") as caught:
        MDP.from_function((3, 2), lambda s: ["go"], outcomes)
    assert caught.value.__notes__ == ["MDP.from_function: raised for state (3, 2), action 'go'."]
    with pytest.raises(ZeroDivisionError) as divided:
        MDP.from_function((3, 2), lambda s: [1 // 0], outcomes)
    assert divided.value.__notes__ == ["MDP.from_function: raised for state (3, 2)."]


def test_a_declared_range_holds_for_every_outcome_not_only_for_the_mean() -> None:
    def outcomes(s: int, a: str) -> list[tuple[float, int, float]]:
        return [(0.5, 1 - s, 0.0), (0.5, s, 5.0 if s else 3.0)]

    words = r"outcomes of state 1, action 'go' must pay or cost within \[r_min, r_max\] = \[0, 3\]; one is 5"
    with pytest.raises(ModelError, match=words):
        MDP.from_function(0, lambda s: ["go"], outcomes, costs=True, r_min=0, r_max=3)
    assert MDP.from_function(0, lambda s: ["go"], outcomes, costs=True, r_min=0, r_max=5).r_min == -5.0
    with pytest.raises(ModelError, match="r_min and r_max must be numbers; got 'low'"):
        MDP.from_function(0, lambda s: ["go"], outcomes, r_min="low")
