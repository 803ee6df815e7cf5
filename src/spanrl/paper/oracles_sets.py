"""Inner maxima over boxes and L1 balls of distributions: by an LP, by the O(S) rule, and the sets' vertices."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from spanrl.models.bounded import BoundedMDP

Vector = NDArray[np.float64]
_DIGITS = 12


def pair_box(bounded: BoundedMDP, i: int) -> tuple[Vector, Vector]:
    """Return the ends (low, high), each [S], of the box of pair i, with the states that are not listed filled in."""
    low, high = np.zeros(bounded.n_states), np.full(bounded.n_states, bounded.rest_high[i])
    at = slice(bounded.succ_ptr[i], bounded.succ_ptr[i + 1])
    low[bounded.succ[at]], high[bounded.succ[at]] = bounded.p_low[at], bounded.p_high[at]
    return low, high


def pair_ball(bounded: BoundedMDP, i: int) -> tuple[Vector, float]:
    """Return the centre [S] and the radius of the L1 ball of pair i."""
    centre = np.zeros(bounded.n_states)
    at = slice(bounded.succ_ptr[i], bounded.succ_ptr[i + 1])
    centre[bounded.succ[at]] = bounded.p_low[at]
    return centre, float(bounded.radius[i])


def pair_vertices(bounded: BoundedMDP, i: int) -> Vector:
    """Return the vertices [n, S] of the set of distributions of pair i."""
    return ball_vertices(*pair_ball(bounded, i)) if bounded.is_ball else box_vertices(*pair_box(bounded, i))


def pair_maximum_lp(bounded: BoundedMDP, i: int, v: Vector) -> float:
    """Return max pᵀv over the set of pair i by linear programming."""
    return max_ball_lp(v, *pair_ball(bounded, i)) if bounded.is_ball else max_box_lp(v, *pair_box(bounded, i))


def max_box_lp(v: Vector, low: Vector, high: Vector) -> float:
    """Return max{pᵀv : low ≤ p ≤ high, Σp = 1} by linear programming."""
    bounds = list(zip(low, np.minimum(high, 1.0), strict=True))
    result = linprog(-v, A_eq=np.ones((1, v.size)), b_eq=[1.0], bounds=bounds)
    assert result.success, result.message
    return float(-result.fun)


def max_ball_lp(v: Vector, centre: Vector, radius: float) -> float:
    """Return max{pᵀv : p ≥ 0, Σp = 1, ‖p − centre‖₁ ≤ radius} by an LP with d ≥ |p − centre| as variables."""
    S = v.size
    eye, zero = np.eye(S), np.zeros(S)
    upper = np.block([[eye, -eye], [-eye, -eye], [zero[None], np.ones((1, S))]])
    result = linprog(
        np.concatenate([-v, zero]),
        A_ub=upper,
        b_ub=np.concatenate([centre, -centre, [radius]]),
        A_eq=np.concatenate([np.ones(S), zero])[None],
        b_eq=[1.0],
        bounds=[(0, None)] * (2 * S),
    )
    assert result.success, result.message
    return float(-result.fun)


def max_box_greedy(v: Vector, low: Vector, high: Vector) -> Vector:
    """Return a maximiser of pᵀv over a box: start at the lower ends, fill up from the best state down (App. E)."""
    p = low.copy()
    for s in np.argsort(-v, kind="stable"):
        p[s] += min(high[s] - p[s], max(0.0, 1.0 - p.sum()))
    return p


def max_ball_greedy(v: Vector, centre: Vector, radius: float) -> Vector:
    """Return a maximiser p of pᵀv over an L1 ball: add radius/2 to the best state, take it away from the worst up."""
    p = centre.copy()
    best = int(np.argmax(v))
    p[best] = min(1.0, centre[best] + radius / 2)
    for s in np.argsort(v, kind="stable"):
        if s != best:
            p[s] -= min(p[s], max(0.0, p.sum() - 1.0))
    return p


def box_vertices(low: Vector, high: Vector) -> Vector:
    """Return the vertices [n, S] of {low ≤ p ≤ high, Σp = 1}: all coordinates but one are at an end."""
    S = low.size
    found = []
    for free in range(S):
        others = [s for s in range(S) if s != free]
        for ends in product((0, 1), repeat=S - 1):
            p = np.zeros(S)
            p[others] = [high[s] if end else low[s] for s, end in zip(others, ends, strict=True)]
            p[free] = 1.0 - p.sum()
            if low[free] - 1e-12 <= p[free] <= high[free] + 1e-12:
                found.append(p)
    return _distinct(np.array(found))


def ball_vertices(centre: Vector, radius: float) -> Vector:
    """Return the vertices [n, S] of {p ≥ 0, Σp = 1, ‖p − centre‖₁ ≤ radius}: S − 1 inequalities tight. For S ≤ 4."""
    S = centre.size
    signs = np.array([sign for sign in product((-1.0, 1.0), repeat=S) if abs(sum(sign)) < S]).reshape(-1, S)
    left = np.vstack([-np.eye(S), signs])
    right = np.concatenate([np.zeros(S), radius + signs @ centre])
    systems = np.array([np.vstack([np.ones(S), left[list(tight)]]) for tight in combinations(range(len(left)), S - 1)])
    values = np.array([np.concatenate([[1.0], right[list(tight)]]) for tight in combinations(range(len(left)), S - 1)])
    regular = np.abs(np.linalg.det(systems)) > 0.5  # entries are −1, 0, 1: determinants are integers
    p = np.linalg.solve(systems[regular], values[regular][..., None])[..., 0]
    return _distinct(p[(p @ left.T <= right + 1e-12).all(axis=1)])


def _distinct(rows: Vector) -> Vector:
    _, first = np.unique(np.round(rows, _DIGITS), axis=0, return_index=True)
    return np.maximum(rows[np.sort(first)], 0.0)
