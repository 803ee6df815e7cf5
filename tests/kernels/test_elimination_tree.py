"""The elimination tree: the size of the factors as it is when all states are eliminated the obvious way, and subtrees that are ranges."""

import numpy as np
import pytest

from graphs import random_graph
from spanrl.kernels.dissection import dissect, neighbours
from spanrl.kernels.elimination_tree import count_factors, new_tree
from spanrl.kernels.jit import interpreted


def filled(ptr, succ, order):
    """Eliminate symbolically, the obvious way: return on which later states each depends, in the order of elimination."""
    S = ptr.size - 1
    rank = np.argsort(order)
    near = [set() for _ in range(S)]
    for s in range(S):
        for x in succ[ptr[s] : ptr[s + 1]]:
            if x != s:
                near[rank[s]].add(int(rank[x]))
                near[rank[x]].add(int(rank[s]))
    later = []
    for k in range(S):
        later.append({x for x in near[k] if x > k})
        for x in later[k]:
            near[x] |= later[k] - {x}
    return later


@pytest.mark.parametrize("seed", range(30))
def test_the_tree_is_that_of_the_factors(seed):
    rng = np.random.default_rng(seed)
    ptr, succ = random_graph(rng, int(rng.integers(1, 120)), int(rng.integers(0, 4)))
    S, near = ptr.size - 1, neighbours(ptr, succ)
    order = rng.permutation(S)
    if seed % 2:
        assert dissect(*near, np.inf, np.inf, np.inf, order)
    tree = new_tree(S)
    entries = count_factors(*near, order, tree)
    later = filled(ptr, succ, tree.order)
    assert np.sort(tree.order).tolist() == list(range(S))
    assert tree.order[tree.rank].tolist() == list(range(S))
    assert tree.length.tolist() == [1 + len(x) for x in later]
    assert tree.parent.tolist() == [min(x, default=-1) for x in later]
    assert (
        entries == tree.length.sum() == S + sum(map(len, filled(ptr, succ, order)))
    )  # the other order has the same factors
    with interpreted():
        again = new_tree(S)
        assert count_factors(*near, order, again) == entries
        assert all((a == b).all() for a, b in zip(tree, again, strict=True))


@pytest.mark.parametrize("seed", range(10))
def test_subtrees_are_ranges(seed):
    rng = np.random.default_rng(seed)
    ptr, succ = random_graph(rng, 60, 2)
    tree = new_tree(60)
    count_factors(*neighbours(ptr, succ), rng.permutation(60), tree)
    below = [{k} for k in range(60)]
    for k in range(60):
        if tree.parent[k] >= 0:
            below[tree.parent[k]] |= below[k]
    assert all(below[k] == set(range(k + 1 - len(below[k]), k + 1)) for k in range(60))
