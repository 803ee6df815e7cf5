"""A model as the kernels see it: arrays, the rewards of the chosen sense, and the sign of the inner problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import OptionError
from spanrl.kernels.backups import backup, pair_values
from spanrl.kernels.extract import best_pairs, best_values, contenders, count_listed, least_stay, restrict, rows
from spanrl.kernels.hasten import choose
from spanrl.kernels.layout import BALL, BOX, FREE, PLAIN, Arrays, new_workspace, shared_workspace, workspace
from spanrl.kernels.order import rank_states
from spanrl.models import checks
from spanrl.models.bounded import BoundedMDP
from spanrl.models.checks import frozen
from spanrl.models.mdp import MDP

Model = MDP | BoundedMDP
Vector = NDArray[np.float64]

TIE = 1e-10
"""Values of a state this close, in units of the spread of all values, are ties: the lowest action wins."""

NOISE = 2e-15
"""Relative rounding error that a value may have."""

_MARGIN = 1e-9  # in units of the spread of the values: what an action must be behind to be left out
_DUST = 1e-13

_MUCH_STAY = 0.75  # below, steps would be less than four times as long, and what is left may be periodic
_LONGEST = 1e3  # longer steps would cost digits where v grows for ever

_EMPTY = frozen(np.empty(0), np.float64)
_NO_WORKSPACE = new_workspace(0, 0, 0)  # plain models write to none


class Choice(NamedTuple):
    """For each state: the extreme value over its actions, the pair chosen among the ties, and that pair's own value."""

    value: Vector
    pair: NDArray[np.int64]
    at_pair: Vector


@dataclass(frozen=True)
class Problem:
    """max_a [r(s,a) + sign·max_p sign·pᵀv] with its workspace."""

    arrays: Arrays
    reward: Vector
    sign: float
    workspace: Any

    @property
    def n_states(self) -> int:
        """S, the number of states."""
        return int(self.arrays.pair_ptr.size - 1)

    @property
    def n_pairs(self) -> int:
        """The number of pairs."""
        return int(self.arrays.succ_ptr.size - 1)

    def backup(self, v: Vector) -> Vector:
        """Return Lv."""
        out = np.empty(self.n_states)
        backup(self.arrays, self.reward, self.sign, self.workspace, v, out)
        return out

    def values(self, v: Vector) -> Vector:
        """Return the value [n_pairs] of every pair at v."""
        q = np.empty(self.n_pairs)
        pair_values(self.arrays, self.reward, self.sign, self.workspace, v, q)
        return q

    def best(self, v: Vector, sign: float = 1.0, most: float = np.inf) -> Choice:
        """Return the maximum over the actions of each state and the lowest action that attains it (sign −1: the minimum).

        Ties are values within 1e-10 of the spread of all values, and within ``most``.
        """
        q, top, pair = self.values(v), np.empty(self.n_states), np.empty(self.n_states, dtype=np.int64)
        low, high = best_values(self.arrays.pair_ptr, q, sign, top)
        tie = max(min(TIE * (high - low), most), NOISE * max(abs(low), abs(high)))
        best_pairs(self.arrays.pair_ptr, q, sign, top, tie, pair)
        return Choice(sign * top, pair, q[pair])

    def best_of(self, q: Vector, most: float) -> Choice:
        """Return what :meth:`best` does, from the value [n_pairs] of every pair."""
        S = self.n_states
        choice = Choice(np.empty(S), np.empty(S, dtype=np.int64), np.empty(S))
        choose(self.arrays.pair_ptr, q, most, TIE, NOISE, *choice)
        return choice

    def contenders(self, v: Vector, reach: float, most: int) -> Problem | None:
        """Return the problem without the actions that cannot be best while v moves by at most ``reach`` in span.

        As q'(s,a) ≤ q(s,a) + max(v' − v) and Lv'(s) ≥ Lv(s) + min(v' − v), an action further than that from the best stays behind it
        (temporary action elimination, Puterman 1994, Sec. 8.5.6), so that Lv' is the same to the last bit. None where more than ``most``
        pairs are left.
        """
        q, top = self.values(v), np.empty(self.n_states)
        low, high = best_values(self.arrays.pair_ptr, q, 1.0, top)
        margin = max(_MARGIN * (high - low), _DUST * max(abs(low), abs(high)))
        pairs, ptr = np.empty(self.n_pairs, dtype=np.int64), np.zeros(self.n_states + 1, dtype=np.int64)
        n = contenders(self.arrays.pair_ptr, q, top, reach + margin, pairs, ptr)
        return self.restricted(pairs[:n], frozen(ptr, np.int64)) if n <= most else None

    def rows(self, v: Vector, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint32], Vector]:
        """Return, compressed, the distributions that attain the inner value of ``pairs`` at v."""
        m = self.arrays
        if m.kind != PLAIN:
            rank_states(self.sign, v, self.workspace)
            return rows(m, self.workspace, pairs)  # type: ignore[no-any-return]
        length = m.succ_ptr[pairs + 1] - m.succ_ptr[pairs]
        ptr = np.concatenate(([0], np.cumsum(length)))
        at = np.arange(ptr[-1]) + np.repeat(m.succ_ptr[pairs] - ptr[:-1], length)
        keep = m.low[at] > 0.0
        return np.concatenate(([0], np.cumsum(keep)))[ptr], m.succ[at[keep]], m.low[at[keep]]

    def chain(self, pairs: NDArray[np.int64], v: Vector) -> tuple[Any, Vector]:
        """Return the Markov reward process of ``pairs`` at v: P̃ (scipy sparse [S, S]) and r̃ [S]."""
        from scipy.sparse import csr_array

        ptr, succ, prob = self.rows(v, pairs)
        chain = csr_array((prob, succ.astype(np.int64), ptr), shape=(self.n_states, self.n_states))
        chain.sort_indices()
        return chain, self.reward[pairs]

    def restricted(self, pairs: NDArray[np.int64], pair_ptr: NDArray[np.int64]) -> Problem:
        """Return the problem in which state s has only the pairs ``pairs[pair_ptr[s]:pair_ptr[s+1]]``."""
        m, k = self.arrays, pairs.size
        n = count_listed(m.succ_ptr, pairs)
        is_set, is_box = m.kind != PLAIN, m.kind == BOX
        succ_ptr, succ, low = np.zeros(k + 1, dtype=np.int64), np.empty(n, dtype=np.uint32), np.empty(n)
        room, slack, rest = np.empty(n if is_box else 0), np.empty(k if is_set else 0), np.empty(k if is_box else 0)
        restrict(m, pairs, succ_ptr, succ, low, room, slack, rest)
        for array in (succ_ptr, succ, low, room, slack, rest):
            array.flags.writeable = False  # one type for all models: nothing is compiled again
        arrays = Arrays(m.kind, pair_ptr, succ_ptr, succ, low, room, slack, rest)
        ws = shared_workspace(self.workspace, k if is_set else 0, n if is_set else 0)
        return Problem(arrays, frozen(self.reward[pairs], np.float64), self.sign, ws)


def longest_step(m: Arrays) -> float:
    """Return how long a step (1−a)v + a·Lv may be: 1, or more where every pair stays in its state with probability δ ≥ 3/4.

    v ↦ Lv − δv is then monotone, and so is the step for every a ≤ 1/(1−δ): it is value iteration on P' = (P − δI)/(1−δ), the
    aperiodicity transformation (Puterman 1994, Sec. 8.5.4) read backwards. The bracket is that of L all the same.
    """
    stay = 0.0 if m.kind == BALL else least_stay(m, _MUCH_STAY)  # a ball may take all of it away
    return 1.0 / max(1.0 - stay, 1.0 / _LONGEST)


def check_model(who: str, model: Model, sense: str) -> None:
    """Check the type of the model and which end of its sets is asked for."""
    if sense not in ("optimistic", "pessimistic"):
        raise OptionError(f"{who}: sense must be 'optimistic' or 'pessimistic'; got {sense!r}.")
    if not isinstance(model, (MDP, BoundedMDP)):
        raise OptionError(
            f"{who}: the model must be an MDP or a BoundedMDP; got {type(model).__name__}.{mdp_hint(model)}"
        )


def mdp_hint(model: object) -> str:
    """Say how to get at the MDP where something that leads to one came instead."""
    if isinstance(model, str):
        return f" Use make({model!r}).mdp."
    return " Use its .mdp." if hasattr(model, "mdp") else ""


def prepare(model: Model, sense: str = "optimistic", who: str = "solve") -> Problem:
    """Lay out ``model`` for the kernels, with the optimistic or the pessimistic end of its sets."""
    check_model(who, model, sense)
    sign = 1.0 if sense == "optimistic" else -1.0
    if isinstance(model, MDP):
        arrays = Arrays(PLAIN, model.pair_ptr, model.succ_ptr, model.succ, model.prob, _EMPTY, _EMPTY, _EMPTY)
        return Problem(arrays, model.reward, 1.0, _NO_WORKSPACE)
    arrays = _ball_arrays(model) if model.is_ball else _box_arrays(model)
    return Problem(arrays, model.r_high if sign > 0 else model.r_low, sign, workspace(arrays))


def _ball_arrays(model: BoundedMDP) -> Arrays:
    return Arrays(
        BALL,
        model.pair_ptr,
        model.succ_ptr,
        model.succ,
        model.p_low,
        _EMPTY,
        frozen(model.radius / 2, np.float64),
        _EMPTY,
    )


def _box_arrays(model: BoundedMDP) -> Arrays:
    slack = 1.0 - checks.row_sums(model.succ_ptr, model.p_low)
    held = checks.row_sums(model.succ_ptr, (model.p_low > 0) | (model.p_high < 1)) > 0
    slack[~held & (model.rest_high >= 1)] = FREE
    return Arrays(
        BOX,
        model.pair_ptr,
        model.succ_ptr,
        model.succ,
        model.p_low,
        frozen(model.p_high - model.p_low, np.float64),
        frozen(slack, np.float64),
        model.rest_high,
    )
