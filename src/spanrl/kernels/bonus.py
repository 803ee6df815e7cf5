"""The value of a pair of an empirical model with a bonus for its uncertainty, which depends on the values themselves.

With weights p of the listed successors, their mean m and variance V of the values v, and two numbers x, y of the pair::

    q = r + M·min(m + max(√(x V), y), max v) + (1 − M)·v(0),    M = Σ p before it is scaled to 1

x and y are ``size`` and ``rest`` of the pair; M < 1 is a discount: with probability 1 − M the process starts anew in state 0. Where nothing
is listed, q = r + max v. Constants added to v are added to q. Where sp(v) ≤ y/x, q rises with v: the slope of m + √(xV) in v(s) is
p(s)(1 + √x (v(s) − m)/√V), and where the root is the larger one, √(xV) ≥ y ≥ x·sp(v) ≥ x (m − v(s)), so that it is not negative.
"""

from __future__ import annotations

import numpy as np

from spanrl.kernels.jit import kernel


@kernel
def bonus_values(m, reward, ws, pairs, v, q):
    """Set q of ``pairs``; the workspace is ranked by v."""
    succ_ptr, succ, prob, size, rest, top = m.succ_ptr, m.succ, m.low, m.slack, m.rest, ws.keys[0]
    one = np.uint64(1)
    for pair in pairs:
        i = np.uint64(pair)
        first, end = np.uint64(succ_ptr[i]), np.uint64(succ_ptr[i + one])
        mass, mean, j = 0.0, 0.0, first
        while j < end:
            mass += prob[j]
            mean += prob[j] * v[succ[j]]
            j += one
        if mass == 0.0:
            q[i] = reward[i] + top
            continue
        mean /= mass
        variance, j = 0.0, first
        while j < end:
            away = v[succ[j]] - mean  # two passes: the difference of two sums would lose the digits
            variance += prob[j] * away * away
            j += one
        optimistic = min(mean + max(np.sqrt(size[i] * (variance / mass)), rest[i]), top)
        q[i] = reward[i] + (mass * optimistic + (1.0 - mass) * v[0])
