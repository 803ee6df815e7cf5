"""When T_c v belongs to a decision rule, which one, and why a linear programme for the gain fails (F1–F3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spanrl.models.mdp import MDP
from spanrl.paper import oracles, oracles_chains
from spanrl.paper.claims.base import EXACT, LP_TOL, CheckResult, Claim, Gaps, Ledger, Scale
from spanrl.paper.instances import generator, random_bound, random_model, random_vector
from spanrl.paper.oracles import Model, Vector, finite, span
from spanrl.paper.system import System

CLEAR = 1e-6
"""Distance from the border of feasibility beyond which rounding and the LP's tolerance cannot matter."""


def gaps_F1(system: System, model: Model, v: Vector, c: float) -> Gaps:
    """Return 1 for each part of Lemma 5 that is wrong at (v, c), and the distance of T_c v from the LP's value.

    At s: feasible ⇔ min_a[…] ≤ min Lv + c. Globally: feasible ⇔ D(c, v) ≠ ∅, and then T_c v is the maximum
    of L_d v over D(c, v).
    """
    dense = finite(model)
    margin = oracles.lowest(dense, v) - oracles.bellman(dense, v).min() - c
    clear = np.abs(margin) > CLEAR
    rule = system.span_greedy(model, v, c)
    gaps = {"feasible at s": float((rule.feasible != (margin <= 0))[clear].any())}
    if not clear.all():
        return gaps
    found = oracles.span_bellman_lp(dense, v, c)
    gaps["feasible ⇔ D(c, v) ≠ ∅"] = float(bool(rule.feasible.all()) != (found is not None))
    if found is not None:
        gaps["T_c v = max over D(c, v)"] = float(np.abs(system.span_bellman(model, v, c) - found[0]).max())
    return gaps


def border_cases() -> list[tuple[Vector, float, bool]]:
    """Return (v, c, feasible) for the nonfeasible example where v̲ = min Lv + c exactly in binary, and next to it."""
    return [
        (np.zeros(2), 1.0, True),
        (np.zeros(2), 1.0 - 2.0**-10, False),
        (np.array([0.0, 0.5]), 0.5, True),
        (np.zeros(2), 0.0, False),
    ]


def check_F1(system: System, scale: Scale) -> CheckResult:
    """Check Lemma 5 on random models, feasible and not, and exactly on the border."""
    rng, ledger = generator("F1"), Ledger()
    for _ in range(scale.instances * 3):
        model = random_model(rng)
        v = random_vector(rng, model.n_states)
        c = random_bound(rng, v)
        feasible = (oracles.lowest(finite(model), v) <= oracles.bellman(finite(model), v).min() + c).all()
        ledger.count("feasible instances", feasible)
        ledger.count("infeasible instances", not feasible)
        ledger.gaps(gaps_F1(system, model, v, c), LP_TOL)
    mdp = system.make("counterexample-nonfeasible").mdp
    for v, c, feasible in border_cases():
        ledger.true(
            "the border belongs to the feasible side", bool(system.span_greedy(mdp, v, c).feasible.all()) is feasible
        )
    return ledger.outcome(needs=("feasible instances", "infeasible instances"))


def gaps_F2(system: System, model: Model, v: Vector, c: float) -> Gaps:
    """Return how far G_c v is from attaining T_c v (v̲ where infeasible), and its weights from the formula (App. C)."""
    dense = finite(model)
    high, low = oracles.bellman(dense, v), oracles.lowest(dense, v)
    top = high.min() + c
    wanted = np.where(low > top, low, np.minimum(high, top))
    gap = np.where(high > low, high - low, 1.0)
    weight = np.where(high > top, np.where(low > top, 1.0, (high - top) / gap), 0.0)
    rule = system.span_greedy(model, v, c)
    P, r = rule.optimistic
    sharp = high - low > 1e-3  # elsewhere the weight of two nearly equal values is not determined
    return {
        "r̃ + P̃v = T_c v, or v̲": float(np.abs(r + P @ v - wanted).max()),
        "N_c v": float(np.abs(system.span_policy_bellman(model, v, c) - wanted).max()),
        "weight": float(np.abs(rule.weight - weight)[sharp].max(initial=0.0)),
        "rows of P̃ sum to 1": float(np.abs(P @ np.ones(v.size) - 1.0).max()),
        "probabilities of the policy sum to 1": float(np.abs(rule.policy.probs.sum(axis=1) - 1.0).max()),
        **_played(rule.policy.probs, model, v, wanted, weight * sharp),
    }


def _played(probs: Vector, model: Model, v: Vector, wanted: Vector, weight: Vector) -> Gaps:
    """Return the gaps of the policy played: in an MDP it attains the value; in a set it carries the two weights."""
    dense = finite(model)
    available = np.zeros_like(probs, dtype=bool)
    np.logical_or.at(available, (np.arange(len(probs))[:, None], dense.action), dense.available)
    gaps = {"probability of unavailable actions": float(probs[~available].sum())}
    if isinstance(model, MDP):
        P, r = oracles_chains.decision(dense, probs)
        gaps["L_d v of the policy played"] = float(np.abs(r + P @ v - wanted).max())
    low, high = oracles.q_values(dense, v, np.inf), oracles.q_values(dense, v)
    worst = _mass(probs, dense, low <= low.min(axis=1, keepdims=True) + EXACT)
    best = _mass(probs, dense, high >= high.max(axis=1, keepdims=True) - EXACT)
    return gaps | {
        "weight on the minimal actions": float((weight - worst).max()),
        "weight on the greedy actions": float((1 - weight - best)[weight > 0].max(initial=0.0)),
    }


def _mass(probs: Vector, dense: oracles.Finite, chosen: NDArray[np.bool_]) -> Vector:
    """Return the probability [S] of the underlying actions that have a ``chosen`` [S, K] extended action."""
    marked = np.zeros_like(probs, dtype=bool)
    np.logical_or.at(marked, (np.arange(len(probs))[:, None], dense.action), chosen)
    return np.asarray((probs * marked).sum(axis=1))


def check_F2(system: System, scale: Scale) -> CheckResult:
    """Check on random models that the mixture attains T_c v exactly and equals the LP's value."""
    rng, ledger = generator("F2"), Ledger()
    for i in range(scale.instances * 6):
        model = random_model(rng)
        v = random_vector(rng, model.n_states)
        c = random_bound(rng, v if rng.random() < 0.5 else oracles.bellman(finite(model), v))
        rule = system.span_greedy(model, v, c)
        ledger.count("rules that mix", ((rule.weight > 0.01) & (rule.weight < 0.99)).any())
        ledger.count("infeasible instances", not rule.feasible.all())
        ledger.gaps(gaps_F2(system, model, v, c))
        found = oracles.span_bellman_lp(finite(model), v, c) if i % 6 == 0 and rule.feasible.all() else None
        if found is not None:
            P, r = rule.optimistic
            ledger.within("equals the LP's value", float(np.abs(r + P @ v - found[0]).max()), LP_TOL)
    return ledger.outcome(needs=("rules that mix", "infeasible instances"))


def check_F3(system: System, scale: Scale) -> CheckResult:
    """Compare, on the two-state example, the LP with span constraints with ScOpt and with a grid of policies."""
    ledger, mdp = Ledger(), system.make("two-state").mdp
    dense = finite(mdp)
    ledger.equal("LP with span constraints, c = .75", oracles.span_lp_gain(dense, 0.75), 1.0, LP_TOL)
    ledger.equal("ScOpt, c = .75", system.solve(mdp, span_bound=0.75, tol=1e-10).gain, 0.75, 1e-8)
    best, rule = oracles_chains.constrained_optimum(dense, 0.75, 84)
    ledger.equal("best policy of a grid of 1/84", best, 0.75)
    assert rule is not None
    ledger.within("its y is 1/7", abs(rule[1, 0] - 1 / 7))
    ledger.equal(
        "LP without span constraints",
        oracles.span_lp_gain(dense, 1e6),
        float(oracles_chains.optimal_gain_lp(dense)[0]),
        LP_TOL,
    )
    free = system.solve(mdp, tol=1e-10)
    ledger.equal("g* without a bound", free.gain, 1.0, 1e-8)
    ledger.note("sp(h*) without a bound", span(free.bias))
    return ledger.outcome()


CLAIMS = (
    Claim(
        id="F1",
        title="When T_c v is attained by a decision rule",
        place="Lemma 5, Sec. 5.1; App. D.1 and A.2",
        statement="T_c is feasible at s exactly when min_a[r + pᵀv] ≤ min Lv + c; in all states exactly when D(c, v) "
        "= {d : sp(L_d v) ≤ c} is not empty, and then T_c v is the componentwise maximum of L_d v over D(c, "
        "v).",
        tolerance=f"{LP_TOL:g} against the linear programme; exact on the border, in binary fractions.",
        check=check_F1,
    ),
    Claim(
        id="F2",
        title="The mixture attains T_c v",
        place="Def. 2, Sec. 5.1; App. C",
        statement="G_c v puts (v̄ − min Lv − c)/(v̄ − v̲) on the minimal and the rest on the greedy action in "
        "truncated states, so that L_{G_c v} v = T_c v; where T_c is infeasible it plays the minimal "
        "action.",
        tolerance=f"{EXACT:g} absolute; {LP_TOL:g} against the linear programme.",
        check=check_F2,
    ),
    Claim(
        id="F3",
        title="Adding span constraints to the linear programme for the gain is wrong",
        place="Remark in App. A.2",
        statement="On the two-state example with c = .75 the primal programme with h(s) − h(s') ≤ c gives 1, the "
        "constrained optimum is .75.",
        tolerance=f"{LP_TOL:g} for the linear programme, 1e-8 for the solver.",
        check=check_F3,
    ),
)
