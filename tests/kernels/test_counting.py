"""Counts after many episodes against numpy, fractions and dictionaries."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanrl.kernels import counting as module
from spanrl.kernels.counting import add_batch, list_successors, note_changes
from spanrl.kernels.jit import interpreted
from spanrl.models.counts import Batch, Counts, Seen

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


def no_columns(counts):
    """Return what moves along with successors where nothing is kept."""
    return np.zeros((0, counts.seen.succ.size))


def add(counts, seen):
    """Add experience to counts, as a learner does at the end of an episode."""
    counts.reserve(counts.succ.size + len(seen))
    assert add_batch(*Batch.from_dict(seen), counts.seen, no_columns(counts)) >= 0


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


class TestRaw:
    @CASES
    @given(histories)
    def test_counts_that_were_stored_are_those_that_were_kept(self, history):
        """They hold raw numbers alone, without the room for more."""
        counts = counts_of(history)
        kept = counts.arrays()
        anew = Counts(**kept).arrays()
        assert list(kept) == list(anew) == list(Seen._fields) == list(ARRAYS)
        for name in kept:
            assert kept[name].tobytes() == anew[name].tobytes(), name


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

    @pytest.mark.parametrize("room", [2, 3])
    def test_without_room_nothing_is_changed(self, room):
        """Two are listed and two are new: not even the visits and rewards of what is listed are taken in."""
        counts = Counts(**counts_of([[(0, 0.0, 1), (2, 0.0, 3)]]).arrays())
        counts.reserve(room)
        before = [part.tobytes() for part in counts.seen]
        batch = Batch.from_dict({(0, 0.5, 1): 5, (2, 0.0, 2): 1, (3, 1.0, 0): 2})
        moved = np.random.default_rng(0).random((2, room))
        columns = moved.copy()
        assert list_successors(batch.pair, batch.succ, counts.seen, moved) == -1
        assert add_batch(*batch, counts.seen, moved) == -1
        assert [part.tobytes() for part in counts.seen] == before
        assert moved.tobytes() == columns.tobytes()
        counts.reserve(4)
        assert add_batch(*batch, counts.seen, no_columns(counts)) == 2
        assert (counts.n.tolist(), counts.succ.tolist(), counts.times.tolist()) == (
            [6, 0, 2, 2],
            [1, 2, 3, 0],
            [6, 1, 1, 2],
        )

    def test_what_is_listed_needs_no_room(self):
        counts = Counts(**counts_of([[(0, 0.0, 1), (2, 0.0, 3)]]).arrays())
        batch = Batch.from_dict({(0, 0.5, 1): 5, (2, 0.0, 3): 1})
        assert add_batch(*batch, counts.seen, no_columns(counts)) == 0
        assert counts.times.tolist() == [6, 2]

    def test_listing_keeps_what_is_there(self):
        """Pair 0 brings a new successor with two rewards: it is listed once."""
        counts = counts_of([[(0, 0.0, 4), (0, 0.0, 4), (3, 0.0, 0)]])
        counts.reserve(7)
        seen, n = counts.seen, counts.n.copy()
        moved = np.zeros((2, 7))
        moved[:, :2] = [[0.25, 0.5], [-1.0, -2.0]]
        pair, succ = np.array([0, 0, 0, 1, 3]), np.array([2, 4, 2, 5, 1], dtype=np.uint32)
        assert list_successors(pair, succ, seen, moved) == 3
        assert counts.succ_ptr.tolist() == [0, 2, 3, 3, 5]
        assert counts.succ.tolist() == [2, 4, 5, 0, 1]
        assert counts.times.tolist() == [0, 2, 0, 1, 0]
        assert moved[:, [1, 3]].tolist() == [[0.25, 0.5], [-1.0, -2.0]], "the places of what was there"
        assert counts.n.tolist() == n.tolist()
        assert list_successors(pair, succ, seen, moved) == 0
        assert counts.succ.tolist() == [2, 4, 5, 0, 1]

    @CASES
    @given(histories, st.integers(0, 4), st.integers(0, 2))
    def test_columns_move_with_their_successors(self, history, columns, more):
        """Whatever stands beside a successor stands there still when others have been listed; a dictionary knows what it is."""
        counts, known, rng = Counts.empty(4), {}, np.random.default_rng(columns)
        wanted = {(pair, succ) for episode in history for pair, _, succ in episode}
        counts.reserve(len(wanted) + more)
        moved = np.full((columns, len(wanted) + more), np.nan)
        for episode in history:
            assert add_batch(*Batch.from_dict(tally(episode)), counts.seen, moved) >= 0
            row = np.repeat(np.arange(4), np.diff(counts.succ_ptr)).tolist()
            for j, key in enumerate(zip(row, counts.succ.tolist(), strict=True)):
                if key in known:
                    assert moved[:, j].tolist() == known[key]
                else:
                    moved[:, j] = rng.random(columns)
                    known[key] = moved[:, j].tolist()
        assert known.keys() == wanted

    @CASES
    @given(histories, st.integers(0, 3))
    def test_room_does_not_matter(self, history, more):
        """Exactly as much as is needed, or more: the same table, and what is new is counted."""
        one = counts_of(history)
        other, known = Counts.empty(4), set()
        for episode in history:
            batch, here = Batch.from_dict(tally(episode)), {(pair, succ) for pair, _, succ in episode}
            other.reserve(len(known | here) + more)
            assert add_batch(*batch, other.seen, no_columns(other)) == len(here - known)
            known |= here
        for name, part in one.arrays().items():
            assert part.tobytes() == other.arrays()[name].tobytes(), name

    def test_the_largest_state_number(self):
        counts = counts_of([[(0, 0.0, 2**32 - 1), (0, 0.0, 0)]], 1)
        assert counts.succ.tolist() == [0, 2**32 - 1]


class TestChanges:
    @pytest.mark.parametrize("function", [note_changes, note_changes.py_func])
    def test_the_pairs_of_a_batch_once_each(self, function):
        changed = np.full(6, -1)
        assert function(np.array([0, 2, 2, 2, 5]), changed, 0) == 3
        assert changed.tolist() == [0, 2, 5, -1, -1, -1]

    @pytest.mark.parametrize("function", [note_changes, note_changes.py_func])
    def test_two_batches_between_plans_change_all(self, function):
        """It is right: pairs that did not change may be told of, those that did must be."""
        changed = np.full(4, -1)
        assert function(np.array([3]), changed, 0) == 1
        assert function(np.array([1, 1]), changed, 1) == 4
        assert changed.tolist() == [0, 1, 2, 3]

    @pytest.mark.parametrize("function", [note_changes, note_changes.py_func])
    def test_nothing_new(self, function):
        changed = np.full(3, -1)
        assert function(np.zeros(0, dtype=np.int64), changed, 0) == 0
        assert changed.tolist() == [-1, -1, -1]

    @CASES
    @given(histories)
    def test_all_that_changed_are_among_them(self, history):
        """Plans come after every other episode."""
        changed, n, since = np.full(4, -1), 0, set()
        for k, episode in enumerate(history):
            batch = Batch.from_dict(tally(episode))
            n = note_changes(batch.pair, changed, n)
            since |= {pair for pair, _, _ in episode}
            told = changed[:n].tolist()
            assert since <= set(told)
            assert len(told) == len(set(told))
            if k % 2:
                n, since = 0, set()


def test_interpreted_kernels_equal_the_compiled_ones():
    rng = np.random.default_rng(4)
    batches = []
    for _ in range(5):
        columns = rng.integers(4, size=30), rng.integers(3, size=30) / 2, rng.integers(9, size=30)
        batches.append(Batch.from_dict(tally(list(zip(*(part.tolist() for part in columns), strict=True)))))

    def results():
        """Take the batches in by the three kernels, and by the one that does it all."""
        parts, whole = Counts.empty(4), Counts.empty(4)
        parts.reserve(36)
        whole.reserve(36)
        beside = np.arange(72.0).reshape(2, 36)
        columns, found = [beside, beside.copy()], []
        for batch in batches:
            found.append(int(list_successors(batch.pair, batch.succ, parts.seen, columns[0])))
            module.add_rewards(batch.pair, batch.reward, batch.times, parts.seen)
            module.add_successors(batch.pair, batch.succ, batch.times, parts.seen)
            assert add_batch(*batch, whole.seen, columns[1]) == found[-1]
        tables = [{name: part.tolist() for name, part in counts.arrays().items()} for counts in (parts, whole)]
        assert tables[0] == tables[1]
        assert columns[0].tobytes() == columns[1].tobytes()
        return found, tables[0], columns[0].tolist()

    compiled = results()
    with interpreted():
        assert results() == compiled
    assert compiled[0][0] > compiled[0][-1] >= 0
