"""What an estimate is: from what a learner has seen to the models it plans on.

An estimate is a frozen object. Its compiled ``fill`` writes, once per plan, what it says of every pair: boxes, balls, or one plain model
(:class:`spanrl.kernels.plan_workspace.Sets` states the contract). :class:`Estimate` lists what else it tells, with the usual answers.

A file of one's own::

    @passed(FILL)
    def fill(known, settings, kept, sets):
        for i in known.changed:  # a bound without t need not look at the others
            ...

    @dataclass(frozen=True)
    class MyBound(Estimate):
        delta: float = 0.05
        fill = fill
        geometry = BOX
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.intersection import Held, intersect
from spanrl.errors import OptionError
from spanrl.kernels.jit import Passed, Signature, check
from spanrl.kernels.layout import BALL, BONUS, BOX, KL, NOSS, PLAIN
from spanrl.kernels.plan_workspace import Sets
from spanrl.models.bounded import BoundedMDP
from spanrl.models.counts import Counts, Seen
from spanrl.models.info import ProblemInfo
from spanrl.models.mdp import MDP

_ROUNDING = 1e-9


class Known(NamedTuple):
    """What the parts of an agent are told when an episode begins."""

    seen: Any  # :class:`spanrl.models.counts.Seen`, the counts
    changed: Any  # int64 [n]     the pairs whose rows must be written: those visited since the last plan, maybe others
    #                             (which ones depends on who runs the loop: nothing may be decided by it)
    t: int  # t_k, the first step of the episode
    state: int  # where it begins
    steps: int  # how many steps the episode before had
    n_states: int  # S
    max_actions: int  # A, the largest number of actions of a state
    r_min: float
    r_max: float
    pair_ptr: Any  # int64 [S+1]  the pairs of state s are pair_ptr[s]:pair_ptr[s+1]
    words: Any  # uint64 [4]      the agent's random state, to be advanced by whoever draws (:mod:`spanrl.kernels.variates`)


class Kept(NamedTuple):
    """Numbers of an estimate's own, zeros at first. Columns of successors move along when others are listed, whose own are zeros."""

    pair: Any  # float64 [m, n_pairs]
    succ: Any  # float64 [l, n]     one column per listed successor of the counts


def known_example() -> Known:
    """Return values of the types that all parts are compiled for."""
    whole, words = np.zeros(1, dtype=np.int64), np.zeros(4, dtype=np.uint64)
    return Known(Counts.empty(1).seen, whole, 1, 0, 0, 1, 1, 0.0, 1.0, read_only(whole), words)


def _fill_examples() -> tuple[Any, ...]:
    kept = Kept(np.zeros((1, 1)), np.zeros((1, 1)))
    return known_example(), np.zeros(1), kept, new_sets(Counts.empty(1).seen, 1, 0, np.zeros((2, 0)), closes=False)


FILL = Signature("FILL", "void", _fill_examples)
"""The signature of a ``fill(known, settings, kept, sets)``: :class:`Known`, float64 [n], :class:`Kept`, :class:`Sets`."""


class Estimate:
    """The base of estimates: what their class says besides ``fill``.

    Attributes:
        geometry: BOX, BALL, KL, PLAIN, BONUS or NOSS.
        n_kept: how many numbers it keeps per pair and per listed successor. They are a cache, zeros again where ``known.changed`` lists
            all pairs, so they must follow from the counts.
        owns_rows: whether ``fill`` also writes the rows, ``sets.succ_ptr`` and ``sets.succ``; otherwise these are those of the counts.
        closes_states: whether it writes ``sets.closed`` and ``sets.flagged``.
        rewrites: whether ``fill`` writes all rows in every plan, changed or not; rows then need not move when others grow.
        roomy: a promise that each listed successor of a box has room for ``rest``. Ties then need no look, a tenth of the time of a plan.
        varies_delta: whether delta="rsqrt" makes sense, δ_k = 1/√t_k.
        is_uniform: whether its sets hold the true model in all episodes at once with probability 1 − δ, so that they may be intersected.
        draws: whether it advances ``known.words``: it is a sample then, not a set.
    """

    fill: ClassVar[Passed]
    geometry: ClassVar[int]
    n_kept: ClassVar[tuple[int, int]] = 0, 0
    owns_rows: ClassVar[bool] = False
    closes_states: ClassVar[bool] = False
    rewrites: ClassVar[bool] = False
    roomy: ClassVar[bool] = False
    varies_delta: ClassVar[bool] = False
    is_uniform: ClassVar[bool] = False
    draws: ClassVar[bool] = False

    @property
    def is_set(self) -> bool:
        """Whether it is a set of plausible models, not one model."""
        return not self.draws and self.geometry in (BOX, BALL, KL, NOSS)

    def settings(self, info: ProblemInfo) -> NDArray[np.float64]:
        """Return the numbers that ``fill`` takes: levels, scales."""
        return np.zeros(0)

    def capacity(self, info: ProblemInfo, n_listed: int) -> int:
        """Return how many entries rows of one's own may have in all, where the counts have room for ``n_listed``."""
        return n_listed

    def sets(
        self,
        counts: Counts,
        t: int,
        info: ProblemInfo,
        words: NDArray[np.uint64] | None = None,
        state: int = 0,
        checked: bool = True,
        held: Held | None = None,
    ) -> Sets:
        """Return what the estimate says of an episode that begins at time t in ``state``, intersected with the sets ``held`` so far.

        If ``checked``, assert its contract.
        """
        parts: list[Any] = [np.require(part, requirements=("C", "W")) for part in counts.seen]
        seen = Seen(*parts)  # ``fill`` is compiled for arrays that may be written
        kept, sets, _ = new_numbers(self, info, seen)
        first = np.zeros(4, dtype=np.uint64) if words is None else words
        known = Known(
            seen, np.arange(info.n_pairs), int(t), int(state), 0, int(info.n_states), int(info.max_actions),
            float(info.r_min), float(info.r_max), info.pair_ptr, first,
        )  # fmt: skip
        self.fill(known, self.settings(info), kept, sets)
        if checked:
            check_sets(self.geometry, info.n_states, sets)
            check_rooms(self.geometry, self.roomy, sets)
        if held is not None:
            copy = Held(*(part.copy() for part in held))
            intersect(np.arange(info.n_pairs), int(info.n_states), copy, sets)
        return sets

    def bounded(
        self, counts: Counts, t: int, info: ProblemInfo, state: int = 0, held: Held | None = None
    ) -> BoundedMDP:
        """Return the set of an episode that begins at time t in ``state`` as a checked model, intersected with those ``held`` so far."""
        if not self.is_set:
            raise OptionError(f"{type(self).__name__}: has one model, no set of plausible ones.")
        sets = self.sets(counts, t, info, state=state, held=held)
        if self.geometry in (BOX, NOSS):
            return _boxes(sets, info)
        return _l1_balls(sets, info) if self.geometry == BALL else _kl_balls(sets, info)


def new_numbers(
    estimate: Estimate, info: ProblemInfo, seen: Seen, more: int = 0
) -> tuple[Kept, Sets, NDArray[np.float64]]:
    """Allocate what an estimate writes to; also return all columns that move when successors are listed, ``more`` of them at the end."""
    pair, succ = estimate.n_kept
    own = 0 if estimate.owns_rows or estimate.rewrites else 2
    columns = np.zeros((own + succ + more, seen.succ.size))
    kept = Kept(np.zeros((pair, info.n_pairs)), columns[own : own + succ])
    if not estimate.owns_rows:
        ends = columns if own else np.zeros((2, seen.succ.size))
        return kept, new_sets(seen, info.n_states, info.n_pairs, ends, closes=estimate.closes_states), columns
    room = estimate.capacity(info, seen.succ.size)
    rows = seen._replace(succ_ptr=np.zeros(info.n_pairs + 1, dtype=np.int64), succ=np.zeros(room, dtype=np.uint32))
    sets = new_sets(rows, info.n_states, info.n_pairs, np.zeros((2, room)), closes=estimate.closes_states)
    return kept, sets, columns


def new_sets(rows: Seen, n_states: int, n_pairs: int, columns: NDArray[np.float64], *, closes: bool) -> Sets:
    """Allocate sets over the rows of ``rows``; ``columns`` begin with what they say of listed successors."""
    size, rest, r_low, r_high = (np.zeros(n_pairs) for _ in range(4))
    flagged, closed = (np.zeros(n if closes else 0, dtype=np.bool_) for n in (n_pairs, n_states))
    return Sets(rows.succ_ptr, rows.succ, columns[0], columns[1], size, rest, r_low, r_high, flagged, closed)


@check
def check_sets(geometry: int, n_states: int, sets: Sets) -> None:
    """Assert the contract of :class:`~spanrl.kernels.plan_workspace.Sets`."""
    ptr, n = sets.succ_ptr, int(sets.succ_ptr[-1])
    low, high = sets.low[:n], sets.low[:n] + sets.room[:n]
    assert (np.diff(ptr) >= 0).all(), "rows must begin where the last one ends"
    row = np.repeat(np.arange(ptr.size - 1), np.diff(ptr))
    inner = (row[1:] == row[:-1])[: max(n - 1, 0)]
    assert (sets.succ[1:n] > sets.succ[: max(n - 1, 0)])[inner].all(), "the successors of a row must rise"
    total = np.bincount(row, low, ptr.size - 1)
    assert np.isfinite(low).all(), "probabilities must be finite"
    assert (low >= 0).all(), "lower ends must be ≥ 0"
    assert np.isfinite(sets.r_high).all(), "rewards must be finite"
    assert (sets.r_low <= sets.r_high + _ROUNDING).all(), "r_low must not exceed r_high"
    if geometry == PLAIN:
        assert (np.abs(total - 1) <= _ROUNDING).all(), "the distributions of a plain model must sum to 1"
        return
    if geometry == BONUS:
        assert ((sets.size >= 0) & (sets.rest >= 0)).all(), "x and y must be ≥ 0"
        assert (total <= 1 + _ROUNDING).all(), "the distributions of a model with a bonus must not sum to more than 1"
        return
    if geometry in (BALL, KL):
        assert (sets.size >= 0).all(), "radii must be ≥ 0"
        centred = sets.size < (1 if geometry == BALL else np.inf)
        assert (np.abs(total[centred] - 1) <= _ROUNDING).all(), "the centres of balls must sum to 1"
        assert geometry == BALL or (low > 0).all(), "the centres of KL balls must be > 0"
        return
    assert geometry in (BOX, NOSS), "the geometry is BOX, BALL, KL, PLAIN, BONUS or NOSS"
    assert geometry == BOX or (sets.size >= 0).all(), "what NOSS may give up must be ≥ 0"
    assert (sets.room[:n] >= 0).all(), "rooms must be ≥ 0"
    assert (high <= 1 + _ROUNDING).all(), "upper ends must be ≤ 1"
    assert ((sets.rest >= 0) & (sets.rest <= 1)).all(), "the upper end of unlisted states must lie in [0, 1]"
    assert (total <= 1 + _ROUNDING).all(), "lower ends must not sum to more than 1"
    others = n_states - np.diff(ptr)
    if sets.closed.size:
        assert not (sets.closed[sets.succ[:n]] & sets.flagged[row]).any(), "flagged rows must not list closed states"
        assert not sets.flagged.any() or not sets.closed.all(), "some state must be open"
        others = others - sets.flagged * sets.closed.sum()
    assert (np.bincount(row, high, ptr.size - 1) + sets.rest * others >= 1 - _ROUNDING).all(), "upper ends must reach 1"


@check
def check_rooms(geometry: int, roomy: bool, sets: Sets) -> None:
    """Assert that a box keeps the promise of :attr:`Estimate.roomy`."""
    n, row = int(sets.succ_ptr[-1]), np.repeat(np.arange(sets.rest.size), np.diff(sets.succ_ptr))
    if roomy and geometry == BOX:
        assert (sets.room[:n] >= sets.rest[row] - _ROUNDING).all(), "roomy: a listed successor has less room than rest"


def _boxes(sets: Sets, info: ProblemInfo) -> BoundedMDP:
    """Return boxes as a model; flagged rows list the states that they cannot reach, with [0, 0]."""
    ptr, n = sets.succ_ptr, int(sets.succ_ptr[-1])
    succ, low, high = sets.succ[:n], sets.low[:n], sets.low[:n] + sets.room[:n]
    if sets.flagged.any():
        row, shut = np.repeat(np.arange(info.n_pairs), np.diff(ptr)), np.flatnonzero(sets.closed)
        mine = np.repeat(np.flatnonzero(sets.flagged), shut.size)
        rows = np.concatenate((row, mine))
        all_succ = np.concatenate((succ, np.tile(shut, int(sets.flagged.sum()))))
        order = np.lexsort((all_succ, rows))
        nothing = np.zeros(mine.size)
        succ, low, high = (
            all_succ[order], np.concatenate((low, nothing))[order], np.concatenate((high, nothing))[order]
        )  # fmt: skip
        ptr = np.searchsorted(rows[order], np.arange(info.n_pairs + 1))
    table = (info.pair_state, info.action, ptr, succ, low, np.minimum(high, 1.0))
    ends = sets.rest, sets.r_low, sets.r_high
    return BoundedMDP.from_pairs(*table, *ends, r_min=info.r_min, r_max=info.r_max, n_actions=info.n_actions)


def _l1_balls(sets: Sets, info: ProblemInfo) -> BoundedMDP:
    radius = np.minimum(2 * sets.size, 2.0)
    ends = sets.r_low, sets.r_high
    return BoundedMDP.l1_ball(_centres(sets, info), radius, *ends, r_min=info.r_min, r_max=info.r_max)


def _kl_balls(sets: Sets, info: ProblemInfo) -> BoundedMDP:
    ends = sets.r_low, sets.r_high
    return BoundedMDP.kl_ball(_centres(sets, info), sets.size, *ends, r_min=info.r_min, r_max=info.r_max)


def _centres(sets: Sets, info: ProblemInfo) -> MDP:
    """Return the centres of balls as a model. A pair without one, whose ball holds everything, has one of no meaning, at state 0."""
    ptr = sets.succ_ptr
    bare = np.diff(ptr) == 0
    at = ptr[:-1][bare]
    succ, low = np.insert(sets.succ[: ptr[-1]], at, 0), np.insert(sets.low[: ptr[-1]], at, 1.0)
    shifted = ptr + np.concatenate(([0], np.cumsum(bare)))
    nothing = np.zeros(info.n_pairs)
    return MDP.from_pairs(info.pair_state, info.action, shifted, succ, low, nothing, n_actions=info.n_actions)


def read_only(array: Any) -> Any:
    """Return a view that may not be written to: one type for all models, so that kernels compile once."""
    view = array.view()
    view.flags.writeable = False
    return view
