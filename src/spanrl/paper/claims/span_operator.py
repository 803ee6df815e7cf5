"""The span-constrained Bellman operator T_c = Γ_c L: the properties it inherits (O6–O9)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spanrl.models.mdp import MDP
from spanrl.paper import oracles, oracles_chains
from spanrl.paper.claims.base import EXACT, CheckResult, Claim, Gaps, Ledger, Scale
from spanrl.paper.instances import generator, random_bound, random_box, random_mdp, random_model, random_vector
from spanrl.paper.oracles import Model, Vector, finite, span
from spanrl.paper.system import System

ModelCheck = Callable[[System, Model, Vector, Vector, float], Gaps]


def gaps_O6(system: System, model: Model, u: Vector, v: Vector, c: float) -> Gaps:
    """Return by how much T_c differs from Γ_c L, and is not monotone or not bounded on both sides (Lemma 16 a)."""
    low, high, other = (system.span_bellman(model, x, c) for x in (np.minimum(u, v), v, u))
    moved = high - other
    return {
        "T_c v = Γ_c L v": float(np.abs(high - oracles.span_bellman(finite(model), v, c)).max()),
        "monotone": float((low - high).max()),
        "lower side": float(np.min(v - u) - moved.min()),
        "upper side": float(moved.max() - np.max(v - u)),
    }


def gaps_O7(system: System, model: Model, u: Vector, v: Vector, c: float) -> Gaps:
    """Return by how much T_c v ≤ Lv, and v ≤ Lv ⇒ v ≤ T_c v where sp(v) ≤ c, are broken (Lemma 16 b).

    The second is checked for every v with sp(v) ≤ c, not only where v ≤ Lv: with rewards lowered by λ = min(Lv − v)
    it says min(T_c v − v) ≥ λ.
    """
    Tv, Lv = system.span_bellman(model, v, c), system.bellman(model, v)
    gaps = {"T_c v ≤ Lv": float((Tv - Lv).max()), "sp(T_c v) ≤ c": span(Tv) - c}
    if span(v) <= c:
        gaps["v ≤ Lv ⇒ v ≤ T_c v"] = float((Lv - v).min() - (Tv - v).min())
    return gaps


def gaps_O8(system: System, model: Model, u: Vector, v: Vector, c: float) -> Gaps:
    """Return how far T_c is from commuting with a constant, and by how much it expands (Lemma 16 c, d)."""
    shift, Tv = float(u[0]), system.span_bellman(model, v, c)
    moved = system.span_bellman(model, u, c) - Tv
    return {
        "translation": float(np.abs(system.span_bellman(model, v + shift, c) - Tv - shift).max()),
        "span": span(moved) - span(u - v),
        "sup norm": float(np.abs(moved).max() - np.abs(u - v).max()),
    }


def _on_models(claim: str, instance: ModelCheck) -> Callable[[System, Scale], CheckResult]:
    """Return the check of an instance function on random MDPs and bounded MDPs with random u, v and c."""

    def check(system: System, scale: Scale) -> CheckResult:
        rng, ledger = generator(claim), Ledger()
        for _ in range(scale.instances * 6):
            model = random_model(rng)
            v = random_vector(rng, model.n_states)
            u = v + random_vector(rng, v.size) * rng.choice([0.1, 1.0], size=v.size)
            c = random_bound(rng, v if rng.random() < 0.5 else oracles.bellman(finite(model), v))
            ledger.count("cases that T_c truncates", span(oracles.bellman(finite(model), v)) > c)
            ledger.count(
                "cases with sp(v) ≤ c that T_c truncates", span(v) <= c < span(oracles.bellman(finite(model), v))
            )
            ledger.gaps(instance(system, model, u, v, c))
        return ledger.outcome(needs=("cases that T_c truncates", "cases with sp(v) ≤ c that T_c truncates"))

    return check


def gaps_O9(system: System, model: Model, u: Vector, v: Vector, c: float, sweeps: int = 30) -> Gaps:
    """Return by how much T_c contracts less than L must, and ScOpt's steps shrink slower than γⁿ (Lemmas 7 and 8).

    γ = 1 − min Σ_j min(p(j), q(j)) over all pairs of rows is the contraction factor of L.
    """
    gamma = float(oracles_chains.ergodic_coefficient(oracles_chains.all_rows(finite(model))))
    Tu, Tv = system.span_bellman(model, u, c), system.span_bellman(model, v, c)
    gaps = {"sp(T_c u − T_c v) ≤ γ sp(u − v)": span(Tu - Tv) - gamma * span(u - v)}
    w, first, slow = oracles.truncate(v, c), 0.0, -np.inf
    for n in range(sweeps):
        step = system.span_bellman(model, w, c) - w
        first = first or span(step)
        slow = max(slow, span(step) - gamma**n * first)
        w = w + step
    gaps["sp(v_{n+1} − v_n) ≤ γⁿ sp(v_1 − v_0)"] = slow
    return gaps


def check_O9(system: System, scale: Scale) -> CheckResult:
    """Check contraction and geometric rate on models with positive probabilities, and that the factor is attained."""
    rng, ledger = generator("O9"), Ledger()
    for _ in range(scale.instances * 2):
        model = random_mdp(rng, positive=True) if rng.random() < 0.5 else random_box(rng, positive=True)
        gamma = oracles_chains.ergodic_coefficient(oracles_chains.all_rows(finite(model)))
        u, v = random_vector(rng, model.n_states), random_vector(rng, model.n_states)
        c = random_bound(rng, v) + 0.1
        ledger.count("models with γ < 1", gamma < 1)
        ledger.gaps(gaps_O9(system, model, u, v, c))
    tight = MDP.from_dense(np.array([[[0.9, 0.1]], [[0.2, 0.8]]]), np.array([[0.0], [1.0]]))
    gamma, v = float(oracles_chains.ergodic_coefficient(oracles_chains.all_rows(finite(tight)))), np.array([0.0, 1.0])
    moved = system.span_bellman(tight, 2 * v, np.inf) - system.span_bellman(tight, v, np.inf)
    ledger.equal("two states: contraction factor, attained", span(moved), gamma)
    found = system.solve(tight, span_bound=0.5, contraction=gamma, tol=1e-8)
    ledger.note("two states: sweeps to 1e-8 by the paper's rule", found.sweeps)
    wanted = sweeps_needed(gamma, 1e-8, tight, 0.5)
    ledger.within("two states: the paper's rule stops where it should, up to one sweep", abs(found.sweeps - wanted) - 1)
    return ledger.outcome(needs=("models with γ < 1",))


def sweeps_needed(gamma: float, tol: float, model: Model, c: float) -> int:
    """Return how many times ScOpt applies T_c from v_0 = 0 until its own rule stops it (Fig. 3).

    The rule is sp(v_{n+1} − v_n) + 2γⁿ/(1 − γ) sp(v_1 − v_0) ≤ tol.
    """
    v, first, n = np.zeros(model.n_states), 0.0, 0
    while True:
        step = oracles.span_bellman(finite(model), v, c) - v
        first = span(step) if n == 0 else first
        if span(step) + 2 * gamma**n / (1 - gamma) * first <= tol:
            return n + 1
        v, n = v + step, n + 1


_EXACTLY = f"{EXACT:g} absolute, on MDPs, boxes and L1 balls with vectors of order 10."
CLAIMS = (
    Claim(
        id="O6",
        title="T_c is monotone",
        place="Def. 1, Sec. 5.1; Lemma 16 (a), App. D.2",
        statement="T_c = Γ_c L; v ≥ u ⇒ T_c v ≥ T_c u, and min(v − u) ≤ T_c v − T_c u ≤ max(v − u).",
        tolerance=_EXACTLY,
        check=_on_models("O6", gaps_O6),
    ),
    Claim(
        id="O7",
        title="T_c lies below L, and above v where L does",
        place="Lemma 16 (b), App. D.2",
        statement="T_c v ≤ Lv and sp(T_c v) ≤ c; if sp(v) ≤ c and v ≤ Lv then v ≤ T_c v.",
        tolerance=_EXACTLY,
        check=_on_models("O7", gaps_O7),
    ),
    Claim(
        id="O8",
        title="T_c commutes with adding a constant and is non-expansive",
        place="Lemma 16 (c) and (d), App. D.2",
        statement="T_c(v + λe) = T_c v + λe; sp(T_c u − T_c v) ≤ sp(u − v); ‖T_c u − T_c v‖_∞ ≤ ‖u − v‖_∞.",
        tolerance=_EXACTLY,
        check=_on_models("O8", gaps_O8),
    ),
    Claim(
        id="O9",
        title="T_c inherits the contraction of L; ScOpt converges at its rate",
        place="Lemmas 7 and 8, Sec. 5.2; Lemma 16 (d)",
        statement="Where L is a γ-span contraction so is T_c, and sp(v_{n+1} − v_n) ≤ γⁿ sp(v_1 − v_0). γ is the "
        "ergodic coefficient.",
        tolerance=f"{EXACT:g} absolute.",
        check=check_O9,
    ),
)
