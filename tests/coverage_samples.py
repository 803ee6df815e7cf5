"""How often the true model is outside the sets of an estimate: many small problems at once, simulated, with exact binomial thresholds."""

from __future__ import annotations

from math import log

import numpy as np
from scipy.stats import binom

from spanrl import ProblemInfo
from spanrl.confidence.estimate import Known, new_numbers
from spanrl.confidence.kl import KLBall, fill_kl, log_choices, mixture_excess
from spanrl.models.counts import Counts

LEVEL = 1e-3
N_RUNS = 1000
KL_LAWS = {"two states": ([0.3, 0.7], 150), "twenty states": ([0.05] * 20, 25)}
"""{name: (law, number of visits)}."""


def is_refuted(failures: int, n_runs: int, most: float) -> bool:
    """Tell whether so many failures refute a probability of at most ``most``, at the level of this file."""
    return bool(binom.sf(failures - 1, n_runs, most) < LEVEL)


def leaves(estimate, S, n_runs, n_visits, *, settings=None, narrower=1.0):
    """Return how many of ``n_runs`` simulated runs have a visit count at which the true model is outside the set.

    In a problem of S ≤ 2 states with one action, each visited ``n_visits`` times, rewards and next states being coins. State s of run j is
    the pair jS + s of one large table, for which ``fill`` is told the S and A of the small one. Mutants: ``settings``, a function of n for
    those of the estimate, and ends ``narrower`` by a factor where they are not 0 or 1.
    """
    rng = np.random.default_rng(5)
    info, n_pairs = ProblemInfo(S, 1), n_runs * S
    mean, p = np.tile([0.5, 0.2][:S], n_runs), np.tile([0.3, 0.6][:S] if S == 2 else [1.0], n_runs)
    paid, went = np.zeros(n_pairs, dtype=np.int64), np.zeros(n_pairs, dtype=np.int64)
    ptr = np.arange(n_pairs + 1) * S
    seen = Counts.empty(n_pairs).seen._replace(
        succ_ptr=ptr, succ=np.tile(np.arange(S, dtype=np.uint32), n_pairs), times=np.zeros(n_pairs * S, dtype=np.int64)
    )
    table = ProblemInfo(n_pairs, 1)
    kept, sets, _ = new_numbers(estimate, table, seen)
    words = np.zeros(4, dtype=np.uint64)
    known = Known(seen, np.arange(n_pairs), 1, 0, 0, S, 1, 0.0, 1.0, table.pair_ptr, words)
    own = estimate.settings(info)
    outside = np.zeros(n_pairs, dtype=bool)

    def is_outside(low, high, q, centre):
        low = np.where(low > 0, centre - (centre - low) / narrower, low)
        high = np.where(high < 1, centre + (high - centre) / narrower, high)
        return (q < low - 1e-15) | (q > high + 1e-15)

    for n in range(1, n_visits + 1):
        paid += rng.random(n_pairs) < mean
        went += rng.random(n_pairs) < p  # to the first state
        seen.n[:] = n
        seen.r_mean[:] = paid / n
        seen.r_sq[:] = paid * (1 - paid / n)
        seen.times.reshape(n_pairs, S)[:, 0] = went
        if S == 2:
            seen.times.reshape(n_pairs, S)[:, 1] = n - went
        estimate.fill(known, own if settings is None else settings(n), kept, sets)
        outside |= is_outside(sets.r_low, sets.r_high, mean, paid / n)
        low = sets.low.reshape(n_pairs, S)
        high = low + sets.room.reshape(n_pairs, S)
        for s, q in ((0, p), (1, 1 - p))[:S]:
            outside |= is_outside(low[:, s], high[:, s], q, seen.times.reshape(n_pairs, S)[:, s] / n)
    return int(outside.reshape(n_runs, S).any(axis=1).sum())


def kl_leaves(
    law: list[float], n_visits: int, level: float, factor: float = 1.0, *, choices: bool = True, excess: bool = True
) -> int:
    """Return how many of the runs ever have the true law outside the ball of level ``level``.

    Run j is pair j of one large table. Mutants: ``factor`` times the level, no price for the choice of the successors, no excess.
    """
    rng, q, S = np.random.default_rng(6), np.array(law), len(law)
    seen = Counts.empty(N_RUNS).seen._replace(
        succ=np.zeros(N_RUNS * S, dtype=np.uint32), times=np.zeros(N_RUNS * S, dtype=np.int64)
    )
    info, words = ProblemInfo(N_RUNS, 1), np.zeros(4, dtype=np.uint64)
    kept, sets, _ = new_numbers(KLBall(), info, seen)
    known = Known(seen, np.arange(N_RUNS), 1, 0, 0, S, 1, 0.0, 1.0, info.pair_ptr, words)
    times, outside = np.zeros((N_RUNS, S), dtype=np.int64), np.zeros(N_RUNS, dtype=bool)
    for n in range(1, n_visits + 1):
        times += rng.multinomial(1, q, size=N_RUNS)
        K = (times > 0).sum(axis=1)
        seen.n[:] = n
        seen.succ_ptr[1:] = np.cumsum(K)
        seen.times[: K.sum()] = times[times > 0]
        fill_kl(known, np.array([log(1 / level) - log(factor)]), kept, sets)
        radius = sets.size.copy()
        for j in range(N_RUNS) if not (choices and excess) else ():
            row = seen.succ_ptr[j], seen.succ_ptr[j + 1]
            radius[j] -= 0.0 if choices else log_choices(float(S), float(K[j])) / n
            radius[j] -= 0.0 if excess else mixture_excess(seen.times, *row, float(n)) / n
        p = times / n
        outside |= np.where(p > 0, p * np.log(np.maximum(p, 1e-9) / q), 0.0).sum(axis=1) > radius
    return int(outside.sum())
