"""The communication class of an MDP by its maximal end components.

An end component is a set of states with a choice of actions that never leave it and connect it. The states outside all of them are
transient under every policy. One component that holds all states: *communicating*; one that does not: *weakly communicating*; several:
*multichain* here (Puterman 1994, Sec. 8.3 and 9.5).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spanrl.models.mdp import MDP
from spanrl.planning.multichain import strong_components


def end_components(mdp: MDP) -> tuple[int, NDArray[np.int64]]:
    """Return the number of maximal end components and the component of each state (−1: none)."""
    S = mdp.n_states
    state = mdp.pair_state
    lengths = np.diff(mdp.succ_ptr)
    entry_pair = np.repeat(np.arange(mdp.n_pairs), lengths)
    entry_state, succ = state[entry_pair], mdp.succ.astype(np.int64)
    active = np.ones(mdp.n_pairs, dtype=bool)
    while True:
        use = active[entry_pair]
        _, label = strong_components(S, entry_state[use], succ[use])
        alive = np.bincount(state[active], minlength=S) > 0
        leaves = (label[entry_state] != label[succ]) | ~alive[succ]
        inside = active & (np.bincount(entry_pair, leaves, mdp.n_pairs) == 0)
        if np.array_equal(inside, active):
            break
        active = inside
    component = np.full(S, -1, dtype=np.int64)
    kept = np.flatnonzero(alive)
    labels, component[kept] = np.unique(label[kept], return_inverse=True)
    return labels.size, component


def classify(mdp: MDP) -> str:
    """Return "communicating", "weakly communicating" or "multichain"."""
    count, component = end_components(mdp)
    if count > 1:
        return "multichain"
    return "communicating" if (component >= 0).all() else "weakly communicating"
