"""TSDE: its episode rule, a plain version decision by decision on the same draws, and the ingredients of its guarantee."""

from __future__ import annotations

from math import inf, log2, sqrt

import numpy as np
import pytest
from family_samples import Decision, assert_same_decisions, iterate, lowest, played

from spanrl import MDP, TSDE, Env, ProblemInfo, learn, make, make_agent, span_bellman, streams
from spanrl.agents.episodes import LIMIT, UNLIMITED, EpisodeRule
from spanrl.agents.learner import Learner, Rules
from spanrl.agents.psrl import MOST_STATES, Posterior
from spanrl.agents.registry import agent_id
from spanrl.bench import garnet
from spanrl.errors import OptionError
from spanrl.kernels.jit import passed
from spanrl.models.counts import Counts
from spanrl.seeding import get_state
from ways import Kept, assert_all_ways_agree, assert_interpreted_agrees, ragged_env


def random_env(seed):
    return Env.from_mdp(garnet(5, 2, 2 + seed % 3, seed=seed), rewards="bernoulli")


# --- decision by decision -------------------------------------------------------------------------------------------


def plain_tsde(info, words, c=inf):
    """Return the decisions of TSDE as its docstring has them, on models drawn with these words; all states have all actions."""

    def decide(counts, allowed, t, s, steps):
        S, A = allowed.shape
        rows = counts.successors.reshape(S * A, S).astype(int)
        pair, succ = np.nonzero(rows)
        ptr = np.searchsorted(pair, np.arange(S * A + 1))
        N = counts.N.ravel().astype(int)
        mean = counts.rewards.ravel() / np.maximum(1, N)
        known = Counts(N, mean, np.zeros(S * A), ptr, succ.astype(np.uint32), rows[pair, succ])
        drawn = Posterior().sets(known, t, info, words)
        P, r = drawn.low.reshape(S, A, S), drawn.r_high.reshape(S, A)
        v, _ = iterate(lambda v: r + P @ v, S, c, 1 / sqrt(t))
        best = lowest(r + P @ v)
        return Decision(best, best, np.zeros(S), np.maximum(1, counts.N), steps + 1)

    return decide


ENVS = {
    "random 0": lambda: random_env(0),
    "random 1": lambda: random_env(1),
    "three-state": lambda: make("three-state[delta=0.05]"),
}


def full_env(name):
    """Return an environment in which every state has every action, for the plain version."""
    env = ENVS[name]()
    P, r, available = env.mdp.to_dense()
    return (
        env
        if available.all()
        else Env.from_mdp(MDP.from_dense(np.where(available[:, :, None], P, P[:, :1]), r), "bernoulli")
    )


@pytest.mark.parametrize("name", ENVS)
@pytest.mark.parametrize("c", [inf, 0.2])
def test_a_plain_version_decides_alike(name, c):
    env = full_env(name)
    decide = plain_tsde(ProblemInfo.from_mdp(env.mdp), get_state(streams(3)[1]), c)
    assert_same_decisions(env, TSDE(c, warm_start=False), decide, 1000, fewest=40)


@pytest.mark.parametrize("mutant", ["an episode late", "two steps longer"])
def test_a_broken_plain_version_shows(mutant):
    env = full_env("random 0")
    sound, stale = plain_tsde(ProblemInfo.from_mdp(env.mdp), get_state(streams(3)[1])), []

    def decide(counts, allowed, t, s, steps):
        if mutant == "two steps longer":
            plan = sound(counts, allowed, t, s, steps)
            return plan._replace(steps=plan.steps + 1)
        stale.append((counts.N.copy(), counts.rewards.copy(), counts.successors.copy()))
        N, rewards, successors = stale[max(0, len(stale) - 2)]
        return sound(type("Old", (), {"N": N, "rewards": rewards, "successors": successors}), allowed, t, s, steps)

    with pytest.raises(AssertionError):
        assert_same_decisions(env, TSDE(warm_start=False), decide, 1000, fewest=40)


# --- the ingredients of the guarantee: claims, see family_claims.py ---------------------------------------------------


@passed(LIMIT)
def limit_of_five(known, settings, pairs, allowed):
    """Allow five steps."""
    for k in range(pairs.size):
        allowed[k] = UNLIMITED
    return 5


class FiveSteps(EpisodeRule):
    limit = limit_of_five


class Posteriors:
    """Posterior sampling with another episode rule."""

    def __init__(self, rule):
        self.rule = rule

    def start(self, info, rng):
        return Learner(Rules(Posterior(), self.rule, mixture=False), info, rng)


FIVE_STEPS = Posteriors(FiveSteps())


def check_episodes(agent):
    """Assert that each episode ends for one of the two reasons, and for no other: one step longer, or a pair about to be played again."""
    for seed in range(2):
        starts, steps = played(ragged_env(seed), agent, 3000, seed)
        visits, begun, nu, lengths = {}, 0, {}, [0]
        for t, (s, a, _) in enumerate(steps, start=1):
            spent = nu.get((s, a), 0) >= max(1, visits.get((s, a), 0))
            if t in starts:
                played_now = t - begun - 1
                # Which pair would have been played is not known here: the next plan may play another in this state.
                could = any(nu.get(p, 0) >= max(1, visits.get(p, 0)) for p in nu if p[0] == s)
                assert t == 1 or played_now == lengths[-1] + 1 or could
                for pair, times in nu.items():
                    visits[pair] = visits.get(pair, 0) + times
                lengths.append(played_now)
                begun, nu = t - 1, {}
            else:
                assert not spent, "a pair was played too often"
                assert t - begun <= lengths[-1] + 1, "an episode grew by more than a step"
            nu[s, a] = nu.get((s, a), 0) + 1
        assert len(lengths) > 50


def check_count(agent):
    """Assert that there are at most 1 + √(2T·SA·(log₂T + 3)) episodes; M macro-episodes have at most √(2TM) (paper, its lemma on K_T)."""
    T, SA = 10**5, 12
    for seed in range(2):
        n = learn("riverswim[variant=osband]", agent, horizon=T, seed=seed).n_episodes[-1]
        assert n <= 1 + sqrt(2 * T * SA * (log2(T) + 3))
        assert n >= sqrt(2 * T) - 1, "no fewer than lengths 1, 2, 3, …"


@pytest.mark.parametrize("c", [0.3, inf])
def test_the_operator_is_monotone_and_commutes_with_constants_and_certifies_the_plan(c):
    rng, looked = np.random.default_rng(0), 0

    def look(learner):
        nonlocal looked
        info, sets = learner.info, learner._planner._work.sets
        table = (info.pair_state, info.action, sets.succ_ptr, sets.succ, sets.low.copy(), sets.r_low.copy())
        mdp = MDP.from_pairs(*table, r_min=info.r_min, r_max=info.r_max, n_actions=info.n_actions)
        v = rng.normal(size=mdp.n_states)
        w, shift = v + rng.random(mdp.n_states), float(rng.normal())
        assert (span_bellman(mdp, v, c) <= span_bellman(mdp, w, c) + 1e-12).all()
        np.testing.assert_allclose(span_bellman(mdp, v + shift, c), span_bellman(mdp, v, c) + shift, atol=1e-12)
        step = span_bellman(mdp, learner.bias, c) - learner.bias
        assert learner.plan.gain_bounds == pytest.approx((step.min(), step.max()), abs=1e-10)
        assert np.ptp(step) <= info.size / sqrt(learner.episode.start) + 1e-10
        assert learner.plan.span <= c + 1e-12
        assert not learner.plan.mixes
        looked += 1

    env, (env_rng, agent_rng) = ragged_env(0), streams(0)
    learner, s = TSDE(c).start(ProblemInfo.from_mdp(env.mdp), agent_rng), env.reset(env_rng)
    learner.on_episode.append(look)
    for _ in range(700):
        reward, following = env.step(s, learner.act(s), env_rng)
        learner.observe(reward, following)
        s = following
    assert looked > 40


# --- runs and refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", [TSDE(), TSDE(0.4, warm_start=False)], ids=["plain", "bounded"])
def test_all_ways_agree(agent):
    run, _ = assert_all_ways_agree(ragged_env(1), agent, 2000, 1)
    assert run.n_episodes[-1] > 40
    assert run.span.max() <= agent.span_bound + 1e-12


def test_interpreted():
    assert_interpreted_agrees(ragged_env(1), TSDE(0.4), 200, 1)


def test_regret_is_small():
    runs = [learn("riverswim", agent, horizon=10**5, seed=seed) for seed in range(2) for agent in (TSDE(), TSDE(10.0))]
    assert np.mean([run.pseudo_regret[-1] for run in runs]) < 0.05 * 10**5 * runs[0].meta["gain"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"span_bound": -1.0}, r"TSDE: span_bound must be a number ≥ 0; got -1\.0\. Leave it out for none"),
        ({"span_bound": np.nan}, r"TSDE: span_bound must be a number ≥ 0; got nan"),
        ({"warm_start": "no"}, r"TSDE: warm_start must be true or false; got 'no'"),
    ],
)
def test_options(given, words):
    with pytest.raises(OptionError, match=words):
        TSDE(**given)


def test_too_many_states():
    with pytest.raises(OptionError, match=r"TSDE: S must be at most 5000; got 5001\. It draws a distribution over all"):
        TSDE().start(ProblemInfo(MOST_STATES + 1, 1), 0)


def test_names():
    assert agent_id("tsde") == agent_id(TSDE()) == "tsde"
    assert make_agent("tsde[span_bound=2]") == TSDE(2.0)
    assert agent_id(TSDE(2.0)) == "tsde[span_bound=2]"


def test_there_is_no_set():
    with pytest.raises(OptionError, match=r"audit needs the true model and an agent with confidence sets"):
        learn("three-state", "tsde", horizon=10, seed=0, audit=True)


def test_the_horizon_is_not_read():
    kept = Kept(TSDE())
    learn("three-state", kept, horizon=100, seed=0)
    assert not kept.learners[0].info.horizon_was_read
