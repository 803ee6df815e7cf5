"""What the measuring side knows of the true model: g*, h* and sp(h*), in rewards. Agents see none of it."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from spanrl.models.costs import flip
from spanrl.models.mdp import MDP
from spanrl.planning.analyse import analyse


class Optimum(NamedTuple):
    """The optimal gain of the start, an optimal bias [S], and its span, None where the gain differs between states."""

    gain: float
    bias: NDArray[np.float64]
    span: float | None
    starts_agree: bool = True
    """Whether all start states have that gain; otherwise it is their mean."""


MOST_STATES = 100
"""For so many states the diameter takes a fraction of a second, which a run can spare."""

_ROUNDING = 1e-9  # of the range of the rewards: gains are as accurate as that

_OPTIMA: WeakKeyDictionary[MDP, Optimum] = WeakKeyDictionary()  # models do not change: many runs on one ask once


def find_optimum(mdp: MDP | None) -> Optimum | None:
    """Return the optimum, exactly where the model is small; None where there is no model."""
    if mdp is None:
        return None
    best = _OPTIMA.get(mdp)  # one step: an equal model that another thread drops takes its entry along
    if best is None:
        found = analyse(mdp, diameter=False)
        gain, bias = flip(mdp.costs, float(np.dot(mdp.start, found.gains))), flip(mdp.costs, found.bias)
        agree = found.span is not None or bool(
            np.ptp(found.gains[mdp.start > 0]) <= _ROUNDING * (mdp.r_max - mdp.r_min)
        )
        best = _OPTIMA[mdp] = Optimum(gain, bias, found.span, agree)
    return best


def find_diameter(mdp: MDP | None) -> float | None:
    """Return the diameter of a small model, ∞ included; None where there is none, or it is too large."""
    if mdp is None or mdp.n_states > MOST_STATES:
        return None
    return analyse(mdp).diameter
