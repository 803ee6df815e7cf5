"""All estimates of the library: what must hold of their sets for any counts."""

from __future__ import annotations

from contextlib import nullcontext
from math import inf

import numpy as np
import pytest
from estimate_samples import dense, problem, scaled
from hypothesis import given, settings
from hypothesis import strategies as st

from experience import empirical_mdp, random_counts, random_info
from spanrl import MDP, ProblemInfo
from spanrl.confidence.bernstein import BernsteinBox
from spanrl.confidence.estimate import Known, check_sets, new_numbers, read_only
from spanrl.confidence.hoeffding import HoeffdingBall
from spanrl.confidence.ucrl2b import UCRL2BBox
from spanrl.confidence.ucrl3 import UCRL3Box
from spanrl.kernels.jit import interpreted
from spanrl.models.counts import Counts

CASES = settings(deadline=None, derandomize=True, max_examples=60)
ROUNDING = 1e-12

ESTIMATES = [
    BernsteinBox(),
    BernsteinBox(0.01, 0.05, 0.05),
    BernsteinBox("rsqrt"),
    HoeffdingBall(),
    HoeffdingBall("rsqrt"),
    UCRL2BBox(0.3),
    UCRL3Box(0.3),
]
seeds = st.integers(0, 10**6)
times = st.integers(1, 10**8)


class TestFill:
    """What a ``fill`` writes, before anything is made of it."""

    @pytest.mark.parametrize("estimate", ESTIMATES)
    @CASES
    @given(seed=seeds, t=times)
    def test_interpreted_equals_compiled(self, estimate, seed, t):
        """The contract holds, and room for more successors than are listed is left as it was."""
        info, counts = problem(seed)
        counts.reserve(counts.succ.size + 3)
        found = []
        for mode in (nullcontext(), interpreted()):
            kept, sets, columns = new_numbers(estimate, info, counts.seen)
            columns[:] = -7.0
            known = Known(
                counts.seen, np.arange(info.n_pairs), t, 0, 0, int(info.n_states), int(info.max_actions), info.r_min,
                info.r_max, info.pair_ptr, np.zeros(4, dtype=np.uint64),
            )  # fmt: skip
            with mode:
                estimate.fill(known, estimate.settings(info), kept, sets)
            check_sets(estimate.geometry, info.n_states, sets)
            assert (columns[:, counts.succ.size :] == -7).all()
            found.append([part.tobytes() for part in (*sets, *kept)])
        assert found[0] == found[1]


class TestProperties:
    @pytest.mark.parametrize("estimate", ESTIMATES)
    @CASES
    @given(seed=seeds, t=times)
    def test_the_set_contains_what_was_seen(self, estimate, seed, t):
        """Building it checks it, too: a BoundedMDP refuses sets that are empty or out of range."""
        info, counts = problem(seed)
        bounded = estimate.bounded(counts, t, info)
        assert bounded.contains(empirical_mdp(counts, info))
        assert (bounded.r_low >= info.r_min).all()
        assert (bounded.r_high <= info.r_max).all()
        assert (bounded.n_states, bounded.n_actions, bounded.n_pairs) == (info.n_states, info.n_actions, info.n_pairs)
        np.testing.assert_array_equal(bounded.pair_ptr, info.pair_ptr)
        np.testing.assert_array_equal(bounded.action, info.action)

    @pytest.mark.parametrize("estimate", ESTIMATES)
    @CASES
    @given(seed=seeds, t=times, later=st.integers(1, 1000))
    def test_it_grows_with_time(self, estimate, seed, t, later):
        info, counts = problem(seed)
        assert_within(estimate.bounded(counts, t, info), estimate.bounded(counts, t * later, info))

    @pytest.mark.parametrize("estimate", ESTIMATES)
    @CASES
    @given(seed=seeds, t=times, factor=st.integers(1, 1000))
    def test_it_shrinks_with_visits(self, estimate, seed, t, factor):
        info, counts = problem(seed)
        assert_within(estimate.bounded(scaled(counts, factor), t, info), estimate.bounded(counts, t, info))

    @pytest.mark.parametrize("estimate", ESTIMATES)
    def test_nothing_seen_allows_everything(self, estimate):
        rng = np.random.default_rng(1)
        info = random_info(rng, 4, 3)
        bounded = estimate.bounded(Counts.empty(info.n_pairs), 1, info)
        for _ in range(20):
            available = np.zeros((4, 3), dtype=bool)
            available[info.pair_state, info.action] = True
            P = rng.dirichlet(np.full(4, 0.3), size=(4, 3))
            assert bounded.contains(MDP.from_dense(P, rng.integers(0, 2, (4, 3)).astype(float), available=available))

    def test_the_set_closes_in_the_end(self):
        info, counts = problem(3, most=100)
        rough = empirical_mdp(counts, info)
        seen = counts.n > 0
        for estimate in ESTIMATES:
            bounded = estimate.bounded(scaled(counts, 10**12), 10**3, info)
            assert (bounded.r_high - bounded.r_low)[seen].max() < 1e-3
            assert bounded.contains(rough)

    def test_the_empirical_frequencies_of_many_successors_sum_to_one(self):
        """Thousands of successors, whose frequencies do not sum to 1 exactly."""
        info = ProblemInfo(3000, 1)
        times = np.random.default_rng(0).integers(1, 50, 3000)
        ptr = np.concatenate(([0], np.full(3000, 3000)))
        n = np.zeros(3000, dtype=np.int64)
        n[0] = times.sum()
        counts = Counts(n, np.zeros(3000), np.zeros(3000), ptr, np.arange(3000, dtype=np.uint32), times)
        for estimate in ESTIMATES:
            assert estimate.bounded(counts, 10**6, info).contains(_row(times))


def _row(times):
    """Return the MDP whose first state moves by the frequencies and all others to state 0, paying nothing."""
    S = times.size
    ptr, succ = np.concatenate(([0], S + np.arange(S))), np.concatenate((np.arange(S), np.zeros(S - 1, dtype=np.int64)))
    prob = np.concatenate((times / times.sum(), np.ones(S - 1)))
    return MDP.from_pairs(np.arange(S), np.zeros(S, dtype=np.int64), ptr, succ, prob, np.zeros(S))


def assert_within(inner, outer):
    """Check that every interval of ``inner`` lies in that of ``outer``, and every radius is at most as large."""
    assert (inner.r_low >= outer.r_low - ROUNDING).all()
    assert (inner.r_high <= outer.r_high + ROUNDING).all()
    if inner.is_ball:
        assert (inner.radius <= outer.radius + ROUNDING).all()
        return
    (low, high), (low_outer, high_outer) = dense(inner), dense(outer)
    assert (low >= low_outer - ROUNDING).all()
    assert (high <= high_outer + ROUNDING).all()
    assert high.max() < inf


def test_counts_that_may_not_be_written():
    """Whoever makes counts from the arrays of a model has them read-only; parts are compiled for others."""
    rng = np.random.default_rng(3)
    info = random_info(rng, 4, 2)
    counts = random_counts(rng, info, 1000)
    fixed = Counts(*(read_only(part) for part in (*counts.seen[:4], counts.succ, counts.times)))
    for estimate in (BernsteinBox(), HoeffdingBall()):
        assert estimate.bounded(fixed, 100, info) == estimate.bounded(counts, 100, info)
