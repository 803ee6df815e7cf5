"""The three-state domain: a diameter of 1/δ, a span near 1."""

from __future__ import annotations

from spanrl.envs.env import BERNOULLI, Env, Outcome
from spanrl.options import require


def three_state(delta: float = 0.005) -> Env:
    """Return three states with Bernoulli rewards: diameter 1/δ, span near 1.

    States:
        s0, s1, s2.
    Actions:
        a0; in s2 also a1.
    Transitions:
        In s0, a0 goes to s1 with probability δ and to s2 otherwise. In s1, a0 goes to s0. In s2, a0 goes to s1 with
        probability δ and to s0 otherwise, and a1 stays.
    Rewards:
        0 in s0, Bernoulli(1/3) in s1, Bernoulli(2/3) in s2.
    Start:
        s0.
    Constants:
        S = 3, A = 2, g* = 0.666667, sp(h*) = 1.00503, D = 200. In general g* = 2/3 and h* = (−(2 + δ)/(3(1 − δ)), −1/(1
        − δ), 0), so that sp(h*) = 1/(1 − δ). D is 1/δ for δ ≤ 1/3 (above that the way from s1 to s2 is the longest:
        2/(1 − δ)); at δ = 0, s1 is never entered and D = ∞.
    Args:
        delta: δ in [0, 1). At δ = 1 the states would fall into two classes of different gain.
    Source:
        Fruit, Pirotta, Lazaric & Ortner, ICML 2018, Section 6.
    """
    require(0 <= delta < 1, "three-state", "delta must lie in [0, 1)", delta, "The paper uses 0.005 and 0.")
    return Env.from_outcomes(
        {
            (0, 0): [Outcome(delta, 1, 0.0), Outcome(1 - delta, 2, 0.0)],
            (1, 0): [Outcome(1.0, 0, 1 / 3, BERNOULLI)],
            (2, 0): [Outcome(delta, 1, 2 / 3, BERNOULLI), Outcome(1 - delta, 0, 2 / 3, BERNOULLI)],
            (2, 1): [Outcome(1.0, 2, 2 / 3, BERNOULLI)],
        },
        state_names=("s0", "s1", "s2"),
        action_names=("a0", "a1"),
    )
