"""RiverSwim: a chain in which the current pushes left and the treasure lies to the right.

At least four inequivalent versions are in use; name the one you mean. The current takes the swimmer who plays *right*:

=============  ==================  =======================  ===================  ====================
variant        at the left end     inside                   at the right end     rewards (left, right)
               stay, right         left, stay, right        left, stay
=============  ==================  =======================  ===================  ====================
strehl         .7, .3              .1, .6, .3               .7, .3               .0005, 1
osband         .4, .6              .05, .6, .35             .4, .6               .005, 1
ucrl3          .6, .4              .05, .55, .4             .05, .95             .05, 1
statisticalrl  .4, .6              .05, .35, .6             .05, .95             .1, 1
=============  ==================  =======================  ===================  ====================
"""

from __future__ import annotations

from typing import NamedTuple

from spanrl.envs.env import Env, Outcome
from spanrl.options import one_of, require

LEFT, RIGHT = 0, 1
_MOST_STATES = 10**5  # built outcome by outcome: in about three seconds and 0.2 GB


class _Current(NamedTuple):
    """Probabilities of where *right* leads, and the reward of *left* at the left end."""

    first: tuple[float, float]
    inside: tuple[float, float, float]
    last: tuple[float, float]
    left_reward: float


_VARIANTS = {
    "strehl": _Current((0.7, 0.3), (0.1, 0.6, 0.3), (0.7, 0.3), 5 / 10000),
    "osband": _Current((0.4, 0.6), (0.05, 0.6, 0.35), (0.4, 0.6), 5 / 1000),
    "ucrl3": _Current((0.6, 0.4), (0.05, 0.55, 0.4), (0.05, 0.95), 0.05),
    "statisticalrl": _Current((0.4, 0.6), (0.05, 0.35, 0.6), (0.05, 0.95), 0.1),
}


def riverswim(variant: str = "strehl", n_states: int = 6) -> Env:
    """Return RiverSwim with ``n_states`` states s0 (left end) … in one of its variants.

    *left* always succeeds, *right* only against the current (table above). Playing *left* in s0 pays the small reward,
    playing *right* in the last state pays 1, wherever the current then leads; all else pays 0. Rewards are fixed.
    The start is s0 in every variant.

    Args:
        variant: strehl (Strehl & Littman 2008), osband (Osband, Russo & Van Roy 2013), ucrl3 (Bourel, Maillard & Talebi
            2020) or statisticalrl (the library of that name).
        n_states: S, from 2 to 100 000, which takes three seconds to build; the literature uses 6, and more for harder instances.
    """
    one_of("riverswim", "variant", variant, tuple(_VARIANTS))
    rule = f"n_states must lie in 2..{_MOST_STATES}"
    require(2 <= n_states <= _MOST_STATES, "riverswim", rule, n_states, "The usual number is 6.")
    current, last = _VARIANTS[variant], n_states - 1
    outcomes = {(s, LEFT): [Outcome(1.0, s - 1, 0.0)] for s in range(1, n_states)}
    outcomes[0, LEFT] = [Outcome(1.0, 0, current.left_reward)]
    for s in range(1, last):
        outcomes[s, RIGHT] = [Outcome(p, s + move, 0.0) for move, p in zip((-1, 0, 1), current.inside, strict=True)]
    outcomes[0, RIGHT] = [Outcome(p, move, 0.0) for move, p in zip((0, 1), current.first, strict=True)]
    outcomes[last, RIGHT] = [Outcome(p, last + move, 1.0) for move, p in zip((-1, 0), current.last, strict=True)]
    names = [f"s{s}" for s in range(n_states)]
    return Env.from_outcomes(outcomes, state_names=names, action_names=("left", "right"))
