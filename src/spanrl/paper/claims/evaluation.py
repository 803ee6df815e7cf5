"""Gain and bias of policies: the evaluation equations (E0) and the two-state example in closed form (E1)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.paper import oracles_chains
from spanrl.paper.claims.base import EXACT, LP_TOL, CheckResult, Claim, Gaps, Ledger, Scale
from spanrl.paper.instances import generator, random_mdp, random_policy
from spanrl.paper.oracles import Vector, finite, span
from spanrl.paper.system import System

SPAN_DIAMETER = "sp(h*) ≤ (r_max − r_min) D"


def gaps_evaluation(system: System, mdp: MDP, probs: Vector) -> Gaps:
    """Return how far g = P_d g, h = r_d + P_d h − g, P*h = 0 and g = P*r are off for the policy ``probs`` (Eq. 1)."""
    found = system.evaluate(mdp, Policy(probs))
    P, r = oracles_chains.decision(finite(mdp), probs)
    star = oracles_chains.stationary_matrix(P)
    return {
        "g = P g": float(np.abs(P @ found.gain - found.gain).max()),
        "h = L_d h − g": float(np.abs(r + P @ found.bias - found.gain - found.bias).max()),
        "P* h = 0": float(np.abs(star @ found.bias).max()),
        "g = P* r": float(np.abs(star @ r - found.gain).max()),
        "sp(h)": abs(found.span - span(found.bias)),
    }


def gaps_diameter(system: System, mdp: MDP) -> Gaps:
    """Return the excess of sp(h*) over (r_max − r_min) D where D is finite, and how far D is from the oracle's."""
    found, D = system.analyse(mdp), oracles_chains.diameter(finite(mdp))
    assert found.diameter is not None
    if np.isinf(D) or np.isinf(found.diameter):
        return {"D is infinite": float(found.diameter != D)}
    gaps = {"D against the LP": abs(found.diameter - D) / max(D, 1.0)}
    if found.span is not None:
        gaps[SPAN_DIAMETER] = found.span - (mdp.r_max - mdp.r_min) * found.diameter
    return gaps


def check_E0(system: System, scale: Scale) -> CheckResult:
    """Check the evaluation equations on random policies, and sp(h*) ≤ r_max D on random MDPs and the paper's."""
    rng, ledger = generator("E0"), Ledger()
    for _ in range(scale.instances * 4):
        mdp = random_mdp(rng)
        probs = random_policy(rng, mdp)
        P, _ = oracles_chains.decision(finite(mdp), probs)
        ledger.count("policies with several recurrent classes", len(oracles_chains.recurrent_classes(P)) > 1)
        ledger.gaps(gaps_evaluation(system, mdp, probs))
    models = [random_mdp(rng) for _ in range(scale.instances)]
    models += [system.make(name).mdp for name in ("two-state", "three-state[delta=0.01]", "three-state[delta=0]")]
    for mdp in models:
        gaps = gaps_diameter(system, mdp)
        ledger.count("MDPs with a finite diameter", SPAN_DIAMETER in gaps)
        ledger.count("MDPs with an infinite diameter", "D is infinite" in gaps)
        ledger.gaps(gaps, LP_TOL)
    tight = gaps_diameter(system, system.make("two-state").mdp)[SPAN_DIAMETER]
    ledger.equal("two-state: sp(h*) − r_max D", tight, 0.0, LP_TOL)
    cases = ("policies with several recurrent classes", "MDPs with a finite diameter", "MDPs with an infinite diameter")
    return ledger.outcome(needs=cases)


def closed_form(x: Fraction, y: Fraction) -> tuple[Fraction, Fraction]:
    """Return the gain and h(s1) − h(s0) of the two-state policy (x, y), not both zero (Example 1).

    g = ½ + x(1 − 3y)/(2(x + y)); h₂ − h₁ = ½ + (1 − 3y)/(2(x + y)).
    """
    half = Fraction(1, 2)
    return half + x * (1 - 3 * y) / (2 * (x + y)), half + (1 - 3 * y) / (2 * (x + y))


def two_state_policy(x: float, y: float) -> Policy:
    """Return the policy that plays a0 with probability x in s0 and y in s1."""
    return Policy([[x, 1 - x], [y, 1 - y]])


def exact_two_state(mdp: MDP, x: Fraction, y: Fraction) -> tuple[Any, Any]:
    """Return gain [2] and bias [2] of (x, y) in exact fractions."""
    dense = finite(mdp)
    exact = replace(dense, P=oracles_chains.as_fractions(dense.P), r=oracles_chains.as_fractions(dense.r))
    return oracles_chains.evaluate(*oracles_chains.decision(exact, np.array([[x, 1 - x], [y, 1 - y]], dtype=object)))


def check_E1(system: System, scale: Scale) -> CheckResult:
    """Check closed form, exact fractions and ``evaluate`` against each other, the point (0, 0), and the jump there."""
    ledger, mdp = Ledger(), system.make("two-state").mdp
    steps = [Fraction(i, 10) for i in range(11)] + [Fraction(1, 100), Fraction(1, 3)]
    for x, y in ((x, y) for x in steps for y in steps if x or y):
        g, difference = closed_form(x, y)
        gain, bias = exact_two_state(mdp, x, y)
        ledger.true("closed form in exact fractions", gain[0] == gain[1] == g and bias[1] - bias[0] == difference)
        found = system.evaluate(mdp, two_state_policy(float(x), float(y)))
        ledger.within("gain", float(np.abs(found.gain - float(g)).max()))
        ledger.within("h₂ − h₁", abs(found.bias[1] - found.bias[0] - float(difference)))
    zero = system.evaluate(mdp, two_state_policy(0.0, 0.0))
    ledger.equal("gain of (0, 0) in s0", zero.gain[0], 0.5)
    ledger.equal("gain of (0, 0) in s1", zero.gain[1], 1.0)
    ledger.equal("span at (0, 0)", zero.span, 0.0)
    near = system.evaluate(mdp, two_state_policy(1e-6, 1e-6))
    ledger.equal(
        "gain at x = y = 1e-6", near.gain[0], float(closed_form(Fraction(1, 10**6), Fraction(1, 10**6))[0]), 1e-7
    )
    ledger.true(
        "the gain jumps at (0, 0)", abs(near.gain[0] - zero.gain[0]) > 0.2 and abs(near.gain[1] - zero.gain[1]) > 0.2
    )
    ledger.true("the span goes to infinity there", near.span > 1e5)
    ledger.equal("span at x = y = 0.01", system.evaluate(mdp, two_state_policy(0.01, 0.01)).span, 24.75)
    spans = [system.evaluate(mdp, two_state_policy(x, y)).span for x in (0.0, 1.0) for y in (0.0, 1.0)]
    ledger.equal("largest span of a deterministic policy", max(spans), 1.0)
    return ledger.outcome()


CLAIMS = (
    Claim(
        id="E0",
        title="Evaluation equations; span of the optimal bias against the diameter",
        place="Sec. 2, Eq. 1 and introduction",
        statement="Gain and bias of every stationary policy satisfy g = P_d g and h = L_d h − g, with one recurrent "
        "class or several, and sp(h*) ≤ r_max D (ours: (r_max − r_min) D).",
        tolerance=f"{EXACT:g} absolute for the equations; {LP_TOL:g} where a linear programme is compared with.",
        check=check_E0,
    ),
    Claim(
        id="E1",
        title="The two-state example in closed form",
        place="Example 1, Sec. 4",
        statement="The policy (x, y) has gain ½ + x(1 − 3y)/(2(x + y)) and h₂ − h₁ = ½ + (1 − 3y)/(2(x + y)); at x = "
        "y = 0 the gain is (½, 1): it jumps there. Differs from the paper: sp(h) ≤ 1 holds for "
        "deterministic policies only (x = y = 0.01: 24.75).",
        tolerance=f"exact in fractions; {EXACT:g} for evaluate().",
        check=check_E1,
    ),
)
