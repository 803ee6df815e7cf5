"""Balls around the rows of a model: centres, radii and intervals of rewards, one per pair."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanrl.errors import ModelError
from spanrl.models import checks
from spanrl.models.mdp import MDP


def ball(
    who: str, P: ArrayLike | MDP, radius: ArrayLike, r_low: ArrayLike, r_high: ArrayLike, available: ArrayLike | None
) -> tuple[MDP, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the MDP of the centres, and radii and ends of the intervals of rewards, each [n_pairs]."""
    if isinstance(P, MDP):
        centre = P
        if available is not None:
            raise ModelError(f"{who}: available must be left out where P is an MDP, which has its own pairs.")
    else:
        dense = checks.numeric(who, "P", P, (None, None, None))
        centre = MDP.from_dense(dense, np.zeros(dense.shape[:2]), available=available)
    states, actions = centre.pair_state, centre.action

    def per_pair(name: str, value: ArrayLike) -> NDArray[np.float64]:
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{who}: {name} must be a number or an array of numbers ({error}).") from None
        if array.ndim == 0:
            return np.full(states.size, float(array))
        if array.ndim == 1 and isinstance(P, MDP):
            return checks.numeric(who, name, array, (states.size,))
        return checks.numeric(who, name, array, (centre.n_states, centre.n_actions))[states, actions]

    return centre, per_pair("radius", radius), per_pair("r_low", r_low), per_pair("r_high", r_high)
