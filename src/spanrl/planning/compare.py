"""Two policies side by side: what each is worth, and where they differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spanrl.display import SHOWN, SHOWN_IN_HTML, Table, as_html, as_text, left_out
from spanrl.models.checks import ROUNDING, immutable
from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.models.solution import Evaluation, gain_word, value_range
from spanrl.planning.evaluate import evaluation


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Result of :func:`spanrl.compare`.

    Attributes:
        first, second: the policies, with the names of the model.
        first_value, second_value: their evaluations.
        difference: gain (cost) of the second less that of the first, from each state [S].
        states: the numbers of the states in which they differ.

    >>> import spanrl
    >>> mdp = spanrl.make("two-state").mdp
    >>> spanrl.compare(mdp, spanrl.Policy.deterministic([0, 0], 2), spanrl.Policy.deterministic([0, 1])).states.tolist()
    [1]
    """

    first: Policy
    second: Policy
    first_value: Evaluation
    second_value: Evaluation
    difference: NDArray[np.float64]
    states: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        object.__setattr__(self, "difference", immutable(self.difference, np.float64))
        object.__setattr__(self, "states", immutable(self.states, np.int64))

    def _summary(self) -> str:
        gains = value_range(self.first_value.gain), value_range(self.second_value.gain)
        return (
            f"Comparison: {gain_word(self.first_value.costs)} {gains[0]} and {gains[1]}, second − first {value_range(self.difference)}\n"
            f"they differ in {self.states.size:,} of {self.first.n_states:,} states"
        )

    def _table(self, most: int) -> Table | None:
        """Return the first states in which they differ; None where there are none."""
        rows = [
            (self.first.state_label(s), self.first.describe(s), self.second.describe(s))
            for s in self.states[:most].tolist()
        ]
        more = left_out(self.states.size, most, "states in which they differ")
        return Table(("state", "first", "second"), rows, more) if rows else None

    def __str__(self) -> str:
        """Summarise, with the first states in which they differ."""
        table = self._table(SHOWN)
        return "\n".join([self._summary(), *([as_text(table)] if table else [])])

    def _repr_html_(self) -> str:
        return as_html(self._summary(), self._table(SHOWN_IN_HTML))

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<{self._summary().replace(chr(10), '; ')}>"


def compare(mdp: MDP, first: Policy, second: Policy) -> Comparison:
    """Evaluate two policies in a model and say where they differ.

    Args:
        mdp: the model.
        first, second: policies for it.

    Returns:
        A :class:`Comparison`; gains are as accurate as those of :func:`spanrl.evaluate`, and probabilities that differ by 1e-12 or less
        count as equal.

    Raises:
        OptionError: one of them is no policy, or that of another model.
        SpanrlError: the accuracy of ``evaluate`` is out of reach.

    >>> import spanrl
    >>> mdp = spanrl.make("two-state").mdp
    >>> print(compare(mdp, spanrl.Policy.deterministic([0, 0], 2), spanrl.solve(mdp).policy))
    Comparison: gain 0 and 1, second − first 1
    they differ in 1 of 2 states
    state  first  second
    s1     a0     a1
    """
    given = (first, "the first policy"), (second, "the second policy")
    values = [evaluation(mdp, policy, "compare", what) for policy, what in given]
    named = [Policy.trusted(policy.probs, mdp.state_names, mdp.action_names) for policy in (first, second)]
    differ = np.abs(first.probs - second.probs).max(axis=1) > ROUNDING
    difference = values[1].gain - values[0].gain
    return Comparison(named[0], named[1], values[0], values[1], difference, np.flatnonzero(differ))
