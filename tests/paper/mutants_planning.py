"""Honest mistakes in planning: ways in which a formula of ours could be wrong. ``mutants_of`` says which claims must turn on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from slow_planning import Index, slow_system

from spanrl.errors import ModelError
from spanrl.models.bounded import BoundedMDP
from spanrl.models.checks import immutable
from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.models.solution import Evaluation, Solution
from spanrl.paper import oracles_chains
from spanrl.paper.oracles import Vector, finite
from spanrl.paper.system import System

Mutant = Callable[[System], System]


def slow(**parts: Any) -> Mutant:
    """Return the mutant that plans with the slow planner and ``parts`` replaced."""
    return lambda system: slow_system(system, **parts)


def clipping(clip: Callable[[Vector, float], Vector]) -> Mutant:
    """Return the mutant whose ``clip_span``, and nothing else, is ``clip``."""
    return lambda system: system.changed(clip_span=clip)


def clip_from_below(v: Vector, c: float) -> Vector:
    """Raise the low values to max − c instead of cutting the high ones at min + c."""
    return np.maximum(v, np.max(v) - c)


def clip_by_scaling(v: Vector, c: float) -> Vector:
    """Shrink v towards its minimum until the span fits, instead of cutting."""
    full = float(np.ptp(v))
    return v if full <= c else np.asarray(v.min() + (v - v.min()) * (c / full))


def clip_to_minimum(v: Vector, c: float) -> Vector:
    """Set the values above min + c to the minimum: the "+ c" is forgotten."""
    return np.where(v <= v.min() + c, v, v.min())


def clip_at_c(v: Vector, c: float) -> Vector:
    """Cut at c, as if the minimum were always 0."""
    return np.minimum(v, c)


def clip_nothing(v: Vector, c: float) -> Vector:
    """Forget to truncate."""
    return v


def clip_at_mean(v: Vector, c: float) -> Vector:
    """Cut at mean + c/2 instead of min + c."""
    return np.asarray(np.minimum(v, v.mean() + c / 2))


def clip_to_half(v: Vector, c: float) -> Vector:
    """Use half of the span bound."""
    return np.asarray(np.minimum(v, v.min() + c / 2))


def weight_swapped(high: Vector, low: Vector, top: float) -> Vector:
    """Put the weight of the greedy action on the minimal one and the other way round."""
    gap = np.where(high > low, high - low, 1.0)
    return np.where(high > top, np.where(low > top, 1.0, (top - low) / gap), 0.0)


def weight_greedy(high: Vector, low: Vector, top: float) -> Vector:
    """Play the greedy action also in truncated states."""
    return np.zeros_like(high)


def weight_minimal(high: Vector, low: Vector, top: float) -> Vector:
    """Play the minimal action outright wherever T_c truncates."""
    return np.where(high > top, 1.0, 0.0)


def weight_greedy_if_infeasible(high: Vector, low: Vector, top: float) -> Vector:
    """Play the greedy instead of the minimal action where T_c is infeasible."""
    gap = np.where(high > low, high - low, 1.0)
    return np.where(high > top, np.where(low > top, 0.0, (high - top) / gap), 0.0)


def lowest_as_highest(q: Vector) -> Index:
    """Compute the minimum as the maximum at v."""
    return np.asarray(q.argmax(axis=1))


def lowest_among_all(q: Vector) -> Index:
    """Take the minimum over columns that do not exist too."""
    return np.asarray(np.where(np.isneginf(q), 0.0, q).argmin(axis=1))


def bracket_at_first_state(step: Vector) -> tuple[float, float]:
    """Read the gain at one state, without a bracket."""
    return float(step[0]), float(step[0])


def solve_reading(change: Callable[[Solution], Solution]) -> Mutant:
    """Return the mutant whose solver's answer is changed afterwards."""

    def mutant(system: System) -> System:
        return system.changed(solve=lambda model, **options: change(system.solve(model, **options)))

    return mutant


def solve_with(**forced: Any) -> Mutant:
    """Return the mutant whose solver ignores what it was asked for in some options."""

    def mutant(system: System) -> System:
        return system.changed(solve=lambda model, **options: system.solve(model, **{**options, **forced}))

    return mutant


def shifted_bounds(by: float) -> Callable[[Solution], Solution]:
    """Return the change that moves gain and bracket by a constant."""

    def change(solution: Solution) -> Solution:
        low, high = solution.gain_bounds
        return replace(solution, gain=solution.gain + by, gain_bounds=(low + by, high + by))

    return change


def lazy_operator(system: System) -> System:
    """Let the damping leak into the operator: T_c v becomes (v + T_c v)/2."""

    def lazy(model: Any, v: Vector, c: float, **options: Any) -> Vector:
        return (np.asarray(v) + system.span_bellman(model, v, c, **options)) / 2

    return system.changed(span_bellman=lazy)


def truncated_at_old_minimum(system: System) -> System:
    """Cut Lv at min v + c instead of min Lv + c."""

    def broken(model: Any, v: Vector, c: float, **options: Any) -> Vector:
        return np.minimum(system.bellman(model, v, **options), np.min(v) + c)

    return system.changed(span_bellman=broken)


def discounted_operator(system: System) -> System:
    """Discount the next value by 0.99."""

    def broken(model: Any, v: Vector, c: float, **options: Any) -> Vector:
        return system.span_bellman(model, 0.99 * np.asarray(v), c, **options)

    return system.changed(span_bellman=broken)


def evaluating(change: Callable[[Vector, Vector], tuple[Vector, Vector]]) -> Mutant:
    """Return the mutant whose evaluation has gain and bias changed by ``change(gain, bias)``."""

    def mutant(system: System) -> System:
        def evaluate(mdp: MDP, policy: Policy) -> Evaluation:
            true = system.evaluate(mdp, policy)
            gain, bias = change(true.gain, true.bias)
            return Evaluation(gain, bias, float(np.ptp(bias)))

        return system.changed(evaluate=evaluate)

    return mutant


def evaluates_likeliest_action(system: System) -> System:
    """Evaluate the most likely action of every state instead of the mixture."""

    def evaluate(mdp: MDP, policy: Policy) -> Evaluation:
        return system.evaluate(mdp, Policy.deterministic(policy.probs.argmax(axis=1), policy.n_actions))

    return system.changed(evaluate=evaluate)


def bias_without_gain(system: System) -> System:
    """Return (I − P + P*)⁻¹ r as the bias: the gain is not taken out of it."""

    def evaluate(mdp: MDP, policy: Policy) -> Evaluation:
        P, r = oracles_chains.decision(finite(mdp), policy.probs)
        bias: Vector = np.linalg.solve(np.eye(len(r)) - P + oracles_chains.stationary_matrix(P), r).astype(np.float64)
        return Evaluation(system.evaluate(mdp, policy).gain, bias, float(np.ptp(bias)))

    return system.changed(evaluate=evaluate)


def shortest_hitting_time(system: System) -> System:
    """Report the shortest of the hitting times instead of the longest as the diameter."""

    def analyse(mdp: MDP, **options: Any) -> Any:
        times = np.array([oracles_chains.hitting_times(finite(mdp), t) for t in range(mdp.n_states)])
        off = times[~np.eye(mdp.n_states, dtype=bool)]
        return replace(system.analyse(mdp, **options), diameter=float(off.min()) if off.size else 0.0)

    return system.changed(analyse=analyse)


def fills_worst_first(system: System) -> System:
    """Hand out the mass of a box or ball from the worst state up: the inner maximum becomes the minimum."""

    def bellman(model: Any, v: Vector, *, sense: str = "optimistic") -> Vector:
        other = "pessimistic" if sense == "optimistic" else "optimistic"
        return system.bellman(model, v, sense=other)

    return system.changed(bellman=bellman)


def ignores_the_set(system: System) -> System:
    """Use the centre of the transition sets: no optimism in the transitions."""

    def bellman(model: Any, v: Vector, *, sense: str = "optimistic") -> Vector:
        if not isinstance(model, BoundedMDP):
            return system.bellman(model, v, sense=sense)
        ups = system.bellman(model, v, sense="optimistic")
        return (ups + system.bellman(model, v, sense="pessimistic")) / 2

    return system.changed(bellman=bellman)


def minimum_as_maximum(system: System) -> System:
    """Compute the inner minimum as the maximum at v: the sign is forgotten."""
    return system.changed(bellman=lambda model, v, sense="optimistic": system.bellman(model, v))


def policy_value_is_value(system: System) -> System:
    """Take N_c v to be T_c v, feasible or not."""
    return system.changed(span_policy_bellman=system.span_bellman)


def plays_other_weights(system: System) -> System:
    """Swap the two probabilities in the policy played, not in the extended rule."""

    def greedy(model: Any, v: Vector, c: float, **options: Any) -> Any:
        rule = system.span_greedy(model, v, c, **options)
        probs = rule.policy.probs.copy()
        for s in np.flatnonzero((probs > 0).sum(axis=1) == 2):
            pair = np.flatnonzero(probs[s])
            probs[s, pair] = probs[s, pair[::-1]]
        return replace(rule, policy=Policy(probs))

    return system.changed(span_greedy=greedy)


def extended_reward_beyond(by: float) -> Callable[[Solution], Solution]:
    """Return the change that pays more in the extended rule than its interval allows."""

    def change(solution: Solution) -> Solution:
        P, r = solution.optimistic
        return replace(solution, _rule=SimpleNamespace(optimistic=(P, r + by)))

    return change


def augment_to(end: Callable[[BoundedMDP], tuple[Vector, Vector]]) -> Mutant:
    """Return the mutant whose augmentation sets the ends (r_low, r_high) to ``end(bounded)``."""

    def augment(bounded: BoundedMDP) -> BoundedMDP:
        low, high = end(bounded)
        return replace(bounded, r_low=immutable(low, np.float64), r_high=immutable(high, np.float64))

    return lambda system: system.changed(augment=augment)


lowers_to_zero = augment_to(lambda b: (np.minimum(np.maximum(b.r_min, 0.0), b.r_high) + np.zeros(b.n_pairs), b.r_high))


def perturb_replacing(system: System) -> System:
    """Replace the interval of s̄ by [η, 1] instead of intersecting with it."""

    def perturb(bounded: BoundedMDP, eta: float, state: int) -> BoundedMDP:
        moved = system.perturb(bounded, eta, state)
        high = np.where(moved.succ == state, 1.0, moved.p_high)
        return replace(moved, p_high=immutable(high, np.float64))

    return system.changed(perturb=perturb)


def perturb_by(eta: Callable[[float], float]) -> Mutant:
    """Return the mutant that perturbs by another η (0: not at all)."""

    def mutant(system: System) -> System:
        def perturb(bounded: BoundedMDP, asked: float, state: int) -> BoundedMDP:
            used = eta(asked)
            try:
                return system.perturb(bounded, used, state) if used > 0 else bounded
            except ModelError:  # that η does not fit this set: the mistake does not show here
                return system.perturb(bounded, asked, state)

        return system.changed(perturb=perturb)

    return mutant
