"""Alias tables hold the probabilities exactly; random words are numpy's; draws have the right frequencies.

Level of the statistical tests: 1e-3 each, seeds fixed.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from spanrl import Env
from spanrl.kernels.interact import interact
from spanrl.kernels.sampling import Sampler, build_slots, draw, locate, sfc64, to_unit
from spanrl.models.checks import immutable
from spanrl.seeding import get_state, streams

LEVEL = 1e-3
CASES = settings(deadline=None, derandomize=True, max_examples=60)
WORD = 2**64


def make_sampler(rows, succ=None):
    """Return a sampler of pairs with these probabilities; the successor of an outcome is its own number, or as given."""
    ptr = immutable(np.concatenate(([0], np.cumsum([len(row) for row in rows]))), np.int64)
    prob = immutable(np.concatenate(rows), np.float64)
    succ = immutable(np.arange(prob.size) if succ is None else succ, np.uint32)
    slots = (immutable(part, part.dtype) for part in build_slots(ptr, prob, succ))
    never_cut = immutable(np.zeros(0), np.bool_), np.zeros(0, dtype=np.int64)
    return Sampler(ptr, succ, immutable(np.arange(prob.size), np.float64), *slots, *never_cut)


def exact_law(sampler, pair):
    """Return {outcome: probability} over all 2⁶⁴ words, as fractions."""
    start = int(sampler.start[pair])
    first, bits = start >> 6, 63 - (start & 63)
    law = {}
    for slot in range(first, first + (1 << bits)):
        # the words of a slot leave `rest`, the multiples of 2^bits: those below the threshold go to the first outcome
        below = Fraction(-(-int(sampler.threshold[slot]) // (1 << bits)), WORD >> bits)
        for outcome, share in zip(sampler.outcome[2 * slot : 2 * slot + 2].tolist(), (below, 1 - below), strict=True):
            law[outcome] = law.get(outcome, 0) + share / (1 << bits)
    return {outcome: share for outcome, share in law.items() if share}


dyadic_rows = st.lists(st.integers(1, 64), min_size=1, max_size=9).map(
    lambda n: (
        np.diff([0, *sorted({*np.cumsum(n).tolist()} - {sum(n)}), 1 << sum(n).bit_length()])
        / (1 << sum(n).bit_length())
    )
)
weights = st.integers(1, 1000) | st.floats(1e-12, 1.0) | st.sampled_from([1e-300, 1e-18, 1.0])
rows = st.lists(weights, min_size=1, max_size=9).map(lambda n: np.array(n) / np.sum(n))


class TestTables:
    @CASES
    @given(st.lists(dyadic_rows, min_size=1, max_size=4))
    def test_dyadic_probabilities_are_exact(self, table):
        sampler = make_sampler(table)
        for i, row in enumerate(table):
            law = exact_law(sampler, i)
            first = int(sampler.out_ptr[i])
            assert law == {first + k: Fraction(float(p)) for k, p in enumerate(row)}

    @CASES
    @given(st.lists(rows, min_size=1, max_size=4))
    def test_any_probabilities_hold_to_rounding(self, table):
        sampler = make_sampler(table)
        for i, row in enumerate(table):
            law = exact_law(sampler, i)
            first, end = sampler.out_ptr[i], sampler.out_ptr[i + 1]
            assert sum(law.values()) == 1
            assert all(first <= outcome < end for outcome in law), "only outcomes of the pair itself"
            for k, p in enumerate(row):
                assert abs(law.get(first + k, 0) - Fraction(float(p))) <= Fraction(1e-15)

    @pytest.mark.parametrize("n", [100, 1000, 5000])
    def test_wide_tables_hold_to_rounding(self, n):
        row = np.random.default_rng(n).dirichlet(np.full(n, 0.3))
        row = row[row > 0] / row[row > 0].sum()
        law = exact_law(make_sampler([row]), 0)
        assert max(abs(law.get(k, 0) - Fraction(float(p))) for k, p in enumerate(row)) <= Fraction(1e-15)

    @CASES
    @given(st.lists(rows, min_size=1, max_size=4))
    def test_the_two_successors_of_a_slot_stand_in_one_word(self, table):
        size = sum(map(len, table))
        sampler = make_sampler(table, succ=np.arange(size)[::-1] * 3 + 7)
        both = sampler.succ[sampler.outcome.astype(np.int64)].reshape(-1, 2).astype(object)
        assert sampler.successors.tolist() == [int(one) | (int(other) << 32) for one, other in both]

    def test_a_certain_outcome_is_the_only_one(self):
        sampler = make_sampler([np.array([1.0])] * 3)
        assert [exact_law(sampler, i) for i in range(3)] == [{0: 1}, {1: 1}, {2: 1}]
        for word in (0, 1, WORD - 1):
            assert draw(sampler, 1, np.uint64(word)) == 1

    def test_compiled_and_interpreted_tables_agree(self):
        rng = np.random.default_rng(3)
        table = [rng.dirichlet(np.ones(n)) for n in (1, 2, 3, 5, 8)]
        ptr = immutable(np.concatenate(([0], np.cumsum([1, 2, 3, 5, 8]))), np.int64)
        arrays = ptr, immutable(np.concatenate(table), np.float64), immutable(np.arange(19), np.uint32)
        for one, other in zip(build_slots(*arrays), build_slots.py_func(*arrays), strict=True):
            np.testing.assert_array_equal(one, other)

    @CASES
    @given(st.lists(rows, min_size=1, max_size=3), st.data())
    def test_draw_reads_the_tables(self, table, data):
        sampler = make_sampler(table)
        pair = data.draw(st.integers(0, len(table) - 1))
        start = int(sampler.start[pair])
        first, bits = start >> 6, 63 - (start & 63)
        slot = data.draw(st.integers(0, (1 << bits) - 1))
        edge = int(sampler.threshold[first + slot]) >> bits
        rest = data.draw(
            st.sampled_from([0, edge - 1, edge, edge + 1, (WORD >> bits) - 1]) | st.integers(0, (WORD >> bits) - 1)
        )
        rest = min(max(rest, 0), (WORD >> bits) - 1)
        word = (slot << (64 - bits)) | rest
        second = (rest << bits) >= int(sampler.threshold[first + slot])
        assert draw(sampler, pair, np.uint64(word)) == sampler.outcome[2 * (first + slot) + second]
        found, left = locate(sampler.start[pair], np.uint64(word))
        assert (int(found), int(left)) == (first + slot, rest << bits)


class TestWords:
    @pytest.mark.parametrize("seed", [0, 1, 2**40])
    def test_sfc64_is_numpys_stream(self, seed):
        rng, plain = streams(seed)[0], streams(seed)[0]
        state = tuple(get_state(rng))
        words = []
        for _ in range(1000):
            word, *state = map(np.uint64, sfc64(*state))
            words.append(word)
        np.testing.assert_array_equal(words, plain.bit_generator.random_raw(1000))
        np.testing.assert_array_equal(np.array(state, dtype=np.uint64), get_state(plain))

    def test_interpreted_words_are_the_same(self):
        state = tuple(get_state(streams(5)[1]))
        with np.errstate(over="ignore"):
            for _ in range(20):
                compiled = sfc64(*state)
                assert compiled == sfc64.py_func(*state)
                _, *state = map(np.uint64, compiled)

    def test_to_unit_is_what_random_gives(self):
        rng, plain = streams(9)[0], streams(9)[0]
        words = rng.bit_generator.random_raw(1000)
        assert [to_unit(word) for word in words] == plain.random(1000).tolist()
        assert to_unit(np.uint64(0)) == 0.0
        assert to_unit(np.uint64(WORD - 1)) == 1 - 2.0**-53

    def test_a_step_takes_one_word(self):
        env = Env.from_outcomes({(0, 0): [(0.3, 0, 0.0), (0.3, 0, 0.5), (0.4, 0, 1.0)]})
        rng, plain = streams(4)[0], streams(4)[0]
        for word in plain.bit_generator.random_raw(50):
            drawn = draw(env.sampler, 0, word)
            assert env.step(0, 0, rng) == (env.sampler.reward[drawn], env.sampler.succ[drawn])
        np.testing.assert_array_equal(get_state(rng), get_state(plain))


@pytest.mark.parametrize(
    "prob",
    [[0.5, 0.5], [0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3], [0.001, 0.003, 0.5, 0.296, 0.2], list(np.arange(1, 14) / 91)],
)
def test_frequencies(prob):
    """χ² over 10⁶ draws of the compiled loop."""
    prob, steps = np.array(prob), 10**6
    sampler = make_sampler([prob], succ=np.zeros(prob.size))
    tally, words = np.zeros(prob.size, dtype=np.int64), get_state(streams(11)[0])
    left = np.full(2, steps)
    pairs, unused = np.zeros(2, dtype=np.int64), np.zeros(4, dtype=np.uint64)
    done, state, over = interact(sampler, pairs, np.zeros(1), False, left, tally, words, unused, 0, steps)
    assert (done, state, over) == (steps, 0, False)
    statistic = ((tally - steps * prob) ** 2 / (steps * prob)).sum()
    assert statistic <= chi2.isf(LEVEL, prob.size - 1)


@pytest.mark.parametrize("bit", [0, 1, 7, 20])
def test_choices_of_slot_and_outcome_are_independent(bit):
    """The word that chooses the slot also decides within it: neighbouring draws and the bits of the rest must not show it."""
    prob = np.array([0.1, 0.15, 0.2, 0.25, 0.3])
    sampler = make_sampler([prob])
    words = streams(bit)[0].bit_generator.random_raw(20_000)
    drawn = np.array([draw(sampler, 0, word) for word in words])
    table = np.zeros((2, 5))
    np.add.at(table, ((words >> np.uint64(bit)) & np.uint64(1), drawn), 1)
    expected = table.sum(axis=1, keepdims=True) * prob
    assert ((table - expected) ** 2 / expected).sum() <= chi2.isf(LEVEL, 8)
