"""KL-UCRL (Filippi, Cappé & Garivier 2010): UCRL with balls of the Kullback–Leibler divergence.

Their algorithm, in their letters::

    for episodes k = 1, 2, …
        t_k ← t;  n_k(x,a) ← 0
        M_k ← {r, p : N KL(p̂_k(·|x,a), p(·|x,a)) ≤ C for all (x,a), and rewards alike}                 (spanrl.confidence.kl)
        π_k ← extended value iteration on M_k, to 1/√t_k, its inner maximum by MaxKL                   (spanrl.kernels.kl)
        while n_k(x_t, π_k(x_t)) < max{1, N_k(x_t, π_k(x_t))}: play π_k(x_t), see r_t and x_{t+1}

So it is :class:`spanrl.UCRL` with ``bounds="kl"``, decision by decision.

Differs from the paper: C is not theirs, which grows with ln T and loses a factor of the order of S, but that of a mixture over supports
that holds for all times at once with probability 1 − δ. Their regret, of the order DS√(AT), is proved with their C; Talebi & Maillard
2018 have a bound with the variance of the bias in it. Of ours, coverage is proved and the rest is not: see the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spanrl.agents.alias import AliasOfUCRL


@dataclass(frozen=True)
class KLUCRL(AliasOfUCRL):
    """Play UCRL with KL balls: ``UCRL(bounds="kl")`` under its own name.

    Args:
        delta: confidence level in (0, 1).
        warm_start: start each planning at the last bias; False starts at 0.

    Raises:
        OptionError: an option is out of its range.

    >>> import spanrl
    >>> spanrl.KLUCRL().ucrl == spanrl.UCRL(bounds="kl")
    True
    """

    summary: ClassVar[str] = "Balls of the Kullback–Leibler divergence, extended value iteration."
    source: ClassVar[str] = "Filippi, Cappé & Garivier, Allerton 2010"
    bounds: ClassVar[str] = "kl"
