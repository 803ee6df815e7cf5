"""Regret and episodes: the explicit bound (R1), the number of episodes and the counting lemmas (R2), the rule itself (R6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import binom

from spanrl.agents.registry import Agent
from spanrl.agents.scal import SCAL
from spanrl.agents.ucrl import UCRL
from spanrl.agents.ucrl2 import UCRL2
from spanrl.envs.env import Env
from spanrl.models.mdp import MDP
from spanrl.paper import oracles_chains
from spanrl.paper import oracles_learning as paper
from spanrl.paper.claims.base import EXACT, CheckResult, Claim, Ledger, Scale
from spanrl.paper.claims.confidence import LEVEL, RADII, random_env
from spanrl.paper.claims.optimism import optimum
from spanrl.paper.instances import generator
from spanrl.paper.oracles import finite, span
from spanrl.paper.replay import Moment, replay, run, sizes
from spanrl.paper.system import System

POINTS = (
    (10**6, 3, 2, 2, 2.0, 0.05, 1.0),
    (25 * 10**6, 3, 2, 2, 25.0, 0.05, 1.0),
    (4 * 10**8, 360, 8, 6, 5.0, 0.05, 1.0),
    (1000, 2, 2, 1, 1.0, 0.5, 3.0),
    (6, 3, 2, 3, 0.0, 0.9, 1.0),
    (5, 3, 2, 3, 4.0, 0.9, 2.0),
)
"""(T, S, A, Γ, c, δ, r_max) at which the formula is compared; the last has T < SA."""

DELTA = 0.05

BY_HAND = 3000
"""Steps of the runs by hand."""

RECORDED = 1e-6
"""Allowed distance of recorded sums of rewards: the oracle knows g* to 1e-11."""


def worst_loss(mdp: MDP, g: float) -> float:
    """Return g* − the smallest gain of a deterministic policy: what a step can lose at worst in the long run."""
    model = finite(mdp)
    gains = [
        oracles_chains.evaluate(*oracles_chains.decision(model, rule))[0].min()
        for rule in oracles_chains.deterministic_rules(model)
    ]
    return g - float(min(gains))


def crossing(mdp: MDP, c: float, rate: float) -> int:
    """Return the least T (to 1 %) from which on the bound lies below ``rate``·T."""
    (S, A), low, high = sizes(mdp), 1.0, 1e15
    while high > 1.01 * low:
        mid = (low * high) ** 0.5
        above = paper.regret_bound(int(mid), S, A, mdp.max_support, c, DELTA, mdp.r_max - mdp.r_min) >= rate * mid
        low, high = (mid, high) if above else (low, mid)
    return int(high)


def check_R1(system: System, scale: Scale, horizon: int | None = None) -> CheckResult:
    """Compare the public formula with the printed one, then the regret of seeded runs with it."""
    ledger = Ledger()
    for T, S, A, support, c, delta, r_max in POINTS:
        got = system.regret_bound(
            T, n_states=S, n_actions=A, max_support=support, span_bound=c, delta=delta, r_max=r_max
        )
        want = paper.regret_bound(T, S, A, support, c, delta, r_max)
        ledger.within("formula, relative", abs(got / want - 1), RADII)
    if ledger.broken:
        return ledger.outcome()
    T, runs = horizon or scale.pick(10**7, 10**7, 2 * 10**8), scale.pick(5, 40, 20)
    reasons = []
    for name in ("three-state", "three-state[delta=0]"):
        reasons += regret_against_bound(system, ledger, name, 2.0, T, runs)
    if reasons and not ledger.broken:
        return CheckResult("vacuous", ledger.numbers | {"reason": "; ".join(reasons)})
    return ledger.outcome()


def regret_against_bound(system: System, ledger: Ledger, name: str, c: float, horizon: int, runs: int) -> list[str]:
    """Require that the regret exceeds the bound, at any time, in no more runs than δ allows; say where it could not."""
    env = system.make(name)
    mdp, (S, A) = env.mdp, sizes(env.mdp)
    g, h = optimum(mdp)
    assert h <= c
    found = [run(system, env, SCAL(c, DELTA), horizon=horizon, seed=seed) for seed in range(runs)]
    late = found[0].t >= S * A
    bound = np.array([paper.regret_bound(int(t), S, A, mdp.max_support, c, DELTA, 1.0) for t in found[0].t[late]])
    exceeding = sum(bool((one.regret[late] > bound).any()) for one in found)
    critical = next(k for k in range(runs + 2) if binom.sf(k - 1, runs, DELTA) <= LEVEL)
    loss = worst_loss(mdp, g)
    ledger.note(f"{name}, c = {c:g}: horizon", horizon)
    ledger.note(f"{name}: bound at the horizon", float(bound[-1]))
    ledger.note(f"{name}: largest regret", max(float(one.regret[-1]) for one in found))
    ledger.note(f"{name}: bound below g* T from T =", crossing(mdp, c, g))
    ledger.note(f"{name}: bound below the regret of the worst policy from T =", crossing(mdp, c, loss))
    ledger.note(f"{name}: runs, exceeding", [runs, exceeding])
    ledger.true(
        f"{name}: fewer than {critical} of {runs} runs exceed the bound (level {LEVEL:g})", exceeding < critical
    )
    return [f"{name}: the bound exceeds g* T at T = {horizon:g}"] if bound[-1] >= g * horizon else []


def driven(system: System, scale: Scale, claim: str) -> Iterator[tuple[Env, Agent, int]]:
    """Yield (environment, agent, seed) of the learners that are driven by hand."""
    rng = generator(claim)
    places = [system.make(name) for name in ("three-state[delta=0.05]", "two-state", "riverswim[n_states=4]")]
    agents = (SCAL(0.5, p_scale=0.05, r_scale=0.05), SCAL(2.0), UCRL(p_scale=0.05), UCRL2())
    for seed in range(max(1, scale.instances // 20)):
        for env in (*places, random_env(rng)):
            for agent in agents:
                yield env, agent, seed


def check_R2(system: System, scale: Scale) -> CheckResult:
    """Count episodes and the two sums by hand at the end of every episode; then episodes of long compiled runs."""
    ledger = Ledger()
    for env, agent, seed in driven(system, scale, "R2"):
        _count_episodes(ledger, env.mdp, replay(system, env, agent, horizon=3000, seed=seed))
        if ledger.broken:  # a broken rule would make the long runs endless
            return ledger.outcome()
    horizon = scale.pick(10**7, 10**7, 10**8)
    for name in ("three-state", "riverswim[n_states=4]"):
        env = system.make(name)
        S, A = sizes(env.mdp)
        for agent in (SCAL(2.0), UCRL(), UCRL2()):
            found = run(system, env, agent, horizon=horizon, seed=0)
            for t, m in zip(found.t.tolist(), found.n_episodes.tolist(), strict=True):
                if t >= S * A:
                    ledger.within("m ≤ SA log₂(8T/SA), long runs", m - paper.most_episodes(t, S, A))
            ledger.note(f"{name}: episodes of {type(agent).__name__}, T = {horizon:g}", int(found.n_episodes[-1]))
            ledger.note(f"{name}: most allowed", paper.most_episodes(horizon, S, A))
    return ledger.outcome(needs=("episodes counted",))


def _count_episodes(ledger: Ledger, mdp: MDP, moments: Iterator[Moment]) -> None:
    (S, A), m, roots, harmonic = sizes(mdp), 0, 0.0, 0.0
    for moment in moments:
        if moment.last is not None:
            m += 1
            n, visits = moment.last.n, moment.last.visits
            roots += float((visits / np.sqrt(np.maximum(1, n))).sum())
            harmonic += float((visits / np.maximum(1, n - 1)).sum())
            T = moment.t - 1
            ledger.count("episodes counted")
            ledger.within("Σ ν/√max(1, N) ≤ (√2 + 1)√(SAT)", roots - paper.root_sum_bound(T, S, A))
            ledger.within("Σ ν/max(1, N − 1) ≤ 6SA + 2SA ln T", harmonic - paper.harmonic_sum_bound(T, S, A))
            if S * A <= T:
                ledger.within("m ≤ SA log₂(8T/SA)", m - paper.most_episodes(T, S, A))


def check_R6(system: System, scale: Scale) -> CheckResult:
    """Replay learners with counters of our own: the rule fires at ν = max{1, N}, never before and never after."""
    ledger = Ledger()
    for env, agent, seed in driven(system, scale, "R6"):
        starts = []
        for moment in replay(system, env, agent, horizon=BY_HAND, seed=seed):
            starts.append(moment.t)
            if moment.last is not None:
                n, visits, about = moment.last
                full = np.maximum(1, n)
                ledger.within("ν_k ≤ max{1, N_k}", float((visits - full).max()))
                if not moment.over:
                    ledger.count("episodes that ended")
                    ledger.count("episodes in which the next action was drawn from two", len(about) > 1)
                    ledger.true("ν_k = max{1, N_k} for the pair that fired", any(visits[i] == full[i] for i in about))
            if not moment.over:
                _compare_counts(ledger, moment)
        _compare_record(system, ledger, env, agent, seed, moment)
        _watch_compiled(system, ledger, env, agent, seed, starts[:-1])
    return ledger.outcome(needs=("episodes that ended", "episodes in which the next action was drawn from two"))


def _watch_compiled(system: System, ledger: Ledger, env: Env, agent: Agent, seed: int, starts: list[int]) -> None:
    """Require of a compiled run what can be seen of the rule between two episodes, and that it starts as the one by hand did."""
    before: list[Any] = []

    def watch(learner: Any) -> None:
        if before:
            n, played = before.pop()
            visits, full = learner.counts.n - n, np.maximum(1, n)
            ledger.within("compiled: ν_k ≤ max{1, N_k}", float((visits - full).max()))
            ledger.true("compiled: ν_k = max{1, N_k} for a pair in play", (visits == full)[played].any())
            ledger.count("compiled: episodes that ended")
        info = learner.info
        before.append((learner.counts.n.copy(), learner.policy.probs[info.pair_state, info.action] > 0))

    found = run(system, env, agent, horizon=10**5, seed=seed, watch=watch)
    begun = found.episodes["start"]
    ledger.true("compiled: the same first episodes as by hand", begun[begun <= BY_HAND].tolist() == starts)


def _compare_record(system: System, ledger: Ledger, env: Env, agent: Agent, seed: int, end: Moment) -> None:
    """Require that a compiled run records what the run by hand has come to: rewards, regrets, span, and every episode."""
    told: list[tuple[int, float, float, int, bool]] = []

    def watch(learner: Any) -> None:
        episode, probs = learner.episode, learner.policy.probs
        gain = (episode.gain_low + episode.gain_high) / 2
        told.append((episode.start, gain, span(learner.bias), episode.sweeps, bool(np.isin(probs, (0.0, 1.0)).all())))

    found = run(system, env, agent, horizon=BY_HAND, seed=seed, watch=watch)
    g = optimum(env.mdp)[0]
    paid = sum(seen.n * float(seen.mean) for seen in end.seen if seen.n)
    expected = float(end.n @ env.mdp.reward)
    ledger.true("recorded: the last time is the horizon", found.t[-1] == BY_HAND)
    ledger.within("recorded: reward", abs(found.reward[-1] - paid), RECORDED)
    ledger.within("recorded: regret", abs(found.regret[-1] - (BY_HAND * g - paid)), RECORDED)
    ledger.within("recorded: pseudo-regret", abs(found.pseudo_regret[-1] - (BY_HAND * g - expected)), RECORDED)
    ledger.within("recorded: span of the optimistic bias", abs(found.span[-1] - span(end.learner.bias)))
    ledger.true("recorded: number of episodes", found.n_episodes[-1] == len(told) == end.learner.n_episodes)
    columns = [found.episodes[name].tolist() for name in ("start", "gain", "span", "sweeps", "deterministic")]
    rows = list(zip(*columns, strict=True))
    for row, seen in zip(rows, told, strict=True):
        ledger.true(
            "recorded: start, sweeps and determinism of the episodes", row[::3] + row[4:] == seen[::3] + seen[4:]
        )
        ledger.within("recorded: gain and span of the episodes", max(abs(row[1] - seen[1]), abs(row[2] - seen[2])))


def _compare_counts(ledger: Ledger, moment: Moment) -> None:
    """Require t_k, N_k and the statistics of the learner to be those counted here."""
    counts = moment.learner.counts
    ledger.true("t_k is the number of steps done + 1", moment.learner.episode.start == moment.t)
    ledger.true("N_k is the number of visits before t_k", np.array_equal(counts.n, moment.n))
    for i, seen in enumerate(moment.seen):
        at = slice(counts.succ_ptr[i], counts.succ_ptr[i + 1])
        listed = dict(zip(counts.succ[at].tolist(), counts.times[at].tolist(), strict=True))
        ledger.true(
            "successors are counted", {s: times for s, times in listed.items() if times} == dict(seen.successors)
        )
        if seen.n:
            ledger.within("mean reward", abs(counts.r_mean[i] - float(seen.mean)), RADII)
            ledger.within("sample variance of rewards", abs(counts.r_variance[i] - float(seen.variance)), RADII)


CLAIMS = (
    Claim(
        id="R1",
        title="The regret bound with all its constants",
        place="Thm. 12, Sec. 6; the long formula that ends App. F",
        statement="α = 1 and sp(h*) ≤ c: with probability at least 1 − δ the regret stays below the bound at all T ≥ SA. (Vacuous while "
        "the bound exceeds g* T.)",
        tolerance=f"{RADII:g} relative for the formula; level {LEVEL:g} for the number of runs that exceed it, δ = {DELTA:g}.",
        check=check_R1,
    ),
    Claim(
        id="R2",
        title="Few episodes, and the two counting lemmas",
        place="App. F; Jaksch et al. 2010, App. C.2 and Sec. 4.3",
        statement="m ≤ SA log₂(8T/SA) for T ≥ SA; Σ ν_k/√max{1, N_k} ≤ (√2 + 1)√(SAT); Σ ν_k/max{1, N_k − 1} ≤ 6SA + 2SA ln T.",
        tolerance=f"{EXACT:g} absolute, at the end of every episode.",
        check=check_R2,
    ),
    Claim(
        id="R6",
        title="An episode ends when its next pair was played in it as often as in all before",
        place="Fig. 1, Sec. 3",
        statement="In every finished episode ν_k ≤ max{1, N_k} for all pairs, with equality for the pair that was about to be "
        "played; N_k, t_k and the statistics are those of the steps before t_k, and a run records what happened. Differs from "
        "the paper: its figure prints ≤, its proof uses <.",
        tolerance=f"exact; {RADII:g} for means and variances; {RECORDED:g} for recorded sums of rewards.",
        check=check_R6,
    ),
)
