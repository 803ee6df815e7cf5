"""The table of what was seen: empty at first, sorted batches, variance."""

from __future__ import annotations

import numpy as np
import pytest

from spanrl.models.counts import Batch, Counts, Seen


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


def test_frequencies_and_standard_errors():
    seen = some_counts().seen
    assert seen.p_hat.tolist() == [0.25, 0.75]
    assert seen.p_error.tolist() == [np.sqrt(3 / 64), np.sqrt(3 / 64)]
    assert seen.p_inverse.tolist() == [1 / 3, 1 / 3]
    assert seen.r_error.tolist() == [0.25, 0.0]  # √(0.75/3/4)
    assert seen.inverse.tolist() == [1 / 3, 1.0]


class TestRoom:
    def test_what_is_listed_stays(self):
        counts, before = some_counts(), some_counts().arrays()
        counts.reserve(7)
        assert counts.seen.succ.size == counts.seen.times.size == counts.seen.p_hat.size == 7
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
        assert counts.seen.r_error is seen.r_error


class TestArrays:
    def test_there_and_back_has_the_same_bits(self):
        counts = some_counts()
        counts.reserve(5)
        other = Counts.from_arrays(counts.arrays())
        assert list(counts.arrays()) == list(Seen._fields)
        for name in Seen._fields:
            assert getattr(other.seen, name).tobytes() == counts.arrays()[name].tobytes(), name

    def test_they_are_copies_without_the_room(self):
        counts = some_counts()
        counts.reserve(5)
        arrays = counts.arrays()
        assert {name: part.size for name, part in arrays.items()} == {
            "n": 2, "r_mean": 2, "r_sq": 2, "succ_ptr": 3, "succ": 2, "times": 2,
            "p_hat": 2, "p_error": 2, "p_inverse": 2, "r_error": 2, "inverse": 2,
        }  # fmt: skip
        for name, part in arrays.items():
            assert not np.shares_memory(part, getattr(counts.seen, name)), name

    def test_what_is_not_of_the_counts_is_left_out(self):
        arrays = some_counts().arrays()
        assert Counts.from_arrays(arrays | {"bias": np.zeros(3)}).succ.tolist() == [1, 5]


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
