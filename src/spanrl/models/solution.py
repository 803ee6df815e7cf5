"""What solvers return: a policy with a certificate, the evaluation of a policy, and the analysis of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spanrl.models.checks import frozen
from spanrl.models.policy import Policy

ExtendedChain = tuple[Any, NDArray[np.float64]]


class HasChain(Protocol):
    """A decision rule that knows the Markov reward process it makes."""

    @property
    def optimistic(self) -> ExtendedChain:
        """Return P̃ [S, S] and r̃ [S]."""


def _freeze(result: object, *names: str) -> None:
    for name in names:
        array = getattr(result, name)
        object.__setattr__(result, name, frozen(array, array.dtype))


def span(v: NDArray[np.float64]) -> float:
    """Return sp(v) = max v − min v."""
    return float(np.max(v) - np.min(v))


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """Result of :func:`spanrl.solve`.

    ``gain_bounds`` is the certificate: [min(Fv − v), max(Fv − v)] holds the fixed-point gain g⁺ for any v, where F is the operator
    solved for (L, or T_c with a span bound). ``bias`` is v, shifted to 0 at the reference state; ``span`` is its span, at most
    the span bound. ``feasible`` tells whether T_c v is attained by ``policy`` in every state, ``truncated`` [S] in which states T_c
    cut Lv down.
    """

    policy: Policy
    gain: float
    gain_bounds: tuple[float, float]
    bias: NDArray[np.float64]
    span: float
    sweeps: int
    residual: float
    converged: bool
    feasible: bool
    truncated: NDArray[np.bool_]
    _rule: HasChain = field(repr=False)

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        _freeze(self, "bias", "truncated")

    @property
    def optimistic(self) -> ExtendedChain:
        """The Markov reward process of the extended policy: (P̃, a scipy sparse [S, S] matrix, and r̃ [S]).

        Built when asked for: with a wide box it can be far larger than the model.
        """
        return self._rule.optimistic

    def __str__(self) -> str:
        """Summarise in a few lines."""
        low, high = self.gain_bounds
        state = "converged" if self.converged else "NOT converged"
        lines = [
            f"Solution: {state} in {self.sweeps} sweeps",
            f"gain {self.gain:.9g}, certified in [{low:.9g}, {high:.9g}]",
            f"bias span {self.span:.9g}; truncated in {int(self.truncated.sum())} of {self.truncated.size} states"
            + ("" if self.feasible else "; the truncation is not feasible everywhere"),
            str(self.policy),
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<Solution: gain {self.gain:.6g}, span {self.span:.6g}, {'converged' if self.converged else 'not converged'}>"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Gain [S] and bias [S] of a policy (P*h = 0), and the span of the bias."""

    gain: NDArray[np.float64]
    bias: NDArray[np.float64]
    span: float

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        _freeze(self, "gain", "bias")


@dataclass(frozen=True, eq=False)
class Analysis:
    """What :func:`spanrl.analyse` finds out about an MDP.

    ``gain`` is None where the model is multichain, ``span`` where the optimal gain differs between states; ``gains`` [S] always tells
    the optimal gain of each state.
    ``diameter`` is ``inf`` where some state cannot be reached from some other, None where it was not computed.
    """

    n_states: int
    n_actions: int
    n_pairs: int
    max_support: int
    classification: str
    gain: float | None
    gains: NDArray[np.float64]
    bias: NDArray[np.float64]
    span: float | None
    diameter: float | None
    policy: Policy

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        _freeze(self, "gains", "bias")
