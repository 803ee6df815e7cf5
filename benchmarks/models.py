"""Random models for the benchmarks, and the yardstick: a minimal padded-row kernel with nothing but the backup in it."""

from __future__ import annotations

import numba
import numpy as np

from spanrl import MDP, BoundedMDP
from spanrl.bench import garnet, successors

__all__ = ["blocks", "boxed", "garnet", "padded", "padded_backup", "padded_solve", "padded_unequal", "successors"]


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


def blocks(S: int, A: int, branches: int, leave: float = 0.01, seed: int = 0) -> MDP:
    """Return a Garnet of two halves that are left with probability ``leave`` per step: it mixes slowly, and not because it stays."""
    rng = np.random.default_rng(seed)
    n, half = S * A, S // 2
    state, action = np.divmod(np.arange(n), A)
    own, other = np.where(state < half, 0, half), np.where(state < half, half, 0)
    succ = np.concatenate(
        (successors(rng, n, half, branches - 1) + own[:, None], (rng.integers(0, half, n) + other)[:, None]), axis=1
    )
    prob = np.concatenate((rng.dirichlet(np.ones(branches - 1), size=n) * (1 - leave), np.full((n, 1), leave)), axis=1)
    order = np.argsort(succ, axis=1)
    succ, prob = np.take_along_axis(succ, order, axis=1), np.take_along_axis(prob, order, axis=1)
    reward = rng.random(n) * np.where(state < half, 1.0, 0.9)
    return MDP.from_pairs(state, action, np.arange(n + 1) * branches, succ.ravel(), prob.ravel(), reward)
