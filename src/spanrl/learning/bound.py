"""The regret bound of SCAL, with all its constants."""

from __future__ import annotations

from math import inf, log, log2, sqrt
from numbers import Real

from spanrl.errors import OptionError
from spanrl.models import checks
from spanrl.options import whole_number


def regret_bound(
    horizon: int,
    *,
    n_states: int,
    n_actions: int,
    max_support: int,
    span_bound: float,
    delta: float = 0.05,
    r_max: float = 1.0,
) -> float:
    """Return what the regret of SCAL exceeds with probability at most δ, for all T ≥ SA at once (appendix, the long formula that ends it).

    With L = ln(2SAT/δ)::

        (√28 + √14) c √((Γ−1)SAT L) + (98/3) c S²A L (3 + ln T) + 2(√28 + √14) r_max √(SAT L) + (196/3) r_max SA L (3 + ln T)
        + 3(c + r_max) √((5/2) T ln(11T/δ)) + c SA log₂(8T/SA) + 3(√2 + 1) r_max √(SAT) + r_max √T

    and for T < SA: r_max √(SAT). It needs α = 1 and c ≥ sp(h*). Rewards lie in [0, r_max]; with another r_min give r_max − r_min.

    Args:
        horizon: T ≥ 1.
        n_states, n_actions, max_support: S, A and Γ.
        span_bound: c ≥ 0.
        delta: δ in (0, 1).
        r_max: the largest reward, > 0.

    Returns:
        The bound, in units of reward.

    Raises:
        OptionError: an argument is out of its range.

    >>> round(regret_bound(10**6, n_states=3, n_actions=2, max_support=2, span_bound=2))
    978916
    """
    T, S, A, support = (
        whole_number("regret_bound", name, value)
        for name, value in (
            ("horizon", horizon),
            ("n_states", n_states),
            ("n_actions", n_actions),
            ("max_support", max_support),
        )
    )
    c = checks.span_bound("regret_bound", span_bound)
    numbers = isinstance(delta, Real) and isinstance(r_max, Real)
    if not numbers or not 0 < delta < 1 or not 0 < r_max < inf:
        raise OptionError(f"regret_bound: delta must lie in (0, 1) and r_max be positive; got {delta!r} and {r_max!r}.")
    SA = S * A
    if T < SA:
        return r_max * sqrt(SA * T)
    if c == inf:
        return inf
    L, root = log(2 * SA * T / delta), sqrt(28) + sqrt(14)
    return (
        root * c * sqrt((support - 1) * SA * T * L)
        + 98 / 3 * c * S * SA * L * (3 + log(T))
        + 2 * root * r_max * sqrt(SA * T * L)
        + 196 / 3 * r_max * SA * L * (3 + log(T))
        + 3 * (c + r_max) * sqrt(2.5 * T * log(11 * T / delta))
        + c * SA * log2(8 * T / SA)
        + 3 * (sqrt(2) + 1) * r_max * sqrt(SA * T)
        + r_max * sqrt(T)
    )
