"""What the steps of a solve cost, in nominal nanoseconds: counted, not measured, so that the same model always gives the same bits.

The numbers were measured on one machine; only their ratios matter, and only to the choice of the cheaper way.
"""

from __future__ import annotations

from spanrl.kernels.factors import Size
from spanrl.kernels.layout import PLAIN
from spanrl.kernels.policies import Chain
from spanrl.planning.problem import Problem

KERNEL_CALL = 5e7
"""A kernel call of a longer computation: about 0.1 s at the most, so that Ctrl-C is seen in between."""

KRYLOV_CALL = 1e5
"""A call of IDR, whatever it finds."""

SPREAD_ENTRY = 4.0
"""A transition that is read while better values spread."""

PRODUCT = 0.16
"""A multiplication of an elimination."""


def full_sweep(p: Problem) -> float:
    """A sweep over all actions."""
    m = p.arrays
    return (1.6 if m.kind == PLAIN else 12.0) * float(m.succ.size) + 3.0 * p.n_pairs


def policy_sweep(chain: Chain) -> float:
    """A sweep over a policy."""
    return _of(chain, 1.3, 4.0)


def krylov_iteration(chain: Chain) -> float:
    """An iteration of IDR: a pass over the rows, and the vectors."""
    return _of(chain, 1.3, 6.0)


def ordering(chain: Chain) -> float:
    """An order of elimination: neighbours, dissection, and the size of the factors."""
    return _of(chain, 80.0, 150.0)


def counting(chain: Chain) -> float:
    """The size of the factors, where an order is known or none is found."""
    return _of(chain, 20.0, 40.0)


def factors(S: int, size: Size) -> float:
    """Factors of that size for S states."""
    return 5e4 + 25.0 * S + 70.0 * size.fronts + 16.0 * float(size.values) + PRODUCT * float(size.products)


def substitution(S: int, n_entries: int) -> float:
    """Another right-hand side for factors that are there."""
    return 3.0 * n_entries + 10.0 * S


def _of(chain: Chain, entry: float, state: float) -> float:
    return entry * float(chain.ptr[-1]) + state * float(chain.out.size)
