"""MDP: four ways in, one canonical form, frozen."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from model_samples import assert_dense, pairs_of, random_dense, small_mdp

from spanrl import MDP
from spanrl.errors import ModelError

ARRAYS = ("pair_ptr", "action", "succ_ptr", "succ", "prob", "reward", "start")


@pytest.mark.parametrize("seed", range(5))
def test_dense_pairs_and_scipy_give_the_same_model(seed: int) -> None:
    P, r, available = random_dense(np.random.default_rng(seed), S=3 + seed, A=1 + seed)
    dense = MDP.from_dense(P, r, available=available)
    pairs = MDP.from_pairs(**pairs_of(P, r, available), n_actions=P.shape[1])
    sparse = MDP.from_scipy([sp.csr_array(P[:, a]) for a in range(P.shape[1])], r, available=available)
    assert dense == pairs == sparse
    assert_dense(dense, P, r, available)
    assert dense.n_pairs == available.sum()
    assert dense.max_support == max((P[s, a] > 0).sum() for s, a in zip(*np.nonzero(available), strict=True))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok"])
@pytest.mark.parametrize("container", ["array", "matrix"])
def test_scipy_formats(kind: str, container: str) -> None:
    P, r, available = random_dense(np.random.default_rng(7))
    make = getattr(sp, f"{kind}_{container}")
    mdp = MDP.from_scipy([make(P[:, a]) for a in range(P.shape[1])], r, available=available)
    assert mdp == MDP.from_dense(P, r, available=available)


def test_scipy_rows_of_unavailable_pairs_are_ignored() -> None:
    matrices = [sp.csr_array(np.eye(2)), sp.csr_array(np.array([[0.0, 1.0], [np.nan, -3.0]]))]
    mdp = MDP.from_scipy(matrices, [[0.0, 0.5], [1.0, 9.0]], available=[[True, True], [True, False]])
    assert mdp.n_pairs == 3
    assert list(mdp.successors(0, 1)) == [(1, 1.0)]


def test_scipy_duplicates_explicit_zeros_and_unsorted_indices() -> None:
    # row 0 lists state 2 twice and state 1 with an explicit zero, out of order
    matrix = sp.csr_array(
        (np.array([0.25, 0.5, 0.0, 0.25, 1, 1]), np.array([2, 0, 1, 2, 1, 2]), np.array([0, 4, 5, 6]))
    )
    mdp = MDP.from_scipy([matrix], np.zeros((3, 1)))
    assert list(mdp.successors(0, 0)) == [(0, 0.5), (2, 0.5)]
    assert matrix.nnz == 6, "the caller's matrix was changed"


def test_dense_values_of_unavailable_pairs_are_ignored() -> None:
    P = [[[1.0], [np.nan]]]
    mdp = MDP.from_dense(P, [[0.5, 77.0]], available=[[True, False]])
    assert (mdp.n_actions, mdp.n_pairs) == (2, 1)


def test_ragged_action_sets_layout() -> None:
    mdp = MDP.from_pairs([0, 1, 1, 1, 2], [3, 0, 1, 4, 2], [0, 1, 2, 3, 4, 5], [1, 2, 0, 1, 0], [1.0] * 5, [0.0] * 5)
    assert (mdp.n_states, mdp.n_actions, mdp.n_pairs) == (3, 5, 5)
    assert mdp.pair_ptr.tolist() == [0, 1, 4, 5]
    assert mdp.pair_state.tolist() == [0, 1, 1, 1, 2]
    assert (mdp.pair(0, 3), mdp.pair(1, 4), mdp.pair(2, 2)) == (0, 3, 4)
    with pytest.raises(ModelError, match="action 0 is not available in state 0"):
        mdp.pair(0, 0)
    with pytest.raises(ModelError, match="not available in state 3"):
        mdp.pair(3, 0)
    with pytest.raises(ModelError, match="not available in state -1"):
        mdp.pair(-1, 0)


def test_pairs_are_brought_into_canonical_form() -> None:
    """Duplicates are added up, zeros dropped, successors sorted, also in rows at both ends."""
    mdp = MDP.from_pairs(
        [0, 1, 2], [0, 0, 0], [0, 4, 5, 8],
        [2, 0, 2, 1, 1, 2, 2, 0], [0.25, 0.5, 0.25, 0.0, 1.0, 0.5, 0.5, 0.0], [0, 0, 0],
    )  # fmt: skip
    assert mdp.succ_ptr.tolist() == [0, 2, 3, 4]
    assert mdp.succ.tolist() == [0, 2, 1, 2]
    assert mdp.prob.tolist() == [0.5, 0.5, 1.0, 1.0]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_scrambled_rows_agree_with_dense(data: st.DataObject) -> None:
    """Any order, splitting and padding with zeros of a row gives the dense model."""
    S = data.draw(st.integers(1, 5), "S")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32), "seed"))
    P, r, available = random_dense(rng, S=S, A=2)
    pairs = pairs_of(P, r, available)
    ptr, succ, prob = [0], [], []
    for i, (low, high) in enumerate(zip(pairs["succ_ptr"][:-1], pairs["succ_ptr"][1:], strict=True)):
        row = [(t, p / 2) for t, p in zip(pairs["succ"][low:high], pairs["prob"][low:high], strict=True)] * 2
        row += [(int(t), 0.0) for t in rng.integers(S, size=i % 3)]
        for j in rng.permutation(len(row)):
            succ.append(row[j][0])
            prob.append(row[j][1])
        ptr.append(len(succ))
    mdp = MDP.from_pairs(pairs["state"], pairs["action"], ptr, succ, prob, pairs["reward"], n_actions=2)
    assert_dense(mdp, P, r, available)
    assert (mdp.prob > 0).all()
    rows = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.succ_ptr))
    assert (np.diff(rows * S + mdp.succ.astype(int)) > 0).all()


@pytest.mark.parametrize("off", [1e-9, -9e-9])
def test_rows_slightly_off_are_rescaled(off: float) -> None:
    mdp = MDP.from_dense([[[0.5, 0.5 + off]], [[0.0, 1.0]]], [[0], [0]])
    P = mdp.to_dense()[0]
    assert abs(P[0, 0].sum() - 1) <= 2e-16
    np.testing.assert_allclose(P[0, 0], np.array([0.5, 0.5 + off]) / (1 + off), rtol=1e-15)
    assert P[1, 0].tolist() == [0.0, 1.0], "other rows stay as they are"


def test_rows_off_by_rounding_alone_are_kept() -> None:
    p = [0.1] * 3 + [0.7]
    assert MDP.from_dense([[p]] * 4, [[0]] * 4).prob.tolist() == p * 4


@pytest.mark.parametrize("off", [1.1e-8, -2e-8, 0.1, -1.0])
def test_rows_further_off_are_refused(off: float) -> None:
    with pytest.raises(ModelError, match=r"sums to .* must sum to 1 within 1e-08"):
        MDP.from_dense([[[0.0, 1.0 + off]], [[0.0, 1.0]]], [[0], [0]])


def test_arrays_are_read_only_and_typed() -> None:
    mdp = small_mdp()
    for name in ARRAYS:
        array = getattr(mdp, name)
        assert not array.flags.writeable, name
        assert array.flags.c_contiguous, name
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert (mdp.succ.dtype, mdp.prob.dtype, mdp.pair_ptr.dtype) == (np.uint32, np.float64, np.int64)
    with pytest.raises(dataclasses.FrozenInstanceError):
        mdp.r_max = 2.0  # type: ignore[misc]


def test_arrays_of_the_caller_are_neither_frozen_nor_aliased() -> None:
    given = {name: np.array(value) for name, value in pairs_of(*random_dense(np.random.default_rng(0))).items()}
    start = np.full(5, 0.2)
    kept = {name: value.copy() for name, value in given.items()}
    mdp = MDP.from_pairs(**given, start=start)
    before = MDP.from_pairs(**kept, start=np.full(5, 0.2))
    for name, value in {**given, "start": start}.items():
        assert value.flags.writeable, name
        value[...] = 0
    assert mdp == before


def test_dense_arrays_of_the_caller_are_neither_frozen_nor_aliased() -> None:
    P, r = np.ones((1, 1, 1)), np.full((1, 1), 0.5)
    mdp = MDP.from_dense(P, r)
    P[:], r[:] = 9, 9
    assert (mdp.prob.tolist(), mdp.reward.tolist()) == ([1.0], [0.5])


def test_read_only_views_of_the_caller_are_not_aliased() -> None:
    """A read-only view says nothing about who may write to the memory behind it."""
    memory = np.array([1.0, 1.0])
    view = memory[:]
    view.flags.writeable = False
    mdp = MDP.from_pairs([0, 1], [0, 0], [0, 1, 2], [0, 1], view, [0, 0])
    memory[0] = 7.0
    assert mdp.prob.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint64])
def test_integer_types_of_the_caller(dtype: type) -> None:
    mdp = MDP.from_pairs(*(np.array(x, dtype=dtype) for x in ([0, 1], [0, 0], [0, 1, 2], [1, 0])), [1, 1], [0, 1])
    assert mdp == MDP.from_dense([[[0, 1]], [[1, 0]]], [[0], [1]])


def test_fortran_order_and_lists() -> None:
    P, r, available = random_dense(np.random.default_rng(3))
    assert MDP.from_dense(np.asfortranarray(P), r.tolist(), available=available.tolist()) == MDP.from_dense(
        P, r, available=available
    )


def test_start_state_and_distribution() -> None:
    assert small_mdp(start=1).start.tolist() == [0.0, 1.0]
    assert small_mdp(start=np.int32(1)) == small_mdp(start=[0, 1.0])
    assert small_mdp(start=[0.25, 0.75]).start.tolist() == [0.25, 0.75]


def test_equality_and_hash() -> None:
    one, other = small_mdp(), small_mdp()
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1
    assert one != "no model"
    for changed in (
        small_mdp(start=1),
        small_mdp(r_max=2.0),
        small_mdp(r_min=-1.0),
        small_mdp(state_names=["x", "y"]),
        small_mdp(action_names=["x", "y"]),
        dataclasses.replace(one, reward=[0.1, 0.2, 0.8]),
        dataclasses.replace(one, prob=one.prob[::-1]),
    ):
        assert one != changed


def test_more_actions_than_used() -> None:
    assert MDP.from_pairs([0], [0], [0, 1], [0], [1.0], [0], n_actions=4).n_actions == 4
    assert MDP.from_pairs([0], [0], [0, 1], [0], [1.0], [0], action_names=["a", "b"]).n_actions == 2


def test_prints_as_five_lines() -> None:
    assert str(small_mdp(start=1)).splitlines() == [
        "MDP: 2 states, 2 actions, 3 pairs, 5 transitions",
        "successors of a pair: at most 2",
        "rewards in [0, 1], from 0.1 to 0.9",
        "start: 1",
        "actions: 0, 1",
    ]
    assert repr(small_mdp()) == "<MDP: 2 states, 2 actions, 3 pairs>"


def test_prints_names_and_cuts_long_lists() -> None:
    S, A = 9, 20
    mdp = MDP.from_dense(
        np.full((S, A, S), 1 / S),
        np.zeros((S, A)),
        start=np.full(S, 1 / S),
        state_names=[f"room {s}" for s in range(S)],
    )
    lines = str(mdp).splitlines()
    assert len(lines) == 5
    assert lines[3] == "start: room 0, room 1, room 2, room 3, … (9 states)"
    assert lines[4] == "actions: " + ", ".join(map(str, range(12))) + ", …"


def test_names() -> None:
    mdp = small_mdp(state_names=["left", "right"], action_names=["go", "stay"])
    assert (mdp.state_names, mdp.action_names) == (("left", "right"), ("go", "stay"))
    assert [mdp.state_label(s) for s in range(2)] == ["left", "right"]
    assert small_mdp().state_label(1) == "1"
    assert str(mdp).splitlines()[3:] == ["start: left", "actions: go, stay"]


def test_successors_in_order() -> None:
    assert list(small_mdp().successors(1, 0)) == [(0, 0.25), (1, 0.75)]
