"""One seed, two streams; states go out to the kernels and come back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from spanrl import streams
from spanrl.errors import OptionError
from spanrl.seeding import check_seed, generator, get_state, set_state

ENV_WORDS = [10116541783505607535, 7467812998635031247]
AGENT_WORDS = [16886851759604636336, 16516725356127799882]


class TestStreams:
    @pytest.mark.parametrize("seed", [0, 1, 12345, 2**63, 10**40, np.int64(7), np.uint8(3)])
    def test_they_are_what_the_seed_says(self, seed):
        for key, rng in enumerate(streams(seed)):
            sequence = np.random.SeedSequence(int(seed), spawn_key=(key,))
            assert isinstance(rng.bit_generator, np.random.SFC64)
            assert rng.random(5).tolist() == np.random.Generator(np.random.SFC64(sequence)).random(5).tolist()

    def test_same_seed_same_numbers_and_all_others_differ(self):
        first = [stream.random() for seed in (0, 1, 2) for stream in streams(seed)]
        again = [stream.random() for seed in (0, 1, 2) for stream in streams(seed)]
        assert first == again
        assert len(set(first)) == 6

    def test_pinned(self):
        """These numbers are part of "same seed, same bits": a change is a decision."""
        env_rng, agent_rng = streams(0)
        assert env_rng.bit_generator.random_raw(2).tolist() == ENV_WORDS
        assert agent_rng.bit_generator.random_raw(2).tolist() == AGENT_WORDS

    @pytest.mark.parametrize("seed", [-1, 1.0, "0", None, True, np.nan, [1]])
    def test_what_is_no_seed(self, seed):
        with pytest.raises(OptionError, match=r"streams: the seed must be a whole number ≥ 0; got .*\. Give 0, say"):
            streams(seed)
        with pytest.raises(OptionError, match="who: the seed must be a whole number"):
            check_seed("who", seed)


class TestGenerator:
    def test_a_generator_is_itself(self):
        rng = np.random.default_rng(0)
        assert generator("who", rng) is rng

    def test_a_seed_is_a_fresh_one(self):
        assert generator("who", 5).random() == generator("who", 5).random() != generator("who", 6).random()

    @pytest.mark.parametrize("rng", [None, "5", np.random.RandomState(0), 0.5])
    def test_anything_else(self, rng):
        with pytest.raises(OptionError, match="who: the seed must be a whole number"):
            generator("who", rng)


class TestState:
    def test_out_and_back(self):
        rng, plain = streams(3)[0], streams(3)[0]
        words = get_state(rng)
        assert words.dtype == np.uint64
        assert words.shape == (4,)
        numbers = plain.random(10)
        set_state(rng, get_state(plain))
        assert rng.random() == plain.random()
        set_state(rng, words)
        assert rng.random(10).tolist() == numbers.tolist()

    def test_the_words_are_a_copy(self):
        rng = streams(3)[0]
        get_state(rng)[:] = 0
        words = get_state(streams(4)[0])
        set_state(rng, words)
        words[:] = 0
        assert rng.random() == streams(4)[0].random()

    def test_it_survives_json(self):
        rng = streams(3)[0]
        rng.random(7)
        words = np.array(json.loads(json.dumps(get_state(rng).tolist())), dtype=np.uint64)
        other = streams(0)[0]
        set_state(other, words)
        assert other.random(5).tolist() == rng.random(5).tolist()
