"""PSRL, posterior sampling (Strens 2000; Osband, Russo & Van Roy 2013; for the average reward Ouyang et al. 2017).

At the start of an episode one model is drawn from the posterior and its optimal policy is played::

    p(·|s,a) ~ Dirichlet(1 + N(s,a,·))    over all S states
    r(s,a)   ~ r_min + (r_max − r_min)·Beta(1 + Σr', 1 + N − Σr')    with rewards r' rescaled to [0, 1]

The second is the posterior where rewards are r_min or r_max (Bernoulli); for any others it is pseudo-Bayesian: it has the right mean and
shrinks at the right speed, but is no posterior. What is proved of PSRL is a bound on the Bayesian regret, the average over models drawn
from the prior, and not on the regret in each model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from spanrl.agents.learner import Learner, Rules
from spanrl.confidence.estimate import FILL, Estimate
from spanrl.kernels.jit import passed
from spanrl.kernels.layout import PLAIN
from spanrl.kernels.variates import beta, dirichlet_row
from spanrl.options import check_flag, require
from spanrl.seeding import generator

if TYPE_CHECKING:
    import numpy as np

    from spanrl.models.info import ProblemInfo

MOST_STATES = 5000
"""S·S·A numbers are drawn in every episode."""


@passed(FILL)
def fill_posterior(known, settings, kept, sets):
    """Draw a model: a row of S entries for each pair, and its reward."""
    seen, S, size = known.seen, known.n_states, known.r_max - known.r_min
    if sets.succ_ptr[-1] == 0:
        for i in range(seen.n.size):
            sets.succ_ptr[i + 1] = (i + 1) * S
            for s in range(S):
                sets.succ[i * S + s] = s
    for i in range(seen.n.size):
        first, end = seen.succ_ptr[i], seen.succ_ptr[i + 1]
        dirichlet_row(1.0, seen.succ[first:end], seen.times[first:end], known.words, sets.low[i * S : (i + 1) * S])
        n = float(seen.n[i])
        paid = n * min(max((seen.r_mean[i] - known.r_min) / size, 0.0), 1.0)
        sets.r_low[i] = sets.r_high[i] = known.r_min + size * beta(1.0 + paid, 1.0 + (n - paid), known.words)


class Posterior(Estimate):
    """One model, drawn from the posterior of uniform priors."""

    fill: ClassVar = fill_posterior
    geometry: ClassVar = PLAIN
    owns_rows: ClassVar = True
    draws: ClassVar = True

    def capacity(self, info: ProblemInfo, n_listed: int) -> int:
        """Return SA·S."""
        return info.n_pairs * int(info.n_states)


def check_size(who: str, info: ProblemInfo) -> None:
    """Refuse a problem with too many states to draw models of."""
    remedy = "It draws a distribution over all states for each pair; use UCRL."
    require(info.n_states <= MOST_STATES, who, f"S must be at most {MOST_STATES}", info.n_states, remedy)


@dataclass(frozen=True)
class PSRL:
    """Play the optimal policy of a model drawn from the posterior, until the visits of a pair have doubled.

    Args:
        warm_start: start each planning at the last bias; False starts at 0.

    Rewards that are neither r_min nor r_max are treated as if they were Bernoulli (pseudo-Bayesian).

    >>> import spanrl
    >>> spanrl.make_agent("psrl") == spanrl.PSRL()
    True
    """

    summary: ClassVar[str] = "Posterior sampling: the optimal policy of a model drawn at random."
    source: ClassVar[str] = "Ouyang, Gagrani, Nayyar & Jain, NIPS 2017"

    warm_start: bool = True

    def __post_init__(self) -> None:
        """Check the options."""
        check_flag("PSRL", "warm_start", self.warm_start)

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> Learner:
        """Return a learner for the problem."""
        check_size("PSRL", info)
        rules = Rules(Posterior(), mixture=False, warm_start=self.warm_start)
        return Learner(rules, info, generator("PSRL", rng))
