"""Nasty-7: two loops that look alike, and one pays a little less."""

from __future__ import annotations

from spanrl.envs.env import Env, Outcome
from spanrl.options import require

A_LOOP, B_LOOP = 0, 1


def nasty_seven(delta: float = 0.005, epsilon: float = 0.05) -> Env:
    """Return two loops that look alike: one pays a little less.

    States:
        s0, the crossing; s1, s2, s3, the better loop; s4, s5, s6, the worse one.
    Actions:
        first, second. They differ in s0 alone.
    Transitions:
        In s0, first leads to s1 and second to s4 with probability 1 − δ, otherwise nothing changes. s1 leads to s2 or
        back to s0 with probability ½ each, s2 to s3, s3 to s1; s4, s5, s6 alike.
    Rewards:
        0 in s0, 0.99 in the better loop, 0.99 − ε in the worse one; fixed.
    Start:
        s0.
    Constants:
        S = 7, A = 2, g* = 0.791205, sp(h*) = 1.1928, D = 11.01.
    Args:
        delta: δ, the probability of staying at the crossing, in [0, 1).
        epsilon: ε, what the worse loop pays less, in [0, 0.99].
    Source:
        StatisticalRL's "nasty" environment.
    """
    require(0 <= delta < 1, "nasty-7", "delta must lie in [0, 1)", delta, "The default is 0.005.")
    require(0 <= epsilon <= 0.99, "nasty-7", "epsilon must lie in [0, 0.99]", epsilon, "The default is 0.05.")
    outcomes = {
        (0, action): [Outcome(delta, 0, 0.0), Outcome(1 - delta, entry, 0.0)]
        for action, entry in ((A_LOOP, 1), (B_LOOP, 4))
    }
    for entry, paid in ((1, 0.99), (4, 0.99 - epsilon)):
        for action in (A_LOOP, B_LOOP):
            outcomes[entry, action] = [Outcome(0.5, entry + 1, paid), Outcome(0.5, 0, paid)]
            outcomes[entry + 1, action] = [Outcome(1.0, entry + 2, paid)]
            outcomes[entry + 2, action] = [Outcome(1.0, entry, paid)]
    return Env.from_outcomes(outcomes, state_names=[f"s{s}" for s in range(7)], action_names=("first", "second"))
