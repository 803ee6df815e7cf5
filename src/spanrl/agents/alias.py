"""UCRL under the name of one of its bounds: the agents whose algorithm is extended value iteration on sets of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from spanrl.agents.ucrl import UCRL
from spanrl.options import check_flag, number, require

if TYPE_CHECKING:
    import numpy as np

    from spanrl.agents.learner import Learner
    from spanrl.models.info import ProblemInfo


@dataclass(frozen=True)
class AliasOfUCRL:
    """``UCRL(bounds=…)`` with the name and the options of an agent of the literature; a subclass names its ``bounds``."""

    bounds: ClassVar[str]

    delta: float = 0.05
    warm_start: bool = True

    def __post_init__(self) -> None:
        """Check the options."""
        who = type(self).__name__
        require(0 < number(self.delta) < 1, who, "delta must lie in (0, 1)", self.delta, "Use 0.05, say.")
        check_flag(who, "warm_start", self.warm_start)

    @property
    def ucrl(self) -> UCRL:
        """The agent that it is; UCRL3: without NOSS."""
        return UCRL(delta=self.delta, warm_start=self.warm_start, bounds=self.bounds)

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> Learner:
        """Return a learner for the problem."""
        return self.ucrl.start(info, rng)
