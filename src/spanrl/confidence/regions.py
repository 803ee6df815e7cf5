"""Sets of plausible MDPs around what was seen: counts → box or L1 ball of every pair, compiled and sparse.

A region is a rule, frozen, with its confidence level. :meth:`law` gives its numbers at a time t, from which :func:`fill_rows` writes the
set of any pairs; :meth:`bounded` gives the whole as a checked ``BoundedMDP``. Rewards are kept in [r_min, r_max], so that the optimistic
one is capped at r_max (paper, footnote in Sec. 6), and probabilities in [0, 1]; a pair never seen may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.radii import bernstein_factors, hoeffding, weissman
from spanrl.kernels.jit import kernel
from spanrl.kernels.layout import BALL, BOX, FREE
from spanrl.models.bounded import BoundedMDP
from spanrl.models.counts import Counts
from spanrl.models.info import ProblemInfo
from spanrl.models.mdp import MDP


class Law(NamedTuple):
    """The numbers of a region at some time, as :func:`fill_rows` takes them."""

    p_log: float
    r_log: float
    p_scale: float
    r_scale: float
    r_min: float
    r_max: float
    n_states: int


class Ends(NamedTuple):
    """What a region says of every pair: as in :class:`spanrl.kernels.layout.Arrays`, and the reward intervals."""

    low: NDArray[np.float64]
    room: NDArray[np.float64]
    slack: NDArray[np.float64]
    rest: NDArray[np.float64]
    r_low: NDArray[np.float64]
    r_high: NDArray[np.float64]


@dataclass(frozen=True)
class BernsteinBox:
    """The paper's set: an interval for each reward and each transition probability (:func:`~spanrl.confidence.radii.bernstein`).

    All successors never seen from a pair share the interval [0, (49/3) α b/max(1, N−1)].
    """

    delta: float | str = 0.05
    p_scale: float = 1.0
    r_scale: float = 1.0
    kind = BOX

    def law(self, t: int, info: ProblemInfo) -> Law:
        """Return the numbers at time t: b = ln(2SAt/δ)."""
        b = log(2 * info.n_states * info.max_actions * t / level(self.delta, t))
        return Law(b, b, float(self.p_scale), float(self.r_scale), info.r_min, info.r_max, int(info.n_states))

    def bounded(self, counts: Counts, t: int, info: ProblemInfo) -> BoundedMDP:
        """Return the set at time t."""
        ends = _fill_all(self.kind, self.law(t, info), counts)
        free = np.repeat(ends.slack == FREE, np.diff(counts.succ_ptr))
        ends.low[free], ends.room[free] = 0.0, 1.0
        table = (info.pair_state, info.action, counts.succ_ptr, counts.succ, ends.low, ends.low + ends.room)
        return BoundedMDP.from_pairs(
            *table, ends.rest, ends.r_low, ends.r_high, r_min=info.r_min, r_max=info.r_max, n_actions=info.n_actions
        )


@dataclass(frozen=True)
class HoeffdingBall:
    """UCRL2's set: an interval for each reward, an L1 ball for each transition distribution (Jaksch et al. 2010)."""

    delta: float | str = 0.05
    kind = BALL

    def law(self, t: int, info: ProblemInfo) -> Law:
        """Return the numbers at time t: ln(2At/δ) for transitions, ln(2SAt/δ) for rewards."""
        S, A, delta = int(info.n_states), info.max_actions, level(self.delta, t)
        return Law(log(2 * A * t / delta), log(2 * S * A * t / delta), 1.0, 1.0, info.r_min, info.r_max, S)

    def bounded(self, counts: Counts, t: int, info: ProblemInfo) -> BoundedMDP:
        """Return the set at time t. A pair never seen has its centre, of no meaning, at state 0 and radius 2."""
        ends = _fill_all(self.kind, self.law(t, info), counts)
        unseen = counts.n == 0
        at = counts.succ_ptr[:-1][unseen]
        ptr = counts.succ_ptr + np.concatenate(([0], np.cumsum(unseen)))
        succ, low = np.insert(counts.succ, at, 0), np.insert(ends.low, at, 1.0)
        nothing = np.zeros(info.n_pairs)
        centre = MDP.from_pairs(info.pair_state, info.action, ptr, succ, low, nothing, n_actions=info.n_actions)
        radius = np.minimum(2 * ends.slack, 2.0)
        return BoundedMDP.l1_ball(centre, radius, ends.r_low, ends.r_high, r_min=info.r_min, r_max=info.r_max)


Region = BernsteinBox | HoeffdingBall


def level(delta: float | str, t: int) -> float:
    """Return δ, or with "rsqrt" δ_k = 1/√t_k as the authors' program had it."""
    return 1.0 / sqrt(t) if isinstance(delta, str) else float(delta)


def new_ends(n_pairs: int, n_listed: int) -> Ends:
    """Allocate the arrays of a set."""
    return Ends(*(np.empty(n_listed) for _ in range(2)), *(np.empty(n_pairs) for _ in range(4)))


def _fill_all(kind: int, law: Law, counts: Counts) -> Ends:
    ends = new_ends(counts.n_pairs, counts.succ.size)
    fill_rows(kind, law, np.arange(counts.n_pairs), counts.n, counts.r_mean, counts.succ_ptr, counts.shares, ends)
    return ends


@kernel
def fill_rows(kind, law, pairs, n, r_mean, succ_ptr, shares, ends):
    """Write the sets of ``pairs``; a box that allows everything is marked FREE and has no rows. ``law`` comes from the region."""
    p_log, r_log, p_scale, r_scale, r_min, r_max, S = law
    low, room, slack, rest, r_low, r_high = ends
    p_hat, p_error, r_error, inverse = shares
    p_root, p_linear = bernstein_factors(p_log, p_scale)
    r_root, r_linear = bernstein_factors(r_log, r_scale)
    size = r_max - r_min
    for i in pairs:
        N = n[i]
        if N == 0:
            slack[i], rest[i], r_low[i], r_high[i] = (FREE if kind == BOX else 1.0), 1.0, r_min, r_max
            continue
        radius = r_root * r_error[i] + r_linear * size * inverse[i] if kind == BOX else hoeffding(N, r_log, size)
        r_low[i], r_high[i] = max(r_min, r_mean[i] - radius), min(r_max, r_mean[i] + radius)
        first, end = succ_ptr[i], succ_ptr[i + 1]
        if kind == BALL:
            slack[i] = weissman(N, S, p_log) / 2.0
            for j in range(first, end):
                low[j], room[j] = p_hat[j], 0.0
            continue
        unseen = p_linear * inverse[i]  # the radius of a successor never seen; every other one is larger
        if unseen >= 1.0:
            slack[i], rest[i] = FREE, 1.0
            continue
        total = 0.0
        for j in range(first, end):
            beta = p_root * p_error[j] + unseen
            low[j] = max(0.0, p_hat[j] - beta)
            room[j] = min(1.0, p_hat[j] + beta) - low[j]
            total += low[j]
        slack[i], rest[i] = max(0.0, 1.0 - total), unseen
