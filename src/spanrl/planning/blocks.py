"""What solving one block of a Markov chain gives, a recurrent class or the transient states: a solution and a bound on its error."""

from __future__ import annotations

from math import inf, isnan
from typing import Any, NamedTuple

from spanrl.planning.elimination import Numbers


class Recurrent(NamedTuple):
    """Gain and bias of an irreducible chain, bounds on their errors, and the largest expected time to its reference state."""

    gain: Any
    bias: Numbers
    gain_error: float
    bias_error: float
    time: float


class Transient(NamedTuple):
    """The solution of x = b + Px on transient states, a bound on its error, and the largest expected time until they are left."""

    x: Numbers
    error: float
    time: float


def bound(x: Any) -> float:
    """Return x as a float; what is not a number bounds nothing."""
    value = float(x)
    return inf if isnan(value) else value
