"""The VM rule against its formula in whole numbers, and replayed step by step with counters of our own."""

from __future__ import annotations

import warnings
from math import isqrt

import numpy as np
import pytest

from spanrl import SCAL, UCRL, ProblemInfo, check_agent, learn, make, make_agent, streams
from spanrl.agents.episodes import UNLIMITED, episode_rule
from spanrl.agents.registry import agent_id
from spanrl.agents.vm import VM
from spanrl.confidence.estimate import known_example
from spanrl.errors import OptionError
from spanrl.kernels.jit import interpreted
from spanrl.models.counts import Counts
from ways import assert_all_ways_agree, ragged_env

AGENTS = {
    "ucrl": UCRL(episodes="vm"),
    "kt": UCRL(bounds="kt", episodes="vm"),
    "scal": SCAL(0.4, p_scale=0.02, r_scale=0.02, episodes="vm"),
    "scal, kt": SCAL(0.5, bounds="kt", episodes="vm"),
}


def visits_allowed(n: int, t: int) -> int:
    """Return max(1, ⌊max(1, N)/√t⌋) without rounding: ⌊x⌋ = ⌊√⌊x²⌋⌋."""
    return max(1, isqrt(max(1, n) ** 2 // t))


def limits(n: np.ndarray, t: int) -> np.ndarray:
    """Return what the rule says of pairs with n visits."""
    counts = Counts.empty(n.size)
    counts.n[:] = n
    allowed = np.full(n.size, -1)
    known = known_example()._replace(seen=counts.seen, t=t)
    assert VM.limit(known, np.zeros(0), np.arange(n.size), allowed) == UNLIMITED
    return allowed


class TestFormula:
    @pytest.mark.parametrize("mode", ["compiled", "interpreted"])
    def test_visits_at_random(self, mode):
        """Up to 5e7 visits N/√t is further from whole numbers than rounding goes: |N²/t − k²| ≥ 1/t unless it is 0."""
        rng = np.random.default_rng(0)
        for _ in range(200 if mode == "compiled" else 30):
            t = int(10 ** rng.uniform(0, 12))
            n = (min(t, 5 * 10**7) ** rng.random(40)).astype(np.int64) * (rng.random(40) < 0.9)
            wanted = [visits_allowed(k, t) for k in n.tolist()]
            if mode == "compiled":
                assert limits(n, t).tolist() == wanted
            else:
                with interpreted():
                    assert limits(n, t).tolist() == wanted

    def test_square_times(self):
        """N = k√t: the quotient is whole, and k·√t·(1/√t) would be below k for many (√t = 49, 98, 103, …)."""
        for root in (1, 2, 3, 7, 10, 49, 98, 103, 107, 161, 1000, 99_991):
            whole = np.arange(1, min(root, 400) + 1)
            assert limits(whole * root, root * root).tolist() == whole.tolist()
            assert limits(whole * root - 1, root * root).tolist() == np.maximum(whole - 1, 1).tolist()
        assert np.sum((np.arange(1, 50) * 49 * (1 / 49)).astype(int) < np.arange(1, 50)) > 0, "this can go wrong"

    def test_one_visit_is_always_allowed(self):
        assert limits(np.array([0, 1, 2, 999]), 10**6).tolist() == [1, 1, 1, 1]
        assert limits(np.array([0, 1, 2, 999]), 1).tolist() == [1, 1, 2, 999]


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("env", [make("three-state[delta=0.05]"), ragged_env()], ids=["three-state", "ragged"])
def test_an_episode_ends_when_the_rule_says_so_and_not_before(name, env):
    """The pair that the policy plays next has no visit left just where a new episode begins; of a mixture, one of the two."""
    mdp, (env_rng, agent_rng) = env.mdp, streams(3)
    learner = AGENTS[name].start(ProblemInfo.from_mdp(mdp), agent_rng)
    visits, nu = (np.zeros(mdp.n_pairs, dtype=np.int64) for _ in range(2))
    episodes, longer, mixed, pair_of = 0, 0, 0, {}
    for i, (s, a) in enumerate(zip(mdp.pair_state.tolist(), mdp.action.tolist(), strict=True)):
        pair_of[s, a] = i
    state, allowed, plays = env.reset(env_rng), [], []
    for t in range(1, 2501):
        action = learner.act(state)
        if episodes:
            open_, shut = ([i for i in plays[state] if (nu[i] >= allowed[i]) == ended] for ended in (False, True))
            begun = learner.n_episodes > episodes
            assert bool(shut) if begun else bool(open_), t
            assert begun or pair_of[state, action] in open_
            if len(plays[state]) == 1:
                assert begun == bool(shut), t
            mixed += len(plays[state]) == 2
        if learner.n_episodes > episodes:
            visits += nu
            nu[:] = 0
            np.testing.assert_array_equal(learner.counts.n, visits)
            assert learner.episode.start == t
            allowed = [visits_allowed(n, t) for n in visits.tolist()]
            longer += max(allowed) > 1
            probs = learner.policy.probs
            plays = [[pair_of[s, a] for a in np.flatnonzero(probs[s]).tolist()] for s in range(mdp.n_states)]
            episodes += 1
        i = pair_of[state, action]
        assert i in plays[state]
        nu[i] += 1
        assert nu[i] <= allowed[i]
        reward, state = env.step(state, action, env_rng)
        learner.observe(reward, state)
    assert learner.n_episodes == episodes > 100
    assert longer > 50, "else √t is never divided by"
    assert not mixed if name in ("ucrl", "kt") else mixed or name == "scal, kt"


@pytest.mark.parametrize("name", AGENTS)
def test_all_ways_agree(name):
    run, _ = assert_all_ways_agree(ragged_env(2), AGENTS[name], 1200, 5)
    doubling = learn(
        ragged_env(2),
        make_agent(agent_id(AGENTS[name]).replace("episodes=vm", "episodes=doubling")),
        horizon=1200,
        seed=5,
    )
    assert run.n_episodes[-1] > 3 * doubling.n_episodes[-1]


def test_there_are_at_most_about_sa_root_t_episodes():
    """A finished episode uses up the visits of a pair: N grows by 1 while N < 2√t, else by a factor 1 + 1/√t − 1/N ≥ 1 + 1/(2√t).

    So a pair ends 2√T + 2√T ln(T/(2√T)) + 1 episodes at the most.
    """
    run = learn("three-state[delta=0.01]", AGENTS["kt"], horizon=10**5, seed=0)
    T, pairs = 10**5, 4
    assert run.n_episodes[-1] <= pairs * (2 * T**0.5 * (1 + np.log(T**0.5 / 2)) + 1)
    assert run.n_episodes[-1] > T**0.5


class TestWarning:
    @staticmethod
    def start(S: int, A: int, horizon: int | None) -> ProblemInfo:
        info = ProblemInfo(S, A, horizon=horizon)
        UCRL(bounds="kt", episodes="vm").start(info, 0)
        return info

    @pytest.mark.parametrize(("S", "A", "longest"), [(2, 2, 625_000_000), (10, 10, 10**6), (3, 1, 1_111_111_111)])
    def test_where_sa_root_t_exceeds_1e5(self, S, A, longest):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not self.start(S, A, longest).horizon_was_read
            assert not self.start(S, A, None).horizon_was_read
        with pytest.warns(
            UserWarning, match=r"episodes='vm': there may be as many as S·A·√T episodes, above 100000 here"
        ):
            info = self.start(S, A, longest + 1)
        assert not info.horizon_was_read

    def test_only_for_this_rule(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            UCRL().start(ProblemInfo(100, 100, horizon=10**9), 0)

    def test_a_run_may_be_made_longer(self):
        learner = AGENTS["kt"].start(info := ProblemInfo.from_mdp(make("three-state").mdp, 1000), 0)
        learner.act(0)
        assert not info.horizon_was_read


class TestNames:
    @pytest.mark.parametrize(
        "text", ["ucrl[episodes=vm]", "scal[span_bound=5,episodes=vm]", "ucrl[bounds=kt,episodes=vm]"]
    )
    def test_round_trip(self, text):
        assert agent_id(make_agent(text)) == agent_id(text) == text
        assert make_agent(text).rules.episodes is VM is episode_rule("UCRL", "vm")

    def test_doubling_is_the_default(self):
        assert agent_id("ucrl[episodes=doubling]") == "ucrl"

    def test_others_are_refused(self):
        with pytest.raises(OptionError, match=r"UCRL: episodes must be doubling or vm or .*; got 'weekly'"):
            UCRL(episodes="weekly")
        with pytest.raises(OptionError, match=r"SCAL: episodes must be doubling or vm or .*; got 'fixed'"):
            make_agent("scal[span_bound=1,episodes=fixed]")

    def test_contract(self):
        check_agent("ucrl[bounds=kt,episodes=vm]")
        check_agent("scal[span_bound=0.5,episodes=vm]")
