"""Random models for the tests of planning, and slow, obviously right solutions of them."""

import numpy as np
from scipy.optimize import linprog

from spanrl import MDP


def random_mdp(rng, S=None, A=None, kind=None):
    """Draw a model: deterministic, sparse, dense, slowly mixing, or a cycle; ragged actions; rewards in [0, 1] or [−5, 20]."""
    S = S or int(rng.integers(1, 9))
    A = A or int(rng.integers(1, 4))
    kind = kind or rng.choice(["deterministic", "sparse", "dense", "slow", "cycle"])
    P = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            if kind == "deterministic":
                P[s, a, rng.integers(S)] = 1
            elif kind == "sparse":
                successors = rng.choice(S, int(rng.integers(1, min(S, 3) + 1)), replace=False)
                P[s, a, successors] = rng.dirichlet(np.ones(successors.size))
            elif kind == "dense":
                P[s, a] = rng.dirichlet(np.ones(S))
            elif kind == "slow":
                leave = 10.0 ** -int(rng.integers(1, 4))
                P[s, a, s] = 1 - leave
                P[s, a, rng.integers(S)] += leave
            else:
                P[s, a, (s + 1) % S] = 1
    low, high = (0.0, 1.0) if rng.random() < 0.6 else (-5.0, 20.0)
    available = rng.random((S, A)) < 0.8
    available[np.arange(S), rng.integers(0, A, S)] = True
    return MDP.from_dense(P, rng.uniform(low, high, (S, A)), available=available, r_min=low, r_max=high)


def optimal_gains(mdp):
    """Return g* [S] by the multichain linear programme: min Σg with g ≥ Pg and g + h ≥ r + Ph."""
    P, r, available = mdp.to_dense()
    S = mdp.n_states
    rows, bounds = [], []
    for s, a in zip(*np.nonzero(available), strict=True):
        drift = P[s, a] - np.eye(S)[s]
        rows += [np.concatenate((drift, np.zeros(S))), np.concatenate((-np.eye(S)[s], drift))]
        bounds += [0.0, -r[s, a]]
    cost = np.concatenate((np.full(S, 1 / S), np.zeros(S)))
    result = linprog(cost, A_ub=np.array(rows), b_ub=bounds, bounds=[(None, None)] * (2 * S), method="highs")
    assert result.status == 0
    return result.x[:S]


def garnet(rng, S, A, branches):
    """Return a sparse random model with ``branches`` successors per pair."""
    succ = np.stack([np.sort(rng.choice(S, branches, replace=False)) for _ in range(S * A)])
    state, action = np.divmod(np.arange(S * A), A)
    prob = rng.dirichlet(np.ones(branches), size=S * A)
    return MDP.from_pairs(state, action, np.arange(S * A + 1) * branches, succ.ravel(), prob.ravel(), rng.random(S * A))
