"""Desks with random sets, as a planner has them in the middle of a run, and what their pairs are worth, obviously right."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spanrl.confidence.regions import new_ends
from spanrl.kernels.desk import Desk, new_rows
from spanrl.kernels.frozen import new_frozen
from spanrl.kernels.layout import BALL, BOX, FREE, Arrays, new_workspace


class Sample(NamedTuple):
    """A desk, the visits of its pairs, and its sets as dense arrays."""

    desk: Desk
    visits: np.ndarray
    low: np.ndarray  # [n_pairs, S]
    high: np.ndarray  # [n_pairs, S]; balls: the radius in all states


def random_box(rng: np.random.Generator, S: int, ptr: list[int], listed: int = 6) -> Sample:
    """Return boxes: wide and narrow rests, rests of 0, rows that allow everything, rows without listed successors.

    As in the sets of learners, whose radii are larger where something was seen, a listed successor has room for ``rest`` at least: only
    then does it not matter who of two states of equal value is given it.
    """
    k = ptr[-1]
    visits, rest, rows = np.ones(k, dtype=np.int64), np.empty(k), []
    low, high = np.zeros((k, S)), np.empty((k, S))
    for i in range(k):
        n = int(rng.integers(0, min(listed, S) + 1))
        who = np.sort(rng.choice(S, n, replace=False))
        p, width = rng.dirichlet(np.ones(max(n, 1)))[:n], rng.choice([0.0, 0.01, 0.1, 0.5])
        rest[i] = rng.choice([0.0, 1e-4, 1 / (3 * S), 0.01, 0.1, 0.3, 0.7, 1.0])
        if n == 0:
            visits[i], rest[i] = rng.integers(0, 2), max(rest[i], 1.25 / S)  # all of the mass is unlisted
        free = visits[i] == 0 or rest[i] >= 1.0
        low[i, who] = 0.0 if free else np.minimum(np.maximum(p - width, 0.0), 1.0 - rest[i])
        high[i] = 1.0 if free else rest[i]
        high[i, who] = 1.0 if free else np.maximum(np.minimum(p + width, 1.0), low[i, who] + rest[i])
        rows.append(who)
    return _sample(rng, BOX, S, ptr, rows, visits, low, high, rest)


def random_ball(rng: np.random.Generator, S: int, ptr: list[int], listed: int = 6) -> Sample:
    """Return balls of radius 0 to 2 and more; pairs never seen have no centre."""
    k = ptr[-1]
    visits, rows = np.ones(k, dtype=np.int64), []
    low, high = np.zeros((k, S)), np.empty((k, S))
    for i in range(k):
        n = int(rng.integers(0, min(listed, S) + 1))
        who = np.sort(rng.choice(S, n, replace=False))
        low[i, who] = rng.dirichlet(np.ones(max(n, 1)))[:n]
        visits[i] = n > 0
        high[i] = rng.choice([0.0, 0.05, 0.3, 1.0, 2.0, 3.0]) if n else 2.0
        rows.append(who)
    return _sample(rng, BALL, S, ptr, rows, visits, low, high, np.ones(k))


def ragged_ptr(rng: np.random.Generator, S: int, A: int) -> list[int]:
    """Return where the pairs of each state begin; states have 1 to A."""
    return [0, *np.cumsum(rng.integers(1, A + 1, S)).tolist()]


def _sample(
    rng: Any, kind: int, S: int, ptr: list[int], rows: Any, visits: Any, low: Any, high: Any, rest: Any
) -> Sample:
    k, succ_ptr = ptr[-1], np.concatenate(([0], np.cumsum([who.size for who in rows]))).astype(np.int64)
    ends = new_ends(k, int(succ_ptr[-1]))
    row, succ = np.repeat(np.arange(k), np.diff(succ_ptr)), np.concatenate(rows).astype(np.uint32)
    ends.low[:], ends.rest[:] = low[row, succ], rest
    ends.room[:] = 0.0 if kind == BALL else high[row, succ] - low[row, succ]
    ends.slack[:] = high[:, 0] / 2 if kind == BALL else np.nan  # boxes are closed in the first sweep
    ends.r_high[:] = np.round(rng.random(k), 1)
    parts = (succ_ptr, succ, ends.low, ends.room, ends.slack, ends.rest)
    model = Arrays(kind, read_only(np.array(ptr)), *map(read_only, parts))
    one, other = (new_workspace(S, k, succ.size) for _ in range(2))
    desk = Desk(
        model, ends, read_only(ends.r_high), read_only(np.zeros(k)), one, other, new_rows(np.array(ptr)),
        new_frozen(S, succ.size * 2 + 1), np.zeros(S), np.empty(S), np.empty(S, dtype=np.int64), np.arange(k),
        np.zeros(9), np.zeros(5), np.zeros(2, dtype=np.int64),
    )  # fmt: skip
    for part in (*one[8:11], *other[8:11], desk.rows.part, desk.rows.lead, *desk.frozen[4:8], desk.u):
        part[:] = np.nan  # what nobody has written must not be used
    return Sample(desk, visits, low, high)


def copy_of(sample: Sample) -> Sample:
    """Return the same sets on a desk that nobody has worked at."""
    desk, S = sample.desk, sample.low.shape[1]
    k, n = desk.m.slack.size, desk.m.succ.size
    ends = type(desk.ends)(*(part.copy() for part in desk.ends))
    model = desk.m._replace(
        low=read_only(ends.low), room=read_only(ends.room), slack=read_only(ends.slack), rest=read_only(ends.rest)
    )
    one, other = (new_workspace(S, k, n) for _ in range(2))
    fresh = desk._replace(
        m=model, ends=ends, reward=read_only(ends.r_high), ws=one, ws_least=other, rows=new_rows(desk.m.pair_ptr),
        frozen=new_frozen(S, desk.frozen.succ.size), v=desk.v.copy(), u=np.full(S, np.nan), best=desk.best.copy(),
        progress=np.zeros(9), clock=np.zeros(5), moment=np.zeros(2, dtype=np.int64),
    )  # fmt: skip
    return sample._replace(desk=fresh)


def value_vectors(rng: np.random.Generator, S: int) -> list[np.ndarray]:
    """Return values with and without ties, far from 0, and all equal."""
    return [
        rng.normal(size=S), rng.integers(0, 3, S).astype(float), np.round(rng.random(S), 1) - 40.0,
        np.zeros(S), 100.0 * rng.random(S), (rng.random(S) < 0.1).astype(float),
    ]  # fmt: skip


def max_over_box(v: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Fill the best states first: O(S) a pair."""
    p, mass = low.copy(), 1.0 - low.sum()
    for s in np.argsort(-v, kind="stable"):
        give = min(high[s] - low[s], max(mass, 0.0))
        p[s] += give
        mass -= give
    return float(p @ v)


def max_over_ball(v: np.ndarray, centre: np.ndarray, radius: float) -> float:
    """Give radius/2 to the best state and take it from the worst; a ball without a centre allows everything."""
    if radius >= 2.0:
        return float(v.max())
    p, best = centre.copy(), int(np.argmax(v))
    p[best] = min(1.0, p[best] + radius / 2)
    for s in np.argsort(v, kind="stable"):
        excess = p.sum() - 1.0
        if s != best and excess > 0:
            p[s] -= min(excess, p[s])
    return float(p @ v)


def inner_value(sample: Sample, i: int, v: np.ndarray) -> float:
    """Return max{pᵀv : p in set i}."""
    if sample.desk.m.kind == BALL:
        return max_over_ball(v, sample.low[i], float(sample.high[i, 0]))
    return max_over_box(v, sample.low[i], sample.high[i])


def pair_values(sample: Sample, v: np.ndarray, sign: float = 1.0) -> np.ndarray:
    """Return r(i) + max{pᵀv} of every pair; with sign −1 min{pᵀv} alone, as rewards reach down to where they count from."""
    reward = sample.desk.reward if sign > 0 else sample.desk.least
    return np.array([reward[i] + sign * inner_value(sample, i, sign * v) for i in range(reward.size)])


def is_free(sample: Sample) -> np.ndarray:
    """Return which boxes allow everything, once they are closed."""
    return np.asarray(sample.desk.m.slack == FREE)


def read_only(array: Any) -> Any:
    """Return a view as planners have them: one type for all, so that kernels compile once."""
    view = array.view()
    view.flags.writeable = False
    return view
