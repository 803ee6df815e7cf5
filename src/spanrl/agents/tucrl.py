"""TUCRL, truncated UCRL (Fruit, Pirotta & Lazaric 2018): optimism where some states cannot be reached at all.

A UCRL that never rules out a transition dreams forever of states that nothing leads to, and its regret is linear. TUCRL stops believing
in a transition to a state never visited once the pair has been played often enough to have seen it (its pseudo-code, in its letters)::

    for episodes k = 1, 2, …
        1. t_k ← t
           S_k^C ← the states visited so far, and s_t;  S_k^T ← the others       (C: communicating, T: transient, for all one knows)
           K_k ← {(s, a) : s ∈ S_k^C, N_k^±(s, a) ≤ √(t_k/(SA))}                the pairs not played enough;  N^± = max{1, N − 1}
        2. B_r, B_p ← the empirical Bernstein intervals of UCRL                  (spanrl.confidence.bernstein, or other bounds)
           (s, a) ∉ K_k:  p̃(s'|s, a) ← 0 for all s' ∈ S_k^T
        3. π̃_k ← extended value iteration to r_max/√t_k: on S_k^C alone if K_k is empty, otherwise on all of S
        4. play π̃_k until ν_k(s_t, a_t) ≥ max{1, N_k(s_t, a_t)}, or s_t ∈ S_k^T

What is proved (same paper): with probability 1 − δ the regret is Õ(D^C √(Γ^C S^C A T)) up to terms of lower order in T, where D^C, S^C
and Γ^C are diameter, states and successors of the communicating part in which the first state lies; no prior knowledge is asked. The same
paper proves the price: where states may be out of reach, no algorithm has logarithmic regret without having had linear regret for a time
that is exponential in parameters of the model.

What carries it and is tested here: an episode with a pair in K_k and a state in S_k^T has the optimistic gain r_max; with K_k empty, the
gain is at least g* if the true model lies in the Bernstein set and nothing leads to S_k^T; and there are at most S episodes more than
UCRL has. (Where the Bernstein set holds the true model, a pair that reaches an undiscovered state with probability p stays in K_k as soon
as √(t_k/(SA)) exceeds (49/3)·ln(2SAt_k/δ)/p: late enough, what can be reached is dreamt of until it is found.)

Differs from the paper: where K_k is empty, the states of S_k^T are not dropped from the plan; they pay r_min and may lead anywhere. This
changes neither the gain nor which policies of S_k^C attain it, but the span that is recorded includes them. A state in which the agent
never played counts as visited if it was seen as a successor (a time limit of Gymnasium takes the agent elsewhere before it plays).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spanrl.agents.episodes import LIMIT, UNLIMITED, EpisodeRule
from spanrl.agents.learner import Learner, Rules
from spanrl.confidence.bernstein import BernsteinBox, fill_bernstein
from spanrl.confidence.bounds import make_bounds
from spanrl.confidence.estimate import FILL, Estimate
from spanrl.confidence.kt import KT, fill_kt
from spanrl.confidence.ucrl2b import UCRL2BBox, fill_ucrl2b
from spanrl.confidence.ucrl3 import UCRL3Box, fill_ucrl3
from spanrl.kernels.jit import part, passed
from spanrl.options import check_flag, check_level, check_scale, require
from spanrl.seeding import generator

if TYPE_CHECKING:
    from spanrl.models.info import ProblemInfo


@part
def is_unplayed(n, pair_ptr, s):
    """Tell whether no action was ever played in state s."""
    visits = 0
    for i in range(pair_ptr[s], pair_ptr[s + 1]):
        visits += n[i]
    return visits == 0


@part
def truncate(known, sets):
    """Close S_k^T to the pairs of S_k^C that are not in K_k, in boxes that are filled. Pairs of S_k^T are written each time."""
    seen, ptr, closed = known.seen, known.pair_ptr, sets.closed
    for s in range(known.n_states):
        closed[s] = s != known.state and is_unplayed(seen.n, ptr, s)
    for j in range(seen.succ_ptr[-1]):
        closed[seen.succ[j]] = False
    enough, is_left = np.sqrt(known.t / (float(known.n_states) * known.max_actions)), False
    for s in range(known.n_states):
        for i in range(ptr[s], ptr[s + 1]):
            sets.flagged[i] = not closed[s] and max(1, seen.n[i] - 1) > enough
            is_left |= not closed[s] and not sets.flagged[i]
    for s in range(known.n_states):  # with K_k empty nothing leads to S_k^T, which must not be worth more than the rest
        for i in range(ptr[s], ptr[s + 1] if is_unplayed(seen.n, ptr, s) else ptr[s]):
            sets.r_low[i] = known.r_min
            sets.r_high[i] = known.r_max if is_left or not closed[s] else known.r_min


@passed(FILL)
def fill_truncated(known, settings, kept, sets):
    """Write Bernstein boxes, and close states."""
    fill_bernstein(known, settings, kept, sets)
    truncate(known, sets)


@passed(FILL)
def fill_truncated_kt(known, settings, kept, sets):
    """Write KT boxes, and close states."""
    fill_kt(known, settings, kept, sets)
    truncate(known, sets)


@passed(FILL)
def fill_truncated_ucrl2b(known, settings, kept, sets):
    """Write UCRL2B's boxes, and close states."""
    fill_ucrl2b(known, settings, kept, sets)
    truncate(known, sets)


@passed(FILL)
def fill_truncated_ucrl3(known, settings, kept, sets):
    """Write UCRL3's boxes, and close states."""
    fill_ucrl3(known, settings, kept, sets)
    truncate(known, sets)


@dataclass(frozen=True)
class TruncatedBox(BernsteinBox):
    """Bernstein boxes in which pairs played more than √(t_k/(SA)) times do not reach states never visited."""

    fill: ClassVar = fill_truncated
    closes_states: ClassVar = True


@dataclass(frozen=True)
class TruncatedKT(KT):
    """The same with KT boxes."""

    fill: ClassVar = fill_truncated_kt
    closes_states: ClassVar = True


@dataclass(frozen=True)
class TruncatedUCRL2B(UCRL2BBox):
    """The same with UCRL2B's boxes."""

    fill: ClassVar = fill_truncated_ucrl2b
    closes_states: ClassVar = True


@dataclass(frozen=True)
class TruncatedUCRL3(UCRL3Box):
    """The same with UCRL3's boxes."""

    fill: ClassVar = fill_truncated_ucrl3
    closes_states: ClassVar = True


TRUNCATED: dict[str, Any] = {
    "bernstein": TruncatedBox,
    "kt": TruncatedKT,
    "ucrl2b": TruncatedUCRL2B,
    "ucrl3": TruncatedUCRL3,
}
"""The boxes by the names of the bounds; balls cannot close states."""


@passed(LIMIT)
def limit_until_new_state(known, settings, pairs, allowed):
    """Allow max{1, N_k} visits, and none in a state never visited: arriving there ends the episode."""
    n = known.seen.n
    for k in range(pairs.size):
        allowed[k] = max(1, n[pairs[k]])
    for s in range(known.n_states):
        if s != known.state and is_unplayed(n, known.pair_ptr, s):
            allowed[2 * s] = allowed[2 * s + 1] = 0
    return UNLIMITED


class UntilNewState(EpisodeRule):
    """End an episode when the visits of a pair have doubled, or in a state never visited."""

    limit = limit_until_new_state


@dataclass(frozen=True)
class TUCRL:
    """UCRL for problems in which some states may be out of reach: no diameter, no prior knowledge.

    Args:
        delta: confidence level in (0, 1), or "rsqrt" for δ_k = 1/√t_k (the authors' program).
        p_scale, r_scale: factors α_p, α_r inside the radii; 1 is the theory.
        warm_start: start each planning at the last bias; False starts at 0 as the paper does.
        bounds: the boxes, "bernstein" (the paper), "kt", "ucrl2b" or "ucrl3"; with the others the good event is the same, but the regret
            bound is written down for the paper's alone. Balls cannot close states.

    Raises:
        OptionError: an option is out of its range.

    >>> import spanrl
    >>> spanrl.make_agent("tucrl[p_scale=0.1]") == spanrl.TUCRL(p_scale=0.1)
    True
    """

    summary: ClassVar[str] = "UCRL that gives up states never seen: for problems in which some cannot be reached."
    source: ClassVar[str] = "Fruit, Pirotta & Lazaric, NeurIPS 2018"

    delta: float | str = 0.05
    p_scale: float = 1.0
    r_scale: float = 1.0
    warm_start: bool = True
    bounds: str = "bernstein"

    def __post_init__(self) -> None:
        """Check the options."""
        check_level("TUCRL", self.delta)
        check_scale("TUCRL", "p_scale", self.p_scale)
        check_scale("TUCRL", "r_scale", self.r_scale)
        check_flag("TUCRL", "warm_start", self.warm_start)
        boxes = f"bounds must be {' or '.join(TRUNCATED)}"
        require(self.bounds in TRUNCATED, "TUCRL", boxes, self.bounds, "Balls cannot close states: use 'kt', say.")
        _ = self.estimate

    @property
    def estimate(self) -> Estimate:
        """The boxes that it plans on."""
        bound: Any = make_bounds("TUCRL", self.bounds, self.delta, self.p_scale, self.r_scale)
        truncated: Estimate = TRUNCATED[self.bounds](**asdict(bound))
        return truncated

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> Learner:
        """Return a learner for the problem."""
        rules = Rules(self.estimate, UntilNewState(), warm_start=self.warm_start)
        return Learner(rules, info, generator("TUCRL", rng))
