"""Hypothesis generators: small models, vectors and span bounds that shrink to readable examples.

Probabilities are multiples of 1/8 and rewards of 1/4, so that most arithmetic on them is exact and ties are common.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from spanrl import MDP, BoundedMDP

EIGHTHS = 8
_ENDS = st.integers(0, EIGHTHS)


@st.composite
def rows(draw, n_states):
    """A distribution over ``n_states`` in eighths; the simplest is all mass on state 0."""
    cuts = sorted(draw(st.lists(st.integers(0, EIGHTHS), min_size=n_states - 1, max_size=n_states - 1)))
    return np.diff([0, *cuts, EIGHTHS])[::-1] / EIGHTHS


@st.composite
def reward_ranges(draw):
    """(r_min, r_max), also away from 0."""
    return draw(st.sampled_from([(0.0, 1.0), (-1.0, 2.0), (2.0, 3.0)]))


@st.composite
def mdps(draw, max_states=4, max_actions=3, positive=False):
    """An MDP with ragged action sets; with ``positive`` every transition has probability > 0 (hence unichain)."""
    S, A = draw(st.integers(1, max_states)), draw(st.integers(1, max_actions))
    P = np.array([[draw(rows(S)) for _ in range(A)] for _ in range(S)])
    if positive:
        P = (P + 1 / S) / 2
    r_min, r_max = draw(reward_ranges())
    r = r_min + (r_max - r_min) * np.array(draw(st.lists(st.integers(0, 4), min_size=S * A, max_size=S * A))) / 4
    available = np.array([draw(st.lists(st.booleans(), min_size=A, max_size=A)) for _ in range(S)])
    available[:, 0] |= ~available.any(axis=1)
    return MDP.from_dense(P, r.reshape(S, A), available=available, r_min=r_min, r_max=r_max)


@st.composite
def reward_intervals(draw, mdp):
    """r_low, r_high [S, A] around the rewards of ``mdp``, inside its range."""
    _, r, available = mdp.to_dense()
    size = mdp.r_max - mdp.r_min
    widths = draw(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=r.size, max_size=r.size))
    width = size * np.array(widths).reshape(r.shape)
    r = np.where(available, r, mdp.r_min)
    return np.maximum(r - width, mdp.r_min), np.minimum(r + width, mdp.r_max)


@st.composite
def boxes(draw, max_states=4, max_actions=2, positive=False):
    """A box model around an MDP; widths from 0 (known) to 1 (unknown)."""
    mdp = draw(mdps(max_states, max_actions, positive))
    P, r, available = mdp.to_dense()
    widths = draw(st.lists(st.sampled_from([0.0, 0.125, 0.5, 1.0]), min_size=r.size, max_size=r.size))
    width = np.array(widths).reshape(*r.shape, 1)
    r_low, r_high = draw(reward_intervals(mdp))
    return BoundedMDP.from_dense(
        np.maximum(P - width, 0),
        np.minimum(P + width, 1),
        r_low,
        r_high,
        available=available,
        r_min=mdp.r_min,
        r_max=mdp.r_max,
    )


@st.composite
def balls(draw, max_states=3, max_actions=2):
    """A model with L1 balls around an MDP; radii from 0 (known) to 2 (unknown)."""
    mdp = draw(mdps(max_states, max_actions))
    r_low, r_high = draw(reward_intervals(mdp))
    radii = draw(st.lists(st.sampled_from([0.0, 0.25, 1.0, 2.0]), min_size=r_low.size, max_size=r_low.size))
    return BoundedMDP.l1_ball(
        mdp, np.array(radii).reshape(r_low.shape), r_low, r_high, r_min=mdp.r_min, r_max=mdp.r_max
    )


def bounded_models(max_states=3):
    """A box model or a model with L1 balls."""
    return boxes(max_states) | balls(max_states)


def models(max_states=3):
    """An MDP or a bounded MDP."""
    return mdps(max_states) | bounded_models(max_states)


def vectors(n_states, size=4):
    """A vector [S] of eighths between −size and size, or of any floats there."""
    eighths = st.integers(-EIGHTHS * size, EIGHTHS * size).map(lambda n: n / EIGHTHS)
    entries = eighths | st.floats(-size, size, allow_nan=False, width=32)
    return st.lists(entries, min_size=n_states, max_size=n_states).map(lambda v: np.array(v, dtype=float))


def span_bounds(largest=6):
    """A span bound c ≥ 0: 0, eighths, any float."""
    return st.integers(0, EIGHTHS * largest).map(lambda n: n / EIGHTHS) | st.floats(
        0, largest, allow_nan=False, width=32
    )


@st.composite
def policies(draw, mdp):
    """A policy [S, A] in eighths over the available actions."""
    _, _, available = mdp.to_dense()
    probs = np.zeros(available.shape)
    for s, row in enumerate(available):
        probs[s, row] = draw(rows(int(row.sum())))
    return probs
