"""What follows Lv in a sweep: nothing, Γ_c, or the projection on difference constraints.

::

    Γ_c u(s)    = min{u(s), min_x u(x) + c}
    Proj_d u(s) = min_x {u(x) + d(s, x)}        the largest v ≤ u with v(s) − v(x) ≤ d(s, x), where d is closed and d(s, s) = 0

Γ_c is d ≡ c, bit for bit. Both are monotone and add constants through, for any d. The second takes S² steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.kernels.jit import kernel


class Differences(NamedTuple):
    """Difference constraints for kernels; empty arrays stand for none."""

    bound: Any  # float64 [S, S], read-only: d(s, x)
    scratch: Any  # float64 [S]


def new_differences(bound: NDArray[np.float64] | None) -> Differences:
    """Return constraints with room for a projection."""
    d = np.empty((0, 0)) if bound is None else bound.view()
    d.flags.writeable = False
    return Differences(d, np.empty(d.shape[0]))


@kernel
def clip(u, c):
    """Apply Γ_c in place: u ← min(u, min u + c)."""
    if c == np.inf:
        return
    ceiling = np.inf
    for s in range(u.size):
        ceiling = min(ceiling, u[s])
    ceiling += c
    for s in range(u.size):
        u[s] = min(u[s], ceiling)


@kernel
def keep_differences(u, differences):
    """Apply Proj_d in place where there are difference constraints."""
    d, projected = differences.bound, differences.scratch
    if projected.size == 0:
        return
    end = u.size - u.size % 4
    for s in range(u.size):
        a = b = e = f = np.inf  # four chains of comparisons: one alone would wait for itself
        for x in range(0, end, 4):
            a, b = min(a, u[x] + d[s, x]), min(b, u[x + 1] + d[s, x + 1])
            e, f = min(e, u[x + 2] + d[s, x + 2]), min(f, u[x + 3] + d[s, x + 3])
        for x in range(end, u.size):
            a = min(a, u[x] + d[s, x])
        projected[s] = min(a, b, e, f)
    for s in range(u.size):
        u[s] = projected[s]


@kernel
def project(u, c, differences):
    """Apply the projection in place: Proj_d where there are difference constraints, which then hold the span bound, otherwise Γ_c."""
    clip(u, c)
    keep_differences(u, differences)


@kernel
def close(d, tol, first, end):
    """Do the pivots ``first:end`` of the closure of d [S, S] in place (Floyd–Warshall); return False where a cycle is negative.

    A way round that is shorter by ``tol`` or less is rounding, and not taken.
    """
    S = d.shape[0]
    for k in range(first, end):
        via = d[k]
        for i in range(S):
            row, here = d[i], d[i, k]
            if i != k and here < np.inf:
                for j in range(S):
                    way, now = here + via[j], row[j]
                    row[j] = way if way < now - tol else now
        for i in range(S):
            if d[i, i] < 0.0:
                return False
    return True
