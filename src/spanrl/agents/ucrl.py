"""UCRL with empirical Bernstein sets, the paper's baseline: optimism without a bound on the span."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spanrl.agents.options import check_flag, check_level, check_scale
from spanrl.seeding import generator

if TYPE_CHECKING:
    import numpy as np

    from spanrl.agents.learner import Learner
    from spanrl.models.info import ProblemInfo


@dataclass(frozen=True)
class UCRL:
    """UCRL with the paper's Bernstein sets and extended value iteration (Fruit et al. 2018, Sec. 3 and 6).

    Args:
        delta: confidence level in (0, 1), or "rsqrt" for δ_k = 1/√t_k (the authors' program).
        p_scale, r_scale: factors α_p, α_r inside the radii; 1 is the theory.
        warm_start: start each planning at the last bias; False starts at 0 as the paper does.
    """

    delta: float | str = 0.05
    p_scale: float = 1.0
    r_scale: float = 1.0
    warm_start: bool = True

    def __post_init__(self) -> None:
        """Check the options."""
        check_level("UCRL", self.delta)
        check_flag("UCRL", "warm_start", self.warm_start)
        check_scale("UCRL", "p_scale", self.p_scale)
        check_scale("UCRL", "r_scale", self.r_scale)

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> Learner:
        """Return a learner for the problem."""
        from spanrl.agents.learner import Learner, Rules
        from spanrl.confidence.regions import BernsteinBox

        region = BernsteinBox(self.delta, self.p_scale, self.r_scale)
        return Learner(Rules(region, warm_start=self.warm_start), info, generator("UCRL", rng))
