"""UCRL3 (Bourel, Maillard & Talebi 2020): UCRL with sets that hold for all numbers of visits at once.

Their algorithm, in their letters::

    for episodes k = 1, 2, …
        t_k ← t;  ν_k(s,a) ← 0
        M_k ← {r, p : each r(s,a) and each p(s'|s,a) in its interval at level δ/((3 + 3S)SA)}      (spanrl.confidence.ucrl3)
        π_k ← extended value iteration on M_k, to 1/√t_k, over the support that NOSS keeps
        while ν_k(s_t, π_k(s_t)) < max{1, N_k(s_t, π_k(s_t))}: play π_k(s_t), see r_t and s_{t+1}

So it is :class:`spanrl.UCRL` with ``bounds="ucrl3"``, decision by decision, but for one line.

Differs from the paper: NOSS, the near-optimistic support selection that leaves unlikely successors out of the inner maximum, is not here.
The support depends on the iterate, so that the operator is not monotone, a bracket certifies nothing, and the iteration may go round in
circles for ever; without it the sets are those of the proof of coverage, and the inner maximum is exact. What is proved (same paper), with
NOSS, is a regret of order √T in which local diameters and local supports stand in the place of D and S; without NOSS no bound is written
down. What is proved of each inequality stands with the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spanrl.agents.alias import AliasOfUCRL


@dataclass(frozen=True)
class UCRL3(AliasOfUCRL):
    """Play UCRL with the sets of UCRL3: ``UCRL(bounds="ucrl3")`` under its own name, without NOSS.

    Args:
        delta: confidence level in (0, 1).
        warm_start: start each planning at the last bias; False starts at 0.

    Raises:
        OptionError: an option is out of its range.

    >>> import spanrl
    >>> spanrl.UCRL3().ucrl == spanrl.UCRL(bounds="ucrl3")
    True
    """

    summary: ClassVar[str] = "Time-uniform Bernstein and sub-Gaussian sets, extended value iteration."
    source: ClassVar[str] = "Bourel, Maillard & Talebi, ICML 2020"
    bounds: ClassVar[str] = "ucrl3"
