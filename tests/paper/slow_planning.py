"""A planner in plain numpy with replaceable parts: the same functions as the fast one, built on the oracles.

Two uses. As it stands it must pass every claim, which shows that the checkers ask for nothing that only our kernels do.
With one part replaced it is a mutant in which the mistake reaches everything that depends on the part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spanrl.errors import NotConvergedError
from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.models.solution import Analysis, Evaluation, Solution
from spanrl.paper import oracles, oracles_chains
from spanrl.paper.oracles import Finite, Model, Vector, finite, span
from spanrl.paper.system import System

Index = NDArray[np.int64]


def mixture_weight(high: Vector, low: Vector, top: float) -> Vector:
    """Return the weight on the minimal action, (v̄ − min Lv − c)/(v̄ − v̲), with ``top`` = min Lv + c (App. C)."""
    gap = np.where(high > low, high - low, 1.0)
    return np.where(high > top, np.where(low > top, 1.0, (high - top) / gap), 0.0)


def lowest_action(q: Vector) -> Index:
    """Return the minimal extended action of each row of ``q`` (−inf where there is none)."""
    return np.asarray(np.where(np.isneginf(q), np.inf, q).argmin(axis=1))


def step_bracket(step: Vector) -> tuple[float, float]:
    """Return the gain bracket [min(Fv − v), max(Fv − v)]."""
    return float(step.min()), float(step.max())


@dataclass(frozen=True)
class Parts:
    """The formulas of the planner; a mutant replaces one."""

    clip: Callable[[Vector, float], Vector] = oracles.truncate
    weight: Callable[[Vector, Vector, float], Vector] = mixture_weight
    lowest: Callable[[Vector], Index] = lowest_action
    bracket: Callable[[Vector], tuple[float, float]] = step_bracket
    damping: float = 0.5
    patience: float = 1.0  # the iteration stops at a bracket of patience · tol
    limit: int = 40_000


@dataclass(frozen=True)
class Greedy:
    """The decision rule G_c v: what ``span_greedy`` returns."""

    policy: Policy
    weight: Vector
    feasible: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    optimistic: tuple[Any, Vector]


class _Planner:
    """The functions of a :class:`System`, made of ``parts``."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def bellman(self, model: Model, v: Vector, *, sense: str = "optimistic") -> Vector:
        return np.asarray(_kept(finite(model), v, sense).max(axis=1))

    def clip_span(self, v: Vector, c: float) -> Vector:
        return self.parts.clip(np.asarray(v, dtype=float), c)

    def span_bellman(self, model: Model, v: Vector, c: float, *, sense: str = "optimistic") -> Vector:
        return self.clip_span(self.bellman(model, v, sense=sense), c)

    def span_policy_bellman(self, model: Model, v: Vector, c: float, *, sense: str = "optimistic") -> Vector:
        P, r = self.span_greedy(model, v, c, sense=sense).optimistic
        return np.asarray(r + P @ v)

    def span_greedy(
        self, model: Model, v: Vector, c: float, *, policy: str = "mixture", sense: str = "optimistic"
    ) -> Greedy:
        dense, rows = finite(model), np.arange(model.n_states)
        q = oracles.q_values(dense, np.asarray(v, dtype=float))
        best, worst = q.argmax(axis=1), self.parts.lowest(q)
        high, low = q[rows, best], q[rows, worst]
        top = float(high.min() + c)
        w = self.parts.weight(high, low, top) if policy == "mixture" else np.zeros(rows.size)
        probs = np.zeros((rows.size, model.n_actions))
        np.add.at(probs, (rows, dense.action[rows, worst]), w)
        np.add.at(probs, (rows, dense.action[rows, best]), 1.0 - w)
        P = w[:, None] * dense.P[rows, worst] + (1.0 - w)[:, None] * dense.P[rows, best]
        r = w * dense.r[rows, worst] + (1.0 - w) * dense.r[rows, best]
        return Greedy(Policy(probs), w, low <= top, high > top, (csr_array(P), r))

    def solve(
        self,
        model: Model,
        *,
        span_bound: float = np.inf,
        tol: float = 1e-6,
        sense: str = "optimistic",
        method: str = "auto",
        v_init: Vector | None = None,
        ref_state: int = 0,
        damping: float | None = None,
        contraction: float | None = None,
        policy: str = "mixture",
        max_sweeps: int | None = None,
        on_fail: str = "raise",
    ) -> Solution:
        v = self.clip_span(np.zeros(model.n_states) if v_init is None else v_init, span_bound)
        gamma = contraction or 0.0
        a = 1.0 if gamma else (damping or self.parts.damping)
        first, done = 0.0, False
        for n in range(max_sweeps or self.parts.limit):
            step = self.span_bellman(model, v, span_bound, sense=sense) - v
            first = span(step) if n == 0 else first
            done = span(step) + (2 * gamma**n / (1 - gamma) * first if gamma else 0.0) <= tol * self.parts.patience
            if done:
                break
            v = v + a * step
            v = v - v[ref_state]
        solution = self._solution(model, v, span_bound, step, n + 1, done, policy, ref_state)
        if not done and on_fail == "raise":
            raise NotConvergedError(f"slow: the bracket is still {span(step):g} wide after {n + 1} sweeps.", solution)
        return solution

    def _solution(
        self, model: Model, v: Vector, c: float, step: Vector, n: int, done: bool, policy: str, ref: int
    ) -> Solution:
        rule = self.span_greedy(model, v, c, policy=policy)
        low, high = self.parts.bracket(step)
        return Solution(
            rule.policy,
            (low + high) / 2,
            (low, high),
            v - v[ref],
            span(v),
            n,
            span(step),
            done,
            bool(rule.feasible.all()),
            rule.truncated,
            "value-iteration",
            {"total": 0.0},
            0,
            rule,
        )


def _kept(dense: Finite, v: Vector, sense: str) -> Vector:
    """Return q [S, K] with the extended actions that ``sense`` does not choose set to −inf."""
    q = oracles.q_values(dense, np.asarray(v, dtype=float))
    if sense == "optimistic":
        return q
    kept = np.full_like(q, -np.inf)
    for a in range(int(dense.action.max()) + 1):
        mine = np.where(dense.available & (dense.action == a), q, np.inf)
        least = mine.min(axis=1)
        kept[np.isfinite(least), mine.argmin(axis=1)[np.isfinite(least)]] = least[np.isfinite(least)]
    return kept


def evaluate(mdp: MDP, policy: Policy) -> Evaluation:
    """Evaluate a policy by the oracle."""
    gain, bias = oracles_chains.evaluate(*oracles_chains.decision(finite(mdp), policy.probs))
    return Evaluation(gain, bias, span(bias))


def analyse(mdp: MDP, **_: Any) -> Analysis:
    """Analyse an MDP by the oracles: gains and diameter by linear programming, bias by averaged iteration."""
    dense = finite(mdp)
    gains = oracles_chains.optimal_gain_lp(dense)
    constant = span(gains) <= 1e-9
    bias = oracles.fixed_point(dense)[1] if constant else np.zeros(mdp.n_states)
    rule = Policy.deterministic(oracles.q_values(dense, bias).argmax(axis=1), mdp.n_actions)
    kind = "communicating" if np.isfinite(D := oracles_chains.diameter(dense)) else "weakly communicating"
    return Analysis(
        mdp.n_states,
        mdp.n_actions,
        mdp.n_pairs,
        mdp.max_support,
        kind if constant else "multichain",
        float(gains.mean()) if constant else None,
        gains,
        bias,
        span(bias) if constant else None,
        D,
        rule,
    )


def slow_system(system: System, **parts: Any) -> System:
    """Return a system that plans with the slow planner, some :class:`Parts` replaced; the rest is ``system``'s."""
    planner = _Planner(Parts(**parts))
    return system.changed(
        bellman=planner.bellman,
        clip_span=planner.clip_span,
        span_bellman=planner.span_bellman,
        solve=planner.solve,
        span_policy_bellman=planner.span_policy_bellman,
        span_greedy=planner.span_greedy,
        evaluate=evaluate,
        analyse=analyse,
    )
