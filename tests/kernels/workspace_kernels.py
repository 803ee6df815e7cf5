"""The kernels of the learners' planner on a whole work: each takes only the arrays that it needs."""

from __future__ import annotations

import numpy as np

from spanrl.kernels import box_sweeps, choosing, extended
from spanrl.kernels.backups import sorted_box_values
from spanrl.kernels.frozen_policy import freeze, sweep_frozen
from spanrl.kernels.layout import PLAIN
from spanrl.kernels.order import rank_open, rank_states
from spanrl.kernels.plan_workspace import LIVE, PlanWorkspace


def start_planning(work: PlanWorkspace, from_bias: bool) -> None:
    extended.start_planning(work.progress, work.rows.lead, work.v, work.differences, from_bias)


def rank(work: PlanWorkspace, v: np.ndarray) -> None:
    """Rank all states, and the open ones where some are closed; plain models need no order."""
    if work.m.kind != PLAIN:
        rank_states(1.0, v, work.ws)
        if work.sets.closed.size:
            rank_open(work.sets.closed, work.ws, work.ranked)


def sweep(work: PlanWorkspace, v: np.ndarray) -> None:
    """Sweep over all pairs that can be best at v, at which the states must be ranked."""
    extended._sweep(
        work.m, work.sets.flagged, work.exact, work.reward, work.ws, work.ranked, work.rows, v, work.progress, work.u,
        work.best,
    )  # fmt: skip


def first_box_sweep(work: PlanWorkspace, q: np.ndarray) -> None:
    m, ws, rows, ranked = work.m, work.ws, work.rows, work.ranked
    rows.narrow[:] = 2
    n = box_sweeps._first_box_sweep(
        m.succ_ptr, m.succ, m.low, m.rest, work.reward, ws.pairs, ranked.keys, ranked.prefix, ws.w, rows.slack, rows.stop,
        rows.part, rows.peak, work.sets.flagged, ranked.n_open[0], work.exact, ws.todo, q,
    )  # fmt: skip
    _walk_what_is_due(work, n, q)


def box_sweep(work: PlanWorkspace, pairs: np.ndarray, q: np.ndarray) -> None:
    m, ws, rows, ranked = work.m, work.ws, work.rows, work.ranked
    n = box_sweeps._box_sweep(
        m.succ_ptr, m.succ, m.low, m.rest, work.reward, pairs, ranked.keys, ranked.prefix, ws.w, rows.stop, rows.part,
        rows.peak, work.exact, ws.todo, q,
    )  # fmt: skip
    _walk_what_is_due(work, n, q)


def _walk_what_is_due(work: PlanWorkspace, n: int, q: np.ndarray) -> None:
    m, ws, rows, ranked = work.m, work.ws, work.rows, work.ranked
    n = box_sweeps.keep_due(
        ws.todo, n, rows.peak, ranked.keys, rows.stop, rows.narrow, m.room, m.succ_ptr, m.rest, rows.slack
    )
    if work.sets.flagged.size:
        box_sweeps.walk_with_flags(m, work.sets.flagged, work.reward, 1.0, ws, ranked, ws.todo[:n], q)
    else:
        sorted_box_values(m, work.reward, 1.0, ws, ws.todo[:n], q)


def freeze_pairs(work: PlanWorkspace, pairs: np.ndarray, afresh: bool) -> int:
    """Freeze one pair per state, as nature answers at the values that were swept last; return how many changed."""
    parts = work.m, work.sets.flagged, work.reward, work.ws, work.ranked, work.rows, pairs, work.frozen
    changed: int = freeze(*parts, afresh, work.owned)
    return changed


def frozen_sweep(work: PlanWorkspace, v: np.ndarray, u: np.ndarray, c: float, a: float) -> float:
    width: float = sweep_frozen(work.frozen, work.ws.keys, work.ranked, v, u, c, work.differences, a)
    return width


def choose(work: PlanWorkspace, c: float, room: float, mixture: bool, pairs: np.ndarray, weight: np.ndarray) -> bool:
    parts = work.m, work.sets, work.ws, work.ranked, work.rows, work.least, work.ws_least, work.ranked_least
    more = work.v, work.best, int(work.progress[LIVE]), c, room, mixture, pairs, weight
    return bool(choosing.choose(*parts, *more))


def least_values(work: PlanWorkspace, cut: np.ndarray) -> None:
    ranked = work.ws, work.ranked
    parts = *ranked, work.rows, work.least, work.ws_least, work.ranked_least
    choosing._least_values(work.m, work.sets, *parts, work.v, cut)


def least_of_boxes(work: PlanWorkspace, cut: np.ndarray, todo: np.ndarray, q: np.ndarray) -> int:
    m, ws, rows, ranked = work.m, work.ws, work.rows, work.ranked
    n: int = choosing._least_of_boxes(
        m.succ_ptr, m.succ, m.low, m.room, m.rest, work.least, ranked.keys, ranked.prefix, ws.w, rows.slack, rows.stop,
        rows.part, work.sets.flagged, ranked.n_open[0], cut, todo, q,
    )  # fmt: skip
    return n
