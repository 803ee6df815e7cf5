"""Random counts, and sets as dense tables, for tests of estimates."""

from __future__ import annotations

import numpy as np

from experience import random_counts, random_info
from spanrl.models.counts import Counts


def problem(seed, most=10**5):
    """Return a random problem with rewards in [0, 1] or [−2, 3], and counts."""
    rng = np.random.default_rng(seed)
    low, high = [(0.0, 1.0), (-2.0, 3.0)][int(rng.integers(2))]
    info = random_info(rng, int(rng.integers(1, 6)), int(rng.integers(1, 4)), r_min=low, r_max=high)
    return info, random_counts(rng, info, most)


def dense(bounded):
    """Return p_low, p_high [n_pairs, S] of a box."""
    S = bounded.n_states
    low, high = np.zeros((bounded.n_pairs, S)), np.repeat(bounded.rest_high[:, None], S, axis=1)
    for i in range(bounded.n_pairs):
        part = slice(bounded.succ_ptr[i], bounded.succ_ptr[i + 1])
        low[i, bounded.succ[part]], high[i, bounded.succ[part]] = bounded.p_low[part], bounded.p_high[part]
    return low, high


def frequencies(counts, S):
    """Return p̂ [n_pairs, S], zero where nothing was seen."""
    p = np.zeros((counts.n_pairs, S))
    for i in range(counts.n_pairs):
        part = slice(counts.succ_ptr[i], counts.succ_ptr[i + 1])
        p[i, counts.succ[part]] = counts.times[part] / max(1, counts.n[i])
    return p


def scaled(counts, factor):
    """Return the counts of the same experience made ``factor`` times."""
    return Counts(
        counts.n * factor, counts.r_mean.copy(), counts.r_sq * factor, counts.succ_ptr, counts.succ, counts.times * factor
    )  # fmt: skip
