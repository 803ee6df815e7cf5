"""BiCGSTAB on the equations of a frozen policy, against dense linear algebra."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from spanrl.kernels.jit import interpreted
from spanrl.kernels.krylov import apply, iterate, new_system, remainder, start
from spanrl.kernels.policies import freeze, new_chain


def random_chain(rng, S):
    """Draw a chain with some truncated states; return it and its transition matrix, where these lead to state 0."""
    P = rng.dirichlet(np.full(S, 0.2), S)
    rows, chain = csr_array(P), new_chain(S, S * S)
    chain.cut[1:] = rng.random(S - 1) < 0.2
    freeze(
        rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data, rng.random(S), np.arange(S), 0, chain
    )
    return chain, np.where(chain.cut[:, None] != 0, np.eye(S)[0], P)


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
    system = new_system(chain.ptr, chain.succ, chain.prob)
    progress = iterate(system, start(system, chain, horizon, d), 1e-12, 500)
    assert progress.norm <= 1e-24 * progress.first
    wanted = np.linalg.solve(dense(chain, P, horizon), d)
    difference = system.x - wanted
    assert np.ptp(difference) <= 1e-7 * max(np.ptp(wanted), 1)


def test_the_operator_is_the_preconditioned_matrix():
    rng = np.random.default_rng(0)
    chain, P = random_chain(rng, 12)
    system, x, out = new_system(chain.ptr, chain.succ, chain.prob), rng.normal(size=12), np.empty(12)
    start(system, chain, 30.0, np.zeros(12))
    A, one = dense(chain, P, 30.0), (chain.cut == 0).astype(float)
    scaled, ones = A / np.diag(A)[:, None], one / np.diag(A)
    apply(system, x, out)
    np.testing.assert_allclose(out, np.linalg.solve(np.tril(scaled), scaled @ x + ones * x.mean()), atol=1e-12)


def test_budgets_and_interpretation_change_no_bit():
    rng = np.random.default_rng(1)
    chain, _ = random_chain(rng, 30)
    d, found = rng.normal(size=30), []
    for budgets in ([40], [1] * 40, [7, 33]):
        system = new_system(chain.ptr, chain.succ, chain.prob)
        progress = start(system, chain, 1e3, d)
        for budget in budgets:
            progress = iterate(system, progress, 1e-10, budget)
        found.append((system.x.tobytes(), progress))
    with interpreted():
        system = new_system(chain.ptr, chain.succ, chain.prob)
        found.append((system.x.tobytes(), iterate(system, start(system, chain, 1e3, d), 1e-10, 40)))
        found[-1] = (system.x.tobytes(), found[-1][1])
    assert len({(x, tuple(progress)) for x, progress in found}) == 1


def test_nothing_to_do_and_a_breakdown_are_told():
    chain, _ = random_chain(np.random.default_rng(2), 5)
    system = new_system(chain.ptr, chain.succ, chain.prob)
    assert iterate(system, start(system, chain, 10.0, np.zeros(5)), 1e-3, 10).n == 0
    assert not system.x.any()
    progress = iterate(system, start(system, chain, 10.0, np.full(5, np.inf)), 1e-3, 10)
    assert not progress.norm < np.inf


def test_the_remainder_is_that_of_the_system_itself():
    rng = np.random.default_rng(3)
    chain, P = random_chain(rng, 15)
    system, d = new_system(chain.ptr, chain.succ, chain.prob), rng.normal(size=15)
    progress = start(system, chain, 20.0, d)
    assert remainder(system, chain, 20.0, d) == 1.0  # x = 0
    iterate(system, progress, 0.0, 3)
    left = d - dense(chain, P, 20.0) @ system.x - (chain.cut == 0) * system.x.mean()
    assert remainder(system, chain, 20.0, d) == pytest.approx(np.abs(left).max() / np.abs(d).max(), rel=1e-9)
