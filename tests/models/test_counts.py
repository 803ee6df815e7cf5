"""The table of what was seen: empty at first, sorted batches, variance."""

from __future__ import annotations

import numpy as np
import pytest

from spanrl import ProblemInfo
from spanrl.errors import RunFileError
from spanrl.models.counts import Batch, Counts, Seen
from spanrl.models.states import StateReader


def test_nothing_was_seen_at_first():
    counts = Counts.empty(3)
    assert counts.n_pairs == 3
    assert counts.n.tolist() == counts.r_mean.tolist() == counts.r_sq.tolist() == [0, 0, 0]
    assert counts.r_variance.tolist() == [0.0, 0.0, 0.0]
    assert counts.succ_ptr.tolist() == [0, 0, 0, 0]
    assert counts.succ.size == counts.times.size == 0
    assert (counts.n.dtype, counts.succ.dtype, counts.times.dtype) == (np.int64, np.uint32, np.int64)


def test_the_variance_is_unbiased_and_zero_below_two():
    counts = Counts.empty(4)
    counts.n[:], counts.r_sq[:] = [0, 1, 2, 5], [0.0, 0.0, 0.5, 2.0]
    assert counts.r_variance.tolist() == [0.0, 0.0, 0.5, 0.5]


def some_counts():
    """Two pairs: four visits to states 1 (once) and 5, and none."""
    return Counts(
        np.array([4, 0]), np.array([0.5, 0.0]), np.array([0.75, 0.0]), np.array([0, 2, 2]),
        np.array([1, 5], dtype=np.uint32), np.array([1, 3]),
    )  # fmt: skip


def test_what_the_kernels_take_are_the_arrays_themselves():
    counts = some_counts()
    assert counts.seen.n is counts.n
    assert counts.seen.r_mean is counts.r_mean
    assert counts.seen.r_sq is counts.r_sq
    assert counts.seen.succ_ptr is counts.succ_ptr
    assert np.shares_memory(counts.seen.succ, counts.succ)
    assert np.shares_memory(counts.seen.times, counts.times)


def test_they_are_raw():
    """What is derived from them belongs to whoever derives it."""
    assert Seen._fields == ("n", "r_mean", "r_sq", "succ_ptr", "succ", "times")


class TestRoom:
    def test_what_is_listed_stays(self):
        counts, before = some_counts(), some_counts().arrays()
        counts.reserve(7)
        assert counts.seen.succ.size == counts.seen.times.size == 7
        assert counts.succ.tolist() == [1, 5]
        assert counts.times.tolist() == [1, 3]
        for name, part in counts.arrays().items():
            assert part.tobytes() == before[name].tobytes(), name
            assert part.dtype == before[name].dtype, name

    def test_enough_is_enough(self):
        """Arrays that compiled code holds on to are not moved without need."""
        counts = some_counts()
        counts.reserve(7)
        seen = counts.seen
        counts.reserve(7)
        counts.reserve(3)
        assert counts.seen is seen

    def test_more_moves_the_arrays_of_successors_alone(self):
        counts = some_counts()
        seen = counts.seen
        counts.reserve(7)
        assert counts.seen.succ is not seen.succ
        assert counts.seen.succ_ptr is not seen.succ_ptr
        assert counts.seen.n is seen.n
        assert counts.seen.r_mean is seen.r_mean
        assert counts.seen.r_sq is seen.r_sq


class TestArrays:
    def test_there_and_back_has_the_same_bits(self):
        counts = some_counts()
        counts.reserve(5)
        other = Counts(**counts.arrays())
        assert list(counts.arrays()) == list(Seen._fields)
        for name in Seen._fields:
            assert getattr(other.seen, name).tobytes() == counts.arrays()[name].tobytes(), name

    def test_they_are_copies_without_the_room(self):
        counts = some_counts()
        counts.reserve(5)
        arrays = counts.arrays()
        assert {name: part.size for name, part in arrays.items()} == {
            "n": 2, "r_mean": 2, "r_sq": 2, "succ_ptr": 3, "succ": 2, "times": 2,
        }  # fmt: skip
        for name, part in arrays.items():
            assert not np.shares_memory(part, getattr(counts.seen, name)), name


class TestFromAState:
    """A checkpoint may have been written by anybody."""

    INFO = ProblemInfo(6, 1, r_min=-1.0, r_max=3.0, available=[[True]] * 6)
    N = (4, 0, 2, 0, 0, 0)

    def state(self):
        return {
            "n": np.array(self.N), "r_mean": np.array([0.5, 0, 3.0, 0, 0, 0]), "r_sq": np.array([0.75, 0, 0, 0, 0, 0]),
            "succ_ptr": np.array([0, 2, 2, 4, 4, 4, 4]), "succ": np.array([1, 5, 0, 2], dtype=np.uint32),
            "times": np.array([1, 3, 1, 1]), "bias": np.zeros(3),
        }  # fmt: skip

    def read(self, steps=6, **changes):
        return Counts.from_state(StateReader(self.state() | changes), self.INFO, steps)

    def test_there_and_back_has_the_same_bits(self):
        """What else stands in the state is not theirs."""
        arrays = self.read().arrays()
        assert list(arrays) == list(Seen._fields)
        for name, part in arrays.items():
            assert part.tobytes() == self.state()[name].tobytes(), name
            assert part.dtype == self.state()[name].dtype, name

    def test_nothing_seen(self):
        empty = Counts.empty(6).arrays()
        assert self.read(0, **empty).arrays().keys() == empty.keys()

    def test_steps_of_the_episode_under_way_are_not_counted_yet(self):
        assert self.read(steps=100).n.tolist() == list(self.N)

    @pytest.mark.parametrize("name", Seen._fields)
    def test_all_must_be_there(self, name):
        state = self.state()
        del state[name]
        with pytest.raises(RunFileError, match=f"'{name}' is missing"):
            Counts.from_state(StateReader(state), self.INFO, 6)

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"n": np.array([4, 0, 2, 0, 0, 0], dtype=np.int32)}, "'n' must be an array of int64"),
            ({"n": np.array([4, 0, 2])}, r"'n' must be an array of int64 of shape \(6,\)"),
            ({"n": np.array([4, 0, -2, 0, 0, 0])}, "'n' must hold possible values; entry 2 is -2"),
            ({"n": np.array([4, 0, 3, 0, 0, 0])}, "do not fit together"),  # more than its successors
            ({"steps": 5}, "do not fit together"),  # more visits than steps
            ({"steps": 3}, "'n' must hold possible values; entry 0 is 4"),
            ({"r_mean": np.array([0.5, 0, 3.1, 0, 0, 0])}, "'r_mean' must hold possible values; entry 2"),
            ({"r_mean": np.array([0.5, 0, np.nan, 0, 0, 0])}, "'r_mean' must hold possible values; entry 2"),
            ({"r_sq": np.array([-0.1, 0, 0, 0, 0, 0])}, "'r_sq' must hold possible values; entry 0"),
            ({"r_sq": np.array([0, 0, 0, 0, 0, 1e9])}, "'r_sq' must hold possible values; entry 5"),
            ({"succ": np.array([1, 6, 0, 2], dtype=np.uint32)}, "'succ' must hold possible values; entry 1"),
            ({"succ": np.array([1, 5, 0, 2])}, "'succ' must be an array of uint32"),
            ({"succ": np.array([5, 1, 0, 2], dtype=np.uint32)}, "do not fit together"),  # not sorted
            ({"succ": np.array([1, 1, 0, 2], dtype=np.uint32)}, "do not fit together"),  # twice
            ({"times": np.array([1, 3, 2, 0])}, "'times' must hold possible values; entry 3"),
            ({"times": np.array([1, 3, 1, 7])}, "'times' must hold possible values; entry 3"),
            ({"times": np.array([2, 3, 1, 1])}, "do not fit together"),
            ({"times": np.array([1, 3, 1])}, "'times' must be an array of int64"),
            ({"succ_ptr": np.array([0, 2, 2, 4, 4, 4, 3])}, "do not fit together"),
            ({"succ_ptr": np.array([0, 2, 1, 4, 4, 4, 4])}, "do not fit together"),
            ({"succ_ptr": np.array([1, 2, 2, 4, 4, 4, 4])}, "do not fit together"),
            ({"succ_ptr": np.array([0, 2, 2, 5, 4, 4, 4])}, "'succ_ptr' must hold possible values; entry 3"),
        ],
    )
    def test_what_cannot_have_happened_is_refused(self, changes, words):
        with pytest.raises(RunFileError, match=words):
            self.read(**changes)


class TestBatch:
    def test_sorted_by_pair_reward_successor(self):
        batch = Batch.from_dict({(1, 0.5, 2): 3, (0, 1.0, 0): 1, (1, 0.5, 0): 2, (1, -1.0, 9): 4})
        assert batch.pair.tolist() == [0, 1, 1, 1]
        assert batch.reward.tolist() == [1.0, -1.0, 0.5, 0.5]
        assert batch.succ.tolist() == [0, 9, 0, 2]
        assert batch.times.tolist() == [1, 4, 2, 3]

    @pytest.mark.parametrize("seen", [{}, {(0, 0.25, 4_000_000_000): 2**40}])
    def test_types(self, seen):
        batch = Batch.from_dict(seen)
        assert [part.dtype for part in batch] == [np.int64, np.float64, np.uint32, np.int64]
        assert [part.size for part in batch] == [len(seen)] * 4
        assert batch.times.sum() == sum(seen.values())
