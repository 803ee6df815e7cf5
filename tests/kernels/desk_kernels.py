"""The kernels of the learners' planner on a whole desk: each takes only the arrays that it needs."""

from __future__ import annotations

import numpy as np

from spanrl.kernels import choosing, extended
from spanrl.kernels.backups import sorted_box_values
from spanrl.kernels.desk import LIVE, Desk
from spanrl.kernels.frozen import freeze, sweep_frozen
from spanrl.kernels.layout import PLAIN
from spanrl.kernels.order import rank_open, rank_states


def start_planning(desk: Desk, from_bias: bool) -> None:
    extended.start_planning(desk.progress, desk.rows.lead, desk.v, from_bias)


def rank(desk: Desk, v: np.ndarray) -> None:
    """Rank all states, and the open ones where some are closed; plain models need no order."""
    if desk.m.kind != PLAIN:
        rank_states(1.0, v, desk.ws)
        if desk.sets.closed.size:
            rank_open(desk.sets.closed, desk.ws, desk.ranked)


def sweep(desk: Desk, v: np.ndarray) -> None:
    """Sweep over all pairs that can be best at v, at which the states must be ranked."""
    extended._sweep(
        desk.m, desk.sets.flagged, desk.exact, desk.reward, desk.ws, desk.ranked, desk.rows, v, desk.progress, desk.u,
        desk.best,
    )  # fmt: skip


def first_box_sweep(desk: Desk, q: np.ndarray) -> None:
    m, ws, rows, ranked = desk.m, desk.ws, desk.rows, desk.ranked
    rows.narrow[:] = 2
    n = extended._first_box_sweep(
        m.succ_ptr, m.succ, m.low, m.rest, desk.reward, ws.pairs, ranked.keys, ranked.prefix, ws.w, rows.slack, rows.stop,
        rows.part, rows.peak, desk.sets.flagged, ranked.n_open[0], desk.exact, ws.todo, q,
    )  # fmt: skip
    _walk_what_is_due(desk, n, q)


def box_sweep(desk: Desk, pairs: np.ndarray, q: np.ndarray) -> None:
    m, ws, rows, ranked = desk.m, desk.ws, desk.rows, desk.ranked
    n = extended._box_sweep(
        m.succ_ptr, m.succ, m.low, m.rest, desk.reward, pairs, ranked.keys, ranked.prefix, ws.w, rows.stop, rows.part,
        rows.peak, desk.exact, ws.todo, q,
    )  # fmt: skip
    _walk_what_is_due(desk, n, q)


def _walk_what_is_due(desk: Desk, n: int, q: np.ndarray) -> None:
    m, ws, rows, ranked = desk.m, desk.ws, desk.rows, desk.ranked
    n = extended.keep_due(
        ws.todo, n, rows.peak, ranked.keys, rows.stop, rows.narrow, m.room, m.succ_ptr, m.rest, rows.slack
    )
    if desk.sets.flagged.size:
        extended.walk_with_flags(m, desk.sets.flagged, desk.reward, 1.0, ws, ranked, ws.todo[:n], q)
    else:
        sorted_box_values(m, desk.reward, 1.0, ws, ws.todo[:n], q)


def freeze_pairs(desk: Desk, pairs: np.ndarray, afresh: bool) -> int:
    """Freeze one pair per state, as nature answers at the values that were swept last; return how many changed."""
    parts = desk.m, desk.sets.flagged, desk.reward, desk.ws, desk.ranked, desk.rows, pairs, desk.frozen
    changed: int = freeze(*parts, afresh, desk.owned)
    return changed


def frozen_sweep(desk: Desk, v: np.ndarray, u: np.ndarray, c: float, a: float) -> float:
    width: float = sweep_frozen(desk.frozen, desk.ws.keys, desk.ranked, v, u, c, a)
    return width


def choose(desk: Desk, c: float, room: float, mixture: bool, pairs: np.ndarray, weight: np.ndarray) -> bool:
    parts = desk.m, desk.sets, desk.ws, desk.ranked, desk.rows, desk.least, desk.ws_least, desk.ranked_least
    more = desk.v, desk.best, int(desk.progress[LIVE]), c, room, mixture, pairs, weight
    return bool(choosing.choose(*parts, *more))


def least_values(desk: Desk, cut: np.ndarray) -> None:
    ranked = desk.ws, desk.ranked
    parts = *ranked, desk.rows, desk.least, desk.ws_least, desk.ranked_least
    choosing._least_values(desk.m, desk.sets, *parts, desk.v, cut)


def least_of_boxes(desk: Desk, cut: np.ndarray, todo: np.ndarray, q: np.ndarray) -> int:
    m, ws, rows, ranked = desk.m, desk.ws, desk.rows, desk.ranked
    n: int = choosing._least_of_boxes(
        m.succ_ptr, m.succ, m.low, m.room, m.rest, desk.least, ranked.keys, ranked.prefix, ws.w, rows.slack, rows.stop,
        rows.part, desk.sets.flagged, ranked.n_open[0], cut, todo, q,
    )  # fmt: skip
    return n
