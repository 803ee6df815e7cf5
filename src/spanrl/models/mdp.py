"""A finite average-reward Markov decision process, stored sparsely.

States s own a ragged list of pairs (s, a), and each pair owns a sorted list of successors::

    pair_ptr [S+1]      pairs of state s:       pair_ptr[s] … pair_ptr[s+1]
    action   [n_pairs]  the action of a pair
    succ_ptr [n_pairs+1] successors of pair i:  succ_ptr[i] … succ_ptr[i+1]
    succ, prob [n]      the next state and its probability, > 0

Nothing of size S² is kept. The arrays are read-only and were validated once, when the model was made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanrl.display import as_html
from spanrl.errors import ModelError
from spanrl.models import checks, files, label_files, labels
from spanrl.models.checks import Array
from spanrl.models.costs import flip, flip_ends, reward_range
from spanrl.models.from_function import from_function
from spanrl.models.from_grid import from_grid
from spanrl.models.labels import StateNames, text_of
from spanrl.models.pairs import PairTable
from spanrl.models.rows import available_pairs, checked_sums, clean_rows
from spanrl.terminal import visible


@dataclass(frozen=True, eq=False, repr=False)
class MDP(PairTable):
    """A finite MDP with mean rewards r(s, a) in [r_min, r_max] and transition probabilities p(s'|s, a).

    Make one with :meth:`from_function` or :meth:`from_grid`, with :meth:`from_dense`, :meth:`from_pairs` or :meth:`from_scipy`, or with
    :meth:`from_gymnasium`; the constructor itself takes arrays that are valid already. Probabilities of a row must sum to one within
    1e-8; rows that are off by more than rounding are rescaled.

    Attributes:
        n_states, n_actions, n_pairs, max_support: S, the number of actions, of available pairs, and Γ.
        pair_ptr, action: the pairs of state s are ``pair_ptr[s]:pair_ptr[s + 1]``, each with its action.
        succ_ptr, succ, prob: the successors of pair i are ``succ_ptr[i]:succ_ptr[i + 1]``, each with its probability > 0.
        reward: r(s, a) [n_pairs].
        r_min, r_max: the range of the rewards.
        start: a distribution [S].
        costs: whether the model was given costs: ``reward`` is −cost then, and results are costs, the lower the better.
        range_is_found: whether the range is that of the data, which nobody declared.
        row_error: by how much a row misses the sum of one, at the most.
        state_names, action_names: None, or a read-only sequence of names; any hashable, most often text, numbers or tuples.

    >>> mdp = MDP.from_dense([[[0, 1], [1, 0]], [[1, 0], [0, 1]]], [[0, 0.5], [0, 1]])
    >>> mdp.n_states, mdp.n_actions, mdp.n_pairs, mdp.max_support
    (2, 2, 4, 1)
    """

    ARRAYS: ClassVar[dict[str, Any]] = {
        "pair_ptr": np.int64,
        "action": np.int64,
        "succ_ptr": np.int64,
        "succ": np.uint32,
        "prob": np.float64,
        "reward": np.float64,
        "start": np.float64,
    }
    LENGTHS: ClassVar[dict[str, str]] = PairTable.LENGTHS | {"prob": "m", "reward": "n", "start": "S"}

    pair_ptr: NDArray[np.int64]
    action: NDArray[np.int64]
    succ_ptr: NDArray[np.int64]
    succ: NDArray[np.uint32]
    prob: NDArray[np.float64]
    reward: NDArray[np.float64]
    r_min: float
    r_max: float
    start: NDArray[np.float64]
    n_actions: int
    state_names: StateNames | None = None
    action_names: tuple[Any, ...] | None = None
    costs: bool = False
    range_is_found: bool = False
    row_error: float = field(init=False, default=0.0)

    def check(self) -> None:
        """Check rewards, rows and names."""
        if self.prob.size != self.succ.size or self.reward.size != self.n_pairs or self.start.size != self.n_states:
            raise ModelError("MDP: the arrays do not fit together. Use from_pairs or from_dense.")
        object.__setattr__(self, "state_names", labels.state_names("MDP", self.state_names, self.n_states))
        object.__setattr__(self, "action_names", labels.action_names("MDP", self.action_names, self.n_actions))
        checks.reward_range("MDP", self.r_min, self.r_max)
        ends, letter = flip_ends(self.costs, self.r_min, self.r_max), "cost" if self.costs else "r"
        paid = flip(self.costs, self.reward)
        checks.rewards("MDP", "reward", paid, *ends, lambda i: f"{letter}{self.where(i)}")
        sums = checked_sums(self.succ_ptr, self.prob, lambda i: f"P{self.where(i)}")
        object.__setattr__(self, "row_error", float(np.abs(sums - 1.0).max()))
        checks.reject("MDP", ~(self.prob > 0), lambda j: f"prob[{j}]", "must be above 0", self.prob, "Leave out zeros.")

    @classmethod
    def from_pairs(
        cls,
        state: ArrayLike,
        action: ArrayLike,
        succ_ptr: ArrayLike,
        succ: ArrayLike,
        prob: ArrayLike,
        reward: ArrayLike,
        *,
        r_min: float | None = None,
        r_max: float | None = None,
        costs: bool = False,
        start: ArrayLike = 0,
        n_actions: int | None = None,
        state_names: Sequence[Any] | Array | None = None,
        action_names: Sequence[Any] | None = None,
    ) -> MDP:
        """Build from pairs sorted by (state, action) and their successors in compressed rows.

        Args:
            state, action: [n_pairs], sorted, each pair once; every state 0..S−1 occurs.
            succ_ptr: [n_pairs+1], successors of pair i are ``succ[succ_ptr[i]:succ_ptr[i+1]]``.
            succ, prob: next states and probabilities; repeated successors are added up, zeros dropped.
            reward: [n_pairs], mean rewards in [r_min, r_max].
            r_min, r_max: range of the rewards (of the costs, where these are given); default: [0, 1] where that holds all of them,
                otherwise from the smallest to the largest. Learners are told the range: declare it for them.
            costs: ``reward`` holds costs. The model keeps rewards = −costs, and solvers return costs.
            start: a state, or a distribution [S].
            n_actions: the number of actions (default: the number of action names, or the largest action + 1). Policies are tables
                [S, A]: a large one must not be nearly empty.
            state_names, action_names: optional, all different: text, whole numbers, tuples of these, or any other hashable; for
                states also an array of whole numbers [S] or [S, k]. Files keep text, whole numbers and tuples; others become text.
        """
        who = "MDP"
        states, actions = checks.integers(who, "state", state), checks.integers(who, "action", action)
        pair_ptr = checks.pair_table(who, states, actions)
        n_states, n_pairs = pair_ptr.size - 1, states.size
        n_actions = checks.action_count(who, actions, n_states, n_actions, action_names)
        state_labels = labels.state_names(who, state_names, n_states)
        action_labels = labels.action_names(who, action_names, n_actions)

        def state_name(s: int) -> str:
            return labels.name_in_error(state_labels, s)

        def where(i: int) -> str:
            return f"P[s={state_name(int(states[i]))}, a={labels.name_in_error(action_labels, int(actions[i]))}]"

        ptr, succs = checks.integers(who, "succ_ptr", succ_ptr), checks.indices(who, "succ", succ)
        checks.successor_table(who, ptr, succs, n_pairs, n_states, where)
        probs = checks.numeric(who, "prob", prob, (succs.size,))
        rewards = checks.numeric(who, "reward", reward, (n_pairs,))
        low, high, is_found = reward_range(who, costs, r_min, r_max, rewards, rewards)
        ptr, succs, probs = clean_rows(who, ptr, succs, probs, where, state_name)
        return cls(
            pair_ptr,
            actions,
            ptr,
            succs,
            probs,
            flip(costs, rewards),
            low,
            high,
            checks.start_distribution(who, start, n_states),
            n_actions,
            state_labels,
            action_labels,
            bool(costs),
            is_found,
        )

    @classmethod
    def from_dense(
        cls,
        P: ArrayLike,
        r: ArrayLike,
        *,
        available: ArrayLike | None = None,
        r_min: float | None = None,
        r_max: float | None = None,
        costs: bool = False,
        start: ArrayLike = 0,
        state_names: Sequence[Any] | Array | None = None,
        action_names: Sequence[Any] | None = None,
    ) -> MDP:
        """Build from arrays P [S, A, S] and r [S, A]; ``available`` [S, A] marks the actions that exist (default: all).

        >>> print(MDP.from_dense([[[1.0]]], [[0.5]]))
        MDP: 1 states, 1 actions, 1 pairs, 1 transitions
        successors of a pair: at most 1
        rewards in [0, 1], from 0.5 to 0.5
        start: 0
        actions: 0
        """
        dense = checks.numeric("MDP", "P", P, (None, None, None))
        S, A = dense.shape[:2]
        if dense.shape != (S, A, S):
            raise ModelError(
                f"MDP: P must have shape [S, A, S]; got {dense.shape}. The first and last length must agree."
            )
        r_dense = checks.numeric("MDP", "r", r, (S, A))
        states, actions = available_pairs("MDP", available, S, A)
        rows = dense[states, actions]
        pair, succ = np.nonzero(rows)  # NaN counts as nonzero and is refused below
        ptr = np.searchsorted(pair, np.arange(states.size + 1))
        return cls.from_pairs(
            states,
            actions,
            ptr,
            succ,
            rows[pair, succ],
            r_dense[states, actions],
            r_min=r_min,
            r_max=r_max,
            costs=costs,
            start=start,
            n_actions=A,
            state_names=state_names,
            action_names=action_names,
        )

    @classmethod
    def from_scipy(
        cls, matrices: Sequence[Any], r: ArrayLike, *, available: ArrayLike | None = None, **options: Any
    ) -> MDP:
        """Build from one scipy sparse matrix [S, S] per action and r [S, A]; rows of unavailable pairs are ignored.

        ``options`` are those of :meth:`from_pairs`: r_min, r_max, costs, start, state_names, action_names.
        """
        from spanrl.models.from_scipy import from_scipy

        return from_scipy(matrices, r, available, options)

    @classmethod
    def from_gymnasium(
        cls,
        env: Any,
        *,
        r_min: float | None = None,
        r_max: float | None = None,
        costs: bool = False,
        start: ArrayLike | None = None,
    ) -> MDP:
        """Build from a Gymnasium environment that has a table ``env.unwrapped.P[s][a] = [(p, s', r, terminated), …]``.

        An outcome with ``terminated`` continues at the start distribution, so that terminal states keep their number but are
        never entered. The reward range defaults to that of the table. Gymnasium pays rewards: with
        ``costs`` they stay what they are, and results show costs = −rewards.
        """
        from spanrl.models.gym_table import from_gymnasium

        return from_gymnasium(env, r_min, r_max, start, costs=costs)

    from_function = classmethod(from_function)
    from_grid = classmethod(from_grid)

    @property
    def max_support(self) -> int:
        """Γ, the largest number of successors of a pair."""
        return int(np.diff(self.succ_ptr).max())

    def successors(self, state: int, action: int) -> Iterator[tuple[int, float]]:
        """Yield (s', p(s'|s, a)) of an available pair, in order of s'."""
        i = self.pair(state, action)
        for j in range(self.succ_ptr[i], self.succ_ptr[i + 1]):
            yield int(self.succ[j]), float(self.prob[j])

    def pair(self, state: int, action: int) -> int:
        """Return the index of the pair (state, action), or raise."""
        for i in range(self.pair_ptr[state], self.pair_ptr[state + 1]) if 0 <= state < self.n_states else ():
            if self.action[i] == action:
                return int(i)
        raise ModelError(f"MDP: action {action} is not available in state {state}.")

    def to_dense(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return P [S, A, S], r [S, A] and available [S, A]; unavailable pairs are zero. For small models."""
        S, A = self.n_states, self.n_actions
        P, r, available = np.zeros((S, A, S)), np.zeros((S, A)), np.zeros((S, A), dtype=bool)
        state = self.pair_state
        pair = np.repeat(np.arange(self.n_pairs), np.diff(self.succ_ptr))
        P[state[pair], self.action[pair], self.succ] = self.prob
        r[state, self.action], available[state, self.action] = self.reward, True
        return P, r, available

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to ``path`` (.npz, versioned, no pickle) in one step; a file that is there stays unless ``overwrite`` is true."""
        arrays = {name: getattr(self, name) for name in self.ARRAYS}
        files.write(
            Path(path),
            "mdp",
            arrays
            | {"range": np.array([self.r_min, self.r_max]), "n_actions": np.array(self.n_actions)}
            | files.flags(costs=self.costs, range_is_found=self.range_is_found)
            | label_files.pack(self.state_names, self.action_names),
            overwrite=overwrite,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, sha256: str | None = None) -> MDP:
        """Read a model that :meth:`save` wrote; everything is validated again.

        With ``sha256`` (64 hexadecimal digits) a file whose bytes have another digest raises a ModelFileError.
        """
        data = files.read(
            Path(path), "mdp", cls.LENGTHS, (*label_files.OPTIONAL, "costs", "range_is_found"), sha256=sha256
        )
        return files.rebuild(Path(path), lambda: cls._from_file(data))

    @classmethod
    def _from_file(cls, data: dict[str, Array]) -> MDP:
        n_actions = files.whole(data["n_actions"])
        state_names, action_names = label_files.unpack(data, data["pair_ptr"].size - 1, n_actions)
        r_min, r_max = checks.numeric("MDP", "range", data["range"], (2,)).tolist()
        mdp = cls.from_pairs(
            checks.pair_states("MDP", data["pair_ptr"], data["action"].size),
            data["action"],
            data["succ_ptr"],
            data["succ"],
            data["prob"],
            data["reward"],
            r_min=r_min,
            r_max=r_max,
            start=data["start"],
            n_actions=n_actions,
            state_names=state_names,
            action_names=action_names,
        )
        costs, is_found = files.flag(data, "costs"), files.flag(data, "range_is_found")
        return replace(mdp, costs=costs, range_is_found=is_found) if costs or is_found else mdp

    def __str__(self) -> str:
        """Summarise in five lines."""
        starts = np.flatnonzero(self.start)
        where = ", ".join(visible(self.state_label(int(s))) for s in starts[:4]) + (
            f", … ({starts.size} states)" if starts.size > 4 else ""
        )
        shown = ", ".join(visible(self.action_label(a)) for a in range(min(self.n_actions, 12)))
        shown += ", …" if self.n_actions > 12 else ""
        what, ends = "costs" if self.costs else "rewards", flip_ends(self.costs, self.r_min, self.r_max)
        paid = flip_ends(self.costs, float(self.reward.min()), float(self.reward.max()))
        return "\n".join(
            (
                f"MDP: {self.n_states} states, {self.n_actions} actions, {self.n_pairs} pairs, {self.succ.size} transitions",
                f"successors of a pair: at most {self.max_support}",
                f"{what} in [{ends[0]:g}, {ends[1]:g}], from {paid[0]:g} to {paid[1]:g}",
                f"start: {where}",
                f"actions: {shown}",
            )
        )

    def _repr_html_(self) -> str:
        return as_html(str(self))

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<MDP: {self.n_states} states, {self.n_actions} actions, {self.n_pairs} pairs>"

    def index(self, state: Any) -> int:
        """Return the number of a state from its name; where states have no names, a number is itself.

        >>> mdp = MDP.from_dense([[[0, 1]], [[1, 0]]], [[0], [1]], state_names=[(0, 0), (3, 2)])
        >>> mdp.index((3, 2))
        1
        """
        return labels.state_number("MDP.index", self.state_names, self.n_states, state)

    def name_of_state(self, s: int) -> str:
        """Return what an error calls state s."""
        return labels.name_in_error(self.state_names, s)

    def name_of_action(self, a: int) -> str:
        """Return what an error calls action a."""
        return labels.name_in_error(self.action_names, a)

    def state_label(self, s: int) -> str:
        """Return the name of state s as text, or its number."""
        return self.state_names.text(s) if self.state_names is not None else str(s)

    def action_label(self, a: int) -> str:
        """Return the name of action a as text, or its number."""
        return text_of(self.action_names[a]) if self.action_names is not None else str(a)
