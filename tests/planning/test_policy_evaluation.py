"""Frozen policies: what their linear systems find is the fixed point of a truncated operator with a horizon."""

import numpy as np
import pytest
from planning_models import random_mdp

from spanrl import BoundedMDP
from spanrl.kernels.projection import clip
from spanrl.planning.policy_evaluation import PolicyEvaluation
from spanrl.planning.problem import prepare
from spanrl.planning.resolvent import Resolvent


def evaluated(problem, c, pair, v, memory, horizon):
    """Return the fixed point w that the systems find from v on, by factors or, without memory for them, by IDR."""
    policy, way = PolicyEvaluation(problem, c), Resolvent(memory, is_cautious=True)
    way._horizon = way._longest = horizon / 8  # systems make it longer by that factor
    way._prefers_factors = memory > 0
    assert policy.become(pair, v)
    policy.truncate(problem.backup(v))
    w = policy.evaluate(way, v, 1e3, 1e-4, 1e5, is_settled=True, again=False)
    assert way.horizon == horizon
    return w


def iterated(P, r, c, v, horizon):
    """Return the fixed point of w ↦ Γ_c(r + P(v/H + (1 − 1/H)w)), a contraction, by iterating it."""
    w = v.copy()
    for _ in range(int(60 * horizon)):
        w = r + P @ (v / horizon + (1 - 1 / horizon) * w)
        w = np.minimum(w, w.min() + c)
    return w


@pytest.mark.parametrize("memory", [0.0, 1e9], ids=["krylov", "factors"])
@pytest.mark.parametrize("horizon", [2.0, 64.0])
@pytest.mark.parametrize("seed", range(40))
def test_the_values_are_those_of_the_contraction(seed, horizon, memory):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, S=int(rng.integers(2, 12)))
    S, c = mdp.n_states, float(rng.choice([0.05, 0.5, 5.0, np.inf]))
    pair = np.array([rng.integers(mdp.pair_ptr[s], mdp.pair_ptr[s + 1]) for s in range(S)])
    v = rng.normal(size=S)
    clip(v, c)
    P = mdp.to_dense()[0][np.arange(S), mdp.action[pair]]
    w = evaluated(prepare(mdp), c, pair, v, memory, horizon)
    wanted = iterated(P, mdp.reward[pair], c, v, horizon)
    np.testing.assert_allclose(w - w[0], wanted - wanted[0], rtol=0, atol=2e-6)


@pytest.mark.parametrize("kind", ["plain", "ball"])
@pytest.mark.parametrize("horizon", [64.0, 1e8])
@pytest.mark.parametrize("seed", range(30))
def test_the_lower_end_of_the_bracket_never_falls(seed, horizon, kind):
    """Also with a span bound: an evaluation from v on keeps min(T_c v − v)."""
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, S=int(rng.integers(2, 12)))
    c = float(rng.choice([0.05, 0.5, 5.0]))
    low, high = mdp.reward.min(), mdp.reward.max()
    problem = prepare(mdp if kind == "plain" else BoundedMDP.l1_ball(mdp, 0.1, low, high))
    v = rng.normal(size=mdp.n_states)
    clip(v, c)

    def lower_end(v):
        u = problem.backup(v)
        return (np.minimum(u, u.min() + c) - v).min()

    greedy = problem.best(v).pair
    w = evaluated(problem, c, greedy, v, 1e9, horizon)
    assert lower_end(w) >= lower_end(v) - 1e-6
