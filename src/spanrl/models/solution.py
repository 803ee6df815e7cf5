"""What solvers return: a policy with a certificate, the evaluation of a policy, and the analysis of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spanrl.models.checks import immutable
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
        object.__setattr__(result, name, immutable(array, array.dtype))


def _range(values: NDArray[np.float64]) -> str:
    """Return the value that all have to the digits shown, or the smallest and the largest."""
    low, high = f"{np.min(values):.9g}", f"{np.max(values):.9g}"
    return low if low == high else f"{low} … {high}"


def span(v: NDArray[np.float64]) -> float:
    """Return sp(v) = max v − min v."""
    return float(v.max() - v.min())


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """Result of :func:`spanrl.solve`.

    ``gain_bounds`` is the certificate: [min(Fv − v), max(Fv − v)] holds the fixed-point gain g⁺ for any v, where F is the operator
    solved for (L, or T_c with a span bound). ``bias`` is v, shifted to 0 at the reference state (``evaluate`` and ``analyse`` give
    a bias with P*h = 0, another constant away); ``span`` is its span, at most the span bound. ``feasible`` tells whether T_c v is attained
    by ``policy`` in every state, ``truncated`` [S] in which states T_c cut Lv down.

    ``method`` says how it was found: "value-iteration", "modified-policy-iteration" (policies evaluated by sweeps), "policy-iteration,
    Krylov" or "policy-iteration, factorised" (by linear systems), or "policy-iteration" where that was asked for. ``sweeps`` counts passes
    over the rows, ``seconds`` the clock by phase and in total, ``factor_size`` the entries of the largest factors, 0 where there were none.

    Attributes:
        policy: a :class:`spanrl.Policy`.
        gain: the midpoint of ``gain_bounds``.
        gain_bounds: the certificate.
        bias, span: v and its span.
        sweeps, residual, converged: passes over the rows, the width of the bracket, and whether it is at most tol.
        feasible, truncated: see above.
        method, seconds, factor_size: how it was found.

    >>> import spanrl
    >>> solution = spanrl.solve(spanrl.make("riverswim").mdp)
    >>> solution.converged, solution.residual <= 1e-6
    (True, True)
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
    method: str
    seconds: dict[str, float]
    factor_size: int
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
            f"Solution: {state} in {self.sweeps} sweeps by {self.method}",
            f"gain {self.gain:.9g}, certified in [{low:.9g}, {high:.9g}]",
            f"bias span {self.span:.9g}; truncated in {int(self.truncated.sum())} of {self.truncated.size} states"
            + ("" if self.feasible else "; the truncation is not feasible everywhere"),
            str(self.policy),
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<Solution: gain {self.gain:.6g}, span {self.span:.6g}, {'converged' if self.converged else 'not converged'}>"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Gain [S] and bias [S] of a policy (P*h = 0), and the span of the bias.

    Attributes:
        gain: [S].
        bias: [S], with P*h = 0.
        span: of the bias.

    >>> import spanrl
    >>> spanrl.evaluate(spanrl.make("two-state").mdp, spanrl.Policy.deterministic([0, 1])).gain.tolist()
    [1.0, 1.0]
    """

    gain: NDArray[np.float64]
    bias: NDArray[np.float64]
    span: float

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        _freeze(self, "gain", "bias")

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<Evaluation: {self.gain.size} states, gain {_range(self.gain)}, bias span {self.span:.9g}>"


@dataclass(frozen=True, eq=False, repr=False)
class Analysis:
    """What :func:`spanrl.analyse` finds out about an MDP.

    ``gain`` is None where the model is multichain, ``span`` where the optimal gain differs between states; ``gains`` [S] always tells
    the optimal gain of each state.
    ``diameter`` is ``inf`` where some state cannot be reached from some other, None where it was not computed. ``normalisation`` says
    which of the biases, all a constant apart, ``bias`` is.

    Attributes:
        n_states, n_actions, n_pairs: the size of the model.
        max_support: Γ, the largest number of successors of a pair.
        classification: "communicating", "weakly communicating" or "multichain".
        gain: g*, None where the model is multichain.
        gains: the optimal gain of each state [S].
        bias: h* [S]; ``normalisation`` says which of those that differ by a constant.
        span: sp(h*), None where the optimal gain differs between states.
        diameter: D, ``inf`` where some state cannot be reached from some other, None where it was not computed.
        policy: an optimal one.

    >>> import spanrl
    >>> spanrl.analyse(spanrl.make("two-state").mdp).classification
    'communicating'
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

    @property
    def normalisation(self) -> str:
        """How the bias is normalised: "P*h = 0", the bias proper, or "0 in state 0" where it comes from the solver."""
        return "0 in state 0" if self.bias[0] == 0.0 else "P*h = 0"

    def __str__(self) -> str:
        """Summarise in a few lines, however many states there are."""
        diameter = "not computed" if self.diameter is None else f"{self.diameter:.9g}"
        span = "none, as the gain differs between states" if self.span is None else f"{self.span:.9g}"
        return "\n".join(
            (
                f"Analysis: {self.n_states} states, {self.n_actions} actions, {self.n_pairs} pairs, "
                f"at most {self.max_support} successors of a pair",
                f"class: {self.classification}; diameter: {diameter}",
                f"optimal gain: {_range(self.gains)}",
                f"span of the optimal bias: {span}; bias from {self.bias.min():.6g} to {self.bias.max():.6g} ({self.normalisation})",
                f"policy: {'deterministic' if self.policy.is_deterministic else 'randomised'}; print its .policy to see it",
            )
        )

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<Analysis: {self.n_states} states, {self.classification}, gain {_range(self.gains)}>"
