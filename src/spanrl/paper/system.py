"""The functions under test, gathered in one value, so that a checker can be run on a broken copy of them (a mutant)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from spanrl.models.bounded import BoundedMDP
from spanrl.models.solution import Analysis, Evaluation, Solution
from spanrl.paper.oracles import Vector


@dataclass(frozen=True)
class System:
    """What is under test: the public functions of planning and learning, the two changes of a set, and the environments.

    ``start(agent, info, rng)`` makes a learner, ``confidence_set(region, counts, t, info)`` the set of a region.

    A mutant is ``dataclasses.replace(system, clip_span=broken)``.
    """

    bellman: Callable[..., Vector]
    clip_span: Callable[[Vector, float], Vector]
    span_bellman: Callable[..., Vector]
    span_policy_bellman: Callable[..., Vector]
    span_greedy: Callable[..., Any]
    solve: Callable[..., Solution]
    evaluate: Callable[..., Evaluation]
    analyse: Callable[..., Analysis]
    augment: Callable[[BoundedMDP], BoundedMDP]
    perturb: Callable[[BoundedMDP, float, int], BoundedMDP]
    make: Callable[..., Any]
    start: Callable[..., Any]
    confidence_set: Callable[..., BoundedMDP]
    learn: Callable[..., Any]
    regret_bound: Callable[..., float]

    @classmethod
    def real(cls) -> System:
        """Return the public functions of ``spanrl``."""
        import spanrl

        return cls(
            bellman=spanrl.bellman,
            clip_span=spanrl.clip_span,
            span_bellman=spanrl.span_bellman,
            span_policy_bellman=spanrl.span_policy_bellman,
            span_greedy=spanrl.span_greedy,
            solve=spanrl.solve,
            evaluate=spanrl.evaluate,
            analyse=spanrl.analyse,
            augment=BoundedMDP.augment,
            perturb=BoundedMDP.perturb,
            make=spanrl.make,
            start=lambda agent, info, rng: agent.start(info, rng),
            confidence_set=lambda region, counts, t, info: region.bounded(counts, t, info),
            learn=spanrl.learn,
            regret_bound=spanrl.regret_bound,
        )

    def changed(self, **functions: Any) -> System:
        """Return a copy with some functions replaced."""
        return replace(self, **functions)
