"""Gain and bias of a Markov reward process (P, r), multichain-safe, to a stated accuracy or not at all.

With recurrent classes C and the stationary distribution μ_C of each: g is μ_Cᵀr on C, and on transient states the mean of the gains of
the classes reached. The bias is the solution of h = r − g + Ph with μ_Cᵀh = 0 on every class, which is P*h = 0: the bias proper
(Puterman 1994, App. A).

Each block is solved in double precision first, with a bound on the error. Where that is not good enough, as on nearly decomposable
chains, the chain is solved again: with residuals in extended precision, by elimination without subtractions, with more and more decimal
digits. Where that would take too long, an error is raised. What leaves a state is summed from its other successors: p(s, s) may round to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import DecimalException
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import SpanrlError
from spanrl.models.solution import span
from spanrl.planning.blocks import Recurrent, Transient
from spanrl.planning.direct import DIRECT, Direct
from spanrl.planning.elimination import Numbers
from spanrl.planning.multichain import closed_components
from spanrl.planning.precise import DIGITS, Precise, decimal_digits
from spanrl.planning.problem import Vector

GAIN_ACCURACY = 1e-9
"""Gains are right to this part of the spread of the rewards."""

BIAS_ACCURACY = 1e-8
"""Biases are right to this part of their span, or of the spread of the rewards where that is more."""

_ROUNDING = 1e-15
_MOST_SOURCES = 50  # beyond, gains of transient states are what the equations give


class Way(Protocol):
    """How the blocks of a chain are solved."""

    def numbers(self, values: Vector) -> Numbers:
        """Return ``values`` as this way calculates with them."""

    def product(self, M: Any, x: Numbers) -> Numbers:
        """Return Mx of a sparse M."""

    def recurrent(self, P: Any, r: Numbers) -> Recurrent:
        """Return gain and bias of an irreducible chain."""

    def transient(self, P: Any, left: Numbers, b: Numbers) -> Transient:
        """Solve x = b + Px for a transient block P that is left with the probabilities ``left``."""


class ChainValue(NamedTuple):
    """Gain [S] and bias [S] of a chain with bounds on their errors, and a bound on its expected times to reference states.

    States with the same ``source`` ≥ 0 have the same gain, not only to rounding; −1 stands for a mixture of several.
    """

    gain: Numbers
    bias: Numbers
    gain_error: float
    bias_error: float
    time: float
    source: NDArray[np.int64]


def chain_gain_bias(P: Any, r: Vector) -> ChainValue:
    """Return gain [S] and bias [S] of the chain P (scipy sparse) with rewards r, as accurate as promised, in double precision or better.

    Raises SpanrlError where that cannot be done.
    """
    if np.ptp(r) == 0.0:
        return ChainValue(r.copy(), np.zeros(r.size), 0.0, 0.0, 0.0, np.zeros(r.size, dtype=np.int64))
    best: ChainValue | None = None
    trouble: Exception | None = None
    for attempt in _attempts(P, r):
        try:
            value = attempt()
        except (SpanrlError, DecimalException) as error:
            trouble = trouble or error
            continue
        if is_accurate(value, r):
            return value
        best = value
    if best is None and isinstance(trouble, SpanrlError):
        raise trouble
    if best is None or not np.isfinite(best.bias).all():
        why = "its bias exceeds the range of double precision"
    else:
        why = f"the gain is right to {best.gain_error:.2g}, the bias to {best.bias_error:.2g}, and more digits would take too long"
    raise SpanrlError(
        f"evaluate: a chain of {r.size} states cannot be evaluated as accurately as promised: {why}. "
        "Leave out transitions that are too rare to matter, or aggregate states."
    )


def is_accurate(value: ChainValue, r: Vector) -> bool:
    """Tell whether gain and bias are as accurate as promised, and numbers of double precision at all."""
    spread, rounding = float(np.ptp(r)), _ROUNDING * float(np.abs(r).max())
    return bool(
        np.isfinite(value.bias).all()
        and value.gain_error <= max(GAIN_ACCURACY * spread, rounding)
        and value.bias_error <= max(BIAS_ACCURACY * max(spread, span(value.bias)), rounding)
    )


def _attempts(P: Any, r: Vector) -> list[Callable[[], ChainValue]]:
    """Return what to try, the cheapest first; after the first, without the constant in the rewards, which would eat digits."""
    shift = float(r.min() / 2 + r.max() / 2)
    centred = r - shift

    def shifted(value: ChainValue) -> ChainValue:
        return value._replace(gain=value.gain + shift)

    attempts: list[Callable[[], ChainValue]] = [
        lambda: solve_chain(Direct(), P, r),
        lambda: shifted(solve_chain(Direct(), P, centred)),
        lambda: shifted(refined(P, centred)),
    ]
    if r.size <= DIRECT:
        attempts.append(lambda: shifted(solve_chain(Precise(), P, centred)))
        attempts.extend(lambda digits=digits: shifted(_in_decimals(digits, P, centred)) for digits in DIGITS)  # type: ignore[misc]
    return attempts


def refined(P: Any, r: Vector) -> ChainValue:
    """Solve directly, with gain and bias in extended precision."""
    return solve_chain(Direct(refined=True), P, r)


def _in_decimals(digits: int, P: Any, r: Vector) -> ChainValue:
    """Solve with decimal digits and round the result."""
    with decimal_digits(digits) as way:
        value = solve_chain(way, P, r)
    return value._replace(gain=value.gain.astype(np.float64), bias=value.bias.astype(np.float64))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the bounds on the error tell
def solve_chain(way: Way, P: Any, r: Vector) -> ChainValue:
    """Return gain and bias of the chain by one way, in its numbers."""
    S = r.size
    P = P.tocsr()
    row = np.repeat(np.arange(S), np.diff(P.indptr))
    label, closed = closed_components(S, row, P.indices)
    reward = way.numbers(r)
    gain, bias = way.numbers(np.zeros(S)), way.numbers(np.zeros(S))
    order = np.argsort(label, kind="stable")
    bounds = np.searchsorted(label[order], np.arange(label.max() + 2))
    recurrent = np.zeros(S, dtype=bool)
    gain_error = bias_error = time = 0.0
    source = np.full(S, -1, dtype=np.int64)
    alone: dict[float, int] = {}  # absorbing states with equal rewards have equal gains
    for k in closed:
        states = order[bounds[k] : bounds[k + 1]]
        recurrent[states] = True
        source[states] = k
        if states.size == 1:
            gain[states] = reward[states]
            source[states] = alone.setdefault(float(r[states[0]]), int(k))
            continue
        part = way.recurrent(P[states][:, states] if states.size < S else P, reward[states])
        gain[states], bias[states] = part.gain, part.bias
        gain_error, bias_error = max(gain_error, part.gain_error), max(bias_error, part.bias_error)
        time = max(time, part.time)
    transient = np.flatnonzero(~recurrent)
    if transient.size:
        into, inside = P[transient][:, np.flatnonzero(recurrent)], P[transient][:, transient]
        left = way.product(into, way.numbers(np.ones(S - transient.size)))
        source = _sources(P, source)
        if (source >= 0).all() and source.max() == source.min():  # then there is nothing to solve, and nothing to round
            gain[transient] = gain[recurrent][0]
        else:
            absorbed = way.transient(inside, left, way.product(into, gain[recurrent]))
            gain[transient], gain_error = absorbed.x, gain_error + absorbed.error
            for k in np.unique(source[transient]):
                if k >= 0:
                    gain[transient[source[transient] == k]] = gain[recurrent & (source == k)][0]
        rest = way.transient(inside, left, reward[transient] - gain[transient] + way.product(into, bias[recurrent]))
        bias[transient] = rest.x
        bias_error += rest.error + rest.time * gain_error
        time += rest.time
    return ChainValue(gain, bias, gain_error, bias_error, time, source)


def _sources(P: Any, source: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for the transient states, too, where their gain comes from, if from one place alone."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    known = np.unique(source[source >= 0])
    if known.size == 1:
        return np.full_like(source, known[0])
    if known.size > _MOST_SOURCES:
        return source
    S = source.size
    row, found, reached = np.repeat(np.arange(S), np.diff(P.indptr)), source.copy(), np.zeros(S, dtype=np.int64)
    for k in known:
        start = np.flatnonzero(source == k)  # one more node leads to them; all edges are turned round
        edges = np.concatenate((P.indices, np.full(start.size, S))), np.concatenate((row, start))
        graph = csr_array((np.ones(edges[0].size, dtype=np.int8), edges), shape=(S + 1, S + 1))
        there = breadth_first_order(graph, S, return_predecessors=False)
        there = there[there < S]
        there = there[source[there] < 0]
        reached[there] += 1
        found[there] = k
    return np.where((source < 0) & (reached != 1), -1, found)
