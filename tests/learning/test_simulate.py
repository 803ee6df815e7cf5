"""A fixed policy, simulated: frequencies against the exact stationary distribution.

Level of the statistical tests: 1e-3 each, seeds fixed. Visits of a Markov chain are correlated, so the tests are not χ² on the counts:
they compare with the asymptotic variance of the chain, σ² = π·(2f·Hf − f²) for centred f, H the deviation matrix (oracle).
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from scipy.stats import norm

from spanrl import MDP, Env, Policy, evaluate, make, simulate, solve
from spanrl.errors import OptionError
from spanrl.learning import simulate as module
from spanrl.paper.oracles_chains import deviation_matrix, stationary_matrix

LEVEL = 1e-3
T = 10**6


def random_env(seed, S=5, A=3):
    rng = np.random.default_rng(seed)
    available = rng.random((S, A)) < 0.7
    available[np.arange(S), rng.integers(0, A, S)] = True
    P = rng.dirichlet(np.full(S, 0.5), size=(S, A))
    mdp = MDP.from_dense(P, rng.random((S, A)), available=available, start=rng.dirichlet(np.ones(S)))
    probs = np.where(available, rng.random((S, A)), 0.0)
    return Env.from_mdp(mdp, "bernoulli"), Policy(probs / probs.sum(axis=1, keepdims=True))


def chain(mdp, policy):
    P, r, _ = mdp.to_dense()
    return np.einsum("sa,sax->sx", policy.probs, P), np.einsum("sa,sa->s", policy.probs, r)


def largest_deviation(found, mean, variance, tests):
    """Check |found − mean| at the level divided by the number of tests, by the normal approximation."""
    bound = norm.isf(LEVEL / (2 * tests)) * np.sqrt(variance)
    assert (np.abs(found - mean) <= bound + 1e-12).all()


@pytest.mark.parametrize("seed", range(4))
def test_states_have_their_stationary_frequencies(seed):
    env, policy = random_env(seed)
    S = env.mdp.n_states
    P, _ = chain(env.mdp, policy)
    pi, H = stationary_matrix(P)[0], deviation_matrix(P)
    visits = simulate(env, policy, horizon=T, seed=seed).visits
    indicator = np.eye(S) - pi  # f_s(x) = 1[x = s] − π(s), column s
    variance = np.array([pi @ (2 * indicator[:, s] * (H @ indicator[:, s]) - indicator[:, s] ** 2) for s in range(S)])
    largest_deviation(visits.sum(axis=1) / T, pi, np.maximum(variance, 0) / T, S)


@pytest.mark.parametrize("seed", range(4))
def test_actions_have_the_probabilities_of_the_policy(seed):
    """Given the state, actions are drawn independently: binomial."""
    env, policy = random_env(seed)
    visits = simulate(env, policy, horizon=T, seed=seed).visits
    n = visits.sum(axis=1, keepdims=True)
    p = policy.probs
    largest_deviation(visits / n, p, p * (1 - p) / n, p.size)
    assert (visits[p == 0] == 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_average_reward_is_the_gain(seed):
    """With the variance of the mean rewards along the chain and of the Bernoulli noise, which add up (a bound: twice the sum)."""
    env, policy = random_env(seed)
    P, r = chain(env.mdp, policy)
    pi, H = stationary_matrix(P)[0], deviation_matrix(P)
    gain = float(pi @ r)
    assert evaluate(env.mdp, policy).gain == pytest.approx(gain, abs=1e-10)
    centred = r - gain
    variance = pi @ (2 * centred * (H @ centred) - centred**2) + pi @ (r * (1 - r))
    result = simulate(env, policy, horizon=T, seed=seed)
    largest_deviation(result.mean, gain, 2 * variance / T, 1)
    assert result.reward == result.mean * T
    assert float(result.reward).is_integer()


def test_visits_and_the_last_state():
    env, policy = random_env(7)
    for horizon in (1, 2, 1000, 12_345):
        result = simulate(env, policy, horizon=horizon, seed=0)
        assert result.visits.sum() == result.horizon == horizon
        assert result.visits.shape == (5, 3)
        assert 0 <= result.state < 5


def test_a_deterministic_chain_is_followed_to_the_letter():
    P = np.zeros((3, 2, 3))
    P[[0, 1, 2], 0, [1, 2, 0]] = 1.0
    P[:, 1] = np.eye(3)
    mdp = MDP.from_dense(P, [[0.0, 0.5], [0.25, 0.5], [1.0, 0.5]], start=1)
    result = simulate(mdp, Policy.deterministic([0, 0, 0], n_actions=2), horizon=10, seed=3)
    assert result.visits[:, 0].tolist() == [3, 4, 3]
    assert result.state == 2
    assert result.reward == 4 * 0.25 + 3 * 1.0
    stay = simulate(mdp, Policy.deterministic([1, 1, 1]), horizon=10, seed=3)
    assert stay.visits.tolist() == [[0, 0], [0, 10], [0, 0]]


def test_the_start_distribution():
    """Absorbing states: where it starts is where it stays. Binomial over 2000 seeds."""
    mdp = MDP.from_dense([[[1.0, 0.0]], [[0.0, 1.0]]], [[0.0], [1.0]], start=[0.3, 0.7])
    policy = Policy.deterministic([0, 0])
    ones = np.mean([simulate(mdp, policy, horizon=1, seed=seed).state for seed in range(2000)])
    assert abs(ones - 0.7) <= norm.isf(LEVEL / 2) * sqrt(0.21 / 2000)


def test_same_seed_same_bits_whatever_the_budget(monkeypatch):
    env, policy = random_env(1)
    runs = []
    for budget in (1 << 20, 1, 1000):
        monkeypatch.setattr(module, "BUDGET", budget)
        runs.append(simulate(env, policy, horizon=5000, seed=2))
    assert {(run.reward, run.state, run.visits.tobytes()) for run in runs} == {
        (runs[0].reward, runs[0].state, runs[0].visits.tobytes())
    }
    other = simulate(env, policy, horizon=5000, seed=3)
    assert other.visits.tobytes() != runs[0].visits.tobytes()


def test_an_mdp_pays_its_means_and_an_environment_its_outcomes():
    env = make("three-state")
    policy = solve(env.mdp).policy
    assert simulate(env, policy, horizon=1e4, seed=0).reward.is_integer()
    result = simulate(env.mdp, policy, horizon=1e4, seed=0)
    means = env.mdp.to_dense()[1]
    assert result.reward == pytest.approx(float((result.visits * means).sum()), abs=1e-8)


@pytest.mark.parametrize("name", ["three-state", "knight-quest"])
def test_the_optimal_policy_earns_the_optimal_gain(name):
    """Over 10⁶ steps the standard deviation of the mean is √(2/9)/1000 in the first and less in the second."""
    env = make(name)
    solution = solve(env.mdp)
    result = simulate(env, solution.policy, horizon=T, seed=0)
    assert abs(result.mean - solution.gain) <= norm.isf(LEVEL / 2) * sqrt(2 / 9 / T)


class TestWrongInput:
    POLICY = Policy.deterministic([0, 0, 0], n_actions=2)

    @pytest.mark.parametrize("model", ["three-state", None, 5])
    def test_model(self, model):
        with pytest.raises(
            OptionError, match=r"simulate: the model must be an MDP or an Env; got .*\. Use make\(name\)"
        ):
            simulate(model, self.POLICY, horizon=10, seed=0)

    @pytest.mark.parametrize("policy", [Policy.deterministic([0, 0]), Policy.deterministic([0, 0, 0]), [0, 0, 0], None])
    def test_policy(self, policy):
        with pytest.raises(OptionError, match=r"simulate: the policy must be a Policy of shape \(3, 2\); got"):
            simulate(make("three-state"), policy, horizon=10, seed=0)

    def test_a_policy_that_plays_what_is_not_there(self):
        with pytest.raises(
            OptionError, match="simulate: the policy plays an action that is not available in state 's1'"
        ):
            simulate(make("three-state"), Policy.deterministic([0, 1, 1]), horizon=10, seed=0)

    @pytest.mark.parametrize("horizon", [0, -1, 1.5, "10", None])
    def test_horizon(self, horizon):
        with pytest.raises(OptionError, match="simulate: horizon must be a whole number ≥ 1; got"):
            simulate(make("three-state"), self.POLICY, horizon=horizon, seed=0)

    @pytest.mark.parametrize("seed", [-1, 0.5, None])
    def test_seed(self, seed):
        with pytest.raises(OptionError, match="the seed must be a whole number"):
            simulate(make("three-state"), self.POLICY, horizon=10, seed=seed)
