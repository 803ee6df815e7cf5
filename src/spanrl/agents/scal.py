"""SCAL (Fruit et al. 2018, Fig. 1): optimism with a bound c on the span of the bias.

Their algorithm, in their letters::

    for episodes k = 1, 2, …
        1. t_k ← t;  ν_k(s,a) ← 0
        2. p̂_k, r̂_k ← the means of the N_k(s,a) visits;  σ̂² their variances
           β(s,a,·) = √(14 σ̂² b/N⁺) + (49/3)·size·b/(N − 1)⁺,  b = ln(2SAt_k/δ)                       (spanrl.confidence.bernstein)
           M‡_k ← {r, p : r_min ≤ r ≤ r̂_k + β_r, |p(s') − p̂_k(s')| ≤ β_p for all s'}
        3. g_k, h_k, π̃_k ← ScOpt on M‡_k to r_max/√t_k: it iterates T_c v = Γ_c L̃v, Γ_c v = min{v, min v + c}
           π̃_k is greedy; where T_c truncates it is mixed with the smallest action, so that it is worth T_c v
        4. while ν_k(s_t, a_t) < max{1, N_k(s_t, a_t)}: play a_t ~ π̃_k(·|s_t), see r_t and s_{t+1}

What is proved (same paper): for weakly communicating models with sp(h*) ≤ c the regret is Õ(c√(ΓSAT)) with probability 1 − δ, with the
theorem's η_k and γ_k (``perturb``). The ingredients are executed by ``spanrl reproduce``; where the text and the proof differ stands in
docs/slips.md. With other ``bounds``, ``episodes`` or ``differences`` optimism holds as far as the sets do; no regret bound is written down.

Differs from the paper: rewards lie in [r_min, r_max], its 0 being our r_min; plans start at the last bias unless ``warm_start`` is False;
η_k = γ_k = 0 by default, as in the paper's experiments.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

from spanrl.options import check_flag, check_level, check_scale, number, one_of, require
from spanrl.seeding import generator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from spanrl.agents.learner import Learner, Rules
    from spanrl.models.info import ProblemInfo
    from spanrl.planning.differences import BiasDifferences

_LONG = 10**4


@dataclass(frozen=True)
class SCAL:
    """Plan with ScOpt on the augmented confidence set: no iterate's span exceeds c.

    Args:
        span_bound: c ≥ 0, a bound on sp(h*); the regret bound needs c ≥ sp(h*).
        delta: confidence level in (0, 1), or "rsqrt" for δ_k = 1/√t_k (the authors' program).
        p_scale, r_scale: factors α_p, α_r inside the radii; 1 is the theory.
        policy: in truncated states "mixture" (the paper) or "greedy" (keeps the regret bound).
        perturb: η_k = min{1, r_max/(c t_k), min β_p(s,a,s̄)} and γ_k = 1 − η_k as in the theorem, from v₀ = 0. A solve then takes tens of
            c·t_k sweeps: for short horizons. Off (default) is η_k = γ_k = 0, as in the paper's experiments.
        best_of_both: run extended value iteration from 0 first and keep its policy if it converges before the span of an iterate exceeds c,
            otherwise run ScOpt. (The end of the paper's SCAL section asks for the one of the two whose value has the smaller span; with
            η = 0 and v₀ = 0 both iterate alike until the span exceeds c, so it is this.)
        warm_start: start each planning at the last bias; False starts at 0 as the paper does.
        bounds: the confidence set, "bernstein" (the paper) or another of :data:`spanrl.confidence.bounds.BOUNDS`.
        episodes: when episodes end, "doubling" (the paper), another of :data:`spanrl.agents.episodes.EPISODE_RULES`, or "every-N" for
            episodes of N steps.
        intersect: plan on the intersection of the sets of all episodes so far; for bounds that hold for all times: not "bernstein".
        differences: constraints h(s) − h(s') ≤ d(s, s') on the bias, a :class:`spanrl.BiasDifferences` or an array [S, S]: what is known of
            h* besides its span. The projection on them takes the place of Γ_c, S² steps per sweep, and the policy must be "greedy".
            No text form: such an agent is made in Python, and its id has a digest of them.

    Raises:
        OptionError: an option is out of its range.

    >>> import spanrl
    >>> spanrl.learn("three-state", spanrl.SCAL(span_bound=2), horizon=1000, seed=0).meta["agent"]
    'scal[span_bound=2]'
    """

    summary: ClassVar[str] = "Bernstein sets, ScOpt: optimism with a bound on the span of the bias."
    source: ClassVar[str] = "Fruit, Pirotta, Lazaric & Ortner, ICML 2018"

    span_bound: float
    delta: float | str = 0.05
    p_scale: float = 1.0
    r_scale: float = 1.0
    policy: str = "mixture"
    perturb: bool = False
    best_of_both: bool = False
    warm_start: bool = True
    bounds: str = "bernstein"
    episodes: str = "doubling"
    intersect: bool = False
    differences: BiasDifferences | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        c = self.span_bound
        require(number(c) >= 0, "SCAL", "span_bound must be a number ≥ 0", c, "Give a bound on sp(h*).")
        check_level("SCAL", self.delta)
        check_scale("SCAL", "p_scale", self.p_scale)
        check_scale("SCAL", "r_scale", self.r_scale)
        one_of("SCAL", "policy", self.policy, ("mixture", "greedy"))
        for name in ("perturb", "best_of_both", "warm_start", "intersect"):
            check_flag("SCAL", name, getattr(self, name))
        if self.perturb and self.best_of_both:
            require(False, "SCAL", "perturb and best_of_both exclude each other", True, "Leave one of them out.")
        if self.perturb and c == inf:
            require(False, "SCAL", "perturb needs a finite span_bound", c, "Leave perturb out.")
        if self.differences is not None:
            self._check_differences(self.differences)
        _ = self.rules

    def _check_differences(self, given: BiasDifferences | ArrayLike) -> None:
        """Close the differences, and refuse what they do not go with."""
        from spanrl.planning.differences import BiasDifferences

        object.__setattr__(self, "differences", BiasDifferences.of(given))
        remedy = "Give policy='greedy'."
        require(self.policy == "greedy", "SCAL", "with differences the policy must be greedy", self.policy, remedy)
        for name in ("perturb", "best_of_both"):
            flag = getattr(self, name)
            require(not flag, "SCAL", f"differences and {name} exclude each other", flag, "Leave one of them out.")

    @property
    def rules(self) -> Rules:
        """The parts that the agent is made of."""
        from spanrl.agents.episodes import episode_rule
        from spanrl.agents.learner import Rules
        from spanrl.confidence.bounds import make_bounds

        return Rules(
            make_bounds(
                "SCAL",
                self.bounds,
                self.delta,
                self.p_scale,
                self.r_scale,
                perturb=self.perturb,
                intersect=self.intersect,
            ),
            episode_rule("SCAL", self.episodes),
            span_bound=float(self.span_bound),
            mixture=self.policy == "mixture",
            perturb=self.perturb,
            best_of_both=self.best_of_both,
            warm_start=self.warm_start,
            intersect=self.intersect,
            differences=self.differences,
        )

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> Learner:
        """Return a learner for the problem."""
        from spanrl.agents.learner import Learner

        if self.perturb and info.is_longer_than(_LONG):
            warnings.warn(
                f"SCAL: perturb=True takes tens of c·t sweeps per episode; with a horizon above {_LONG} that is slow. "
                "Leave it out, as the paper's experiments do.",
                stacklevel=2,
            )
        return Learner(self.rules, info, generator("SCAL", rng))
