"""The compiled interaction against the same steps in plain Python, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from spanrl import MDP, Env
from spanrl.kernels import interact as module
from spanrl.kernels.interact import add_up, harvest, interact
from spanrl.kernels.plan_workspace import EpisodePolicy, new_episode_policy
from spanrl.models.counts import Batch
from spanrl.seeding import get_state, streams

UNLIMITED = 2**62  # visits, as episode rules write them that set no limit


def random_env(seed, S=4, A=3):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(S, 0.4), size=(S, A))
    return Env.from_mdp(MDP.from_dense(P, np.round(rng.random((S, A)), 2)), "bernoulli")


def two_pairs_a_state(rng, mdp):
    """Return pairs [2S]: two pairs of each state, equal in some of them."""
    first, end = mdp.pair_ptr[:-1], mdp.pair_ptr[1:]
    pairs = np.stack([rng.integers(first, end), rng.integers(first, end)], axis=1)
    pairs[0, 1] = pairs[0, 0]
    return pairs.ravel()


def plain_interaction(env, pairs, weight, left, env_rng, agent_rng, state, steps):
    """Do what ``interact`` does with Generators and ``env.step``; return (done, state, over, what happened)."""
    happened = {}
    for t in range(steps):
        choice = 2 * state
        if weight[state] > 0 and agent_rng.random() < weight[state]:
            choice += 1
        if left[choice] <= 0:
            return t, state, True, happened
        left[choice] -= 1
        pair = int(pairs[choice])
        reward, succ = env.step(state, int(env.mdp.action[pair]), env_rng)
        happened[pair, reward, succ] = happened.get((pair, reward, succ), 0) + 1
        state = succ
    return steps, state, False, happened


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most", [3, 50, 10**6, UNLIMITED])
def test_equals_the_plain_loop(seed, most):
    env, rng = random_env(seed), np.random.default_rng(seed)
    S, sampler = env.mdp.n_states, env.sampler
    pairs = two_pairs_a_state(rng, env.mdp)
    weight = rng.choice([0.0, 0.3, 1.0], S) if seed else np.zeros(S)
    allowed = rng.integers(1, most + 1, env.mdp.n_pairs)[pairs]
    left = allowed.copy()
    tally = np.zeros(sampler.succ.size, dtype=np.int64)
    (env_rng, agent_rng), (env_plain, agent_plain) = streams(seed), streams(seed)
    env_words, agent_words, left_plain = get_state(env_rng), get_state(agent_rng), left.copy()
    found = interact(sampler, pairs, weight, bool(weight.any()), left, tally, env_words, agent_words, 1, 500)
    *wanted, happened = plain_interaction(env, pairs, weight, left_plain, env_plain, agent_plain, 1, 500)
    assert list(found) == wanted
    np.testing.assert_array_equal(left, left_plain)
    np.testing.assert_array_equal(env_words, get_state(env_plain))
    np.testing.assert_array_equal(agent_words, get_state(agent_plain))
    assert tally.sum() == found[0]
    paid, expected = add_up(sampler.out_ptr, sampler.reward, env.mdp.reward, pairs, tally)
    assert paid == pytest.approx(sum(n * r for (_, r, _), n in happened.items()), abs=1e-10)
    assert expected == pytest.approx(sum(n * env.mdp.reward[i] for (i, _, _), n in happened.items()), abs=1e-10)
    *sums, pair, reward, succ, times = harvested(env, EpisodePolicy(pairs, weight, left, allowed), tally)
    assert sums == [paid, expected]
    rows = zip(pair.tolist(), reward.tolist(), succ.tolist(), times.tolist(), strict=True)
    assert {(i, r, s): n for i, r, s, n in rows} == happened
    assert len(happened) == pair.size, "each outcome once, also where both pairs of a state are one"
    assert not tally.any(), "harvested"


def harvested(env, choice, tally, function=harvest):
    """Return (reward, Σ r(s, a), pair, reward, successor, times) of what was tallied."""
    batch, sampler = Batch.room(tally.size), env.sampler
    *sums, n = function(sampler.out_ptr, sampler.reward, sampler.succ, env.mdp.reward, choice, tally, batch)
    return [*sums, *(part[:n] for part in batch)]


def test_without_limits_nothing_is_lost():
    """2**62 less a few visits are still told from 2**62: as integers they are, as floating-point numbers they are not."""
    env = random_env(2)
    choice = new_episode_policy(4)
    choice.pairs[:], choice.weight[:], choice.allowed[:] = np.repeat(env.mdp.pair_ptr[:-1], 2), 0.0, UNLIMITED
    choice.left[:] = UNLIMITED
    assert float(UNLIMITED - 1) == float(UNLIMITED)
    tally, words = np.zeros(env.sampler.succ.size, dtype=np.int64), get_state(streams(0)[0])
    unused, state, counted = np.zeros(4, dtype=np.uint64), 0, 0
    for steps in (1, 1, 3, 200):
        arguments = choice.weight, False, choice.left, tally, words, unused, state, steps
        done, state, over = interact(env.sampler, choice.pairs, *arguments)
        assert (done, over) == (steps, False)
        happened = int(tally.sum())
        times = harvested(env, choice, tally)[-1]
        assert times.sum() == happened == steps
        assert not tally.any()
        counted += steps
    assert int((UNLIMITED - choice.left).sum()) == counted


def test_the_pair_with_nothing_left_is_not_played():
    env = random_env(0)
    pairs, tally = np.repeat(env.mdp.pair_ptr[:-1], 2), np.zeros(env.sampler.succ.size, dtype=np.int64)
    words, before = get_state(streams(0)[0]), get_state(streams(0)[0])
    left, unused = np.zeros(8, dtype=np.int64), np.zeros(4, dtype=np.uint64)
    assert interact(env.sampler, pairs, np.zeros(4), False, left, tally, words, unused, 2, 10) == (0, 2, True)
    np.testing.assert_array_equal(words, before)
    assert not tally.any()
    assert not left.any()


def test_only_pairs_that_were_played_are_looked_at():
    """One with as much left as it was allowed was not: whatever its tally says, it is left alone."""
    env = random_env(1)
    pairs = np.repeat(env.mdp.pair_ptr[:-1], 2)
    allowed = np.array([1, 3] * 6)[: env.mdp.n_pairs][pairs]
    left = allowed.copy()
    left[2] -= 1  # state 1, by the first of its two choices
    tally = np.ones(env.sampler.succ.size, dtype=np.int64)
    choice = EpisodePolicy(pairs, np.zeros(4), left, allowed)
    paid, expected, pair, reward, succ, times = harvested(env, choice, tally)
    i = int(pairs[2])
    part = slice(env.sampler.out_ptr[i], env.sampler.out_ptr[i + 1])
    size = part.stop - part.start
    assert (pair.tolist(), times.tolist()) == ([i] * size, [1] * size)
    assert (reward.tolist(), succ.tolist()) == (env.sampler.reward[part].tolist(), env.sampler.succ[part].tolist())
    assert (paid, expected) == (env.sampler.reward[part].sum(), size * env.mdp.reward[i])
    assert not tally[part].any()
    assert tally.sum() == tally.size - size


def test_rewards_of_a_pair_come_sorted():
    """What a learner adds up by hand is sorted by (reward, successor): the same order gives the same bits."""
    env = random_env(3)
    pairs, left, allowed = np.repeat(env.mdp.pair_ptr[:-1], 2), np.full(8, 10**6), np.full(8, 10**6)
    tally, words = np.zeros(env.sampler.succ.size, dtype=np.int64), get_state(streams(0)[0])
    interact(env.sampler, pairs, np.zeros(4), False, left, tally, words, np.zeros(4, dtype=np.uint64), 0, 1000)
    *_, pair, reward, succ, _ = harvested(env, EpisodePolicy(pairs, np.zeros(4), left, allowed), tally)
    rows = list(zip(pair.tolist(), reward.tolist(), succ.tolist(), strict=True))
    assert rows == sorted(rows)
    assert len(rows) > 8


def test_interpreted_kernels_equal_the_compiled_ones(monkeypatch):
    for name in ("sfc64", "locate", "to_unit"):  # compiled, they would hand Python numbers over
        monkeypatch.setattr(module, name, getattr(module, name).py_func)
    env, rng = random_env(5), np.random.default_rng(5)
    pairs, weight = two_pairs_a_state(rng, env.mdp), np.array([0.0, 0.5, 0.2, 0.0])
    results = []
    for run in (interact, interact.py_func):
        left, tally = np.full(8, 40), np.zeros(env.sampler.succ.size, dtype=np.int64)
        words = [get_state(stream) for stream in streams(2)]
        with np.errstate(over="ignore"):
            found = run(env.sampler, pairs, weight, True, left, tally, *words, 0, 300)
        results.append((tuple(map(int, found)), left.tolist(), tally.tolist(), *(w.tolist() for w in words)))
    assert results[0] == results[1]
    tally = np.array(results[0][2])
    arrays = env.sampler.out_ptr, env.sampler.reward
    assert add_up(*arrays, env.mdp.reward, pairs, tally) == add_up.py_func(*arrays, env.mdp.reward, pairs, tally)
    choice = EpisodePolicy(pairs, weight, np.array(results[0][1]), np.full(8, 40))
    one, other = (harvested(env, choice, tally.copy(), function=f) for f in (harvest, harvest.py_func))
    assert one[:2] == other[:2]
    assert [part.tolist() for part in one[2:]] == [part.tolist() for part in other[2:]]
