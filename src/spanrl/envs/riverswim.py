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
    """Return a chain against the current: the treasure is far away.

    States:
        s0 (left end) … s(S − 1) (right end).
    Actions:
        left, right.
    Transitions:
        *left* always succeeds; *right* only against the current, with probabilities that depend on the variant.
    Rewards:
        *left* in s0 pays the small reward, *right* in the last state pays 1, wherever the current then leads; all else
        pays 0; fixed.
    Start:
        s0, in every variant.
    Constants:
        S = 6, A = 2, g* = 0.222936, sp(h*) = 5.0183, D = 22.51. The variant osband has 0.428622, 6.3103, 14.722; ucrl3
        has 0.875003, 12.143, 13.878; statisticalrl has 0.916667, 8.1818, 8.926.
    Args:
        variant: strehl (Strehl & Littman 2008), osband (Osband, Russo & Van Roy 2013), ucrl3 (Bourel, Maillard & Talebi
            2020) or statisticalrl (the library of that name).
        n_states: S, from 2 to 100 000, which takes three seconds to build; the literature uses 6, and more for harder instances.
    Source:
        Strehl & Littman 2008; Osband, Russo & Van Roy 2013; Bourel, Maillard & Talebi 2020; StatisticalRL.
    """
    one_of("riverswim", "variant", variant, tuple(_VARIANTS))
    return _river("riverswim", n_states, _VARIANTS[variant])


def ergodic_riverswim(n_states: int = 6, slip: float = 0.001) -> Env:
    """Return RiverSwim in which every policy visits every state.

    States:
        s0 (left end) … s(S − 1) (right end).
    Actions:
        left, right.
    Transitions:
        *right* as in riverswim[variant=statisticalrl]. *left* succeeds with probability 1 − slip and goes right with
        probability slip/2; otherwise nothing changes. In s0 it goes right with probability slip/2, in the last state it
        stays with probability slip.
    Rewards:
        *left* in s0 pays 0.1, *right* in the last state pays 1, wherever the current then leads; all else pays 0;
        fixed.
    Start:
        s0.
    Constants:
        S = 6, A = 2, g* = 0.9166670, sp(h*) = 8.181822, D = 8.925620.
    Args:
        n_states: S, from 2 to 100 000.
        slip: probability that *left* fails, in (0, 1).
    Source:
        StatisticalRL's ErgodicRiverSwim.
    """
    require(0 < slip < 1, "ergodic-riverswim", "slip must lie in (0, 1)", slip, "The default is 0.001.")
    return _river("ergodic-riverswim", n_states, _VARIANTS["statisticalrl"], slip)


def _river(who: str, n_states: int, current: _Current, slip: float = 0.0) -> Env:
    rule = f"n_states must lie in 2..{_MOST_STATES}"
    require(2 <= n_states <= _MOST_STATES, who, rule, n_states, "The usual number is 6.")
    last = n_states - 1
    outcomes = {}
    for s in range(n_states):
        reward = current.left_reward if s == 0 else 0.0
        moves = ((-1, 1 - slip), (0, slip / 2), (1, slip / 2)) if slip else ((-1, 1.0),)
        outcomes[s, LEFT] = [Outcome(p, min(max(s + move, 0), last), reward) for move, p in moves]
    for s in range(1, last):
        outcomes[s, RIGHT] = [Outcome(p, s + move, 0.0) for move, p in zip((-1, 0, 1), current.inside, strict=True)]
    outcomes[0, RIGHT] = [Outcome(p, move, 0.0) for move, p in zip((0, 1), current.first, strict=True)]
    outcomes[last, RIGHT] = [Outcome(p, last + move, 1.0) for move, p in zip((-1, 0), current.last, strict=True)]
    names = [f"s{s}" for s in range(n_states)]
    return Env.from_outcomes(outcomes, state_names=names, action_names=("left", "right"))
