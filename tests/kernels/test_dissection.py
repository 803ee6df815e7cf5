"""Nested dissection: a permutation, the exact size of the factors, limits that hold; and the matrix that is factorised."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from spanrl.kernels import dissection
from spanrl.kernels.jit import interpreted
from spanrl.kernels.policies import freeze, new_chain


def random_graph(rng, S, degree):
    """Draw a graph: successors of each state, compressed; loops and states without neighbours included."""
    length = rng.integers(0, degree + 1, S)
    succ = np.concatenate([np.sort(rng.choice(S, n, replace=False)) for n in length]) if length.sum() else np.empty(0)
    return np.concatenate(([0], np.cumsum(length))), succ.astype(np.uint32)


def grid(n):
    """Return the four neighbours of each cell of a square."""
    x, y = np.divmod(np.arange(n * n), n)
    rows = [
        [s + d for s_ok, d in ((x[s] > 0, -n), (x[s] < n - 1, n), (y[s] > 0, -1), (y[s] < n - 1, 1)) if s_ok]
        for s in range(n * n)
    ]
    return np.concatenate(([0], np.cumsum([len(row) for row in rows]))), np.concatenate(rows).astype(np.uint32)


def filled(ptr, succ, order):
    """Eliminate symbolically, the obvious way: return the entries of one factor and the multiplications."""
    S = ptr.size - 1
    rank = np.argsort(order)
    neighbours = [set() for _ in range(S)]
    for s in range(S):
        for x in succ[ptr[s] : ptr[s + 1]]:
            if x != s:
                neighbours[rank[s]].add(rank[x])
                neighbours[rank[x]].add(rank[s])
    lengths = []
    for k in range(S):
        later = {x for x in neighbours[k] if x > k}
        lengths.append(1 + len(later))
        for x in later:
            neighbours[x] |= later - {x}
    return sum(lengths), sum(n * n for n in lengths)


@pytest.mark.parametrize("seed", range(30))
def test_the_order_is_a_permutation_and_the_count_is_exact(seed):
    rng = np.random.default_rng(seed)
    ptr, succ = random_graph(rng, int(rng.integers(1, 120)), int(rng.integers(0, 4)))
    near = dissection.neighbours(ptr, succ)
    order = np.empty(ptr.size - 1, dtype=np.int64)
    assert dissection.dissect(*near, np.inf, np.inf, np.inf, order)
    assert np.sort(order).tolist() == list(range(order.size))
    wanted = filled(ptr, succ, order)
    tree = dissection.new_tree(order.size)
    assert dissection.count_factors(*near, order, tree) == wanted
    with interpreted():
        again = np.empty_like(order)
        assert dissection.dissect(*dissection.neighbours(ptr, succ), np.inf, np.inf, np.inf, again)
        assert again.tolist() == order.tolist()
        assert dissection.count_factors(*near, order, tree) == wanted


def test_a_grid_has_narrow_separators_and_a_random_graph_has_none():
    ptr, succ = grid(60)
    near, order, tree = dissection.neighbours(ptr, succ), np.empty(3600, dtype=np.int64), dissection.new_tree(3600)
    assert dissection.dissect(*near, 1e5, np.inf, dissection.PATIENCE, order)
    entries, _ = dissection.count_factors(*near, order, tree)
    natural, _ = dissection.count_factors(*near, np.arange(3600), tree)
    assert entries < natural / 2
    rng = np.random.default_rng(0)
    ptr, succ = (
        np.arange(0, 3601 * 5, 5),
        np.concatenate([rng.choice(3600, 5, replace=False) for _ in range(3600)]).astype(np.uint32),
    )
    assert not dissection.dissect(*dissection.neighbours(ptr, succ), 1e5, np.inf, dissection.PATIENCE, order)


def test_a_long_thin_graph_fills_no_more_than_a_band():
    """A line of reach 4 is eliminated from end to end; a square of the same size is cut."""
    S, reach = 3600, 4
    rng = np.random.default_rng(3)
    succ = np.clip(np.arange(S)[:, None] + rng.integers(-reach, reach + 1, (S, 3)), 0, S - 1).astype(np.uint32)
    near = dissection.neighbours(np.arange(S + 1) * 3, succ.ravel())
    order, tree = np.empty(S, dtype=np.int64), dissection.new_tree(S)
    assert dissection.dissect(*near, np.inf, np.inf, np.inf, order)
    thin, _ = dissection.count_factors(*near, order, tree)
    assert thin <= S * (reach + 1)
    assert thin <= 1.2 * dissection.count_factors(*near, np.arange(S), tree)[0]


def test_a_hub_comes_last():
    """Every state of a ring also leads to state 0: with the hub in the middle everything would fill."""
    S = 2000
    ptr, succ = (
        np.arange(0, 2 * S + 1, 2),
        np.stack(((np.arange(S) + 1) % S, np.zeros(S)), axis=1).ravel().astype(np.uint32),
    )
    order, near = np.empty(S, dtype=np.int64), dissection.neighbours(ptr, succ)
    assert dissection.dissect(*near, 1e5, np.inf, dissection.PATIENCE, order)
    assert order[-1] == 0
    assert dissection.count_factors(*near, order, dissection.new_tree(S))[0] < 6 * S


@pytest.mark.parametrize("seed", range(10))
def test_columns_are_those_of_the_matrix_in_its_order(seed):
    rng = np.random.default_rng(seed)
    S = int(rng.integers(2, 40))
    P = rng.dirichlet(np.full(S, 0.3), S)
    P[rng.random((S, S)) < 0.6] = 0
    P[:, 0] += 1 - P.sum(axis=1)
    rows, chain = csr_array(P), new_chain(S, S * S)
    chain.cut[:] = rng.random(S) < 0.2
    chain.cut[1] = 0
    freeze(rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data, np.zeros(S), np.arange(S), 1, chain)
    horizon, order = 50.0, rng.permutation(S)
    near = dissection.neighbours(chain.ptr, chain.succ)
    ptr, row, value = dissection.columns(chain, horizon, order, *near)
    wanted = np.eye(S) - (1 - 1 / horizon) * P
    for s in np.flatnonzero(chain.cut):
        wanted[s] = np.eye(S)[s] - np.eye(S)[1]
    matrix = np.zeros((S, S))
    for k in range(S):
        at = row[ptr[k] : ptr[k + 1]]
        assert (np.diff(at) > 0).all()
        matrix[at, k] = value[ptr[k] : ptr[k + 1]]
        assert {(a, k) for a in at} == {
            (a, k) for a in range(S) if k in row[ptr[a] : ptr[a + 1]]
        }  # a symmetric pattern
    np.testing.assert_allclose(matrix, wanted[order][:, order], atol=1e-14)
