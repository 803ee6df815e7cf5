"""The constrained problem: randomised optimum (L2), no dominating policy (L3), relaxation (P1), continuity (L5)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from spanrl.models.bounded import BoundedMDP
from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.paper import oracles, oracles_chains
from spanrl.paper.claims.base import EXACT, CheckResult, Claim, Gaps, Ledger, Scale
from spanrl.paper.claims.evaluation import closed_form, exact_two_state, two_state_policy
from spanrl.paper.instances import as_bounded, generator, random_box, random_mdp, random_member, random_policy
from spanrl.paper.oracles import Vector, finite, span
from spanrl.paper.system import System

BOUNDS = tuple(Fraction(n, 100) for n in (51, 60, 75, 90, 99))
SOLVED = 1e-8
"""Allowed distance of what a solver returns at tol = 1e-10 from a closed form."""


def gaps_L2(system: System, mdp: MDP, c: float) -> Gaps:
    """Return how far ScOpt's two-state policy is from x = 1, y = (1 − c)/(1 + c), gain c, span c (Lemma 2)."""
    found = system.solve(mdp, span_bound=c, tol=1e-10)
    evaluation = system.evaluate(mdp, found.policy)
    return {
        "x = 1": abs(found.policy.probs[0, 0] - 1.0),
        "y = (1 − c)/(1 + c)": abs(found.policy.probs[1, 0] - (1 - c) / (1 + c)),
        "gain of the policy = c": float(np.abs(evaluation.gain - c).max()),
        "span of the policy = c": abs(evaluation.span - c),
        "gain reported = c": abs(found.gain - c),
    }


def check_L2(system: System, scale: Scale) -> CheckResult:
    """Check the randomised optimum in exact fractions, against a grid of policies, and as ScOpt's answer."""
    ledger, mdp = Ledger(), system.make("two-state").mdp
    grid = [Fraction(i, 60) for i in range(61)]
    values = {(x, y): closed_form(x, y) for x in grid for y in grid if x or y}
    for c in BOUNDS:
        gain, bias = exact_two_state(mdp, Fraction(1), (1 - c) / (1 + c))
        ledger.true("gain c and span c in exact fractions", gain[0] == gain[1] == c and bias[1] - bias[0] == c)
        inside = {policy: g for policy, (g, h) in values.items() if abs(h) <= c}
        ledger.true("no policy of the grid within the bound has a larger gain", max(inside.values()) <= c)
        pure = {policy: g for policy, g in inside.items() if all(p in {0, 1} for p in policy)}
        ledger.true(
            "the deterministic ones within the bound are (0, 1) with gain ½ and (1, 1) with gain 0",
            {(int(x), int(y)): g for (x, y), g in pure.items()} == {(0, 1): Fraction(1, 2), (1, 1): Fraction(0)},
        )
        ledger.gaps(gaps_L2(system, mdp, float(c)), SOLVED)
    ledger.note("span bounds", [float(c) for c in BOUNDS])
    return ledger.outcome()


def check_L3(system: System, scale: Scale) -> CheckResult:
    """Check, on a grid of policies within the bound, that the best gains in s0 and s1 belong to different ones."""
    ledger, mdp = Ledger(), system.make("two-state").mdp
    steps = np.linspace(0.0, 1.0, 21)
    grid = [system.evaluate(mdp, two_state_policy(x, y)) for x in steps for y in steps]
    for c in map(float, BOUNDS):
        found = [*grid, system.evaluate(mdp, two_state_policy(1.0, (1 - c) / (1 + c)))]
        gains = np.array([e.gain for e in found if e.span <= c + EXACT])
        best = gains.max(axis=0)
        ledger.within("the best gain in s0 is c", abs(best[0] - c))
        ledger.within("the best gain in s1 is 1", abs(best[1] - 1.0))
        shortfall = np.max(best - gains, axis=1).min()
        ledger.within("least shortfall of a single policy is 1 − c or c − ½", abs(shortfall - min(1 - c, c - 0.5)))
        ledger.count("bounds without a dominating policy", shortfall > EXACT)
    ledger.true(
        "there is never a dominating policy", ledger.numbers["bounds without a dominating policy"] == len(BOUNDS)
    )
    return ledger.outcome()


def gap_P1(system: System, bounded: BoundedMDP, member: MDP, c: float) -> float | None:
    """Return g*_M − g⁺(box) for M = ``member``; None where the gain of M is not constant or sp(h*_M) > c (Prop. 1)."""
    dense = finite(member)
    if span(oracles_chains.optimal_gain_lp(dense)) > EXACT:
        return None
    g, h = oracles.fixed_point(dense)
    if span(h) > c:
        return None
    return g - system.solve(bounded, span_bound=c, tol=1e-9).gain_bounds[1]


def check_P1(system: System, scale: Scale) -> CheckResult:
    """Check g⁺(box) ≥ g*_M for sampled members M of random boxes, and equality for a box that holds M alone."""
    rng, ledger = generator("P1"), Ledger()
    for _ in range(scale.instances):
        bounded = random_box(rng)
        member = random_member(rng, bounded)
        c = float(rng.choice([0.25, 0.5, 1.0, 2.0])) * (bounded.r_max - bounded.r_min)
        gap = gap_P1(system, bounded, member, c)
        ledger.count("members with constant gain and sp(h*) ≤ c", gap is not None)
        if gap is not None:
            ledger.within("g*_M ≤ g⁺", gap)
    for _ in range(scale.instances // 5):
        mdp = random_mdp(rng, positive=True)
        h = oracles.fixed_point(finite(mdp))[1]
        gap = gap_P1(system, as_bounded(mdp), mdp, span(h) + EXACT)
        assert gap is not None
        ledger.within("a set of one MDP, c = sp(h*): g⁺ = g*", abs(gap), SOLVED)
    return ledger.outcome(needs=("members with constant gain and sp(h*) ≤ c",))


def gaps_L5(system: System, mdp: MDP, old: Vector, new: Vector) -> Gaps:
    """Return the excess over the perturbation bounds between two policies of a unichain MDP (Lemma 13, App. A.1).

    ‖μ − μ̂‖₁ ≤ ‖P − P̂‖_{∞,1} ‖H_P̂‖_{∞,1} and |g − ĝ| ≤ ‖r − r̂‖_∞ + ½ sp(r̂) ‖μ − μ̂‖₁;
    the norm is the largest row sum.
    """
    (P, r), (P_hat, r_hat) = (oracles_chains.decision(finite(mdp), probs) for probs in (new, old))
    bound = row_sum(P - P_hat) * row_sum(oracles_chains.deviation_matrix(P_hat))
    mu, mu_hat = stationary(system, mdp, new), stationary(system, mdp, old)
    gains = [system.evaluate(mdp, Policy(probs)).gain for probs in (new, old)]
    return {
        "‖μ − μ̂‖₁": float(np.abs(mu - mu_hat).sum()) - bound,
        "|g − ĝ|": float(np.abs(gains[0] - gains[1]).max() - np.abs(r - r_hat).max() - span(r_hat) / 2 * bound),
    }


def stationary(system: System, mdp: MDP, probs: Vector) -> Vector:
    """Return the stationary distribution of a unichain policy: μ(s) is its gain where s alone pays 1."""
    P, _, available = mdp.to_dense()
    pays = [
        MDP.from_dense(P, np.repeat(one[:, None], mdp.n_actions, axis=1), available=available)
        for one in np.eye(mdp.n_states)
    ]
    return np.array([system.evaluate(paying, Policy(probs)).gain[0] for paying in pays])


def row_sum(A: Vector) -> float:
    """Return ‖A‖_{∞,1} = max_i Σ_j |A_ij|."""
    return float(np.abs(A).sum(axis=1).max())


def modulus(system: System, mdp: MDP, old: Vector, new: Vector, n: int) -> float:
    """Return the largest jump of (gain, span of the bias) along n equal steps from one policy to the other."""
    path = [system.evaluate(mdp, Policy((1 - t) * old + t * new)) for t in np.linspace(0.0, 1.0, n + 1)]
    curve = np.array([[*e.gain, e.span] for e in path])
    return float(np.abs(np.diff(curve, axis=0)).max())


def check_L5(system: System, scale: Scale) -> CheckResult:
    """Check the perturbation bound, that jumps along paths halve with the step, and that max |H_ij| is too small."""
    rng, ledger = generator("L5"), Ledger()
    for i in range(scale.instances):
        mdp = random_mdp(rng, positive=True)
        old, new = random_policy(rng, mdp), random_policy(rng, mdp)
        near = old + 10 ** rng.uniform(-3, 0) * (new - old)
        ledger.gaps(gaps_L5(system, mdp, old, near))
        if i % 3:
            continue
        coarse, fine = modulus(system, mdp, old, new, 32), modulus(system, mdp, old, new, 64)
        ledger.within("jumps of half the step ≤ 0.7 · jumps", fine - 0.7 * coarse)
        ledger.count("paths along which gain or span move", coarse > 1e-3)
    even = np.full((2, 2), 0.5)
    lean, eps = np.array([[0.5 + 0.1, 0.5 - 0.1]] * 2), 0.1
    H, moved = oracles_chains.deviation_matrix(even), 2 * eps
    ledger.equal("‖μ − μ̂‖₁, two states", np.abs(oracles_chains.stationary_matrix(lean)[0] - 0.5).sum(), moved)
    ledger.equal("bound with the row sums of H", row_sum(lean - even) * row_sum(H), moved)
    ledger.equal("bound with max |H_ij| (too small)", row_sum(lean - even) * np.abs(H).max(), moved / 2)
    jump = modulus(system, system.make("two-state").mdp, np.eye(2)[[1, 1]], np.full((2, 2), 0.5), 128)
    ledger.true("without unichain there is a jump: two-state, x = y → 0", jump > 0.2)
    return ledger.outcome(needs=("paths along which gain or span move",))


CLAIMS = (
    Claim(
        id="L2",
        title="Under a span bound the best policy can be randomised",
        place="Lemma 2, Sec. 4",
        statement="Two-state, ½ < c < 1: the best policy with constant gain and span ≤ c is x = 1, y = (1 − c)/(1 + "
        "c), with gain c and span c, and ScOpt finds it; the deterministic policies within the bound are "
        "(0, 1) and (1, 1), with gains ½ and 0.",
        tolerance=f"exact in fractions (grid of 1/60); {SOLVED:g} for the solver at tol = 1e-10.",
        check=check_L2,
    ),
    Claim(
        id="L3",
        title="No policy dominates when the gain may vary between states",
        place="Lemma 3, Sec. 4",
        statement="Two-state, ½ < c < 1: among all policies with span ≤ c the best gain is c in s0 and 1 in s1, and "
        "no policy has both.",
        tolerance=f"{EXACT:g}; grid of 1/20 and the policy of L2.",
        check=check_L3,
    ),
    Claim(
        id="P1",
        title="The relaxation of REGAL.C",
        place="Proposition 1, Sec. 3.2",
        statement="g⁺ of a set of MDPs is at least g*_M for every member M with constant optimal gain and sp(h*_M) ≤ "
        "c. Differs from the paper: its proof needs some, not every, optimal policy in Π_c.",
        tolerance=f"{EXACT:g} on the upper end of the bracket.",
        check=check_P1,
    ),
    Claim(
        id="L5",
        title="Unichain: gain and span of the bias are continuous in the policy",
        place="Lemmas 4 and 13, Sec. 4; App. A.1",
        statement="In a unichain MDP gain and span move continuously with the policy, and ‖μ − μ̂‖₁ ≤ ‖P − P̂‖ "
        "‖H_P̂‖. Differs from the paper: H needs the norm of row sums; with max |H_ij| the bound fails (two "
        "states: 0.2 against 0.1).",
        tolerance=f"{EXACT:g} for the bound; jumps along 64 steps at most 0.7 of those along 32.",
        check=check_L5,
    ),
)
