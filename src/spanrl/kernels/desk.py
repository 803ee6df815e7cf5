"""What the planner of a learner works on, kept from episode to episode; and what is asked of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Rows(NamedTuple):
    """What is kept of each pair during a plan."""

    stop: Any  # int64 [n_pairs]    where the slack of its box ends if unlisted states alone take it: after so many full ones
    part: Any  # float64 [n_pairs]  and what the next one is given
    turn: Any  # bool [n_pairs]     whether a listed successor had its turn before, at the values of the last sweep over the pair
    peak: Any  # float64 [n_pairs]  the value of the best listed successor in the first sweep
    lead: Any  # float64 [n_pairs]  how far v may go before it can be best in its state
    live: Any  # int64 [n_pairs]    the pairs that can be best
    v: Any  # float64 [S]           the values at which this was found out
    top: Any  # float64 [S]         the best value of each state there
    state: Any  # int64 [n_pairs]   the state of each pair


class Desk(NamedTuple):
    """The arrays of a planner."""

    m: Any  # the set, as :class:`spanrl.kernels.layout.Arrays`; its arrays are read-only views
    ends: Any  # the same, to be written
    reward: Any  # float64 [n_pairs]  ends.r_high, read-only
    least: Any  # float64 [n_pairs]   zeros: rewards augmented, B_r reaches down to r_min, from where they count
    ws: Any
    ws_least: Any
    rows: Any
    frozen: Any
    v: Any  # float64 [S]             the bias
    u: Any  # float64 [S]
    best: Any  # int64 [S]            pairs that attain u
    everyone: Any  # int64 [n_pairs]  all pairs
    progress: Any  # float64 [9]      of :func:`spanrl.kernels.extended.improve`
    clock: Any  # float64 [5]         seconds a phase, see :mod:`spanrl.kernels.clock`
    moment: Any  # int64 [2]


class Goal(NamedTuple):
    """What is asked of the planner: T_c with c = ``span_bound``, no iterate of a span above ``widest``, and how to get there."""

    span_bound: float
    widest: float
    inner: int  # sweeps over frozen actions between two over all
    mixture: bool
    budget: int  # sweeps over actions a call


class Choice(NamedTuple):
    """The policy of an episode: in state s pair ``pairs[2s]``, with probability weight[s] ``pairs[2s+1]``; ``left``: how often at most."""

    pairs: Any  # int64 [2S]
    weight: Any  # float64 [S]
    left: Any  # int64 [2S]


def new_rows(pair_ptr: NDArray[np.int64]) -> Rows:
    """Allocate what is kept of each pair; those of state s are ``pair_ptr[s]:pair_ptr[s+1]``."""
    S, k = pair_ptr.size - 1, int(pair_ptr[-1])
    state = np.repeat(np.arange(S), np.diff(pair_ptr))
    stop, live = (np.empty(k, dtype=np.int64) for _ in range(2))
    part, peak, lead = (np.empty(k) for _ in range(3))
    return Rows(stop, part, np.empty(k, dtype=np.bool_), peak, lead, live, np.empty(S), np.empty(S), state)


def new_choice(n_states: int) -> Choice:
    """Allocate a policy."""
    pairs, left = (np.empty(2 * n_states, dtype=np.int64) for _ in range(2))
    return Choice(pairs, np.empty(n_states), left)
