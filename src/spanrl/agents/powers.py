"""Powers of two: an episode ends when the visits N of a pair reach 1, 2, 4, 8, …, whenever the episode began.

Written as visits allowed, of which there is always one::

    2^m − N,    2^m the smallest power of two above N_k

Doubling allows N_k more visits from wherever N_k is, this rule only as many as lead to the next power: at most 1 + log₂ T episodes end by
each pair, so SA·(1 + log₂ T) in all, as many as with doubling up to a factor. Zamir, Zurek & Chen (2026) replan in this way. As with all
our rules, the episode goes on until the pair is *about to be played again*; theirs ends with the visit that reaches the power.
"""

from __future__ import annotations

from spanrl.agents.episodes import LIMIT, UNLIMITED, EpisodeRule
from spanrl.kernels.jit import passed


@passed(LIMIT)
def limit_by_powers(known, settings, pairs, allowed):
    """Allow as many visits as lead to the next power of two."""
    n = known.seen.n
    for k in range(pairs.size):
        power = 1
        while power <= n[pairs[k]]:
            power *= 2
        allowed[k] = power - n[pairs[k]]
    return UNLIMITED


class PowersOfTwo(EpisodeRule):
    """End an episode when the visits of the pair about to be played have reached a power of two in it."""

    limit = limit_by_powers


POWERS = PowersOfTwo()
