"""The compiled interaction: play a policy in an environment, tally what happens, stop when an episode ends."""

from __future__ import annotations

import numpy as np

from spanrl.kernels.jit import allocating, kernel
from spanrl.kernels.sampling import ELAPSED, LIMIT, begin_anew, draw, locate, sfc64, to_unit


@allocating
def interact(sampler, pairs, weight, mixes, left, tally, env_words, agent_words, s, steps):
    """Play at most ``steps`` steps from state s; return (steps done, state, whether the episode is over).

    The policy plays pair ``pairs[2s]``, or with probability weight[s] the pair ``pairs[2s+1]``; ``left`` [2S] says how often each may still
    be played in this episode. The pair about to be played with none left ends the episode, unplayed. ``tally`` [outcomes] counts
    what happened. The agent draws a number only in states with weight > 0 (``mixes``: there are such states); the environment one a step.
    """
    if sampler.clock.size > 0:
        return _interact_with_cuts(sampler, pairs, weight, mixes, left, tally, env_words, agent_words, s, steps)
    starts, threshold, successors, outcome = sampler.start, sampler.threshold, sampler.successors, sampler.outcome
    state, one, word = np.uint64(s), np.uint64(1), np.uint64(0xFFFFFFFF)
    start = np.empty(pairs.size, np.uint64)  # of the pair played in each state: one load less to wait for
    for k in range(pairs.size):
        start[k] = starts[pairs[k]]
    a, b, c, w = env_words[0], env_words[1], env_words[2], env_words[3]
    over, done = False, steps
    for t in range(steps):
        choice = state << one
        if mixes and weight[state] > 0.0:
            x, agent_words[0], agent_words[1], agent_words[2], agent_words[3] = sfc64(
                agent_words[0], agent_words[1], agent_words[2], agent_words[3]
            )
            if to_unit(x) < weight[state]:
                choice += one
        if left[choice] <= 0:
            over, done = True, t
            break
        left[choice] -= 1
        x, a, b, c, w = sfc64(a, b, c, w)
        slot, rest = locate(start[choice], x)
        both = successors[slot]
        second = np.uint64(rest >= threshold[slot])
        tally[np.uint64(outcome[(slot << one) + second])] += 1
        state = (both >> (second << np.uint64(5))) & word
    env_words[0], env_words[1], env_words[2], env_words[3] = a, b, c, w
    return done, np.int64(state), over


@kernel
def _interact_with_cuts(sampler, pairs, weight, mixes, left, tally, env_words, agent_words, s, steps):
    """Do what :func:`interact` does where episodes of the environment are cut: the clock runs on, and a cut is no transition.

    An outcome that ends an episode leads to where the next one begins, and only turns the clock back.
    """
    ends, elapsed, limit = sampler.ends, sampler.clock[ELAPSED], sampler.clock[LIMIT]
    a, b, c, w = env_words[0], env_words[1], env_words[2], env_words[3]
    over, done = False, steps
    for t in range(steps):
        choice = 2 * s
        if mixes and weight[s] > 0.0:
            x, agent_words[0], agent_words[1], agent_words[2], agent_words[3] = sfc64(
                agent_words[0], agent_words[1], agent_words[2], agent_words[3]
            )
            if to_unit(x) < weight[s]:
                choice += 1
        if left[choice] <= 0:
            over, done = True, t
            break
        left[choice] -= 1
        x, a, b, c, w = sfc64(a, b, c, w)
        drawn = draw(sampler, pairs[choice], x)
        tally[drawn] += 1
        s = np.int64(sampler.succ[drawn])
        elapsed = 0 if ends[drawn] else elapsed + 1
        if elapsed == limit:
            x, a, b, c, w = sfc64(a, b, c, w)
            s, elapsed = begin_anew(sampler, x), 0
    env_words[0], env_words[1], env_words[2], env_words[3] = a, b, c, w
    sampler.clock[ELAPSED] = elapsed
    return done, s, over


@kernel
def add_up(out_ptr, out_reward, pair_reward, pairs, tally):
    """Return (reward received, Σ r(s,a) of the pairs played) of what the tally holds."""
    paid, expected = 0.0, 0.0
    for k in range(pairs.size):
        i, nu = pairs[k], 0
        if k % 2 == 1 and i == pairs[k - 1]:
            continue
        for o in range(out_ptr[i], out_ptr[i + 1]):
            nu += tally[o]
            paid += tally[o] * out_reward[o]
        expected += nu * pair_reward[i]
    return paid, expected


@kernel
def harvest(out_ptr, out_reward, out_succ, pair_reward, choice, tally, batch):
    """Return what :func:`add_up` does and how many (pair, reward, successor, times) were written to ``batch``; set the tally to 0.

    A pair that was played has less ``left`` than it was ``allowed``.
    """
    pairs, left, allowed = choice.pairs, choice.left, choice.allowed
    pair, reward, succ, times = batch.pair, batch.reward, batch.succ, batch.times
    paid, expected, n = 0.0, 0.0, 0
    for k in range(pairs.size):
        i, nu = pairs[k], 0
        if left[k] == allowed[k]:
            continue
        for o in range(out_ptr[i], out_ptr[i + 1]):
            if tally[o] > 0:
                pair[n], reward[n], succ[n], times[n] = i, out_reward[o], out_succ[o], tally[o]
                nu += tally[o]
                paid += tally[o] * out_reward[o]
                tally[o] = 0
                n += 1
        expected += nu * pair_reward[i]
    return paid, expected, n
