"""TSDE, Thompson sampling with dynamic episodes (Ouyang, Gagrani, Nayyar & Jain 2017).

PSRL with a second reason to end an episode: it does not become more than one step longer than the one before. That bounds its length
before its model is drawn, which the proof needs (their algorithm, in their letters)::

    t ← 1, t_0 ← 0
    for episodes k = 1, 2, …
        T_{k−1} ← t − t_{k−1};  t_k ← t
        θ_k ~ µ_{t_k}, the posterior                             (spanrl.agents.psrl: uniform priors, Dirichlet and Beta)
        π_k ← the optimal stationary policy of θ_k, for the average reward
        while t ≤ t_k + T_{k−1} and N_t(s, a) ≤ 2N_{t_k}(s, a) for all (s, a):
            play a_t = π_k(s_t), see s_{t+1};  update µ;  t ← t + 1

What is proved (same paper): the *Bayesian* regret, averaged over models drawn from the prior, is Õ(HS√(AT)), if the prior draws only
weakly communicating models whose bias has a span of at most H; rewards are known there. Nothing is proved of the regret in a single
model, and a drawn model need not be optimistic. What carries it and is tested here: models are drawn from the posterior, once per
episode; no episode is more than one step longer than the one before; and there are at most 1 + √(2T·SA·(log₂T + 3)) of them.

Differs from the paper: rewards are unknown, too, and drawn as in PSRL (pseudo-Bayesian unless they are r_min or r_max); an episode ends
before a pair is played more than max{1, N} times in it, as for all agents here, not after the step that does it; the optimal policy is
found up to (r_max − r_min)/√t_k, which adds O(√T). Dirichlet priors have no bound H on the span: ``span_bound`` puts one on the plan
instead, Γ_c in every sweep, greedily in truncated states; of this nothing is proved.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

from spanrl.agents.episodes import LIMIT, EpisodeRule
from spanrl.agents.learner import Learner, Rules
from spanrl.agents.psrl import Posterior, check_size
from spanrl.kernels.jit import passed
from spanrl.options import check_flag, number, require
from spanrl.seeding import generator

if TYPE_CHECKING:
    import numpy as np

    from spanrl.models.info import ProblemInfo


@passed(LIMIT)
def limit_by_growth(known, settings, pairs, allowed):
    """Allow max{1, N_k} visits, and T_{k−1} + 1 steps; the first episode has one step."""
    n = known.seen.n
    for k in range(pairs.size):
        allowed[k] = max(1, n[pairs[k]])
    return known.steps + 1


class DynamicEpisodes(EpisodeRule):
    """End an episode when the visits of a pair have doubled, or when it is one step longer than the last."""

    limit = limit_by_growth


@dataclass(frozen=True)
class TSDE:
    """Play the optimal policy of a model drawn from the posterior, for at most one step longer than the last time.

    Args:
        span_bound: c ≥ 0 of Γ_c, which bounds the span of the bias of the drawn model; ∞ (the paper) for none.
        warm_start: start each planning at the last bias; False starts at 0.

    Rewards that are neither r_min nor r_max are treated as if they were Bernoulli (pseudo-Bayesian).

    Raises:
        OptionError: an option is out of its range.

    >>> import spanrl
    >>> spanrl.learn("three-state", "tsde", horizon=1000, seed=0).episodes["start"][:3].tolist()
    [1, 2, 3]
    """

    summary: ClassVar[str] = "Posterior sampling in episodes that grow by at most one step."
    source: ClassVar[str] = "Ouyang, Gagrani, Nayyar & Jain, NIPS 2017"

    span_bound: float = inf
    warm_start: bool = True

    def __post_init__(self) -> None:
        """Check the options."""
        c = self.span_bound
        require(number(c) >= 0, "TSDE", "span_bound must be a number ≥ 0", c, "Leave it out for none.")
        check_flag("TSDE", "warm_start", self.warm_start)

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> Learner:
        """Return a learner for the problem."""
        check_size("TSDE", info)
        c = float(self.span_bound)
        rules = Rules(
            Posterior(), DynamicEpisodes(), span_bound=c, mixture=False, warm_start=self.warm_start, needs_span=inf
        )
        return Learner(rules, info, generator("TSDE", rng))
