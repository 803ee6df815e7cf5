"""Exact gain and bias of policies, optimal gains, hitting times and the constrained optimum, by dense linear algebra.

Functions of a chain (P, r) work on floats and, given arrays of ``fractions.Fraction`` (dtype object), exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from spanrl.paper.oracles import Finite, Vector

Exact = NDArray[Any]

DUST = 1e-14
"""Probabilities of floats below this are rounding: they connect nothing."""


def as_fractions(array: Any, max_denominator: int = 10**6) -> Exact:
    """Return ``array`` with every number replaced by the nearest fraction of a small denominator."""
    nearest = np.frompyfunc(lambda x: Fraction(x).limit_denominator(max_denominator), 1, 1)
    return np.asarray(nearest(np.asarray(array, dtype=object)), dtype=object)


def solve_linear(A: Exact, B: Exact) -> Exact:
    """Solve A X = B; by numpy for floats, by Gauss–Jordan elimination for fractions."""
    if A.dtype != object:
        return np.linalg.solve(A, B)
    n = len(A)
    table = np.hstack([A, B.reshape(n, -1)])
    for i in range(n):
        pivot = next(j for j in range(i, n) if table[j, i] != 0)
        table[[i, pivot]] = table[[pivot, i]]
        table[i] = table[i] / table[i, i]
        for j in range(n):
            if j != i:
                table[j] = table[j] - table[j, i] * table[i]
    return table[:, n:].reshape(B.shape)


def recurrent_classes(P: Exact) -> list[list[int]]:
    """Return the recurrent classes of a chain, by transitive closure."""
    S = len(P)
    reach = (np.array((0 if P.dtype == object else DUST) < P, dtype=bool) | np.eye(S, dtype=bool)).astype(np.int64)
    for _ in range(S.bit_length()):
        reach = (reach @ reach > 0).astype(np.int64)
    both = reach * reach.T
    classes = {tuple(np.flatnonzero(both[s]).tolist()) for s in range(S)}
    return [list(c) for c in sorted(classes) if all(reach[c[0], x] == both[c[0], x] for x in range(S))]


def _identity(like: Exact) -> Exact:
    eye = np.eye(len(like), dtype=np.int64)
    return as_fractions(eye) if like.dtype == object else eye.astype(float)


def stationary_matrix(P: Exact) -> Exact:
    """Return P* = C-lim Pᵏ: stationary distributions of the recurrent classes, weighted by absorption probabilities."""
    S, eye = len(P), _identity(P)
    classes = recurrent_classes(P)
    transient = [s for s in range(S) if not any(s in c for c in classes)]
    star = eye * 0
    for c in classes:
        A = (eye - P)[np.ix_(c, c)].T
        A[-1] = A[-1] * 0 + 1
        mu = solve_linear(A, eye[np.ix_(c, c)][-1])
        for s in c:
            star[s, c] = mu
        if transient:
            into = P[np.ix_(transient, c)].sum(axis=1)
            star[np.ix_(transient, c)] = np.outer(solve_linear((eye - P)[np.ix_(transient, transient)], into), mu)
    return star


def deviation_matrix(P: Exact) -> Exact:
    """Return H = (I − P + P*)⁻¹(I − P*), the Drazin inverse of I − P."""
    eye, star = _identity(P), stationary_matrix(P)
    return solve_linear(eye - P + star, eye - star)


def evaluate(P: Exact, r: Exact) -> tuple[Exact, Exact]:
    """Return the gain g = P*r and the bias h = Hr (so that P*h = 0) of a chain, with one recurrent class or many."""
    return stationary_matrix(P) @ r, deviation_matrix(P) @ r


def decision(model: Finite, probs: Exact) -> tuple[Exact, Exact]:
    """Return (P_d, r_d) of the randomised decision rule ``probs`` [S, K]."""
    return np.einsum("sk,skx->sx", probs, model.P), (probs * model.r).sum(axis=1)


def deterministic_rules(model: Finite) -> Iterator[Vector]:
    """Yield every deterministic decision rule as ``probs`` [S, K]."""
    for choice in product(*(np.flatnonzero(row) for row in model.available)):
        probs = np.zeros(model.r.shape)
        probs[np.arange(model.n_states), list(choice)] = 1.0
        yield probs


def optimal_gain_lp(model: Finite) -> Vector:
    """Return g*(s), multichain included: min Σg over g(s) ≥ pᵀg and g(s) + h(s) ≥ r + pᵀh (Puterman, Sec. 9.3)."""
    S = model.n_states
    states, ks = np.nonzero(model.available)
    move = model.P[states, ks] - np.eye(S)[states]
    upper = np.vstack([np.hstack([move, np.zeros_like(move)]), np.hstack([-np.eye(S)[states], move])])
    limits = np.concatenate([np.zeros(states.size), -model.r[states, ks]])
    result = linprog(np.repeat([1.0, 0.0], S), A_ub=upper, b_ub=limits, bounds=[(None, None)] * (2 * S))
    assert result.success, result.message
    return np.asarray(result.x[:S])


def hitting_times(model: Finite, target: int) -> Vector:
    """Return the least expected number of steps to ``target``, [S], by an LP; inf if some state cannot reach it."""
    S = model.n_states
    edge = (model.P * model.available[..., None]).sum(axis=1) > 0
    reach = (edge | np.eye(S, dtype=bool)).astype(np.int64)
    for _ in range(S.bit_length()):
        reach = (reach @ reach > 0).astype(np.int64)
    if not reach[:, target].all():
        return np.where(np.arange(S) == target, 0.0, np.inf)
    states, ks = np.nonzero(model.available)
    bounds = [(0.0, 0.0 if s == target else None) for s in range(S)]
    result = linprog(
        -np.ones(S), A_ub=np.eye(S)[states] - model.P[states, ks], b_ub=np.ones(states.size), bounds=bounds
    )
    assert result.success, result.message
    return np.asarray(result.x)


def diameter(model: Finite) -> float:
    """Return D = max over s ≠ s' of the least expected time from s to s'; inf where the model does not communicate."""
    return max(float(hitting_times(model, target).max()) for target in range(model.n_states))


def ergodic_coefficient(rows: Exact) -> Any:
    """Return 1 − min over pairs of rows of Σ_j min(p(j), q(j)): the span contraction factor of L with these rows."""
    return 1 - min((np.minimum(p, q).sum() for p, q in combinations(rows, 2)), default=1)


def all_rows(model: Finite) -> Vector:
    """Return the transition rows of all available (extended) actions, [n, S]."""
    return np.asarray(model.P[model.available])


def policy_grid(model: Finite, n: int) -> Iterator[Vector]:
    """Yield randomised decision rules whose probabilities are multiples of 1/n."""

    def simplex(k: int) -> list[tuple[int, ...]]:
        if k == 1:
            return [(n,)]
        return [tuple(np.diff((-1, *cut, n + k - 1)) - 1) for cut in combinations(range(n + k - 1), k - 1)]

    choices = [simplex(int(row.sum())) for row in model.available]
    for rule in product(*choices):
        probs = np.zeros(model.r.shape)
        for s, row in enumerate(rule):
            probs[s, model.available[s]] = np.array(row) / n
        yield probs


def constrained_optimum(model: Finite, c: float, n: int, slack: float = 1e-9) -> tuple[float, Vector | None]:
    """Return the best gain over a grid of policies with constant gain and sp(h) ≤ c, and its rule (else −inf, None)."""
    rules = np.array(list(policy_grid(model, n)))
    P, r = np.einsum("nsk,skx->nsx", rules, model.P), np.einsum("nsk,sk->ns", rules, model.r)
    S = model.n_states
    # One recurrent class: h(0) = 0 and h − Ph + g e = r has one solution, with g in the place of h(0).
    system = np.eye(S) - P
    system[:, :, 0] = 1.0
    regular = np.abs(np.linalg.det(system)) > 1e-9
    g, spans = np.full(len(rules), -np.inf), np.full(len(rules), np.inf)
    x = np.linalg.solve(system[regular], r[regular][..., None])[..., 0]
    g[regular] = x[:, 0]
    x[:, 0] = 0.0
    spans[regular] = x.max(axis=1) - x.min(axis=1)
    for i in np.flatnonzero(~regular):
        gains, h = evaluate(P[i], r[i])
        if np.ptp(gains) <= slack:
            g[i], spans[i] = gains[0], np.ptp(h)
    g[spans > c + slack] = -np.inf
    best = int(np.argmax(g))
    return (float(g[best]), rules[best]) if np.isfinite(g[best]) else (-np.inf, None)
