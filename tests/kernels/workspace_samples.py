"""Desks with random sets, as a planner has them in the middle of a run, and what their pairs are worth, obviously right.

Boxes are all that :class:`spanrl.kernels.plan_workspace.Sets` allows, not only what a Bernstein bound would write.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.frozen_policy import new_frozen_policy
from spanrl.kernels.layout import BALL, BOX, KL, PLAIN, Arrays, new_workspace
from spanrl.kernels.plan_workspace import PlanWorkspace, Sets, new_ranking, new_rows
from spanrl.kernels.projection import new_differences


class Sample(NamedTuple):
    """A work, and its sets as dense arrays."""

    work: PlanWorkspace
    low: np.ndarray  # [n_pairs, S]
    high: np.ndarray  # [n_pairs, S]; balls: the radius in all states


def random_box(
    rng: np.random.Generator, S: int, ptr: list[int], listed: int = 6, *, closes: bool = False, hub: bool = False
) -> Sample:
    """Return boxes of all kinds: rows that list none, some or all; rests of 0 to 1; lower ends that sum to 1 or less.

    Rooms are 0 and more, also less than ``rest``, so that it matters who of two states of equal value is given any. ``closes`` closes some
    states, which some rows then cannot reach. With ``hub`` every row goes to state 0, with a tenth at least: all policies have one class.
    """
    k, rest, rows = ptr[-1], np.empty(ptr[-1]), []
    low, high = np.zeros((k, S)), np.empty((k, S))
    closed, flagged = np.zeros(S if closes else 0, dtype=bool), np.zeros(k if closes else 0, dtype=bool)
    if closes:
        closed[:], flagged[:] = rng.random(S) < rng.choice([0.2, 0.7]), rng.random(k) < 0.6
        closed[0 if hub else rng.integers(S)] = False
    for i in range(k):
        within = np.flatnonzero(~closed) if closes and flagged[i] else np.arange(S)
        n = within.size if rng.random() < 0.15 else int(rng.integers(0, min(listed, within.size) + 1))
        who = np.sort(rng.choice(within, n, replace=False))
        if hub:
            who = np.union1d(who, [0])
        high[i] = 0.0
        low[i, who], room, rest[i] = _random_row(rng, S, who.size, within.size - who.size, hub)
        high[i, within], high[i, who] = rest[i], np.minimum(low[i, who] + room, 1.0)
        rows.append(who)
    return _sample(rng, BOX, S, ptr, rows, low, high, rest, (flagged, closed))


def _random_row(rng: Any, S: int, n: int, others: int, hub: bool) -> tuple[np.ndarray, np.ndarray, float]:
    """Return (low, room, rest) of a row with n listed successors and so many others: Σ low ≤ 1 ≤ Σ (low + room) + rest·others."""
    rest = float(rng.choice([0.0, 1e-4, 1 / (3 * S), 0.01, 0.1, 0.3, 0.7, 1.0]))
    if n == 0:
        return np.zeros(0), np.zeros(0), max(rest, min(1.0, rng.choice([1.0, 1.25]) / others))
    p, width = rng.dirichlet(np.ones(n)), rng.choice([0.0, 0.01, 0.1, 0.5])
    kind = rng.integers(5)
    low = np.maximum(p - width, 0.0)
    if kind == 0:
        low = rng.multinomial(64, p) / 64.0  # they sum to 1, in binary as well
    if kind == 1:
        low[:] = 0.0
    if hub:
        low *= 0.9
        low[0] += 0.1
    room = np.minimum(1.0 - low, 2.0 * width)
    if kind == 2:
        room = np.maximum(room, min(rest, 1.0 - low.max()))  # as where radii are larger for what was seen
    if kind == 3:
        room *= rng.random(n) < 0.5
    for j in rng.permutation(n):
        if (low + room).sum() + rest * others < 1.0:
            room[j] = 1.0 - low[j]
    return low, room, rest


def random_ball(rng: np.random.Generator, S: int, ptr: list[int], listed: int = 6) -> Sample:
    """Return balls of radius 0 to 2 and more; pairs never seen have no centre."""
    k, rows = ptr[-1], []
    low, high = np.zeros((k, S)), np.empty((k, S))
    for i in range(k):
        n = int(rng.integers(0, min(listed, S) + 1))
        who = np.sort(rng.choice(S, n, replace=False))
        low[i, who] = rng.dirichlet(np.ones(max(n, 1)))[:n]
        high[i] = rng.choice([0.0, 0.05, 0.3, 1.0, 2.0, 3.0]) if n else 2.0
        rows.append(who)
    return _sample(rng, BALL, S, ptr, rows, low, high, np.ones(k))


def random_kl(rng: np.random.Generator, S: int, ptr: list[int], listed: int = 6, *, hub: bool = False) -> Sample:
    """Return KL balls of radius 0 to 5; pairs never seen have no centre, and those of one successor a centre at it.

    With ``hub`` every centre is near 1 at state 0, so that all policies have one class.
    """
    k, rows = ptr[-1], []
    low, high = np.zeros((k, S)), np.empty((k, S))
    for i in range(k):
        n = int(rng.integers(0, min(listed, S) + 1))
        who = np.sort(rng.choice(S, n, replace=False))
        low[i, who] = rng.multinomial(1000 - n, rng.dirichlet(np.full(max(n, 1), 0.5)))[:n] + 1.0
        high[i] = rng.choice([0.0, 1e-5, 0.01, 0.3, 2.0, 5.0]) if n else np.inf
        if hub:
            low[i, 0] += 9000.0
            who, high[i] = np.union1d(who, [0]), min(high[i, 0], 2.0)
        low[i] /= max(low[i].sum(), 1.0)
        rows.append(who)
    return _sample(rng, KL, S, ptr, rows, low, high, np.ones(k))


def random_plain(rng: np.random.Generator, S: int, ptr: list[int], listed: int = 6, *, hub: bool = False) -> Sample:
    """Return distributions, in rows of their own; rewards may exceed [0, 1]."""
    k, rows = ptr[-1], []
    low = np.zeros((k, S))
    for i in range(k):
        who = rng.choice(S, int(rng.integers(1, min(listed, S) + 1)), replace=False)
        who = np.union1d(who, [0]) if hub else np.sort(who)
        low[i, who] = rng.dirichlet(np.ones(who.size))
        if hub:
            low[i] *= 0.9
            low[i, 0] += 0.1
        rows.append(who)
    sample = _sample(rng, PLAIN, S, ptr, rows, low, low, np.full(k, np.nan))
    sample.work.sets.r_high[:] = np.round(3.0 * rng.random(k) - 1.0, 1)
    return sample


KINDS: dict[str, Any] = {
    "boxes": random_box,
    "closed": partial(random_box, closes=True),
    "balls": random_ball,
    "KL": random_kl,
    "plain": random_plain,
}
BOXES = {name: KINDS[name] for name in ("boxes", "closed")}
LINEAR = {name: KINDS[name] for name in ("boxes", "closed", "KL", "plain")}
"""Those whose policies are frozen with nature's answer."""


def ragged_ptr(rng: np.random.Generator, S: int, A: int) -> list[int]:
    """Return where the pairs of each state begin; states have 1 to A."""
    return [0, *np.cumsum(rng.integers(1, A + 1, S)).tolist()]


def _sample(
    rng: Any, kind: int, S: int, ptr: list[int], rows: Any, low: Any, high: Any, rest: Any, shut: Any = None
) -> Sample:
    k, succ_ptr = ptr[-1], np.concatenate(([0], np.cumsum([who.size for who in rows]))).astype(np.int64)
    row, succ = np.repeat(np.arange(k), np.diff(succ_ptr)), np.concatenate(rows).astype(np.uint32)
    is_ball = kind in (BALL, KL)
    room = np.zeros(succ.size) if is_ball else high[row, succ] - low[row, succ]
    size = high[:, 0] / (2 if kind == BALL else 1) if is_ball else np.full(k, np.nan)
    flagged, closed = shut or (np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))
    r_high = np.round(rng.random(k), 1)
    sets = Sets(succ_ptr, succ, low[row, succ], room, size, rest, np.zeros(k), r_high, flagged, closed)
    return Sample(_work(kind, np.array(ptr), sets, owned=kind == PLAIN), low, high)


def _work(kind: int, pair_ptr: np.ndarray, sets: Sets, owned: bool, n_frozen: int = 0) -> PlanWorkspace:
    """Return a fresh work, with arrays of the types that planners have."""
    S, k, n = pair_ptr.size - 1, int(pair_ptr[-1]), sets.succ.size
    rows = new_rows(pair_ptr)
    slack = sets.size if kind in (BALL, KL) else rows.slack
    parts = pair_ptr, sets.succ_ptr, sets.succ, sets.low, sets.room, slack, sets.rest
    model = Arrays(kind, *map(read_only, parts))
    one, other = (new_ranking(new_workspace(S, k, n), sets.closed.size > 0) for _ in range(2))
    work = PlanWorkspace(
        model, sets, owned, True, np.arange(k), np.array([k]), read_only(sets.r_high), sets.r_high,
        read_only(np.zeros(k)), one[0], other[0],
        one[1], other[1], rows, new_frozen_policy(S, n_frozen or n), new_differences(None), np.zeros(S), np.empty(S),
        np.empty(S, dtype=np.int64), np.arange(k), np.zeros(9), np.zeros(1, dtype=np.int64), np.zeros(5), np.zeros(2, dtype=np.int64),
    )  # fmt: skip
    for ws in (work.ws, work.ws_least):
        for part in (ws.low, ws.room, ws.q):
            part[:] = np.nan  # what was never written must not be used
    for part in (rows.slack, rows.part, rows.peak, rows.lead, *work.frozen[4:8], work.u):
        part[:] = np.nan
    return work


def copy_of(sample: Sample) -> Sample:
    """Return the same sets on a fresh work."""
    work = sample.work
    sets = Sets(*(part.copy() for part in work.sets))
    fresh = _work(work.m.kind, work.m.pair_ptr.copy(), sets, work.owned)
    fresh.v[:] = work.v
    return sample._replace(work=fresh)


def value_vectors(rng: np.random.Generator, S: int) -> list[np.ndarray]:
    """Return values with and without ties, far from 0, and all equal."""
    return [
        rng.normal(size=S), rng.integers(0, 3, S).astype(float), np.round(rng.random(S), 1) - 40.0,
        np.zeros(S), 100.0 * rng.random(S), (rng.random(S) < 0.1).astype(float), np.full(S, -0.3),
    ]  # fmt: skip


def max_over_box(v: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Fill the best states first: O(S) per pair."""
    p, mass, room = low.copy(), 1.0 - low.sum(), (high - low).tolist()
    for s in np.argsort(-v, kind="stable").tolist():
        if mass <= 0.0:
            break
        give = min(room[s], mass)
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


def max_over_kl(v: np.ndarray, centre: np.ndarray, radius: float) -> float:
    """Follow the multipliers of Filippi, Cappé & Garivier 2010: q ∝ centre/(ν − v), and ν by halvings of (ν − max v)."""
    seen, best = centre > 0, float(v.max())
    if not seen.any() or radius == np.inf:
        return best
    p, z = centre[seen], best - v[seen]
    mean = float(p @ z)
    if mean == 0.0 or radius == 0.0:
        return best - mean

    def divergence(x: float) -> float:  # for ν = max v + mean·x
        ratio = z / mean + x
        return float(p @ np.log(ratio) + np.log(p @ (1 / ratio)))

    if z.min() > 0 and divergence(0.0) <= radius:
        return best - float(np.exp(p @ np.log(z) - radius))
    low, high = -40.0, 40.0  # of ln x
    for _ in range(52):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(np.exp(middle)) > radius else (low, middle)
    q = p / (z / mean + np.exp(high))
    return best - float(q @ z / q.sum())


def inner_value(sample: Sample, i: int, v: np.ndarray) -> float:
    """Return max{pᵀv : p in set i}."""
    if sample.work.m.kind == PLAIN:
        return float(sample.low[i] @ v)
    if sample.work.m.kind == BALL:
        return max_over_ball(v, sample.low[i], float(sample.high[i, 0]))
    if sample.work.m.kind == KL:
        return max_over_kl(v, sample.low[i], float(sample.high[i, 0]))
    return max_over_box(v, sample.low[i], sample.high[i])


def pair_values(sample: Sample, v: np.ndarray, sign: float = 1.0) -> np.ndarray:
    """Return r(i) + max{pᵀv} of every pair; with sign −1 min{pᵀv} alone, as rewards reach down to where they count from."""
    reward = sample.work.reward if sign > 0 else sample.work.least
    return np.array([reward[i] + sign * inner_value(sample, i, sign * v) for i in range(reward.size)])


def read_only(array: Any) -> Any:
    """Return a view as planners have them: one type for all, so that kernels compile once."""
    view = array.view()
    view.flags.writeable = False
    return view
