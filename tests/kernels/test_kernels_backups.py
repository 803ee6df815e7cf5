"""Backups against the plain O(S) versions, which stay as oracles, in both senses and whatever the workspace did before."""

import numpy as np
import pytest
from workspace_samples import max_over_box

from spanrl import MDP, BoundedMDP
from spanrl.kernels.backups import ball_values, box_values, plain_backup
from spanrl.kernels.order import rank_states
from spanrl.planning.problem import prepare

ROUNDING = 1e-12


def max_over_ball(v, centre, radius):
    p, best = centre.copy(), int(np.argmax(v))
    p[best] = min(1.0, p[best] + radius / 2)
    for s in np.argsort(v, kind="stable"):
        excess = p.sum() - 1.0
        if s != best and excess > 0:
            p[s] -= min(excess, p[s])
    return p @ v


def sparse_box(rng, S, A=2, listed=4):
    """A box model with listed successors, some rows with a shared interval for the rest, some free, some exact."""
    ptr, succ, low, high, rest = [0], [], [], [], []
    for _ in range(S * A):
        n = int(rng.integers(1, min(listed, S) + 1))
        p = rng.dirichlet(np.ones(n))
        width = rng.choice([0.0, 0.05, 0.5, 2.0])
        succ += sorted(rng.choice(S, n, replace=False).tolist())
        low += np.maximum(p - width, 0).tolist()
        high += np.minimum(p + width, 1).tolist()
        rest.append(float(rng.choice([0.0, 1.0 / (3 * S), 0.01, 0.3, 1.0])))
        ptr.append(len(succ))
    state, action = np.divmod(np.arange(S * A), A)
    r_low = rng.random(S * A) / 2
    return BoundedMDP.from_pairs(state, action, ptr, succ, low, high, rest, r_low, r_low + 0.5 * rng.random(S * A))


def dense_box(model, i):
    low, high = np.zeros(model.n_states), np.full(model.n_states, model.rest_high[i])
    part = slice(model.succ_ptr[i], model.succ_ptr[i + 1])
    low[model.succ[part]], high[model.succ[part]] = model.p_low[part], model.p_high[part]
    return low, high


@pytest.mark.parametrize("sense", ["optimistic", "pessimistic"])
@pytest.mark.parametrize("S", [1, 2, 5, 40, 700])
def test_box_values_equal_the_plain_version(S, sense):
    rng = np.random.default_rng([S, len(sense)])
    model = sparse_box(rng, S)
    problem = prepare(model, sense)
    sign = problem.sign
    reward = model.r_high if sign > 0 else model.r_low
    for v in (np.zeros(S), rng.normal(size=S) * 3, np.round(rng.random(S), 1), np.arange(S, dtype=float)):
        q = problem.values(v)
        expected = [reward[i] + sign * max_over_box(sign * v, *dense_box(model, i)) for i in range(model.n_pairs)]
        np.testing.assert_allclose(q, expected, rtol=0, atol=ROUNDING * max(1.0, np.abs(v).max()))
        np.testing.assert_allclose(problem.backup(v), q.reshape(S, 2).max(axis=1), rtol=0, atol=0)


def test_box_value_of_a_wide_model_keeps_its_digits():
    """Blocks of 10⁵ unlisted states are summed by differences of prefix sums; these must not lose digits."""
    rng = np.random.default_rng(3)
    S = 100_000
    v = rng.normal(size=S) * 5 + 100
    pairs = np.arange(S)
    succ = rng.integers(0, S, S)
    rest = np.where(pairs % 2 == 0, 1.5 / S, 20.0 / S)
    model = BoundedMDP.from_pairs(
        pairs, np.zeros(S, int), np.arange(S + 1), succ, np.zeros(S), np.full(S, 0.2), rest, np.zeros(S), np.ones(S)
    )
    q = prepare(model).values(v)
    for i in rng.integers(0, S, 20):
        assert q[i] == pytest.approx(
            1 + max_over_box(v, *dense_box(model, i)), abs=1e-10
        )  # the oracle itself rounds S times


@pytest.mark.parametrize("sense", ["optimistic", "pessimistic"])
@pytest.mark.parametrize("S", [1, 2, 6, 60])
def test_ball_values_equal_the_plain_version(S, sense):
    rng = np.random.default_rng([S, 7])
    P = np.array([[rng.dirichlet(np.ones(S) * 0.3) for _ in range(2)] for _ in range(S)])
    P[P < 0.02] = 0
    P /= P.sum(axis=2, keepdims=True)
    radius = rng.choice([0.0, 0.1, 0.7, 2.0, 3.0], size=(S, 2))
    model = BoundedMDP.l1_ball(P, radius, np.zeros((S, 2)), np.ones((S, 2)))
    problem = prepare(model, sense)
    for v in (np.zeros(S), rng.normal(size=S), np.round(rng.random(S), 1)):
        expected = [
            float(problem.sign > 0)
            + problem.sign * max_over_ball(problem.sign * v, P[i // 2, i % 2], radius[i // 2, i % 2])
            for i in range(2 * S)
        ]
        np.testing.assert_allclose(problem.values(v), expected, rtol=0, atol=ROUNDING)


def test_attaining_rows_are_distributions_in_the_set_with_that_value():
    rng = np.random.default_rng(11)
    for S in (1, 3, 30):
        model = sparse_box(rng, S)
        for sense in ("optimistic", "pessimistic"):
            problem = prepare(model, sense)
            v = np.round(rng.random(S), 1)
            q = problem.values(v)
            pairs = np.arange(model.n_pairs)[:: max(1, model.n_pairs // S)][:S]
            ptr, succ, prob = problem.rows(v, pairs)
            for r, i in enumerate(pairs):
                p = np.zeros(S)
                p[succ[ptr[r] : ptr[r + 1]]] = prob[ptr[r] : ptr[r + 1]]
                low, high = dense_box(model, i)
                assert p.sum() == pytest.approx(1, abs=ROUNDING)
                assert (p >= low - ROUNDING).all()
                assert (p <= high + ROUNDING).all()
                assert problem.reward[i] + p @ v == pytest.approx(q[i], abs=ROUNDING)


def test_the_workspace_carries_no_memory():
    """Same bits with a fresh workspace as after other sweeps: a resumed run must not differ."""
    rng = np.random.default_rng(5)
    model = sparse_box(rng, 50)
    used = prepare(model)
    for _ in range(5):
        used.values(rng.normal(size=50))
    v = np.round(rng.random(50), 1)
    assert used.values(v).tobytes() == prepare(model).values(v).tobytes()


def test_interpreted_kernels_equal_the_compiled_ones():
    rng = np.random.default_rng(8)
    S = 6
    v = np.round(rng.random(S), 1)
    box = prepare(sparse_box(rng, S))
    P = np.array([[rng.dirichlet(np.ones(S))] for _ in range(S)])
    ball = prepare(BoundedMDP.l1_ball(P, 0.4, np.zeros((S, 1)), np.ones((S, 1))))
    for problem, kernel in ((box, box_values), (ball, ball_values)):
        rank_states(1.0, v, problem.workspace)
        q = np.empty(problem.n_pairs)
        kernel.py_func(problem.arrays, problem.reward, 1.0, problem.workspace, problem.workspace.pairs, q)
        np.testing.assert_array_equal(q, problem.values(v))
    plain = prepare(MDP.from_dense(P, rng.random((S, 1))))
    out = np.empty(S)
    plain_backup.py_func(plain.arrays, plain.reward, v, out)
    np.testing.assert_array_equal(out, plain.backup(v))


def test_plain_backup_equals_the_dense_product():
    rng = np.random.default_rng(9)
    P = rng.dirichlet(np.full(7, 0.2), size=(7, 3))
    r, v = rng.random((7, 3)), rng.normal(size=7)
    available = rng.random((7, 3)) < 0.6
    available[:, 1] = True
    model = MDP.from_dense(P, r, available=available)
    expected = np.where(available, r + P @ v, -np.inf).max(axis=1)
    np.testing.assert_allclose(prepare(model).backup(v), expected, rtol=0, atol=ROUNDING)
