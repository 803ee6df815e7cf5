"""A model from functions on arrays: states are rows of whole numbers, and a function answers for thousands of them at a time.

Each state has a key, its place in the grid (the last coordinate runs fastest). The reachable part is found first, breadth first by
whole frontiers; then the rows are built in the order of the keys, a block of states at a time, so that nothing but the model itself
grows with it. The functions are thus asked twice for each state where the reachable part is wanted, and once where the full grid is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanrl.errors import ModelError
from spanrl.models import checks, labels
from spanrl.models.checks import Array
from spanrl.models.costs import declared_ends, flip, reward_range
from spanrl.models.from_function import check_limit, start_states
from spanrl.models.grid import Grid
from spanrl.models.labels import shown
from spanrl.terminal import counting

if TYPE_CHECKING:
    from spanrl.models.mdp import MDP

_WHO = "MDP.from_grid"
_MOST = 2000  # outcomes of a pair: each takes some arrays of a block
_ENTRIES = 2**18  # of a block: states × actions × outcomes
_SHAPE = "An outcome is (probability, next states [n, k], reward)."


def from_grid(
    cls: type[MDP],
    shape: int | range | Sequence[int | range],
    actions: Sequence[Hashable],
    outcomes: Callable[[NDArray[np.int64], Any], Iterable[tuple[ArrayLike, ArrayLike, ArrayLike]]],
    *,
    reachable: bool,
    start: Any = None,
    allowed: Callable[[NDArray[np.int64], Any], ArrayLike] | None = None,
    r_min: float | None = None,
    r_max: float | None = None,
    costs: bool = False,
    max_states: int = 10**7,
    progress: bool = False,
) -> MDP:
    """Build from functions on integer arrays: :meth:`from_function` for 10⁶ states and more.

    Args:
        shape: per coordinate its number of values n (0..n−1) or a ``range``; k of them. States are named by tuples of k numbers; by
            numbers where ``shape`` is a single n or range.
        actions: the names of all actions.
        outcomes: ``outcomes(states, action)`` lists or yields (probability, next states, reward), as in :meth:`from_function`, for an
            integer array ``states`` [n, k]: probability and reward are numbers or arrays [n], next states an array [n, k] or one state.
            What has probability 0 may lead anywhere.
        reachable: True builds the states that can be reached from ``start``, False the full grid.
        start: a state, a list of states, or a dict {state: probability}; may be left out with the full grid (its first state).
        allowed: ``allowed(states, action)`` returns booleans [n]; default: everything is allowed. ``outcomes`` is asked for these alone.
        r_min, r_max, costs: as in :meth:`from_pairs`.
        max_states: raise an error where there are more states.
        progress: show a bar on standard error where it takes longer than a second.

    Returns:
        An :class:`MDP` whose states are numbered in the order of the grid, the last coordinate fastest.

    Raises:
        ModelError: what the functions return is not what it must be; the message names the first state and action.

    A queue with room for 3, and an hour's service that is slow or fast:

    >>> import numpy as np
    >>> from spanrl import MDP
    >>> def outcomes(states, action):
    ...     x, mu = states[:, 0], 0.8 if action == "fast" else 0.5
    ...     cost = x + (0.7 if action == "fast" else 0.0)
    ...     for a, p_a in ((0, 0.6), (1, 0.4)):
    ...         for d, p_d in ((0, 1 - mu), (1, mu)):
    ...             yield p_a * p_d, np.minimum(np.maximum(x - d, 0) + a, 3)[:, None], cost
    >>> mdp = MDP.from_grid((4,), ["slow", "fast"], outcomes, start=(0,), reachable=True, costs=True)
    >>> mdp.n_states, mdp.n_pairs, mdp.index((3,))
    (4, 8, 3)
    """
    grid = Grid.of(shape)
    if not isinstance(actions, Sequence) or isinstance(actions, str) or not actions:
        raise ModelError(f"{_WHO}: actions must be a list of at least one name; got {shown(actions)}.")
    names = labels.action_names(_WHO, actions, len(actions)) or ()
    check_limit(_WHO, max_states)
    if not callable(outcomes) or not (allowed is None or callable(allowed)):
        raise ModelError(f"{_WHO}: outcomes and allowed must be functions.")
    if not isinstance(reachable, bool):
        raise ModelError(
            f"{_WHO}: reachable must be True (what start leads to) or False (the full grid); got {reachable!r}."
        )
    if start is None and reachable:
        raise ModelError(f"{_WHO}: start must be given where the reachable part is wanted.")
    begins = {grid.name(0): 1.0} if start is None else start_states(_WHO, start)
    first = np.array([grid.find(state) for state in begins], dtype=np.int64)
    asked = _Functions(grid, names, outcomes, allowed, declared_ends(_WHO, r_min, r_max))
    with counting("states", show=bool(progress)) as tell:
        if reachable:
            cells = _reach(asked, first, int(max_states), tell)
        elif grid.n_cells > max_states:
            raise ModelError(
                f"{_WHO}: at most {max_states:,} states are allowed (max_states); the grid has {grid.n_cells:,}."
            )
        else:
            cells = np.arange(grid.n_cells)
        rows = _build(asked, cells, tell)
    distribution = np.zeros(cells.size)
    distribution[np.searchsorted(cells, first)] = list(begins.values())
    low, high, is_found = reward_range(_WHO, costs, r_min, r_max, rows.reward, rows.reward)
    return cls(
        rows.pair_ptr,
        rows.action,
        rows.succ_ptr,
        rows.succ,
        rows.prob,
        flip(bool(costs), rows.reward),
        low,
        high,
        checks.start_distribution(_WHO, distribution, cells.size),
        len(names),
        grid.names(cells),
        names,
        bool(costs),
        is_found,
    )


class _Rows(NamedTuple):
    """The rows of a model, by pairs."""

    pair_ptr: Array
    action: Array
    succ_ptr: Array
    succ: Array
    prob: Array
    reward: Array


class _Answer(NamedTuple):
    """What may happen after one action: for the states ``at`` of a block, m outcomes."""

    at: NDArray[np.int64]
    prob: NDArray[np.float64]  # [m, n]
    cell: NDArray[np.int64]  # [m, n]
    reward: NDArray[np.float64]  # [n], the mean


class _Functions:
    """The functions of the user, and what they return checked."""

    def __init__(
        self, grid: Grid, names: tuple[Any, ...], outcomes: Any, allowed: Any, ends: tuple[float, float]
    ) -> None:
        self.grid, self.names, self._outcomes, self._allowed, self._ends = grid, names, outcomes, allowed, ends
        self._most = 16  # outcomes of a pair so far

    def blocks(self, cells: Array) -> Iterator[Array]:
        """Yield the cells block by block, as many as take about so much memory."""
        begin = 0
        while begin < cells.size:
            size = max(_ENTRIES // (len(self.names) * self._most), 64)
            yield cells[begin : begin + size]
            begin += size

    def ask(self, cells: Array, a: int) -> _Answer:
        """Return the outcomes of one action in a block of states."""
        states = self.grid.states(cells)
        at = np.arange(cells.size)
        if self._allowed is not None:
            mask = np.asarray(self._allowed(states.copy(), self.names[a]))
            if mask.shape != at.shape or mask.dtype != np.bool_:
                rule = f"must be booleans of shape ({at.size},); got dtype {mask.dtype}, shape {mask.shape}"
                raise ModelError(f"{_WHO}: what allowed returns for action {shown(self.names[a])} {rule}.")
            at = np.flatnonzero(mask)
            states = states[at]
        if at.size == 0:
            return _Answer(at, np.empty((0, 0)), np.empty((0, 0), dtype=np.int64), np.empty(0))
        rows = [self._outcome(states, a, j, row) for j, row in enumerate(self._asked(states, a))]
        if not 1 <= len(rows) <= _MOST:
            rule = f"must be 1 to {_MOST:,}; got {'more' if rows else 'none'}"
            raise ModelError(f"{_WHO}: outcomes of {self._named(states, 0, a)} {rule}. {_SHAPE}")
        self._most = max(self._most, len(rows))
        prob, cell, reward = (np.stack(part) for part in zip(*rows, strict=True))
        total = prob.sum(axis=0)
        bad = ~(np.abs(total - 1.0) <= checks.SUM_TOL)
        self._reject(bad, states, a, "", lambda i: f"sum to {total[i]:.12g}, must sum to 1 within {checks.SUM_TOL:g}")
        off = checks.misses_one(total, len(rows))
        if off.any():
            prob /= np.where(off, total, 1.0)
        mean = np.clip((prob * reward).sum(axis=0), reward.min(axis=0), reward.max(axis=0))
        return _Answer(at, prob, cell, mean)

    def _asked(self, states: Array, a: int) -> Iterator[Any]:
        """Yield what the user's function does; what it raises gets a note."""
        where = self._named(states, 0, a)
        try:
            came = self._outcomes(states.copy(), self.names[a])
            if not isinstance(came, Iterable):
                raise ModelError(f"{_WHO}: outcomes must be listed or yielded; got {shown(came)} for {where}. {_SHAPE}")
            yield from islice(came, _MOST + 1)
        except ModelError:
            raise
        except Exception as error:
            error.add_note(f"{_WHO}: raised for a block of {len(states)} states, the first {where}.")
            raise

    def _outcome(self, states: Array, a: int, j: int, row: Any) -> tuple[Array, Array, Array]:
        """Return probability, cell and reward [n] of the j-th outcome; the reward counts where the probability is not 0."""
        n, k = states.shape
        if not isinstance(row, (tuple, list)) or len(row) != 3:
            raise ModelError(
                f"{_WHO}: outcome {j} of {self._named(states, 0, a)} must be a triple; got {shown(row)}. {_SHAPE}"
            )
        prob, reward = (
            self._numbers(part, name, states, a, j) for part, name in ((row[0], "probability"), (row[2], "reward"))
        )
        try:
            nexts = np.broadcast_to(np.asarray(row[1]), (n, k))
        except ValueError:
            nexts = np.empty(0)
        if nexts.dtype.kind not in "iu":
            got = f"got dtype {np.asarray(row[1]).dtype}, shape {np.shape(row[1])}"
            raise ModelError(
                f"{_WHO}: next states of outcome {j}, action {shown(self.names[a])} must be whole numbers [{n}, {k}]; {got}."
            )
        cell, where = self.grid.cells(nexts), f"outcome {j} of "
        self._reject(
            ~(np.isfinite(prob) & (prob >= 0)),
            states,
            a,
            where,
            lambda i: f"has probability {prob[i]:.12g}, must be a number ≥ 0",
        )
        self._reject(
            ~np.isfinite(reward) & (prob > 0),
            states,
            a,
            where,
            lambda i: f"has reward {reward[i]:.12g}, must be finite",
        )
        self._reject(
            (cell < 0) & (prob > 0), states, a, where,
            lambda i: f"leads to {tuple(nexts[i].tolist())}, must lead into the grid or have probability 0",
        )  # fmt: skip
        low, high = self._ends
        self._reject(
            ((reward < low - checks.ROUNDING) | (reward > high + checks.ROUNDING)) & (prob > 0), states, a, where,
            lambda i: f"pays or costs {reward[i]:.12g}, must lie in [r_min, r_max] = [{low:g}, {high:g}]",
        )  # fmt: skip
        return prob, cell, np.where(prob > 0, reward, 0.0)

    def _numbers(self, value: Any, name: str, states: Array, a: int, j: int) -> Array:
        try:
            return np.broadcast_to(np.asarray(value, dtype=np.float64), (len(states),)).copy()
        except (TypeError, ValueError):
            raise ModelError(
                f"{_WHO}: the {name} of outcome {j}, action {shown(self.names[a])} must be a number or [{len(states)}] numbers; "
                f"got {shown(value)}."
            ) from None

    def _reject(self, bad: Array, states: Array, a: int, what: str, rule: Callable[[int], str]) -> None:
        """Raise for the first of the bad states of a block."""
        if bad.any():
            i = int(np.argmax(bad))
            count = int(np.count_nonzero(bad))
            of = what or "outcomes of "
            raise ModelError(
                f"{_WHO}: {of}{self._named(states, i, a)} {rule(i)} ({count} of {bad.size} states of the block)."
            )

    def _named(self, states: Array, i: int, a: int) -> str:
        row = states[i].tolist()
        return f"state {shown(row[0] if self.grid.is_flat else tuple(row))}, action {shown(self.names[a])}"


def _reach(asked: _Functions, first: Array, most: int, tell: Callable[[int, int], None] | None) -> Array:
    """Return the cells that can be reached, in order."""
    seen = np.zeros(asked.grid.n_cells, dtype=bool)
    frontier, n_seen, done = np.unique(first), 0, 0
    while frontier.size:
        seen[frontier] = True
        n_seen += frontier.size
        if n_seen > most:
            raise ModelError(
                f"{_WHO}: at most {most:,} states may be reached (max_states); {asked.grid.name(int(frontier[-1]))} is one more. "
                "Raise max_states, or bound the states in outcomes."
            )
        found = []
        for block in asked.blocks(frontier):
            for a in range(len(asked.names)):
                answer = asked.ask(block, a)
                new = answer.cell[answer.prob > 0]
                new = np.unique(new[~seen[new]])
                seen[new] = True
                found.append(new)
            done += block.size
            if tell is not None:
                tell(done, n_seen)
        frontier = np.sort(np.concatenate(found))
    return np.flatnonzero(seen)


def _build(asked: _Functions, cells: Array, tell: Callable[[int, int], None] | None) -> _Rows:
    """Return the rows of all states, which are closed: no outcome leaves them."""
    number = None
    if cells.size < asked.grid.n_cells:
        number = np.zeros(asked.grid.n_cells, dtype=np.uint32)
        number[cells] = np.arange(cells.size, dtype=np.uint32)
    parts: list[list[Array]] = []
    done = 0
    for block in asked.blocks(cells):
        parts.append(_block(asked, block, number))
        done += block.size
        if tell is not None:
            tell(done, cells.size)
    n_pairs, action, n_succ, succ, prob, reward = (_joined(parts, i) for i in range(6))
    ptr = (np.concatenate(([0], np.cumsum(counts, dtype=np.int64))) for counts in (n_pairs, n_succ))
    return _Rows(next(ptr), action, next(ptr), succ, prob, reward)


def _joined(parts: list[list[Array]], i: int) -> Array:
    """Join one column of all blocks, and let the blocks go."""
    whole = np.concatenate([part[i] for part in parts])
    for part in parts:
        part[i] = np.empty(0)
    return whole


def _block(asked: _Functions, block: Array, number: Array | None) -> list[Array]:
    """Return, for a block of states: pairs of each state, action and length of each pair, successors, probabilities, rewards."""
    answers = [asked.ask(block, a) for a in range(len(asked.names))]
    n, A, m = block.size, len(answers), max(len(answer.prob) for answer in answers)
    sentinel = asked.grid.n_cells
    cell, prob = np.full((n, A, m), sentinel, dtype=np.int64), np.zeros((n, A, m))
    exists, reward = np.zeros((n, A), dtype=bool), np.zeros((n, A))
    for a, answer in enumerate(answers):
        exists[answer.at, a], reward[answer.at, a] = True, answer.reward
        prob[answer.at, a, : len(answer.prob)] = answer.prob.T
        cell[answer.at, a, : len(answer.prob)] = np.where(answer.prob > 0, answer.cell, sentinel).T
    if not exists.any(axis=1).all():
        state = asked.grid.name(int(block[np.argmin(exists.any(axis=1))]))
        raise ModelError(
            f"{_WHO}: state {shown(state)} has no action; every state must have at least one. Allow one there."
        )
    if (cell[..., 1:] < cell[..., :-1]).any():
        order = np.argsort(cell, axis=-1, kind="stable")
        cell, prob = np.take_along_axis(cell, order, axis=-1), np.take_along_axis(prob, order, axis=-1)
    kept = prob > 0
    n_succ = kept.sum(axis=-1)[exists]
    cell, prob = cell[kept], prob[kept]
    first = np.ones(cell.size, dtype=bool)
    first[1:] = cell[1:] != cell[:-1]
    first[(np.cumsum(n_succ) - n_succ)] = True
    if not first.all():
        pair = np.repeat(np.arange(n_succ.size), n_succ)
        n_succ = np.bincount(pair[first], minlength=n_succ.size)
        prob, cell = np.add.reduceat(prob, np.flatnonzero(first)), cell[first]
    succ = cell.astype(np.uint32) if number is None else number[cell]
    return [exists.sum(axis=1), np.nonzero(exists)[1], n_succ, succ, prob, reward[exists]]
