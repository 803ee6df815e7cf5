"""Policy: rows are distributions; prints as a table."""

from __future__ import annotations

import numpy as np
import pytest

from spanrl import Policy
from spanrl.errors import ModelError


def test_probs_are_copied_and_frozen() -> None:
    given = np.array([[1.0, 0.0], [0.5, 0.5]])
    policy = Policy(given)
    given[0] = 7
    assert policy.probs.tolist() == [[1.0, 0.0], [0.5, 0.5]]
    with pytest.raises(ValueError, match="read-only"):
        policy.probs[0, 0] = 0.0
    assert (policy.n_states, policy.n_actions) == (2, 2)


def test_deterministic() -> None:
    policy = Policy.deterministic([2, 0])
    assert policy.probs.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert policy.is_deterministic
    assert policy.actions.tolist() == [2, 0]
    assert Policy.deterministic(np.array([0, 0], dtype=np.uint8), n_actions=3).n_actions == 3
    assert repr(policy) == "<Policy: 2 states, 3 actions, deterministic>"


def test_rounding_still_counts_as_deterministic() -> None:
    policy = Policy([[1 - 1e-14, 1e-14]])
    assert policy.is_deterministic
    assert policy.actions.tolist() == [0]


def test_a_mixed_policy_has_no_actions() -> None:
    policy = Policy([[1.0, 0.0], [0.25, 0.75], [0.5, 0.5]])
    assert not policy.is_deterministic
    assert repr(policy) == "<Policy: 3 states, 2 actions, randomised>"
    with pytest.raises(ModelError, match=r"state 1.*mixes actions.*\(2 fail\).*Use probs"):
        _ = policy.actions


def test_equality_and_hash() -> None:
    one, other = Policy([[0.0, 1.0]]), Policy.deterministic([1])
    assert one == other
    assert hash(one) == hash(other)
    assert one != Policy([[1.0, 0.0]])
    assert one != Policy([[0.0, 1.0, 0.0]])
    assert one != [[0.0, 1.0]]


def test_prints_as_a_table() -> None:
    policy = Policy([[1.0, 0.0], [0.25, 0.75]], state_names=["start", "the end"], action_names=["go", "stay"])
    assert str(policy).splitlines() == ["state    action", "start    go", "the end  go (0.25), stay (0.75)"]
    assert policy.describe(0) == "go"


def test_prints_the_first_states_only() -> None:
    lines = str(Policy.deterministic(np.zeros(1000, dtype=int))).splitlines()
    assert lines[0].split() == ["state", "action"]
    assert lines[-1] == "… 970 more states"
    assert len(lines) == 32
    assert str(Policy.deterministic([0] * 30)).splitlines()[-1].split() == ["29", "0"]


@pytest.mark.parametrize(
    ("probs", "words"),
    [
        ([[0.5, 0.4], [1, 0], [2, 0]], r"probs\[s=0\] sums to 0.9, must sum to 1 within 1e-08 \(2 fail\). Normalise"),
        ([[1.0, 0.0], [np.nan, 1.0]], r"probs\[s=1\].* must be numbers ≥ 0 \(1 fails\)"),
        ([[1.5, -0.5]], r"probs\[s=0\].* must be numbers ≥ 0"),
        ([[np.inf, 0.0]], "must be numbers ≥ 0"),
        ([1.0], r"probs must have shape \(…, …\); got shape \(1,\)"),
        (np.zeros((0, 2)), "at least one state"),
        (np.zeros((2, 0)), "at least one state"),
        ("abc", "probs must be an array of numbers"),
        ([[1.0], [0.5, 0.5]], "probs must be an array of numbers"),
    ],
)
def test_bad_probs(probs: object, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Policy(probs)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("actions", "n_actions", "words"),
    [
        ([0, 2, 5], 2, r"actions\[1\] is 2, must be an action in 0..1 \(2 fail\)"),
        ([-1], None, r"actions\[0\] is -1"),
        ([], None, "at least one state"),
        ([0.5], None, "actions must be a one-dimensional array of integers"),
        ([[0]], None, "actions must be a one-dimensional array of integers"),
    ],
)
def test_bad_actions(actions: list[float], n_actions: int | None, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Policy.deterministic(actions, n_actions)


def test_bad_names() -> None:
    with pytest.raises(ModelError, match="state_names must be 1 different names; got 2"):
        Policy([[1.0]], state_names=["a", "b"])
    with pytest.raises(ModelError, match="action_names must be 2 different names; got 2, 1 of them different"):
        Policy([[1.0, 0.0]], action_names=["a", "a"])
