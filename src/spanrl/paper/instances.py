"""Seeded random models and vectors on which general statements are checked: small, and full of edge cases.

Ragged action sets, one state, deterministic rows, ties, reward ranges that do not start at 0, spans of 0 and beyond.
"""

from __future__ import annotations

import zlib

import numpy as np

from spanrl.models.bounded import BoundedMDP
from spanrl.models.mdp import MDP
from spanrl.paper.oracles import Vector
from spanrl.paper.oracles_sets import pair_vertices

RANGES = ((0.0, 1.0), (-1.0, 2.0), (2.0, 3.0))


def generator(claim: str) -> np.random.Generator:
    """Return the random generator of a claim: fixed by its id."""
    return np.random.default_rng(zlib.crc32(claim.encode()))


def random_row(rng: np.random.Generator, S: int, *, positive: bool = False) -> Vector:
    """Draw a distribution over S states: dense, in quarters (exact in binary), or a single state."""
    kind = 0 if positive else int(rng.integers(3))
    if kind == 0:
        row = rng.dirichlet(np.ones(S)) * 0.9 + 0.1 / S
        return np.asarray(row / row.sum())
    if kind == 1:
        return np.bincount(rng.integers(0, S, size=4), minlength=S) / 4
    return np.asarray(np.eye(S)[rng.integers(S)])


def random_mdp(rng: np.random.Generator, *, S: int | None = None, A: int | None = None, positive: bool = False) -> MDP:
    """Draw an MDP, by default of up to 4 states and 3 actions, ragged; ``positive``: all p > 0, so unichain."""
    S, A = S or int(rng.integers(1, 5)), A or int(rng.integers(1, 4))
    P = np.array([[random_row(rng, S, positive=positive) for _ in range(A)] for _ in range(S)])
    r_min, r_max = RANGES[rng.integers(3)]
    r = r_min + (r_max - r_min) * (rng.integers(0, 5, size=(S, A)) / 4 if rng.random() < 0.5 else rng.random((S, A)))
    available = rng.random((S, A)) < 0.8
    available[np.arange(S), rng.integers(A, size=S)] = True
    return MDP.from_dense(P, r, available=available, r_min=r_min, r_max=r_max)


def random_vector(rng: np.random.Generator, S: int) -> Vector:
    """Draw a vector, half of the time with ties and exact in binary."""
    if rng.random() < 0.5:
        return rng.integers(-4, 5, size=S) / 2
    return np.asarray(rng.normal(scale=10 ** rng.uniform(-1, 1), size=S))


def random_bound(rng: np.random.Generator, v: Vector) -> float:
    """Draw a span bound around the span of ``v``: 0, a part of it, exactly it, or more."""
    full = float(np.ptp(v))
    return float(rng.choice([0.0, 0.25, 0.5, rng.random(), 1.0, 2.0])) * full


def random_box(
    rng: np.random.Generator, *, S: int | None = None, A: int | None = None, positive: bool = False
) -> BoundedMDP:
    """Draw a box model around a random MDP; some pairs are known exactly, others not at all; one in three is sparse."""
    mdp = random_mdp(rng, S=S, A=A, positive=positive)
    if not positive and rng.random() < 1 / 3:
        return _sparse_box(rng, mdp)
    P, _, available = mdp.to_dense()
    width = rng.choice([0.0, 0.1, 0.3, 1.0], size=(*available.shape, 1))
    low, high = np.maximum(P - width, 0.0), np.minimum(P + width, 1.0)
    r_low, r_high = _reward_intervals(rng, mdp)
    return BoundedMDP.from_dense(low, high, r_low, r_high, available=available, r_min=mdp.r_min, r_max=mdp.r_max)


def _sparse_box(rng: np.random.Generator, mdp: MDP) -> BoundedMDP:
    """Draw a box model that lists a few successors of each pair and gives one shared upper end to the others."""
    P, _, available = mdp.to_dense()
    S, (states, actions) = mdp.n_states, np.nonzero(available)
    succ, low, high, rest = [], [], [], []
    for row in P[states, actions]:
        listed = np.flatnonzero(rng.random(S) < 0.6)
        width = float(rng.choice([0.1, 0.4]))
        succ.append(listed)
        low.append(np.maximum(row[listed] - width, 0.0))
        high.append(np.minimum(row[listed] + width, 1.0))
        # Each state left out must have room for its own probability, and together they must reach 1.
        rest.append(float(np.delete(row, listed).max(initial=0.0)) if rng.random() < 0.7 else 1.0)
    r_low, r_high = (ends[states, actions] for ends in _reward_intervals(rng, mdp))
    ptr = np.concatenate(([0], np.cumsum([one.size for one in succ])))
    return BoundedMDP.from_pairs(
        states,
        actions,
        ptr,
        np.concatenate(succ),
        np.concatenate(low),
        np.concatenate(high),
        rest,
        r_low,
        r_high,
        r_min=mdp.r_min,
        r_max=mdp.r_max,
        n_actions=mdp.n_actions,
    )


def random_ball(rng: np.random.Generator, *, S: int | None = None, A: int | None = None) -> BoundedMDP:
    """Draw a model with L1 balls around a random MDP."""
    mdp = random_mdp(rng, S=S, A=A)
    r_low, r_high = _reward_intervals(rng, mdp)
    radius = rng.choice([0.0, 0.2, 0.7, 2.0], size=r_low.shape)
    return BoundedMDP.l1_ball(mdp, radius, r_low, r_high, r_min=mdp.r_min, r_max=mdp.r_max)


def random_set(rng: np.random.Generator) -> BoundedMDP:
    """Draw a box model or, one time in three, a model with L1 balls."""
    return random_ball(rng) if rng.random() < 1 / 3 else random_box(rng)


def random_model(rng: np.random.Generator) -> MDP | BoundedMDP:
    """Draw an MDP or a bounded MDP."""
    return random_mdp(rng) if rng.random() < 0.5 else random_set(rng)


def random_policy(rng: np.random.Generator, mdp: MDP) -> Vector:
    """Draw a policy [S, A]: in every state deterministic or randomised over the available actions."""
    available = mdp.to_dense()[2]
    weight = np.where(available, rng.random(available.shape) + 1e-3, 0.0)
    sharp = np.eye(mdp.n_actions)[weight.argmax(axis=1)]
    probs = np.where(rng.random((mdp.n_states, 1)) < 0.5, sharp, weight)
    return np.asarray(probs / probs.sum(axis=1, keepdims=True))


def random_member(rng: np.random.Generator, bounded: BoundedMDP) -> MDP:
    """Draw an MDP inside ``bounded``: a vertex or a random mixture of vertices, a reward inside its interval."""
    rows, rewards = [], []
    for i in range(bounded.n_pairs):
        vertices = pair_vertices(bounded, i)
        mix = (
            np.eye(len(vertices))[rng.integers(len(vertices))]
            if rng.random() < 0.3
            else rng.dirichlet(np.ones(len(vertices)))
        )
        rows.append(mix @ vertices)
        rewards.append(bounded.r_low[i] + rng.choice([0.0, 1.0, rng.random()]) * (bounded.r_high[i] - bounded.r_low[i]))
    S = bounded.n_states
    state = bounded.pair_state
    return MDP.from_pairs(
        state,
        bounded.action,
        np.arange(len(rows) + 1) * S,
        np.tile(np.arange(S), len(rows)),
        np.concatenate(rows),
        rewards,
        r_min=bounded.r_min,
        r_max=bounded.r_max,
        n_actions=bounded.n_actions,
    )


def as_bounded(mdp: MDP) -> BoundedMDP:
    """Return the bounded MDP that contains ``mdp`` alone."""
    P, r, available = mdp.to_dense()
    return BoundedMDP.from_dense(P, P, r, r, available=available, r_min=mdp.r_min, r_max=mdp.r_max)


def _reward_intervals(rng: np.random.Generator, mdp: MDP) -> tuple[Vector, Vector]:
    _, r, available = mdp.to_dense()
    width = (mdp.r_max - mdp.r_min) * rng.choice([0.0, 0.2, 1.0], size=r.shape)
    r = np.where(available, r, mdp.r_min)
    return np.maximum(r - width, mdp.r_min), np.minimum(r + width, mdp.r_max)
