"""What ScOpt promises: dominance and uniqueness (D1), accuracy at the stop (S1), the constrained optimum (S2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from spanrl.models.bounded import BoundedMDP
from spanrl.models.mdp import MDP
from spanrl.paper import oracles, oracles_chains
from spanrl.paper.claims.base import EXACT, CheckResult, Claim, Gaps, Ledger, Scale
from spanrl.paper.claims.sets import perturbable
from spanrl.paper.instances import (
    as_bounded,
    generator,
    random_box,
    random_mdp,
    random_member,
    random_model,
    random_vector,
)
from spanrl.paper.oracles import Model, finite, span
from spanrl.paper.system import System

SOLVED = 1e-7
"""Allowed distance of a solver's policy at tol = 1e-10 from its limit."""

EXAMPLES = (
    ("counterexample-fixed-point", 0.7),
    ("counterexample-cycle[duplicate=true]", 0.3),
    ("counterexample-nonfeasible", 0.5),
    ("two-state", 0.75),
)
"""Environments of the paper with a span bound: T_c is infeasible at the fixed point of the first."""


def small_mdp(rng: np.random.Generator, *, positive: bool) -> MDP:
    """Draw an MDP with 2 or 3 states and at most 2 actions: small enough for a grid of randomised policies."""
    return random_mdp(rng, S=int(rng.integers(2, 4)), A=2, positive=positive)


def gaps_D1(system: System, model: Model, c: float, best: float, rng: np.random.Generator) -> Gaps:
    """Return by how much ``best`` = g*_c exceeds g⁺, and g⁺ differs between starts, states and methods (Lemma 8)."""
    first = system.solve(model, span_bound=c, tol=1e-9)
    start, last = oracles.truncate(random_vector(rng, model.n_states), c), model.n_states - 1
    others = [
        system.solve(model, span_bound=c, tol=1e-9, v_init=start),
        system.solve(model, span_bound=c, tol=1e-9, ref_state=last, damping=0.3, method="value-iteration"),
        system.solve(model, span_bound=c, tol=1e-9, method="modified-policy-iteration"),
    ]
    g = oracles.fixed_point(finite(model), c)[0]
    gaps = {
        "g⁺ against the oracle, below": first.gain_bounds[0] - g,
        "g⁺ against the oracle, above": g - first.gain_bounds[1],
        "g⁺ is unique": max(abs(found.gain - first.gain) for found in others) - 1e-9,
    }
    return gaps | ({"g*_c ≤ g⁺": best - first.gain_bounds[1]} if np.isfinite(best) else {})


def never_feasible() -> MDP:
    """Return an MDP whose fixed point is h⁺ = (0, c, c), g⁺ = ¼ + 0.65c for small c, with T_c infeasible in s2."""
    P = np.array([[[0.35, 0.25, 0.4], [1, 0, 0]], [[1, 0, 0], [0.5, 0.5, 0]], [[0.35, 0.05, 0.6], [0, 1, 0]]])
    r = [[0.25, 0.0], [0.25, 0.75], [0.75, 0.5]]
    return MDP.from_dense(P, r, available=[[True, False], [True, True], [True, True]])


def strictly_dominates(ledger: Ledger, system: System, c: float) -> None:
    """Check on :func:`never_feasible` that g⁺ has its closed form and lies above every policy that keeps the bound."""
    mdp = never_feasible()
    found, (best, _) = (
        system.solve(mdp, span_bound=c, tol=1e-10),
        oracles_chains.constrained_optimum(finite(mdp), c, 40),
    )
    ledger.true("never feasible: T_c is infeasible at the fixed point", not found.feasible)
    ledger.equal(f"never feasible: g⁺, c = {c:g}", found.gain, 0.25 + 0.65 * c)
    ledger.note(f"never feasible: best policy within c = {c:g}, grid of 1/40", best)
    ledger.true("never feasible: g⁺ > g*_c > −∞", -np.inf < best < found.gain - 0.01)


def check_D1(system: System, scale: Scale) -> CheckResult:
    """Check g⁺ ≥ gain of every policy of a grid that keeps the bound, feasible or not, and uniqueness of g⁺."""
    rng, ledger = generator("D1"), Ledger()
    cases: list[tuple[Model, MDP, float]] = [(mdp, mdp, c) for name, c in EXAMPLES for mdp in [system.make(name).mdp]]
    for i in range(scale.instances):
        mdp = small_mdp(rng, positive=bool(i % 2))
        cases.append((mdp, mdp, _some_bound(rng, mdp)))
        bounded = random_box(rng, S=2, A=2)
        cases.append((bounded, random_member(rng, bounded), _some_bound(rng, bounded)))
    for model, member, c in cases:
        best, _ = oracles_chains.constrained_optimum(finite(member), c, 7)
        feasible = system.solve(model, span_bound=c, tol=1e-9).feasible
        ledger.count("infeasible, with policies that keep the bound", np.isfinite(best) and not feasible)
        ledger.count("feasible, with policies that keep the bound", np.isfinite(best) and feasible)
        ledger.count("sets, with policies of a member that keep the bound", np.isfinite(best) and model is not member)
        ledger.gaps(gaps_D1(system, model, c, best, rng))
    for c in (0.2, 0.25, 0.3):
        strictly_dominates(ledger, system, c)
    return ledger.outcome(needs=tuple(name for name in ledger.numbers if name.endswith("keep the bound")))


def _some_bound(rng: np.random.Generator, model: Model) -> float:
    return float(rng.choice([0.1, 0.3, 0.6, 1.0])) * (model.r_max - model.r_min)


def gaps_S1(system: System, model: Model, c: float, eps: float, **options: Any) -> tuple[Gaps, float, bool]:
    """Return the excess over ScOpt's promises at its stop, the span of the policy's bias, and the feasibility.

    Thm. 10 and the three brackets of Thm. 18, without the γ term (sharper than printed: T_c is monotone and commutes
    with constants). With greedy actions in truncated states, or where T_c is infeasible, only g^π ≥ g⁺ − ε remains.
    """
    found = system.solve(model, span_bound=c, tol=eps, **options)
    P, r = found.optimistic
    gain, bias = oracles_chains.evaluate(P.toarray(), r)
    g = oracles.fixed_point(finite(model), c, tol=1e-10)[0]
    top = system.span_bellman(model, found.bias, c) - found.bias
    if options.get("policy", "mixture") == "mixture":
        step = system.span_policy_bellman(model, found.bias, c) - found.bias
    else:
        step = r + P @ found.bias - found.bias
    off = float(np.abs(g - gain).max())
    gaps = {
        "g⁺ − ε ≤ g^π": g - eps - float(gain.min()),
        "1) m_n ≤ g^π ≤ M_n": max(float(step.min() - gain.min()), float(gain.max() - step.max())),
        "2) m⁺_n ≤ g⁺ ≤ M⁺_n": max(float(top.min()) - g, g - float(top.max())),
        "3) |g⁺ − g^π| ≤ max(M⁺_n − m_n, M_n − m⁺_n)": off - max(top.max() - step.min(), step.max() - top.min()),
        "the reported bracket": max(found.gain_bounds[0] - g, g - found.gain_bounds[1], span(top) - eps),
        "sp(v_n) ≤ c": span(found.bias) - c,
    }
    if found.feasible and options.get("policy", "mixture") == "mixture":
        gaps["feasible, mixture: |g⁺ − g^π| ≤ ε"] = off - eps
    return gaps, span(bias), found.feasible


def check_S1(system: System, scale: Scale) -> CheckResult:
    """Check the stop on random models: mixture and greedy, feasible or not, and with the paper's rule on M‡."""
    rng, ledger = generator("S1"), Ledger()
    for i in range(scale.instances * 2):
        model = random_model(rng) if i % 2 else random_mdp(rng, positive=True)
        c = float(rng.choice([0.1, 0.3, 1.0])) * (model.r_max - model.r_min)
        eps = float(rng.choice([0.3, 0.03, 1e-3, 1e-6]))
        gaps, spread, feasible = gaps_S1(system, model, c, eps)
        ledger.gaps(gaps)
        ledger.count("feasible at the stop", feasible)
        ledger.count("infeasible at the stop", not feasible)
        ledger.count("feasible, and sp(h^π) > c", feasible and spread > c + EXACT)
        ledger.gaps(
            {f"greedy: {name}": gap for name, gap in gaps_S1(system, model, c, eps, policy="greedy")[0].items()}
        )
    for _ in range(scale.instances // 2):
        bounded, eta, state = perturbable(rng)
        modified = system.perturb(system.augment(bounded), eta, state)
        gaps, _, feasible = gaps_S1(system, modified, 0.5, 0.01, contraction=1 - eta)
        ledger.true("T_c is feasible on M‡", feasible)
        ledger.gaps({f"M‡, the paper's rule: {name}": gap for name, gap in gaps.items()})
    for delta in (0.01, 1e-4):
        span_beyond_bound(ledger, system, delta)
    return ledger.outcome(needs=("feasible at the stop", "infeasible at the stop"))


def sluggish(delta: float) -> BoundedMDP:
    """Return two states that are left with probability δ and pay 0 and 0.05, augmented; γ = 1 − 2δ."""
    P = np.array([[[1 - delta, delta]], [[delta, 1 - delta]]])
    return as_bounded(MDP.from_dense(P, np.array([[0.0], [0.05]]))).augment()


def span_beyond_bound(ledger: Ledger, system: System, delta: float, c: float = 0.1, eps: float = 0.05) -> None:
    """Check that on the sluggish chain ScOpt stops at v_0 = 0 with a policy whose bias has span 0.05/(2δ) ≫ c."""
    model = sluggish(delta)
    found = system.solve(model, span_bound=c, tol=eps, v_init=np.zeros(2), method="value-iteration")
    P, r = found.optimistic
    gain, bias = oracles_chains.evaluate(P.toarray(), r)
    ledger.within(
        "sluggish chain: |g⁺ − g^π| ≤ ε", float(np.abs(gain - oracles.fixed_point(finite(model), c)[0]).max()) - eps
    )
    ledger.true("sluggish chain: feasible, sp(v_n) ≤ c", found.feasible and span(found.bias) <= c)
    ledger.equal(f"sp(h^π) where c = {c:g}, δ = {delta:g}", span(bias), 0.025 / delta, 1e-6)


def gaps_S2(system: System, mdp: MDP, c: float, n: int) -> Gaps | None:
    """Return how far π⁺ is from the best policy that keeps the bound; None where infeasible or not unichain.

    π⁺ keeps the bound and has gain g⁺ (evaluated by the oracle), and no policy of a grid of 1/n that keeps it has more.
    """
    found = system.solve(mdp, span_bound=c, tol=1e-10)
    P, r = oracles_chains.decision(finite(mdp), found.policy.probs)
    if not found.feasible or len(oracles_chains.recurrent_classes(P)) > 1:
        return None
    gain, bias = oracles_chains.evaluate(P, r)
    return {
        "gain of π⁺ = g⁺": float(np.abs(gain - found.gain).max()),
        "sp(h of π⁺) ≤ c": span(bias) - c,
        "no policy of the grid is better": oracles_chains.constrained_optimum(finite(mdp), c, n)[0]
        - found.gain_bounds[1]
        - 1e-9,
    }


def check_S2(system: System, scale: Scale) -> CheckResult:
    """Check on random MDPs that ScOpt solves the constrained problem, with a grid of policies as the oracle."""
    rng, ledger = generator("S2"), Ledger()
    for i in range(scale.instances * 2):
        mdp = small_mdp(rng, positive=bool(i % 3))
        c = float(rng.choice([0.1, 0.3, 0.6])) * (mdp.r_max - mdp.r_min)
        gaps = gaps_S2(system, mdp, c, 12 if mdp.n_states == 3 else 40)
        if gaps is None:
            ledger.count("infeasible or multichain: nothing claimed")
            continue
        _, h = oracles.fixed_point(finite(mdp), c)
        truncated = span(oracles.bellman(finite(mdp), h)) > c + 1e-6
        ledger.count("instances where the bound binds", truncated)
        ledger.gaps(gaps, SOLVED)
    for c in (0.55, 0.75, 0.95):
        exact = gaps_S2(system, system.make("two-state").mdp, c, 60)
        ledger.true("feasible and unichain on the two-state example", exact is not None)
        ledger.gaps(exact or {}, SOLVED)
    return ledger.outcome(needs=("instances where the bound binds",))


CLAIMS = (
    Claim(
        id="D1",
        title="g⁺ dominates the constrained optimum and is unique",
        place="Lemma 8 (1) and (3), Sec. 5.2; App. D.3",
        statement="g⁺ ≥ g*_c, also where T_c is infeasible, and g⁺ of a set ≥ g*_c of its members; g⁺ does not depend "
        "on the start, the reference state or the method.",
        tolerance=f"{EXACT:g} on brackets of width 1e-9; policies on a grid of 1/7.",
        check=check_D1,
    ),
    Claim(
        id="S1",
        title="ScOpt's policy at the stop",
        place="Thm. 10, Sec. 5.2; Thm. 18, App. D.4",
        statement="At sp(v_{n+1} − v_n) ≤ ε: |g⁺ − g^π| ≤ ε where T_c is feasible and the policy is the mixture; with "
        "greedy actions, or where infeasible, g^π ≥ g⁺ − ε; the three brackets hold. The bias of π_n can "
        "have a span above c. The γ term is not needed for any of it.",
        tolerance=f"{EXACT:g} absolute, g⁺ known to 1e-10.",
        check=check_S1,
    ),
    Claim(
        id="S2",
        title="ScOpt solves the constrained problem",
        place="Thm. 10, second part, Sec. 5.2",
        statement="Where T_c is feasible at h⁺ and π⁺ is unichain, g⁺ = g*_c, and π⁺ attains it within the bound.",
        tolerance=f"{SOLVED:g}; policies on a grid of 1/40 (two states) or 1/12 (three).",
        check=check_S2,
    ),
)
