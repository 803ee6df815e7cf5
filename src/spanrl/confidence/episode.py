"""What an optimistic learner computes between two episodes, in one compiled call: the set, the iteration on it, and the policy."""

from __future__ import annotations

import numpy as np

from spanrl.confidence.regions import fill_rows
from spanrl.kernels.extended import CONVERGED, choose, improve
from spanrl.kernels.jit import kernel


@kernel
def plan_episode(
    m, law, n, r_mean, shares, ends, reward, least, ws, ws_least, v, u, best, c, tol, widest, inner, mixture, progress, budget,
    pairs, weight, left,
):  # fmt: skip
    """Build the set at the start, sweep for one budget, and choose the policy at the end; return (outcome, lo, hi, mixes, span).

    Rewards count from r_min. ``reward`` is ends.r_high, read-only. ``progress`` of :func:`improve` tells the start: its sweeps are 0 then.
    ``pairs``, ``weight`` and ``left`` [2S], how often each pair may be played, are written on success.
    """
    if progress[0] == 0.0:
        fill_rows(m.kind, law, ws.pairs, n, r_mean, m.succ_ptr, shares, ends)
        if law.r_min != 0.0:  # values count from r_min: their digits are not spent on an offset
            for i in ws.pairs:
                ends.r_low[i] -= law.r_min
                ends.r_high[i] -= law.r_min
        ws.version[0] += 1
        ws_least.version[0] += 1
    outcome, lo, hi = improve(m, reward, ws, v, u, best, c, tol, widest, inner, progress, budget)
    if outcome != CONVERGED:
        return outcome, lo, hi, False, 0.0
    mixes = choose(m, ws, least, ws_least, v, c, max(tol - (hi - lo), 0.0), mixture, pairs, weight)
    for k in range(pairs.size):
        left[k] = max(1, n[pairs[k]])
    low, high = np.inf, -np.inf
    for x in v:
        low, high = min(low, x), max(high, x)
    return outcome, lo, hi, mixes, high - low
