"""Slow, obviously right operators on dense arrays: what the fast ones are checked against.

Nothing here imports kernels or planning. Every model, also a bounded-parameter one, becomes a :class:`Finite` MDP: the
sets of a bounded MDP are polytopes and r + pᵀv is linear, so their vertices are all the extended actions that matter,
and a randomised choice among vertices is any point of the set.

The companions are :mod:`spanrl.paper.oracles_sets` (inner maxima, vertices) and :mod:`spanrl.paper.oracles_chains`
(gain, bias, diameter, constrained optimum).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from spanrl.models.bounded import BoundedMDP
from spanrl.models.mdp import MDP
from spanrl.paper.oracles_sets import pair_vertices

Vector = NDArray[np.float64]
Model = MDP | BoundedMDP


@dataclass(frozen=True, eq=False)
class Finite:
    """A finite MDP: P [S, K, S], r [S, K], available [S, K]; ``action`` [S, K] is what extended action k plays."""

    P: Vector
    r: Vector
    available: NDArray[np.bool_]
    action: NDArray[np.int64]

    @property
    def n_states(self) -> int:
        """S, the number of states."""
        return int(self.P.shape[0])


@lru_cache(maxsize=256)
def finite(model: Model) -> Finite:
    """Return ``model`` as a finite MDP; a bounded one gets an action for every (action, vertex, end of B_r)."""
    if isinstance(model, MDP):
        P, r, available = model.to_dense()
        return Finite(P, r, available, np.broadcast_to(np.arange(model.n_actions), r.shape).copy())
    rows: list[list[tuple[Vector, float, int]]] = [[] for _ in range(model.n_states)]
    for i, (s, a) in enumerate(zip(model.pair_state, model.action, strict=True)):
        ends = sorted({float(model.r_low[i]), float(model.r_high[i])})
        rows[int(s)] += [(p, end, int(a)) for p in pair_vertices(model, i) for end in ends]
    S, K = model.n_states, max(len(row) for row in rows)
    dense = Finite(
        np.zeros((S, K, S)), np.zeros((S, K)), np.zeros((S, K), dtype=bool), np.zeros((S, K), dtype=np.int64)
    )
    for s, row in enumerate(rows):
        for k, (p, end, a) in enumerate(row):
            dense.P[s, k], dense.r[s, k], dense.available[s, k], dense.action[s, k] = p, end, True, a
    return dense


def span(v: Vector) -> float:
    """Return sp(v) = max v − min v."""
    return float(np.max(v) - np.min(v))


def q_values(model: Finite, v: Vector, missing: float = -np.inf) -> Vector:
    """Return r(s, k) + p(·|s, k)ᵀv, [S, K]; ``missing`` where the action does not exist."""
    return np.where(model.available, model.r + model.P @ v, missing)


def bellman(model: Finite, v: Vector) -> Vector:
    """Return Lv(s) = max_k [r + pᵀv]."""
    return np.asarray(q_values(model, v).max(axis=1))


def lowest(model: Finite, v: Vector) -> Vector:
    """Return v̲(s) = min_k [r + pᵀv], the pessimistic end over action, reward and transition."""
    return np.asarray(q_values(model, v, np.inf).min(axis=1))


def truncate(v: Vector, c: float) -> Vector:
    """Return Γ_c v(s) = min{v(s), min v + c}."""
    return np.minimum(v, np.min(v) + c)


def span_bellman(model: Finite, v: Vector, c: float) -> Vector:
    """Return T_c v = Γ_c L v."""
    return truncate(bellman(model, v), c)


def span_bellman_lp(model: Finite, v: Vector, c: float) -> tuple[Vector, Vector] | None:
    """Return max over D(c, v) of L_d v, and a maximiser [S, K], by an LP; None where D(c, v) = ∅ (App. A.2).

    Maximises Σ_s L_d v(s) over d ≥ 0 with Σ_k d(s, k) = 1 and m ≤ L_d v(s) ≤ m + c, where m is one more free variable.
    """
    S = model.n_states
    states, ks = np.nonzero(model.available)
    q = q_values(model, v)[states, ks]
    value = np.zeros((S, states.size + 1))
    value[states, np.arange(states.size)] = q
    least, most = -value, value.copy()
    least[:, -1], most[:, -1] = 1.0, -1.0
    one = np.zeros_like(value)
    one[states, np.arange(states.size)] = 1.0
    result = linprog(
        np.append(-q, 0.0),
        A_ub=np.vstack([least, most]),
        b_ub=np.concatenate([np.zeros(S), np.full(S, c)]),
        A_eq=one,
        b_eq=np.ones(S),
        bounds=[(0, None)] * states.size + [(None, None)],
    )
    if not result.success:
        return None
    d = np.zeros(model.r.shape)
    d[states, ks] = result.x[:-1]
    return value[:, :-1] @ result.x[:-1], d


def projection_distance_lp(v: Vector, c: float) -> float:
    """Return min over z with sp(z) ≤ c of sp(z − v), by linear programming."""
    S = v.size
    eye, one, zero = np.eye(S), np.ones((S, 1)), np.zeros((S, 1))
    # Variables z [S], lowest z, lowest z − v, and the span t of z − v, which is minimised.
    constraints = np.block(
        [
            [-eye, one, zero, zero],
            [eye, -one, zero, zero],
            [-eye, zero, one, zero],
            [eye, zero, -one, -one],
        ]
    )
    limits = np.concatenate([np.zeros(S), np.full(S, c), -v, v])
    result = linprog(np.eye(S + 3)[-1], A_ub=constraints, b_ub=limits, bounds=[(None, None)] * (S + 2) + [(0, None)])
    assert result.success, result.message
    return float(result.fun)


def span_lp_gain(model: Finite, c: float) -> float:
    """Return min g over g + h(s) − pᵀh ≥ r(s, a), h(s) − h(s') ≤ c: the tempting but wrong LP (remark, App. A.2)."""
    S = model.n_states
    states, ks = np.nonzero(model.available)
    optimality = np.hstack([-np.ones((states.size, 1)), model.P[states, ks] - np.eye(S)[states]])
    differences = np.array([np.eye(S)[s] - np.eye(S)[x] for s in range(S) for x in range(S) if s != x]).reshape(-1, S)
    spans = np.hstack([np.zeros((len(differences), 1)), differences])
    result = linprog(
        np.eye(S + 1)[0],
        A_ub=np.vstack([optimality, spans]),
        b_ub=np.concatenate([-model.r[states, ks], np.full(len(differences), c)]),
        bounds=[(None, None)] * (S + 1),
    )
    assert result.success, result.message
    return float(result.fun)


def fixed_point(model: Finite, c: float = np.inf, tol: float = 1e-10, limit: int = 200_000) -> tuple[float, Vector]:
    """Return (g⁺, h⁺) of T_c h = h + g e to ``tol``, by averaging, v ← (v + T_c v)/2, which converges for every c < ∞.

    The certificate is min(T_c v − v) ≤ g⁺ ≤ max(T_c v − v). Raises where it does not close, as on a multichain model
    with c = ∞.
    """
    h = np.zeros(model.n_states)
    for _ in range(limit):
        step = span_bellman(model, h, c) - h
        if span(step) <= tol:
            return float(step.max() + step.min()) / 2, h - h.min()
        h = h + step / 2
        h -= h[0]
    raise ArithmeticError(f"fixed_point: the bracket is still {span(step):g} wide after {limit} sweeps.")
