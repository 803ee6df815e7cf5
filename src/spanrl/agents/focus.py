"""FOCUS (Zamir, Zurek & Chen 2026, arXiv 2603.23926): the empirical model with a variance bonus, and values clipped to a span H.

Their operator and algorithm, in their letters, with U = ln(9S²AT/δ), N⁺ = max(1, N) and Clip_H V = min(V, min V + H)::

    b(p̂, V) = max(c₁ √(Var(p̂, V) U/N⁺), c₂ H U/N⁺),    (c₁, c₂) = (4, 32)
    Q(s,a)  = r(s,a) + p̂(s,a)V + b(p̂(s,a), V)                      V ← Clip_H max_a Q(s,a)
    for episodes k = 1, 2, …
        iterate until V is a fixed point, discounted by γ = 1 − 1/T;  π_k ← greedy in Q, not clipped
        play π_k until N(s,a) of a pair reaches a power of two

    H = 2·sp(h*) where a bound on the span is known, √(T/(S³A)) where it is not

What is proved (same paper), for known rewards: with probability 1 − δ the regret has the leading term Õ(√(SA·Var*)), which is minimax
optimal, with the prior on the span; without it the same for long horizons. This is of the *discounted* form, whose operator is
``discounted=True``; what is said below to differ from the paper is not covered by its proof.

**The undiscounted form, the default, is derived.** On sp(V) ≤ H its operator is monotone, as c₂ ≥ c₁² (:mod:`spanrl.kernels.bonus`), and
constants pass through it; clipping keeps both. So it has a fixed point with a gain (by Brouwer's theorem, on the values of span H at most
that are 0 in one state), which a bracket certifies, and it is optimistic where
the bonus covers |(p̂ − p)h*| and H ≥ sp(h*): F h* ≥ h* + g*. That the regret bound carries over is not proved.

The discounted form is F V = Clip_H max_a [r + γ(p̂V + b)]. With V = h + k·e it reads h + (1 − γ)k·e = F h: the average-reward equation of
the model that starts anew in state 0 with probability 1 − γ, where h = 0. That is what is solved, so one certificate serves both.

Differs from the paper: p̂V + b is capped at max V, beyond which no average can lie; rewards are unknown and raised by √(2σ̂²U/N) +
3·size·U/N, up to r_max, without a share of δ of their own; a pair never seen is worth r_max + max V (theirs has p̂ uniform there, with a
bonus beyond the cap, and discounts it: H/T less at the most); plans end at a gain bracket of (r_max − r_min)/t, which costs O(ln T) in
all; an episode ends when a pair is about to be played again.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from spanrl.agents.episodes import TOLERANCE
from spanrl.agents.learner import Learner, Rules
from spanrl.agents.powers import POWERS
from spanrl.confidence.estimate import FILL, Estimate
from spanrl.errors import OptionError
from spanrl.kernels.jit import passed
from spanrl.kernels.layout import BONUS
from spanrl.options import check_flag, check_level, number, require
from spanrl.seeding import generator

if TYPE_CHECKING:
    from spanrl.models.info import ProblemInfo


@passed(FILL)
def fill_focus(known, settings, kept, sets):
    """Write γp̂, c₁²U/N, c₂HU/N and the raised rewards of the pairs that were visited; the others are what they were."""
    U, variance_term, range_term, gamma = settings
    seen, size = known.seen, known.r_max - known.r_min
    for i in known.changed:
        if seen.n[i] == 0:
            sets.r_low[i] = sets.r_high[i] = known.r_max
            continue
        n = float(seen.n[i])
        for j in range(seen.succ_ptr[i], seen.succ_ptr[i + 1]):
            sets.low[j] = gamma * (seen.times[j] / n)
        sets.size[i], sets.rest[i] = variance_term / n, range_term / n
        raised = seen.r_mean[i] + sqrt(2.0 * seen.r_sq[i] / n * U / n) + 3.0 * size * U / n
        sets.r_low[i] = sets.r_high[i] = min(known.r_max, raised)


@passed(TOLERANCE)
def one_over_t(known):
    """Return (r_max − r_min)/t_k: 1/√t would add √T to the regret, however small the variance is."""
    return (known.r_max - known.r_min) / known.t


@dataclass(frozen=True)
class VarianceBonus(Estimate):
    """The empirical model with FOCUS's bonus, for values of a span of at most H = ``span``."""

    span: float
    log_term: float
    c1: float
    c2: float
    gamma: float

    fill: ClassVar = fill_focus
    geometry: ClassVar = BONUS

    def settings(self, info: ProblemInfo) -> NDArray[np.float64]:
        """Return U, c₁²U, c₂HU and γ."""
        U = self.log_term
        return np.array([U, self.c1**2 * U, self.c2 * self.span * U, self.gamma])


@dataclass(frozen=True)
class FOCUS:
    """Plan on the empirical model with a variance bonus, its values clipped to a span H.

    It reads the horizon T: a finished run cannot be made longer.

    Args:
        span_bound: a bound on sp(h*), > 0: H is twice as much. ∞ (default) where none is known: H = (r_max − r_min)·√(T/(S³A)).
        delta: confidence level in (0, 1).
        c1, c2: constants of the bonus, c₂ ≥ c₁² > 0. (4, 32) are proved; no others are, and (1, 1) does far better in experiments.
        discounted: γ = 1 − 1/T, the paper's operator; False (default) is the derived form without a discount.
        warm_start: start each planning at the last bias; False starts at 0.

    Raises:
        OptionError: an option is out of its range, or the horizon is not known.

    >>> import spanrl
    >>> spanrl.make_agent("focus[span_bound=2,c1=1,c2=1]") == spanrl.FOCUS(span_bound=2.0, c1=1.0, c2=1.0)
    True
    """

    summary: ClassVar[str] = "The empirical model with a variance bonus, its values clipped to a span."
    source: ClassVar[str] = "Zamir, Zurek & Chen, COLT 2026"

    span_bound: float = inf
    delta: float = 0.05
    c1: float = 4.0
    c2: float = 32.0
    discounted: bool = False
    warm_start: bool = True

    def __post_init__(self) -> None:
        """Check the options."""
        c = self.span_bound
        require(number(c) > 0, "FOCUS", "span_bound must be a number > 0", c, "Leave it out where none is known.")
        check_level("FOCUS", self.delta)
        require(not isinstance(self.delta, str), "FOCUS", "delta must be a number", self.delta, "Use 0.05, say.")
        c1, c2 = number(self.c1), number(self.c2)
        require(0 < c1 < inf, "FOCUS", "c1 must be a finite number > 0", self.c1, "The paper has 4.")
        rule = "c2 must be a finite number ≥ c1², or plans have no certificate"
        require(c1**2 <= c2 < inf, "FOCUS", rule, self.c2, "The paper has c1 = 4 and c2 = 32.")
        for name in ("discounted", "warm_start"):
            check_flag("FOCUS", name, getattr(self, name))

    def start(self, info: ProblemInfo, rng: np.random.Generator | int) -> Learner:
        """Return a learner for the problem."""
        T, S, A = info.horizon, int(info.n_states), int(info.max_actions)
        if T is None:
            raise OptionError(
                "FOCUS: must know the number of steps; the horizon of the problem is open. Give ProblemInfo(…, horizon=T)."
            )
        size = info.r_max - info.r_min
        H = 2.0 * self.span_bound if self.span_bound < inf else size * sqrt(T / (S**3 * A))
        if self.span_bound == inf and size > H:
            warnings.warn(
                f"FOCUS: with a horizon of {T} and no span_bound, H = √(T/(S³A)) = {H / size:.3g} is below 1: too short to "
                "learn without a prior. Give span_bound, or a longer horizon.",
                stacklevel=2,
            )
        gamma = 1.0 - 1.0 / T if self.discounted else 1.0
        bonus = VarianceBonus(H, log(9.0 * S * S * A * T / self.delta), float(self.c1), float(self.c2), gamma)
        prior = float(self.span_bound)
        rules = Rules(
            bonus, POWERS, one_over_t, span_bound=H, mixture=False, warm_start=self.warm_start, needs_span=prior
        )
        return Learner(rules, info, generator("FOCUS", rng))
