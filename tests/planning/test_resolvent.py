"""What is learnt from one linear system for the next one: which way, and which horizon."""

import numpy as np
import pytest

from spanrl.kernels.policies import freeze, new_chain
from spanrl.planning.resolvent import Resolvent

S = 300
D = np.sin(np.arange(S))
TERMS = {"slowness": 1e4, "width": 1.0, "wanted": 1e3, "is_settled": False}


def chain_of(successors):
    """Freeze a policy that goes to each of some states with the same probability."""
    ptr, prob = np.arange(S + 1) * successors.shape[1], np.full(successors.size, 1 / successors.shape[1])
    chain = new_chain(S, successors.size)
    freeze(ptr, successors.ravel().astype(np.uint32), prob, np.zeros(S), np.arange(S), 0, chain)
    return chain


def thin():
    """States on a line: small factors."""
    s = np.arange(S)
    return chain_of(np.stack((np.maximum(s - 1, 0), np.minimum(s + 1, S - 1)), axis=1))


def thick():
    """States that lead anywhere: their factors fill up."""
    return chain_of(np.random.default_rng(0).integers(0, S, (S, 8)))


def residual(chain, x, horizon):
    """Return what is left of (I − γP)x = d, but for a constant."""
    rest = D - x
    for s in range(S):
        for j in range(chain.ptr[s], chain.ptr[s + 1]):
            rest[s] += (1 - 1 / horizon) * chain.prob[j] * x[chain.succ[j]]
        rest[s] += (1 - 1 / horizon) * (1 - chain.out[s]) * x[s]
    return np.ptp(rest)


def test_where_the_factors_of_a_later_policy_are_too_large_it_is_iterated():
    way = Resolvent(40 * S * 8.0, is_cautious=False)
    assert way.solve(thin(), D, **TERMS) is not None
    assert way.factor_size > 0
    way.forget()
    x = way.solve(thick(), D, **TERMS)
    assert way.iterations > 0
    assert residual(thick(), x, way.horizon) < 0.05
    assert way.cost(thick(), 1e4, again=False) < np.inf
    way.forget()
    iterations = way.iterations
    assert way.solve(thin(), D, **TERMS) is not None  # and the next one, as is cheaper
    assert way.iterations > iterations


def test_harm_makes_the_horizon_shorter_also_where_the_policy_is_kept():
    way, chain = Resolvent(1e9, is_cautious=False), thin()
    way._prefers_factors = True
    way.solve(chain, D, **TERMS)
    assert way.horizon == pytest.approx(1e8)
    for longest in (1e8 / 8, 1e8 / 64, 1e8 / 512):
        way.distrust()
        way.solve(chain, D, **TERMS)
        assert way.horizon == pytest.approx(longest)  # 64 times shorter, and eight times longer for the next system


def test_what_is_solved_again_costs_little():
    way, chain = Resolvent(1e9, is_cautious=False), thin()
    way._prefers_factors = True
    way.solve(chain, D, **TERMS)
    price = way.spent
    assert way.cost(chain, 1e4, again=True) < way.cost(chain, 1e4, again=False)
    np.testing.assert_allclose(np.ptp(way.solve_again(2 * D) - 2 * way.solve_again(D)), 0, atol=1e-6)
    assert way.spent < 0.2 * price


@pytest.mark.parametrize("memory", [0.0, 1e9], ids=["krylov", "factors"])
def test_who_watches_is_told_while_a_system_is_solved(memory):
    told = []
    way = Resolvent(memory, is_cautious=False, tell=lambda: told.append(1))
    assert way.solve(thin(), D, **TERMS) is not None
    assert told
