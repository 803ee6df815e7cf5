"""Slips about learning: η_k, the variance of a frequency, the episode rule, and what happens where c < sp(h*) or c is large."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import count
from math import comb, sqrt
from operator import le, lt
from typing import NamedTuple

import numpy as np

import spanrl
from spanrl.errors import ModelError
from spanrl.models.bounded import BoundedMDP
from spanrl.models.mdp import MDP
from spanrl.paper.claims.base import EXACT
from spanrl.paper.claims.behaviour import LINEAR, REACHED, learned_policy, regret_slope
from spanrl.paper.claims.evaluation import two_state_policy
from spanrl.paper.oracles_learning import harmonic_sum_bound, most_episodes, root_sum_bound
from spanrl.paper.slips.base import Finding, Statement
from spanrl.paper.system import System

HORIZON = 10**6


def _eta_forms() -> Finding:
    c, t, r_max = 0.5, 10**4, 1.0
    main, appendix = r_max / (c * t), 1 / (c * sqrt(t))
    return {
        "c": c,
        "t_k": t,
        "η_k = r_max/(c t_k)": main,
        "η_k = 1/(c √t_k)": appendix,
        "loss of gain η_k c with the first": main * c,
        "loss of gain η_k c with the second": appendix * c,
        "loss of gain in the proof, r_max/t_k": r_max / t,
    }, abs(main * c - r_max / t) <= EXACT < appendix * c - r_max / t


def _accepts(eta: float) -> bool:
    """Tell whether the set of a learner that has seen nothing, every interval [0, 1], can be perturbed by η."""
    everything = BoundedMDP.from_dense(np.zeros((2, 2, 2)), np.ones((2, 2, 2)), np.zeros((2, 2)), np.ones((2, 2)))
    try:
        everything.perturb(eta, 0)
    except ModelError:
        return False
    return True


def _eta_above_one() -> Finding:
    c, r_max, bounds = 0.5, 1.0, [0.5, 0.1, 0.01]
    eta = r_max / c
    first = [next(t for t in count(1) if r_max / (bound * t) <= 1) for bound in bounds]
    run = spanrl.learn("two-state", f"scal[span_bound={c},perturb=true]", horizon=20, seed=0)
    return {
        "c": c,
        "η_1 = r_max/c": eta,
        "B_p ∩ [η_1, 1] can be formed": _accepts(eta),
        "with η_1 cut to 1": _accepts(min(1.0, eta)),
        "c = 0.5, 0.1, 0.01: first t_k with η_k ≤ 1": [float(t) for t in first],
        "steps learned with the cut, from t = 1": int(run.t[-1]),
    }, eta > 1 and not _accepts(eta) and _accepts(min(1.0, eta)) and run.t[-1] == 20


def _below_span() -> Finding:
    c, system, mdp = 0.75, System.real(), spanrl.make("two-state").mdp
    run = spanrl.learn("two-state", f"scal[span_bound={c}]", horizon=HORIZON, seed=0)
    x, y, reward = learned_policy(system, 1.0, c, HORIZON)
    played, best = spanrl.evaluate(mdp, two_state_policy(x, y)), spanrl.scopt(mdp, c)
    slope = regret_slope(system, "three-state", 0.5, HORIZON, runs=3)
    truncates = bool(run.episodes["span"].max() > c - EXACT)
    outside = np.ptp(played.gain) > REACHED or played.span > c + REACHED
    return {
        "two-state, c": c,
        "largest gain in Π_c (ScOpt on the true model)": best.gain,
        "average reward of SCAL, last half of 10⁶ steps": reward,
        "x, y of its last policy": [x, y],
        "gains of that policy in s0 and s1": played.gain.tolist(),
        "its span": played.span,
        "largest span of an optimistic bias": float(run.episodes["span"].max()),
        "three-state, c = 0.5: log-log slope of the pseudo-regret": slope,
    }, (abs(best.gain - c) <= 1e-5 and reward > c + 0.1 and bool(outside) and not truncates and slope >= LINEAR)


def expected_variance(n: int, p: Fraction) -> Fraction:
    """Return E[p̂(1 − p̂)] of n draws with success probability p, by going through all counts."""
    law = ((Fraction(k, n), comb(n, k) * p**k * (1 - p) ** (n - k)) for k in range(n + 1))
    return sum((q * (1 - q) * weight for q, weight in law), Fraction(0))


def _variance() -> Finding:
    cases = [(2, Fraction(1, 2)), (5, Fraction(1, 2)), (10, Fraction(1, 3))]
    ratios = [expected_variance(n, p) / (p * (1 - p)) for n, p in cases]
    return {
        "n = 2, p = 1/2: p(1 − p)": str(cases[0][1] * (1 - cases[0][1])),
        "n = 2, p = 1/2: E[p̂(1 − p̂)]": str(expected_variance(*cases[0])),
        "E[p̂(1 − p̂)]/(p(1 − p)) at n = 2, 5, 10": [float(ratio) for ratio in ratios],
    }, ratios == [Fraction(n - 1, n) for n, _ in cases]


class _Counted(NamedTuple):
    """What an episode rule makes of a model with a single pair: when episodes start, and the sums of the proof."""

    starts: list[int]
    excess: int
    roots: float
    harmonic: float


def _count(goes_on: Callable[[int, int], bool], horizon: int) -> _Counted:
    """Play the only pair while ``goes_on(ν, max{1, N})``, episode after episode."""
    n, starts, excess, roots, harmonic = 0, [], 0, 0.0, 0.0
    while n < horizon:
        starts.append(n + 1)
        nu = 0
        while goes_on(nu, max(1, n)) and n + nu < horizon:
            nu += 1
        excess = max(excess, nu - max(1, n))
        roots += nu / sqrt(max(1, n))
        harmonic += nu / max(1, n - 1)
        n += nu
    return _Counted(starts, excess, roots, harmonic)


def _episodes() -> Finding:
    horizon = 10**4
    below, printed = _count(lt, horizon), _count(le, horizon)
    single = spanrl.Env.from_mdp(MDP.from_dense([[[1.0]]], [[0.5]]))
    starts = spanrl.learn(single, "scal[span_bound=1]", horizon=horizon, seed=0).episodes["start"].tolist()
    return {
        "S, A, T": [1.0, 1.0, float(horizon)],
        "first episodes of SCAL start at": [float(t) for t in starts[:8]],
        "with <": [float(t) for t in below.starts[:8]],
        "with ≤": [float(t) for t in printed.starts[:8]],
        "largest ν_k − max{1, N_k}, with < and ≤": [float(below.excess), float(printed.excess)],
        "visits of a new pair in its first episode, with < and ≤": [
            float(one.starts[1] - one.starts[0]) for one in (below, printed)
        ],
        "episodes m, with < and ≤": [float(len(below.starts)), float(len(printed.starts))],
        "m ≤ SA log₂(8T/SA)": most_episodes(horizon, 1, 1),
        "Σ ν/√max{1, N}, with < and ≤": [below.roots, printed.roots],
        "Σ ν/√max{1, N} ≤ (√2 + 1)√(SAT)": root_sum_bound(horizon, 1, 1),
        "Σ ν/max{1, N − 1}, with < and ≤": [below.harmonic, printed.harmonic],
        "Σ ν/max{1, N − 1} ≤ 6SA + 2SA ln T": harmonic_sum_bound(horizon, 1, 1),
    }, starts == below.starts != printed.starts and below.excess == 0 and printed.excess > 0


SLIPS = (
    Statement(
        id="episode-rule",
        title="The episode rule has one visit too many",
        place="Fig. 1, step 5, Sec. 3",
        printed="An episode goes on while ν_k(s,a) ≤ max{1, N_k(s,a)}.",
        found="Jaksch et al. have <, and so have we: with ≤ the pair that ends an episode is visited once more, and ν_k ≤ max{1, N_k}, "
        "on which the counting lemmas rest, fails. (Their bounds are not exceeded here, with either rule.)",
        measure=_episodes,
    ),
    Statement(
        id="eta",
        title="Two forms of η_k",
        place="Sec. 6, after Thm. 11; App. F.3",
        printed="η_k is r_max/(c t_k) in the main text and 1/(c√t_k) at the start of the proof.",
        found="The inequality of the proof subtracts η_k c = r_max/t_k: the first form. That is what we use.",
        measure=_eta_forms,
    ),
    Statement(
        id="eta-above-one",
        title="η_k can exceed 1",
        place="Footnote to η_k, Sec. 6",
        printed="The assumptions on η in the definition of M‡ hold trivially for η_k.",
        found="Not while t_k < r_max/c: then η_k > 1, and B_p ∩ [η_k, 1] is empty. We cut η_k at 1 and at the smallest radius, which only "
        "strengthens the guarantee.",
        measure=_eta_above_one,
    ),
    Statement(
        id="below-the-span",
        title="With c < sp(h*), SCAL need not converge into Π*_c",
        place="Sec. 6, after Thm. 12",
        printed="When c < sp(h*), SCAL converges to a policy in Π*_c(M*).",
        found="Not in general: its mixtures are over augmented extended actions. On the two-state example with c = 0.75 it never truncates "
        "and ends with average reward 1, under a policy whose gain is not constant; on the three-state domain with c = 0.5 the regret "
        "is linear (claim R3).",
        measure=_below_span,
    ),
    Statement(
        id="variance",
        title="p̂(1 − p̂) is not unbiased",
        place="App. F.2, the empirical variances",
        printed="σ̂²_p = p̂(1 − p̂) is called an unbiased estimate of the variance.",
        found="Its expectation is p(1 − p) (n − 1)/n. We use it as printed.",
        measure=_variance,
    ),
)
