"""Planning inside SCAL: optimism, and the policy that is played (C2)."""

from __future__ import annotations

import dataclasses
from math import inf, sqrt
from typing import Any

import numpy as np

from spanrl.agents.registry import Agent
from spanrl.agents.scal import SCAL
from spanrl.agents.ucrl import UCRL
from spanrl.agents.ucrl2 import UCRL2
from spanrl.envs.env import Env
from spanrl.models.bounded import BoundedMDP
from spanrl.models.info import ProblemInfo
from spanrl.models.mdp import MDP
from spanrl.paper import oracles
from spanrl.paper import oracles_learning as paper
from spanrl.paper.claims.base import EXACT, CheckResult, Claim, Ledger, Scale
from spanrl.paper.claims.confidence import random_env, setting
from spanrl.paper.instances import generator
from spanrl.paper.oracles import Vector, finite, span
from spanrl.paper.oracles_sets import max_ball_greedy, max_box_greedy, pair_ball, pair_box
from spanrl.paper.replay import Moment, replay, run, sizes
from spanrl.paper.system import System

MOST_SWEEPS = 4
"""Plans of so many sweeps are compared with plain iteration; in longer ones a solver may damp it, as the paper allows."""

CLEAR = 1e-7
"""Actions whose values differ by less are tied: either may be played."""


def optimum(mdp: MDP) -> tuple[float, float]:
    """Return (a lower bound of g* within 1e-11, sp(h*)) by the oracle."""
    g, h = oracles.fixed_point(finite(mdp), tol=1e-11)
    return g - 1e-11, span(h)


def q_ends(bounded: BoundedMDP, v: Vector) -> tuple[Vector, Vector]:
    """Return the largest and the smallest r + pᵀv of every pair."""
    high, low = np.empty(bounded.n_pairs), np.empty(bounded.n_pairs)
    for i in range(bounded.n_pairs):
        ends: Any = pair_ball(bounded, i) if bounded.is_ball else pair_box(bounded, i)
        best: Any = max_ball_greedy if bounded.is_ball else max_box_greedy
        high[i] = bounded.r_high[i] + best(v, *ends) @ v
        low[i] = bounded.r_low[i] + best(-v, *ends) @ v
    return high, low


def clear_states(bounded: BoundedMDP, v: Vector, truncated: Any) -> list[int]:
    """Return the states in which the greedy action, and where needed the minimal one, is not tied with another."""
    high, low = q_ends(bounded, v)
    clear = []
    for s in range(bounded.n_states):
        mine = slice(bounded.pair_ptr[s], bounded.pair_ptr[s + 1])
        gaps = [*np.diff(np.sort(high[mine])[-2:]), *(np.diff(np.sort(low[mine])[:2]) if truncated[s] else ())]
        if all(gap > CLEAR for gap in gaps):
            clear.append(s)
    return clear


def compare_plan(system: System, ledger: Ledger, learner: Any, model: BoundedMDP) -> None:
    """Require the bracket of T_c at the learner's bias on ``model``, and the policy of G_c there (ties excepted)."""
    c, v, episode = learner.rules.span_bound, learner.bias, learner.episode
    step = system.span_bellman(model, v, c) - v
    off = max(abs(episode.gain_low - step.min()), abs(episode.gain_high - step.max()))
    ledger.within("the bracket is [min, max] of T_c v − v", off)
    ledger.within("width of the bracket ≤ ε_k", span(step) - learner.info.size / sqrt(episode.start))
    ledger.within("sp(v) ≤ c", span(v) - c)
    rule = system.span_greedy(model, v, c, policy="mixture" if learner.rules.mixture else "greedy")
    probs = learner.policy.probs
    for s in clear_states(model, v, rule.truncated):
        ledger.within("the policy played is G_c v", float(np.abs(probs[s] - rule.policy.probs[s]).max()))
        ledger.count("choices compared", np.diff(model.pair_ptr)[s] > 1)
        ledger.count("mixtures compared", learner.rules.mixture and 0 < rule.policy.probs[s].max() < 1)


def first_bracket(bounded: BoundedMDP, c: float, tol: float) -> tuple[int, Vector]:
    """Return the first sweep from v = 0 with sp(T_c v − v) ≤ tol, and T_c v − v there; the sweep is 0 if none of MOST_SWEEPS has it."""
    v, step = np.zeros(bounded.n_states), np.zeros(bounded.n_states)
    for n in range(1, MOST_SWEEPS + 1):
        step = np.maximum.reduceat(q_ends(bounded, v)[0], bounded.pair_ptr[:-1]) - v
        step = np.minimum(step + v, (step + v).min() + c) - v
        if span(step) <= tol:
            return n, step
        v = v + step
    return 0, step


def check_C2(system: System, scale: Scale) -> CheckResult:
    """Check every episode of runs with c ≥ sp(h*): the bracket's upper end is at least g* while M is in the set."""
    rng, ledger = generator("C2"), Ledger()
    names = ("three-state", "three-state[delta=0]", "two-state", "riverswim[n_states=3]")
    places = [system.make(name) for name in names]
    _check_options(system, ledger, ProblemInfo.from_mdp(places[0].mdp, 100))
    for cold in (UCRL(p_scale=0.01, r_scale=0.01, warm_start=False), SCAL(1.0, 0.05, 0.01, 0.01, warm_start=False)):
        _audit_stop(system, ledger, random_env(generator("C2, the stop")), cold)
    for seed in range(max(1, scale.instances // 20)):
        for env in (places[0], random_env(rng)):
            for factor in (0.2, 1.5):  # the first makes η_k the smallest radius
                _audit_perturbed(system, ledger, env, factor, seed)
        for env in (*places, random_env(rng)):
            if ledger.broken:
                return ledger.outcome()
            g, h = optimum(env.mdp)
            wide = (SCAL(h + EXACT), SCAL(2 * h), SCAL(5 * h, policy="greedy"), SCAL(h + 1.0, 0.9, 0.05, 0.05))
            for agent in (*wide, UCRL(), UCRL(p_scale=0.05, r_scale=0.05), UCRL2()):
                _audit(system, ledger, env, agent, g, seed)
            _audit(system, ledger, env, SCAL(h / 2, p_scale=0.05, r_scale=0.02), -inf, seed)
    needs = ("episodes with M in the set", "choices compared", "mixtures compared", "perturbed episodes, η_k a radius")
    return ledger.outcome(needs=(*needs, "plans from 0 of several sweeps"))


def _check_options(system: System, ledger: Ledger, info: ProblemInfo) -> None:
    """Require that a learner goes by the options of its agent."""
    agents = (
        SCAL(3.0, 0.2, 0.3, 0.4, policy="greedy"),
        SCAL(2.0, "rsqrt", 0.5, 0.6, best_of_both=True),
        SCAL(1.0, perturb=True, warm_start=False),
        UCRL(0.2, 0.3, 0.4, warm_start=False),
        UCRL2(0.2),
    )
    for agent in agents:
        asked = dataclasses.asdict(agent)
        rules = system.start(agent, info, 0).rules
        region = dataclasses.asdict(rules.estimate)
        ledger.true("options: δ and α", all(asked[name] == value for name, value in region.items()))
        ledger.true("options: span bound", rules.span_bound == asked.get("span_bound", inf))
        ledger.true("options: policy", rules.mixture == (asked.get("policy", "mixture") == "mixture"))
        flags = ("perturb", "best_of_both", "warm_start")
        ledger.true("options: flags", all(getattr(rules, name) == asked[name] for name in flags if name in asked))


def _audit(system: System, ledger: Ledger, env: Env, agent: Agent, g: float, seed: int) -> None:
    """Require optimism (where g is finite) and the plan of the paper in every episode of a run."""

    def watch(learner: Any) -> None:
        compare_plan(system, ledger, learner, system.augment(learner.confidence_set()))

    episodes = run(system, env, agent, horizon=30_000, seed=seed, watch=watch, audit=True).episodes
    inside = episodes["contains"]
    if g > -inf:
        for k, high in enumerate(episodes["gain_high"].tolist()):
            ledger.count("episodes with M in the set", inside[k])
            ledger.count("episodes with M outside the set: nothing claimed", not inside[k])
            if inside[k]:
                ledger.within("g* ≤ upper end of the bracket", g - high)


def _audit_stop(system: System, ledger: Ledger, env: Env, agent: Agent) -> None:
    """Require that a plan from v = 0 ends at the first sweep whose bracket is at most ε_k wide, neither later nor earlier."""

    def watch(learner: Any) -> None:
        c, episode = learner.rules.span_bound, learner.episode
        sweeps, step = first_bracket(learner.confidence_set(), c, learner.info.size / sqrt(episode.start))
        ledger.count("plans from 0 of several sweeps", sweeps > 1)
        if sweeps:
            off = max(abs(episode.gain_low - step.min()), abs(episode.gain_high - step.max()))
            ledger.within("from 0: the bracket is the first of width ≤ ε_k", off)

    run(system, env, agent, horizon=30_000, seed=0, watch=watch)


def _audit_perturbed(system: System, ledger: Ledger, env: Env, factor: float, seed: int) -> None:
    """Require the plan of the theorem, c = factor·sp(h*): on M‡_k with η_k, stopped by γ_k's rule, at most η_k c below g*."""
    g, h = optimum(env.mdp)
    c = factor * max(h, 0.1)  # some models have no span at all
    for moment in replay(system, env, SCAL(c, perturb=True, p_scale=0.01, r_scale=0.01), horizon=300, seed=seed):
        if not moment.over:
            eta = _eta(moment, sizes(env.mdp)[1], c)
            plain = moment.learner.confidence_set()
            model = system.perturb(system.augment(plain), eta, 0)
            compare_plan(system, ledger, moment.learner, model)
            episode, size = moment.learner.episode, moment.learner.info.size
            first = span(system.span_bellman(model, np.zeros(model.n_states), c))
            left = 2 * (1 - eta) ** episode.sweeps / eta * first - size / sqrt(moment.t)
            ledger.within("perturbed: 2γⁿ/(1−γ) sp(v₁ − v₀) ≤ ε_k at the stop", left)
            ledger.count("perturbed episodes")
            ledger.count("perturbed episodes, η_k a radius", eta < 0.99 * min(1.0, size / (c * moment.t)))
            if c >= h and plain.contains(env.mdp):
                ledger.within("perturbed: g* − ηc ≤ upper end", g - eta * c - episode.gain_high)


def _eta(moment: Moment, A: int, c: float) -> float:
    at = setting(moment.learner.rules.estimate, moment.t, moment.learner.info, A)
    return paper.perturbation(moment.seen, at, c, 0) * (1 - 1e-13)  # rounding must not lift it above an upper end


CLAIMS = (
    Claim(
        id="C2",
        title="Optimism, and the policy that SCAL plays",
        place="Fig. 1, Sec. 3; Sec. 6; App. F; Thm. 11",
        statement="Where M ∈ M_k and sp(h*) ≤ c, the upper end of the gain bracket is at least g* (with perturbation: g* − ηc). The "
        "bracket is [min, max] of T_c v − v on the augmented set, the first of width ≤ ε_k = (r_max − r_min)/√t_k, and the policy played "
        "is G_c v there.",
        tolerance=f"{EXACT:g} absolute; actions within {CLEAR:g} of each other are ties and excepted.",
        check=check_C2,
    ),
)
