"""The paper's three examples of what T_c cannot do, with their variants and repairs (X1–X3)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.paper import oracles, oracles_chains
from spanrl.paper.claims.base import EXACT, CheckResult, Claim, Gaps, Ledger, Scale
from spanrl.paper.instances import as_bounded
from spanrl.paper.oracles import Model, Vector, finite, span
from spanrl.paper.system import System

SOLVED = 1e-8
PARAMETERS = ((0.5, 0.2, 0.3), (0.5, 0.0, 0.25), (0.6, 0.1, 0.5))
"""(α, β, δ) of the fixed-point example, 0 ≤ β < δ < α."""


def _off(got: Vector, want: object) -> float:
    return float(np.abs(np.asarray(got) - np.asarray(want, dtype=float)).max())


def check_X1(system: System, scale: Scale) -> CheckResult:
    """Check T_c v = (0, ½) ≠ N_c v = (0, 1) at v = 0, c = ½, although a policy keeps the bound."""
    ledger, mdp = Ledger(), system.make("counterexample-nonfeasible").mdp
    zero = np.zeros(2)
    ledger.within("T_c v = (0, ½)", _off(system.span_bellman(mdp, zero, 0.5), [0, 0.5]))
    ledger.within("N_c v = (0, 1)", _off(system.span_policy_bellman(mdp, zero, 0.5), [0, 1]))
    ledger.true("feasible in s0 only", system.span_greedy(mdp, zero, 0.5).feasible.tolist() == [True, False])
    ledger.true("D(c, v) is empty (LP)", oracles.span_bellman_lp(finite(mdp), zero, 0.5) is None)
    kept = system.evaluate(mdp, Policy.deterministic([0, 0], 2))
    ledger.equal("span of the policy a0, a0", kept.span, 0.5)
    ledger.within("its gain is constant, ½", _off(kept.gain, [0.5, 0.5]))
    ledger.true("with c = 1 it is feasible", system.span_greedy(mdp, zero, 1.0).feasible.all())
    return ledger.outcome()


def gaps_X2(system: System, model: Model, c: float, fixed: Vector) -> Gaps:
    """Return how far ``fixed`` is from being the fixed point of T_c with gain 0, and the solver's answer from it."""
    found = system.solve(model, span_bound=c, tol=1e-11, ref_state=2)
    return {
        "T_c h⁺ = h⁺": _off(system.span_bellman(model, fixed, c), fixed),
        "the solver finds h⁺": _off(found.bias, fixed),
        "g⁺ = 0": abs(found.gain),
    }


def check_X2(system: System, scale: Scale) -> CheckResult:
    """Check the fixed points of T_c and N_c, with and without the extra action, and the repair by augmentation."""
    ledger = Ledger()
    for alpha, beta, delta in PARAMETERS:
        for extra in (False, True) if beta > 0 else (False,):
            mdp = system.make("counterexample-fixed-point", alpha=alpha, beta=beta, delta=delta, extra_action=extra).mdp
            c, fixed = alpha + beta, np.array([alpha + beta, delta, 0.0])
            ledger.gaps(gaps_X2(system, mdp, c, fixed), SOLVED)
            ledger.true(
                "not feasible at h⁺, in s0", system.span_greedy(mdp, fixed, c).feasible.tolist() == [False, True, True]
            )
            other = np.array([alpha + delta, delta, 0.0])
            ledger.within("N_c h♯ = h♯ = (α + δ, δ, 0)", _off(system.span_policy_bellman(mdp, other, c), other))
            ledger.true("sp(h♯) > c", span(other) > c)
            _bound_keepers(ledger, system, mdp, (alpha, beta, delta), extra)
            _augmented(ledger, system, mdp, c, fixed, np.array([alpha + beta, beta, 0.0]))
    return ledger.outcome()


def _bound_keepers(
    ledger: Ledger, system: System, mdp: MDP, parameters: tuple[float, float, float], extra: bool
) -> None:
    """Check which policies keep the bound c = α + β: without the extra action only p = 0, with it infinitely many."""
    alpha, beta, delta = parameters
    for p in (0.0, 1e-3, 0.5, 1.0):
        probs = np.eye(mdp.n_actions)[[0, 0, 0]]
        probs[1, :2] = 1 - p, p
        found = system.evaluate(mdp, Policy(probs))
        ledger.within("sp(h(p)) = α + (1 − p)β + pδ", abs(found.span - alpha - (1 - p) * beta - p * delta))
        ledger.true("only p = 0 keeps the bound", (found.span <= alpha + beta + EXACT) == (p == 0))
        if extra:
            probs[1] = (1 - p) * np.eye(3)[0] + p * np.eye(3)[2]
            kept = system.evaluate(mdp, Policy(probs)).span <= alpha + beta + EXACT
            ledger.true("with the extra action every mixture of a0 and a2 does", kept)


def _augmented(ledger: Ledger, system: System, mdp: MDP, c: float, fixed: Vector, printed: Vector) -> None:
    """Check that augmentation, as a set or by duplicated actions, keeps the fixed point and makes it feasible."""
    for name, model in (("set", system.augment(as_bounded(mdp))), ("duplicated actions", duplicated(mdp))):
        ledger.gaps(
            {f"{key}, augmented ({name})": gap for key, gap in gaps_X2(system, model, c, fixed).items()}, SOLVED
        )
        rule = system.span_greedy(model, fixed, c)
        ledger.true(f"feasible at h⁺, augmented ({name})", rule.feasible.all())
        ledger.within(f"N_c h⁺ = h⁺, augmented ({name})", _off(system.span_policy_bellman(model, fixed, c), fixed))
        P, r = rule.optimistic
        gain, bias = oracles_chains.evaluate(P.toarray(), r)
        ledger.within(
            f"h⁺ is the bias of the mixture ({name})", _off(bias - bias[2], fixed) + float(np.abs(gain).max())
        )
        ledger.true(
            "the printed (α + β, β, 0) is no fixed point", _off(system.span_bellman(model, printed, c), printed) > 0.01
        )


def duplicated(mdp: MDP) -> MDP:
    """Return the MDP with every action doubled, the copy paying r_min."""
    P, r, available = mdp.to_dense()
    return MDP.from_dense(
        np.concatenate([P, P], axis=1),
        np.concatenate([r, np.full_like(r, mdp.r_min)], axis=1),
        available=np.concatenate([available, available], axis=1),
        r_min=mdp.r_min,
        r_max=mdp.r_max,
    )


def cycle_gap(system: System, mdp: MDP, c: float, periods: int = 20) -> float:
    """Return how far T_c^n 0 is from v_{2n+1} = (c, 0, 0) + n c e, v_{2n+2} = (c, 0, c) + n c e (Example 4)."""
    v, worst = np.zeros(3), 0.0
    for n in range(periods):
        v = system.span_bellman(mdp, v, c)
        worst = max(worst, _off(v, np.array([c, 0, 0]) + n * c))
        v = system.span_bellman(mdp, v, c)
        worst = max(worst, _off(v, np.array([c, 0, c]) + n * c))
    return worst


def check_X3(system: System, scale: Scale) -> CheckResult:
    """Check the cycle and where it ends, the two-stage coefficient in fractions, and that the solver converges."""
    ledger = Ledger()
    for delta in (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)):
        d, limit = float(delta), 1 / (2 - float(delta))
        for duplicate in (False, True):
            mdp = system.make("counterexample-cycle", delta=d, duplicate=duplicate).mdp
            for c in (0.1, 0.5, limit):
                ledger.within("period 2 for c ≤ 1/(2 − δ)", cycle_gap(system, mdp, c))
                ledger.true("the steps do not shrink", span(np.array([c, 0, c]) - np.array([c, 0, 0])) == c)
                _damping(ledger, system, mdp, c)
            ledger.true("no such cycle for c > 1/(2 − δ)", cycle_gap(system, mdp, limit + 0.05) > 0.01)
            keeps = [
                span(oracles_chains.evaluate(*oracles_chains.decision(finite(mdp), rule))[1])
                for rule in oracles_chains.deterministic_rules(finite(mdp))
            ]
            ledger.true("Π_c is empty without the duplicate, not with it", (min(keeps) <= 0.1) == duplicate)
        P = oracles_chains.as_fractions(system.make("counterexample-cycle", delta=d).mdp.to_dense()[0][:, 0])
        exact = np.array([[delta**2, delta - delta**2, 1 - delta], [1, 0, 0], [delta, 1 - delta, 0]], dtype=object)
        ledger.true("P_d² has rows (δ², δ − δ², 1 − δ), (1, 0, 0), (δ, 1 − δ, 0)", np.array_equal(P @ P, exact))
        ledger.true("the two-stage coefficient is 1 − δ²", oracles_chains.ergodic_coefficient(P @ P) == 1 - delta**2)
        ledger.true("the one-stage coefficient is 1", oracles_chains.ergodic_coefficient(P) == 1)
    return ledger.outcome()


def _damping(ledger: Ledger, system: System, mdp: MDP, c: float) -> None:
    """Check that the solver converges to the oracle's gain, which is c/2: half a c every step of the cycle."""
    found = system.solve(mdp, span_bound=c, tol=1e-9, on_fail="return")
    ledger.true("the solver converges", found.converged and found.gain_bounds[1] - found.gain_bounds[0] <= 1e-9)
    ledger.within("g⁺ = c/2", abs(found.gain - c / 2), SOLVED)
    ledger.within("g⁺ of the oracle", abs(oracles.fixed_point(finite(mdp), c)[0] - c / 2), SOLVED)


CLAIMS = (
    Claim(
        id="X1",
        title="T_c v may belong to no decision rule",
        place="Example 2, App. B.1",
        statement="At v = 0 and c = ½, T_c v = (0, ½) and N_c v = (0, 1), although sp(v) ≤ c and a policy keeps the "
        "bound.",
        tolerance=f"{EXACT:g} absolute.",
        check=check_X1,
    ),
    Claim(
        id="X2",
        title="T_c may be infeasible at its own fixed point; augmentation repairs it",
        place="Example 3, App. B.1",
        statement="With c = α + β the fixed point of T_c is (α + β, δ, 0), that of N_c (α + δ, δ, 0); T_c is "
        "infeasible at the former, also with the extra action. Augmented, the fixed point is the same and "
        "feasible. Differs from the paper, which prints (α + β, β, 0) for it.",
        tolerance=f"{EXACT:g} absolute; {SOLVED:g} for the solver.",
        check=check_X2,
    ),
    Claim(
        id="X3",
        title="T_c^n v_0 may cycle for ever; damping converges",
        place="Example 4, App. B.2",
        statement="For c ≤ 1/(2 − δ) the iterates from 0 have period 2, with v_{2n+1} = v_1 + n c e, with and without "
        "the duplicated action; the solver converges to g⁺ = c/2. Differs from the paper: row 2 of P_d² is "
        "(1, 0, 0), the two-stage coefficient is 1 − δ², and it is v_{2n+2} that equals v_2 + n c e.",
        tolerance=f"{EXACT:g} absolute, exact in fractions; {SOLVED:g} for the solver.",
        check=check_X3,
    ),
)
