"""The FOCUS pair: two models that look alike until it is too late, and whose spans differ by any factor."""

from __future__ import annotations

from spanrl.envs.env import Env, Outcome
from spanrl.options import one_of, require

STAY, LEAVE = 0, 1


def focus_pair(model: str = "stays", span: float = 10.0) -> Env:
    """Return two states: leaving costs, and pays in one of two models.

    States:
        s1, s2. The first model is multichain (s1 can be kept for ever), with the same optimal gain from both states.
    Actions:
        stay, leave. They differ in s1 alone.
    Transitions:
        In s1, stay stays and leave leads to s2 with probability 1/B, otherwise nothing changes. s2 stays for ever in
        the first model and returns to s1 in the second.
    Rewards:
        In s1, stay pays ½ and leave 0; s2 pays 1; fixed.
    Start:
        s1.
    Constants:
        S = 2, A = 2, g* = 1, sp(h*) = 10, D = ∞. In general sp(h*) = B in the first model; in the second g* = ½, sp(h*)
        = ½ and D = B.
    Args:
        model: stays (the first model) or returns (the second).
        span: B, from 1 to 1e9.
    Source:
        Zamir, Zurek & Chen, COLT 2026 (FOCUS), the lower bound for agents that do not know sp(h*).
    """
    one_of("focus-pair", "model", model, ("stays", "returns"))
    require(1 <= span <= 1e9, "focus-pair", "span must lie in [1, 1e9]", span, "The default is 10.")
    after = 1 if model == "stays" else 0
    return Env.from_outcomes(
        {
            (0, STAY): [Outcome(1.0, 0, 0.5)],
            (0, LEAVE): [Outcome(1 / span, 1, 0.0), Outcome(1 - 1 / span, 0, 0.0)],
            (1, STAY): [Outcome(1.0, after, 1.0)],
            (1, LEAVE): [Outcome(1.0, after, 1.0)],
        },
        state_names=("s1", "s2"),
        action_names=("stay", "leave"),
    )
