"""What the planner of a learner works on, kept from episode to episode; and its goal."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

N_SWEEPS, STEP, ROUNDS, WIDTH_BEFORE, NEXT_LOOK, WIDTH, GONE, CHANGES, LIVE = range(9)
"""Where ``PlanWorkspace.progress`` holds the state of a plan: all sweeps, the step length a, sweeps over actions, the width at the last
look at the speed, the round of the next look, the last width, how far v has gone since the first round, actions that changed in the last,
and pairs that could be best in it."""


class Sets(NamedTuple):
    """What an estimate says of every pair, to be written by its ``fill``: a *closed* set, not empty, whose maxima are attained.

    Boxes: listed successors have low ≤ p ≤ low + room and all others 0 ≤ p ≤ rest, where 0 ≤ low ≤ low + room ≤ 1, 0 ≤ rest ≤ 1 and
    Σ low ≤ 1 ≤ Σ (low + room) + rest·(number of the others). A row that is ``flagged`` cannot reach any of the ``closed`` states, of
    which it must list none. A pair never seen has rest 1: it may be anything.
    Boxes with NOSS (:mod:`spanrl.kernels.noss`): ``size`` is x, what may be given up; no state is closed.
    L1 balls: ``low`` is the centre, a distribution, and ``size`` half of the radius; 1 or more allows everything.
    KL balls: ``low`` is the centre, a distribution without zeros, and ``size`` the radius; ∞ allows everything.
    Plain models: ``low`` is the distribution.
    Plain models with a bonus (:mod:`spanrl.kernels.bonus`): ``low`` is the distribution, or γ times it; ``size`` and ``rest`` are x and y,
    with y ≥ x·c for values of a span of c.
    Rewards lie in [r_low, r_high], within [r_min, r_max]; plain models may exceed it, and have both ends equal.
    """

    succ_ptr: Any  # int64 [n_pairs+1]  those of the counts, unless the estimate owns its rows and writes them, too
    succ: Any  # uint32 [n]
    low: Any  # float64 [n]
    room: Any  # float64 [n]
    size: Any  # float64 [n_pairs]  of balls, of a bonus, and of NOSS
    rest: Any  # float64 [n_pairs]
    r_low: Any  # float64 [n_pairs]
    r_high: Any  # float64 [n_pairs]
    flagged: Any  # bool [n_pairs], or empty where the estimate closes no states
    closed: Any  # bool [S], or empty


class Rows(NamedTuple):
    """What is kept of each pair during a plan."""

    slack: Any  # float64 [n_pairs]  1 − Σ low of its box
    stop: Any  # int64 [n_pairs]    where the slack of its box ends if unlisted states alone take it: after so many full ones
    part: Any  # float64 [n_pairs]  and what the next one is given
    narrow: (
        Any  # uint8 [n_pairs]  whether a listed successor has less room than an unlisted one is given; 2: not known yet
    )
    peak: Any  # float64 [n_pairs]  the value of its best listed successor in the last sweep over the pair
    lead: Any  # float64 [n_pairs]  how far v may go before it can be best in its state
    live: Any  # int64 [n_pairs]    the pairs that can be best
    v: Any  # float64 [S]           the values at which this was found out
    top: Any  # float64 [S]         the best value of each state there
    state: Any  # int64 [n_pairs]   the state of each pair


class Ranking(NamedTuple):
    """States by falling value: all of them and, from position S + 1 on, the open ones, where an estimate closes some.

    Its first part is that of a workspace. Without closed states there is no second, and the arrays are those of the workspace.
    """

    order: Any  # uint32 [S or 2S+1]
    keys: Any  # float64 [S or 2S+1]
    prefix: Any  # float64 [S+1 or 2S+2]
    rank: Any  # uint32 [0 or S]    the number of open states before each state
    n_open: Any  # int64 [1]


class PlanWorkspace(NamedTuple):
    """The arrays of a planner."""

    m: Any  # the set, as :class:`spanrl.kernels.layout.Arrays`; its arrays are read-only views
    sets: Any  # the same, to be written, as :class:`Sets`
    owned: bool  # whether the estimate writes the rows, too
    exact: bool  # whether listed successors may have less room than unlisted ones, so that ties must be looked at
    changed: Any  # int64 [n_pairs]   begins with the pairs visited since the last plan
    n_changed: Any  # int64 [1]
    reward: Any  # float64 [n_pairs]  the largest rewards, counted from r_min, read-only: sets.r_high or a view of ``shifted``
    shifted: Any  # float64 [n_pairs]  where they are written, if r_min is not 0
    least: Any  # float64 [n_pairs]   zeros: rewards augmented, B_r reaches down to r_min, from where they count
    ws: Any
    ws_least: Any
    ranked: Any  # Ranking of ``ws``
    ranked_least: Any  # and of ``ws_least``
    rows: Any
    frozen: Any
    differences: Any  # Differences   constraints on the bias, or none
    v: Any  # float64 [S]             the bias
    u: Any  # float64 [S]
    best: Any  # int64 [S]            pairs that attain u
    everyone: Any  # int64 [n_pairs]  all pairs
    progress: Any  # float64 [9]      see the names above
    n_cut: Any  # int64 [1]            plans that ended as they were
    clock: Any  # float64 [5]         seconds per phase, see :mod:`spanrl.kernels.clock`
    moment: Any  # int64 [2]


class Goal(NamedTuple):
    """The goal of a plan: T_c with c = ``span_bound``, no iterate of a span above ``widest``, and how to get there."""

    span_bound: float
    widest: float
    inner: int  # sweeps over frozen actions between two over all
    mixture: bool
    budget: int  # sweeps over actions per call
    most: float = np.inf  # sweeps over actions after which a plan ends as it is: ∞ but for NOSS


class EpisodePolicy(NamedTuple):
    """The policy of an episode: in state s pair ``pairs[2s]``, with probability weight[s] ``pairs[2s+1]``.

    The episode rule has ``allowed`` each of them so many visits, of which some are ``left``.
    """

    pairs: Any  # int64 [2S]
    weight: Any  # float64 [S]
    left: Any  # int64 [2S]
    allowed: Any  # int64 [2S]


def new_rows(pair_ptr: NDArray[np.int64]) -> Rows:
    """Allocate what is kept of each pair; those of state s are ``pair_ptr[s]:pair_ptr[s+1]``."""
    S, k = pair_ptr.size - 1, int(pair_ptr[-1])
    state = np.repeat(np.arange(S), np.diff(pair_ptr))
    stop, live = (np.empty(k, dtype=np.int64) for _ in range(2))
    slack, part, peak, lead = (np.empty(k) for _ in range(4))
    narrow = np.empty(k, dtype=np.uint8)
    return Rows(slack, stop, part, narrow, peak, lead, live, np.empty(S), np.empty(S), state)


def new_ranking(ws: Any, closes: bool) -> tuple[Any, Ranking]:
    """Return a workspace and its ranking; ``closes`` says whether states may be closed."""
    n_open = np.zeros(1, dtype=np.int64)
    if not closes:
        return ws, Ranking(ws.order, ws.keys, ws.prefix, np.empty(0, dtype=np.uint32), n_open)
    S = ws.order.size
    order, keys, prefix = np.zeros(2 * S + 1, dtype=np.uint32), np.zeros(2 * S + 1), np.zeros(2 * S + 2)
    order[:S] = ws.order
    ws = ws._replace(order=order[:S], keys=keys[:S], prefix=prefix[: S + 1])
    return ws, Ranking(order, keys, prefix, np.empty(S, dtype=np.uint32), n_open)


def new_episode_policy(n_states: int) -> EpisodePolicy:
    """Allocate a policy."""
    pairs, left, allowed = (np.empty(2 * n_states, dtype=np.int64) for _ in range(3))
    return EpisodePolicy(pairs, np.empty(n_states), left, allowed)
