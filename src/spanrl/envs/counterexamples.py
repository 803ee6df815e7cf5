"""The paper's three examples of what the operator T_c cannot do (appendix "Limitations of ScOpt")."""

from __future__ import annotations

from spanrl.envs.env import Env, Outcome
from spanrl.options import require


def nonfeasible() -> Env:
    """Return two states in which one step of the truncated operator belongs to no decision rule.

    At v = 0 and c = ½, T_c v = (0, ½) while N_c v = (0, 1), although the policy that plays a0 everywhere has a bias of
    span ½.

    States:
        s0, s1.
    Actions:
        a0, a1.
    Transitions:
        a0 goes to the other state, a1 stays.
    Rewards:
        0 in s0, 1 in s1; fixed.
    Start:
        s0.
    Constants:
        S = 2, A = 2, g* = 1, sp(h*) = 1, D = 1.
    Source:
        Fruit, Pirotta, Lazaric & Ortner, ICML 2018, appendix on the limitations of ScOpt.
    """
    return Env.from_outcomes(
        {
            (0, 0): [Outcome(1.0, 1, 0.0)],
            (0, 1): [Outcome(1.0, 0, 0.0)],
            (1, 0): [Outcome(1.0, 0, 1.0)],
            (1, 1): [Outcome(1.0, 1, 1.0)],
        },
        state_names=("s0", "s1"),
        action_names=("a0", "a1"),
    )


def fixed_point(alpha: float = 0.5, beta: float = 0.2, delta: float = 0.3, extra_action: bool = False) -> Env:
    """Return three states in which the truncated operator is not feasible at its own fixed point.

    With c = α + β the fixed point of T_c is (α + β, δ, 0), the bias of no policy; only a0 in s1 keeps the bound.

    States:
        s0, s1, s2.
    Actions:
        a0; in s1 also a1 (and a2).
    Transitions:
        s0 goes to s1, s1 to s2, and s2 stays, whatever is played.
    Rewards:
        α in s0; in s1, a0 pays β and a1 pays δ (and a2 0); 0 in s2; fixed.
    Start:
        s0.
    Constants:
        S = 3, A = 2, g* = 0, sp(h*) = 0.8, D = ∞. All policies have gain 0.
    Args:
        alpha, beta, delta: rewards, 0 ≤ β < δ < α ≤ 1 (the paper asks for the order; our reward range is [0, 1]) and
            α + β ≤ 1, so that the bound c = α + β is not above the range of the rewards.
        extra_action: adds an action a2 in s1 that goes to s2 and pays 0 (then β > 0): infinitely many policies keep the
            bound, and the fixed point is still the bias of none.
    Source:
        Fruit, Pirotta, Lazaric & Ortner, ICML 2018, appendix on the limitations of ScOpt.
    """
    who = "counterexample-fixed-point"
    require(
        0 <= beta < delta < alpha and alpha + beta <= 1,
        who,
        "(alpha, beta, delta) must have 0 ≤ beta < delta < alpha and alpha + beta ≤ 1",
        (alpha, beta, delta),
        "The defaults are 0.5, 0.2, 0.3.",
    )
    require(
        beta > 0 or not extra_action,
        who,
        "beta must be above 0 with extra_action",
        beta,
        "At 0 the extra action would be a0 again.",
    )
    outcomes = {
        (0, 0): [Outcome(1.0, 1, alpha)],
        (1, 0): [Outcome(1.0, 2, beta)],
        (1, 1): [Outcome(1.0, 2, delta)],
        (2, 0): [Outcome(1.0, 2, 0.0)],
    }
    if extra_action:
        outcomes[1, 2] = [Outcome(1.0, 2, 0.0)]
    names = ("a0", "a1", "a2") if extra_action else ("a0", "a1")
    return Env.from_outcomes(outcomes, state_names=("s0", "s1", "s2"), action_names=names)


def cycle(delta: float = 0.5, duplicate: bool = False) -> Env:
    """Return three states in which iterating the truncated operator cycles for ever.

    From v_0 = 0 the iterates are (c, 0, 0), (c, 0, c), (2c, c, c), … for 0 < c ≤ 1/(2 − δ) (the paper says c ≤ ½).

    States:
        s0, s1, s2.
    Actions:
        a0 (in s0 also a1, a duplicate).
    Transitions:
        s0 stays with probability δ and goes to s1 otherwise; s1 goes to s2 and s2 to s0.
    Rewards:
        1 in s0 (0 for the duplicate), 0 elsewhere; fixed.
    Start:
        s0.
    Constants:
        S = 3, A = 1, g* = 0.5, sp(h*) = 1, D = 3.
    Args:
        delta: δ in (0, 1).
        duplicate: adds an action a1 in s0 with the transitions of a0 and reward 0: then a policy keeps every bound, and
            the iterates are the same.
    Source:
        Fruit, Pirotta, Lazaric & Ortner, ICML 2018, appendix on the limitations of ScOpt.
    """
    require(0 < delta < 1, "counterexample-cycle", "delta must lie in (0, 1)", delta, "The default is 0.5.")
    outcomes = {
        (0, 0): [Outcome(delta, 0, 1.0), Outcome(1 - delta, 1, 1.0)],
        (1, 0): [Outcome(1.0, 2, 0.0)],
        (2, 0): [Outcome(1.0, 0, 0.0)],
    }
    if duplicate:
        outcomes[0, 1] = [Outcome(delta, 0, 0.0), Outcome(1 - delta, 1, 0.0)]
    names = ("a0", "a1") if duplicate else ("a0",)
    return Env.from_outcomes(outcomes, state_names=("s0", "s1", "s2"), action_names=names)
