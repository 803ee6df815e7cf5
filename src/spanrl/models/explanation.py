"""Why a solution plays what it plays: the value of each action in a state, and by how much it loses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.display import SHOWN, SHOWN_IN_HTML, Table, as_html, as_text, left_out
from spanrl.models.checks import immutable
from spanrl.models.labels import text_of
from spanrl.terminal import visible


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The actions of one state, the best first: result of ``solution.explain(state)``.

    The value of an action is r(s, a) + p(·|s, a)·h − g, with the gain g and the bias h of the solution (for bounded models, of the best or
    the worst model in the set, as was solved for). Of the best action it is h(s), but for the width of the certificate and, in truncated
    states, for what the span bound cuts off. An action loses what its value lacks to that of the best. In a model with costs all are costs,
    and the best has the least value.

    Attributes:
        state: its name, or its number.
        actions: names or numbers, the best first.
        value, loss: [k].
        reward: r(s, a) [k]; a cost, in a model with costs.
        probability: with which the policy plays each [k].
        bias: h(s).
        truncated: whether the span bound holds the value of the state at h(s).
        costs: whether the model has costs.

    >>> import spanrl
    >>> print(spanrl.solve(spanrl.make("two-state").mdp).explain("s1"))
    State s1 of bias 1; best a1
    action  played  reward  value  loses
    a1      1       1       1      0
    a0      0       0       -1     2
    """

    state: Any
    actions: tuple[Any, ...]
    value: NDArray[np.float64]
    loss: NDArray[np.float64]
    reward: NDArray[np.float64]
    probability: NDArray[np.float64]
    bias: float
    truncated: bool
    costs: bool = False

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("value", "loss", "reward", "probability"):
            object.__setattr__(self, name, immutable(getattr(self, name), np.float64))

    def _summary(self) -> str:
        best = ", ".join(visible(text_of(a)) for a, lost in zip(self.actions, self.loss, strict=True) if lost == 0.0)
        lines = [f"State {visible(text_of(self.state))} of bias {self.bias:.6g}; best {best}"]
        if self.truncated:
            mixed = np.count_nonzero(self.probability) > 1
            rest = "by mixing the best action with the worst" if mixed else "and the policy alone does not reach it"
            lines.append(
                f"Truncated: the span bound holds the value at {self.bias:.6g} instead of {self.value[0]:.6g}, {rest}."
            )
        return "\n".join(lines)

    def _table(self, most: int) -> Table:
        columns = zip(self.actions, self.probability, self.reward, self.value, self.loss, strict=True)
        rows = [(text_of(name), *(f"{x:.6g}" for x in numbers)) for name, *numbers in columns]
        more = left_out(len(rows), most, "actions")
        return Table(("action", "played", "cost" if self.costs else "reward", "value", "loses"), rows[:most], more)

    def __str__(self) -> str:
        """Print as a table."""
        return f"{self._summary()}\n{as_text(self._table(SHOWN))}"

    def _repr_html_(self) -> str:
        return as_html(self._summary(), self._table(SHOWN_IN_HTML))

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<Explanation: {self._summary().splitlines()[0]}>"
