"""The rule of powers of two against whole numbers, and replayed step by step with counters of our own."""

from __future__ import annotations

import numpy as np
import pytest

from spanrl import SCAL, UCRL, ProblemInfo, check_agent, learn, make, make_agent, streams
from spanrl.agents.episodes import UNLIMITED, episode_rule
from spanrl.agents.powers import POWERS
from spanrl.agents.registry import agent_id
from spanrl.confidence.estimate import known_example
from spanrl.kernels.jit import interpreted
from spanrl.models.counts import Counts
from ways import assert_all_ways_agree, ragged_env

AGENTS = {
    "ucrl": UCRL(episodes="powers"),
    "kt": UCRL(bounds="kt", episodes="powers"),
    "scal": SCAL(0.4, p_scale=0.02, r_scale=0.02, episodes="powers"),
}


def visits_allowed(n: int) -> int:
    """Return what leads to the next power of two: the number with one binary digit more."""
    return (1 << n.bit_length()) - n


def limits(n: list[int]) -> list[int]:
    """Return what the rule says of pairs with n visits."""
    counts = Counts.empty(len(n))
    counts.n[:] = n
    allowed = np.full(len(n), -1)
    known = known_example()._replace(seen=counts.seen)
    assert POWERS.limit(known, np.zeros(0), np.arange(len(n)), allowed) == UNLIMITED
    return allowed.tolist()


def test_visits():
    assert limits([0, 1, 2, 3, 4, 5, 7, 8, 1000]) == [1, 1, 2, 1, 4, 3, 1, 8, 24]
    many = [*range(3000), 2**40 - 1, 2**40, 2**40 + 1, 2**61 - 1]
    assert limits(many) == [visits_allowed(n) for n in many]
    with interpreted():
        assert limits(many[:200]) == [visits_allowed(n) for n in many[:200]]


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("env", [make("three-state[delta=0.05]"), ragged_env()], ids=["three-state", "ragged"])
def test_an_episode_ends_where_visits_have_reached_a_power_and_not_before(name, env):
    """All is told by the visits alone: within an episode those of a pair pass no power, and where one ends, the pair to play is at one."""
    mdp, (env_rng, agent_rng) = env.mdp, streams(3)
    learner = AGENTS[name].start(ProblemInfo.from_mdp(mdp), agent_rng)
    state, visits, begun_at = env.reset(env_rng), np.zeros(mdp.n_pairs, dtype=int), np.zeros(mdp.n_pairs, dtype=int)
    episodes, ends = 0, np.zeros(mdp.n_pairs, dtype=int)
    for _ in range(2500):
        plays = None if learner.plan is None else set(learner.plan.pairs[2 * state : 2 * state + 2].tolist())
        pair = mdp.pair(state, learner.act(state))
        used_up = plays and [i for i in plays if visits[i] == begun_at[i] + visits_allowed(int(begun_at[i]))]
        if learner.n_episodes > episodes:
            assert episodes == 0 or used_up, "of a mixture, one of the two"
            for i in used_up or ():
                assert visits[i].bit_count() == 1, "a power of two"
                ends[i] += 1
            episodes, begun_at = learner.n_episodes, visits.copy()
        else:
            assert pair not in used_up
        visits[pair] += 1
        reward, state = env.step(state, mdp.action[pair], env_rng)
        learner.observe(reward, state)
    assert episodes > 20
    assert (ends <= 1 + np.log2(np.maximum(visits, 1))).all(), "each pair passes a power once"


@pytest.mark.parametrize("name", AGENTS)
def test_all_ways_agree(name):
    assert_all_ways_agree(ragged_env(2), AGENTS[name], 1200, 5)


def test_there_are_as_few_episodes_as_powers_of_two():
    run = learn("three-state[delta=0.01]", AGENTS["kt"], horizon=10**5, seed=0)
    assert run.n_episodes[-1] <= 1 + 4 * (1 + np.log2(10**5))


def test_names():
    for text in ("ucrl[episodes=powers]", "scal[span_bound=5,bounds=kt,episodes=powers]"):
        assert agent_id(make_agent(text)) == text
        assert make_agent(text).rules.episodes is POWERS is episode_rule("UCRL", "powers")
    check_agent("ucrl[bounds=kt,episodes=powers]")
