"""The factors of a policy's equations: against dense algebra, against exact fractions, compiled and interpreted."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from spanrl.kernels.dissection import dissect, neighbours
from spanrl.kernels.factors import Room, borders, columns_below, new_room
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


def planned(chain):
    """Order and count as a solve does."""
    near = neighbours(chain.ptr, chain.succ)
    order = np.empty(chain.out.size, dtype=np.int64)
    assert dissect(*near, np.inf, np.inf, np.inf, order)
    return factors.eliminate_in(order, near)


def factorised(chain, horizon):
    """Order, count and factorise as a solve does."""
    return factors.factorise(chain, horizon, planned(chain))


def random_chain(rng, S):
    """Draw a sparse stochastic matrix, now and then with a dense part, in which rows of factors are alike."""
    P = rng.dirichlet(np.full(S, 0.3), S)
    P[rng.random((S, S)) < rng.choice([0.3, 0.8, 0.95])] = 0
    P[:, 0] += 1 - P.sum(axis=1)
    return P


@pytest.mark.parametrize("seed", range(40))
def test_solutions_are_those_of_the_dense_system(seed):
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
    with interpreted():
        np.testing.assert_array_equal(factorised(chain_of(P, cut, S - 1), HORIZON).solve(b), solver.solve(b))


def test_memory_is_what_arrays_take():
    """The tree, the factors and the room to make them, summed array by array, on a chain whose factors are thin."""
    S = 5000
    succ = np.stack((np.maximum(np.arange(S) - 1, 0), np.minimum(np.arange(S) + 1, S - 1)), axis=1).astype(np.uint32)
    chain = new_chain(S, 2 * S)
    freeze(np.arange(S + 1) * 2, succ.ravel(), np.full(2 * S, 0.5), np.zeros(S), np.arange(S), 0, chain)
    plan = planned(chain)
    solver = factors.factorise(chain, HORIZON, plan)
    kept = solver._factors
    room, below = new_room(S, plan.size), columns_below(chain, HORIZON, plan.tree.rank, plan.fronts)
    arrays = (*plan.graph, *plan.tree, *plan.fronts, *kept[1:], *room, *below)
    assert plan.n_bytes == pytest.approx(sum(array.nbytes for array in arrays), rel=0.1)


def test_factors_are_made_in_pieces(monkeypatch):
    """However often the caller looks in between, the factors have the same bits."""
    chain = chain_of(np.roll(np.eye(50), 1, axis=1))
    plan, b = planned(chain), np.arange(50.0)
    wanted, calls = factors.factorise(chain, HORIZON, plan).solve(b), []
    eliminate = factors.eliminate
    monkeypatch.setattr(factors, "eliminate", lambda *args: calls.append(1) or eliminate(*args))
    monkeypatch.setattr(factors, "_CALL_PRODUCTS", 1.0)
    np.testing.assert_array_equal(factors.factorise(chain, HORIZON, plan).solve(b), wanted)
    fronts = plan.fronts
    assert len(calls) == np.diff(fronts.first).sum() + np.diff(fronts.border_ptr).sum()  # a row at a time


def test_large_fronts():
    """A torus, whose last separators are eliminated together, has the solution of a dense system."""
    n = 24
    x, y = np.divmod(np.arange(n * n), n)
    rng, P = np.random.default_rng(1), np.zeros((n * n, n * n))
    for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        P[np.arange(n * n), (x + dx) % n * n + (y + dy) % n] = rng.random(n * n)
    P /= P.sum(axis=1, keepdims=True)
    solver, b = factorised(chain_of(P), HORIZON), rng.normal(size=n * n)
    wanted, found = np.linalg.solve(np.eye(n * n) - (1 - 1 / HORIZON) * P, b), solver.solve(b)
    np.testing.assert_allclose(found - found[0], wanted - wanted[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_what_fronts_need_is_counted_beforehand(seed, monkeypatch):
    """Rooms of the counted size, and not an entry more, suffice: as plain Python, where every index is checked."""
    rng = np.random.default_rng(seed)
    S = int(rng.integers(2, 60))
    chain = chain_of(random_chain(rng, S))
    plan = planned(chain)
    made = []
    monkeypatch.setattr(factors, "new_room", lambda *args: made.append(marked(new_room(*args))) or made[0])
    with interpreted():
        assert factors.factorise(chain, HORIZON, plan) is not None
    room, size = made[0], plan.size
    for array in (room.front, room.stack):
        assert array.size == 0 or not np.isnan(array[-1])  # the last place was needed
    assert size.values == plan.fronts.value_ptr[-1]
    assert plan.n_bytes >= 8 * (size.values + size.waiting + size.widest**2) + 4 * size.listed


def marked(room):
    """Return a room in which one sees what was written."""
    room.front.fill(np.nan)
    room.stack.fill(np.nan)
    return Room(*room)


@pytest.mark.parametrize("seed", range(20))
def test_fronts_hold_what_depends_on_them(seed):
    """Pivots are ranges that cover all states; a border holds every later state that some pivot depends on, in order."""
    rng = np.random.default_rng(seed)
    plan = planned(chain_of(random_chain(rng, int(rng.integers(1, 60)))))
    tree, fronts = plan.tree, plan.fronts
    S, n = tree.order.size, fronts.parent.size
    border = borders(*plan.graph, tree.order, tree.rank, fronts)
    assert fronts.first[0] == 0
    assert fronts.first[n] == S
    for j in range(n):
        begin, end = fronts.first[j], fronts.first[j + 1]
        assert begin < end
        assert (fronts.of[begin:end] == j).all()
        own = border[fronts.border_ptr[j] : fronts.border_ptr[j + 1]].tolist()
        assert own == sorted(set(own))
        assert own == [] or end <= own[0]
        assert fronts.parent[j] == (fronts.of[own[0]] if own else -1)
        assert len(own) == tree.length[end - 1] - 1
        for k in range(begin, end):
            s = tree.order[k]
            near = tree.rank[plan.graph[1][plan.graph[0][s] : plan.graph[0][s + 1]]]
            assert {int(i) for i in near if i >= end} <= set(own)
            assert tree.parent[k] == -1 or tree.parent[k] < end or tree.parent[k] in own


def test_no_digit_is_lost_in_a_chain_that_next_to_never_moves():
    """Transitions of 1e-13 and a horizon of 1e15: the condition is 1e15, and the factors are right to rounding all the same."""
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
