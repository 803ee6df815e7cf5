"""The solver loop: v ← (1−a)v + a·Fv, F = L and a projection, and the gain bracket [min(Fv − v), max(Fv − v)] as its certificate."""

from __future__ import annotations

import numpy as np

from spanrl.kernels.backups import backup
from spanrl.kernels.jit import kernel
from spanrl.kernels.projection import project

ROUNDING = 1.8e-15
"""What rounding may take from a value with up to a dozen successors, in units of the largest one: eight units in the last place."""

_UNIT = 2.0**-52  # twice what one operation may take: the rest is for what is counted


@kernel
def bracket(v, u, rounding):
    """Return (min(u − v), max(u − v)), widened by ``rounding`` times the largest value, for what rounding may have taken from u = Fv."""
    lo, hi, size_u, size_v = np.inf, -np.inf, 0.0, 0.0  # two sizes: one would be the longest chain of the loop
    for s in range(v.size):
        d = u[s] - v[s]
        lo = min(lo, d)
        hi = max(hi, d)
        size_u = max(size_u, abs(u[s]))
        size_v = max(size_v, abs(v[s]))
    size = max(size_u, size_v)
    return lo - rounding * size, hi + rounding * size


@kernel
def sharp_bracket(m, reward, v, q):
    """Return a bracket of the gain of a plain model that keeps its digits where values are large; q is Lv − v for all pairs.

    Lv − v is summed from differences, r + Σ p(x)(v(x) − v(s)) over the other states x: where large ones are rare, as in a model that
    changes once in 10⁹ steps, the terms are small, and so is what rounding takes from them. A sum of n of them is off by n + 2 units.
    """
    lo, hi = np.inf, -np.inf
    for s in range(v.size):
        low, high = -np.inf, -np.inf
        for i in range(m.pair_ptr[s], m.pair_ptr[s + 1]):
            d, size, n = reward[i], abs(reward[i]), 4
            for j in range(m.succ_ptr[i], m.succ_ptr[i + 1]):
                if m.succ[j] != s:
                    term = m.low[j] * (v[m.succ[j]] - v[s])
                    d += term
                    size += abs(term)
                    n += 1
            q[i] = d
            low, high = max(low, d - n * _UNIT * size), max(high, d + n * _UNIT * size)
        lo, hi = min(lo, low), max(hi, high)
    return lo, hi


@kernel
def relax(v, u, a, s_ref):
    """Set v ← (1−a)v + a·u, shifted to 0 at s_ref."""
    shift = (1.0 - a) * v[s_ref] + a * u[s_ref]
    for s in range(v.size):
        v[s] = (1.0 - a) * v[s] + a * u[s] - shift


@kernel
def finish_sweep(v, u, c, differences, tol, extra, gamma, a, s_ref, rounding):
    """Take u = Lv to the next v, unless the bracket is at most ``tol`` wide: then u = Fv and v stays. Returns (lo, hi, extra, closed).

    ``extra`` is the paper's term 2γⁿ/(1−γ)·sp(v₁ − v₀), added to the width before it is compared; it shrinks by γ a sweep. A negative
    one means: not known yet, set it from this sweep.
    """
    project(u, c, differences)
    lo, hi = bracket(v, u, rounding)
    if extra < 0.0:
        extra = 2.0 / (1.0 - gamma) * (hi - lo)
    if hi - lo + extra <= tol:
        return lo, hi, extra, True
    relax(v, u, a, s_ref)
    return lo, hi, extra * gamma, False


@kernel
def value_iteration(m, reward, sign, ws, v, u, c, differences, tol, extra, gamma, a, s_ref, rounding, budget):
    """Sweep until the bracket is at most ``tol`` wide, or ``budget`` sweeps are done.

    On success v is the vector that the bracket and the policy belong to, and u = Fv; ``extra`` is as in :func:`finish_sweep`. Returns
    (sweeps, lo, hi, extra, converged).
    """
    lo, hi, n, closed = -np.inf, np.inf, 0, False
    while n < budget and not closed:
        backup(m, reward, sign, ws, v, u)
        lo, hi, extra, closed = finish_sweep(v, u, c, differences, tol, extra, gamma, a, s_ref, rounding)
        n += 1
    return n, lo, hi, extra, closed
