"""A stationary policy: a distribution over actions in every state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanrl.display import SHOWN, SHOWN_IN_HTML, Table, as_html, as_text, left_out
from spanrl.errors import ModelError
from spanrl.models import checks, labels
from spanrl.models.labels import StateNames, text_of
from spanrl.models.policy_figure import plot_policy
from spanrl.models.policy_frame import column_kinds, policy_columns
from spanrl.tables import frame, to_pandas
from spanrl.terminal import visible


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Policy:
    """A stationary randomised policy; ``probs`` [S, A] has rows that sum to one, zero where an action is unavailable.

    Args:
        probs: [S, A].
        state_names, action_names: optional, all different, as in :meth:`spanrl.MDP.from_pairs`.

    Raises:
        ModelError: a row is no distribution.

    >>> policy = Policy([[1.0, 0.0], [0.25, 0.75]])
    >>> policy.is_deterministic
    False
    >>> print(policy)
    state  action
    0      0
    1      0 (0.25), 1 (0.75)
    """

    probs: NDArray[np.float64]
    state_names: StateNames | None
    action_names: tuple[Any, ...] | None

    def __init__(
        self,
        probs: ArrayLike,
        *,
        state_names: Sequence[Any] | checks.Array | None = None,
        action_names: Sequence[Any] | None = None,
    ) -> None:
        """Check and freeze ``probs``."""
        who = "Policy"
        array = checks.numeric(who, "probs", probs, (None, None))
        S, A = array.shape
        if S == 0 or A == 0:
            raise ModelError(f"{who}: probs must have at least one state and one action; got shape {array.shape}.")
        if not 0 <= array.min() <= array.max() < np.inf:
            bad = np.any(~np.isfinite(array) | (array < 0), axis=1)
            checks.reject(
                who, bad, lambda s: f"probs[s={s}]", "must be numbers ≥ 0", None, "Rows are distributions over actions."
            )
        sums = np.einsum("sa->s", array)
        checks.reject(
            who,
            np.abs(sums - 1) > checks.SUM_TOL,
            lambda s: f"probs[s={s}] sums to {sums[s]:.12g},",
            f"must sum to 1 within {checks.SUM_TOL:g}",
            None,
            "Normalise the rows.",
        )
        object.__setattr__(self, "probs", checks.immutable(array, np.float64))
        object.__setattr__(self, "state_names", labels.state_names(who, state_names, S))
        object.__setattr__(self, "action_names", labels.action_names(who, action_names, A))

    @classmethod
    def trusted(
        cls, probs: NDArray[np.float64], state_names: StateNames | None, action_names: tuple[Any, ...] | None
    ) -> Policy:
        """Return the policy of read-only ``probs`` that are right by construction, with the names of a model; nothing is checked."""
        policy = object.__new__(cls)
        policy.__dict__.update(probs=probs, state_names=state_names, action_names=action_names)
        return policy

    @classmethod
    def deterministic(cls, actions: ArrayLike, n_actions: int | None = None) -> Policy:
        """Return the policy that plays ``actions[s]`` in state s, out of ``n_actions`` (default: the largest + 1).

        >>> Policy.deterministic([1, 0]).probs.tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        chosen = checks.integers("Policy", "actions", actions)
        if chosen.size == 0:
            raise ModelError("Policy: actions must name an action for at least one state; got none.")
        if n_actions is not None and not (isinstance(n_actions, Integral) and n_actions >= 1):
            raise ModelError(f"Policy: n_actions must be a whole number ≥ 1; got {n_actions!r}.")
        A = int(chosen.max()) + 1 if n_actions is None else int(n_actions)
        checks.reject(
            "Policy",
            (chosen < 0) | (chosen >= A),
            lambda s: f"actions[{s}]",
            f"must be an action in 0..{A - 1}",
            chosen,
            "Check n_actions.",
        )
        probs = np.zeros((chosen.size, A))
        probs[np.arange(chosen.size), chosen] = 1.0
        return cls(probs)

    @property
    def n_states(self) -> int:
        """S, the number of states."""
        return int(self.probs.shape[0])

    @property
    def n_actions(self) -> int:
        """A, the number of actions."""
        return int(self.probs.shape[1])

    @property
    def is_deterministic(self) -> bool:
        """Whether every state plays one action with certainty."""
        return bool((self.probs.max(axis=1) >= 1.0 - checks.ROUNDING).all())

    @property
    def actions(self) -> NDArray[np.int64]:
        """The actions [S] of a deterministic policy; raises where the policy mixes."""
        mixed = self.probs.max(axis=1) < 1.0 - checks.ROUNDING
        checks.reject(
            "Policy",
            mixed,
            lambda s: f"state {s}",
            "mixes actions; only a deterministic policy has actions",
            None,
            "Use probs.",
        )
        actions: NDArray[np.int64] = np.argmax(self.probs, axis=1)
        return actions

    def __eq__(self, other: object) -> bool:
        """Equal when the probabilities are."""
        return isinstance(other, Policy) and np.array_equal(self.probs, other.probs)

    def __hash__(self) -> int:
        """Hash by the probabilities (they are read-only)."""
        return hash(self.probs.tobytes())

    def at(self, state: Any) -> Any:
        """Return what is played in a state: one action, or a dict of probabilities {action: p} where the policy mixes there.

        Args:
            state: the name of the state, or its number where states have no names. Actions come by name or number likewise.

        Raises:
            ModelError: no state has this name.

        >>> policy = Policy([[1.0, 0.0], [0.25, 0.75]], state_names=[(0, 0), (0, 1)], action_names=["wait", "serve"])
        >>> policy.at((0, 0)), policy.at((0, 1))
        ('wait', {'wait': 0.25, 'serve': 0.75})
        """
        row = self.probs[self.index(state)]
        played = {self.action_names[a] if self.action_names else a: float(row[a]) for a in np.flatnonzero(row).tolist()}
        return played if len(played) > 1 else next(iter(played))

    def index(self, state: Any) -> int:
        """Return the number of a state from its name; where states have no names, a number is itself."""
        return labels.state_number("Policy", self.state_names, self.n_states, state)

    def state_label(self, s: int) -> str:
        """Return the name of state s as text, or its number."""
        return self.state_names.text(s) if self.state_names is not None else str(s)

    def describe(self, s: int) -> str:
        """Say in words what is played in state s."""
        played = np.flatnonzero(self.probs[s] > 0)
        actions = [visible(text_of(self.action_names[a])) if self.action_names else str(a) for a in played]
        if played.size == 1:
            return actions[0]
        return ", ".join(f"{action} ({self.probs[s, a]:.4g})" for action, a in zip(actions, played, strict=True))

    def to_frame(self) -> Any:
        """Return a polars DataFrame with a row per state and action played there.

        Returns:
            Columns ``state`` (the name, or the number), or x0, x1, … where states are named by tuples of whole numbers; ``action``; and
            ``probability``.

        Raises:
            MissingExtraError: polars is not installed.

        >>> Policy([[1.0, 0.0], [0.25, 0.75]], state_names=[(0, 0), (0, 1)], action_names=["wait", "serve"]).to_frame().rows()
        [(0, 0, 'wait', 1.0), (0, 1, 'wait', 0.25), (0, 1, 'serve', 0.75)]
        """
        columns = policy_columns(self)
        return frame(column_kinds(columns), [columns])

    def to_pandas(self) -> Any:
        """Return the table of :meth:`to_frame` as a pandas DataFrame; pyarrow is not needed.

        Raises:
            MissingExtraError: polars or pandas is not installed.
        """
        return to_pandas(self.to_frame())

    def plot(
        self, x: int | None = None, y: int | None = None, *, at: Mapping[int, int] | None = None, ax: Any = None
    ) -> Any:
        """Draw the policy over one or two coordinates of the state names: its switching curves.

        Over two coordinates each state is a cell in the colour of its action (mixed, with a dot, where the policy mixes); over one, actions
        are steps, and dots as large as probabilities. Names that are numbers are the one coordinate; states of other names are numbered.

        Args:
            x, y: which coordinates to draw over, from 0; the first two by default. Give x alone for one.
            at: the values of all others, {coordinate: value}.
            ax: where to draw; new axes by default.

        Returns:
            The axes.

        Raises:
            OptionError: there is no such coordinate, or others must be fixed.
            MissingExtraError: matplotlib is not installed.

        >>> policy = Policy([[1.0, 0.0], [0.0, 1.0]], state_names=[(0, 0), (0, 1)], action_names=["wait", "serve"])
        >>> [text.get_text() for text in policy.plot().get_legend().get_texts()]
        ['wait', 'serve']
        """
        return plot_policy(self, x, y, at, ax)

    def table(self, most: int) -> Table:
        """Return the first states and what is played there."""
        shown = min(self.n_states, most)
        rows = [(self.state_label(s), self.describe(s)) for s in range(shown)]
        return Table(("state", "action"), rows, left_out(self.n_states, shown, "states"))

    def __str__(self) -> str:
        """Print as a table, the first states only where there are many."""
        return as_text(self.table(SHOWN))

    def _repr_html_(self) -> str:
        return as_html(repr(self)[1:-1], self.table(SHOWN_IN_HTML))

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<Policy: {self.n_states} states, {self.n_actions} actions, {'deterministic' if self.is_deterministic else 'randomised'}>"
