"""The truncation Γ_c: projection, monotone, two-sided bound, non-expansive, translation (O1–O5)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spanrl.paper.claims.base import EXACT, LP_TOL, CheckResult, Claim, Gaps, Ledger, Scale
from spanrl.paper.instances import generator, random_bound, random_vector
from spanrl.paper.oracles import Vector, projection_distance_lp, span, truncate
from spanrl.paper.system import System

PairCheck = Callable[[System, Vector, Vector, float], Gaps]


def gaps_O1(system: System, v: Vector, c: float) -> Gaps:
    """Return how far Γ_c v is from its definition and from the projection of v on {sp ≤ c} (Lemma 14)."""
    w = system.clip_span(v, c)
    return {
        "Γ_c v = min{v, min v + c}": float(np.abs(w - truncate(v, c)).max()),
        "sp(Γ_c v) ≤ c": span(w) - c,
        "sp(Γ_c v − v) = max(sp(v) − c, 0)": abs(span(w - v) - max(span(v) - c, 0.0)),
    }


def gap_O1_lp(system: System, v: Vector, c: float) -> float:
    """Return by how much sp(Γ_c v − v) exceeds the least distance of v to {sp ≤ c}, found by linear programming."""
    return span(system.clip_span(v, c) - v) - projection_distance_lp(v, c)


def gaps_O2(system: System, u: Vector, v: Vector, c: float) -> Gaps:
    """Return by how much u ∧ v ≤ v ⇒ Γ_c(u ∧ v) ≤ Γ_c v is broken (Lemma 15 a)."""
    return {"monotone": float((system.clip_span(np.minimum(u, v), c) - system.clip_span(v, c)).max())}


def gaps_O3(system: System, u: Vector, v: Vector, c: float) -> Gaps:
    """Return by how much min(v − u) ≤ Γ_c v − Γ_c u ≤ max(v − u) is broken (Lemma 15 b)."""
    moved = system.clip_span(v, c) - system.clip_span(u, c)
    return {"lower side": float(np.min(v - u) - moved.min()), "upper side": float(moved.max() - np.max(v - u))}


def gaps_O4(system: System, u: Vector, v: Vector, c: float) -> Gaps:
    """Return by how much Γ_c expands in span and in the sup norm (Lemma 15 c, d)."""
    moved = system.clip_span(v, c) - system.clip_span(u, c)
    return {"span": span(moved) - span(v - u), "sup norm": float(np.abs(moved).max() - np.abs(v - u).max())}


def gaps_O5(system: System, u: Vector, v: Vector, c: float) -> Gaps:
    """Return how far Γ_c(v + λe) is from Γ_c v + λe, with λ = u(0) (Lemma 15 e)."""
    shift = float(u[0])
    return {"translation": float(np.abs(system.clip_span(v + shift, c) - system.clip_span(v, c) - shift).max())}


def _two_vectors(claim: str, instance: PairCheck) -> Callable[[System, Scale], CheckResult]:
    """Return the check of an instance function on random (u, v, c), u sometimes close to v."""

    def check(system: System, scale: Scale) -> CheckResult:
        rng, ledger = generator(claim), Ledger()
        for _ in range(scale.instances * 20):
            S = int(rng.integers(1, 7))
            v = random_vector(rng, S)
            u = (
                random_vector(rng, S)
                if rng.random() < 0.5
                else v + random_vector(rng, S) * rng.choice([0.01, 1.0], size=S)
            )
            c = random_bound(rng, v)
            ledger.count("vectors that Γ_c cuts", span(v) > c)
            ledger.gaps(instance(system, u, v, c))
        return ledger.outcome(needs=("vectors that Γ_c cuts",))

    return check


def check_O1(system: System, scale: Scale) -> CheckResult:
    """Check the definition, and by linear programming that no z with sp(z) ≤ c is nearer to v than Γ_c v."""
    rng, ledger = generator("O1"), Ledger()
    for i in range(scale.instances * 20):
        v = random_vector(rng, int(rng.integers(1, 7)))
        c = random_bound(rng, v)
        ledger.count("vectors that Γ_c cuts", span(v) > c)
        ledger.gaps(gaps_O1(system, v, c))
        if i % 20 == 0:
            ledger.within("nearest, against the LP", gap_O1_lp(system, v, c), LP_TOL)
    return ledger.outcome(needs=("vectors that Γ_c cuts",))


_EXACTLY = f"{EXACT:g} absolute, on vectors of order 10."
CLAIMS = (
    Claim(
        id="O1",
        title="Γ_c is the projection on {sp ≤ c}",
        place="Lemma 14, App. D.2",
        statement="Γ_c v = min{v, min v + c} has span ≤ c and no vector of span ≤ c is nearer to v in span.",
        tolerance=f"{_EXACTLY} {LP_TOL:g} against the linear programme.",
        check=check_O1,
    ),
    Claim(
        id="O2",
        title="Γ_c is monotone",
        place="Lemma 15 (a), App. D.2",
        statement="v ≥ u ⇒ Γ_c v ≥ Γ_c u.",
        tolerance=_EXACTLY,
        check=_two_vectors("O2", gaps_O2),
    ),
    Claim(
        id="O3",
        title="Γ_c moves by no less and no more than its argument",
        place="Lemma 15 (b), App. D.2",
        statement="min(v − u) ≤ Γ_c v(s) − Γ_c u(s) ≤ max(v − u) in every state.",
        tolerance=_EXACTLY,
        check=_two_vectors("O3", gaps_O3),
    ),
    Claim(
        id="O4",
        title="Γ_c is non-expansive",
        place="Lemma 15 (c) and (d), App. D.2",
        statement="sp(Γ_c v − Γ_c u) ≤ sp(v − u) and ‖Γ_c v − Γ_c u‖_∞ ≤ ‖v − u‖_∞.",
        tolerance=_EXACTLY,
        check=_two_vectors("O4", gaps_O4),
    ),
    Claim(
        id="O5",
        title="Γ_c commutes with adding a constant",
        place="Lemma 15 (e), App. D.2",
        statement="Γ_c(v + λe) = Γ_c v + λe.",
        tolerance=_EXACTLY,
        check=_two_vectors("O5", gaps_O5),
    ),
)
