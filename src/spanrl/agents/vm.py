"""The VM rule (Boone & Gaujal 2025): episodes that end after a vanishing share of new visits, not after a doubling.

An episode ends when a pair of its policy has been visited more than (1 + f(t_k))·max(1, N_k) times, with f vanishing. Written as visits
allowed, of which there is always one::

    max(1, ⌊f(t_k)·max(1, N_k)⌋),    f(t) = t^(−1/2)

Any f = Ω(t^(−1/2)) keeps the minimax bound of the regret (same paper); this is the smallest of these, and replans most often: the shorter
the episodes, the sooner one of a bad policy is over. Every visit to a pair with N < √t ends an episode, so that there may be some SA√T.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from spanrl.agents.episodes import LIMIT, UNLIMITED, EpisodeRule
from spanrl.kernels.jit import passed
from spanrl.models.info import ProblemInfo

_MANY = 10**5
"""Episodes beyond which the rule warns."""


@passed(LIMIT)
def limit_by_share(known, settings, pairs, allowed):
    """Allow max(1, ⌊max(1, N)/√t⌋) visits."""
    n, root = known.seen.n, np.sqrt(known.t)
    for k in range(pairs.size):
        # Not times 1/√t: where √t divides N, the rounding of that may cost a visit.
        allowed[k] = max(1, int(max(1, n[pairs[k]]) / root))
    return UNLIMITED


class VanishingMultiplicative(EpisodeRule):
    """End an episode when the pair about to be played has been played max(1, ⌊max(1, N_k)/√t_k⌋) times in it."""

    limit = limit_by_share

    def settings(self, info: ProblemInfo) -> NDArray[np.float64]:
        """Return none; warn where SA√T is large."""
        if info.is_longer_than(int((_MANY / info.n_pairs) ** 2)):
            warnings.warn(
                f"episodes='vm': there may be as many as S·A·√T episodes, above {_MANY} here, each with a plan of its own. "
                "Leave it out where that takes too long.",
                stacklevel=2,
            )
        return np.zeros(0)


VM = VanishingMultiplicative()
