"""IDR on the equations of a frozen policy, against dense linear algebra."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from spanrl.kernels.jit import interpreted
from spanrl.kernels.krylov import SIDES, apply, gather, iterate, new_system, remainder, start
from spanrl.kernels.policies import freeze, new_chain


def random_chain(rng, S):
    """Draw a chain with some truncated states, its rows in any order; return it and its transition matrix, where these lead to state 0."""
    P = rng.dirichlet(np.full(S, 0.2), S)
    rows, chain = csr_array(P), new_chain(S, S * S)
    chain.cut[1:] = rng.random(S - 1) < 0.2
    freeze(
        rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data, rng.random(S), np.arange(S), 0, chain
    )
    for low, high in pairwise(chain.ptr):
        new = low + rng.permutation(high - low)
        chain.succ[low:high], chain.prob[low:high] = chain.succ[new], chain.prob[new]
    return chain, np.where(chain.cut[:, None] != 0, np.eye(S)[0], P)


def rows_of(chain):
    """Return the entries of each row, whatever their order."""
    pairs = list(zip(chain.succ.tolist(), chain.prob.tolist(), strict=True))
    return [sorted(pairs[low:high]) for low, high in pairwise(chain.ptr)]


def dense(chain, P, horizon):
    """Return I − Q."""
    weight = np.where(chain.cut, 1.0, 1 - 1 / horizon)
    return np.eye(P.shape[0]) - weight[:, None] * P


@pytest.mark.parametrize("horizon", [2.0, 100.0, 1e6])
@pytest.mark.parametrize("seed", range(10))
def test_the_solution_is_right_up_to_a_constant(seed, horizon):
    rng = np.random.default_rng(seed)
    chain, P = random_chain(rng, int(rng.integers(2, 40)))
    d = rng.normal(size=P.shape[0])
    system = new_system(chain)
    progress = iterate(chain, system, start(chain, system, horizon, d), 1e-12, 500)
    assert progress.norm <= 1e-12 * progress.first
    gather(chain, system)
    wanted = np.linalg.solve(dense(chain, P, horizon), d)
    difference = system.x - wanted
    assert np.ptp(difference) <= 1e-7 * max(np.ptp(wanted), 1)


def test_the_operator_is_the_preconditioned_matrix():
    rng = np.random.default_rng(0)
    chain, P = random_chain(rng, 12)
    system, y, out = new_system(chain), rng.normal(size=12), np.empty(12)
    before = rows_of(chain)
    start(chain, system, 30.0, np.zeros(12))
    assert rows_of(chain) == before
    A, one = dense(chain, P, 30.0), (chain.cut == 0).astype(float)
    scaled, ones = A / np.diag(A)[:, None], one / np.diag(A)
    apply(chain, system, y, out)
    x = np.linalg.solve(np.triu(scaled), y)
    np.testing.assert_allclose(out, np.linalg.solve(np.tril(scaled), scaled @ x + ones * x.mean()), atol=1e-12)


def test_a_few_slow_modes_cost_a_few_iterations():
    """Eight parts that are left with probability 1e-9: as many slow modes, each 10⁹ sweeps long."""
    rng, parts, m = np.random.default_rng(4), 8, 12
    S = parts * m
    P = np.kron(np.eye(parts), np.ones((m, m))) * rng.random((S, S))
    P = P / P.sum(axis=1, keepdims=True) * (1 - 1e-9) + 1e-9 / S
    rows, chain = csr_array(P), new_chain(S, S * S)
    freeze(rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data, np.zeros(S), np.arange(S), 0, chain)
    system, d = new_system(chain), rng.normal(size=S)
    progress = iterate(chain, system, start(chain, system, 1e12, d), 1e-6, 500)
    assert progress.norm <= 1e-6 * progress.first
    assert progress.n <= 100  # sweeps alone would take 10⁹ for each of them


def test_budgets_and_interpretation_change_no_bit():
    rng = np.random.default_rng(1)
    chain, _ = random_chain(rng, 30)
    d, found = rng.normal(size=30), []
    for budgets in ([40], [SIDES + 1] * 8, [10, 30]):  # whole cycles
        system = new_system(chain)
        progress = start(chain, system, 1e3, d)
        for budget in budgets:
            progress = iterate(chain, system, progress, 1e-14, budget)
        gather(chain, system)
        found.append((system.x.tobytes(), progress))
    with interpreted():
        system = new_system(chain)
        progress = iterate(chain, system, start(chain, system, 1e3, d), 1e-14, 40)
        gather(chain, system)
        found.append((system.x.tobytes(), progress))
    assert len({(x, tuple(progress)) for x, progress in found}) == 1


def test_nothing_to_do_and_a_breakdown_are_told():
    chain, _ = random_chain(np.random.default_rng(2), 5)
    system = new_system(chain)
    assert iterate(chain, system, start(chain, system, 10.0, np.zeros(5)), 1e-3, 10).n == 0
    gather(chain, system)
    assert not system.x.any()
    progress = iterate(chain, system, start(chain, system, 10.0, np.full(5, np.inf)), 1e-3, 10)
    assert not progress.norm < np.inf


def test_the_remainder_is_that_of_the_system_itself():
    rng = np.random.default_rng(3)
    chain, P = random_chain(rng, 15)
    system, d = new_system(chain), rng.normal(size=15)
    progress = start(chain, system, 20.0, d)
    gather(chain, system)
    assert remainder(chain, system, 20.0, d) == 1.0  # x = 0
    progress = iterate(chain, system, progress, 0.0, 3)
    gather(chain, system)
    left = d - dense(chain, P, 20.0) @ system.x - (chain.cut == 0) * system.x.mean()
    assert remainder(chain, system, 20.0, d) == pytest.approx(np.abs(left).max() / np.abs(d).max(), rel=1e-9)
