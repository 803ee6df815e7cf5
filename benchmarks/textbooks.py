"""The two textbook solvers, as a good engineer writes them in an afternoon: value iteration, and Howard's policy iteration.

Both stop when the gain is known to a tolerance, by the bracket min(Lv − v) ≤ g* ≤ max(Lv − v), and return the gain and the chosen pair of
each state. Policy iteration takes part as long as its policies have one recurrent class, or nearly: where the equations of a policy are
singular, it restarts the chain with a tiny probability.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array, hstack
from scipy.sparse.linalg import splu

from spanrl import MDP

Array = NDArray[np.float64]
Result = tuple[float, NDArray[np.int64]]

DAMPING = 0.9  # of a periodic model, whose bracket would not close
CHECKED = 100  # sweeps after which a bracket that did not narrow counts as stalled
RESTARTS = (0.0, 1e-9, 1e-7)  # probabilities of starting anew, tried from the left until a policy can be evaluated
ACCURATE = 1e-6  # what the equations of a policy may be off


def value_iteration(mdp: MDP, tol: float) -> Result:
    """Iterate relative values until the bracket of the gain is at most ``tol`` wide; damp them once it stalls."""
    v, u = np.zeros(mdp.n_states), np.empty(mdp.n_states)
    model = mdp.pair_ptr, mdp.succ_ptr, mdp.succ, mdp.prob, mdp.reward
    damping, width = 1.0, np.inf
    while True:
        low, high = _sweeps(*model, v, u, damping, tol)
        if high - low <= tol:
            return (low + high) / 2, _greedy(mdp, mdp.reward + rows_of(mdp) @ v)
        if high - low > 0.99 * width:
            damping = DAMPING
        width = high - low


@numba.njit(cache=True)
def _sweeps(pair_ptr, succ_ptr, succ, prob, reward, v, u, damping, tol):  # type: ignore[no-untyped-def]
    """Do some sweeps v ← Lv − (Lv)(0), damped; return the bracket at the last v, which stays where it closes."""
    low, high = -np.inf, np.inf
    for _ in range(CHECKED):
        low, high = np.inf, -np.inf
        for s in range(v.size):
            best = -np.inf
            for i in range(pair_ptr[s], pair_ptr[s + 1]):
                q = reward[i]
                for j in range(succ_ptr[i], succ_ptr[i + 1]):
                    q += prob[j] * v[succ[j]]
                best = max(best, q)
            u[s] = best
            low, high = min(low, best - v[s]), max(high, best - v[s])
        if high - low <= tol:
            break
        shift = u[0]
        for s in range(v.size):
            v[s] += damping * (u[s] - v[s] - shift)
    return low, high


def policy_iteration(mdp: MDP, tol: float) -> Result:
    """Evaluate policies by sparse LU and improve them until none can be better by more than ``tol``."""
    rows, r = rows_of(mdp), mdp.reward
    pair = _greedy(mdp, r)
    while True:
        gain, h = gain_bias(rows[pair], r[pair])
        q = r + rows @ h
        best = np.maximum.reduceat(q, mdp.pair_ptr[:-1])
        if (best - h).max() - gain <= tol:
            return gain, pair
        pair = np.where(best > q[pair] + 1e-10, _greedy(mdp, q), pair)


def gain_bias(P: csr_array, r: Array) -> tuple[float, Array]:
    """Return the gain and the bias h of a policy from (I − P)h + g·1 = r with h = 0 in the last state."""
    S = r.size
    for restart in RESTARTS:  # in the last state, where h is 0: it only scales P
        A = hstack((csc_array(eye_array(S) - (1 - restart) * P)[:, :-1], csc_array(np.ones((S, 1)))), format="csc")
        try:
            lu = splu(A)
        except RuntimeError:  # exactly singular
            continue
        x = np.zeros(S)
        for _ in range(2):  # the second time for what rounding left
            x += lu.solve(r - A @ x)
            if np.abs(r - A @ x).max() <= ACCURATE:
                return float(x[-1]), np.append(x[:-1], 0.0)
    raise ArithmeticError("a policy cannot be evaluated")


def rows_of(mdp: MDP) -> csr_array:
    """Return the transition probabilities as a matrix [n_pairs, S]."""
    return csr_array((mdp.prob, mdp.succ.astype(np.int32), mdp.succ_ptr), shape=(mdp.n_pairs, mdp.n_states))


def _greedy(mdp: MDP, q: Array) -> NDArray[np.int64]:
    """Return the first best pair of each state."""
    state = mdp.pair_state
    best = np.flatnonzero(q == np.maximum.reduceat(q, mdp.pair_ptr[:-1])[state])
    pair = np.empty(mdp.n_states, dtype=np.int64)
    pair[state[best[::-1]]] = best[::-1]
    return pair


METHODS = {"value iteration": value_iteration, "policy iteration": policy_iteration}
