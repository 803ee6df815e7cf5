"""Spreading news of a better policy: what it leaves behind is a sweep, and what is promised of Lv − v holds."""

import numpy as np
import pytest

from spanrl import MDP, make
from spanrl.kernels.improvement import improve
from spanrl.kernels.jit import interpreted
from spanrl.kernels.spreading import predecessors, spread
from spanrl.planning.problem import prepare


def random_model(seed):
    """Draw a sparse model with self-loops and ragged actions."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(2, 25)), 3
    P = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            to = np.append(rng.integers(0, S, 2), s)
            np.add.at(P[s, a], to, rng.dirichlet(np.ones(3)) if rng.random() < 0.8 else [1, 0, 0])

    available = rng.random((S, A)) < 0.7
    available[:, 0] = True
    return MDP.from_dense(P, rng.random((S, A)), available=available)


def swept(problem, v):
    """Return the values of all pairs at v, Lv and the pairs that attain it."""
    q, u, pair = np.empty(problem.n_pairs), np.empty_like(v), problem.arrays.pair_ptr[:-1].copy()
    improve(problem.arrays, problem.reward, v, q, u, pair)
    return q, u, pair


def run(mdp, v, level, far=np.inf, budget=10**9, ceiling=np.inf):
    """Spread from v; return v and what a sweep would find there, as it was kept up to date."""
    problem = prepare(mdp)
    v = v.copy()
    q, u, pair = swept(problem, v)
    spread(
        problem.arrays,
        problem.reward,
        *predecessors(problem.arrays),
        level,
        far,
        ceiling,
        v,
        q,
        u,
        pair,
        np.zeros_like(v),
        budget,
    )
    return problem, v, q, u, pair


@pytest.mark.parametrize("seed", range(20))
def test_predecessors_are_those_of_the_dense_matrix(seed):
    mdp = random_model(seed)
    ptr, before = predecessors(prepare(mdp).arrays)
    leads = (mdp.to_dense()[0] > 0).any(axis=1)
    for s in range(mdp.n_states):
        assert before[ptr[s] : ptr[s + 1]].tolist() == np.flatnonzero(leads[:, s]).tolist()


@pytest.mark.parametrize("budget", [0, 7, 60, 10**9])
@pytest.mark.parametrize("seed", range(40))
def test_what_is_left_is_a_sweep_and_the_lower_end_holds(seed, budget):
    rng = np.random.default_rng(seed)
    mdp = random_model(seed)
    before = rng.normal(size=mdp.n_states) * rng.choice([0.1, 10.0])
    _, u, _ = swept(prepare(mdp), before)
    gaps = u - before
    level = rng.uniform(gaps.min(), gaps.max())
    problem, v, q, u, pair = run(mdp, before, level, far=rng.choice([0.0, 1.0, np.inf]), budget=budget)
    anew = swept(problem, v)
    assert q.tobytes() == anew[0].tobytes()
    assert u.tobytes() == anew[1].tobytes()
    np.testing.assert_array_equal(q[pair], u)
    np.testing.assert_array_equal(mdp.pair_state[pair], np.arange(mdp.n_states))
    assert (v >= before).all()
    assert (u - v).min() >= min(level, gaps.min()) - 1e-12 * (1 + np.abs(v).max())
    assert budget > 0 or (v == before).all()


@pytest.mark.parametrize("budget", [7, 10**9])
@pytest.mark.parametrize("seed", range(40))
def test_below_a_ceiling_the_lower_end_holds_with_a_span_bound(seed, budget):
    rng = np.random.default_rng(seed)
    mdp, c = random_model(seed), rng.choice([0.1, 1.0, 5.0])
    before = rng.normal(size=mdp.n_states) * 5
    before = np.minimum(before, before.min() + c)
    _, u, _ = swept(prepare(mdp), before)
    gaps = np.minimum(u, u.min() + c) - before
    level = rng.uniform(gaps.min(), gaps.max())
    ceiling = before.min() + c
    problem, v, _, u, _ = run(mdp, before, level, far=0.0, budget=budget, ceiling=ceiling)
    assert (v >= before).all()
    assert v.max() <= ceiling
    assert u.tobytes() == swept(problem, v)[1].tobytes()
    assert (np.minimum(u, u.min() + c) - v).min() >= min(level, gaps.min()) - 1e-12


def test_a_front_crosses_a_river_at_once():
    """The last state has risen: all others follow, each to the value at which it earns the level."""
    mdp = make("riverswim[n_states=60]").mdp
    v = np.zeros(60)
    v[-1] = 1000.0
    _, v, _, u, pair = run(mdp, v, level=1.0, far=0.1)
    assert (np.diff(v) > 0).all()
    assert (mdp.action[pair][1:] == 1).all()
    assert (u - v).max() < 20  # 350 at first


def test_a_level_that_no_policy_earns_is_reached_from_above():
    """Without a cycle that earns it, nothing rises for ever: then Lv − v ≤ level, but for what is not worth a rise."""
    mdp = random_model(3)
    v = np.random.default_rng(0).normal(size=mdp.n_states) * 5
    _, _, _, u, _ = run(mdp, v, level=2.0, far=0.0)
    before = swept(prepare(mdp), v)[1] - v
    assert before.max() > 2.0
    assert (u - run(mdp, v, level=2.0, far=0.0)[1]).max() < 2.0 + 0.2 * (before.max() - 2.0)


def test_interpreted_kernels_do_the_same():
    mdp = random_model(5)
    v = np.random.default_rng(1).normal(size=mdp.n_states)
    compiled = run(mdp, v, 0.5, 0.1)
    with interpreted():
        plain = run(mdp, v, 0.5, 0.1)
    for a, b in zip(compiled[1:], plain[1:], strict=True):
        assert a.tobytes() == b.tobytes()
