"""SixArms: the better an arm pays, the harder it is to reach."""

from __future__ import annotations

from spanrl.envs.env import Env, Outcome

REACHED = (1.0, 0.15, 0.1, 0.05, 0.03, 0.01)
PAID = (50, 133, 300, 800, 1660, 6000)
_WAY_OUT = 4  # the action that leaves the first arm


def six_arms() -> Env:
    """Return a hub with six arms: the better, the harder to reach.

    States:
        hub, arm 1 … arm 6.
    Actions:
        a0 … a5.
    Transitions:
        In the hub, a0 … a5 lead to arm 1 … arm 6 with probability 1, .15, .1, .05, .03, .01, otherwise nothing changes.
        In arm i ≥ 2 the action that leads there stays and all others return to the hub; in arm 1, a4 returns and all
        others stay.
    Rewards:
        50, 133, 300, 800, 1660 or 6000 for a step that stays in arm 1 … arm 6, divided by 6000; 0 elsewhere; fixed.
    Start:
        hub.
    Constants:
        S = 7, A = 6, g* = 1, sp(h*) = 101, D = 101. sp(h*) = D: a span bound cannot help.
    Source:
        Strehl & Littman, Journal of Computer and System Sciences 2008.
    """
    outcomes = {}
    for action, p in enumerate(REACHED):
        outcomes[0, action] = [Outcome(p, action + 1, 0.0), Outcome(1 - p, 0, 0.0)]
        for arm, paid in enumerate(PAID):
            stays = action != _WAY_OUT if arm == 0 else action == arm
            outcomes[arm + 1, action] = [Outcome(1.0, arm + 1, paid / PAID[-1]) if stays else Outcome(1.0, 0, 0.0)]
    names = ["hub", *(f"arm {arm + 1}" for arm in range(len(PAID)))]
    return Env.from_outcomes(outcomes, state_names=names, action_names=[f"a{a}" for a in range(len(REACHED))])
