"""What a run should not be read without: that its sets never said anything, or that its guarantee does not hold.

Notes stand in ``run.meta["notes"]``, in the summary of a run and in that of ``spanrl learn``. They are no warnings: an experiment has
thousands of runs, and whoever turns warnings into errors wants to see the curve all the same.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from spanrl.agents.learner import Learner
from spanrl.confidence.bounds import BOUNDS, make_bounds
from spanrl.confidence.estimate import Estimate
from spanrl.confidence.vacuity import Vacuity, vacuity
from spanrl.kernels.noss import MOST_SWEEPS
from spanrl.learning.optimum import Optimum
from spanrl.models.costs import flip, flip_ends
from spanrl.models.mdp import MDP
from spanrl.planning.solve import solve

_MOST = 0.5
_SOON = 1000  # steps per pair before which nobody expects anything
_MOST_PAIRS = 2000  # for which other bounds are tried, …
_MANY_STEPS = 10**7  # … after so many steps, which took far longer than that, …
_PATIENCE = 2000  # … with so many sweeps
_ROUNDING = 1e-6  # of the span: h* is as accurate as that


def notes(learner: Any, optimum: Optimum | None, mdp: MDP | None = None) -> list[str]:
    """Return what is to be said of a learner at its horizon; optimum and model are the true ones, where they are known."""
    found = [note_on_range(mdp), note_on_start(optimum)]
    if isinstance(learner, Learner) and learner.episode is not None:
        costs = mdp is not None and mdp.costs
        found += [
            note_on_first_episode(learner), note_on_sets(learner), note_on_optimism(learner, optimum, costs),
            note_on_span(learner, optimum), note_on_cuts(learner),
        ]  # fmt: skip
    return [note for note in found if note]


def note_on_range(mdp: MDP | None) -> str | None:
    """Say where the range of the rewards, which an agent is told, was found from the model."""
    if mdp is None or not mdp.range_is_found:
        return None
    what, (low, high) = "costs" if mdp.costs else "rewards", flip_ends(mdp.costs, mdp.r_min, mdp.r_max)
    return (
        f"the range of the {what} was not declared, and the agent was told that of the model, [{low:.6g}, {high:.6g}]. "
        "Give r_min= and r_max= when you make the model."
    )


def note_on_sets(learner: Learner) -> str | None:
    """Say where the sets of the last plan are vacuous for most of the visited pairs, and which bounds are not, from the same counts."""
    rules, at = learner.rules, _last_plan(learner)
    found = vacuity(rules.estimate, *at, learner.held)
    if found is None or found.of_pairs <= _MOST:
        return None
    others = {name: vacuity(bound, *at) for name, bound in _other_bounds(learner)}
    better = {name: other.of_pairs for name, other in others.items() if other is not None and other.of_pairs <= _MOST}
    if better:
        name = min(better, key=lambda name: better[name])
        remedy = f"UCRL or SCAL with bounds={name!r} would leave {_percent(better[name])}."
    else:
        remedy = "no other bounds would change that: there are too few steps per pair."
    return f"{_fact(found)}, and plans rest on optimism alone; {remedy}"


def note_on_start(optimum: Optimum | None) -> str | None:
    """Say where the start decides what can be earned, so that the regret of one run says little."""
    if optimum is None or optimum.starts_agree:
        return None
    return "the optimal gains of the start states differ, and g* is their mean: regrets mean something averaged over many runs only."


def note_on_first_episode(learner: Learner) -> str | None:
    """Say where the first episode never ended, so that nothing was learnt from what it saw."""
    if learner.n_episodes > 1 or learner.t <= learner.info.n_states:  # no rule by visits allows more steps than that
        return None
    return f"the first episode did not end in {learner.t} steps: its policy rests on no experience. Choose shorter episodes."


def note_on_optimism(learner: Learner, optimum: Optimum | None, costs: bool = False) -> str | None:
    """Say where the last plan still promises a gain nearer to r_max than to g*, and whose plan from the same counts does not."""
    rules, info, plan = learner.rules, learner.info, learner.plan
    if optimum is None or plan is None or not rules.estimate.is_set or learner.t < _SOON * info.n_pairs:
        return None
    middle = (optimum.gain + info.r_max) / 2
    if not plan.gain_bounds[0] > middle:
        return None
    promised, best, top = (flip(costs, value) for value in (plan.gain_bounds[0], optimum.gain, info.r_max))
    what, name = ("a cost", "the least cost") if costs else ("a gain", "r_max")
    fact = (
        f"the last plan still promises {what} of {promised:.4g}, nearer to {name} = {top:.4g} than to "
        f"g* = {best:.4g}: exploration has not ended"
    )
    n_hidden = _n_never_seen(learner)
    if n_hidden and rules.span_bound == inf and not rules.estimate.closes_states:
        return (
            f"{fact}. {n_hidden} of {info.n_states} states were never seen; if nothing leads there, optimism about them never ends: "
            "SCAL bounds it, TUCRL gives them up, PSRL has none."
        )
    if info.n_pairs > _MOST_PAIRS or learner.t < _MANY_STEPS:
        return f"{fact}. Bounds 'kt' and 'kl' of UCRL and SCAL are the narrowest."
    counts, t, _, state = _last_plan(learner)
    for name, bound in _other_bounds(learner):
        optimistic = bound.bounded(counts, t, info, state).augment()
        found = solve(
            optimistic,
            span_bound=rules.span_bound,
            tol=(info.r_max - middle) / 10,
            max_sweeps=_PATIENCE,
            on_fail="return",
        )
        if found.gain_bounds[1] <= middle:
            return f"{fact}; UCRL or SCAL with bounds={name!r} would know better from the same visits."
    return f"{fact}, and would not have with other bounds from the same visits."


def note_on_span(learner: Learner, optimum: Optimum | None) -> str | None:
    """Say where the span bound is below sp(h*), or h* breaks the differences, so that plans need not be optimistic."""
    if optimum is None or optimum.span is None:
        return None
    rules = learner.rules
    c, differences = rules.span_bound if rules.needs_span is None else rules.needs_span, rules.differences
    if c < optimum.span * (1 - _ROUNDING):
        return f"the guarantee does not hold: span_bound = {c:.6g} is below sp(h*) = {optimum.span:.6g}."
    excess = 0.0 if differences is None else differences.excess(optimum.bias)
    if excess > _ROUNDING * optimum.span:
        return f"the guarantee does not hold: h* breaks the differences by up to {excess:.6g}."
    return None


def note_on_cuts(learner: Learner) -> str | None:
    """Say how many plans ended unconverged, which only those with NOSS may."""
    cut = learner.notes.get("plans_cut", 0)
    if not cut:
        return None
    return (
        f"{cut} of {learner.n_episodes} plans ended after {MOST_SWEEPS} sweeps that did not converge: NOSS may go round in circles. "
        "Without it plans are certified."
    )


def _other_bounds(learner: Learner) -> list[tuple[str, Estimate]]:
    """Return all bounds by name, at the level of the learner's own where it has one."""
    level = getattr(learner.rules.estimate, "delta", None)
    delta = level if isinstance(level, float) and 0 < level < 1 else 0.05
    return [(name, make_bounds("learn", name, delta, 1.0, 1.0)) for name in BOUNDS]


def _n_never_seen(learner: Learner) -> int:
    """Return the number of states in which nothing was played and to which nothing has led."""
    seen, info = learner.counts.seen, learner.info
    hidden = np.add.reduceat(seen.n, info.pair_ptr[:-1]) == 0
    hidden[seen.succ[: seen.succ_ptr[-1]]] = False
    return int(hidden.sum())


def _last_plan(learner: Learner) -> tuple[Any, int, Any, int]:
    """Return counts, time, problem and first state of the last plan."""
    assert learner.episode is not None
    return learner.counts, learner.episode.start, learner.info, learner.began_in


def _fact(found: Vacuity) -> str:
    return (
        f"the confidence sets of {_percent(found.of_pairs)} of the pairs visited ({found.n_visited:,}) "
        f"are still vacuous, {_percent(found.of_visits)} by steps"
    )


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"
