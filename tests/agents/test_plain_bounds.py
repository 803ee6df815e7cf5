"""UCRL2B, UCRL3 and KL-UCRL as whole agents against plain numpy versions, decision by decision; broken ones are noticed."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import pytest
from family_samples import Decision, assert_same_decisions, iterate, lowest

import plain_bounds as plain
from spanrl import KLUCRL, MDP, UCRL2B, UCRL3, Env, make, reference


def decide_by(values):
    """Return the decisions of UCRL where ``values(counts, allowed)`` makes q(v) of a set: cold starts, to 1/√t_k."""

    def decide(counts, allowed, t, s, steps):
        q = values(counts, allowed)
        v, _ = iterate(q, len(allowed), inf, 1 / sqrt(t))
        best = lowest(q(v))
        return Decision(best, best, np.zeros(len(best)), np.maximum(1, counts.N))

    return decide


def on_boxes(make_set, **options):
    def values(counts, allowed):
        M = make_set(counts, allowed, **options)
        return lambda v: reference.values(M, v)

    return decide_by(values)


def on_kl_balls(scale=1.0):
    def values(counts, allowed):
        S, A = allowed.shape
        level, pairs = plain.DELTA / (2 * allowed.sum()), np.argwhere(allowed)
        N, radius, reward = counts.N, np.full((S, A), inf), np.ones((S, A))
        for s, a in pairs[N[allowed] > 0]:
            radius[s, a] = scale * plain.kl_radius(counts.successors[s, a], S, level)
            reward[s, a] = plain.kl_reward(counts.rewards[s, a], N[s, a], level)

        def q(v):
            found = np.full((S, A), -inf)
            for s, a in pairs:
                p = counts.successors[s, a] / max(1, N[s, a])
                found[s, a] = reward[s, a] + (plain.kl_max(p, v, radius[s, a]) if N[s, a] else v.max())
            return found

        return q

    return decide_by(values)


def ragged():
    rng = np.random.default_rng(2)
    available = np.array([[True, True, False], [True, False, True], [True, True, True]])
    mdp = MDP.from_dense(rng.dirichlet(np.full(3, 0.5), size=(3, 3)), rng.random((3, 3)), available=available)
    return Env.from_mdp(mdp, "bernoulli")


ENVS = {
    "riverswim": lambda: make("riverswim[variant=osband,n_states=4]"),
    "three-state": lambda: make("three-state[delta=0.05]"),
    "ragged": ragged,
}
AGENTS = {
    "ucrl2b": (UCRL2B(warm_start=False), on_boxes(plain.ucrl2b_set)),
    "ucrl3": (UCRL3(warm_start=False), on_boxes(plain.ucrl3_set)),
    "kl-ucrl": (KLUCRL(warm_start=False), on_kl_balls()),
}
MUTANTS = {
    "ucrl2b": on_boxes(plain.ucrl2b_set, factor=5.0),
    "ucrl3": on_boxes(plain.ucrl3_set, share=1.0),
    "kl-ucrl": on_kl_balls(0.8),
}


@pytest.mark.parametrize("env", ENVS)
@pytest.mark.parametrize("name", AGENTS)
def test_a_plain_version_decides_alike(name, env):
    agent, decide = AGENTS[name]
    assert_same_decisions(ENVS[env](), agent, decide, 600, fewest=14)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_constant_shows(name):
    with pytest.raises(AssertionError):
        assert_same_decisions(ENVS["three-state"](), AGENTS[name][0], MUTANTS[name], 2000, fewest=14)
