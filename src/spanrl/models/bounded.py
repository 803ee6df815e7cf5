"""A bounded-parameter ("extended") MDP: rewards and transition probabilities known only up to sets.

For every pair the reward lies in an interval [r_low, r_high], and the transition distribution in one of

* a **box**: p(s') ∈ [p_low(s'), p_high(s')] for the listed successors and p(s') ∈ [0, rest_high] for each state that is not
  listed, so that successors never seen cost no memory;
* an **L1 ball**: ‖p − centre‖₁ ≤ radius;
* a **KL ball**: KL(centre, p) = Σ centre·ln(centre/p) ≤ radius.

This is the set M of plausible MDPs in the paper (Sec. 3.1); choosing r and p inside it is part of the action of the
extended MDP. :meth:`BoundedMDP.augment` and :meth:`BoundedMDP.perturb` are the two halves of its Def. 3 (M‡).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanrl.errors import ModelError
from spanrl.models import box_checks, checks, files
from spanrl.models.balls import ball
from spanrl.models.checks import Array
from spanrl.models.costs import flip_ends, reward_range
from spanrl.models.mdp import MDP
from spanrl.models.membership import is_member
from spanrl.models.pairs import PairTable
from spanrl.models.rows import available_pairs


@dataclass(frozen=True, eq=False, repr=False)
class BoundedMDP(PairTable):
    """An MDP known up to a set per pair. Make one with :meth:`from_dense`, :meth:`from_pairs`, :meth:`l1_ball` or :meth:`kl_ball`.

    In a box model ``radius`` is empty. In a ball model ``p_low`` and ``p_high`` both hold the centre and ``rest_high`` is empty.

    Attributes:
        p_low, p_high: the ends of the interval of each listed successor.
        rest_high: the upper end that all other successors of a pair share [n_pairs].
        radius: of the ball of each pair [n_pairs].
        r_low, r_high: the ends of the interval of each reward [n_pairs].
        is_kl: whether balls are KL balls.
        costs: whether the model was given costs: rewards are −costs then, and results are costs.

    >>> low, high = [[[0.0, 0.2]]] * 2, [[[0.9, 1.0]]] * 2
    >>> bounded = BoundedMDP.from_dense(low, high, r_low=[[0.0], [0.5]], r_high=[[0.1], [0.6]])
    >>> bounded.contains(MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.05], [0.6]]))
    True
    """

    ARRAYS: ClassVar[dict[str, Any]] = {
        "pair_ptr": np.int64,
        "action": np.int64,
        "succ_ptr": np.int64,
        "succ": np.uint32,
        "p_low": np.float64,
        "p_high": np.float64,
        "rest_high": np.float64,
        "radius": np.float64,
        "r_low": np.float64,
        "r_high": np.float64,
    }
    LENGTHS: ClassVar[dict[str, str]] = PairTable.LENGTHS | {
        "p_low": "m", "p_high": "m", "rest_high": "n or 0", "radius": "n or 0", "r_low": "n", "r_high": "n",
    }  # fmt: skip

    pair_ptr: NDArray[np.int64]
    action: NDArray[np.int64]
    succ_ptr: NDArray[np.int64]
    succ: NDArray[np.uint32]
    p_low: NDArray[np.float64]
    p_high: NDArray[np.float64]
    rest_high: NDArray[np.float64]
    radius: NDArray[np.float64]
    r_low: NDArray[np.float64]
    r_high: NDArray[np.float64]
    r_min: float
    r_max: float
    n_actions: int
    is_kl: bool = False
    costs: bool = False

    @classmethod
    def from_pairs(
        cls,
        state: ArrayLike,
        action: ArrayLike,
        succ_ptr: ArrayLike,
        succ: ArrayLike,
        p_low: ArrayLike,
        p_high: ArrayLike,
        rest_high: ArrayLike,
        r_low: ArrayLike,
        r_high: ArrayLike,
        *,
        r_min: float | None = None,
        r_max: float | None = None,
        costs: bool = False,
        n_actions: int | None = None,
    ) -> BoundedMDP:
        """Build a sparse box model from pairs sorted by (state, action).

        Args:
            state, action: [n_pairs], sorted, each pair once; every state 0..S−1 occurs.
            succ_ptr, succ: listed successors of pair i are ``succ[succ_ptr[i]:succ_ptr[i+1]]``, each once.
            p_low, p_high: ends of the interval of each listed successor, in [0, 1].
            rest_high: [n_pairs], upper end for every state that is not listed (0: only the listed ones are possible).
            r_low, r_high: [n_pairs], ends of the reward intervals, in [r_min, r_max].
            r_min, r_max: range of the rewards (default: as in :meth:`spanrl.MDP.from_pairs`).
            costs: r_low, r_high and the range are costs; rewards are their negatives.
            n_actions: the number of actions (default: the largest action + 1).
        """
        who = "BoundedMDP"
        states, actions, pair_ptr = box_checks.pairs(who, state, action)
        S, n_pairs = pair_ptr.size - 1, states.size

        def where(i: int) -> str:
            return f"[s={states[i]}, a={actions[i]}]"

        ptr, succs = checks.integers(who, "succ_ptr", succ_ptr), checks.indices(who, "succ", succ)
        checks.successor_table(who, ptr, succs, n_pairs, S, where)
        low, high = (
            checks.numeric(who, "p_low", p_low, (succs.size,)),
            checks.numeric(who, "p_high", p_high, (succs.size,)),
        )
        rest = checks.numeric(who, "rest_high", rest_high, (n_pairs,))
        box_checks.box(who, ptr, succs, low, high, rest, where)
        keep = (high > 0) | np.repeat(rest > 0, np.diff(ptr))
        order = checks.canonical_order(ptr, succs, keep)
        if order is not None:
            index, ptr = order
            succs, low, high = succs[index], low[index], high[index]
            box_checks.unique(who, ptr, succs, where)
        low, high, rest = box_checks.with_mass(who, ptr, low, high, rest, S, where)
        lows, highs = (checks.numeric(who, n, r, (n_pairs,)) for n, r in (("r_low", r_low), ("r_high", r_high)))
        A = checks.action_count(who, actions, S, n_actions, None)
        r_min, r_max, _ = reward_range(who, costs, r_min, r_max, lows, highs)
        lows, highs = flip_ends(costs, lows, highs)
        table = (pair_ptr, actions, ptr, succs, low, high, rest, np.empty(0))
        return cls(*table, lows, highs, r_min, r_max, A, costs=bool(costs))

    @classmethod
    def from_dense(
        cls,
        p_low: ArrayLike,
        p_high: ArrayLike,
        r_low: ArrayLike,
        r_high: ArrayLike,
        *,
        available: ArrayLike | None = None,
        r_min: float | None = None,
        r_max: float | None = None,
        costs: bool = False,
    ) -> BoundedMDP:
        """Build a box model from arrays p_low, p_high [S, A, S] and r_low, r_high [S, A]; the rest as in ``MDP.from_dense``."""
        who = "BoundedMDP"
        low = checks.numeric(who, "p_low", p_low, (None, None, None))
        S, A = low.shape[:2]
        if low.shape != (S, A, S):
            raise ModelError(
                f"{who}: p_low must have shape [S, A, S]; got {low.shape}. The first and last length must agree."
            )
        high = checks.numeric(who, "p_high", p_high, (S, A, S))
        r_lows, r_highs = checks.numeric(who, "r_low", r_low, (S, A)), checks.numeric(who, "r_high", r_high, (S, A))
        states, actions = available_pairs(who, available, S, A)
        rows_low, rows_high = low[states, actions], high[states, actions]
        pair, succ = np.nonzero((rows_high != 0) | (rows_low != 0))
        ptr = np.searchsorted(pair, np.arange(states.size + 1))
        return cls.from_pairs(
            states,
            actions,
            ptr,
            succ,
            rows_low[pair, succ],
            rows_high[pair, succ],
            np.zeros(states.size),
            r_lows[states, actions],
            r_highs[states, actions],
            r_min=r_min,
            r_max=r_max,
            costs=costs,
            n_actions=A,
        )

    @classmethod
    def l1_ball(
        cls,
        P: ArrayLike | MDP,
        radius: ArrayLike,
        r_low: ArrayLike,
        r_high: ArrayLike,
        *,
        available: ArrayLike | None = None,
        r_min: float | None = None,
        r_max: float | None = None,
        costs: bool = False,
    ) -> BoundedMDP:
        """Build a model with ‖p − P‖₁ ≤ radius per pair.

        Args:
            P: the centres, [S, A, S], or an ``MDP`` (sparse; its pairs are used and ``available`` must be left out).
            radius: one number, or [S, A] (with an ``MDP`` also [n_pairs]); ≥ 0.
            r_low, r_high: one number, or [S, A] (with an ``MDP`` also [n_pairs]).
            available: [S, A], which actions exist.
            r_min, r_max: range of the rewards (default: as in :meth:`spanrl.MDP.from_pairs`).
            costs: r_low, r_high and the range are costs; rewards are their negatives.
        """
        return cls._ball(P, radius, r_low, r_high, available, r_min, r_max, costs=costs, is_kl=False)

    @classmethod
    def kl_ball(
        cls,
        P: ArrayLike | MDP,
        radius: ArrayLike,
        r_low: ArrayLike,
        r_high: ArrayLike,
        *,
        available: ArrayLike | None = None,
        r_min: float | None = None,
        r_max: float | None = None,
        costs: bool = False,
    ) -> BoundedMDP:
        """Build a model with KL(P, p) = Σ P(s') ln(P(s')/p(s')) ≤ radius per pair: what P excludes costs p only the mass it takes.

        Args:
            P: the centres, [S, A, S], or an ``MDP`` (sparse; its pairs are used and ``available`` must be left out).
            radius: one number, or [S, A] (with an ``MDP`` also [n_pairs]); ≥ 0, ∞ allows everything.
            r_low, r_high: one number, or [S, A] (with an ``MDP`` also [n_pairs]).
            available: [S, A], which actions exist.
            r_min, r_max: range of the rewards (default: as in :meth:`spanrl.MDP.from_pairs`).
            costs: r_low, r_high and the range are costs; rewards are their negatives.

        Raises:
            ModelError: a centre is no distribution, a radius is negative, or an interval of rewards is empty or outside the range.

        >>> import spanrl
        >>> ball = BoundedMDP.kl_ball([[[0.5, 0.5]], [[0.0, 1.0]]], 0.1, r_low=0.0, r_high=[[0.0], [1.0]])
        >>> round(float(spanrl.bellman(ball, [0.0, 1.0])[0]), 6)  # max q₁ with −½ ln(4 q₁(1 − q₁)) ≤ 0.1
        0.712879
        """
        return cls._ball(P, radius, r_low, r_high, available, r_min, r_max, costs=costs, is_kl=True)

    @classmethod
    def _ball(
        cls, P: ArrayLike | MDP, radius: ArrayLike, r_low: ArrayLike, r_high: ArrayLike, available: ArrayLike | None,
        r_min: float | None, r_max: float | None, *, costs: bool, is_kl: bool,
    ) -> BoundedMDP:  # fmt: skip
        """Build a model with balls around P."""
        costs = costs or (isinstance(P, MDP) and P.costs)
        centre, radii, lows, highs = ball("BoundedMDP", P, radius, r_low, r_high, available)
        low, high, _ = reward_range("BoundedMDP", costs, r_min, r_max, lows, highs)
        table = (centre.pair_ptr, centre.action, centre.succ_ptr, centre.succ, centre.prob, centre.prob)
        ends = flip_ends(costs, lows, highs)
        return cls(*table, np.empty(0), radii, *ends, low, high, centre.n_actions, is_kl, costs)

    def check(self) -> None:
        """Check the ends of all intervals, and the radii and centres of balls."""
        who, is_ball = "BoundedMDP", self.radius.size > 0
        sizes = (
            self.p_low.size == self.p_high.size == self.succ.size,
            self.r_low.size == self.r_high.size == self.n_pairs,
        )
        if not all(sizes) or (self.radius if is_ball else self.rest_high).size != self.n_pairs:
            raise ModelError(f"{who}: the arrays do not fit together. Use from_pairs, from_dense, l1_ball or kl_ball.")
        checks.reward_range(who, self.r_min, self.r_max)
        ends, limits = flip_ends(self.costs, self.r_low, self.r_high), flip_ends(self.costs, self.r_min, self.r_max)
        box_checks.reward_intervals(who, *ends, *limits, self.n_pairs, self.where)
        wrong = ~((np.isfinite(self.radius) | self.is_kl) & (self.radius >= 0))
        rule, everything = ("a number ≥ 0", "∞") if self.is_kl else ("a finite number ≥ 0", "2 already")
        where, remedy = (lambda i: f"radius{self.where(i)}"), f"A radius of {everything} allows everything."
        checks.reject(who, wrong, where, f"must be {rule}", self.radius, remedy)
        if self.is_kl and not (is_ball and (self.p_low > 0).all()):
            raise ModelError(f"{who}: KL balls have a radius, and centres that list no zeros. Use kl_ball.")
        rest = np.zeros(self.n_pairs) if is_ball else self.rest_high
        box_checks.box(who, self.succ_ptr, self.succ, self.p_low, self.p_high, rest, self.where)
        box_checks.with_mass(who, self.succ_ptr, self.p_low, self.p_high, rest, self.n_states, self.where)

    @property
    def is_ball(self) -> bool:
        """Whether the transition sets are L1 balls (otherwise boxes or KL balls)."""
        return self.radius.size > 0 and not self.is_kl

    @property
    def _kind(self) -> str:
        return "KL balls" if self.is_kl else "L1 balls" if self.is_ball else "boxes"

    def contains(self, mdp: MDP, *, tol: float = 1e-12) -> bool:
        """Tell whether ``mdp`` has the same pairs and lies in the set, up to rounding (``tol``)."""
        if not isinstance(mdp, MDP):
            raise ModelError(f"BoundedMDP.contains: takes an MDP; got {type(mdp).__name__}.")
        return is_member(self, mdp, tol)

    def augment(self) -> BoundedMDP:
        """Return the model whose reward intervals reach down to r_min: B_r ← [r_min, max B_r] (paper, Def. 3).

        L and T_c stay the same, and T_c becomes feasible wherever sp(v) ≤ c.
        """
        return replace(self, r_low=np.full(self.n_pairs, self.r_min))

    def perturb(self, eta: float, state: int) -> BoundedMDP:
        """Return the model in which every pair reaches ``state`` with probability at least η (paper, Def. 3).

        B_p(s, a, s̄) ← B_p(s, a, s̄) ∩ [η, 1]. Raises where one of the three conditions fails: the intersection is empty, the
        lower ends add up to more than 1, or the upper ends to less than 1. The Bellman operator becomes a span contraction
        with factor ≤ 1 − η. Boxes only.
        """
        who = "BoundedMDP.perturb"
        if self.radius.size:
            raise ModelError(
                f"{who}: works on boxes; this model has {self._kind}. Build the set from intervals instead."
            )
        if not (isinstance(eta, Real) and 0 < eta <= 1):
            raise ModelError(f"{who}: eta must lie in (0, 1]; got {eta!r}.")
        if not (isinstance(state, Integral) and 0 <= state < self.n_states):
            raise ModelError(f"{who}: state must be in 0..{self.n_states - 1}; got {state!r}.")
        keys = box_checks.keys(self.succ_ptr, self.succ, self.n_states)
        wanted = np.arange(self.n_pairs) * self.n_states + state
        at = np.searchsorted(keys, wanted)
        listed = np.zeros(self.n_pairs, dtype=bool)
        listed[at < keys.size] = keys[at[at < keys.size]] == wanted[at < keys.size]
        new = ~listed
        succ = np.insert(self.succ, at[new], state)
        low, high = np.insert(self.p_low, at[new], 0.0), np.insert(self.p_high, at[new], self.rest_high[new])
        ptr = self.succ_ptr + np.concatenate(([0], np.cumsum(new)))
        here = at + np.concatenate(([0], np.cumsum(new)))[:-1]
        checks.reject(
            who,
            high[here] < eta,
            lambda i: f"p_high{self.where(i)}[s'={state}]",
            f"must be at least eta = {eta:g}",
            high[here],
            "Use a smaller eta.",
        )
        low[here] = np.maximum(low[here], eta)
        low, high, rest = box_checks.with_mass(who, ptr, low, high, self.rest_high, self.n_states, self.where)
        return replace(self, succ_ptr=ptr, succ=succ, p_low=low, p_high=high, rest_high=rest)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to ``path`` (.npz, versioned, no pickle) in one step; a file that is there stays unless ``overwrite`` is true."""
        arrays = {name: getattr(self, name) for name in self.ARRAYS} | files.flags(is_kl=self.is_kl, costs=self.costs)
        files.write(
            Path(path),
            "bounded",
            arrays | {"range": np.array([self.r_min, self.r_max]), "n_actions": np.array(self.n_actions)},
            overwrite=overwrite,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BoundedMDP:
        """Read a model that :meth:`save` wrote; everything is validated again."""
        data = files.read(Path(path), "bounded", cls.LENGTHS, ("is_kl", "costs"))
        bounded = files.rebuild(Path(path), lambda: cls._from_file(data))
        return replace(bounded, costs=True) if files.rebuild(Path(path), lambda: files.flag(data, "costs")) else bounded

    @classmethod
    def _from_file(cls, data: dict[str, Array]) -> BoundedMDP:
        state = checks.pair_states("BoundedMDP", data["pair_ptr"], data["action"].size)
        r_min, r_max = checks.numeric("BoundedMDP", "range", data["range"], (2,)).tolist()
        n_actions = files.whole(data["n_actions"])
        if data["radius"].size:
            centre = MDP.from_pairs(
                state,
                data["action"],
                data["succ_ptr"],
                data["succ"],
                data["p_low"],
                np.zeros(state.size),
                n_actions=n_actions,
            )
            around = cls.kl_ball if files.flag(data, "is_kl") else cls.l1_ball
            return around(centre, data["radius"], data["r_low"], data["r_high"], r_min=r_min, r_max=r_max)
        arrays = ("action", "succ_ptr", "succ", "p_low", "p_high", "rest_high", "r_low", "r_high")
        return cls.from_pairs(state, *(data[name] for name in arrays), r_min=r_min, r_max=r_max, n_actions=n_actions)

    def __str__(self) -> str:
        """Summarise in three lines."""
        return "\n".join(
            (
                f"BoundedMDP ({self._kind}): {self.n_states} states, {self.n_actions} actions, {self.n_pairs} pairs, "
                f"{self.succ.size} listed transitions",
                f"{'cost' if self.costs else 'reward'} intervals: mean width {np.mean(self.r_high - self.r_low):.4g} "
                "in [{:g}, {:g}]".format(*flip_ends(self.costs, self.r_min, self.r_max)),
                f"{self._kind[:2]} radius: mean {self.radius.mean():.4g}"
                if self.radius.size
                else f"transition intervals: mean width {np.mean(self.p_high - self.p_low) if self.succ.size else 0.0:.4g}, "
                f"unlisted successors up to {self.rest_high.max():.4g}",
            )
        )

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<BoundedMDP: {self.n_states} states, {self.n_actions} actions, {self.n_pairs} pairs, {self._kind}>"
