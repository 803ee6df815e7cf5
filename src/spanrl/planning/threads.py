"""Sweeps shared among threads: blocks of neighbouring states with equal numbers of nonzeros, one block per thread.

Every block writes its own part of Lv and reads nothing that another writes, and all that looks at the whole vector (the order of
the states of a set model, the truncation, the bracket, the step) is done by one thread with the same code as ever: the number of threads
cannot be seen in the result. Handing out the blocks costs some 50 µs per sweep, so that small models are swept by one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.kernels.backups import block_backup
from spanrl.kernels.improvement import block_improve, improve_from
from spanrl.kernels.iterate import finish_sweep, value_iteration
from spanrl.kernels.layout import PLAIN
from spanrl.kernels.order import rank_states
from spanrl.kernels.projection import Differences
from spanrl.planning.problem import Problem, Vector

PAYS = 10**6
"""Nonzeros of a model from which threads are used."""

Outcome = tuple[int, float, float, float, bool]


class Sweeper:
    """The threads of one solve; a context, at whose end they are gone."""

    def __init__(self, threads: int = 1) -> None:
        """Take so many threads; they start when they are first needed."""
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._problem: Problem | None = None
        self._blocks: list[tuple[Any, Any, slice]] = []

    def __enter__(self) -> Sweeper:
        """Return the sweeper."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for blocks under way, which are short, and let the threads go."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def sweep(
        self,
        p: Problem,
        v: Vector,
        u: Vector,
        c: float,
        differences: Differences,
        tol: float,
        extra: float,
        gamma: float,
        a: float,
        s_ref: int,
        budget: int,
    ) -> Outcome:
        """Do what :func:`spanrl.kernels.iterate.value_iteration` does, to the last bit, with threads where they pay."""
        if not self.shares(p):
            shared = (p.arrays, p.reward, p.sign, p.workspace, v, u)
            return value_iteration(*shared, c, differences, tol, extra, gamma, a, s_ref, p.rounding, budget)  # type: ignore[no-any-return]
        n, lo, hi, closed = 0, -np.inf, np.inf, False
        while n < budget and not closed:
            self._in_blocks(p, v, lambda m, ws, part: block_backup(m, p.reward, p.sign, ws, v, u[part]))
            lo, hi, extra, closed = finish_sweep(v, u, c, differences, tol, extra, gamma, a, s_ref, p.rounding)
            n += 1
        return n, lo, hi, extra, closed

    def improve(
        self, p: Problem, v: Vector, q: Vector, u: Vector, pair: NDArray[np.int64], *, blank: bool = False
    ) -> None:
        """Set q to the value of every pair at v, u = Lv and ``pair`` to pairs that attain it.

        ``blank`` tells that v = 0 in a plain model: then the rewards are the values.
        """
        if blank:
            q[:] = p.reward
            improve_from(p.arrays.pair_ptr, q, u, pair)
        elif self.shares(p):
            self._in_blocks(p, v, lambda m, ws, part: block_improve(m, p.reward, p.sign, ws, v, q, u[part], pair[part]))
        else:
            if p.arrays.kind != PLAIN:
                rank_states(p.sign, v, p.workspace)
            block_improve(p.arrays, p.reward, p.sign, p.workspace, v, q, u, pair)

    def shares(self, p: Problem) -> bool:
        """Tell whether threads share the sweeps over a problem."""
        return self.threads > 1 and p.arrays.succ.size >= PAYS

    def _in_blocks(self, p: Problem, v: Vector, work: Callable[[Any, Any, slice], None]) -> None:
        """Let ``work`` be done on each block, the last of them in this thread."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="spanrl")
        if self._problem is not p:
            self._problem, self._blocks = p, blocks(p, self.threads)
        if p.arrays.kind != PLAIN:
            rank_states(p.sign, v, p.workspace)
        *others, own = self._blocks
        under_way = [self._pool.submit(work, *block) for block in others]
        work(*own)
        for block in under_way:
            block.result()


def blocks(p: Problem, n: int) -> list[tuple[Any, Any, slice]]:
    """Cut a problem into at most n blocks of neighbouring states: (arrays, workspace, states) of each."""
    m, ws = p.arrays, p.workspace
    first = m.succ_ptr[m.pair_ptr]  # the entry at which each state begins
    cuts = np.searchsorted(first, first[-1] * np.arange(n + 1) / n)
    cuts[0], cuts[-1] = 0, m.pair_ptr.size - 1  # the first and the last states may have no listed successors at all
    cuts = np.unique(cuts)
    out = []
    for begin, end in pairwise(cuts):
        pairs = slice(m.pair_ptr[begin], m.pair_ptr[end])
        own = ws if m.kind == PLAIN else ws._replace(pairs=ws.pairs[pairs], todo=ws.todo[pairs])
        out.append((m._replace(pair_ptr=m.pair_ptr[begin : end + 1]), own, slice(begin, end)))
    return out
