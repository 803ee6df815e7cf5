"""Bounded-parameter MDPs: inner maxima and EVI (B1, B2), augmentation and perturbation (M1–M3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spanrl.models.bounded import BoundedMDP
from spanrl.models.checks import immutable
from spanrl.paper import oracles, oracles_chains
from spanrl.paper.claims.base import EXACT, LP_TOL, CheckResult, Claim, Gaps, Ledger, Scale
from spanrl.paper.instances import generator, random_ball, random_box, random_member, random_set, random_vector
from spanrl.paper.oracles import Vector, finite, span
from spanrl.paper.oracles_sets import pair_maximum_lp
from spanrl.paper.system import System


def without_rewards(bounded: BoundedMDP) -> BoundedMDP:
    """Return the model with all rewards 0, so that the Bellman operator is the inner maximum itself."""
    zero = immutable(np.zeros(bounded.n_pairs), np.float64)
    return replace(bounded, r_low=zero, r_high=zero, r_min=0.0, r_max=1.0)


def gaps_B1(system: System, bounded: BoundedMDP, v: Vector) -> Gaps:
    """Return how far the inner maximum and minimum are from the LP; ``bounded`` has one action a state (App. C).

    min pᵀv = −max pᵀ(−v), so that the pessimistic value at v is the negated optimistic one at −v.
    """
    sets = without_rewards(bounded)
    high, low = system.bellman(sets, v), system.bellman(sets, v, sense="pessimistic")
    wanted = np.array([pair_maximum_lp(sets, i, v) for i in range(sets.n_pairs)])
    least = -np.array([pair_maximum_lp(sets, i, -v) for i in range(sets.n_pairs)])
    return {
        "maximum against the LP": float(np.abs(high - wanted).max()),
        "minimum against the LP": float(np.abs(low - least).max()),
        "minimum = −(maximum at −v)": float(np.abs(low + system.bellman(sets, -v)).max()),
    }


def check_B1(system: System, scale: Scale) -> CheckResult:
    """Check the inner problem on random boxes and balls, exact ones and total ignorance included."""
    rng, ledger = generator("B1"), Ledger()
    for i in range(scale.instances):
        bounded = random_ball(rng, A=1) if i % 2 else random_box(rng, A=1, S=int(rng.integers(1, 7)))
        v = random_vector(rng, bounded.n_states)
        ledger.count("balls", bounded.is_ball)
        ledger.count("boxes", not bounded.is_ball)
        ledger.gaps(gaps_B1(system, bounded, v), LP_TOL)
    S = 5
    sparse = BoundedMDP.from_pairs(
        np.arange(S),
        np.zeros(S, dtype=int),
        [0, 1, 2, 2, 4, 5],
        [1, 4, 0, 3, 2],
        [0.3, 0.0, 0.1, 0.2, 0.5],
        [0.6, 0.2, 0.4, 0.9, 0.5],
        [0.2, 0.25, 0.3, 0.1, 0.5],
        np.zeros(S),
        np.ones(S),
    )
    for _ in range(scale.instances):
        ledger.gaps(
            {f"{k} (unlisted successors)": g for k, g in gaps_B1(system, sparse, random_vector(rng, S)).items()}, LP_TOL
        )
    return ledger.outcome(needs=("balls", "boxes"))


def gaps_B2(system: System, bounded: BoundedMDP, eps: float) -> Gaps | None:
    """Return the excess over EVI's promises at accuracy ``eps``; None where g̃* is not constant (Sec. 3.1).

    g̃* is the LP's optimal gain of the finite MDP of vertices; the greedy extended policy must have gain ≥ g̃* − ε.
    """
    gains = oracles_chains.optimal_gain_lp(finite(bounded))
    if span(gains) > LP_TOL:
        return None
    found = system.solve(bounded, tol=eps)
    P, r = found.optimistic
    gain, _ = oracles_chains.evaluate(P.toarray(), r)
    low, high = found.gain_bounds
    return {
        "g̃* − ε ≤ gain of the greedy policy": float(gains.max() - eps - gain.min()),
        "gain of the greedy policy ≤ g̃*": float(gain.max() - gains.min()),
        "bracket below": low - float(gains.max()),
        "bracket above": float(gains.min()) - high,
        "width of the bracket ≤ ε": high - low - eps,
    }


def check_B2(system: System, scale: Scale) -> CheckResult:
    """Check EVI's stop on random sets at several accuracies, and optimism over sampled members."""
    rng, ledger = generator("B2"), Ledger()
    for _ in range(scale.instances):
        bounded = random_set(rng)
        gaps = gaps_B2(system, bounded, float(rng.choice([0.1, 1e-3, 1e-6])))
        ledger.count("sets with constant optimal gain", gaps is not None)
        if gaps is None:
            continue
        ledger.gaps(gaps, LP_TOL)
        upper = system.solve(bounded, tol=1e-8).gain_bounds[1]
        for _ in range(3):
            best = oracles_chains.optimal_gain_lp(finite(random_member(rng, bounded)))
            ledger.within("g*_M ≤ g̃* for members M", float(best.max()) - upper, LP_TOL)
            ledger.count("members with a smaller gain", best.max() < upper - 1e-3)
    return ledger.outcome(needs=("sets with constant optimal gain", "members with a smaller gain"))


def gaps_M1(system: System, bounded: BoundedMDP, v: Vector, c: float) -> Gaps:
    """Return how much augmentation changes L and T_c, and 1 where T_c is infeasible although sp(v) ≤ c (Lemma 20)."""
    lowered = system.augment(bounded)
    gaps = {
        "L unchanged": float(np.abs(system.bellman(lowered, v) - system.bellman(bounded, v)).max()),
        "T_c unchanged": float(np.abs(system.span_bellman(lowered, v, c) - system.span_bellman(bounded, v, c)).max()),
    }
    if span(v) <= c:
        dense = finite(lowered)
        gaps["feasible where sp(v) ≤ c"] = float(not system.span_greedy(lowered, v, c).feasible.all())
        gaps["v̲ ≤ min Lv + c"] = float((oracles.lowest(dense, v) - oracles.bellman(dense, v).min() - c).max())
    return gaps


def check_M1(system: System, scale: Scale) -> CheckResult:
    """Check augmentation on random boxes and balls; in some T_c is infeasible before."""
    rng, ledger = generator("M1"), Ledger()
    for i in range(scale.instances * 4):
        draw = random_ball if i % 2 else random_box
        bounded = draw(rng, S=int(rng.integers(1, 4)), A=int(rng.integers(1, 3)))
        v = random_vector(rng, bounded.n_states) * float(rng.choice([0.05, 1.0]))  # small, so that rewards decide
        c = span(v) * float(rng.choice([0.5, 1.0, 1.0, 1.5]))
        before = system.span_greedy(bounded, v, c).feasible.all()
        kind = "balls" if bounded.is_ball else "boxes"
        ledger.count(f"{kind} infeasible before, sp(v) ≤ c", span(v) <= c and not before)
        ledger.gaps(gaps_M1(system, bounded, v, c))
    return ledger.outcome(needs=("balls infeasible before, sp(v) ≤ c", "boxes infeasible before, sp(v) ≤ c"))


def ignorance(S: int = 3) -> BoundedMDP:
    """Return the set of all MDPs with one action a state and rewards s/(S − 1)."""
    r = np.arange(S)[:, None] / (S - 1)
    return BoundedMDP.from_dense(np.zeros((S, 1, S)), np.ones((S, 1, S)), r, r)


def perturbable(rng: np.random.Generator) -> tuple[BoundedMDP, float, int]:
    """Draw a box model with an η and a state for which the three conditions of the perturbation hold."""
    while True:
        bounded = random_box(rng, S=int(rng.integers(2, 5)))
        eta, state = float(rng.choice([0.01, 0.1, 0.3])), int(rng.integers(bounded.n_states))
        if can_reach(bounded, eta, state):
            return bounded, eta, state


def can_reach(bounded: BoundedMDP, eta: float, state: int) -> bool:
    """Tell whether in every pair some distribution reaches ``state`` with probability at least η."""
    target = np.eye(bounded.n_states)[state]
    return all(pair_maximum_lp(bounded, i, target) >= eta for i in range(bounded.n_pairs))


def gaps_M2(system: System, bounded: BoundedMDP, eta: float, state: int, u: Vector, v: Vector) -> Gaps:
    """Return the excess over Lemma 19: the change of L, and the contraction factor of L_η, seen and computed."""
    moved = system.perturb(bounded, eta, state)
    Lu, Lv = system.bellman(moved, u), system.bellman(moved, v)
    rows = oracles_chains.all_rows(finite(moved))
    return {
        "‖Lv − L_η v‖_∞ ≤ η sp(v)": float(np.abs(system.bellman(bounded, v) - Lv).max()) - eta * span(v),
        "L_η v ≤ Lv": float((Lv - system.bellman(bounded, v)).max()),
        "sp(L_η u − L_η v) ≤ (1 − η) sp(u − v)": span(Lu - Lv) - (1 - eta) * span(u - v),
        "γ ≤ 1 − η": float(oracles_chains.ergodic_coefficient(rows)) - (1 - eta),
    }


def several_classes(rng: np.random.Generator, bounded: BoundedMDP, tries: int = 5) -> bool:
    """Tell whether one of a few random extended decision rules has more than one recurrent class."""
    dense = finite(bounded)
    for _ in range(tries):
        pick = [rng.choice(np.flatnonzero(row)) for row in dense.available]
        if len(oracles_chains.recurrent_classes(dense.P[np.arange(dense.n_states), pick])) > 1:
            return True
    return False


def check_M2(system: System, scale: Scale) -> CheckResult:
    """Check the perturbation on random boxes, and instances that attain its bounds."""
    rng, ledger = generator("M2"), Ledger()
    for _ in range(scale.instances * 2):
        bounded, eta, state = perturbable(rng)
        u, v = random_vector(rng, bounded.n_states), random_vector(rng, bounded.n_states)
        ledger.gaps(gaps_M2(system, bounded, eta, state, u, v))
        ledger.count("sets with a multichain policy before", several_classes(rng, bounded))
        ledger.true("every policy is unichain after", not several_classes(rng, system.perturb(bounded, eta, state)))
    everything, v = ignorance(), np.array([0.0, 1.0, 2.0])
    for eta in (0.01, 0.25, 1.0):
        moved = system.perturb(everything, eta, 0)
        change = np.abs(system.bellman(everything, v) - system.bellman(moved, v)).max()
        ledger.within("attained: total ignorance, s̄ the worst state", abs(change - eta * span(v)))
        factor = span(
            system.bellman(system.perturb(ring(), eta, 0), v) - system.bellman(system.perturb(ring(), eta, 0), 0 * v)
        ) / span(v)
        ledger.note(f"contraction factor seen, η = {eta:g}", factor)
        ledger.gaps(gaps_M2(system, ring(), eta, 0, random_vector(rng, 3), random_vector(rng, 3)))
        ledger.within("attained: the factor 1 − η", abs(factor - (1 - eta)))
    return ledger.outcome(needs=("sets with a multichain policy before",))


def ring() -> BoundedMDP:
    """Return a set in which every state may stay or go to state 0, but nowhere else: s keeps 1 − η of its own value."""
    high = np.eye(3)[:, None, :].copy()
    high[:, 0, 0] = 1.0
    return BoundedMDP.from_dense(np.zeros((3, 1, 3)), high, np.zeros((3, 1)), np.zeros((3, 1)))


def rarely_rewarded() -> BoundedMDP:
    """Return two states of which only the second pays, and is reached with probability at most 0.2: g⁺ = 0.2."""
    high = np.array([[[1.0, 0.2]], [[1.0, 0.2]]])
    return BoundedMDP.from_dense(np.zeros((2, 1, 2)), high, np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]))


def gaps_M3(system: System, bounded: BoundedMDP, eta: float, state: int, c: float) -> Gaps:
    """Return the excess over g⁺(0) − ηc ≤ g⁺(η) ≤ g⁺(0) (Thm. 11.3)."""
    before = system.solve(bounded, span_bound=c, tol=1e-9).gain_bounds
    after = system.solve(system.perturb(bounded, eta, state), span_bound=c, tol=1e-9).gain_bounds
    return {"g⁺(0) − ηc ≤ g⁺(η)": before[0] - eta * c - after[1], "g⁺(η) ≤ g⁺(0)": after[0] - before[1]}


def check_M3(system: System, scale: Scale) -> CheckResult:
    """Check the loss of gain by perturbation on random boxes, and an instance that loses exactly ηc."""
    rng, ledger = generator("M3"), Ledger()
    for _ in range(scale.instances):
        bounded, eta, state = perturbable(rng)
        c = float(rng.choice([0.1, 0.5, 1.0, 3.0]))
        ledger.gaps(gaps_M3(system, bounded, eta, state, c))
    ledger.gaps(gaps_M3(system, rarely_rewarded(), 0.1, 1, 0.5))
    for eta in (0.01, 0.1, 0.5):
        moved = system.perturb(ignorance(2), eta, 0)
        loss = (
            system.solve(ignorance(2), span_bound=0.5, tol=1e-10).gain
            - system.solve(moved, span_bound=0.5, tol=1e-10).gain
        )
        ledger.within("attained: two states, total ignorance: ηc", abs(loss - eta * 0.5))
    return ledger.outcome()


CLAIMS = (
    Claim(
        id="B1",
        title="The inner maximum over a box or a ball",
        place="App. C; Sec. 3.1",
        statement="max pᵀv over the set of a pair equals the linear programme's value, and the minimum is the maximum "
        "at −v, negated.",
        tolerance=f"{LP_TOL:g} against the linear programme.",
        check=check_B1,
    ),
    Claim(
        id="B2",
        title="EVI is ε-optimal at its stop and optimistic",
        place="Sec. 3.1, Eq. 4",
        statement="When sp(u_{n+1} − u_n) ≤ ε the greedy extended policy has gain ≥ g̃* − ε, and g̃* ≥ g*_M for every "
        "M in the set.",
        tolerance=f"{LP_TOL:g} against the linear programme for g̃*.",
        check=check_B2,
    ),
    Claim(
        id="M1",
        title="Augmentation changes no value and makes T_c feasible",
        place="Sec. 6; Lemma 20, App. E",
        statement="With B_r ← [r_min, max B_r], L and T_c stay the same, and T_c is feasible wherever sp(v) ≤ c (box "
        "and ball).",
        tolerance=f"{EXACT:g} absolute.",
        check=check_M1,
    ),
    Claim(
        id="M2",
        title="Perturbation moves L by at most η sp(v) and makes it a contraction",
        place="Lemma 19, App. E",
        statement="‖Lv − L_η v‖_∞ ≤ η sp(v), attained; L_η is a span contraction with factor ≤ 1 − η, attained; every "
        "policy is unichain.",
        tolerance=f"{EXACT:g} absolute.",
        check=check_M2,
    ),
    Claim(
        id="M3",
        title="Perturbation costs at most ηc of gain",
        place="Thm. 11 (3), Sec. 6; Thm. 21, App. E",
        statement="g⁺(0) − ηc ≤ g⁺(η) ≤ g⁺(0); two states of which nothing is known lose exactly ηc.",
        tolerance=f"{EXACT:g} absolute on the brackets.",
        check=check_M3,
    ),
)
