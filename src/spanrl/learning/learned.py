"""What a learner knows at the end of a run: its last policy, and the model it has counted.

A run in memory holds both, as arrays of their own; the learner and its workspace are let go. Saved runs are curves and episodes alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl import tables
from spanrl.display import SHOWN, SHOWN_IN_HTML, Table, as_html, as_text, left_out
from spanrl.models.checks import immutable
from spanrl.models.costs import flip, flip_ends
from spanrl.models.counts import Batch, Counts
from spanrl.models.info import ProblemInfo
from spanrl.models.labels import StateNames
from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.models.policy_frame import action_column, column_kinds, state_columns

_ARRAYS = {
    "state": np.int64, "action": np.int64, "n": np.int64, "r_hat": np.float64,
    "succ_ptr": np.int64, "succ": np.int64, "times": np.int64,
}  # fmt: skip
_NEXT = 4  # next states of a pair that are shown


class Learned(NamedTuple):
    """The policy and the model of a learner; a sentence in place of one that it does not have."""

    policy: Policy | str
    model: LearnedModel | str


@dataclass(frozen=True, eq=False, repr=False)
class LearnedModel:
    """What a learner has counted: visits N(s, a), mean rewards r̂ and the frequencies p̂ of the next states.

    It is ``run.model`` after :func:`spanrl.learn`. All pairs of the problem are there, in the order of (state, action); r̂ is NaN, and the
    row of p̂ is 0, where a pair was never played.

    Attributes:
        n_states, n_actions: S, and the number of actions.
        state, action: of each pair [n_pairs].
        n: visits N(s, a) [n_pairs].
        r_hat: mean rewards [n_pairs].
        p_hat: frequencies of the next states, a scipy sparse array [n_pairs, S].
        succ_ptr, succ, times: the next states of pair i are ``succ[succ_ptr[i]:succ_ptr[i + 1]]``, seen ``times``.
        r_min, r_max: the range of the rewards.
        costs: whether the model has costs: r̂ is −cost then, as in all arrays, and what is printed, and in tables, are costs.

    >>> import spanrl
    >>> run = spanrl.learn("two-state", "ucrl", horizon=1000, seed=0)
    >>> int(run.model.n.sum()), run.model.p_hat.shape
    (1000, (4, 2))
    """

    n_states: int
    n_actions: int
    state: NDArray[np.int64]
    action: NDArray[np.int64]
    n: NDArray[np.int64]
    r_hat: NDArray[np.float64]
    succ_ptr: NDArray[np.int64]
    succ: NDArray[np.int64]
    times: NDArray[np.int64]
    r_min: float
    r_max: float
    start: NDArray[np.float64] | None = None
    state_names: StateNames | None = None
    action_names: tuple[Any, ...] | None = None
    costs: bool = False

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name, kind in _ARRAYS.items():
            object.__setattr__(self, name, immutable(getattr(self, name), kind))

    @property
    def p_hat(self) -> Any:
        """Frequencies of the next states, a scipy sparse array [n_pairs, S]; made when asked for."""
        from scipy.sparse import csr_array

        shape = self.n.size, self.n_states
        return csr_array((self._frequencies, self.succ.copy(), self.succ_ptr.copy()), shape=shape)

    @property
    def _frequencies(self) -> NDArray[np.float64]:
        """The p̂ of each listed successor."""
        out: NDArray[np.float64] = self.times / np.repeat(self.n, np.diff(self.succ_ptr))
        return out

    def to_mdp(self) -> MDP:
        """Return the MDP of the pairs that were played, with p̂ and r̂; states keep their numbers and names.

        Of a state in which nothing was played (never visited, or the run ended there) nothing is known: all its actions pay r_min and
        lead to the state that was visited most.

        >>> import spanrl
        >>> run = spanrl.learn("riverswim", "ucrl[bounds=kt]", horizon=100_000, seed=0)
        >>> spanrl.solve(run.model.to_mdp()).policy == spanrl.solve(spanrl.make("riverswim").mdp).policy
        True
        """
        visits = np.bincount(self.state, self.n, self.n_states)
        busiest = int(np.argmax(visits))
        listed = np.diff(self.succ_ptr)
        filled = np.where(visits[self.state] == 0, 1, 0)  # pairs of states in which nothing was played
        keep = (self.n > 0) | (filled > 0)
        ptr = np.concatenate(([0], np.cumsum((listed + filled)[keep])))
        succ, prob = np.full(ptr[-1], busiest), np.ones(ptr[-1])
        seen = np.repeat(filled[keep] == 0, (listed + filled)[keep])
        succ[seen], prob[seen] = self.succ, self._frequencies
        reward = np.where(self.n > 0, np.clip(self.r_hat, self.r_min, self.r_max), self.r_min)[keep]
        low, high = flip_ends(self.costs, self.r_min, self.r_max)
        return MDP.from_pairs(
            self.state[keep],
            self.action[keep],
            ptr,
            succ,
            prob,
            flip(self.costs, reward),
            r_min=low,
            r_max=high,
            costs=self.costs,
            start=busiest if self.start is None else self.start,
            n_actions=self.n_actions,
            state_names=self.state_names,
            action_names=self.action_names,
        )

    def to_frame(self) -> Any:
        """Return a polars DataFrame with a row per transition that was seen.

        Returns:
            Columns that name the state and, after ``next_``, the next one, as :meth:`spanrl.Policy.to_frame` has them; ``action``, ``n``,
            ``r_hat`` (``cost_hat``, the mean cost, in a model with costs), ``times`` and ``p_hat``.
        """
        paid = "cost_hat" if self.costs else "r_hat"
        pair = np.repeat(np.arange(self.n.size), np.diff(self.succ_ptr))
        there = state_columns(self.state_names, self.n_states, self.succ)
        columns = {
            **state_columns(self.state_names, self.n_states, self.state[pair]),
            "action": action_column(self.action_names, self.n_actions)[self.action[pair]],
            "n": self.n[pair], paid: flip(self.costs, self.r_hat)[pair],
            **{f"next_{name}": column for name, column in there.items()},
            "times": self.times, "p_hat": self._frequencies,
        }  # fmt: skip
        return tables.frame(column_kinds(columns), [columns])

    def _summary(self) -> str:
        played = self.n > 0
        return (
            f"LearnedModel: {self.n.sum():,} steps, {self.succ.size:,} transitions seen\n"
            f"{np.unique(self.state[played]).size:,} of {self.n_states:,} states and "
            f"{np.count_nonzero(played):,} of {self.n.size:,} pairs played"
        )

    def _table(self, most: int) -> Table:
        """Return the pairs played most."""
        played = int(np.count_nonzero(self.n))
        order = np.argsort(-self.n, kind="stable")[: min(most, played)]
        actions = action_column(self.action_names, self.n_actions)
        rows = [
            (
                self._label(self.state[i]),
                str(actions[self.action[i]]),
                f"{self.n[i]:,}",
                f"{flip(self.costs, float(self.r_hat[i])):.6g}",
                self._next(i),
            )
            for i in order
        ]
        more = left_out(played, order.size, "pairs that were played")
        return Table(("state", "action", "N", "mean cost" if self.costs else "r̂", "p̂"), rows, more)

    def _label(self, s: int) -> str:
        return str(s) if self.state_names is None else self.state_names.text(int(s))

    def _next(self, i: int) -> str:
        """Say where a pair has led, most often first."""
        row = slice(self.succ_ptr[i], self.succ_ptr[i + 1])
        times, succ = self.times[row], self.succ[row]
        first = np.argsort(-times, kind="stable")[:_NEXT]
        shown = [f"{self._label(succ[j])}: {times[j] / self.n[i]:.3g}" for j in first]
        return ", ".join([*shown, *(["…"] if succ.size > _NEXT else [])])

    def __str__(self) -> str:
        """Summarise, with the pairs played most."""
        return f"{self._summary()}\n{as_text(self._table(SHOWN))}"

    def _repr_html_(self) -> str:
        return as_html(self._summary(), self._table(SHOWN_IN_HTML))

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<LearnedModel: {self.n.sum():,} steps, {np.count_nonzero(self.n):,} of {self.n.size:,} pairs played>"


def learned_model(info: ProblemInfo, counts: Counts, since: Batch, mdp: MDP | None) -> LearnedModel:
    """Return what was counted, with what was seen ``since`` in the episode under way; ``mdp`` lends its names and its start alone."""
    S, before = int(info.n_states), counts.n
    n = before + np.bincount(since.pair, since.times, info.n_pairs).astype(np.int64)
    paid = before * counts.r_mean + np.bincount(since.pair, since.times * since.reward, info.n_pairs)
    rows = np.repeat(np.arange(info.n_pairs), np.diff(counts.succ_ptr))
    keys = np.concatenate((rows * S + counts.succ, since.pair * S + since.succ))
    listed, place = np.unique(keys, return_inverse=True)
    times = np.bincount(place, np.concatenate((counts.times, since.times)), listed.size).astype(np.int64)
    return LearnedModel(
        n_states=S,
        n_actions=int(info.n_actions),
        state=info.pair_state,
        action=info.action,
        n=n,
        r_hat=np.where(n > 0, paid / np.maximum(n, 1), np.nan),
        succ_ptr=np.searchsorted(listed, np.arange(info.n_pairs + 1) * S),
        succ=listed % S,
        times=times,
        r_min=info.r_min,
        r_max=info.r_max,
        start=None if mdp is None else mdp.start,
        state_names=None if mdp is None else mdp.state_names,
        action_names=None if mdp is None else mdp.action_names,
        costs=mdp is not None and mdp.costs,
    )
