"""Random models for the benchmarks, and the yardstick: a minimal padded-row kernel with nothing but the backup in it."""

from __future__ import annotations

import numba
import numpy as np

from spanrl import MDP, BoundedMDP


def successors(rng: np.random.Generator, n: int, S: int, branches: int) -> np.ndarray:
    """Return n sorted rows of different states."""
    rows = np.sort(rng.integers(0, S - branches + 1, (n, branches)), axis=1)
    return rows + np.arange(branches)  # sorted with repetition, then spread: all different


def garnet(S: int, A: int, branches: int, seed: int = 0, stay: float = 0.0) -> MDP:
    """Return a Garnet: ``branches`` random successors a pair; with ``stay`` it keeps its state that often, and mixes slowly."""
    rng = np.random.default_rng(seed)
    n = S * A
    succ, prob = successors(rng, n, S, branches), rng.dirichlet(np.ones(branches), size=n)
    state, action = np.divmod(np.arange(n), A)
    if stay:
        succ = np.concatenate((succ, state[:, None]), axis=1)
        prob = np.concatenate((prob * (1 - stay), np.full((n, 1), stay)), axis=1)
    return MDP.from_pairs(state, action, np.arange(n + 1) * succ.shape[1], succ.ravel(), prob.ravel(), rng.random(n))


def boxed(mdp: MDP, width: float = 0.1, rest: float = 0.02, seed: int = 1) -> BoundedMDP:
    """Return a box of ±width around a model, with every other state possible up to ``rest``."""
    low, high = np.maximum(mdp.prob - width, 0), np.minimum(mdp.prob + width, 1)
    r = mdp.reward
    return BoundedMDP.from_pairs(
        mdp.pair_state,
        mdp.action,
        mdp.succ_ptr,
        mdp.succ.astype(int),
        low,
        high,
        np.full(mdp.n_pairs, rest),
        r * 0.9,
        r,
    )


@numba.njit
def padded_backup(succ, prob, reward, v, out):  # type: ignore[no-untyped-def]
    """The yardstick: rows of equal length, no pointers, no options."""
    S, A, branches = succ.shape
    for s in range(S):
        best = -np.inf
        for a in range(A):
            q = reward[s, a]
            for j in range(branches):
                q += prob[s, a, j] * v[succ[s, a, j]]
            best = max(best, q)
        out[s] = best


def padded(mdp: MDP, A: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of the yardstick for a model with equal rows."""
    S = mdp.n_states
    return mdp.succ.reshape(S, A, -1).copy(), mdp.prob.reshape(S, A, -1).copy(), mdp.reward.reshape(S, A).copy()


def padded_unequal(mdp: MDP, A: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of the yardstick for any model with A actions in each state: short rows end in zeros."""
    n, length = mdp.n_pairs, np.diff(mdp.succ_ptr)
    rows = np.repeat(np.arange(n), length)
    column = np.arange(mdp.succ.size) - np.repeat(mdp.succ_ptr[:-1], length)
    succ, prob = np.zeros((n, length.max()), dtype=mdp.succ.dtype), np.zeros((n, length.max()))
    succ[rows, column], prob[rows, column] = mdp.succ, mdp.prob
    shape = mdp.n_states, A, -1
    return succ.reshape(shape), prob.reshape(shape), mdp.reward.reshape(shape[:2]).copy()


@numba.njit
def padded_solve(succ, prob, reward, tol):  # type: ignore[no-untyped-def]
    """The yardstick's relative value iteration: backups until the bracket of the gain is at most ``tol`` wide; return its middle."""
    S = succ.shape[0]
    v, u = np.zeros(S), np.empty(S)
    while True:
        padded_backup(succ, prob, reward, v, u)
        low, high = np.inf, -np.inf
        for s in range(S):
            low, high = min(low, u[s] - v[s]), max(high, u[s] - v[s])
        if high - low <= tol:
            return (low + high) / 2
        shift = u[0]
        for s in range(S):
            v[s] = u[s] - shift
