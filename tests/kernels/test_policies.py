"""Frozen policies: rows written in place are those written anew, sweeps over them, and leaps over one slow mode."""

import numpy as np
import pytest

from spanrl.kernels.improvement import attaining
from spanrl.kernels.jit import interpreted
from spanrl.kernels.policies import chain_sweep, chain_sweeps, follow, freeze, leap, new_chain


def rows_of(rng, S, A):
    """Draw rows of 1 to 4 successors for each pair, some of probability 0 and some the state itself; return (ptr, succ, prob, reward)."""
    length = rng.integers(1, 5, S * A)
    ptr = np.concatenate(([0], np.cumsum(length)))
    succ = rng.integers(0, S, ptr[-1]).astype(np.uint32)
    prob = np.concatenate([rng.dirichlet(np.ones(n)) for n in length])
    prob[rng.random(prob.size) < 0.1] = 0.0
    return ptr, succ, prob, rng.random(S * A)


def listed(chain):
    """Return what a chain says of its states."""
    n = chain.ptr[-1]
    return [x.tolist() for x in (chain.ptr, chain.succ[:n], chain.prob[:n], chain.out, chain.reward)]


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_rows_followed_in_place_are_those_written_anew(seed, share):
    rng = np.random.default_rng(seed)
    S, A = 12, 3
    rows = rows_of(rng, S, A)
    followed, anew = new_chain(S, rows[1].size), new_chain(S, rows[1].size)
    pairs, frozen = np.arange(S) * A, np.full(S, -1)
    for _ in range(6):
        before = frozen.copy()
        changes, most = follow(*rows, pairs, frozen, followed)
        assert most == freeze(*rows, pairs, 0, anew)
        assert changes == (before != pairs).sum()
        assert listed(followed) == listed(anew)
        assert frozen.tolist() == pairs.tolist()
        pairs = np.where(rng.random(S) < share, np.arange(S) * A + rng.integers(0, A, S), pairs)


def test_a_leap_lands_on_the_limit_of_one_mode():
    rng = np.random.default_rng(1)
    limit, mode = rng.random(8), rng.normal(size=8)
    for ratio in (0.98, 0.5, -1.0, -0.9):
        x, y, z = (limit + ratio**n * mode + 0.01 * n for n in range(3))  # each step adds a constant, too
        leap(x, y, z)
        assert np.ptp(z - limit) <= 1e-12 / (1 - ratio)


def test_there_is_no_leap_where_it_could_fail_to_halve_the_step():
    rng = np.random.default_rng(2)
    one, two = rng.normal(size=(2, 8))
    x, y = np.zeros(8), one + two
    z = y + 0.5 * one - 0.5 * two  # two modes, alike in size
    before = z.copy()
    leap(x, y, z)
    assert z.tolist() == before.tolist()
    x, y, z = (np.arange(8.0) * n for n in range(3))  # λ = 1: no limit
    assert leap(x, y, z) == 0.0
    assert z.tolist() == (2 * np.arange(8.0)).tolist()
    x, y, z = (1.1**n * one for n in range(3))  # λ > 1: what grows has none, either
    assert leap(x, y, z) == 0.0
    assert z.tolist() == (1.1**2 * one).tolist()


@pytest.mark.parametrize("is_interpreted", [False, True])
def test_sweeps_over_two_halves_leap(is_interpreted):
    """Two halves that are left with probability 0.001: a sweep narrows the bracket by 0.2 %, some twenty close it."""
    rng = np.random.default_rng(3)
    P = np.kron(np.eye(2), np.ones((5, 5))) * rng.random((10, 10)) * 0.999
    P = P / P.sum(axis=1, keepdims=True) * 0.999
    P[np.arange(10), (np.arange(10) + 5) % 10] = 0.001
    chain, r = new_chain(10, 100), rng.random(10)
    freeze(np.arange(11) * 10, np.tile(np.arange(10, dtype=np.uint32), 10), P.ravel(), r, np.arange(10), 0, chain)
    v, u, w = np.zeros((3, 10))

    def run():
        return chain_sweeps(chain, np.inf, v, u, w, 1.0, 1e-9, 100)

    if is_interpreted:
        with interpreted():
            n, _, width = run()
    else:
        n, _, width = run()
    assert width <= 1e-9
    assert n < 50
    assert np.ptp(r + P @ v - v) <= 1e-9


def test_a_leap_that_lowers_the_lower_end_is_taken_back():
    """Without leaps the lower end never falls; with them it must not, either."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        S = int(rng.integers(2, 6))
        leave = 10.0 ** -rng.integers(1, 6, S)
        P = np.diag(1 - leave)
        P[np.arange(S), rng.permutation(S)] += leave
        chain, r, v = new_chain(S, S * S), rng.random(S), rng.normal(size=S) * 10.0 ** rng.integers(0, 6)
        freeze(np.arange(S + 1) * S, np.tile(np.arange(S, dtype=np.uint32), S), P.ravel(), r, np.arange(S), 0, chain)
        lowest, u, w = (r + P @ v - v).min(), np.empty(S), np.empty(S)
        for n in (7, 13, 60):
            chain_sweeps(chain, np.inf, v, u, w, 1.0, 1e-9, n)
            low = (r + P @ v - v).min()
            assert low >= lowest - 1e-13 * np.abs(v).max()
            lowest = low


@pytest.mark.parametrize("c", [0.3, np.inf])
def test_a_sweep_over_a_policy_is_its_operator(c):
    """Γ_c F_d v with F_d v = r + Pv."""
    rng = np.random.default_rng(4)
    S = 7
    P, r, v, u = rng.dirichlet(np.ones(S), S), rng.random(S), rng.random(S), np.empty(S)
    chain = new_chain(S, S * S)
    freeze(np.arange(S + 1) * S, np.tile(np.arange(S, dtype=np.uint32), S), P.ravel(), r, np.arange(S), 0, chain)
    wanted = r + P @ v
    assert c == np.inf or np.ptp(wanted) > c
    wanted = np.minimum(wanted, wanted.min() + c)
    lo, hi = chain_sweep(chain, c, v, 0.7, 0.2, u)
    np.testing.assert_allclose(u, v + 0.7 * (wanted - v) - 0.2, rtol=0, atol=1e-14)
    assert (lo, hi) == pytest.approx(((wanted - v).min(), (wanted - v).max()), abs=1e-14)


def test_a_pair_that_is_among_the_best_is_kept():
    q = np.array([1.0, 3.0, 2.0, 3.0])
    assert attaining(q, 3, np.uint64(0), 3.0) == 3
    assert attaining(q, 2, np.uint64(0), 3.0) == 1
