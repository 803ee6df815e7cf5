"""UCRL3 (Bourel, Maillard & Talebi 2020): UCRL with sets that hold for all numbers of visits at once, and NOSS as an option.

Their algorithm, in their letters::

    for episodes k = 1, 2, …
        t_k ← t;  ν_k(s,a) ← 0
        M_k ← {r, p : each r(s,a) and each p(s'|s,a) in its interval at level δ/((3 + 3S)SA)}      (spanrl.confidence.ucrl3)
        π_k ← extended value iteration on M_k, to 1/√t_k, over the support that NOSS keeps
        while ν_k(s_t, π_k(s_t)) < max{1, N_k(s_t, π_k(s_t))}: play π_k(s_t), see r_t and s_{t+1}

    NOSS, for a pair (s,a) and the iterate u, with f = u − min u:                                   (spanrl.kernels.noss)
        S̃ ← the successors seen, and the best state
        κ ← 10·sp(u)·|{successors seen}| / (max_{s,a} N_k(s,a))^(2/3)
        while f̄(S ∖ S̃) > min{κ, f̄(S̃)}: add the best state that is not in S̃                 f̄(X): largest mean on X alone
        the pair is worth r̃ + min u + f̄(S̃)

**Without NOSS, the default,** it is :class:`spanrl.UCRL` with ``bounds="ucrl3"``, decision by decision: the inner maximum is exact, and a
bracket certifies each plan. Coverage is proved with the bound; no regret bound is written down.

**With NOSS** no certificate is claimed. A pair is worth at most κ less than with the whole set, whatever u is: that is near-optimism, and
it is tested here. But the support depends on the iterate, so that the operator is not monotone: the bracket that is recorded says only by
how much the last sweep moved, and the iteration may go round in circles. A plan ends at 1/√t_k, as in the paper, or after 1000 sweeps, as
in the authors' public program; ``run.meta["plans_cut"]`` counts the plans that ended so. What is proved (same paper) for UCRL3 with NOSS
is a regret of order √T in which local diameters and local supports stand in the place of D and S, for plans that end at 1/√t_k.

Differs from the paper: plans start at the last iterate (``warm_start``), as in the authors' program, and where the bracket stalls v moves
0.9, later 0.5 of the way. κ, the factor 10 and the power ⅔ were read in the authors' program (StatisticalRL), which has another line
besides: a successor that alone was seen in N visits has the probability (½)^(1/N) or more. This is ``sole_successors``, of which nothing is
proved: a successor of probability ½ is so excluded, after two visits, with probability ¼. On its own RiverSwim that line, not NOSS, is what
its regret comes from (docs/algorithms/ucrl3.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from spanrl.agents.alias import AliasOfUCRL
from spanrl.options import check_flag, require
from spanrl.seeding import generator

if TYPE_CHECKING:
    import numpy as np

    from spanrl.agents.learner import Learner
    from spanrl.models.info import ProblemInfo


@dataclass(frozen=True)
class UCRL3(AliasOfUCRL):
    """Play UCRL with the sets of UCRL3: ``UCRL(bounds="ucrl3")`` under its own name, with NOSS as an option.

    Args:
        delta: confidence level in (0, 1).
        warm_start: start each planning at the last bias; False starts at 0.
        noss: plan over near-optimistic supports, as its paper does; plans are not certified then.
        sole_successors: with noss, believe in the only successor seen as the authors' program does; coverage is lost.

    Raises:
        OptionError: an option is out of its range.

    >>> import spanrl
    >>> spanrl.UCRL3().ucrl == spanrl.UCRL(bounds="ucrl3")
    True
    >>> spanrl.learn("riverswim", spanrl.UCRL3(noss=True), horizon=1000, seed=0).meta["plans_cut"] >= 0
    True
    """

    summary: ClassVar[str] = "Time-uniform Bernstein and sub-Gaussian sets, extended value iteration."
    source: ClassVar[str] = "Bourel, Maillard & Talebi, ICML 2020"
    bounds: ClassVar[str] = "ucrl3"

    noss: bool = False
    sole_successors: bool = False

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        check_flag("UCRL3", "noss", self.noss)
        check_flag("UCRL3", "sole_successors", self.sole_successors)
        alone = self.sole_successors and not self.noss
        require(not alone, "UCRL3", "sole_successors goes with noss", self.sole_successors, "Give noss=True, too.")

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> Learner:
        """Return a learner for the problem."""
        if not self.noss:
            return super().start(info, rng)
        from spanrl.agents.learner import Learner, Rules
        from spanrl.confidence.ucrl3 import NearOptimisticBox

        estimate = NearOptimisticBox(self.delta, self.sole_successors)
        rules = Rules(estimate, mixture=False, warm_start=self.warm_start)
        return Learner(rules, info, generator("UCRL3", rng))
