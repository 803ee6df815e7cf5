"""Every bad input of a model: one sentence with the first offender, the count and the remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from model_samples import small_mdp

from spanrl import MDP, BoundedMDP, clip_span, gain_curve, make, scopt, solve, span_bellman, span_greedy
from spanrl.errors import InputError, ModelError, OptionError, UnknownNameError

NAN, INF = float("nan"), float("inf")
STAY = np.eye(3)[:, None, :]  # [S=3, A=1, S=3], every state stays


def dense(P: Any = STAY, r: Any = ((0.0,), (0.0,), (0.0,)), **options: Any) -> MDP:
    return MDP.from_dense(P, r, **options)


def with_entry(value: float, *at: tuple[int, int, int]) -> Any:
    P = STAY.copy()
    for index in at:
        P[index] = value
    return P


def pairs(**changes: Any) -> MDP:
    given: dict[str, Any] = {
        "state": [0, 0, 1], "action": [0, 1, 0], "succ_ptr": [0, 1, 2, 4], "succ": [0, 1, 0, 1],
        "prob": [1.0, 1.0, 0.5, 0.5], "reward": [0.0, 0.5, 1.0],
    }  # fmt: skip
    return MDP.from_pairs(**(given | changes))


def box(**changes: Any) -> BoundedMDP:
    given: dict[str, Any] = {
        "p_low": [[[0.2, 0.1]]] * 2, "p_high": [[[0.9, 0.8]]] * 2, "r_low": [[0.1]] * 2, "r_high": [[0.9]] * 2,
    }  # fmt: skip
    return BoundedMDP.from_dense(**(given | changes))


def sparse_box(**changes: Any) -> BoundedMDP:
    given: dict[str, Any] = {
        "state": [0, 1], "action": [0, 0], "succ_ptr": [0, 1, 2], "succ": [0, 1], "p_low": [0.2, 0.2],
        "p_high": [0.9, 0.9], "rest_high": [0.5, 0.5], "r_low": [0.0, 0.0], "r_high": [1.0, 1.0],
    }  # fmt: skip
    return BoundedMDP.from_pairs(**(given | changes))


def ball(**changes: Any) -> BoundedMDP:
    given: dict[str, Any] = {"P": [[[0.5, 0.5]]] * 2, "radius": 0.1, "r_low": 0.0, "r_high": 1.0}
    return BoundedMDP.l1_ball(**(given | changes))


@pytest.mark.parametrize(
    ("P", "words"),
    [
        (with_entry(0.97, (1, 0, 1), (2, 0, 2)),
         r"MDP: P\[s=1, a=0\] sums to 0.97, must sum to 1 within 1e-08 \(2 fail\). Normalise the rows or mark"),
        (with_entry(0.0, (2, 0, 2)), r"P\[s=2, a=0\] sums to 0, must sum to 1 .*\(1 fails\)"),
        (with_entry(NAN, (0, 0, 2), (1, 0, 1)), r"P\[s=0, a=0, s'=2\] is nan, must be finite \(2 fail\). Replace NaN"),
        (with_entry(INF, (2, 0, 0)), r"P\[s=2, a=0, s'=0\] is inf, must be finite \(1 fails\)"),
        (with_entry(-INF, (2, 0, 0)), r"P\[s=2, a=0, s'=0\] is -inf, must be finite"),
        (with_entry(-0.5, (1, 0, 0), (1, 0, 2)), r"P\[s=1, a=0, s'=0\] is -0.5, must not be negative \(2 fail\). Prob"),
        (np.ones((3, 1, 2)), r"P must have shape \[S, A, S\]; got \(3, 1, 2\). The first and last length must agree"),
        (np.eye(3), r"P must have shape \(…, …, …\); got shape \(3, 3\)"),
        (np.zeros((0, 1, 0)), "P|at least one state|shape"),
        ([[["a"]]], "P must be an array of numbers"),
        ([[[1.0]], [[1.0, 0.0]]], "P must be an array of numbers"),
        (None, "P must"),
    ],
)  # fmt: skip
def test_bad_P(P: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        dense(P)


@pytest.mark.parametrize(
    ("r", "options", "words"),
    [
        ([[0.0], [1.5], [-2.0]], {"r_min": 0, "r_max": 1}, r"r\[s=1, a=0\] is 1.5, must lie in .* = \[0, 1\] \(2 fail\). Scale"),
        ([[0.0], [-0.1], [0.0]], {"r_min": 0}, r"r\[s=1, a=0\] is -0.1, must lie in .*pass r_min= and r_max="),
        ([[3.0], [3.0], [9.0]], {"r_min": 3, "r_max": 5}, r"r\[s=2, a=0\] is 9, must lie in .* = \[3, 5\]"),
        ([[0.0], [0.0], [NAN]], {}, r"r\[s=2, a=0\] is nan, must be finite \(1 fails\). Replace NaN"),
        ([[INF], [0.0], [-INF]], {}, r"r\[s=0, a=0\] is inf, must be finite \(2 fail\)"),
        ([0.0, 0.0, 0.0], {}, r"r must have shape \(3, 1\); got shape \(3,\)"),
        ([[0.0, 0.0]] * 3, {}, r"r must have shape \(3, 1\); got shape \(3, 2\). Check the number of states"),
        ([["x"]] * 3, {}, "r must be an array of numbers"),
        ([[0.0]] * 3, {"r_min": 1.0, "r_max": 1.0}, "r_min must be below r_max, both finite; got r_min=1, r_max=1. Give"),
        ([[0.0]] * 3, {"r_min": 2.0}, r"r\[s=0, a=0\] is 0, must lie in .* = \[2, 3\]"),
        ([[0.0]] * 3, {"r_max": INF}, "r_min must be below r_max, both finite"),
        ([[0.0]] * 3, {"r_min": NAN}, "r_min must be below r_max, both finite"),
        ([[0.0]] * 3, {"r_min": "a"}, "r_min and r_max must be numbers; got 'a'"),
        ([[0.0]] * 3, {"r_max": []}, "r_min and r_max must be numbers"),
        ([[0.0], [3.0], [0.0]], {"r_max": 2, "costs": True}, r"MDP: cost\[s=1, a=0\] is 3, must lie in .* = \[0, 2\]"),
    ],
)  # fmt: skip
def test_bad_rewards(r: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        dense(r=r, **options)


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (3, r"start must be a state in 0..2 or a distribution over states; got 3"),
        (-1, r"start must be a state in 0..2 or a distribution over states; got -1"),
        ([0.5, 0.6, 0.0], r"start must be a state or a distribution \(entries ≥ 0 that sum to 1 .*\); got sum 1.1"),
        ([1.5, -0.5, 0.0], r"start must be a state or a distribution.*smallest entry -0.5"),
        ([NAN, 0.5, 0.5], "start must be a state or a distribution.*got sum nan"),
        ([INF, 0.0, 0.0], "start must be a state or a distribution"),
        ([0.5, 0.5], r"start must have shape \(3\); got shape \(2,\)"),
        (0.5, "start must"),
        ("x", "start must"),
        (None, "start must"),
    ],
)
def test_bad_start(start: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        dense(start=start)


@pytest.mark.parametrize(
    ("available", "words"),
    [
        (
            [[True], [False], [False]],
            r"state 1,? has no action; every state must have at least one \(2 fail\). Add an ac",
        ),
        ([[1], [1], [1]], r"available must be a boolean array of shape \(3, 1\); got dtype int64"),
        ([True, True, True], r"available must be a boolean array of shape \(3, 1\); got dtype bool, shape \(3,\)"),
    ],
)
def test_bad_available(available: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        dense(available=available)
    with pytest.raises(ModelError, match=words):
        MDP.from_scipy([sp.eye_array(3, format="csr")], np.zeros((3, 1)), available=available)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state": [0, 0, 2]}, r"state 1,? has no action; every state must have at least one \(1 fails\)"),
        ({"state": [0, 0, -1]}, r"state\[2\] is -1, must not be negative \(1 fails\). Number states and actions from 0"),
        ({"action": [-3, 1, 0]}, r"action\[0\] is -3, must not be negative"),
        ({"action": [1, 0, 0]}, r"pair 1 \(s=0, a=0\),? must come after the pair before it \(1 fails\). Sort the pairs"),
        ({"action": [0, 0, 0]}, r"pair 1 \(s=0, a=0\),? must come after .* each once"),
        ({"state": [1, 0, 0]}, r"pair 1 \(s=0, a=1\),? must come after"),
        ({"state": [0.0, 0.0, 1.0]}, "state must be a one-dimensional array of integers; got dtype float64"),
        ({"state": [[0, 0, 1]]}, r"state must be a one-dimensional array of integers; .*shape \(1, 3\)"),
        ({"state": [0, 1]}, "state and action must have the same length; got 2 and 3"),
        ({"state": [], "action": []}, "must have at least one state with one action; got no pairs"),
        ({"succ": [0, 2, 0, 3]}, r"successor 2 of P\[s=0, a=1\],? must be a state in 0..1 \(2 fail\). Every state needs"),
        ({"succ": [0, 1, 0, -1]}, r"successor -1 of P\[s=1, a=0\],? must be a state in 0..1 \(1 fails\)"),
        ({"succ": [0, 1, 0]}, r"succ_ptr must rise from 0 to len\(succ\) = 3 in 4 entries"),
        ({"succ_ptr": [0, 1, 4]}, "succ_ptr must rise .* got 3 entries. Build it as a CSR row pointer"),
        ({"succ_ptr": [1, 1, 2, 4]}, "succ_ptr must rise"),
        ({"succ_ptr": [0, 3, 2, 4]}, "succ_ptr must rise"),
        ({"succ_ptr": [0, 2, 2, 4]}, r"P\[s=0, a=0\] sums to 2, must sum to 1 .*\(2 fail\)"),
        ({"prob": [1.0, 1.0, 0.5]}, r"prob must have shape \(4\); got shape \(3,\)"),
        ({"prob": [1.0, NAN, 0.5, 0.5]}, r"P\[s=0, a=1, s'=1\] is nan, must be finite"),
        ({"prob": [1.0, 1.0, 1.5, -0.5]}, r"P\[s=1, a=0, s'=1\] is -0.5, must not be negative"),
        ({"prob": "half"}, "prob must be an array of numbers"),
        ({"reward": [0.0]}, r"reward must have shape \(3\); got shape \(1,\)"),
        ({"reward": [0.0, 2.0, 0.0], "r_max": 1}, r"r\[s=0, a=1\] is 2, must lie in"),
        ({"n_actions": 1}, "the number of actions must be at least 2, since action 1 is used; got 1"),
        ({"action_names": ["a"]}, "the number of actions must be at least 2"),
        ({"action_names": ["a", "a"]}, "action_names must be 2 different names; got 2, 1 of them different"),
        ({"n_actions": 3, "action_names": ["a", "b"]}, "action_names must be 3 different names; got 2"),
        ({"state_names": ["a"]}, "state_names must be 2 different names; got 1"),
        ({"state_names": ["a", "a"]}, "state_names must be 2 different names; got 2, 1 of them different"),
        ({"state": [[0], [0, 1]]}, "state must be a one-dimensional array of integers"),
        ({"n_actions": 2.5}, "number of actions"),
    ],
)  # fmt: skip
def test_bad_pairs(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        pairs(**changes)


@pytest.mark.parametrize(
    ("matrices", "words"),
    [
        ([], "matrices must hold one .*sparse matrix an action; got none"),
        ([sp.eye_array(2), sp.eye_array(3)], r"matrix of action 1 must have shape \(2, 2\); got \(3, 3\)"),
        ([sp.csr_array(np.ones((2, 3)))], r"matrix of action 0 must have shape \(2, 2\); got \(2, 3\)"),
        ([sp.csr_array(np.diag([1.0, 0.5]))], r"P\[s=1, a=0\] sums to 0.5"),
        ([sp.csr_array(np.array([[-1.0, 2.0], [0.0, 1.0]]))], r"P\[s=0, a=0, s'=0\] is -1, must not be negative"),
        ([sp.csr_array(np.array([[1.0, NAN], [0.0, 1.0]]))], r"P\[s=0, a=0, s'=1\] is nan"),
        ([sp.eye_array(2), sp.eye_array(2)], r"r must have shape \(2, 2\); got shape \(2, 1\)"),
        ([np.eye(2)], "sparse"),
        (sp.eye_array(2), "matrices"),
    ],
)
def test_bad_matrices(matrices: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        MDP.from_scipy(matrices, [[0.0], [0.0]])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"p_low": [[[0.2, 0.85]], [[0.2, 0.85]]]},
         r"p_low\[s=0, a=0, s'=1\] = 0.85 > p_high = 0.8, p_low must not exceed p_high \(2 fail\). Swap or widen"),
        ({"p_low": [[[0.6, 0.5]], [[0.2, 0.1]]]},
         r"box \[s=0, a=0\] contains no distribution: its lower ends sum to 1.1, must not exceed 1 \(1 fails\). Widen"),
        ({"p_high": [[[0.9, 0.8]], [[0.5, 0.4]]]},
         r"box \[s=1, a=0\] contains no distribution: its upper ends sum to 0.9, must reach 1 \(1 fails\). Widen"),
        ({"p_low": [[[-0.1, 0.1]]] * 2}, r"p_low\[s=0, a=0, s'=0\] is -0.1, must be a probability in \[0, 1\] \(2 fail\)"),
        ({"p_low": [[[0.2, NAN]], [[0.2, 0.1]]]}, r"p_low\[s=0, a=0, s'=1\] is nan, must be a probability"),
        ({"p_high": [[[0.9, 1.5]]] * 2}, r"p_high\[s=0, a=0, s'=1\] is 1.5, must be a probability.*Cut the interval"),
        ({"p_high": [[[0.9, 0.8]], [[INF, 0.8]]]}, r"p_high\[s=1, a=0, s'=0\] is inf, must be a probability"),
        ({"p_high": [[[0.9, 0.8]], [[NAN, 0.8]]]}, r"p_high\[s=1, a=0, s'=0\] is nan"),
        ({"p_low": np.zeros((2, 1, 3))}, r"p_low must have shape \[S, A, S\]; got \(2, 1, 3\)"),
        ({"p_low": [0.1]}, r"p_low must have shape \(…, …, …\)"),
        ({"p_high": np.ones((2, 2, 2))}, r"p_high must have shape \(2, 1, 2\); got shape \(2, 2, 2\)"),
        ({"r_low": [0.1, 0.1]}, r"r_low must have shape \(2, 1\)"),
        ({"r_high": [[0.1]]}, r"r_high must have shape \(2, 1\)"),
        ({"r_low": [[0.1], [0.95]]}, r"r_low\[s=1, a=0\] = 0.95 > r_high = 0.9, r_low must not exceed r_high \(1 fails\)"),
        ({"r_low": [[-0.1], [0.1]], "r_min": 0}, r"r_low\[s=0, a=0\] is -0.1, must lie in \[r_min, r_max\]"),
        ({"r_high": [[0.9], [1.1]], "r_max": 1}, r"r_high\[s=1, a=0\] is 1.1, must lie in \[r_min, r_max\]"),
        ({"r_high": [[NAN], [0.9]]}, r"r_high\[s=0, a=0\] is nan, must be finite"),
        ({"r_min": 1.0, "r_max": 1.0}, "r_min must be below r_max"),
        ({"r_max": NAN}, "r_min must be below r_max"),
        ({"available": [[True], [False]]}, r"state 1,? has no action"),
        ({"available": [[1], [1]]}, "available must be a boolean array"),
    ],
)  # fmt: skip
def test_bad_dense_boxes(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        box(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"succ": [0, 2]}, r"successor 2 of \[s=1, a=0\],? must be a state in 0..1"),
        (
            {"succ_ptr": [0, 2, 2], "succ": [1, 1], "p_low": [0.2, 0.3]},
            r"successor 1 of \[s=0, a=0\],? is listed twice",
        ),
        ({"succ_ptr": [0, 1]}, "succ_ptr must rise"),
        ({"rest_high": [0.5, -0.1]}, r"rest_high\[s=1, a=0\] is -0.1, must be a probability in \[0, 1\] \(1 fails\)"),
        ({"rest_high": [NAN, NAN]}, r"rest_high\[s=0, a=0\] is nan, must be a probability in \[0, 1\] \(2 fail\)"),
        ({"rest_high": [0.5]}, r"rest_high must have shape \(2\)"),
        ({"rest_high": [0.05, 0.05]}, r"box \[s=0, a=0\] .* upper ends sum to 0.95, must reach 1 \(2 fail\)"),
        ({"p_low": [0.95, 0.2]}, r"p_low\[s=0, a=0, s'=0\] = 0.95 > p_high = 0.9"),
        ({"p_low": [0.2]}, r"p_low must have shape \(2\)"),
        ({"state": [0, 0]}, r"pair 1 \(s=0, a=0\),? must come after"),
        ({"state": [0, 2]}, r"state 1,? has no action"),
        ({"r_low": [0.0, 2.0]}, r"r_low\[s=1, a=0\] = 2 > r_high = 1"),
        ({"n_actions": 0}, "the number of actions must be at least 1"),
    ],
)
def test_bad_sparse_boxes(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        sparse_box(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"radius": -0.1}, r"radius\[s=0, a=0\] is -0.1, must be a finite number ≥ 0 \(2 fail\). A radius of 2"),
        ({"radius": [[0.1], [NAN]]}, r"radius\[s=1, a=0\] is nan, must be a finite number ≥ 0 \(1 fails\)"),
        ({"radius": INF}, r"radius\[s=0, a=0\] is inf"),
        ({"radius": [0.1, 0.1]}, r"radius must have shape \(2, 1\)"),
        ({"radius": "x"}, "radius must be an array of numbers|radius must be"),
        ({"P": [[[0.5, 0.4]]] * 2}, r"P\[s=0, a=0\] sums to 0.9"),
        ({"P": [[0.5, 0.5]]}, "P must have shape"),
        ({"r_low": 0.5, "r_high": 0.4}, r"r_low\[s=0, a=0\] = 0.5 > r_high = 0.4"),
        ({"r_high": 2.0, "r_max": 1.0}, r"r_high\[s=0, a=0\] is 2, must lie in"),
        ({"r_min": 0.0, "r_max": 0.0}, "r_min must be below r_max"),
        (
            {"P": small_mdp(), "available": [[True, True], [True, False]]},
            "available must be left out where P is an MDP",
        ),
        ({"P": small_mdp(), "radius": [0.1, 0.1]}, r"radius must have shape \(3\); got shape \(2,\)"),
    ],
)
def test_bad_balls(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        ball(**changes)


@pytest.mark.parametrize("c", [-1, -1e-300, NAN, "x", None])
def test_bad_span_bounds(c: Any) -> None:
    words = r"the span bound must be a number ≥ 0 \(inf for none\); got "
    mdp = make("two-state").mdp
    with pytest.raises(InputError, match=f"solve: {words}"):
        solve(mdp, span_bound=c)
    with pytest.raises(InputError, match=words):
        scopt(mdp, c)
    with pytest.raises(InputError, match=f"clip_span: {words}"):
        clip_span([0.0, 1.0], c)
    with pytest.raises(InputError, match=words):
        span_bellman(mdp, [0.0, 0.0], c)
    with pytest.raises(InputError, match=words):
        span_greedy(mdp, [0.0, 0.0], c)
    if isinstance(c, float):
        with pytest.raises(InputError, match=words):
            gain_curve(mdp, [c])


def test_a_span_bound_of_zero_is_allowed() -> None:
    solution = solve(make("two-state").mdp, span_bound=0)
    assert solution.gain == pytest.approx(0.5)
    assert solution.span == 0.0


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("tol", 0, "tol must be a finite number > 0; got 0"),
        ("tol", -1e-6, "tol must be a finite number > 0; got -1e-06"),
        ("tol", NAN, "tol must be a finite number > 0; got nan"),
        ("tol", INF, "tol must be a finite number > 0; got inf"),
        ("tol", "small", "tol must be a finite number > 0; got 'small'"),
        ("method", "simplex", "method must be one of auto, value-iteration, modified-policy-iteration, policy-iteration; "
                              "got 'simplex'"),
        ("sense", "hopeful", "sense must be .*optimistic.*pessimistic.* got 'hopeful'"),
        ("policy", "lazy", "policy must be 'mixture' or 'greedy'; got 'lazy'"),
        ("on_fail", "ignore", "on_fail must be 'raise' or 'return'; got 'ignore'"),
        ("max_sweeps", 0, "max_sweeps must be at least 1"),
        ("ref_state", 2, "ref_state must be a state in 0..1; got 2"),
        ("ref_state", -1, "ref_state must be a state in 0..1; got -1"),
        ("damping", 0.0, r"damping must lie in \(0, 1\]; got 0.0"),
        ("damping", NAN, r"damping must lie in \(0, 1\]; got nan"),
        ("contraction", 1.0, r"contraction must lie in \[0, 1\); got 1.0"),
    ],
)  # fmt: skip
def test_bad_solver_options(option: str, value: Any, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        solve(make("two-state").mdp, **{option: value})


def test_policy_iteration_needs_a_plain_model_without_a_bound() -> None:
    with pytest.raises(OptionError, match="'policy-iteration' works for an MDP without a span bound; use 'auto'"):
        solve(make("two-state").mdp, span_bound=1.0, method="policy-iteration")
    with pytest.raises(OptionError, match="'policy-iteration' works for an MDP"):
        solve(box(), method="policy-iteration")


def test_a_model_that_is_none() -> None:
    with pytest.raises(OptionError, match="model must be an MDP or a BoundedMDP; got str"):
        solve("two-state")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("two-stat", UnknownNameError, "unknown environment 'two-stat'. Did you mean 'two-state'?"),
        ("xyzzy", UnknownNameError, "unknown environment 'xyzzy'. Known: .*two-state"),
        ("three-state[detla=0.1]", UnknownNameError, "three-state: unknown parameter 'detla'. Did you mean 'delta'?"),
        ("two-state[delta=0.1]", UnknownNameError, "two-state: unknown parameter 'delta'. Known: none"),
        ("three-state[delta=word]", OptionError, "three-state: delta must be a number; got 'word'"),
        ("three-state[delta=2]", OptionError, r"three-state: delta must lie in \[0, 1\); got 2.0"),
        ("riverswim[n_states=2.5]", OptionError, "riverswim: n_states must be a whole number; got 2.5"),
        ("riverswim[variant=amazon]", OptionError, "riverswim: variant must be strehl or .*; got 'amazon'"),
        ("three-state[delta=0.1", OptionError, r"must read name or name\[key=value,...\]"),
    ],
)
def test_bad_environments(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make(text)


def test_every_error_is_a_value_error_and_one_paragraph() -> None:
    with pytest.raises(ValueError, match="sums to") as caught:
        dense(np.zeros((3, 1, 3)))
    assert "\n" not in str(caught.value)


def test_a_large_table_of_states_and_actions_must_not_be_nearly_empty() -> None:
    n = 2000
    action = np.zeros(n, dtype=np.int64)
    action[-1] = 999_999
    with pytest.raises(ModelError, match="must not be nearly empty; got 2000 × 1000000 for 2000 pairs"):
        MDP.from_pairs(np.arange(n), action, np.arange(n + 1), np.arange(n), np.ones(n), np.zeros(n))
    action[-1] = 9_999
    assert (
        MDP.from_pairs(np.arange(n), action, np.arange(n + 1), np.arange(n), np.ones(n), np.zeros(n)).n_actions
        == 10_000
    )
