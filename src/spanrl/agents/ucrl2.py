"""UCRL2 (Jaksch, Ortner & Auer 2010): Hoeffding intervals for rewards, an L1 ball for each transition distribution.

Their algorithm, in their letters::

    for episodes k = 1, 2, …
        t_k ← t;  v_k(s,a) ← 0
        r̂_k, p̂_k ← the means of the N_k(s,a) visits
        M_k ← {r, p : |r − r̂_k| ≤ √(7 ln(2SAt_k/δ)/(2N⁺)), ‖p − p̂_k‖₁ ≤ √(14 S ln(2At_k/δ)/N⁺)}       (spanrl.confidence.hoeffding)
        π̃_k ← extended value iteration on M_k, until max(u_{i+1} − u_i) − min(u_{i+1} − u_i) < 1/√t_k
        while v_k(s_t, π̃_k(s_t)) < max{1, N_k(s_t, π̃_k(s_t))}: play π̃_k(s_t), see r_t and s_{t+1}

So it is :class:`spanrl.UCRL` with ``bounds="hoeffding"``, decision by decision. What is proved (same paper, Theorem 2): with probability
1 − δ the regret is at most 34 DS√(AT ln(T/δ)), for communicating models of diameter D.

Differs from the paper: rewards lie in [r_min, r_max] and are capped at r_max; the iteration stops at ≤, not at <, and starts at the last
bias unless ``warm_start`` is False.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from spanrl.options import check_flag, check_level
from spanrl.seeding import generator

if TYPE_CHECKING:
    import numpy as np

    from spanrl.agents.learner import Learner
    from spanrl.models.info import ProblemInfo


@dataclass(frozen=True)
class UCRL2:
    """UCRL2 as published: |r̃ − r̂| ≤ √(7 ln(2SAt/δ)/(2N⁺)), ‖p̃ − p̂‖₁ ≤ √(14 S ln(2At/δ)/N⁺), extended value iteration.

    Args:
        delta: confidence level in (0, 1), or "rsqrt" for δ_k = 1/√t_k.
        warm_start: start each planning at the last bias; False starts at 0.

    Differs from the paper: rewards are capped at r_max, and the iteration stops at sp ≤ (r_max − r_min)/√t, not <.

    Raises:
        OptionError: an option is out of its range.

    >>> import spanrl
    >>> spanrl.make_agent("ucrl2[delta=0.1]") == spanrl.UCRL2(delta=0.1)
    True
    """

    summary: ClassVar[str] = "Hoeffding and L1 sets, extended value iteration."
    source: ClassVar[str] = "Jaksch, Ortner & Auer, JMLR 2010"

    delta: float | str = 0.05
    warm_start: bool = True

    def __post_init__(self) -> None:
        """Check the options."""
        check_level("UCRL2", self.delta)
        check_flag("UCRL2", "warm_start", self.warm_start)

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> Learner:
        """Return a learner for the problem."""
        from spanrl.agents.learner import Learner, Rules
        from spanrl.confidence.hoeffding import HoeffdingBall

        return Learner(Rules(HoeffdingBall(self.delta), warm_start=self.warm_start), info, generator("UCRL2", rng))
