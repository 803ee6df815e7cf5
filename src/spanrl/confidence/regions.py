"""Sets of plausible MDPs around what was seen: counts → box or L1 ball of every pair, compiled and sparse.

A region is a rule, frozen, with its confidence level. :meth:`law` gives its numbers at a time t, from which :func:`fill_rows` writes the
set of any pairs; :meth:`bounded` gives the whole as a checked ``BoundedMDP``. Rewards are kept in [r_min, r_max], so that the optimistic
one is capped at r_max (paper, footnote in Sec. 6), and probabilities in [0, 1]; a pair never seen may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.radii import bernstein_factors, hoeffding, weissman
from spanrl.kernels.extended import close_box
from spanrl.kernels.jit import kernel, part
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


class Rule(NamedTuple):
    """What a region depends on besides the time, as :func:`law_at` takes it; δ < 0 stands for 1/√t."""

    kind: int
    delta: float
    p_scale: float
    r_scale: float
    r_min: float
    r_max: float
    n_states: int
    max_actions: int


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
        law: Law = law_at(self.rule(info), t)
        return law

    def rule(self, info: ProblemInfo) -> Rule:
        """Return what the set depends on besides the time."""
        return _rule(self.kind, self.delta, self.p_scale, self.r_scale, info)

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
        law: Law = law_at(self.rule(info), t)
        return law

    def rule(self, info: ProblemInfo) -> Rule:
        """Return what the set depends on besides the time."""
        return _rule(self.kind, self.delta, 1.0, 1.0, info)

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


def _rule(kind: int, delta: float | str, p_scale: float, r_scale: float, info: ProblemInfo) -> Rule:
    """Return the rule; δ = "rsqrt" is δ_k = 1/√t_k, as the authors' program had it."""
    level = -1.0 if isinstance(delta, str) else float(delta)
    scales = float(p_scale), float(r_scale), float(info.r_min), float(info.r_max)
    return Rule(kind, level, *scales, int(info.n_states), int(info.max_actions))


def new_ends(n_pairs: int, n_listed: int) -> Ends:
    """Allocate the arrays of a set."""
    return Ends(*(np.empty(n_listed) for _ in range(2)), *(np.empty(n_pairs) for _ in range(4)))


def _fill_all(kind: int, law: Law, counts: Counts) -> Ends:
    ends = new_ends(counts.n_pairs, counts.succ.size)
    fill_rows(kind, law, counts.seen, ends)
    if kind == BOX:
        close_rows(counts.seen, ends)
    return ends


@part
def law_at(rule, t):
    """Return the numbers of a region at time t."""
    delta = 1.0 / np.sqrt(t) if rule.delta < 0.0 else rule.delta
    S, A = float(rule.n_states), float(rule.max_actions)
    r_log = np.log(2.0 * S * A * t / delta)
    p_log = r_log if rule.kind == BOX else np.log(2.0 * A * t / delta)
    return Law(p_log, r_log, rule.p_scale, rule.r_scale, rule.r_min, rule.r_max, rule.n_states)


@part
def fill_rows(kind, law, seen, ends):
    """Write the set of every pair but for the slack of boxes. ``law`` comes from the region.

    Loops run over flat arrays: those become vector instructions.
    """
    if kind == BALL:
        _fill_balls(law, seen, ends)
        return
    _fill_rewards(seen, *bernstein_factors(law.r_log, law.r_scale), law.r_min, law.r_max, ends)
    _fill_probabilities(seen, *bernstein_factors(law.p_log, law.p_scale), ends)


@part
def _fill_balls(law, seen, ends):
    n, r_mean, r_min, r_max = seen.n, seen.r_mean, law.r_min, law.r_max
    for i in range(n.size):
        if n[i] == 0:
            ends.slack[i], ends.rest[i], ends.r_low[i], ends.r_high[i] = 1.0, 1.0, r_min, r_max
            continue
        radius = hoeffding(n[i], law.r_log, r_max - r_min)
        ends.r_low[i], ends.r_high[i] = max(r_min, r_mean[i] - radius), min(r_max, r_mean[i] + radius)
        ends.slack[i] = weissman(n[i], law.n_states, law.p_log) / 2.0
    for j in range(seen.succ_ptr[-1]):
        ends.low[j], ends.room[j] = seen.p_hat[j], 0.0


@kernel
def _fill_rewards(seen, root, linear, r_min, r_max, ends):
    """Write the reward intervals of boxes, capped at [r_min, r_max]."""
    n, mean, error, inverse, low, high = seen.n, seen.r_mean, seen.r_error, seen.inverse, ends.r_low, ends.r_high
    size = r_max - r_min
    for i in range(n.size):
        end = min(r_max, mean[i] + (root * error[i] + linear * size * inverse[i]))
        high[i] = end if n[i] > 0 else r_max
    for i in range(n.size):
        end = max(r_min, mean[i] - (root * error[i] + linear * size * inverse[i]))
        low[i] = end if n[i] > 0 else r_min


@kernel
def _fill_probabilities(seen, root, linear, ends):
    """Write the ends of listed successors, and the interval [0, rest] that those never seen share."""
    p_hat, error, p_inverse, inverse = seen.p_hat, seen.p_error, seen.p_inverse, seen.inverse
    low, room, rest = ends.low, ends.room, ends.rest
    for j in range(seen.succ_ptr[-1]):
        beta = root * error[j] + linear * p_inverse[j]
        lower = max(0.0, p_hat[j] - beta)
        low[j] = lower
        room[j] = min(1.0, p_hat[j] + beta) - lower
    for i in range(rest.size):
        rest[i] = min(1.0, linear * inverse[i])


@kernel
def close_rows(seen, ends):
    """Write the slack of boxes."""
    for i in range(seen.n.size):
        total = 0.0
        for j in range(seen.succ_ptr[i], seen.succ_ptr[i + 1]):
            total += ends.low[j]
        ends.slack[i], ends.rest[i] = close_box(seen.n[i], ends.rest[i], total)
