"""Counts after many episodes against numpy, fractions and dictionaries."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experience import add
from spanrl.kernels.counting import add_rewards, add_successors, list_successors, update_shares
from spanrl.models.counts import Batch, Counts

CASES = settings(deadline=None, derandomize=True, max_examples=60)
ARRAYS = ("n", "r_mean", "r_sq", "succ_ptr", "succ", "times")

step = st.tuples(st.integers(0, 3), st.sampled_from([-1.0, 0.0, 0.1, 0.3, 0.7, 2.5]), st.integers(0, 5))
histories = st.lists(st.lists(step, max_size=12), max_size=6)


def tally(episode):
    """Add up the steps of an episode, in the order in which they came."""
    seen = {}
    for key in episode:
        seen[key] = seen.get(key, 0) + 1
    return seen


def counts_of(history, n_pairs=4):
    counts = Counts.empty(n_pairs)
    for episode in history:
        add(counts, tally(episode))
    return counts


def episodes_of(rewards):
    """Split the rewards of one pair as the episode rule does: the k-th episode has at most as many as came before."""
    first, out = 0, []
    while first < len(rewards):
        size = max(1, first)
        out.append([(0, r, 0) for r in rewards[first : first + size]])
        first += size
    return out


def exact_statistics(rewards):
    """Return the mean and the sum of squared deviations as fractions."""
    exact = [Fraction(r) for r in rewards]
    mean = sum(exact) / len(exact)
    return mean, sum((r - mean) ** 2 for r in exact)


class TestRewards:
    @CASES
    @given(histories)
    def test_equal_numpys_mean_and_variance(self, history):
        counts = counts_of(history)
        for i in range(4):
            rewards = [r for episode in history for pair, r, _ in episode if pair == i]
            assert counts.n[i] == len(rewards)
            if rewards:
                assert counts.r_mean[i] == pytest.approx(np.mean(rewards), abs=1e-14)
            wanted = np.var(rewards, ddof=1) if len(rewards) > 1 else 0.0
            assert counts.r_variance[i] == pytest.approx(wanted, abs=1e-13)
            assert counts.r_variance[i] >= 0

    @CASES
    @given(histories, st.randoms(use_true_random=False))
    def test_the_order_within_an_episode_leaves_no_bit_different(self, history, random):
        shuffled = [random.sample(episode, len(episode)) for episode in history]
        one, other = counts_of(history), counts_of(shuffled)
        for name in ARRAYS:
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name

    @pytest.mark.parametrize("reward", [0.1, 1 / 3, 0.7, -2.3, 1e9 + 0.1])
    def test_constant_rewards_have_variance_zero_exactly(self, reward):
        counts = counts_of(episodes_of([reward] * 1000), 1)
        assert counts.n[0] == 1000
        assert counts.r_mean[0] == reward
        assert counts.r_variance[0] == 0.0

    @pytest.mark.parametrize("offset", [0.0, 1.0, 1e3, 1e6, 1e9])
    def test_a_large_offset_costs_no_digits(self, offset):
        rewards = (offset + np.random.default_rng(1).random(3000)).tolist()
        counts = counts_of(episodes_of(rewards), 1)
        mean, squares = exact_statistics(rewards)
        assert counts.r_mean[0] == pytest.approx(float(mean), rel=1e-15)
        # what is left of the digits of the rewards themselves decides: r − r̂ has an error of ulp(offset)/2
        assert counts.r_sq[0] == pytest.approx(float(squares), rel=1e-12 + 1e-15 * offset)

    def test_a_million_rewards_keep_their_digits(self):
        """In blocks of thousands of equal rewards, as a long episode brings them."""
        counts, ones, total = Counts.empty(1), 0, 0
        rng = np.random.default_rng(2)
        for size in (1, 1, 2, 4, 8, *(2**k for k in range(4, 40))):
            hits = int(rng.binomial(size, 1 / 3))
            add(counts, {key: n for key, n in {(0, 1.0, 0): hits, (0, 0.0, 0): size - hits}.items() if n})
            ones, total = ones + hits, total + size
        p = Fraction(ones, total)
        assert counts.n[0] == total
        assert counts.r_mean[0] == pytest.approx(float(p), rel=1e-15)
        assert counts.r_sq[0] == pytest.approx(float(total * p * (1 - p)), rel=1e-13)

    def test_one_reward_at_a_time_is_welfords_recurrence(self):
        rewards = np.random.default_rng(3).random(200)
        counts, mean, squares = Counts.empty(1), 0.0, 0.0
        for k, r in enumerate(rewards.tolist(), start=1):
            add(counts, {(0, r, 0): 1})
            before, mean = mean, mean + (r - mean) / k
            squares += (r - before) * (r - mean)
            assert counts.r_mean[0] == mean
            assert counts.r_sq[0] == pytest.approx(squares, rel=1e-13, abs=1e-16)

    def test_variance_of_one_reward_is_zero(self):
        counts = counts_of([[(2, 0.7, 1)]])
        assert counts.n.tolist() == [0, 0, 1, 0]
        assert counts.r_variance.tolist() == [0.0] * 4


class TestShares:
    @CASES
    @given(histories)
    def test_kept_up_to_date_they_are_those_of_the_counts(self, history):
        """Bit by bit: counts that are stored and read again must plan the same."""
        counts = counts_of(history)
        kept = counts.shares
        counts.share_out()
        for one, other in zip(kept, counts.shares, strict=True):
            assert one.tobytes() == other.tobytes()

    def test_by_hand(self):
        counts = counts_of([[(1, 0.0, 4), (1, 1.0, 4), (1, 1.0, 2), (1, 0.0, 4)], [(3, 0.5, 0)]])
        shares = counts.shares
        assert shares.p_hat.tolist() == [0.25, 0.75, 1.0]
        assert shares.p_error.tolist() == [np.sqrt(3 / 64), np.sqrt(3 / 64), 0.0]
        assert shares.r_error.tolist() == pytest.approx([0.0, np.sqrt(1 / 12), 0.0, 0.0], abs=1e-15)
        assert shares.inverse.tolist() == [1.0, 1 / 3, 1.0, 1.0]


class TestSuccessors:
    @CASES
    @given(histories)
    def test_equal_a_dictionary(self, history):
        counts = counts_of(history)
        wanted = tally([(pair, succ) for episode in history for pair, _, succ in episode])
        found = {}
        for i in range(4):
            part = slice(counts.succ_ptr[i], counts.succ_ptr[i + 1])
            succ, times = counts.succ[part].tolist(), counts.times[part].tolist()
            assert succ == sorted(set(succ)), "sorted, each once"
            assert sum(times) == counts.n[i]
            found |= {(i, s): n for s, n in zip(succ, times, strict=True)}
        assert found == wanted
        assert counts.succ_ptr[0] == 0
        assert counts.succ_ptr[-1] == counts.succ.size == counts.times.size
        assert [getattr(counts, name).dtype for name in ("succ_ptr", "succ", "times")] == [
            np.int64,
            np.uint32,
            np.int64,
        ]

    def test_a_successor_that_is_not_listed_changes_nothing(self):
        counts = counts_of([[(0, 0.0, 1), (2, 0.0, 3)]])
        before = counts.times.tolist()
        batch = Batch.from_dict({(0, 0.0, 1): 5, (2, 0.0, 2): 1})
        assert not add_successors(batch.pair, batch.succ, batch.times, counts.succ_ptr, counts.succ, counts.times)
        assert counts.times.tolist() == before

    def test_listing_keeps_what_is_there(self):
        counts = counts_of([[(0, 0.0, 4), (0, 0.0, 4), (3, 0.0, 0)]])
        pair, succ = np.array([0, 0, 0, 1, 3]), np.array([2, 4, 2, 5, 1], dtype=np.uint32)
        table = counts.succ_ptr, counts.succ, counts.times, counts.shares.p_hat, np.array([0.25, 0.5])
        ptr, listed, times, p_hat, p_error = list_successors(pair, succ, *table)
        assert ptr.tolist() == [0, 2, 3, 3, 5]
        assert listed.tolist() == [2, 4, 5, 0, 1]
        assert times.tolist() == [0, 2, 0, 1, 0]
        assert p_hat.tolist() == [0.0, 1.0, 0.0, 1.0, 0.0]
        assert p_error.tolist() == [0.0, 0.25, 0.0, 0.5, 0.0]

    def test_the_largest_state_number(self):
        counts = counts_of([[(0, 0.0, 2**32 - 1), (0, 0.0, 0)]], 1)
        assert counts.succ.tolist() == [0, 2**32 - 1]


def test_interpreted_kernels_equal_the_compiled_ones():
    rng = np.random.default_rng(4)
    steps = [
        (int(i), float(r), int(s))
        for i, r, s in zip(
            rng.integers(4, size=60), rng.integers(3, size=60) / 2, rng.integers(6, size=60), strict=True
        )
    ]
    batch = Batch.from_dict(tally(steps))
    results = []
    kernels = add_rewards, add_successors, list_successors, update_shares
    for rewards, successors, extend, share in (kernels, [kernel.py_func for kernel in kernels]):
        counts = Counts.empty(4)
        table = counts.succ_ptr, counts.succ, counts.times
        assert not successors(batch.pair, batch.succ, batch.times, *table)
        *table, p_hat, p_error = extend(batch.pair, batch.succ, *table, counts.shares.p_hat, counts.shares.p_error)
        assert successors(batch.pair, batch.succ, batch.times, *table)
        rewards(batch.pair, batch.reward, batch.times, *counts.statistics())
        shares = counts.shares._replace(p_hat=p_hat, p_error=p_error)
        share(batch.pair, counts.n, counts.r_sq, table[0], table[2], shares)
        results.append([part.tolist() for part in (*counts.statistics(), *table, *shares)])
    assert results[0] == results[1]
