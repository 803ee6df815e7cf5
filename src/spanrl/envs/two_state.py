"""The two-state example: the best policy under a span bound is randomised."""

from __future__ import annotations

from spanrl.envs.env import Env, Outcome


def two_state() -> Env:
    """Return two states, deterministic: under a span bound the best policy is randomised.

    The policy that plays a0 with probability x in s0 and y in s1, not both zero, has gain ½ + x(1 − 3y)/(2(x + y)) and
    h(s1) − h(s0) = ½ + (1 − 3y)/(2(x + y)).

    States:
        s0, s1.
    Actions:
        a0, a1.
    Transitions:
        a0 goes to the other state, a1 stays.
    Rewards:
        In s0, a0 pays 0 and a1 ½; in s1, a0 pays 0 and a1 1; fixed.
    Start:
        s0.
    Constants:
        S = 2, A = 2, g* = 1, sp(h*) = 1, D = 1.
    Source:
        Fruit, Pirotta, Lazaric & Ortner, ICML 2018, Example 1.
    """
    return Env.from_outcomes(
        {
            (0, 0): [Outcome(1.0, 1, 0.0)],
            (0, 1): [Outcome(1.0, 0, 0.5)],
            (1, 0): [Outcome(1.0, 0, 0.0)],
            (1, 1): [Outcome(1.0, 1, 1.0)],
        },
        state_names=("s0", "s1"),
        action_names=("a0", "a1"),
    )
