"""SCAL⁺ (Qian, Fruit, Pirotta & Lazaric 2019): a bonus in the reward instead of a set of models, and a bound c on the span.

SCAL looks for the best model of a set in every sweep. SCAL⁺ plans on one model, whose rewards are raised by what the estimates may be off
(its algorithm, in its letters)::

    for episodes k = 1, 2, …
        1. t_k ← t
        2. p̄_k(s'|s, a) ← (N_k p̂_k(s'|s, a) + 1{s' = s̄})/(N_k + 1)              one visit more, to the reference state s̄
           b_k(s, a) ← (c + r_max)·√(ln(20 S A N_k⁺/δ)/N_k⁺) + c/(N_k + 1)        N⁺ = max{1, N}
           M̂_k⁺ ← the MDP with transitions p̄_k, in which every action is there twice: paying r̂_k + b_k, and paying 0
        3. g_k, h_k, π̃_k ← ScOpt on M̂_k⁺ to r_max/√t_k: it iterates T_c v = Γ_c max_a {r̂ + b + p̄ᵀv}
        4. play π̃_k until ν_k(s_t, a_t) ≥ max{1, N_k(s_t, a_t)}

Since p̄(s̄|s, a) ≥ 1/(N + 1) > 0 for every pair, a sweep contracts the span, and the best gain is the same from everywhere. The second
copy of each action makes the truncation attainable: π̃_k mixes it in where T_c truncates.

What is proved (same paper): for weakly communicating models with sp(h*) ≤ c the regret is Õ(c√(ΓSAT)) with high probability, as for SCAL.
What carries it and is tested here: the good event |r̂ − r| + |(p̂ − p)ᵀh*| ≤ (c + r_max)·√(ln(20SAN/δ)/N) for all pairs and all N ≥ 1 at
once, whose probability is at least 1 − δ (Hoeffding for each pair and N: even 1 − δ²/60); optimism on it, since there T_c h* ≥ h* + g*,
and T_c is monotone and commutes with constants, so that its gain is at least g*; and as many episodes as UCRL has. The proof needs the
rewards r̂ + b as they are, not capped at r_max, so the optimistic gain may exceed r_max.

The constants were compared with the authors' public program (RonanFR/UCRL), which has this bonus with 20 as a remark and 6 in use, each
root capped, s̄ = 0, and SCAL's mixture; the printed bonus could not be consulted.

Differs from the paper: rewards lie in [r_min, r_max], so that its r_max is r_max − r_min here, and its 0 is r_min. ``policy="greedy"``
plays the best action also where T_c truncates: it is worth no less than T_c v, and the argument for the regret asks no more of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spanrl.agents.learner import Learner, Rules
from spanrl.confidence.estimate import FILL, Estimate
from spanrl.kernels.jit import part, passed
from spanrl.kernels.layout import PLAIN
from spanrl.options import check_flag, check_scale, number, one_of, require
from spanrl.seeding import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spanrl.models.info import ProblemInfo


@part
def bonus(n, c, size, level):
    """Return b = (c + size)·√(ln(level·N⁺)/N⁺) + c/(N + 1), where level is 20SA/δ."""
    N = float(max(1, n))
    return (c + size) * np.sqrt(np.log(level * N) / N) + c / (n + 1.0)


@passed(FILL)
def fill_bonus(known, settings, kept, sets):
    """Write p̄ and r̂ + b. Bonuses depend on N alone; rows move when others grow, so that all of them are written."""
    seen, size, c = known.seen, known.r_max - known.r_min, settings[0]
    level = 20.0 * known.n_states * known.max_actions / settings[1]
    for i in known.changed:
        mean = seen.r_mean[i] if seen.n[i] > 0 else known.r_min
        sets.r_low[i] = sets.r_high[i] = mean + settings[2] * bonus(seen.n[i], c, size, level)
    k = 0
    for i in range(seen.n.size):
        first, end, share = seen.succ_ptr[i], seen.succ_ptr[i + 1], 1.0 / (seen.n[i] + 1.0)
        if first == end or seen.succ[first] > 0:  # s̄ = 0 was not seen: it is listed for its pseudo-visit
            sets.succ[k], sets.low[k] = 0, share
            k += 1
        for j in range(first, end):
            sets.succ[k], sets.low[k] = seen.succ[j], (seen.times[j] + (seen.succ[j] == 0)) * share
            k += 1
        sets.succ_ptr[i + 1] = k


@dataclass(frozen=True)
class BonusModel(Estimate):
    """The empirical model with one visit more of each pair, to state 0, and a bonus in the reward."""

    span_bound: float
    delta: float = 0.05
    scale: float = 1.0

    fill: ClassVar = fill_bonus
    geometry: ClassVar = PLAIN
    owns_rows: ClassVar = True

    def settings(self, info: ProblemInfo) -> NDArray[np.float64]:
        """Return c, δ and the factor of the bonus."""
        return np.array([self.span_bound, self.delta, self.scale], dtype=np.float64)

    def capacity(self, info: ProblemInfo, n_listed: int) -> int:
        """Return one entry more for each pair."""
        return n_listed + info.n_pairs


@dataclass(frozen=True)
class SCALPlus:
    """Plan with Γ_c on the empirical model, its rewards raised by a bonus: no set of models, so a sweep is cheap.

    Args:
        span_bound: c ≥ 0, finite, a bound on sp(h*); the regret bound needs c ≥ sp(h*).
        delta: confidence level in (0, 1).
        bonus_scale: factor of the bonus; 1 is the theory.
        policy: in truncated states "mixture" (the paper) or "greedy" (keeps the regret bound).
        warm_start: start each planning at the last bias; False starts at 0 as the paper does.

    Raises:
        OptionError: an option is out of its range.

    >>> import spanrl
    >>> spanrl.make_agent("scal-plus[span_bound=2]") == spanrl.SCALPlus(2.0)
    True
    """

    summary: ClassVar[str] = "The empirical model with a bonus in the reward, ScOpt: SCAL without sets."
    source: ClassVar[str] = "Qian, Fruit, Pirotta & Lazaric, NeurIPS 2019"

    span_bound: float
    delta: float = 0.05
    bonus_scale: float = 1.0
    policy: str = "mixture"
    warm_start: bool = True

    def __post_init__(self) -> None:
        """Check the options."""
        c = self.span_bound
        require(
            0 <= number(c) < inf, "SCALPlus", "span_bound must be a finite number ≥ 0", c, "Give a bound on sp(h*)."
        )
        require(0 < number(self.delta) < 1, "SCALPlus", "delta must lie in (0, 1)", self.delta, "Use 0.05, say.")
        check_scale("SCALPlus", "bonus_scale", self.bonus_scale)
        one_of("SCALPlus", "policy", self.policy, ("mixture", "greedy"))
        check_flag("SCALPlus", "warm_start", self.warm_start)

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> Learner:
        """Return a learner for the problem."""
        c = float(self.span_bound)
        estimate = BonusModel(c, self.delta, self.bonus_scale)
        rules = Rules(estimate, span_bound=c, mixture=self.policy == "mixture", warm_start=self.warm_start)
        return Learner(rules, info, generator("SCALPlus", rng))
