"""The kernels of the learners' planner on a whole desk: each takes only the arrays that it needs."""

from __future__ import annotations

import numpy as np

from spanrl.kernels import choosing, extended
from spanrl.kernels.backups import sorted_box_values
from spanrl.kernels.desk import Desk


def start_planning(desk: Desk, from_bias: bool) -> None:
    extended.start_planning(desk.progress, desk.rows.lead, desk.v, from_bias)


def sweep(desk: Desk, visits: np.ndarray) -> None:
    m, ends = desk.m, desk.ends
    extended._sweep(m, ends.slack, ends.rest, desk.reward, desk.ws, desk.rows, visits, desk.progress, desk.u, desk.best)


def first_box_sweep(desk: Desk, visits: np.ndarray, q: np.ndarray) -> None:
    m, ws, rows, ends = desk.m, desk.ws, desk.rows, desk.ends
    n = extended._first_box_sweep(
        m.succ_ptr, m.succ, m.low, ends.slack, ends.rest, desk.reward, ws.pairs, ws.keys, ws.prefix, ws.w, rows.stop, rows.part,
        rows.turn, rows.peak, visits, ws.todo, q,
    )  # fmt: skip
    sorted_box_values(m, desk.reward, 1.0, ws, ws.todo[:n], q)


def box_sweep(desk: Desk, pairs: np.ndarray, q: np.ndarray) -> None:
    m, ws, rows = desk.m, desk.ws, desk.rows
    n = extended._box_sweep(
        m.succ_ptr, m.succ, m.low, desk.ends.rest, desk.reward, pairs, ws.keys, ws.prefix, ws.w, rows.stop, rows.part, rows.turn,
        ws.todo, q,
    )  # fmt: skip
    sorted_box_values(m, desk.reward, 1.0, ws, ws.todo[:n], q)


def choose(desk: Desk, c: float, room: float, mixture: bool, pairs: np.ndarray, weight: np.ndarray) -> bool:
    parts = desk.m, desk.ws, desk.rows, desk.least, desk.ws_least, desk.v, desk.best, int(desk.progress[8])
    return bool(choosing.choose(*parts, c, room, mixture, pairs, weight))


def least_values(desk: Desk, cut: np.ndarray) -> None:
    choosing._least_values(desk.m, desk.ws, desk.rows, desk.least, desk.ws_least, desk.v, cut)


def least_of_boxes(desk: Desk, cut: np.ndarray, todo: np.ndarray, q: np.ndarray) -> int:
    m, ws, rows = desk.m, desk.ws, desk.rows
    n: int = choosing._least_of_boxes(
        m.succ_ptr, m.succ, m.low, m.rest, desk.least, ws.keys, ws.prefix, ws.w, rows.stop, rows.part, cut, todo, q
    )
    return n
