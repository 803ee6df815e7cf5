"""The operators of the paper (Sec. 5.1), each callable by itself on an MDP or a bounded-parameter MDP.

::

    L v(s)   = max_a [r(s,a) + p(·|s,a)ᵀv]               bellman
    Γ_c v(s) = min{v(s), min_x v(x) + c}                 clip_span
    T_c      = Γ_c L                                     span_bellman
    G_c v    the decision rule behind T_c v              span_greedy
    N_c v    = L_{G_c v} v                               span_policy_bellman

In a bounded MDP, L also maximises over rewards and transitions ("optimistic"; with ``sense="pessimistic"`` nature minimises
them). All are monotone and F(v + λe) = Fv + λe. T_c v is *feasible* at s when some distribution over actions attains it,
which is so exactly when min_a[…] ≤ min Lv + c (Lemma 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanrl.errors import OptionError
from spanrl.models import checks
from spanrl.models.bounded import BoundedMDP
from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.models.solution import ActionValues, ExtendedChain
from spanrl.planning.problem import NOISE, BestPairs, Model, Problem, Vector, prepare

_ROUNDING = 1e-12


def bellman(model: Model, v: ArrayLike, *, sense: str = "optimistic") -> Vector:
    """Return Lv [S].

    Operators are the paper's: they work on rewards, which are −costs in a model with costs.

    Args:
        model: an ``MDP`` or a ``BoundedMDP``.
        v: values [S], finite.
        sense: "optimistic" or "pessimistic", for bounded models.

    Returns:
        Lv [S].

    Raises:
        ModelError: v has another shape or is not finite, or c is negative.
        OptionError: another option is not one of those named.

    >>> import spanrl
    >>> bellman(spanrl.make("two-state").mdp, [0.0, 0.0]).tolist()
    [0.5, 1.0]
    """
    return _backup("bellman", model, v, sense)


def clip_span(v: ArrayLike, c: float) -> Vector:
    """Return Γ_c v = min(v, min v + c), the projection of v on {sp ≤ c} in span semi-norm (Lemma 14).

    Args:
        v: values [S], finite.
        c: the bound on the span, ≥ 0.

    Returns:
        Γ_c v [S].

    Raises:
        ModelError: v is not finite, or c is negative.

    >>> clip_span([0.0, 2.0, 0.5], 1.0).tolist()
    [0.0, 1.0, 0.5]
    """
    vector = checks.numeric("clip_span", "v", v, (None,))
    bound = checks.span_bound("clip_span", c)
    checks.vector("clip_span", "v", vector, vector.size)
    return np.minimum(vector, vector.min() + bound) if vector.size else vector


def span_bellman(model: Model, v: ArrayLike, c: float, *, sense: str = "optimistic") -> Vector:
    """Return T_c v = Γ_c L v [S] (Def. 1).

    Operators are the paper's: they work on rewards, which are −costs in a model with costs.

    Args:
        model: an ``MDP`` or a ``BoundedMDP``.
        v: values [S], finite.
        c: the bound on the span, ≥ 0.
        sense: "optimistic" or "pessimistic", for bounded models.

    Returns:
        T_c v [S], of span at most c.

    Raises:
        ModelError: v has another shape or is not finite, or c is negative.
        OptionError: another option is not one of those named.

    >>> import spanrl
    >>> span_bellman(spanrl.make("counterexample-nonfeasible").mdp, [0.0, 0.0], 0.5).tolist()
    [0.0, 0.5]
    """
    checks.span_bound("span_bellman", c)
    return clip_span(_backup("span_bellman", model, v, sense), c)


def span_policy_bellman(model: Model, v: ArrayLike, c: float, *, sense: str = "optimistic") -> Vector:
    """Return N_c v = L_{G_c v} v [S]: T_c v where that is feasible, the smallest value of the state elsewhere (App. B).

    Works on rewards, which are −costs in a model with costs.

    Args:
        model: an ``MDP`` or a ``BoundedMDP``.
        v: values [S], finite.
        c: the bound on the span, ≥ 0.
        sense: "optimistic" or "pessimistic", for bounded models.

    Returns:
        N_c v [S].

    Raises:
        ModelError: v has another shape or is not finite, or c is negative.
        OptionError: another option is not one of those named.

    >>> import spanrl
    >>> span_policy_bellman(spanrl.make("counterexample-nonfeasible").mdp, [0.0, 0.0], 0.5).tolist()
    [0.0, 1.0]
    """
    return decide(model, v, c, sense=sense, who="span_policy_bellman").value


def span_greedy(
    model: Model, v: ArrayLike, c: float, *, policy: str = "mixture", sense: str = "optimistic"
) -> SpanGreedy:
    """Return G_c v (Def. 2): greedy where Lv(s) ≤ min Lv + c, elsewhere a mixture of the best and the smallest action.

    Works on rewards, which are −costs in a model with costs.

    The weight on the smallest action is (v̄ − min Lv − c)/(v̄ − v̲), App. C; where T_c is infeasible it is 1. With
    ``policy="greedy"`` the weight is 0 everywhere.

    Args:
        model: an ``MDP`` or a ``BoundedMDP``.
        v: values [S], finite.
        c: the bound on the span, ≥ 0.
        policy: "mixture" or "greedy".
        sense: "optimistic" or "pessimistic", for bounded models.

    Returns:
        ``policy``, ``weight`` [S] on the smallest action, ``feasible`` [S] and ``truncated`` [S].

    Raises:
        ModelError: v has another shape or is not finite, or c is negative.
        OptionError: another option is not one of those named.

    >>> import spanrl
    >>> rule = span_greedy(spanrl.make("two-state").mdp, [0.0, 0.75], 0.75)
    >>> rule.truncated.tolist(), rule.weight.round(6).tolist()
    ([False, True], [0.0, 0.142857])
    """
    return decide(model, v, c, policy=policy, sense=sense)


def _backup(who: str, model: Model, v: ArrayLike, sense: str) -> Vector:
    problem = prepare(model, sense, who)
    return problem.backup(checks.vector(who, "v", v, problem.n_states))


@dataclass(frozen=True, eq=False)
class SpanGreedy:
    """The decision rule G_c v. ``weight`` [S] is the probability of the minimal action; ``value`` [S] is L_{G_c v} v."""

    policy: Policy
    weight: Vector
    feasible: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    value: Vector
    _best: tuple[Problem, NDArray[np.int64]]
    _least: tuple[Problem, NDArray[np.int64]]
    _v: Vector
    _action: NDArray[np.int64]

    @property
    def pair(self) -> NDArray[np.int64]:
        """The pair of the greedy action of each state."""
        return self._best[1]

    @property
    def least_pair(self) -> NDArray[np.int64]:
        """The pair of the minimal action of each state."""
        return self._least[1]

    def action_values(self, state: int) -> ActionValues:
        """Return r + p·v of the actions of a state, with the p of the sense that was solved for."""
        problem, v = self._best[0], self._v
        pairs = np.arange(*problem.arrays.pair_ptr[state : state + 2])
        ptr, succ, prob = problem.rows(v, pairs)
        value = problem.reward[pairs] + checks.row_sums(ptr, prob * v[succ])
        rounding = problem.rounding * max(float(np.abs(value).max()), float(np.abs(v).max()))
        return ActionValues(self._action[pairs], problem.reward[pairs], value, v, rounding)

    @property
    def optimistic(self) -> ExtendedChain:
        """The extended decision rule: P̃ (scipy sparse [S, S]) and r̃ [S], so that L_{G_c v} v = r̃ + P̃v."""
        problem, pairs = self._best
        high, r_high = problem.chain(pairs, self._v)
        if not self.weight.any():
            return high, r_high
        problem, pairs = self._least
        low, r_low = problem.chain(pairs, self._v)
        from scipy.sparse import diags_array

        mixed = diags_array(1 - self.weight) @ high + diags_array(self.weight) @ low
        mixed = mixed.tocsr()
        mixed.eliminate_zeros()
        return mixed, (1 - self.weight) * r_high + self.weight * r_low


def decide(
    model: Model,
    v: ArrayLike,
    c: float,
    *,
    policy: str = "mixture",
    sense: str = "optimistic",
    tie: float = inf,
    problem: Problem | None = None,
    values: Vector | None = None,
    differences: Vector | None = None,
    who: str = "span_greedy",
) -> SpanGreedy:
    """Compute G_c v. ``problem`` saves laying out the model again, ``values`` a sweep over it; no tie is wider than ``tie``.

    ``differences`` [S, S] take the place of c; then it is truncated where Proj_d Lv < Lv.
    """
    if policy not in ("mixture", "greedy"):
        raise OptionError(f"{who}: policy must be 'mixture' or 'greedy'; got {policy!r}.")
    bound = checks.span_bound(who, c)
    problem = problem or prepare(model, sense, who)
    vector = checks.vector(who, "v", v, problem.n_states).copy()
    best = problem.best(vector, most=tie, values=values)
    if bound == inf and differences is None:
        return greedy_rule(model, problem, best, vector)
    ceiling = np.full(vector.size, best.value.min() + bound)
    if differences is not None:
        ceiling = np.array([(best.value + row).min() for row in differences])
    margin = max(_ROUNDING * float(np.ptp(best.value)), NOISE * float(np.abs(best.value).max()))
    truncated = best.value > ceiling + margin
    if not truncated.any():
        return greedy_rule(model, problem, best, vector)
    lowest = prepare(model, "pessimistic", who)
    least = lowest.best(vector, sign=-1.0, most=tie)
    high, low = best.at_pair, least.at_pair
    feasible = ~truncated | (least.value <= ceiling + margin)
    weight = np.zeros(problem.n_states)
    if policy == "mixture":
        cut = truncated & feasible & (high > low)
        weight[cut] = np.clip((high[cut] - ceiling[cut]) / (high[cut] - low[cut]), 0.0, 1.0)
        weight[~feasible] = 1.0
    value = (1 - weight) * high + weight * low
    rule = _mixed_policy(model, weight, best.pair, least.pair)
    ends = (problem, best.pair), (lowest, least.pair)
    return SpanGreedy(rule, weight, feasible, truncated, value, *ends, vector, model.action)


def greedy_rule(model: Model, problem: Problem, best: BestPairs, v: Vector) -> SpanGreedy:
    """Return the rule that plays the best pairs at v, where nothing is truncated."""
    weight, truncated, mine = np.zeros(v.size), np.zeros(v.size, dtype=bool), (problem, best.pair)
    rule = _mixed_policy(model, weight, best.pair, best.pair)
    return SpanGreedy(rule, weight, ~truncated, truncated, best.at_pair, mine, mine, v, model.action)


def _mixed_policy(model: Model, weight: Vector, best: NDArray[np.int64], least: NDArray[np.int64]) -> Policy:
    """Put the weights on the underlying actions (which may coincide)."""
    probs = np.zeros((model.n_states, model.n_actions))
    first = np.arange(0, probs.size, model.n_actions)
    entries = probs.ravel()
    entries[first + model.action[best]] = 1 - weight
    if least is not best:
        entries[first + model.action[least]] += weight
    probs.flags.writeable = False
    if isinstance(model, BoundedMDP):
        return Policy.trusted(probs, None, None)
    return Policy.trusted(probs, model.state_names, model.action_names)


def policy_chain(mdp: MDP, policy: Policy, who: str = "evaluate", what: str = "the policy") -> tuple[Any, Vector]:
    """Return P_d (scipy sparse [S, S]) and r_d [S] of a policy in an MDP."""
    from scipy.sparse import csr_array

    S = mdp.n_states
    if not isinstance(policy, Policy):
        raise OptionError(f"{who}: {what} must be a Policy; got {type(policy).__name__}. Use Policy(probs).")
    if policy.probs.shape != (S, mdp.n_actions):
        raise OptionError(
            f"{who}: {what} must have shape ({S}, {mdp.n_actions}) like the model; got {policy.probs.shape}."
        )
    state = mdp.pair_state
    weight = policy.probs[state, mdp.action]
    missing = np.abs(np.bincount(state, weight, S) - 1.0) > checks.SUM_TOL
    checks.reject(
        who,
        missing,
        lambda s: f"{what} in state {mdp.name_of_state(s)}",
        "plays an action that is not available there",
        None,
        "Give probability to available actions only.",
    )
    pair = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.succ_ptr))
    keep = weight[pair] > 0
    chain = csr_array(
        (mdp.prob[keep] * weight[pair[keep]], (state[pair[keep]], mdp.succ[keep].astype(np.int64))), shape=(S, S)
    )
    return chain, np.bincount(state, weight * mdp.reward, S).astype(np.float64)
