"""Slips about policies and operators: Prop. 1, the continuity lemma, the lemma on feasibility, and Examples 3 and 4."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import spanrl
from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.paper import oracles, oracles_chains
from spanrl.paper.claims.base import EXACT
from spanrl.paper.claims.counterexamples import SOLVED, duplicated
from spanrl.paper.oracles import Vector, finite
from spanrl.paper.slips.base import Finding, Statement


def _two_maximisers() -> Finding:
    c = 1.0
    # s0 pays 1 for ever; from s1, a0 goes there at once and pays 1, a1 goes there with probability 1/10 and pays 0.
    mdp = MDP.from_dense(
        np.array([[[1, 0], [1, 0]], [[1, 0], [0.1, 0.9]]]), [[1, 1], [1, 0]], available=[[True, False], [True, True]]
    )
    best = spanrl.analyse(mdp, diameter=False)
    found = [spanrl.evaluate(mdp, Policy.deterministic([0, a], 2)) for a in (0, 1)]
    numbers = {
        "c": c,
        "sp(h*)": best.span,
        "g*": best.gain,
        "gains of the two policies": [float(one.gain.min()) for one in found],
        "spans of the two policies": [one.span for one in found],
    }
    assert best.span is not None
    assert best.gain is not None
    both_optimal = all(np.abs(one.gain - best.gain).max() <= EXACT for one in found)
    return numbers, best.span <= c and both_optimal and found[0].span <= c < found[1].span


def _chain(P: Vector) -> tuple[Vector, Vector]:
    """Return μ and the deviation matrix H of a unichain P by evaluation: with reward e_j the gain is μ(j), the bias column j of H."""
    parts = []
    for unit in np.eye(len(P)):
        mdp = MDP.from_dense(P[:, None, :], unit[:, None])
        parts.append(spanrl.evaluate(mdp, Policy(np.ones((len(P), 1)))))
    return np.array([one.gain[0] for one in parts]), np.column_stack([one.bias for one in parts])


def _norm() -> Finding:
    P, P_hat = np.full((4, 4), 0.25), np.tile([0.4, 0.4, 0.1, 0.1], (4, 1))
    (mu, _), (mu_hat, H) = _chain(P), _chain(P_hat)
    gap, change = float(np.abs(mu - mu_hat).sum()), float(np.abs(P - P_hat).sum(axis=1).max())
    largest, row_sum = float(np.abs(H).max()), float(np.abs(H).sum(axis=1).max())
    return {
        "‖μ − μ̂‖₁": gap,
        "‖P − P̂‖_{∞,1}": change,
        "max |H_ij|": largest,
        "largest row sum of |H|": row_sum,
        "the printed bound": change * largest,
        "the bound with the row sum": change * row_sum,
    }, change * largest + EXACT < gap <= change * row_sum + EXACT


def _argmin() -> Finding:
    mdp, v, c = spanrl.make("counterexample-nonfeasible").mdp, np.zeros(2), 0.5
    Lv, least = spanrl.bellman(mdp, v), oracles.lowest(finite(mdp), v)
    feasible = spanrl.span_greedy(mdp, v, c).feasible
    with_min, with_max = least <= Lv.min() + c + EXACT, least <= Lv.max() + c + EXACT
    empty = oracles.span_bellman_lp(finite(mdp), v, c) is None
    return {
        "c": c,
        "Lv": Lv.tolist(),
        "m = min Lv": float(Lv.min()),
        "Lv(ŝ) with the printed argmax": float(Lv.max()),
        "smallest one-step values": least.tolist(),
        "feasible everywhere, by m = Lv(ŝ) with argmin": bool(with_min.all()),
        "feasible everywhere, by m = Lv(ŝ) with argmax": bool(with_max.all()),
        "D(c, v) is empty (linear programme)": empty,
    }, empty and bool(with_max.all()) and not with_min.all() and np.array_equal(feasible, with_min)


def _fixed_point() -> Finding:
    alpha, beta, delta = 0.5, 0.2, 0.3
    mdp, c = spanrl.make("counterexample-fixed-point", alpha=alpha, beta=beta, delta=delta).mdp, alpha + beta
    right, printed = np.array([c, delta, 0.0]), np.array([c, beta, 0.0])
    before, after = (spanrl.scopt(m, c, ref_state=2, tol=1e-9) for m in (mdp, duplicated(mdp)))
    moved = [float(np.abs(spanrl.span_bellman(duplicated(mdp), v, c) - v).max()) for v in (right, printed)]
    return {
        "α, β, δ": [alpha, beta, delta],
        "fixed point": before.bias.tolist(),
        "fixed point, augmented": after.bias.tolist(),
        "feasible there": before.feasible,
        "feasible there, augmented": after.feasible,
        "T_c moves (α+β, δ, 0) by, augmented": moved[0],
        "T_c moves the printed (α+β, β, 0) by, augmented": moved[1],
    }, (
        max(np.abs(one.bias - right).max() for one in (before, after)) <= SOLVED
        and moved[0] <= EXACT < moved[1]
        and after.feasible
        and not before.feasible
    )


def _two_stages() -> Finding:
    delta = Fraction(1, 4)
    P = oracles_chains.as_fractions(spanrl.make("counterexample-cycle", delta=float(delta)).mdp.to_dense()[0][:, 0])
    row, coefficient = (P @ P)[1].tolist(), oracles_chains.ergodic_coefficient(P @ P)
    printed = [1, 0, 1]
    return {
        "δ": str(delta),
        "row 2 of P_d²": [float(p) for p in row],
        "its sum": float(sum(row)),
        "sum of the printed row [1, 0, 1]": float(sum(printed)),
        "two-stage coefficient": str(coefficient),
        "the printed coefficient": str(delta),
    }, row != printed and sum(row) == 1 and coefficient == 1 - delta**2 != delta


def _iterates(mdp: MDP, c: float, n: int) -> list[Vector]:
    """Return v_0 = 0, …, v_n of v ← T_c v."""
    found = [np.zeros(mdp.n_states)]
    for _ in range(n):
        found.append(spanrl.span_bellman(mdp, found[-1], c))
    return found


def _cycle() -> Finding:
    delta, n = 0.25, 150
    mdp = spanrl.make("counterexample-cycle", delta=delta).mdp
    edge, ends = 1 / (2 - delta), spanrl.evaluate(mdp, Policy(np.ones((3, 1)))).span
    bounds = [0.5, edge, 0.7, 0.9]
    paths = [_iterates(mdp, c, n) for c in bounds]
    steps = [oracles.span(path[-1] - path[-2]) for path in paths]
    expected = [0.5, edge, 2 - (3 - 2 * delta) * 0.7, 0.0]
    v = paths[0]
    return {
        "δ": delta,
        "c": bounds,
        "sp(v_n − v_{n−1}) at n = 150": steps,
        "the cycle is as printed up to c = 1/(2 − δ)": edge,
        "T_cⁿ 0 converges from c = sp(h^d)": ends,
        "v_4 − v_2, c = 0.5": (v[4] - v[2]).tolist(),
        "v_4 − v_2 as printed": 2 * 0.5,
    }, (
        np.abs(np.subtract(steps, expected)).max() <= 1e-6
        and np.abs(v[4] - v[2] - 0.5).max() <= EXACT
        and np.abs(paths[1][2] - [edge, 0, edge]).max() <= EXACT
        and abs(ends - 2 / (3 - 2 * delta)) <= EXACT
    )


SLIPS = (
    Statement(
        id="some-maximiser",
        title="Some maximiser is in Π_c, not every one",
        place="Proof of Prop. 1, Sec. 3.2",
        printed="Where sp(h*) ≤ c and the optimal gain is constant, argmax_π g^π ⊆ Π_c.",
        found="Policies of the same optimal gain can have different spans; one of them is in Π_c, which is all the proof needs.",
        measure=_two_maximisers,
    ),
    Statement(
        id="deviation-norm",
        title="The continuity lemma needs another norm",
        place="Proof of Lemma 13, App. A.1",
        printed="‖μ − μ̂‖₁ ≤ ‖P − P̂‖_{∞,1} · max |H_ij| with the deviation matrix H of P̂.",
        found="The bound needs the largest row sum of |H|; continuity follows just the same. Claim L5 checks it with the row sum.",
        measure=_norm,
    ),
    Statement(
        id="fixed-point-augmented",
        title="The fixed point after augmentation",
        place="After Example 3, App. B.1",
        printed="h⁺ of the augmented model, and of the model itself, is (α+β, β, 0).",
        found="Both are (α+β, δ, 0), as the example itself says a few lines before; augmentation makes T_c feasible there.",
        measure=_fixed_point,
    ),
    Statement(
        id="two-stage-coefficient",
        title="The two-stage matrix and its coefficient",
        place="Example 4, App. B.2",
        printed="Row 2 of P_d² is [1, 0, 1], and the two-stage ergodic coefficient is δ.",
        found="Row 2 is [1, 0, 0] and the coefficient 1 − δ². It is below 1 all the same, so L is a two-stage contraction as stated.",
        measure=_two_stages,
    ),
    Statement(
        id="cycle-iterates",
        title="The index of the cycle, and how far it reaches",
        place="Example 4, App. B.2",
        printed="For 0 < c ≤ ½ the iterates have v_{2n} = v_2 + n c e and v_{2n+1} = v_1 + n c e.",
        found="It is v_{2n+2} = v_2 + n c e. The cycle is right, and for all c ≤ 1/(2 − δ); above that a cycle with the smaller steps "
        "2 − (3 − 2δ)c remains for every c below sp(h^d) = 2/(3 − 2δ). Damping converges for every c.",
        measure=_cycle,
    ),
    Statement(
        id="argmin",
        title="ŝ attains the minimum, not the maximum",
        place="Proof of Lemma 5, App. D.1",
        printed="ŝ ∈ argmax_s Lv(s), and m = min Lv = Lv(ŝ).",
        found="ŝ ∈ argmin_s Lv(s). With the maximum for m, Example 2 would pass for feasible although no decision rule keeps the bound.",
        measure=_argmin,
    ),
)
