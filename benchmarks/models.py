"""Random models for the benchmarks, and the yardstick: a minimal padded-row kernel with nothing but the backup in it."""

from __future__ import annotations

import numba
import numpy as np

from spanrl import MDP, BoundedMDP
from spanrl.bench import garnet, successors

__all__ = ["boxed", "garnet", "padded", "padded_backup", "successors"]


def boxed(mdp: MDP, width: float = 0.1, rest: float = 0.02, seed: int = 1) -> BoundedMDP:
    """Return a box of ±width around a model, with every other state possible up to ``rest``."""
    low, high = np.maximum(mdp.prob - width, 0), np.minimum(mdp.prob + width, 1)
    low.flags.writeable = high.flags.writeable = False  # so that they need not be copied
    r = mdp.reward
    return BoundedMDP.from_pairs(
        mdp.pair_state,
        mdp.action,
        mdp.succ_ptr,
        mdp.succ,
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
