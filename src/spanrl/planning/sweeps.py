"""One block of a Markov chain by iteration: for large blocks whose factors would fill up.

They end with residuals of at most 1e-11 of the scale, or raise. That says little of the error where a block hangs together by rare
transitions alone, so such blocks are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np

from spanrl.errors import SpanrlError
from spanrl.kernels.chains import solve_transient
from spanrl.kernels.layout import PLAIN, Arrays, workspace
from spanrl.models.checks import immutable
from spanrl.planning.blocks import Recurrent, Transient
from spanrl.planning.iteration import Iteration
from spanrl.planning.multichain import closed_components
from spanrl.planning.problem import Problem, Vector
from spanrl.planning.rounds import Rounds

_RESIDUAL = 1e-11
_MAX_SWEEPS = 10**7
_ENTRIES_A_CALL = 2 * 10**7  # a kernel call lasts 0.1 s at the most
_RARE = 1e-6  # sweeps do not see what happens more rarely


def recurrent_by_sweeps(P: Any, r: Vector) -> Recurrent:
    """Find gain and relative values as the solver does, then the mean of the values, which is the gain of a chain that pays them."""
    check_links(P, np.zeros(r.size))
    arrays = _plain(P)
    lo, hi, v = _gain(arrays, r)
    low, high, _ = _gain(arrays, v)
    return Recurrent((lo + hi) / 2, v - (low + high) / 2, (hi - lo) / 2, 0.0, 0.0)


def _gain(arrays: Arrays, r: Vector) -> tuple[float, float, Vector]:
    """Return a bracket of the gain of a chain, as narrow as 1e-11 of the rewards' spread or as rounding allows, and its relative values."""
    problem = Problem(arrays, immutable(r, np.float64), 1.0, workspace(arrays))
    tol = _RESIDUAL * max(float(np.ptp(r)), 1e-300)
    iteration = Iteration(problem, np.zeros(r.size), inf, tol, 0, None, None, _MAX_SWEEPS)
    Rounds(iteration, may_solve=True, memory=problem.n_bytes).run()
    if not iteration.converged and not iteration.at_rounding:
        raise _too_slow(r.size)
    return iteration.lo, iteration.hi, iteration.v


def transient_by_sweeps(P: Any, left: Vector, b: Vector) -> Transient:
    """Iterate x ← b + Px until it moves by at most 1e-11 of the scale."""
    check_links(P, left)
    arrays, x = _plain(P.tocsr()), np.zeros(b.size)
    scale = max(float(np.abs(b).max()), 1e-300)
    for n in _calls(arrays):
        if solve_transient(arrays, b, x, n) <= _RESIDUAL * max(scale, float(np.abs(x).max())):
            return Transient(x, 0.0, 0.0)
    raise _too_slow(b.size)


def check_links(P: Any, left: Vector) -> None:
    """Raise where sweeps would not notice what holds a chain together: transitions too rare to move a value."""
    n = P.shape[0]
    P = P.tocsr()
    row, col = np.repeat(np.arange(n), np.diff(P.indptr)), P.indices
    out = np.flatnonzero(left > 0)  # the outside is one more state
    start, end = np.concatenate((row, out)), np.concatenate((col, np.full(out.size, n)))
    common = np.concatenate((P.data, left[out])) >= _RARE
    if closed_components(n + 1, start[common], end[common])[1].size > closed_components(n + 1, start, end)[1].size:
        raise SpanrlError(
            f"evaluate: {n} states of a chain hang together only by transitions with probabilities below {_RARE:g}: too many states "
            "to solve directly, too rare for sweeps to be trusted. Leave such transitions out, or aggregate the states between them."
        )


def _calls(arrays: Arrays) -> Iterator[int]:
    """Yield the number of sweeps of each kernel call: short calls, until the sweeps are used up."""
    n = max(1, _ENTRIES_A_CALL // max(1, arrays.succ.size))
    return (n for _ in range(-(-_MAX_SWEEPS // n)))


def _too_slow(n: int) -> SpanrlError:
    return SpanrlError(
        f"evaluate: no convergence on {n} states of a chain after {_MAX_SWEEPS:g} sweeps: it mixes too slowly."
    )


def _plain(P: Any) -> Arrays:
    empty = immutable(np.empty(0), np.float64)
    return Arrays(
        PLAIN,
        immutable(np.arange(P.shape[0] + 1), np.int64),
        immutable(P.indptr, np.int64),
        immutable(P.indices, np.uint32),
        immutable(P.data, np.float64),
        empty,
        empty,
        empty,
    )
