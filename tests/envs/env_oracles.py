"""Slow and plain: optimal gain and bias by policy iteration, gain by a linear program, diameter by shortest paths.

Nothing here uses spanrl's planning; everything works on the dense arrays P [S, A, S], r [S, A], available [S, A].
"""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array


def optimum(mdp, sweeps=2000):
    """Return (g*, h*, q) with h*(0) = 0 that solve the optimality equation, checked; q [S, A] = r + Ph − g."""
    P, r, available = mdp.to_dense()
    S = mdp.n_states
    v = np.zeros(S)
    for _ in range(sweeps):  # half-lazy value iteration: a start from which policy iteration stays unichain
        v = 0.5 * v + 0.5 * np.where(available, r + P @ v, -np.inf).max(axis=1)
        v -= v[0]
    for _ in range(50):
        d = np.where(available, r + P @ v, -np.inf).argmax(axis=1)
        P_d, r_d = P[np.arange(S), d], r[np.arange(S), d]
        system = np.column_stack([np.ones(S), (np.eye(S) - P_d)[:, 1:]])  # unknowns g, h(1), …, h(S−1)
        solved = np.linalg.solve(system, r_d)
        g, v = solved[0], np.concatenate(([0.0], solved[1:]))
        q = np.where(available, r + P @ v - g, -np.inf)
        if np.abs(q.max(axis=1) - v).max() < 1e-10:
            return g, v, q
    raise AssertionError("policy iteration did not solve the optimality equation")


def gain_by_lp(mdp):
    """Return min g subject to g + h(s) ≥ r(s, a) + p(·|s, a)ᵀh for all pairs."""
    P, r, available = mdp.to_dense()
    s, a = np.nonzero(available)
    A_ub = np.column_stack([-np.ones(s.size), P[s, a] - np.eye(mdp.n_states)[s]])
    cost = np.concatenate(([1.0], np.zeros(mdp.n_states)))
    solution = linprog(cost, A_ub=A_ub, b_ub=-r[s, a], bounds=(None, None))
    assert solution.status == 0
    return solution.fun


def hitting_times(mdp, targets):
    """Return [S, n] the smallest expected steps from every state to each of ``targets``; inf where none is sure."""
    P, _, available = mdp.to_dense()
    S, A = available.shape
    rows = csr_array(P.reshape(S * A, S))
    entries = [zip(*np.nonzero((P[:, :, s] > 0) & available), strict=True) for s in range(S)]
    before = [[(int(s), int(a)) for s, a in entry] for entry in entries]
    return np.column_stack([_shortest(P, rows, available, _proper_policy(before, t), t) for t in targets])


def _proper_policy(before, target):
    """Walk backwards from ``target``: each state takes an action that may come one step nearer; None if one cannot."""
    d, queue = {target: 0}, deque([target])
    while queue:
        for s, a in before[queue.popleft()]:
            if s not in d:
                d[s] = a
                queue.append(s)
    return np.array([d[s] for s in range(len(before))]) if len(d) == len(before) else None


def _shortest(P, rows, available, d, target):
    """Improve a proper policy d until no action brings the target nearer."""
    S = available.shape[0]
    if d is None:
        return np.full(S, np.inf)
    others = np.arange(S) != target
    for _ in range(200):
        tau = np.zeros(S)
        inner = P[np.arange(S), d][np.ix_(others, others)]
        tau[others] = np.linalg.solve(np.eye(S - 1) - inner, np.ones(S - 1))
        steps = np.where(available, 1 + (rows @ tau).reshape(S, -1), np.inf)
        better = steps.min(axis=1) < steps[np.arange(S), d] - 1e-9
        better[target] = False
        if not better.any():
            return tau
        d = np.where(better, steps.argmin(axis=1), d)
    raise AssertionError("shortest-path policy iteration did not end")


def diameter(mdp):
    """Return (D, s, s') with D = max over s ≠ s' of the shortest expected time from s to s'."""
    times = hitting_times(mdp, range(mdp.n_states))
    s, target = np.unravel_index(np.argmax(times), times.shape)
    return times[s, target], int(s), int(target)


def truncated(mdp, v, c):
    """Return T_c v = min(Lv, min Lv + c)."""
    P, r, available = mdp.to_dense()
    Lv = np.where(available, r + P @ v, -np.inf).max(axis=1)
    return np.minimum(Lv, Lv.min() + c)


def step(env, state, action):
    """Return ({next state: probability}, mean reward) of a pair given by its names."""
    mdp = env.mdp
    s, a = [mdp.state_label(s) for s in range(mdp.n_states)].index(state), mdp.action_names.index(action)
    there = {mdp.state_label(t): pytest.approx(p) for t, p in mdp.successors(s, a)}
    return there, pytest.approx(mdp.reward[mdp.pair(s, a)])
