"""The table of what was seen: empty at first, sorted batches, variance."""

from __future__ import annotations

import numpy as np
import pytest

from spanrl.models.counts import Batch, Counts


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


def test_statistics_are_the_arrays_themselves():
    counts = Counts.empty(2)
    n, r_mean, r_sq = counts.statistics()
    assert n is counts.n
    assert r_mean is counts.r_mean
    assert r_sq is counts.r_sq


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
