"""Elimination of a transient block without a single subtraction (Grassmann, Taksar & Heyman 1985).

A block of states moves inside by the rates A(s, x), x ≠ s, and leaves for good with probability left(s). With D(s) = left(s) + Σ_x A(s, x),
expected times, rewards and visits solve (D − A)x = b or yᵀ(D − A) = bᵀ. To eliminate a state is to watch the chain only while it is
elsewhere: A(s, x) += A(s, k) A(k, x)/D(k), left(s) += A(s, k) left(k)/D(k). All terms are ≥ 0 and D is summed anew each time, so nothing
cancels: with b ≥ 0 every single entry of the solution is right to a small multiple of n roundings, however small the probabilities are
(O'Cinneide 1993). The same lines compute in double precision and, on arrays of ``Decimal``, with as many digits as are wanted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import SpanrlError

Numbers = NDArray[Any]
"""An array of floats, or of objects that calculate."""


class Budget:
    """How many entries may still be updated, by all eliminations that share it."""

    def __init__(self, updates: float) -> None:
        """Allow so many."""
        self._left = updates

    def spend(self, updates: int, n: int) -> None:
        """Take some off, or raise SpanrlError in the name of a block of n states."""
        self._left -= updates
        if self._left < 0:
            raise SpanrlError(f"elimination: a block of {n} states fills up; it would take too long.")


class Elimination:
    """The factors of D − A; solves for one or several non-negative right-hand sides."""

    def __init__(self, rate: Numbers, left: Numbers, budget: Budget) -> None:
        """Eliminate the states of ``rate`` [n, n] from the last to the first; the diagonal is ignored, both arrays are overwritten.

        Raises SpanrlError where a state cannot leave to working precision, or where the budget is spent.
        """
        n, zero = left.size, type(left[0])(0)
        np.fill_diagonal(rate, zero)
        self.total = left.copy()
        self.rate = rate
        for k in range(n - 1, -1, -1):
            total = left[k] + rate[k, :k].sum()
            if not total > 0:
                raise SpanrlError(
                    f"elimination: a state of a block of {n} leaves it with probability 0 to working precision."
                )
            self.total[k] = total
            rate[:k, k] = rate[:k, k] / total
            rows, cols = np.flatnonzero(rate[:k, k]), np.flatnonzero(rate[k, :k])
            budget.spend(rows.size * cols.size + n, n)
            rate[np.ix_(rows, cols)] += np.multiply.outer(rate[rows, k], rate[k, cols])
            rate[rows, rows] = zero  # a return to the same state is no move
            left[rows] += rate[rows, k] * left[k]

    def solve(self, b: Numbers) -> Numbers:
        """Return x with (D − A)x = b ≥ 0, shape [n] or [n, m]."""
        x = b.copy()
        for k in range(self.total.size - 1, 0, -1):
            rows = np.flatnonzero(self.rate[:k, k])
            x[rows] += np.multiply.outer(self.rate[rows, k], x[k])
        for k in range(self.total.size):
            cols = np.flatnonzero(self.rate[k, :k])
            x[k] = (x[k] + self.rate[k, cols] @ x[cols]) / self.total[k]
        return x

    def visits(self, start: Numbers) -> Numbers:
        """Return y with yᵀ(D − A) = start ≥ 0: the expected visits to each state, shape [n]."""
        y = start.copy()
        for k in range(self.total.size - 1, -1, -1):
            y[k] = y[k] / self.total[k]
            cols = np.flatnonzero(self.rate[k, :k])
            y[cols] += self.rate[k, cols] * y[k]
        for k in range(1, self.total.size):
            rows = np.flatnonzero(self.rate[:k, k])
            y[k] += self.rate[rows, k] @ y[rows]
        return y
