"""UCRL with empirical Bernstein sets, the paper's baseline: optimism without a bound on the span.

The algorithm, in the letters of Fruit et al. 2018::

    for episodes k = 1, 2, …
        1. t_k ← t;  ν_k(s,a) ← 0
        2. M_k ← {r, p : |r − r̂_k| ≤ β_r, |p(s') − p̂_k(s')| ≤ β_p for all s'}, β as for SCAL          (spanrl.confidence.bernstein)
        3. g_k, h_k, π̃_k ← extended value iteration on M_k to r_max/√t_k: it iterates L̃v = max_{a, r, p ∈ M_k} {r + pᵀv}
        4. while ν_k(s_t, a_t) < max{1, N_k(s_t, a_t)}: play a_t = π̃_k(s_t), see r_t and s_{t+1}

What is proved: with probability 1 − δ the regret is Õ(D√(ΓSAT)) for communicating models of diameter D (UCRL2's proof, Jaksch et al. 2010,
with Bernstein's inequality: Fruit et al. 2018). Where D is infinite the regret may be linear: TUCRL is for that. With other ``bounds``
what is proved stands with the bound; with other ``episodes`` the number of plans is another, and no regret bound is written down.

Differs from the paper: rewards lie in [r_min, r_max], its 0 being our r_min; plans start at the last bias unless ``warm_start`` is False.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from spanrl.options import check_flag, check_level, check_scale
from spanrl.seeding import generator

if TYPE_CHECKING:
    import numpy as np

    from spanrl.agents.learner import Learner, Rules
    from spanrl.models.info import ProblemInfo


@dataclass(frozen=True)
class UCRL:
    """UCRL with intervals for each reward and transition probability, and extended value iteration (Fruit et al. 2018, Sec. 3 and 6).

    Args:
        delta: confidence level in (0, 1), or "rsqrt" for δ_k = 1/√t_k (the authors' program).
        p_scale, r_scale: factors α_p, α_r inside the radii; 1 is the theory.
        warm_start: start each planning at the last bias; False starts at 0 as the paper does.
        bounds: the confidence set, "bernstein" (the paper) or another of :data:`spanrl.confidence.bounds.BOUNDS`.
        episodes: when episodes end, "doubling" (the paper), another of :data:`spanrl.agents.episodes.EPISODE_RULES`, or "every-N" for
            episodes of N steps.
        intersect: plan on the intersection of the sets of all episodes so far; for bounds that hold for all times: not "bernstein".

    Raises:
        OptionError: an option is out of its range.

    >>> import spanrl
    >>> spanrl.UCRL(bounds="kt").delta
    0.05
    """

    summary: ClassVar[str] = "Bernstein sets, extended value iteration: the paper's baseline."
    source: ClassVar[str] = "Fruit, Pirotta, Lazaric & Ortner, ICML 2018"

    delta: float | str = 0.05
    p_scale: float = 1.0
    r_scale: float = 1.0
    warm_start: bool = True
    bounds: str = "bernstein"
    episodes: str = "doubling"
    intersect: bool = False

    def __post_init__(self) -> None:
        """Check the options."""
        check_level("UCRL", self.delta)
        check_flag("UCRL", "warm_start", self.warm_start)
        check_flag("UCRL", "intersect", self.intersect)
        check_scale("UCRL", "p_scale", self.p_scale)
        check_scale("UCRL", "r_scale", self.r_scale)
        _ = self.rules

    @property
    def rules(self) -> Rules:
        """The parts that the agent is made of."""
        from spanrl.agents.episodes import episode_rule
        from spanrl.agents.learner import Rules
        from spanrl.confidence.bounds import make_bounds

        scales = self.p_scale, self.r_scale
        estimate = make_bounds("UCRL", self.bounds, self.delta, *scales, intersect=self.intersect)
        rule = episode_rule("UCRL", self.episodes)
        return Rules(estimate, rule, warm_start=self.warm_start, intersect=self.intersect)

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> Learner:
        """Return a learner for the problem."""
        from spanrl.agents.learner import Learner

        return Learner(self.rules, info, generator("UCRL", rng))
