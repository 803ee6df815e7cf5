"""A user's knowledge about the bias: h(s) − h(s') ≤ d(s, s').

A queue is worth no more when it is longer, a stock differs from its neighbour by at most the price of a unit: such facts are difference
constraints. Only their consequences matter, so d is *closed*: d(s, s'') ≤ d(s, s') + d(s', s'') (Floyd–Warshall, S³ steps: a second or
two for 1 000 states, minutes for 5 000). A cycle of negative sum is a contradiction. With a bound c on the span besides, every
difference is at most c, and the closure of both is ::

    min{ d(s, s'), min_x d(s, x) + c + min_y d(y, s') }

A path through two steps of c is never shorter, since d(x, y) + c ≥ 0 unless c contradicts d.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanrl.errors import ModelError, OptionError
from spanrl.kernels.projection import close
from spanrl.models import checks
from spanrl.models.checks import immutable

MOST_STATES = 5000
"""S² numbers are kept, and looked at in every sweep."""

_ROUNDING = 1e-12
"""A way round that is shorter by 1e-12 of the largest difference is rounding. Differences of one and the same h have many such, and cycles
of a negative sum among them, which would double with every pivot."""


class BiasDifferences:
    """Difference constraints h(s) − h(s') ≤ d(s, s') on the bias, closed and checked, for ``solve`` and :class:`spanrl.SCAL`.

    Args:
        d: [S, S], S at most 5 000; np.inf where nothing is known, d(s, s) ≥ 0. In units of reward, like the bias.

    Attributes:
        bounds: the closed d [S, S], read-only, with d(s, s) = 0.
        n_states: S.

    Two of them are equal where their bounds are. In the text form of an agent they stand as a digest, ``str(differences)``.

    Raises:
        ModelError: d has another shape, is NaN or −∞ somewhere, or contradicts itself; the message names the states of the cycle.

    A queue of at most two jobs is worth less the longer it is, h(x) ≤ h(y) for x ≥ y, and a job costs 3 at the most:

    >>> import numpy as np
    >>> x = np.arange(3)
    >>> falling = np.where(x[:, None] >= x, 0.0, np.inf)
    >>> smooth = 3.0 * np.abs(x[:, None] - x)
    >>> BiasDifferences(np.minimum(falling, smooth)).bounds
    array([[0., 3., 6.],
           [0., 0., 3.],
           [0., 0., 0.]])
    """

    def __init__(self, d: ArrayLike) -> None:
        """Close and check d."""
        given = checks.numeric("BiasDifferences", "d", d, (None, None)).copy()
        S = given.shape[0]
        if given.shape[1] != S or S == 0:
            raise ModelError(f"BiasDifferences: d must have shape [S, S]; got shape {given.shape}.")
        if S > MOST_STATES:
            raise ModelError(
                f"BiasDifferences: S must be at most {MOST_STATES}, as every sweep looks at all S² differences; got {S}. "
                "Use a span bound alone."
            )
        bad = np.isnan(given) | (given == -np.inf)
        checks.reject(
            "BiasDifferences",
            bad.ravel(),
            lambda k: f"d[{k // S}, {k % S}]",
            "must be a number or inf",
            given.ravel(),
            "Write inf where nothing is known.",
        )
        tol = _ROUNDING * float(np.abs(given[np.isfinite(given)]).max(initial=0.0))
        closed = given.copy()
        np.fill_diagonal(closed, np.minimum(given.diagonal(), 0.0))
        if not _close(closed, tol):
            raise _contradiction(given, tol)
        self.bounds: NDArray[np.float64] = immutable(closed + 0.0, np.float64)  # no −0.0: equal bounds have equal bits
        self.n_states = S

    @classmethod
    def of(cls, value: BiasDifferences | ArrayLike) -> BiasDifferences:
        """Return ``value`` as constraints: itself, or an array closed and checked."""
        return value if isinstance(value, BiasDifferences) else cls(value)

    def within(self, span_bound: float, n_states: int) -> NDArray[np.float64]:
        """Return d closed together with a bound on the span, finite [S, S], for a model of ``n_states``."""
        d, c = self.bounds, span_bound
        if self.n_states != n_states:
            raise OptionError(
                f"BiasDifferences: there must be one row for each of the {n_states} states of the model; got {self.n_states} rows."
            )
        needed = -float(d.min())
        if needed > c * (1 + _ROUNDING):
            s, x = divmod(int(d.argmin()), n_states)
            raise OptionError(
                f"BiasDifferences: they ask for h({x}) − h({s}) ≥ {needed:g}, more than span_bound = {c:g} allows. Raise one of them."
            )
        both = np.minimum(d, d.min(axis=1)[:, None] + c + d.min(axis=0))
        np.fill_diagonal(both, 0.0)
        if not np.isfinite(both).all():
            s, x = divmod(int(np.argmax(both == np.inf)), n_states)
            raise OptionError(
                f"BiasDifferences: all pairs of states must be bounded; nothing follows for h({s}) − h({x}). Give a finite span_bound, too."
            )
        return immutable(both, np.float64)

    def project(self, u: ArrayLike) -> NDArray[np.float64]:
        """Return the largest v ≤ u that keeps all differences, v(s) = min over s' of u(s') + d(s, s') [S]."""
        values = checks.vector("BiasDifferences", "u", u, self.n_states)
        projected: NDArray[np.float64] = np.array([(values + row).min() for row in self.bounds])
        return projected

    def excess(self, h: ArrayLike) -> float:
        """Return by how much h breaks them, max h(s) − h(s') − d(s, s'); 0 where it keeps them all."""
        values = checks.vector("BiasDifferences", "h", h, self.n_states)
        return float(max((value - values - row).max() for value, row in zip(values, self.bounds, strict=True)))

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the bounds."""
        return hashlib.sha256(self.bounds.tobytes()).hexdigest()

    def __eq__(self, other: Any) -> bool:
        """Tell whether the bounds are the same."""
        return isinstance(other, BiasDifferences) and self.digest == other.digest and self.n_states == other.n_states

    def __hash__(self) -> int:
        """Return a hash of the bounds."""
        return hash(self.digest)

    def __str__(self) -> str:
        """Return a word that stands for them in the text form of an agent."""
        return f"sha-{self.digest[:12]}"

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<BiasDifferences: {self.n_states} states, {self}>"


def _close(d: NDArray[np.float64], tol: float) -> bool:
    """Close d in place, up to ``tol``; return False where a cycle is negative. Ctrl-C is seen about every 0.1 s."""
    S = d.shape[0]
    pivots = max(1, 10**8 // S**2)
    return all(close(d, tol, k, min(k + pivots, S)) for k in range(0, S, pivots))


def _contradiction(d: NDArray[np.float64], tol: float) -> ModelError:
    """Return the error that names a cycle of negative sum: the walk from a state to itself when such a one first appears."""
    S, short = d.shape[0], d.copy()
    np.fill_diagonal(short, np.minimum(d.diagonal(), 0.0))
    step = np.tile(np.arange(S), (S, 1))  # where the shortest walk goes first
    for k in range(S):
        if short.diagonal().min() < 0:
            break
        through = short[:, k, None] + short[k]
        better = through < short - tol
        short[better], step[better] = through[better], np.broadcast_to(step[:, k, None], better.shape)[better]
    end = int(short.diagonal().argmin())
    cycle = [end]
    while (at := int(step[cycle[-1], end])) != end:
        cycle = [*cycle[: cycle.index(at)], at] if at in cycle else [*cycle, at]
    total = sum(d[s, x] for s, x in zip(cycle, [*cycle[1:], end], strict=True))
    names = " → ".join(map(str, [*cycle, end]))
    return ModelError(
        f"BiasDifferences: the differences contradict each other: d sums to {total:g} < 0 around the states {names}. Raise one of them."
    )
