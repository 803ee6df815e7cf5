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
