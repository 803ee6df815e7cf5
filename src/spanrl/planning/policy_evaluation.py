"""A policy that is evaluated: its rows, which of its states a span bound truncates, and its values by linear systems.

With a horizon H the values x of a policy d from v on are those of w = Γ_c F_d(v/H + (1 − 1/H)w), x = w − v
(:mod:`spanrl.planning.resolvent`). Without a span bound that is one linear system. With one, Γ_c is a second player who lowers whatever is
too high: to the value of the lowest state s₀ plus c. Once it is known who is truncated, w solves a linear system again; and as Γ_c F_d is
concave, Newton's method, which solves one for each set of truncated states, comes down to w from above in a few steps. Some sweeps of the
same map after each step keep it above w and move the border of the truncated states, where Newton's method moves it state by state. As for
L, w does not lower min(T_c v − v): that of Γ_c F_d is kept, and T_c ≥ Γ_c F_d.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.kernels.layout import BOX, PLAIN
from spanrl.kernels.policies import (
    Chain,
    follow,
    freeze,
    longest_rows,
    lowest_state,
    new_chain,
    residual,
    step_of,
    truncate,
    truncated_sweeps,
)
from spanrl.kernels.projection import clip
from spanrl.planning import prices
from spanrl.planning.problem import Problem, Vector
from spanrl.planning.resolvent import Resolvent

_WIDE_ROWS = 8  # entries per listed successor, above which the rows of a box are not written out
_MOST_SYSTEMS, _PART = 30, 0.01  # that find out who is truncated, and of the bracket, what they may leave
_SWEEPS = 0.3  # of the price of a system: what sweeps before the next one may cost


class PolicyEvaluation:
    """The policy that a solve evaluates. ``truncated`` and the lowest state are those of the last vector that was truncated."""

    def __init__(self, problem: Problem, c: float) -> None:
        """Begin without a policy."""
        m, S = problem.arrays, problem.n_states
        self._problem, self._c = problem, c
        self.pair = np.full(S, -1)
        """The chosen pair of each state."""
        self.changes = 0
        """How many states changed their action, last time."""
        self.is_kept = False
        """Whether the rows are those of the time before."""
        self.step = 1.0
        """How long a step of a sweep may be."""
        self.passes = 0
        """How often evaluations have read the rows, but for the iterations of IDR."""
        self.truncated = np.zeros(S, dtype=np.uint8)
        self._lowest = 0
        self._evaluated: tuple[NDArray[np.uint8], int] | None = (
            None  # truncated and lowest states of the last evaluation
        )
        self._follows = m.kind == PLAIN and c == inf
        self._rows: tuple[Any, ...] = m.succ_ptr, m.succ, m.low, problem.reward, self.pair
        self._chain: Chain | None = None

    @property
    def chain(self) -> Chain:
        """The policy as a chain: of its own rows alone, but for the truncated ones in linear systems."""
        if self._chain is None:
            m = self._problem.arrays
            self._chain = new_chain(self.pair.size, longest_rows(m.pair_ptr, m.succ_ptr))
        return self._chain

    @property
    def sweep_cost(self) -> float:
        """Nanoseconds of a sweep over the policy."""
        return prices.policy_sweep(self.chain)

    def become(self, pair: NDArray[np.int64], v: Vector) -> bool:
        """Freeze these pairs, with nature's answers to v; return False where these have far too many entries to be written out."""
        p, S = self._problem, self.pair.size
        if self._follows:
            self.changes, most = follow(*self._rows[:4], pair, self.pair, self.chain)
            self.step, self.is_kept = step_of(most), self.changes == 0
            return True
        self.changes = self.count_others(pair)
        self.pair[:] = pair
        if p.arrays.kind != PLAIN:
            if _is_wide(p, pair):
                return False
            ptr, succ, prob = p.rows(v, pair)
            self._rows = ptr, succ, prob, p.reward[pair], np.arange(S)
            self._chain = new_chain(S, succ.size + S)
        self.chain.cut[:] = 0
        most = freeze(*self._rows, 0, self.chain)
        self.step = step_of(most) if self._c == inf else 1.0
        return True

    def count_others(self, pair: NDArray[np.int64]) -> int:
        """Return in how many states another pair stands here."""
        return int((pair != self.pair).sum())

    def truncate(self, u: Vector) -> bool:
        """Apply Γ_c to u; return whether the lowest state or who is truncated changes by it."""
        if self._c == inf:
            return False
        before, lowest = self.truncated.copy(), self._lowest
        self._lowest = lowest_state(u)
        truncate(u, u[self._lowest] + self._c, self.truncated)
        return lowest != self._lowest or not np.array_equal(before, self.truncated)

    def evaluate(
        self,
        resolvent: Resolvent,
        v: Vector,
        slowness: float,
        width: float,
        wanted: float,
        *,
        is_settled: bool,
        again: bool,
    ) -> Vector | None:
        """Return v + x up to a constant, or None where a system was not solved; ``again``: by the factors of the last one, if there are.

        The rest is explained at :meth:`Resolvent.solve`.
        """
        if self._c < inf:
            if self._evaluated is not None:
                self.truncated[:], self._lowest = self._evaluated
            self._write_truncated()
        d = self._residual(v, v, resolvent.horizon)
        x = resolvent.solve_again(d) if again else None
        if x is None:
            x = resolvent.solve(self.chain, d, slowness, width, wanted, is_settled=is_settled)
        if x is None or self._c == inf:
            return None if x is None else v + x
        w, u, price = v + x, np.empty_like(v), resolvent.spent
        for _ in range(_MOST_SYSTEMS):
            n = 1 + int(min(_SWEEPS * price, prices.KERNEL_CALL) / self.sweep_cost)
            truncated_sweeps(*self._rows, self._c, resolvent.horizon, v, w, u, n)
            self.passes += n
            if not self.truncate(u) or np.ptp(u - w) <= _PART * width:
                break
            self._write_truncated()
            price = -resolvent.spent
            x = resolvent.solve_in(self.chain, self._residual(w, v, resolvent.horizon))
            if x is None:
                return None
            w += x
            price += resolvent.spent
        clip(w, self._c)
        self._evaluated = self.truncated.copy(), self._lowest
        return w

    def _write_truncated(self) -> None:
        """Let the rows of truncated states say that their value is that of the lowest state and a constant."""
        self.chain.cut[:] = self.truncated
        freeze(*self._rows, self._lowest, self.chain)

    def _residual(self, w: Vector, v: Vector, horizon: float) -> Vector:
        """Return what is left of the equations at w but for a constant, summed from differences."""
        self.passes += 1
        z, d = w - (w - v) / horizon, np.empty_like(v)
        residual(self.chain, z, d)
        d += z - w
        d -= d.min() / 2 + d.max() / 2
        return np.where(self.chain.cut, self._c + w[self._lowest] - w, d) if self._c < inf else d


def _is_wide(p: Problem, pairs: NDArray[np.int64]) -> bool:
    """Tell whether nature's answers to a policy have far more entries than are listed."""
    m = p.arrays
    if m.kind != BOX:
        return False
    spread = np.where(m.rest[pairs] > 0, m.slack[pairs] / np.maximum(m.rest[pairs], 1e-300), 0.0)
    listed = (m.succ_ptr[pairs + 1] - m.succ_ptr[pairs]).sum()
    return bool(np.minimum(spread, p.n_states).sum() > _WIDE_ROWS * (listed + p.n_states))
