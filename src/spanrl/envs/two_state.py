"""The two-state example: the best policy under a span bound is randomised."""

from __future__ import annotations

from spanrl.envs.env import Env, Outcome


def two_state() -> Env:
    """Return the two-state example of the paper (Example 1): everything is deterministic.

    In s0, a0 goes to s1 and pays 0, a1 stays and pays ½. In s1, a0 goes to s0 and pays 0, a1 stays and pays 1. The
    policy that plays a0 with probability x in s0 and y in s1, not both zero, has gain ½ + x(1 − 3y)/(2(x + y)) and
    h(s1) − h(s0) = ½ + (1 − 3y)/(2(x + y)). Without a bound g* = 1 and sp(h*) = 1.
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
