"""BoundedMDP: boxes and balls against dense versions of the same sets."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_samples import dense_box, random_dense, small_ball, small_box, small_mdp

from spanrl import MDP, BoundedMDP
from spanrl.errors import ModelError
from spanrl.models import checks

ARRAYS = ("pair_ptr", "action", "succ_ptr", "succ", "p_low", "p_high", "rest_high", "radius", "r_low", "r_high")


def random_box(rng: np.random.Generator, *, rest: bool) -> tuple[BoundedMDP, Any, Any]:
    """Return a sparse box model around a random MDP, and its dense centre and availability."""
    P, r, available = random_dense(rng)
    A = available.shape[1]
    state, action = np.nonzero(available)
    ptr, succ, low, high = [0], [], [], []
    rest_high = rng.random(state.size) * 0.5 if rest else np.zeros(state.size)
    for i, (s, a) in enumerate(zip(state, action, strict=True)):
        for t in rng.permutation(np.flatnonzero(P[s, a])):
            if rest and P[s, a, t] <= rest_high[i] and rng.random() < 0.5:
                continue  # stays unlisted, and fits under rest_high
            succ.append(t)
            low.append(max(0.0, P[s, a, t] - rng.random() * 0.3))
            high.append(min(1.0, P[s, a, t] + rng.random() * 0.3))
        ptr.append(len(succ))
    rewards = r[state, action]
    bounded = BoundedMDP.from_pairs(
        state, action, ptr, np.array(succ, dtype=int), low, high, rest_high,
        np.maximum(rewards - 0.1, 0), np.minimum(rewards + 0.1, 1), n_actions=A,
    )  # fmt: skip
    return bounded, P, available


def rewards_of(bounded: BoundedMDP, weight: float) -> Any:
    out = np.zeros((bounded.n_states, bounded.n_actions))
    out[bounded.pair_state, bounded.action] = (1 - weight) * bounded.r_low + weight * bounded.r_high
    return out


def test_dense_and_sparse_boxes_are_the_same() -> None:
    bounded = small_box()
    low, high = dense_box(bounded)
    available = np.zeros((3, 4), dtype=bool)
    available[bounded.pair_state, bounded.action] = True
    dense = BoundedMDP.from_dense(
        low, high, rewards_of(bounded, 0), rewards_of(bounded, 1), available=available, r_min=-1, r_max=2
    )
    assert (dense.n_states, dense.n_actions, dense.n_pairs) == (3, 4, 4)
    assert not dense.is_ball
    assert not dense.rest_high.any()
    for mine, theirs in zip(dense_box(dense), (low, high), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(dense.r_low, bounded.r_low)
    np.testing.assert_array_equal(dense.pair_state, bounded.pair_state)


def test_unsorted_successors_are_sorted_and_impossible_ones_dropped() -> None:
    bounded = BoundedMDP.from_pairs(
        [0, 1], [0, 0], [0, 2, 4], [1, 0, 1, 0], [0.2, 0.1, 1.0, 0.0], [0.9, 0.8, 1.0, 0.0], [0.0, 0.0], [0, 0], [1, 1]
    )
    assert bounded.succ.tolist() == [0, 1, 1]
    assert bounded.p_low.tolist() == [0.1, 0.2, 1.0]


def test_a_listed_successor_with_p_high_zero_stays_where_others_may_be_reached() -> None:
    """[0, 0] for a listed successor is stricter than [0, rest_high]."""
    bounded = BoundedMDP.from_pairs([0, 1], [0, 0], [0, 1, 1], [0], [0.0], [0.0], [1.0, 1.0], [0, 0], [1, 1])
    assert dense_box(bounded)[1].tolist() == [[[0.0, 1.0]], [[1.0, 1.0]]]
    assert not bounded.contains(MDP.from_dense([[[0.1, 0.9]], [[1.0, 0.0]]], [[0], [0]]))
    assert bounded.contains(MDP.from_dense([[[0.0, 1.0]], [[1.0, 0.0]]], [[0], [0]]))


def test_pairs_may_list_nothing_at_all() -> None:
    bounded = BoundedMDP.from_pairs([0, 1], [0, 0], [0, 0, 0], [], [], [], [1.0, 0.5], [0, 0], [1, 1])
    assert bounded.succ.size == 0
    assert bounded.contains(MDP.from_dense([[[0.0, 1.0]], [[0.5, 0.5]]], [[0], [1]]))
    assert not bounded.contains(MDP.from_dense([[[0.0, 1.0]], [[0.4, 0.6]]], [[0], [1]]))


def test_ball_from_dense_from_numbers_and_from_an_mdp() -> None:
    centre = small_mdp()
    P, _, available = centre.to_dense()
    from_mdp = BoundedMDP.l1_ball(centre, 0.3, 0.0, 1.0)
    from_dense = BoundedMDP.l1_ball(P, np.full((2, 2), 0.3), np.zeros((2, 2)), np.ones((2, 2)), available=available)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(from_mdp, name), getattr(from_dense, name), err_msg=name)
    assert from_mdp.is_ball
    assert from_mdp.rest_high.size == 0
    np.testing.assert_array_equal(from_mdp.p_low, centre.prob)
    np.testing.assert_array_equal(from_mdp.p_high, centre.prob)
    per_pair = BoundedMDP.l1_ball(centre, [0.1, 0.2, 0.3], [0.0] * 3, 1.0)
    assert per_pair.radius.tolist() == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("make", [small_box, small_ball])
def test_arrays_are_read_only(make: Any) -> None:
    bounded = make()
    for name in ARRAYS:
        array = getattr(bounded, name)
        assert not array.flags.writeable, name
    with pytest.raises(dataclasses.FrozenInstanceError):
        bounded.r_min = 0.0


def test_arrays_of_the_caller_are_neither_frozen_nor_aliased() -> None:
    given = {
        "state": [0], "action": [0], "succ_ptr": [0, 1], "succ": [0], "p_low": [0.5], "p_high": [1.0],
        "rest_high": [0.0], "r_low": [0.0], "r_high": [1.0],
    }  # fmt: skip
    arrays = {name: np.array(value) for name, value in given.items()}
    bounded = BoundedMDP.from_pairs(**arrays)  # type: ignore[arg-type]
    for array in arrays.values():
        array[...] = 9
    for name in ("action", "succ_ptr", "succ", "p_low", "p_high", "rest_high", "r_low", "r_high"):
        assert getattr(bounded, name).tolist() == given[name], name


def test_prints() -> None:
    assert str(small_box()).splitlines() == [
        "BoundedMDP (boxes): 3 states, 4 actions, 4 pairs, 6 listed transitions",
        "reward intervals: mean width 1 in [-1, 2]",
        "transition intervals: mean width 0.4667, unlisted successors up to 0.4",
    ]
    assert str(small_ball()).splitlines() == [
        "BoundedMDP (L1 balls): 2 states, 2 actions, 3 pairs, 5 listed transitions",
        "reward intervals: mean width 0.3 in [0, 1]",
        "L1 radius: mean 0.2",
    ]
    assert repr(small_box()) == "<BoundedMDP: 3 states, 4 actions, 4 pairs, boxes>"
    assert repr(small_ball()) == "<BoundedMDP: 2 states, 2 actions, 3 pairs, L1 balls>"
    nothing = BoundedMDP.from_pairs([0], [0], [0, 0], [], [], [], [1.0], [0], [1])
    assert "mean width 0, unlisted successors up to 1" in str(nothing)


# --- contains -------------------------------------------------------------------------------------------------------


def member(P: Any, r: Any, available: Any, **options: Any) -> MDP:
    return MDP.from_dense(P, r, available=available, **options)


def test_contains_the_corners_and_the_centre() -> None:
    bounded = BoundedMDP.from_dense([[[0.2, 0.1]]] * 2, [[[0.9, 0.8]]] * 2, [[0.2]] * 2, [[0.6]] * 2)
    for p, r in ((0.2, 0.2), (0.9, 0.6), (0.5, 0.4)):
        assert bounded.contains(MDP.from_dense([[[p, 1 - p]]] * 2, [[r]] * 2))


@pytest.mark.parametrize(
    ("p", "r", "why"),
    [
        ([0.5, 0.5, 0.0], 0.61, "reward above"),
        ([0.5, 0.5, 0.0], 0.19, "reward below"),
        ([0.1, 0.9, 0.0], 0.4, "probability below its lower end, and above its upper end"),
        ([0.95, 0.05, 0.0], 0.4, "probability above"),
        ([0.0, 0.8, 0.2], 0.4, "a listed successor is not there although its lower end is above 0"),
        ([0.4, 0.4, 0.2], 0.4, "an unlisted successor takes more than rest_high"),
    ],
)
def test_does_not_contain(p: list[float], r: float, why: str) -> None:
    bounded = BoundedMDP.from_pairs(
        [0, 1, 2], [0, 0, 0], [0, 2, 2, 2], [0, 1], [0.2, 0.1], [0.9, 0.8], [0.1, 1.0, 1.0], [0.2, 0, 0], [0.6, 1, 1]
    )
    stay = [[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]]
    assert bounded.contains(MDP.from_dense([[[0.5, 0.4, 0.1]], *stay], [[0.4], [0], [0]]))
    assert not bounded.contains(MDP.from_dense([[p], *stay], [[r], [0], [0]])), why


def test_contains_in_balls() -> None:
    bounded = BoundedMDP.l1_ball([[[0.5, 0.5, 0.0]]] * 3, 0.2, 0.0, 1.0)

    def holds(p: list[float]) -> bool:
        return bounded.contains(MDP.from_dense([[p], [[0.5, 0.5, 0]], [[0.5, 0.5, 0]]], [[0]] * 3))

    assert holds([0.5, 0.5, 0.0])
    assert holds([0.6, 0.4, 0.0])
    assert holds([0.4, 0.5, 0.1]), "an unlisted successor counts with its whole probability"
    assert not holds([0.61, 0.39, 0.0])
    assert not holds([0.39, 0.5, 0.11])


def test_contains_needs_the_same_pairs() -> None:
    bounded = small_ball()
    assert bounded.contains(small_mdp())
    P, r, _ = small_mdp().to_dense()
    P[1, 1] = [1.0, 0.0]
    assert not bounded.contains(MDP.from_dense(P, r)), "an action more"
    assert not bounded.contains(MDP.from_dense([[[1.0]]], [[0.0]])), "another number of states"
    other = MDP.from_pairs([0, 0, 1], [0, 1, 1], [0, 1, 2, 3], [0, 0, 0], [1, 1, 1], [0, 0, 0])
    assert not bounded.contains(other), "another action"


def test_contains_up_to_rounding() -> None:
    mdp = MDP.from_dense([[[0.1 + 0.2, 0.7]]] * 2, [[0.5]] * 2)
    exact = BoundedMDP.from_dense([[[0.3, 0.7]]] * 2, [[[0.3, 0.7]]] * 2, [[0.5]] * 2, [[0.5]] * 2)
    assert exact.contains(mdp)
    assert not exact.contains(MDP.from_dense([[[0.3001, 0.6999]]] * 2, [[0.5]] * 2))
    assert exact.contains(MDP.from_dense([[[0.3001, 0.6999]]] * 2, [[0.5]] * 2), tol=1e-3)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32), rest=st.booleans(), scale=st.sampled_from([0.0, 0.02, 0.2, 1.0]))
def test_contains_agrees_with_the_dense_box(seed: int, rest: bool, scale: float) -> None:
    """Move the centre towards a random distribution; the answer is that of the dense intervals."""
    rng = np.random.default_rng(seed)
    bounded, P, available = random_box(rng, rest=rest)
    target = rng.dirichlet(np.full(P.shape[0], 0.4), size=available.shape)
    moved = np.where(available[..., None], (1 - scale) * P + scale * target, 0.0)
    r = rewards_of(bounded, float(rng.choice([0.0, 0.5, 1.0])))
    low, high = dense_box(bounded)
    moved /= np.where(available, moved.sum(axis=2), 1.0)[..., None]
    margin = np.minimum(moved - low, high - moved)[available].min()
    if abs(margin) > 1e-9 or scale == 0.0:
        assert bounded.contains(member(moved, r, available)) == (margin > -1e-9)
    assert bounded.contains(member(P, r, available)), "the centre is always inside"


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), scale=st.sampled_from([0.0, 0.05, 0.3, 1.0]))
def test_contains_agrees_with_the_dense_ball(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    P, r, available = random_dense(rng)
    radius = rng.random(available.shape) * 0.6
    bounded = BoundedMDP.l1_ball(P, radius, r, r, available=available)
    target = rng.dirichlet(np.full(P.shape[0], 0.4), size=available.shape)
    moved = np.where(available[..., None], (1 - scale) * P + scale * target, 0.0)
    moved /= np.where(available, moved.sum(axis=2), 1.0)[..., None]
    margin = (radius - np.abs(moved - P).sum(axis=2))[available].min()
    if abs(margin) > 1e-9:
        assert bounded.contains(member(moved, r, available)) == (margin > 0)


# --- augment and perturb --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [small_box, small_ball])
def test_augment_reaches_down_to_r_min(make: Any) -> None:
    bounded = make()
    out = bounded.augment()
    assert (out.r_low == bounded.r_min).all()
    for name in ARRAYS:
        if name != "r_low":
            np.testing.assert_array_equal(getattr(out, name), getattr(bounded, name), err_msg=name)
    assert (out.r_min, out.r_max, out.n_actions) == (bounded.r_min, bounded.r_max, bounded.n_actions)
    assert not out.r_low.flags.writeable


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32), rest=st.booleans(), state=st.integers(0, 4), eta=st.sampled_from([1e-3, 0.05, 0.4]))
def test_perturb_agrees_with_the_dense_box(seed: int, rest: bool, state: int, eta: float) -> None:
    """Def. 4: B_p(s, a, s̄) ∩ [η, 1]; refused where that is empty or leaves no distribution."""
    bounded, _, available = random_box(np.random.default_rng(seed), rest=rest)
    low, high = dense_box(bounded)
    wanted = low.copy()
    wanted[..., state] = np.where(available, np.maximum(low[..., state], eta), 0.0)
    empty = (high[..., state] < eta) & available
    heavy = (wanted.sum(axis=2) > 1 + 1e-8) & available
    if empty.any():
        s, a = np.argwhere(empty)[0]
        with pytest.raises(ModelError, match=rf"p_high\[s={s}, a={a}\]\[s'={state}\].*must be at least eta"):
            bounded.perturb(eta, state)
    elif heavy.any():
        with pytest.raises(ModelError, match=r"contains no distribution: its lower ends sum to .*must not exceed 1"):
            bounded.perturb(eta, state)
    else:
        out = bounded.perturb(eta, state)
        mine_low, mine_high = dense_box(out)
        np.testing.assert_array_equal(mine_low, wanted)
        np.testing.assert_array_equal(mine_high, high)
        keys = np.repeat(np.arange(out.n_pairs), np.diff(out.succ_ptr)) * out.n_states + out.succ.astype(int)
        assert (np.diff(keys) > 0).all(), "rows stay sorted"
        np.testing.assert_array_equal(out.r_high, bounded.r_high)


def test_perturb_by_hand_with_listed_and_unlisted_successors() -> None:
    bounded = small_box()
    before = dense_box(bounded)
    out = BoundedMDP.from_pairs(
        [0, 1], [0, 0], [0, 1, 2], [1, 0], [0.3, 0.2], [1.0, 0.9], [0.4, 0.3], [0, 0], [1, 1]
    ).perturb(0.25, 0)
    low, high = dense_box(out)
    assert low.tolist() == [[[0.25, 0.3]], [[0.25, 0.0]]]
    assert high.tolist() == [[[0.4, 1.0]], [[0.9, 0.3]]]
    for mine, theirs in zip(dense_box(bounded), before, strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg="the model itself stays")


def test_perturb_first_condition_the_intersection_is_empty() -> None:
    bounded = BoundedMDP.from_dense([[[0.0, 0.0]]] * 2, [[[0.1, 1.0]]] * 2, [[0]] * 2, [[1]] * 2)
    with pytest.raises(ModelError, match=r"p_high\[s=0, a=0\]\[s'=0\] is 0.1, must be at least eta = 0.2 \(2 fail\)"):
        bounded.perturb(0.2, 0)


def test_perturb_second_condition_the_lower_ends_exceed_one() -> None:
    bounded = BoundedMDP.from_dense([[[0.0, 0.9]]] * 2, [[[1.0, 1.0]]] * 2, [[0]] * 2, [[1]] * 2)
    with pytest.raises(ModelError, match=r"perturb: box \[s=0, a=0\] .* lower ends sum to 1.1.*\(2 fail\)"):
        bounded.perturb(0.2, 0)
    assert dense_box(bounded.perturb(0.1, 0))[0].tolist() == [[[0.1, 0.9]]] * 2


def test_the_third_condition_of_perturb_holds_for_every_model() -> None:
    """Upper ends stay as they were, and no way of making a model, replace included, gets around the check."""
    valid = BoundedMDP.from_dense([[[0.0, 0.0]]] * 2, [[[0.5, 0.5]]] * 2, [[0]] * 2, [[1]] * 2)
    with pytest.raises(ModelError, match=r"box \[s=0, a=0\] .* upper ends sum to 0.8, must reach 1 \(2 fail\)"):
        dataclasses.replace(valid, p_high=np.full(4, 0.4))


@pytest.mark.parametrize("eta", [0, -0.1, 1.1, float("nan"), float("inf")])
def test_perturb_refuses_eta(eta: float) -> None:
    with pytest.raises(ModelError, match=r"eta must lie in \(0, 1\]; got"):
        small_box().perturb(eta, 0)


@pytest.mark.parametrize("state", [-1, 3])
def test_perturb_refuses_states(state: int) -> None:
    with pytest.raises(ModelError, match=rf"state must be in 0..2; got {state}"):
        small_box().perturb(0.1, state)


def test_perturb_refuses_balls() -> None:
    with pytest.raises(ModelError, match="works on boxes; this model has L1 balls"):
        small_ball().perturb(0.1, 0)


@pytest.mark.parametrize("part", [1, 3, 10**6])
def test_row_sums_are_added_from_left_to_right(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_ROWS", part)
    rng = np.random.default_rng(0)
    ptr = np.concatenate(([0], np.cumsum(rng.integers(0, 5, 17))))
    values = rng.random(ptr[-1])
    expected = [sum(values[a:b].tolist()) for a, b in pairwise(ptr)]
    np.testing.assert_allclose(checks.row_sums(ptr, values), expected, rtol=0, atol=1e-15)
    assert (
        checks.row_sums(ptr, values).tobytes()
        == np.bincount(np.repeat(np.arange(17), np.diff(ptr)), values, 17).tobytes()
    )


def test_successors_in_the_models_own_type_are_taken_as_they_are_and_still_checked() -> None:
    table = ([0, 1], [0, 0], [0, 1, 2])
    succ = np.array([1, 0], dtype=np.uint32)
    model = MDP.from_pairs(*table, succ, [1.0, 1.0], [0.0, 1.0])
    succ[0] = 0  # the model has its own copy
    assert model.succ.tolist() == [1, 0]
    assert MDP.from_pairs(*table, model.succ, [1.0, 1.0], [0.0, 1.0]).succ is model.succ
    with pytest.raises(ModelError, match=r"successor 2 of .* must be a state in 0\.\.1"):
        MDP.from_pairs(*table, np.array([2, 0], dtype=np.uint32), [1.0, 1.0], [0.0, 1.0])
