"""Certify that the optimal gain is not the same in all states, so that no bracket can close."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.kernels.layout import BOX, FREE, PLAIN
from spanrl.planning.problem import Problem, Vector

Edges = tuple[NDArray[np.int64], NDArray[np.int64]]

_MARGIN = 1e-9
_DUST = 1e-14  # less mass than this is rounding
_MOST_EDGES = 5 * 10**7


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

    With d = Lv − v, whoever maximises can be held to max d on a set of states that no action leaves, against the other side's rows at v;
    and gets at least min d on a set that the greedy actions do not leave. In the optimistic sense nature is on the maximiser's side: *no
    action* then means no action and no model of the set, and the greedy actions come with their rows at v. In the pessimistic sense
    it is the other way round.
    """
    choice = problem.best(v, most=0.0)
    d = choice.value - v
    every = np.arange(problem.n_pairs)
    optimistic = problem.sign > 0
    above = _possible(problem, every) if optimistic else _chosen(problem, v, every)
    below = _chosen(problem, v, choice.pair) if optimistic else _possible(problem, choice.pair)
    if above is None or below is None:
        return None
    label, closed = closed_components(problem.n_states, *above)
    highest = np.full(label.max() + 1, -np.inf)
    np.maximum.at(highest, label, d)
    worst = closed[np.argmin(highest[closed])]
    label_up, closed_up = closed_components(problem.n_states, *below)
    lowest = np.full(label_up.max() + 1, np.inf)
    np.minimum.at(lowest, label_up, d)
    best = closed_up[np.argmax(lowest[closed_up])]
    noise = problem.rounding * float(max(np.abs(choice.value).max(), np.abs(v).max()))
    low, high = float(lowest[best]) - noise, float(highest[worst]) + noise
    if low <= high + _MARGIN * float(np.ptp(d)):
        return None
    return int(np.argmax(label_up == best)), int(np.argmax(label == worst)), low, high


def _chosen(problem: Problem, v: Vector, pairs: NDArray[np.int64]) -> Edges | None:
    """Return the edges of the rows that attain the inner value of ``pairs`` at v; None where they would be too many."""
    m = problem.arrays
    if m.kind == BOX:
        spread = np.where(m.rest[pairs] > 0, m.slack[pairs] / np.maximum(m.rest[pairs], 1e-300), 0.0)
        if np.minimum(spread, problem.n_states).sum() > _MOST_EDGES:
            return None
    ptr, succ, _ = problem.rows(v, pairs)
    state = np.repeat(np.arange(problem.n_states), np.diff(m.pair_ptr))[pairs]
    return np.repeat(state, np.diff(ptr)), succ.astype(np.int64)


def _possible(problem: Problem, pairs: NDArray[np.int64]) -> Edges:
    """Return the edges s → s' that some model of the set makes possible under ``pairs``.

    States that may reach every state are joined through one of them, the hub, which is given edges to all: nothing of size S².
    """
    m, S = problem.arrays, problem.n_states
    asked = np.zeros(problem.n_pairs, dtype=bool)
    asked[pairs] = True
    pair_state = np.repeat(np.arange(S), np.diff(m.pair_ptr))
    pair = np.repeat(np.arange(problem.n_pairs), np.diff(m.succ_ptr))
    keep, wide = asked[pair], np.zeros(problem.n_pairs, dtype=bool)
    extra: list[Edges] = []
    if m.kind == BOX:
        free = m.slack > _DUST
        keep &= (m.low > 0) | ((m.room > 0) & free[pair])
        wide = asked & free & ((m.slack == FREE) | (m.rest > 0))
        barred = np.flatnonzero(wide & (np.bincount(pair, m.low + m.room <= 0, problem.n_pairs) > 0))
        if barred.size * S <= _MOST_EDGES:  # rows that exclude some states are written out
            wide[barred] = False
            extra = [_all_but(m.succ[m.succ_ptr[i] : m.succ_ptr[i + 1]], pair_state[i], S) for i in barred]
    elif m.kind != PLAIN:
        wide = asked & (m.slack > _DUST)
    row, col = pair_state[pair[keep]], m.succ[keep].astype(np.int64)
    reach_all = np.unique(pair_state[wide])
    if reach_all.size:
        hub = reach_all[0]
        extra += [(reach_all, np.full(reach_all.size, hub)), (np.full(S, hub), np.arange(S))]
    return np.concatenate([row, *(e[0] for e in extra)]), np.concatenate([col, *(e[1] for e in extra)])


def _all_but(listed: NDArray[np.uint32], state: int, S: int) -> Edges:
    """Return the edges from ``state`` to all states that are not listed."""
    others = np.setdiff1d(np.arange(S), listed)
    return np.full(others.size, state), others
