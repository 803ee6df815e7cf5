"""What an optimistic learner computes between two episodes, in one compiled call: the set, the iteration on it, and the policy."""

from __future__ import annotations

import numpy as np

from spanrl.confidence.regions import fill_rows, law_at
from spanrl.kernels.choosing import choose
from spanrl.kernels.clock import SETS, SORTING, SWEEPS, now
from spanrl.kernels.extended import CONVERGED, improve
from spanrl.kernels.extremes import extremes
from spanrl.kernels.jit import part


@part
def plan_episode(desk, rule, seen, goal, t, choice):
    """Build the set at time t, sweep for one budget, and choose the policy at the end; return (outcome, lo, hi, mixes, span).

    Rewards count from r_min. The sweeps in ``desk.progress`` are 0 at the start. ``choice`` is written on success.
    """
    v, clock = desk.v, desk.clock
    begun, sorting = now(desk.moment), clock[SORTING]
    if desk.progress[0] == 0.0:
        fill_rows(desk.m.kind, law_at(rule, t), seen, desk.ends)
        if rule.r_min != 0.0:  # values count from r_min: their digits are not spent on an offset
            for i in range(desk.reward.size):
                desk.ends.r_high[i] -= rule.r_min
        desk.ws.version[0] += 1
        desk.ws_least.version[0] += 1
        filled = now(desk.moment)
        clock[SETS] += filled - begun
        begun = filled
    tol = (rule.r_max - rule.r_min) / np.sqrt(t)
    outcome, lo, hi = improve(desk, seen.n, goal, tol)
    mixes, span = False, 0.0
    if outcome == CONVERGED:
        pairs, left = choice.pairs, choice.left
        room, live = max(tol - (hi - lo), 0.0), np.int64(desk.progress[8])
        mixes = choose(
            desk.m, desk.ws, desk.rows, desk.least, desk.ws_least, v, desk.best, live, goal.span_bound, room, goal.mixture,
            pairs, choice.weight,
        )  # fmt: skip
        for k in range(pairs.size):
            left[k] = max(1, seen.n[pairs[k]])
        low, high = extremes(v)
        span = high - low
    clock[SWEEPS] += now(desk.moment) - begun - (clock[SORTING] - sorting)
    return outcome, lo, hi, mixes, span
