"""What solvers return: a policy with a certificate, the evaluation of a policy, and the analysis of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spanrl.display import SHOWN_IN_HTML, Table, as_html, left_out
from spanrl.models.checks import immutable
from spanrl.models.costs import flip
from spanrl.models.explanation import Explanation
from spanrl.models.labels import StateNames
from spanrl.models.policy import Policy

ExtendedChain = tuple[Any, NDArray[np.float64]]


class ActionValues(NamedTuple):
    """The actions of one state, their rewards, and their values r + p·v at a vector v; what rounding may have added to these."""

    action: NDArray[np.int64]
    reward: NDArray[np.float64]
    value: NDArray[np.float64]
    v: NDArray[np.float64]
    rounding: float


class HasChain(Protocol):
    """A decision rule that knows the Markov reward process it makes."""

    @property
    def optimistic(self) -> ExtendedChain:
        """Return P̃ [S, S] and r̃ [S]."""

    def action_values(self, state: int) -> ActionValues:
        """Return the values of the actions of a state."""


def _freeze(result: object, *names: str) -> None:
    for name in names:
        array = getattr(result, name)
        object.__setattr__(result, name, immutable(array, array.dtype))


def value_range(values: NDArray[np.float64]) -> str:
    """Return the value that all have to the digits shown, or the smallest and the largest."""
    low, high = f"{np.min(values):.9g}", f"{np.max(values):.9g}"
    return low if low == high else f"{low} … {high}"


def gain_word(costs: bool) -> str:
    """Return what the gain of a model is called."""
    return "average cost" if costs else "gain"


def span(v: NDArray[np.float64]) -> float:
    """Return sp(v) = max v − min v."""
    return float(v.max() - v.min())


class SolutionAt(NamedTuple):
    """What a :class:`Solution` says of one state."""

    state: Any
    """Its name, or its number where states have no names."""
    action: Any
    """The action that is played there, or {action: probability} where the policy mixes, as in :meth:`Policy.at`."""
    bias: float
    truncated: bool


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
        costs: whether the model has costs; ``gain``, ``gain_bounds`` and ``bias`` are costs then, the lower the better.

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
    costs: bool = False

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        _freeze(self, "bias", "truncated")

    @property
    def optimistic(self) -> ExtendedChain:
        """The Markov reward process of the extended policy: (P̃, a scipy sparse [S, S] matrix, and r̃ [S]).

        Built when asked for: with a wide box it can be far larger than the model. r̃ are rewards, −costs in a model with costs.
        """
        return self._rule.optimistic

    @property
    def state_names(self) -> StateNames | None:
        """The names of the states of the model; None where it has none."""
        return self.policy.state_names

    def explain(self, state: Any) -> Explanation:
        """Return the value of each action in a state, and by how much it loses against the best.

        Args:
            state: the name of the state, or its number where states have no names.

        Raises:
            ModelError: no state has this name.

        >>> import spanrl
        >>> spanrl.solve(spanrl.make("two-state").mdp).explain("s1")
        <Explanation: State s1 of bias 1; best a1>
        """
        s, policy = self.policy.index(state), self.policy
        found = self._rule.action_values(s)  # in rewards
        value = found.value - found.v[0] + flip(self.costs, float(self.bias[0])) - flip(self.costs, self.gain)
        order = np.argsort(-value, kind="stable")
        loss = value[order[0]] - value[order]
        loss[loss <= found.rounding] = 0.0
        names, played = policy.action_names, found.action[order]
        return Explanation(
            state,
            tuple(int(a) if names is None else names[a] for a in played),
            flip(self.costs, value[order]),
            loss,
            flip(self.costs, found.reward[order]),
            policy.probs[s, played],
            float(self.bias[s]),
            bool(self.truncated[s]),
            self.costs,
        )

    def at(self, state: Any) -> SolutionAt:
        """Return action, bias and whether the value was cut down in a state, given by its name (by its number where there are no names).

        Raises:
            ModelError: no state has this name.

        >>> import spanrl
        >>> spanrl.solve(spanrl.make("two-state").mdp).at("s1")
        SolutionAt(state='s1', action='a1', bias=1.0, truncated=False)
        """
        s = self.policy.index(state)
        return SolutionAt(state, self.policy.at(state), float(self.bias[s]), bool(self.truncated[s]))

    def _summary(self) -> list[str]:
        low, high = self.gain_bounds
        state = "converged" if self.converged else "NOT converged"
        return [
            f"Solution: {state} in {self.sweeps} sweeps by {self.method}",
            f"{gain_word(self.costs)} {self.gain:.9g}, certified in [{low:.9g}, {high:.9g}]",
            f"bias span {self.span:.9g}; truncated in {int(self.truncated.sum())} of {self.truncated.size} states"
            + ("" if self.feasible else "; the truncation is not feasible everywhere"),
        ]

    def __str__(self) -> str:
        """Summarise in a few lines."""
        return "\n".join([*self._summary(), str(self.policy)])

    def _repr_html_(self) -> str:
        played = self.policy.table(SHOWN_IN_HTML)
        rows = [(*row, f"{h:.6g}") for row, h in zip(played.rows, self.bias, strict=False)]
        return as_html("\n".join(self._summary()), Table((*played.head, "bias"), rows, played.more))

    def __repr__(self) -> str:
        """Return a one-line summary."""
        state = "converged" if self.converged else "not converged"
        return f"<Solution: {gain_word(self.costs)} {self.gain:.6g}, span {self.span:.6g}, {state}>"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Gain [S] and bias [S] of a policy (P*h = 0), and the span of the bias.

    Attributes:
        gain: [S].
        bias: [S], with P*h = 0.
        span: of the bias.
        state_names: those of the model; None where it has none.
        costs: whether the model has costs; ``gain`` and ``bias`` are costs then.

    >>> import spanrl
    >>> spanrl.evaluate(spanrl.make("two-state").mdp, spanrl.Policy.deterministic([0, 1])).gain.tolist()
    [1.0, 1.0]
    """

    gain: NDArray[np.float64]
    bias: NDArray[np.float64]
    span: float
    state_names: StateNames | None = None
    costs: bool = False

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        _freeze(self, "gain", "bias")

    def _repr_html_(self) -> str:
        shown = min(self.gain.size, SHOWN_IN_HTML)
        names = [str(s) if self.state_names is None else self.state_names.text(s) for s in range(shown)]
        rows = [(name, f"{g:.9g}", f"{h:.6g}") for name, g, h in zip(names, self.gain, self.bias, strict=False)]
        return as_html(
            repr(self)[1:-1],
            Table(("state", gain_word(self.costs), "bias"), rows, left_out(self.gain.size, shown, "states")),
        )

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<Evaluation: {self.gain.size} states, {gain_word(self.costs)} {value_range(self.gain)}, bias span {self.span:.9g}>"


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
        costs: whether the model has costs; ``gain``, ``gains`` and ``bias`` are costs then, the lower the better.

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
    costs: bool = False

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        _freeze(self, "gains", "bias")

    @property
    def state_names(self) -> StateNames | None:
        """The names of the states of the model; None where it has none."""
        return self.policy.state_names

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
                f"optimal {gain_word(self.costs)}: {value_range(self.gains)}",
                f"span of the optimal bias: {span}; bias from {self.bias.min():.6g} to {self.bias.max():.6g} ({self.normalisation})",
                f"policy: {'deterministic' if self.policy.is_deterministic else 'randomised'}; print its .policy to see it",
            )
        )

    def _repr_html_(self) -> str:
        return as_html(str(self))

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<Analysis: {self.n_states} states, {self.classification}, {gain_word(self.costs)} {value_range(self.gains)}>"
