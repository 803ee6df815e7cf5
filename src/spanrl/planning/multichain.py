"""Certify that the optimal gain is not the same in all states, so that no bracket can close."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.kernels.layout import BALL, BOX, FREE
from spanrl.planning.problem import Problem, Vector

_MARGIN = 1e-9


def strong_components(n: int, row: NDArray[Any], col: NDArray[Any]) -> tuple[int, NDArray[np.int32]]:
    """Return the number of strongly connected components of a graph on n nodes and the label of each node."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(row.size, dtype=np.int8), (row.astype(np.int64), col.astype(np.int64))), shape=(n, n))
    count, label = connected_components(graph, directed=True, connection="strong")
    return int(count), label


def closed_components(n: int, row: NDArray[Any], col: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the component of each node and the components that no edge leaves."""
    count, label = strong_components(n, row, col)
    left = np.zeros(count, dtype=bool)
    left[label[row[label[row] != label[col]]]] = True
    return label, np.flatnonzero(~left)


def gain_gap(problem: Problem, v: Vector) -> tuple[int, int, float, float] | None:
    """Return (better state, worse state, lower bound of the gain there, upper bound here), or None where nothing is certified.

    With d = Lv − v: on a set of states that no action of any kind leaves, the optimal gain is at most max d. On a recurrent class
    of the greedy chain at v it is at least min d (with a pessimistic sense nature could leave the class, so only sets that
    nothing leaves are used there).
    """
    value, pairs = problem.best(v)
    d = value - v
    row, col = _possible(problem)
    label, closed = closed_components(problem.n_states, row, col)
    highest = np.full(label.max() + 1, -np.inf)
    np.maximum.at(highest, label, d)
    worst = closed[np.argmin(highest[closed])]
    if problem.sign > 0:
        ptr, succ, _ = problem.rows(v, pairs)
        label_up, closed_up = closed_components(
            problem.n_states, np.repeat(np.arange(problem.n_states), np.diff(ptr)), succ
        )
    else:
        label_up, closed_up = label, closed
    lowest = np.full(label_up.max() + 1, np.inf)
    np.minimum.at(lowest, label_up, d)
    best = closed_up[np.argmax(lowest[closed_up])]
    if lowest[best] <= highest[worst] + _MARGIN * max(1.0, abs(highest[worst])):
        return None
    better, worse = int(np.argmax(label_up == best)), int(np.argmax(label == worst))
    return better, worse, float(lowest[best]), float(highest[worst])


def _possible(problem: Problem) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the edges s → s' that some action and some model of the set make possible.

    A state that may reach every state is given edges to a hub and from it to all others: nothing of size S². The hub is state s
    itself: a cycle through all states that starts there.
    """
    m, S = problem.arrays, problem.n_states
    pair_state = np.repeat(np.arange(S), np.diff(m.pair_ptr))
    pair = np.repeat(np.arange(problem.n_pairs), np.diff(m.succ_ptr))
    if m.kind == BOX:
        keep = (m.low + m.room > 0) & ((m.low > 0) | (m.slack[pair] > 0))
        wide = (m.slack == FREE) | ((m.slack > 0) & (m.rest > 0))
    elif m.kind == BALL:
        keep, wide = np.ones(pair.size, dtype=bool), m.slack > 0
    else:
        keep, wide = np.ones(pair.size, dtype=bool), np.zeros(problem.n_pairs, dtype=bool)
    row, col = pair_state[pair[keep]], m.succ[keep].astype(np.int64)
    reach_all = np.unique(pair_state[wide])
    if reach_all.size == 0:
        return row, col
    hub = reach_all[0]  # all such states reach each other, so one of them can stand for all
    others = np.arange(S)
    row = np.concatenate((row, reach_all, np.full(S, hub)))
    return row, np.concatenate((col, np.full(reach_all.size, hub), others))
