"""Honest mistakes in learning: ways in which a radius, a plan or the episode rule could be wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import log, sqrt
from typing import Any

import numpy as np
from mutants_planning import Mutant
from slow_learning import Radius, bernstein_with, cut, slow_learners

from spanrl.agents.learner import Learner
from spanrl.agents.planner import Plan
from spanrl.agents.scal import SCAL
from spanrl.agents.ucrl import UCRL
from spanrl.learning.run import Run
from spanrl.models.bounded import BoundedMDP
from spanrl.models.counts import Batch
from spanrl.models.info import ProblemInfo
from spanrl.paper.system import System


def radii(**parts: Any) -> Mutant:
    """Return the mutant whose learners and sets are the slow ones with ``parts`` replaced."""
    return lambda system: slow_learners(system, **parts)


def learners(**parts: Any) -> Mutant:
    """Return the mutant whose learners alone are broken: a region that is asked for its set gives the right one."""
    return lambda system: system.changed(start=slow_learners(system, **parts).start)


def planning(mutant: Mutant) -> Mutant:
    """Return the mutant whose learners plan with a broken planner; the checker's own functions stay whole."""
    return lambda system: slow_learners(system, planner=mutant(system))


def shrunk(factor: float) -> Radius:
    """Return the radius times ``factor``."""
    whole = bernstein_with()
    return lambda variance, n, b, alpha, size: factor * whole(variance, n, b, alpha, size)


def log_of_pairs(info: ProblemInfo, t: int, delta: float, states: bool) -> float:
    """Count available pairs instead of S·A."""
    return log(2 * info.n_pairs * t / delta)


def log_of_columns(info: ProblemInfo, t: int, delta: float, states: bool) -> float:
    """Take A to be the number of action columns."""
    return log(2 * (info.n_states if states else 1) * info.n_actions * t / delta)


def biased(squares: float, n: int) -> float:
    """Divide by N."""
    return squares / n


def halved(squares: float, n: int) -> float:
    """Divide by 2N − 1, as if every reward had been seen twice."""
    return squares / (2 * n - 1)


def uncapped(centre: float, radius: float, low: float, high: float) -> tuple[float, float]:
    """Forget the cap on the optimistic reward."""
    return max(low, centre - radius), centre + radius


def cut_at_zero(centre: float, radius: float, low: float, high: float) -> tuple[float, float]:
    """Take r_min to be 0."""
    top = min(high, centre + radius)
    return min(max(0.0, centre - radius), top), top


def unlikely_unseen(centre: float, radius: float, low: float, high: float) -> tuple[float, float]:
    """Give half of the radius to what was never seen."""
    return cut(centre, radius if centre > 0 else radius / 2, low, high)


def thin(centre: float, radius: float, low: float, high: float) -> tuple[float, float]:
    """Use a hundredth of the radius."""
    return cut(centre, radius / 100, low, high)


def stale(system: System) -> System:
    """Show the set of the episode before."""

    def start(agent: Any, info: ProblemInfo, rng: Any) -> Learner:
        learner: Learner = system.start(agent, info, rng)
        sets: list[BoundedMDP] = []
        now = learner.confidence_set

        def late() -> BoundedMDP:
            sets.append(now())
            return sets[max(0, len(sets) - 2)]

        object.__setattr__(learner, "confidence_set", late)
        return learner

    return system.changed(start=start)


def half_the_bound(system: System) -> System:
    """Plan with c/2."""

    def solve(model: Any, *, span_bound: float, **options: Any) -> Any:
        return system.solve(model, span_bound=span_bound / 2, **options)

    return system.changed(solve=solve)


def without_bound(system: System) -> System:
    """Plan with c = ∞: plain UCRL."""

    def solve(model: Any, *, span_bound: float, **options: Any) -> Any:
        return system.solve(model, **options)

    return system.changed(solve=solve)


def impatient(factor: float) -> Mutant:
    """Return the mutant that stops at a bracket ``factor`` times too wide."""

    def mutant(system: System) -> System:
        def solve(model: Any, *, tol: float, **options: Any) -> Any:
            return system.solve(model, tol=factor * tol, **options)

        return system.changed(solve=solve)

    return mutant


def half_as_wide(info: ProblemInfo, t: int) -> float:
    """Plan to ε_k/2."""
    return info.size / sqrt(t) / 2


def from_r_max(info: ProblemInfo, t: int) -> float:
    """Take r_min to be 0 in ε_k."""
    return info.r_max / sqrt(t)


def swapped(plan: Plan, info: ProblemInfo) -> Plan:
    """Swap the two weights of a mixture."""
    return plan._replace(weight=np.where(plan.weight > 0, 1 - plan.weight, 0.0))


def first_action(plan: Plan, info: ProblemInfo) -> Plan:
    """Play the first action of every state, whatever was planned."""
    return plan._replace(pairs=np.repeat(info.pair_ptr[:-1], 2), weight=0 * plan.weight, mixes=False)


def one_more(n: int) -> int:
    """Go on while ν ≤ max{1, N}, as the paper's figure prints it."""
    return max(1, n) + 1


def one_less(n: int) -> int:
    """Stop one visit early."""
    return max(1, n - 1)


def every_visit(n: int) -> int:
    """Start an episode at every second visit of a pair."""
    return 1


def hundredfold(n: int) -> int:
    """Let an episode multiply the visits by a hundred."""
    return 100 * max(1, n)


def half_counted(system: System) -> System:
    """Count one visit in two."""

    def start(agent: Any, info: ProblemInfo, rng: Any) -> Learner:
        learner: Learner = system.start(agent, info, rng)
        begin_episode = learner.begin_episode

        def lossy(batch: Batch | None, state: int) -> None:
            begin_episode(None if batch is None else batch._replace(times=(batch.times + 1) // 2), state)

        object.__setattr__(learner, "begin_episode", lossy)
        learner.on_episode.append(lambda _: None)  # Python begins the episodes
        return learner

    return system.changed(start=start)


def bounding(change: Callable[..., float]) -> Mutant:
    """Return the mutant whose regret bound is ``change(true bound, T=…, S=…, A=…, c=…, L=…)``."""

    def mutant(system: System) -> System:
        def bound(horizon: int, **given: Any) -> float:
            S, A, c = given["n_states"], given["n_actions"], given["span_bound"]
            L = log(2 * S * A * horizon / given["delta"])
            true = system.regret_bound(horizon, **given)
            return change(true, T=horizon, S=S, A=A, c=c, L=L) if horizon >= S * A else true

        return system.changed(regret_bound=bound)

    return mutant


def without_eight(true: float, T: int, S: int, A: int, c: float, L: float) -> float:
    """Print log₂(T/SA) for log₂(8T/SA), as the display before the last one does."""
    return true - 3 * c * S * A


def without_root(true: float, T: int, S: int, A: int, c: float, L: float) -> float:
    """Forget the regret of failing confidence sets, √T."""
    return true - sqrt(T)


def one_s_less(true: float, T: int, S: int, A: int, c: float, L: float) -> float:
    """Print SA for S²A in the second term."""
    return true - 98 / 3 * c * (S - 1) * S * A * L * (3 + log(T))


def support_not_less_one(system: System) -> System:
    """Print Γ for Γ − 1."""

    def bound(horizon: int, *, max_support: int, **given: Any) -> float:
        return system.regret_bound(horizon, max_support=max_support + 1, **given)

    return system.changed(regret_bound=bound)


def sluggish_scopt(system: System) -> System:
    """Damp ScOpt, and it alone, to a fifth of its speed."""

    def solve(model: Any, *, span_bound: float = np.inf, **options: Any) -> Any:
        slower = {"damping": 0.2} if span_bound < np.inf else {}
        return system.solve(model, span_bound=span_bound, **{**options, **slower})

    return system.changed(solve=solve)


def playing(change: Callable[[Any], Any]) -> Mutant:
    """Return the mutant in whose runs another agent plays than the one asked for."""

    def mutant(system: System) -> System:
        return system.changed(learn=lambda env, agent, **options: system.learn(env, change(agent), **options))

    return mutant


def without_any_bound(agent: Any) -> Any:
    """Play UCRL in the name of SCAL."""
    return UCRL(p_scale=agent.p_scale, r_scale=agent.r_scale)


def other_bound(change: Callable[[float], float]) -> Callable[[Any], Any]:
    """Return the change of SCAL's span bound by ``change(c)``."""
    return lambda agent: replace(agent, span_bound=change(agent.span_bound)) if isinstance(agent, SCAL) else agent


def full_radii(agent: Any) -> Any:
    """Forget that the radii are scaled."""
    return replace(agent, p_scale=1.0, r_scale=1.0)


def wider_delta(system: System) -> System:
    """Make three-state domains with twice the δ asked for."""

    def make(name: str, **options: Any) -> Any:
        delta = float(name.partition("delta=")[2].rstrip("]") or 0.005)
        return system.make("three-state", delta=2 * delta)

    return system.changed(make=make)


def measured(change: Callable[[Run], Run]) -> Mutant:
    """Return the mutant whose runs are written down wrongly by ``change``."""

    def mutant(system: System) -> System:
        return system.changed(learn=lambda env, agent, **options: change(system.learn(env, agent, **options)))

    return mutant


def against_a_larger_gain(run: Run) -> Run:
    """Measure the regret against a gain that is 1e-4 too large."""
    gain = run.meta["gain"] + 1e-4
    return replace(run, regret=run.t * gain - run.reward, meta=run.meta | {"gain": gain})


def half_the_pseudo_regret(run: Run) -> Run:
    """Count every step half in the pseudo-regret."""
    return replace(run, pseudo_regret=run.pseudo_regret / 2)


def half_the_span(run: Run) -> Run:
    """Record half of the span of the optimistic bias."""
    return replace(run, span=run.span / 2)


def no_pseudo_regret(run: Run) -> Run:
    """Record the regret as the pseudo-regret."""
    return replace(run, pseudo_regret=run.regret)


def no_sweeps(run: Run) -> Run:
    """Record one sweep for every episode."""
    return replace(run, episodes=run.episodes | {"sweeps": np.ones_like(run.episodes["sweeps"])})


def starting(change: Callable[[Any], Any]) -> Mutant:
    """Return the mutant whose agents start with other options than they were given."""
    return lambda system: system.changed(start=lambda agent, info, rng: system.start(change(agent), info, rng))


def always_mixing(agent: Any) -> Any:
    """Ignore that greedy actions are asked for."""
    return replace(agent, policy="mixture") if isinstance(agent, SCAL) else agent


def without_reward_scale(agent: Any) -> Any:
    """Ignore α_r."""
    return replace(agent, r_scale=1.0) if isinstance(agent, SCAL | UCRL) else agent
