"""One block of a Markov chain by elimination without subtractions, in double precision or with many decimal digits.

By renewal at a reference state: T(s) and R(s) are the expected time and reward until it is reached, both sums of positive terms once the
smallest reward counts as 0. A cycle from the reference state gives g = R/T, and h = R − gT is the one subtraction, so the error of h is a
rounding in units of R + gT, and known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.planning.blocks import Recurrent, Transient, bound
from spanrl.planning.elimination import Budget, Elimination, Numbers
from spanrl.planning.problem import Vector

DIGITS = (50, 200, 700)
"""Decimal digits tried, in turn."""

_MOST_DOUBLES, _MOST_DECIMALS = 1e10, 2e7  # updates: some ten seconds
_SAFETY = 8  # times n roundings: what elimination is taken to lose; exact fractions show less than a tenth of it


class Precise:
    """Blocks in double precision, or in decimal numbers of the present context: see :func:`decimal_digits`."""

    def __init__(self, digits: int | None = None, budget: Budget | None = None) -> None:
        """Calculate with ``digits`` decimal digits or in double precision; what updates eliminations may make, in all."""
        self._decimal = digits is not None
        self._unit = 2.0**-53 if digits is None else max(10.0 ** (1 - digits), 1e-290)  # no error is said to be 0
        self.has_most_digits = digits == DIGITS[-1]
        self._budget = budget or Budget(_MOST_DOUBLES if digits is None else _MOST_DECIMALS)

    def numbers(self, values: Vector) -> Numbers:
        """Return ``values`` as this way calculates with them: decimals are exact."""
        if self._decimal:
            return np.array([Decimal(x) for x in values], dtype=object)
        return np.array(values, dtype=np.float64)

    def product(self, M: Any, x: Numbers) -> Numbers:
        """Return Mx of a sparse M."""
        if not self._decimal:
            return np.asarray(M @ x)
        M = M.tocsr()
        rows = (slice(M.indptr[s], M.indptr[s + 1]) for s in range(M.shape[0]))
        return np.array([Decimal(0) + self.numbers(M.data[row]) @ x[M.indices[row]] for row in rows], dtype=object)

    def recurrent(self, P: Any, r: Numbers) -> Recurrent:
        """Return gain and bias of an irreducible chain; the state visited most is the reference, as it costs the fewest digits."""
        n = r.size
        first = self._eliminated(P, np.arange(1, n), 0)
        visits = np.concatenate(([1.0], np.asarray(first.visits(self._row(P, 0, np.arange(1, n))), dtype=np.float64)))
        often = int(np.argmax(visits))
        others = np.flatnonzero(np.arange(n) != often)
        block = self._eliminated(P, others, often) if often else first
        lowest = r.min()
        reward, ones = r - lowest, self.numbers(np.ones(n))
        start = self._row(P, often, others)
        T, R = block.solve(np.stack((ones[others], reward[others]), axis=1)).T
        cycle = ones[often] + start @ T
        gain = (reward[often] + start @ R) / cycle
        relative = R - gain * T
        up, down = block.solve(np.stack((np.maximum(relative, 0 * T), np.maximum(-relative, 0 * T)), axis=1)).T
        mean = (start @ up - start @ down) / cycle
        bias = np.empty(n, dtype=r.dtype)
        bias[often], bias[others] = -mean, relative - mean
        loss = _SAFETY * n * self._unit
        scale = bound((R + gain * T).max())
        return Recurrent(gain + lowest, bias, loss * bound(reward.max()), 2 * loss * scale, bound(T.max()))

    def transient(self, P: Any, left: Numbers, b: Numbers) -> Transient:
        """Solve x = b + Px for a transient block P that is left with the probabilities ``left``."""
        n = b.size
        block = Elimination(self._dense(P), left.copy(), self._budget)
        zero = 0 * b
        up, down, T = block.solve(
            np.stack((np.maximum(b, zero), np.maximum(-b, zero), self.numbers(np.ones(n))), axis=1)
        ).T
        return Transient(up - down, _SAFETY * n * self._unit * bound((up + down).max()), bound(T.max()))

    def _eliminated(self, P: Any, states: NDArray[Any], reference: int) -> Elimination:
        dense = self._dense(P)
        return Elimination(dense[np.ix_(states, states)], dense[states, reference], self._budget)

    def _row(self, P: Any, s: int, states: NDArray[Any]) -> Numbers:
        return np.asarray(self._dense(P[[s]])[0, states])

    def _dense(self, P: Any) -> Numbers:
        if not self._decimal:
            return np.asarray(P.toarray())
        out = np.full(P.shape, Decimal(0), dtype=object)
        entries = P.tocoo()
        out[entries.row, entries.col] = self.numbers(entries.data)
        return out


@contextmanager
def decimal_digits(digits: int, budget: Budget | None = None) -> Iterator[Precise]:
    """Provide blocks with so many decimal digits and exponents without practical limits."""
    with localcontext(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN):
        yield Precise(digits, budget)
