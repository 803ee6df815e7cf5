"""UCRL2B (Fruit, Pirotta & Lazaric 2020, arXiv 2007.05456): UCRL with sharper empirical Bernstein sets.

Their algorithm, in their letters::

    for episodes k = 1, 2, …
        t_k ← t;  ν_k(s,a) ← 0
        p̄_k, r̄_k ← the means of the N_k(s,a) visits;  σ̂² their variances
        β(s,a,·) = 2 √(σ̂² l/N⁺) + 6·size·l/N⁺,  l = ln(6SAN⁺/δ)                   (spanrl.confidence.ucrl2b)
        M_k ← {r, p : |r − r̄_k| ≤ β_r, |p(s') − p̄_k(s')| ≤ β_p for all s'}
        π_k ← extended value iteration on M_k, to 1/√t_k
        while ν_k(s_t, π_k(s_t)) < max{1, N_k(s_t, π_k(s_t))}: play π_k(s_t), see r_t and s_{t+1}

So it is :class:`spanrl.UCRL` with ``bounds="ucrl2b"``, decision by decision. What is proved (same paper): with probability 1 − δ the
regret is of the order √(DΓSAT), up to logarithms, for communicating models. Coverage is derived with the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spanrl.agents.alias import AliasOfUCRL


@dataclass(frozen=True)
class UCRL2B(AliasOfUCRL):
    """Play UCRL with the sets of UCRL2B: ``UCRL(bounds="ucrl2b")`` under its own name.

    Args:
        delta: confidence level in (0, 1).
        warm_start: start each planning at the last bias; False starts at 0.

    Raises:
        OptionError: an option is out of its range.

    >>> import spanrl
    >>> spanrl.make_agent("ucrl2b[delta=0.1]") == spanrl.UCRL2B(delta=0.1)
    True
    """

    summary: ClassVar[str] = "Sharper Bernstein sets, extended value iteration."
    source: ClassVar[str] = "Fruit, Pirotta & Lazaric, arXiv 2007.05456, 2020"
    bounds: ClassVar[str] = "ucrl2b"
