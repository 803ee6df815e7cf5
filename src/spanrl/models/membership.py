"""Whether an MDP lies in the set that a bounded MDP describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spanrl.models import box_checks
from spanrl.models.mdp import MDP

if TYPE_CHECKING:
    from spanrl.models.bounded import BoundedMDP


def is_member(bounded: BoundedMDP, mdp: MDP, tol: float) -> bool:
    """Tell whether ``mdp`` has the same pairs, and rewards and rows in their sets up to ``tol``."""
    if not (np.array_equal(bounded.pair_ptr, mdp.pair_ptr) and np.array_equal(bounded.action, mdp.action)):
        return False
    if ((mdp.reward < bounded.r_low - tol) | (mdp.reward > bounded.r_high + tol)).any():
        return False
    mine, theirs = (
        box_checks.keys(bounded.succ_ptr, bounded.succ, bounded.n_states),
        box_checks.keys(mdp.succ_ptr, mdp.succ, bounded.n_states),
    )
    listed = np.isin(theirs, mine, assume_unique=True)
    prob = np.zeros(mine.size)  # of the listed successors
    prob[np.searchsorted(mine, theirs[listed])] = mdp.prob[listed]
    theirs_pair = theirs // bounded.n_states
    if bounded.is_ball:
        mine_pair = mine // bounded.n_states
        distance = np.bincount(mine_pair, np.abs(prob - bounded.p_low), bounded.n_pairs)
        distance += np.bincount(theirs_pair[~listed], mdp.prob[~listed], bounded.n_pairs)
        return bool((distance <= bounded.radius + tol).all())
    if bounded.is_kl:
        with np.errstate(divide="ignore"):
            terms = bounded.p_low * np.log(bounded.p_low / prob)
        return bool((np.bincount(mine // bounded.n_states, terms, bounded.n_pairs) <= bounded.radius + tol).all())
    inside = ((prob >= bounded.p_low - tol) & (prob <= bounded.p_high + tol)).all()
    return bool(inside and (mdp.prob[~listed] <= bounded.rest_high[theirs_pair[~listed]] + tol).all())
