"""Nested dissection: a permutation, factors that are small where separators are narrow, and limits that hold."""

import numpy as np
import pytest

from graphs import random_graph
from spanrl.kernels import dissection
from spanrl.kernels.elimination_tree import count_factors, new_tree
from spanrl.kernels.jit import interpreted


def grid(n):
    """Return the four neighbours of each cell of a square."""
    x, y = np.divmod(np.arange(n * n), n)
    rows = [
        [s + d for s_ok, d in ((x[s] > 0, -n), (x[s] < n - 1, n), (y[s] > 0, -1), (y[s] < n - 1, 1)) if s_ok]
        for s in range(n * n)
    ]
    return np.concatenate(([0], np.cumsum([len(row) for row in rows]))), np.concatenate(rows).astype(np.uint32)


@pytest.mark.parametrize("seed", range(30))
def test_the_order_is_a_permutation(seed):
    rng = np.random.default_rng(seed)
    ptr, succ = random_graph(rng, int(rng.integers(1, 120)), int(rng.integers(0, 4)))
    order, again = np.empty((2, ptr.size - 1), dtype=np.int64)
    assert dissection.dissect(*dissection.neighbours(ptr, succ), np.inf, np.inf, np.inf, order)
    assert np.sort(order).tolist() == list(range(order.size))
    with interpreted():
        assert dissection.dissect(*dissection.neighbours(ptr, succ), np.inf, np.inf, np.inf, again)
        assert again.tolist() == order.tolist()


def test_a_grid_has_narrow_separators_and_a_random_graph_has_none():
    ptr, succ = grid(60)
    near, order, tree = dissection.neighbours(ptr, succ), np.empty(3600, dtype=np.int64), new_tree(3600)
    assert dissection.dissect(*near, 1e5, np.inf, dissection.PATIENCE, order)
    entries = count_factors(*near, order, tree)
    natural = count_factors(*near, np.arange(3600), tree)
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
    order, tree = np.empty(S, dtype=np.int64), new_tree(S)
    assert dissection.dissect(*near, np.inf, np.inf, np.inf, order)
    thin = count_factors(*near, order, tree)
    assert thin <= S * (reach + 1)
    assert thin <= 1.2 * count_factors(*near, np.arange(S), tree)


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
    assert count_factors(*near, order, new_tree(S)) < 6 * S
