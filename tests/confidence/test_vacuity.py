"""The free mass of sets: against the widest pair of distributions, found over all subsets of states; and tables by hand."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

from spanrl import ProblemInfo
from spanrl.agents.psrl import Posterior
from spanrl.confidence.bernstein import BernsteinBox
from spanrl.confidence.hoeffding import HoeffdingBall
from spanrl.confidence.kt import KT
from spanrl.confidence.vacuity import free_mass, vacuity
from spanrl.kernels.counting import add_batch
from spanrl.models.counts import Batch, Counts


def counts_of(info: ProblemInfo, seen: list[tuple[int, int, int]]) -> Counts:
    """Return counts of (pair, successor, times)."""
    counts = Counts.empty(info.n_pairs)
    counts.reserve(len(seen) + 1)
    pair, succ, times = (np.array(column) for column in zip(*seen, strict=True))
    batch = Batch(pair, np.zeros(pair.size), succ.astype(np.uint32), times)
    assert add_batch(*batch, counts.seen, np.zeros((0, counts.seen.succ.size))) >= 0
    return counts


def diameter(low: np.ndarray, high: np.ndarray) -> float:
    """Return the largest total variation between two distributions of a box: p may have most in a set of states, p' least."""
    states = range(low.size)
    subsets = chain.from_iterable(combinations(states, k) for k in range(low.size + 1))
    widest = 0.0
    for subset in subsets:
        inside = np.isin(states, subset)
        most = min(high[inside].sum(), 1 - low[~inside].sum())
        least = max(low[inside].sum(), 1 - high[~inside].sum())
        widest = max(widest, most - least)
    return widest


@pytest.mark.parametrize("estimate", [BernsteinBox(p_scale=0.01), KT(0.05), BernsteinBox(p_scale=0.1)])
def test_boxes_are_as_wide_as_their_free_mass(estimate):
    """Up to the part of one successor, and never wider."""
    rng, info = np.random.default_rng(0), ProblemInfo(5, 3)
    seen = [(i, s, int(10 ** rng.uniform(0, 3.5))) for i in range(14) for s in np.flatnonzero(rng.random(5) < 0.6)]
    counts = counts_of(info, seen)
    mass, sets = free_mass(estimate, counts, 10_000, info), estimate.sets(counts, 10_000, info)
    compared = 0
    for i in range(info.n_pairs):
        low, high = np.zeros(5), np.full(5, sets.rest[i])
        row = slice(sets.succ_ptr[i], sets.succ_ptr[i + 1])
        low[sets.succ[row]], high[sets.succ[row]] = sets.low[row], sets.low[row] + sets.room[row]
        wide = diameter(low, high)
        assert wide - 1e-9 <= mass[i] <= wide + (high - low).max() / 2 + 1e-9, i
        compared += 0.05 < mass[i] < 0.95
    assert compared > 4


def test_a_set_that_allows_everything_has_all_mass_free():
    """Never seen; and seen once or twice, everywhere, so that no state is unlisted."""
    info = ProblemInfo(2, 2)
    counts = counts_of(info, [(0, 0, 1), (0, 1, 1), (1, 0, 10**9), (1, 1, 10**9)])
    mass = free_mass(BernsteinBox(), counts, 100, info)
    assert mass[[0, 2, 3]].tolist() == [1, 1, 1]
    assert mass[1] < 0.01


def test_balls():
    info = ProblemInfo(4, 1)
    counts = counts_of(info, [(0, 1, 1), (1, 1, 10**6), (2, 1, 10**12)])
    half = np.sqrt(14 * 4 * np.log(2 * 1 * 50 / 0.05) / np.array([1, 10**6, 10**12, 1])) / 2
    np.testing.assert_allclose(free_mass(HoeffdingBall(), counts, 50, info), np.minimum(2 * half, 1), rtol=1e-12)


def test_shares():
    """Four pairs visited once, one a million times: at level 0.05 and t = 100 one visit says nothing, a million nearly all."""
    info = ProblemInfo(3, 2)
    counts = counts_of(info, [(0, 0, 1), (1, 0, 1), (2, 0, 1), (3, 0, 1), (4, 1, 999_996)])
    assert vacuity(BernsteinBox(), counts, 100, info) == (0.8, 4e-6, 5)
    assert vacuity(BernsteinBox(), Counts.empty(6), 1, info) is None, "nothing was visited"
    assert vacuity(Posterior(), counts, 100, info) is None, "one model, no set"


def test_closed_states_are_no_room():
    @dataclass(frozen=True)
    class Shut(KT):
        """Rows that cannot reach the states that are closed."""

        closes_states = True

        def sets(self, counts: Counts, t: int, info: ProblemInfo, *_: Any, **others: Any) -> Any:
            sets = KT(self.delta).sets(counts, t, info)
            flagged = np.array([True, False, False])
            return sets._replace(flagged=flagged, closed=np.array([False, True, True]))

    info = ProblemInfo(3, 1)
    counts = counts_of(info, [(0, 0, 1), (1, 0, 1)])
    assert free_mass(Shut(), counts, 1, info)[0] < 1e-9, "it can only stay"
    assert free_mass(Shut(), counts, 1, info)[1] > 0.99
