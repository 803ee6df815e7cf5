"""Small models for the tests, and dense versions of what the sparse code does, written without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from spanrl import MDP, BoundedMDP


def random_dense(rng: np.random.Generator, S: int = 5, A: int = 3, density: float = 0.6) -> tuple[Any, Any, Any]:
    """Return P [S, A, S], r [S, A] and available [S, A]; unavailable pairs are zero and every state has an action."""
    available = rng.random((S, A)) < 0.7
    available[np.arange(S), rng.integers(A, size=S)] = True
    P = rng.random((S, A, S)) * (rng.random((S, A, S)) < density)
    P[..., 0] += 0.1
    P /= P.sum(axis=2, keepdims=True)
    P[~available] = 0.0
    r = np.where(available, rng.random((S, A)), 0.0)
    return P, r, available


def pairs_of(P: Any, r: Any, available: Any) -> dict[str, Any]:
    """Write a dense model as the arguments of ``MDP.from_pairs``, by plain loops."""
    out: dict[str, Any] = {"state": [], "action": [], "succ_ptr": [0], "succ": [], "prob": [], "reward": []}
    for s in range(P.shape[0]):
        for a in range(P.shape[1]):
            if not available[s, a]:
                continue
            out["state"].append(s)
            out["action"].append(a)
            out["reward"].append(r[s, a])
            for t in range(P.shape[0]):
                if P[s, a, t] > 0:
                    out["succ"].append(t)
                    out["prob"].append(P[s, a, t])
            out["succ_ptr"].append(len(out["succ"]))
    return out


def assert_dense(mdp: MDP, P: Any, r: Any, available: Any, *, atol: float = 1e-15) -> None:
    """Check that ``mdp`` is the dense model."""
    mine, rewards, mask = mdp.to_dense()
    np.testing.assert_array_equal(mask, available)
    np.testing.assert_allclose(mine, P, rtol=0, atol=atol)
    np.testing.assert_allclose(rewards, r, rtol=0, atol=atol)


def dense_box(bounded: BoundedMDP) -> tuple[Any, Any]:
    """Return p_low and p_high [S, A, S] of a box model, by plain loops; unlisted successors have [0, rest_high]."""
    S, A = bounded.n_states, bounded.n_actions
    low, high = np.zeros((S, A, S)), np.zeros((S, A, S))
    for s in range(S):
        for i in range(bounded.pair_ptr[s], bounded.pair_ptr[s + 1]):
            a = bounded.action[i]
            high[s, a] = bounded.rest_high[i]
            for j in range(bounded.succ_ptr[i], bounded.succ_ptr[i + 1]):
                low[s, a, bounded.succ[j]], high[s, a, bounded.succ[j]] = bounded.p_low[j], bounded.p_high[j]
    return low, high


def small_mdp(**options: Any) -> MDP:
    """Return a two-state model, the second state with one action less."""
    P = [[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.0, 0.0]]]
    return MDP.from_dense(P, [[0.1, 0.2], [0.9, 0.0]], available=[[True, True], [True, False]], **options)


def small_box() -> BoundedMDP:
    """Return a sparse box model of three states: unlisted successors up to 0.4 from the first pair, none from the others."""
    return BoundedMDP.from_pairs(
        state=[0, 1, 1, 2], action=[0, 0, 2, 1], succ_ptr=[0, 1, 3, 5, 6], succ=[1, 0, 2, 1, 2, 2],
        p_low=[0.3, 0.2, 0.1, 0.0, 0.5, 1.0], p_high=[0.8, 0.9, 0.7, 0.5, 1.0, 1.0], rest_high=[0.4, 0.0, 0.2, 0.0],
        r_low=[0.0, 0.5, 0.2, -1.0], r_high=[0.3, 0.5, 0.9, 2.0], r_min=-1.0, r_max=2.0, n_actions=4,
    )  # fmt: skip


def small_ball() -> BoundedMDP:
    """Return an L1-ball model around :func:`small_mdp`."""
    return BoundedMDP.l1_ball(small_mdp(), [0.1, 0.0, 0.5], [0.0, 0.1, 0.5], [0.2, 0.3, 1.0])


def entries(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as data:
        return {name: data[name] for name in data.files}


def rewrite(path: Path, **changes: Any) -> None:
    """Write the file again with some arrays changed; None drops one."""
    arrays = entries(path) | changes
    with path.open("wb") as stream:
        np.savez_compressed(stream, **{name: array for name, array in arrays.items() if array is not None})
