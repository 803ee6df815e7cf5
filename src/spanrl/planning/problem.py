"""A model as the kernels see it: arrays, the rewards of the chosen sense, and the sign of the inner problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import OptionError
from spanrl.kernels.backups import backup, pair_values
from spanrl.kernels.extract import best_pairs, longest_row, rows
from spanrl.kernels.iterate import ROUNDING
from spanrl.kernels.kl import KL_ROUNDING
from spanrl.kernels.layout import BALL, BOX, FREE, KL, PLAIN, Arrays, new_workspace, workspace
from spanrl.kernels.order import rank_states
from spanrl.models import checks
from spanrl.models.bounded import BoundedMDP
from spanrl.models.checks import immutable
from spanrl.models.mdp import MDP

Model = MDP | BoundedMDP
Vector = NDArray[np.float64]

TIE = 1e-10
"""Values of a state this close, in units of the spread of all values, are ties: the lowest action wins."""

NOISE = 2e-15
"""Relative rounding error that a value may have."""

_UNIT = 2.0**-53

_EMPTY = immutable(np.empty(0), np.float64)
_NO_WORKSPACE = new_workspace(0, 0, 0)  # plain models write to none


class BestPairs(NamedTuple):
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
    off: float = 0.0
    """By how much a row misses the sum of one, at the most."""

    @property
    def n_states(self) -> int:
        """S, the number of states."""
        return int(self.arrays.pair_ptr.size - 1)

    @property
    def n_pairs(self) -> int:
        """The number of pairs."""
        return int(self.arrays.succ_ptr.size - 1)

    @property
    def n_bytes(self) -> int:
        """The memory of the model."""
        return sum(array.nbytes for array in (*self.arrays[1:], self.reward))

    @cached_property
    def rounding(self) -> float:
        """What rounding may take from a value, in units of the largest one: a sum of n products is off by n units at the most.

        Unlisted states are summed as differences of sums over all states.
        """
        m = self.arrays
        least = KL_ROUNDING if m.kind == KL else ROUNDING
        n = int(longest_row(m.succ_ptr)) + 3
        if m.kind == BOX and (m.rest > 0.0).any():
            n += self.n_states
        return max(least, n * _UNIT + self.off)

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

    def best(self, v: Vector, sign: float = 1.0, most: float = np.inf, values: Vector | None = None) -> BestPairs:
        """Return the maximum over the actions of each state and the lowest action that attains it (sign −1: the minimum).

        Ties are values within 1e-10 of the spread of all values, or of rounding, and within ``most``. ``values`` are those of the pairs at
        v, if known.
        """
        q = self.values(v) if values is None else values
        top, pair = np.empty(self.n_states), np.empty(self.n_states, dtype=np.int64)
        at_pair = np.empty(self.n_states)
        best_pairs(self.arrays.pair_ptr, q, sign, TIE, most, NOISE, top, pair, at_pair)
        return BestPairs(top, pair, at_pair)

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
        return Problem(arrays, model.reward, 1.0, _NO_WORKSPACE, model.row_error)
    arrays = _ball_arrays(model) if model.radius.size else _box_arrays(model)
    off = np.abs(1.0 - checks.row_sums(model.succ_ptr, model.p_low)).max() if model.radius.size else 0.0
    return Problem(arrays, model.r_high if sign > 0 else model.r_low, sign, workspace(arrays), float(off))


def _ball_arrays(model: BoundedMDP) -> Arrays:
    return Arrays(
        KL if model.is_kl else BALL,
        model.pair_ptr,
        model.succ_ptr,
        model.succ,
        model.p_low,
        _EMPTY,
        model.radius if model.is_kl else immutable(model.radius / 2, np.float64),
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
        immutable(model.p_high - model.p_low, np.float64),
        immutable(slack, np.float64),
        model.rest_high,
    )
