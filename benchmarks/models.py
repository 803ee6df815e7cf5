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
