"""PSRL: the models it draws have the law of the posterior, its policies are optimal for them, and a plain PSRL fares alike."""

from __future__ import annotations

from bisect import bisect_right
from math import sqrt

import numpy as np
import pytest
from scipy.stats import beta, ks_2samp, kstest, norm

from spanrl import MDP, PSRL, Env, ProblemInfo, analyse, check_agent, evaluate, learn, make, make_agent, streams
from spanrl.agents.psrl import MOST_STATES, Posterior
from spanrl.agents.registry import agent_id
from spanrl.errors import OptionError, UnknownNameError
from spanrl.kernels.jit import interpreted
from spanrl.models.counts import Counts
from spanrl.seeding import get_state
from ways import Kept, assert_all_ways_agree, assert_interpreted_agrees, ragged_env

LEVEL = 1e-3


def drawn_mdp(sets, info):
    """Return the model that was drawn, checked."""
    prob = sets.low.copy()
    return MDP.from_pairs(
        info.pair_state, info.action, sets.succ_ptr, sets.succ, prob, sets.r_low.copy(), r_min=info.r_min, r_max=info.r_max,
        n_actions=info.n_actions,
    )  # fmt: skip


# Four states with one to three actions, rewards in [−1, 2]; pairs visited 0 to 20 000 times.
N_DRAWS = 3000
INFO = ProblemInfo(4, 3, r_min=-1.0, r_max=2.0, available=np.arange(3) <= np.array([0, 2, 0, 1])[:, None])
TIMES = np.array(
    [[0, 0, 0, 0], [1, 0, 0, 0], [0, 2, 1, 0], [5, 0, 40, 5], [0, 0, 0, 20_000], [300, 100, 0, 2], [0, 7, 0, 0]]
)
PAID = np.array([0.0, 1.0, 0.0, 12.5, 19_999.0, 201.0, 3.5])  # rescaled to [0, 1], and added up


@pytest.fixture(scope="module")
def counts():
    n = TIMES.sum(axis=1)
    pair, succ = np.nonzero(TIMES)
    ptr = np.searchsorted(pair, np.arange(n.size + 1))
    mean = np.where(n > 0, -1.0 + 3.0 * PAID / np.maximum(n, 1), 0.0)
    return Counts(n, mean, np.zeros(n.size), ptr, succ.astype(np.uint32), TIMES[pair, succ])


@pytest.fixture(scope="module")
def draws(counts):
    """Return (rows [M, n_pairs, S], rewards [M, n_pairs])."""
    words, rows, rewards = get_state(streams(11)[1]), [], []
    for _ in range(N_DRAWS):
        sets = Posterior().sets(counts, 1, INFO, words)
        rows.append(sets.low.reshape(-1, 4))
        rewards.append(sets.r_low.copy())
        assert sets.r_low.tobytes() == sets.r_high.tobytes()
    return np.array(rows), np.array(rewards)


def check_posterior(weight):
    """Assert that p(s'|s,a) ~ Beta(1 + N(s,a,s'), S − 1 + N(s,a) − N(s,a,s')); mutants count each visit ``weight`` times."""
    words, n = get_state(streams(12)[1]), TIMES.sum(axis=1)
    pair, succ = np.nonzero(TIMES)
    ptr = np.searchsorted(pair, np.arange(n.size + 1))
    seen = Counts(
        weight * n, np.zeros(n.size), np.zeros(n.size), ptr, succ.astype(np.uint32), weight * TIMES[pair, succ]
    )
    rows = np.array([Posterior().sets(seen, 1, INFO, words, checked=False).low.reshape(-1, 4) for _ in range(500)])
    for i, j in np.ndindex(7, 4):
        k = TIMES[i, j]
        assert kstest(rows[:, i, j], beta(1 + k, 3 + n[i] - k).cdf).pvalue > LEVEL / 28, (i, j)


class TestPosterior:
    def test_rows_are_distributions(self, draws, counts):
        rows, rewards = draws
        assert rows.shape == (N_DRAWS, 7, 4)
        assert (rows >= 0).all()
        np.testing.assert_allclose(rows.sum(axis=2), 1.0, rtol=0, atol=1e-15 * 4)
        assert rewards.min() >= -1
        assert rewards.max() <= 2
        sets = Posterior().sets(counts, 1, INFO, get_state(streams(0)[1]))
        assert sets.succ_ptr.tolist() == [4 * i for i in range(8)]
        assert sets.succ.tolist() == [0, 1, 2, 3] * 7

    def test_probabilities_have_the_marginals_of_a_dirichlet(self, draws):
        """p(s'|s,a) ~ Beta(1 + N(s,a,s'), S − 1 + N(s,a) − N(s,a,s')); 28 tests share the level."""
        rows, _ = draws
        for i, j in np.ndindex(7, 4):
            k, n = TIMES[i, j], TIMES[i].sum()
            assert kstest(rows[:, i, j], beta(1 + k, 3 + n - k).cdf).pvalue > LEVEL / 28, (i, j)
        for wrong in (beta(1, 4), beta(0.5, 1.5), beta(1, 2), beta(2, 3)):
            assert kstest(rows[:, 0, 2], wrong.cdf).pvalue < 1e-6, "another law is told from this one"
        assert kstest(rows[:, 3, 2], beta(1 + 41, 3 + 9).cdf).pvalue < LEVEL, "and one visit more at N = 50"

    def test_rows_have_the_joint_law(self, draws):
        """p(j)/(p(j) + p(k)) ~ Beta(1 + N_j, 1 + N_k), independent of the others: three of each row."""
        rows, _ = draws
        for i in range(7):
            for j, k in ((0, 1), (1, 3), (2, 3)):
                share = rows[:, i, j] / (rows[:, i, j] + rows[:, i, k])
                law = beta(1 + TIMES[i, j], 1 + TIMES[i, k])
                assert kstest(share, law.cdf).pvalue > LEVEL / 21, (i, j, k)

    def test_rewards_have_a_beta_law(self, draws):
        _, rewards = draws
        for i, n in enumerate(TIMES.sum(axis=1)):
            law = beta(1 + PAID[i], 1 + n - PAID[i])
            assert kstest((rewards[:, i] + 1) / 3, law.cdf).pvalue > LEVEL / 7, i
        assert kstest((rewards[:, 6] + 1) / 3, beta(4.5, 5.5).cdf).pvalue < 1e-6

    def test_pairs_are_independent(self, draws):
        """One probability and the reward of each pair: of independent variates r√M is nearly normal; so are draws in a row."""
        rows, rewards = draws
        columns = np.concatenate((rows[:, :, 1], rewards), axis=1)
        ranks = columns.argsort(axis=0).argsort(axis=0)
        correlation = np.corrcoef(ranks.T)
        above = correlation[np.triu_indices(14, 1)]
        assert np.abs(above).max() * sqrt(N_DRAWS) < norm.isf(LEVEL / 2 / above.size)
        for column in ranks.T:
            assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) * sqrt(N_DRAWS) < norm.isf(LEVEL / 2 / 14)

    def test_a_draw_is_a_function_of_the_words(self, counts):
        words = [get_state(streams(3)[1]) for _ in range(3)]
        one, other = (Posterior().sets(counts, t, INFO, w) for t, w in zip((1, 10**6), words, strict=False))
        with interpreted():
            third = Posterior().sets(counts, 1, INFO, words[2])
        for name in ("succ_ptr", "succ", "low", "r_low", "r_high"):
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes() == getattr(third, name).tobytes()
        assert words[0].tobytes() == words[1].tobytes() == words[2].tobytes() != get_state(streams(3)[1]).tobytes()

    def test_there_is_no_set(self, counts):
        with pytest.raises(OptionError, match=r"Posterior: has one model, no set of plausible ones"):
            Posterior().bounded(counts, 1, INFO)


@pytest.mark.parametrize("warm_start", [True, False])
def test_the_policy_of_an_episode_is_optimal_for_the_model_that_was_drawn(warm_start):
    """Within (r_max − r_min)/√t_k, and its bracket holds the optimal gain."""
    env, close = ragged_env(3), []

    class Watching:
        def start(self, info, rng):
            learner = PSRL(warm_start).start(info, rng)
            learner.on_episode.append(self.look)
            return learner

        @staticmethod
        def look(learner):
            mdp, t = drawn_mdp(learner._planner._work.sets, learner.info), learner.episode.start
            best, gain = analyse(mdp, diameter=False).gain, evaluate(mdp, learner.policy).gain
            tol = 3.0 / sqrt(t)
            assert np.ptp(gain) < 1e-9
            assert best - tol - 1e-9 <= gain[0] <= best + 1e-9
            assert learner.episode.gain_low - 1e-9 <= best <= learner.episode.gain_high + 1e-9
            assert learner.episode.gain_high - learner.episode.gain_low <= tol + 1e-12
            assert learner.episode.deterministic
            close.append((best - gain[0]) / tol)

    runs = [learn(env, Watching(), horizon=20_000, seed=seed, gain=0.0) for seed in range(3)]
    assert len(close) == sum(run.n_episodes[-1] for run in runs) > 60
    assert np.mean(np.array(close) < 1e-6) > 0.5, "most are optimal"


def policy_iteration(P, r):
    """Return the optimal actions of an MDP in which every state has all actions, and all states are reached from everywhere."""
    S = r.shape[0]
    states, actions = np.arange(S), np.zeros(S, dtype=int)
    while True:
        # g + h = r + Ph with h(0) = 0: the column of h(0) is that of g.
        equations = np.eye(S) - P[states, actions]
        equations[:, 0] = 1.0
        h = np.linalg.solve(equations, r[states, actions])
        h[0] = 0.0
        q = r + P @ h
        better = q.max(axis=1) > q[states, actions] + 1e-10
        if not better.any():
            return actions
        actions = np.where(better, q.argmax(axis=1), actions)


def slow_psrl(mdp, horizon, rng):
    """Return Σ r(s, a) of a PSRL in plain numpy; ``mdp`` pays its mean rewards, in [0, 1], and begins in state 0."""
    P, r, _ = mdp.to_dense()
    S, A = r.shape
    cumulated = P.cumsum(axis=2)
    cumulated[:, :, -1] = 1.0
    cumulated = cumulated.tolist()
    times, paid, state, total, t = np.zeros((S, A, S)), np.zeros((S, A)), 0, 0.0, 0
    while t < horizon:
        n = times.sum(axis=2)
        rows = np.array([[rng.dirichlet(1 + times[s, a]) for a in range(A)] for s in range(S)])
        actions = policy_iteration(rows, rng.beta(1 + paid, 1 + n - paid)).tolist()
        left, seen = [max(1, n[s, a]) for s, a in enumerate(actions)], []
        while t < horizon and left[state] > 0:
            left[state] -= 1
            succ = bisect_right(cumulated[state][actions[state]], rng.random())
            seen.append((state, actions[state], succ))
            state, t = succ, t + 1
        for s, a, succ in seen:
            times[s, a, succ] += 1
            paid[s, a] += r[s, a]
            total += r[s, a]
    return total


def test_a_plain_one_fares_alike():
    """The pseudo-regret of 40 runs each, by Kolmogorov and Smirnov."""
    mdp, T, rng = make("riverswim[variant=osband]").mdp, 3000, np.random.default_rng(1)
    best = T * analyse(mdp).gain
    ours = [learn(Env.from_mdp(mdp), "psrl", horizon=T, seed=seed, points=1).pseudo_regret[-1] for seed in range(40)]
    plain = [best - slow_psrl(mdp, T, rng) for _ in range(40)]
    assert ks_2samp(np.round(ours, 6), np.round(plain, 6)).pvalue > LEVEL
    assert np.median(ours) < 0.2 * best


def test_the_plain_one_plans_well():
    rng = np.random.default_rng(2)
    for _ in range(20):
        P, r = rng.dirichlet(np.full(5, 0.5), size=(5, 3)), rng.random((5, 3))
        assert policy_iteration(P, r).tolist() == analyse(MDP.from_dense(P, r)).policy.actions.tolist()


class TestRuns:
    @pytest.mark.parametrize("agent", [PSRL(), PSRL(warm_start=False)])
    @pytest.mark.parametrize("seed", [1, 2])
    def test_all_ways_agree(self, agent, seed):
        """Compiled, watched, by hand and in pieces: the same models are drawn, from the same words."""
        run, learner = assert_all_ways_agree(ragged_env(seed), agent, 2000, seed)
        assert run.n_episodes[-1] > 10
        assert get_state(learner.rng).tobytes() != get_state(streams(seed)[1]).tobytes(), "words were drawn"

    def test_interpreted(self):
        assert_interpreted_agrees(ragged_env(1), PSRL(), 300, 1)

    def test_seeds_matter(self):
        env = ragged_env(1)
        gains = [learn(env, "psrl", horizon=500, seed=seed).episodes["gain"][0] for seed in range(3)]
        assert len(set(gains)) == 3, "also where nothing was seen"

    def test_by_hand_any_generator_serves(self):
        """Others than SFC64 give four words per plan."""
        env, runs = ragged_env(1), []
        for seed in (1, 1, 2):
            rng, env_rng = np.random.Generator(np.random.PCG64(seed)), streams(0)[0]
            learner, state, steps = PSRL().start(ProblemInfo.from_mdp(env.mdp), rng), env.reset(env_rng), []
            for _ in range(1000):
                action = learner.act(state)
                reward, succ = env.step(state, action, env_rng)
                learner.observe(reward, succ)
                steps.append((state, action, reward, succ))
                state = succ
            other = np.random.Generator(np.random.PCG64(seed))
            other.integers(2**64, size=4 * learner.n_episodes, dtype=np.uint64)
            assert rng.bit_generator.state == other.bit_generator.state
            runs.append((steps, learner.episode))
        assert runs[0] == runs[1] != runs[2]

    def test_regret_is_small(self):
        runs = [learn("riverswim", "psrl", horizon=10**5, seed=seed) for seed in range(4)]
        assert np.mean([run.pseudo_regret[-1] for run in runs]) < 0.05 * 10**5 * runs[0].meta["gain"]


class TestRefusals:
    def test_too_many_states(self):
        with pytest.raises(
            OptionError, match=r"PSRL: S must be at most 5000; got 5001\. It draws a distribution over all"
        ):
            PSRL().start(ProblemInfo(MOST_STATES + 1, 1), 0)
        PSRL().start(ProblemInfo(MOST_STATES, 1), 0)

    def test_audit(self):
        with pytest.raises(OptionError, match=r"learn: audit needs the true model and an agent with confidence sets"):
            learn("three-state", "psrl", horizon=10, seed=0, audit=True)

    def test_confidence_set(self):
        learner = PSRL().start(ProblemInfo.from_mdp(make("three-state").mdp), 0)
        with pytest.raises(OptionError, match=r"confidence_set: there is no episode yet"):
            learner.confidence_set()
        learner.act(0)
        with pytest.raises(OptionError, match=r"has one model, no set of plausible ones"):
            learner.confidence_set()

    def test_options(self):
        with pytest.raises(OptionError, match=r"PSRL: warm_start must be true or false; got 'False'"):
            PSRL(warm_start="False")
        with pytest.raises(UnknownNameError, match=r"psrl: unknown parameter 'delta'\. Known: warm_start\."):
            make_agent("psrl[delta=0.05]")


def test_names():
    assert agent_id("psrl") == agent_id(PSRL()) == "psrl"
    assert make_agent("psrl[warm_start=false]") == PSRL(warm_start=False)
    assert agent_id(PSRL(warm_start=False)) == "psrl[warm_start=false]"


def test_contract():
    check_agent("psrl")


def test_the_horizon_is_not_read():
    kept = Kept(PSRL())
    learn("three-state", kept, horizon=100, seed=0)
    assert not kept.learners[0].info.horizon_was_read
