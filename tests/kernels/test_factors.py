"""The factors of a policy's equations: against dense algebra, against exact fractions, compiled and interpreted."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from spanrl.kernels.dissection import count_factors, dissect, neighbours, new_tree
from spanrl.kernels.jit import interpreted
from spanrl.kernels.policies import freeze, new_chain
from spanrl.planning import factors

HORIZON = 50.0


def chain_of(P, cut=(), s_min=0):
    """Freeze a transition matrix; states of ``cut`` are truncated."""
    S, rows = len(P), csr_array(P)
    chain = new_chain(S, S * S)
    chain.cut[list(cut)] = 1
    freeze(
        rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data, np.zeros(S), np.arange(S), s_min, chain
    )
    return chain


def factorised(chain, horizon):
    """Order, count and factorise as a solve does."""
    near = neighbours(chain.ptr, chain.succ)
    order, tree = np.empty(chain.out.size, dtype=np.int64), new_tree(chain.out.size)
    assert dissect(*near, np.inf, np.inf, np.inf, order)
    _, products = count_factors(*near, order, tree)
    return factors.factors_of(chain, horizon, order, near, tree, products)


def random_chain(rng, S):
    """Draw a sparse stochastic matrix, now and then with a dense part, in which rows of factors are alike."""
    P = rng.dirichlet(np.full(S, 0.3), S)
    P[rng.random((S, S)) < rng.choice([0.3, 0.8, 0.95])] = 0
    P[:, 0] += 1 - P.sum(axis=1)
    return P


@pytest.fixture(params=["own", "library"])
def way(request, monkeypatch):
    """Force one of the two ways."""
    if request.param == "library":
        monkeypatch.setattr(factors, "_own_cost", lambda *args: np.inf)
    else:
        monkeypatch.setattr(factors, "_library_cost", lambda *args: np.inf)
    return request.param


@pytest.mark.parametrize("seed", range(30))
def test_solutions_are_those_of_the_dense_system(seed, way):
    rng = np.random.default_rng(seed)
    S = int(rng.integers(1, 60))
    P, cut = random_chain(rng, S), np.flatnonzero(rng.random(S) < 0.2)
    cut = cut[cut != S - 1]
    A = np.eye(S) - (1 - 1 / HORIZON) * P
    A[cut] = np.eye(S)[cut] - np.eye(S)[S - 1]
    solver, b = factorised(chain_of(P, cut, S - 1), HORIZON), rng.normal(size=S)
    wanted = np.linalg.solve(A, b)
    found = solver.solve(b)
    wanted += found[0] - wanted[0]  # a constant is left open
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    assert S <= solver.nnz <= S * S + S
    if way == "own":
        with interpreted():
            np.testing.assert_array_equal(factorised(chain_of(P, cut, S - 1), HORIZON).solve(b), solver.solve(b))


def test_no_digit_is_lost_in_a_chain_that_next_to_never_moves(monkeypatch):
    """Transitions of 1e-13 and a horizon of 1e15: the condition is 1e15, and own factors are right to rounding all the same."""
    monkeypatch.setattr(factors, "_library_cost", lambda *args: np.inf)
    rng, S, horizon = np.random.default_rng(5), 9, 2.0**50
    rates = rng.integers(1, 9, (S, S)) * 2.0**-43 * (rng.random((S, S)) < 0.6)
    np.fill_diagonal(rates, 0)
    P = rates + np.diag(1 - rates.sum(axis=1))
    b = rng.integers(0, 9, S).astype(float)
    gamma = 1 - Fraction(1) / Fraction(horizon)
    A = [[Fraction(int(i == j)) - gamma * Fraction(P[i, j]) for j in range(S)] for i in range(S)]
    found, wanted = factorised(chain_of(P), horizon).solve(b), solved(A, [Fraction(x) for x in b])
    assert (found == 0).sum() == 1  # the state whose value is the constant that is left out
    constant = wanted[int(np.argmin(np.abs(found)))]
    np.testing.assert_allclose(found, [float(x - constant) for x in wanted], rtol=1e-13)


def solved(A, b):
    """Solve a system of fractions by elimination."""
    n = len(b)
    rows = [[*row, x] for row, x in zip(A, b, strict=True)]
    for k in range(n):
        at = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[at] = rows[at], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def test_thin_factors_are_our_own_and_thick_ones_the_librarys():
    ring = np.roll(np.eye(200), 1, axis=1)
    assert isinstance(factorised(chain_of(ring), HORIZON), factors._Own)
    dense = np.full((200, 200), 1 / 200)
    assert isinstance(factorised(chain_of(dense), HORIZON), factors._Library)
