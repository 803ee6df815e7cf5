"""What SCAL does: a bound below sp(h*) (R3), truncation on the three-state domain (R4), cost beside EVI (R5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from spanrl.agents.scal import SCAL
from spanrl.models.policy import Policy
from spanrl.paper import oracles_chains
from spanrl.paper.claims.base import CheckResult, Claim, Ledger, Scale
from spanrl.paper.claims.constrained import SOLVED, gaps_L2
from spanrl.paper.claims.optimism import optimum
from spanrl.paper.oracles import finite, span
from spanrl.paper.replay import run
from spanrl.paper.system import System

SCALES = (1.0, 0.05, 0.005)
BOUNDS = (0.51, 0.6, 0.75)
REACHED = 0.01
"""Allowed distance of gain and span of the last policy from c."""

LINEAR = 0.8
"""Log-log slope of the pseudo-regret over the last decade and a half from which on it counts as linear."""

NEGLIGIBLE = 0.05
"""Allowed excess of ScOpt's backups over those of EVI, as a fraction."""


def check_R3(system: System, scale: Scale) -> CheckResult:
    """Check planning below sp(h*), and look where learning ends there.

    ``fails`` is drawn only where planning (a) and the linear regret are as they should; otherwise the verdict is ``vacuous``.
    """
    ledger, mdp = Ledger(), system.make("two-state").mdp
    for c in BOUNDS:
        ledger.gaps({f"planning: {name}": gap for name, gap in gaps_L2(system, mdp, c).items()}, SOLVED)
    horizon = scale.pick(10**6, 10**7, 25 * 10**6)
    slope = regret_slope(system, "three-state", 0.5, horizon, runs=scale.pick(3, 10, 20))
    ledger.note("three-state, c = 0.5: log-log slope of the pseudo-regret", slope)
    ledger.true(f"three-state, c = 0.5: linear regret (slope ≥ {LINEAR:g})", slope >= LINEAR)
    elsewhere = []
    for alpha in SCALES:
        for c in BOUNDS:
            x, y, reward = learned_policy(system, alpha, c, horizon)
            gain, bias = oracles_chains.evaluate(
                *oracles_chains.decision(finite(mdp), Policy([[x, 1 - x], [y, 1 - y]]).probs)
            )
            ledger.note(f"α = {alpha:g}, c = {c:g}: x, y, average reward", [x, y, reward])
            if np.abs(gain - c).max() > REACHED or span(bias) > c + REACHED:
                elsewhere.append(f"α = {alpha:g}, c = {c:g}")
    ledger.note("of 9 runs that end outside Π*_c", len(elsewhere))
    if ledger.broken:
        return CheckResult("vacuous", ledger.numbers | {"no conclusion": "; ".join(sorted(ledger.broken))})
    if not elsewhere:
        return ledger.outcome()
    return CheckResult("fails", ledger.numbers | {"broken": f"SCAL does not end in Π*_c: {'; '.join(elsewhere)}"})


def learned_policy(system: System, alpha: float, c: float, horizon: int) -> tuple[float, float, float]:
    """Return the chance of a0 in s0 and in s1 under SCAL's last policy on two-state, and the average reward of the last half."""
    policies: list[Any] = []
    agent = SCAL(c, p_scale=alpha, r_scale=alpha)
    found = run(
        system, "two-state", agent, horizon=horizon, seed=0, watch=lambda one: policies.append(one.policy.probs)
    )
    half = int(np.searchsorted(found.t, horizon / 2))
    reward = (found.reward[-1] - found.reward[half]) / (found.t[-1] - found.t[half])
    return float(policies[-1][0, 0]), float(policies[-1][1, 0]), float(reward)


def regret_slope(system: System, name: str, c: float, horizon: int, runs: int) -> float:
    """Return the log-log slope of the mean pseudo-regret over the last decade and a half."""
    found = [run(system, name, SCAL(c), horizon=horizon, seed=seed) for seed in range(runs)]
    t, mean = found[0].t, np.mean([one.pseudo_regret for one in found], axis=0)
    late = t >= horizon / 10**1.5
    return float(np.polyfit(np.log(t[late]), np.log(np.maximum(mean[late], 1e-9)), 1)[0])


def check_R4(system: System, scale: Scale) -> CheckResult:
    """Look at the policy and at the truncated states of G_c v in every episode on the three-state domain."""
    ledger = Ledger()
    horizon = scale.pick(10**6, 10**7, 25 * 10**6)
    for name in ("three-state", "three-state[delta=0]"):
        _, h = optimum(system.make(name).mdp)
        for seed in range(scale.pick(1, 5, 10)):
            for c in (1.01, 2.0, 5.0, 10.0):
                assert c >= h
                _watch_truncation(system, ledger, name, c, horizon, seed)
            _watch_mixing(system, ledger, name, 0.5, horizon, seed)
    needs = ("c ≥ sp(h*): episodes truncated in s1", "c = 0.5: episodes in which s2 mixes its actions")
    return ledger.outcome(needs=needs)


def _truncated(system: System, learner: Any) -> list[int]:
    rule = system.span_greedy(system.augment(learner.confidence_set()), learner.bias, learner.rules.span_bound)
    return [int(s) for s in np.flatnonzero(rule.truncated)]


def _watch_truncation(system: System, ledger: Ledger, name: str, c: float, horizon: int, seed: int) -> None:
    def watch(learner: Any) -> None:
        states = _truncated(system, learner)
        ledger.count("c ≥ sp(h*): episodes")
        ledger.count("c ≥ sp(h*): episodes truncated in s1", states == [1])
        ledger.true("c ≥ sp(h*): no state but s1 is truncated", set(states) <= {1})
        ledger.true("c ≥ sp(h*): the policy is deterministic", np.isin(learner.policy.probs, (0.0, 1.0)).all())

    found = run(system, name, SCAL(c), horizon=horizon, seed=seed, watch=watch)
    ledger.true("c ≥ sp(h*): recorded as deterministic", found.episodes["deterministic"].all())


def _watch_mixing(system: System, ledger: Ledger, name: str, c: float, horizon: int, seed: int) -> None:
    most = 0.0

    def watch(learner: Any) -> None:
        nonlocal most
        states, probs = _truncated(system, learner), learner.policy.probs
        mixes = 0 < probs[2, 0] < 1
        most = max(most, float(probs[2].min()))
        ledger.count("c = 0.5: episodes truncated in s2", 2 in states)
        ledger.count("c = 0.5: episodes in which s2 mixes its actions", mixes)
        ledger.true("c = 0.5: s2 mixes only where it is truncated", not mixes or 2 in states)

    found = run(system, name, SCAL(c), horizon=horizon, seed=seed, watch=watch)
    ledger.note(f"{name}, c = 0.5: largest weight on the rarer action of s2", most)
    ledger.true("c = 0.5: some episode is recorded as randomised", not found.episodes["deterministic"].all())


def check_R5(system: System, scale: Scale) -> CheckResult:
    """Solve the sets met along runs by EVI and by ScOpt, both by plain value iteration from 0, and count backups."""
    ledger = Ledger()
    horizon = scale.pick(10**5, 10**6, 10**7)
    places = (("three-state", 2.0), ("three-state", 10.0), ("two-state", 1.0), ("riverswim[n_states=4]", 5.0))
    for name, c in places:
        total = np.zeros(2)
        for seed in range(scale.pick(1, 5, 10)):
            evi, scopt = count_backups(system, name, c, horizon, seed)
            total += (evi, scopt)
            ledger.within("ScOpt's backups beside EVI's, excess as a fraction", scopt / evi - 1, NEGLIGIBLE)
        ledger.note(f"{name}, c = {c:g}: backups of EVI, of ScOpt", total.tolist())
    return ledger.outcome()


def count_backups(system: System, name: str, c: float, horizon: int, seed: int) -> tuple[int, int]:
    """Return the backups of pairs by EVI and by ScOpt on the sets of a run of SCAL; the pass for the smallest values counts."""
    total = [0, 0]

    def watch(learner: Any) -> None:
        plain = learner.confidence_set()
        options = {"tol": 1 / np.sqrt(learner.episode.start), "method": "value-iteration"}
        evi = system.solve(plain, **options)
        scopt = system.solve(system.augment(plain), span_bound=c, **options)
        total[0] += evi.sweeps * plain.n_pairs
        total[1] += (scopt.sweeps + bool(scopt.truncated.any())) * plain.n_pairs

    run(system, name, SCAL(c), horizon=horizon, seed=seed, watch=watch)
    return total[0], total[1]


CLAIMS = (
    Claim(
        id="R3",
        title="With c < sp(h*), SCAL converges into Π*_c",
        place="Sec. 6, after Thm. 12; Lemma 2",
        statement="Planning on the true two-state MDP gives the policy of Lemma 2. Learning is said to converge to a policy in "
        "Π*_c(M*): gain c and span at most c. (And the regret is then linear: three-state, c = 0.5.)",
        tolerance=f"{SOLVED:g} for planning; {REACHED:g} for gain and span of the last policy; slope ≥ {LINEAR:g} for linear.",
        check=check_R3,
    ),
    Claim(
        id="R4",
        title="On the three-state domain SCAL plays deterministic policies, truncated in s1",
        place="Sec. 7",
        statement="c ≥ sp(h*): the policy of every episode is deterministic, and no state but s1, which has one action, is truncated. With "
        "c = 0.5, below sp(h*), s2 mixes its two actions.",
        tolerance="exact, in every episode.",
        check=check_R4,
    ),
    Claim(
        id="R5",
        title="ScOpt costs no more than EVI",
        place="Sec. 6, after Thm. 12",
        statement="On the sets met along runs, ScOpt (with its pass for the smallest values) needs about as many backups of pairs "
        "as EVI, to the same accuracy.",
        tolerance=f"at most {100 * NEGLIGIBLE:g} % more backups per run.",
        check=check_R5,
    ),
)
