"""Sets of plausible models: their formulas pair by pair in plain Python, and what must hold for any counts."""

from __future__ import annotations

from contextlib import nullcontext
from fractions import Fraction
from math import inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experience import empirical_mdp, random_counts, random_info
from spanrl import MDP, ProblemInfo
from spanrl.confidence.regions import BernsteinBox, HoeffdingBall, close_rows, fill_rows, law_at, new_ends
from spanrl.kernels.jit import interpreted
from spanrl.kernels.layout import BALL, BOX, FREE
from spanrl.models.counts import Counts

CASES = settings(deadline=None, derandomize=True, max_examples=60)
ROUNDING = 1e-12

REGIONS = [
    BernsteinBox(),
    BernsteinBox(0.01, 0.05, 0.05),
    BernsteinBox("rsqrt"),
    HoeffdingBall(),
    HoeffdingBall("rsqrt"),
]
seeds = st.integers(0, 10**6)
times = st.integers(1, 10**8)


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


class TestLevel:
    def test_a_number_is_itself(self):
        rule = BernsteinBox(0.05).rule(ProblemInfo(1, 1))
        assert rule.delta == 0.05
        assert law_at(rule, 10**6).r_log == pytest.approx(log(2 * 10**6 / 0.05), rel=1e-15)

    def test_rsqrt(self):
        for t, delta in ((400, 1 / 20), (1, 1.0)):
            assert law_at(BernsteinBox("rsqrt").rule(ProblemInfo(1, 1)), t).r_log == pytest.approx(log(2 * t / delta))

    def test_the_rule_is_all_that_a_region_depends_on_besides_the_time(self):
        info = ProblemInfo(3, 5, available=[[True] * 2 + [False] * 3] * 3, r_min=-1, r_max=4)
        rule = BernsteinBox(0.1, p_scale=0.5, r_scale=0.25).rule(info)
        assert rule == (BOX, 0.1, 0.5, 0.25, -1.0, 4.0, 3, 2)
        assert [type(part) for part in rule] == [int, *[float] * 5, int, int], "one type: kernels compile once"
        assert HoeffdingBall("rsqrt").rule(info) == (BALL, -1.0, 1.0, 1.0, -1.0, 4.0, 3, 2)

    @pytest.mark.parametrize("region", REGIONS)
    def test_compiled_and_interpreted_laws_are_the_same(self, region):
        rule = region.rule(ProblemInfo(7, 3, r_min=-1.0, r_max=4.0))
        for t in (1, 2, 400, 12_345, 10**12):
            assert (
                tuple(law_at(rule, t))
                == tuple(law_at.py_func(rule, t))
                == tuple(region.law(t, ProblemInfo(7, 3, r_min=-1.0, r_max=4.0)))
            )

    def test_the_logarithms(self):
        info = ProblemInfo(3, 5, available=[[True] * 2 + [False] * 3] * 3, r_min=-1.0, r_max=4.0)
        b = log(2 * 3 * 2 * 700 / 0.1)  # A is the largest number of actions of a state, not the number of names
        law = BernsteinBox(0.1, p_scale=0.5, r_scale=0.25).law(700, info)
        assert (law.p_log, law.r_log, law.p_scale, law.r_scale) == pytest.approx((b, b, 0.5, 0.25), rel=1e-15)
        assert (law.r_min, law.r_max, law.n_states) == (-1.0, 4.0, 3)
        ball = HoeffdingBall(0.1).law(700, info)
        assert (ball.p_log, ball.r_log) == pytest.approx((log(2 * 2 * 700 / 0.1), b), rel=1e-15)
        slow = BernsteinBox("rsqrt").law(400, info)
        assert slow.r_log == pytest.approx(log(2 * 3 * 2 * 400 * 20), rel=1e-15)

    def test_a_region_is_frozen_and_compares_by_its_numbers(self):
        with pytest.raises(AttributeError, match="cannot assign"):
            BernsteinBox().delta = 0.1
        assert BernsteinBox(0.1) == BernsteinBox(0.1) != BernsteinBox(0.2)
        assert hash(HoeffdingBall()) == hash(HoeffdingBall(0.05))


class TestFormulas:
    @CASES
    @given(seeds, times, st.sampled_from([BernsteinBox(), BernsteinBox(0.01, 0.05, 0.5), BernsteinBox("rsqrt")]))
    def test_box(self, seed, t, region):
        info, counts = problem(seed)
        bounded = region.bounded(counts, t, info)
        delta = 1 / sqrt(t) if region.delta == "rsqrt" else region.delta
        b = log(2 * info.n_states * info.max_actions * t / delta)
        p_hat, (low, high) = frequencies(counts, info.n_states), dense(bounded)
        for i in range(info.n_pairs):
            n = int(counts.n[i])
            if n == 0:
                assert (bounded.r_low[i], bounded.r_high[i]) == (info.r_min, info.r_max)
                assert (low[i] == 0).all()
                assert (high[i] == 1).all()
                continue
            variance = counts.r_sq[i] / (n - 1) if n > 1 else 0.0
            size = info.r_max - info.r_min
            beta = sqrt(14 * region.r_scale * variance * b / n) + 49 / 3 * region.r_scale * size * b / max(1, n - 1)
            assert bounded.r_low[i] == pytest.approx(max(info.r_min, counts.r_mean[i] - beta), abs=ROUNDING)
            assert bounded.r_high[i] == pytest.approx(min(info.r_max, counts.r_mean[i] + beta), abs=ROUNDING)
            for s, p in enumerate(p_hat[i]):
                beta = sqrt(14 * region.p_scale * p * (1 - p) * b / n) + 49 / 3 * region.p_scale * b / max(1, n - 1)
                assert low[i, s] == pytest.approx(max(0.0, p - beta), abs=ROUNDING)
                assert high[i, s] == pytest.approx(min(1.0, p + beta), abs=ROUNDING)

    @CASES
    @given(seeds, times, st.sampled_from([HoeffdingBall(), HoeffdingBall("rsqrt")]))
    def test_ball(self, seed, t, region):
        info, counts = problem(seed)
        bounded = region.bounded(counts, t, info)
        delta = 1 / sqrt(t) if region.delta == "rsqrt" else region.delta
        S, A, size = info.n_states, info.max_actions, info.r_max - info.r_min
        p_hat = frequencies(counts, S)
        for i in range(info.n_pairs):
            n = int(counts.n[i])
            if n == 0:
                assert (bounded.r_low[i], bounded.r_high[i], bounded.radius[i]) == (info.r_min, info.r_max, 2.0)
                continue
            beta = size * sqrt(7 * log(2 * S * A * t / delta) / (2 * n))
            assert bounded.r_low[i] == pytest.approx(max(info.r_min, counts.r_mean[i] - beta), abs=ROUNDING)
            assert bounded.r_high[i] == pytest.approx(min(info.r_max, counts.r_mean[i] + beta), abs=ROUNDING)
            assert bounded.radius[i] == pytest.approx(min(2.0, sqrt(14 * S * log(2 * A * t / delta) / n)), abs=ROUNDING)
            part = slice(bounded.succ_ptr[i], bounded.succ_ptr[i + 1])
            np.testing.assert_allclose(bounded.p_low[part], p_hat[i, bounded.succ[part]], rtol=0, atol=ROUNDING)


class TestRows:
    """What the kernels write, before anything is checked or augmented."""

    @pytest.mark.parametrize("region", REGIONS)
    @CASES
    @given(seed=seeds, t=times)
    def test_interpreted_kernels_equal_the_compiled_ones(self, region, seed, t):
        """Room for more successors than are listed is left as it was."""
        info, counts = problem(seed)
        counts.reserve(counts.succ.size + 3)
        found = []
        for mode in (nullcontext(), interpreted()):
            ends = new_ends(info.n_pairs, counts.seen.succ.size)
            for part in ends:
                part[:] = -7.0
            law = region.law(t, info)
            with mode:
                fill_rows(region.kind, law, counts.seen, ends)
                if region.kind == BOX:
                    close_rows(counts.seen, ends)
            assert (ends.low[counts.succ.size :] == -7).all()
            assert (ends.room[counts.succ.size :] == -7).all()
            found.append([part.tobytes() for part in ends])
        assert found[0] == found[1]

    @CASES
    @given(seeds, times, st.sampled_from([1.0, 0.05, 1e-4]))
    def test_slack_of_a_box(self, seed, t, scale):
        info, counts = problem(seed)
        region = BernsteinBox(0.05, scale, scale)
        ends = new_ends(info.n_pairs, counts.succ.size)
        fill_rows(BOX, region.law(t, info), counts.seen, ends)
        rest = ends.rest.copy()
        close_rows(counts.seen, ends)
        for i in range(info.n_pairs):
            part = slice(counts.succ_ptr[i], counts.succ_ptr[i + 1])
            if counts.n[i] == 0 or rest[i] >= 1.0:
                assert (ends.slack[i], ends.rest[i]) == (FREE, 1.0)
                assert (ends.low[part] == 0).all(), "all of the mass is free"
            else:
                assert ends.slack[i] == pytest.approx(1 - sum(map(Fraction, ends.low[part].tolist())), abs=ROUNDING)
                assert ends.slack[i] >= 0.0
                assert ends.rest[i] == rest[i] < 1.0

    @CASES
    @given(seeds, times, st.sampled_from([1.0, 0.05, 1e-4]))
    def test_a_listed_successor_has_room_for_what_an_unlisted_one_may_have(self, seed, t, scale):
        """The planner relies on it: who of two states of equal value is given the mass does not matter then."""
        info, counts = problem(seed)
        region = BernsteinBox(0.05, scale, scale)
        ends = new_ends(info.n_pairs, counts.succ.size)
        fill_rows(BOX, region.law(t, info), counts.seen, ends)
        assert (ends.room >= np.repeat(ends.rest, np.diff(counts.succ_ptr)) - 4e-16).all()


class TestProperties:
    @pytest.mark.parametrize("region", REGIONS)
    @CASES
    @given(seed=seeds, t=times)
    def test_the_set_contains_what_was_seen(self, region, seed, t):
        """Building it checks it, too: a BoundedMDP refuses sets that are empty or out of range."""
        info, counts = problem(seed)
        bounded = region.bounded(counts, t, info)
        assert bounded.contains(empirical_mdp(counts, info))
        assert (bounded.r_low >= info.r_min).all()
        assert (bounded.r_high <= info.r_max).all()
        assert (bounded.n_states, bounded.n_actions, bounded.n_pairs) == (info.n_states, info.n_actions, info.n_pairs)
        np.testing.assert_array_equal(bounded.pair_ptr, info.pair_ptr)
        np.testing.assert_array_equal(bounded.action, info.action)

    @pytest.mark.parametrize("region", REGIONS)
    @CASES
    @given(seed=seeds, t=times, later=st.integers(1, 1000))
    def test_it_grows_with_time(self, region, seed, t, later):
        info, counts = problem(seed)
        assert_within(region.bounded(counts, t, info), region.bounded(counts, t * later, info))

    @pytest.mark.parametrize("region", REGIONS)
    @CASES
    @given(seed=seeds, t=times, factor=st.integers(1, 1000))
    def test_it_shrinks_with_visits(self, region, seed, t, factor):
        info, counts = problem(seed)
        assert_within(region.bounded(scaled(counts, factor), t, info), region.bounded(counts, t, info))

    @pytest.mark.parametrize("region", REGIONS)
    def test_nothing_seen_allows_everything(self, region):
        rng = np.random.default_rng(1)
        info = random_info(rng, 4, 3)
        bounded = region.bounded(Counts.empty(info.n_pairs), 1, info)
        for _ in range(20):
            available = np.zeros((4, 3), dtype=bool)
            available[info.pair_state, info.action] = True
            P = rng.dirichlet(np.full(4, 0.3), size=(4, 3))
            assert bounded.contains(MDP.from_dense(P, rng.integers(0, 2, (4, 3)).astype(float), available=available))

    def test_the_set_closes_in_the_end(self):
        info, counts = problem(3, most=100)
        rough = empirical_mdp(counts, info)
        seen = counts.n > 0
        for region in REGIONS:
            bounded = region.bounded(scaled(counts, 10**12), 10**3, info)
            assert (bounded.r_high - bounded.r_low)[seen].max() < 1e-3
            assert bounded.contains(rough)

    def test_a_ball_with_unseen_pairs_has_a_centre_for_each(self):
        """Also at both ends of the table and next to each other."""
        info = ProblemInfo(3, 2)
        counts = Counts(
            np.array([0, 4, 0, 0, 2, 0]), np.zeros(6), np.zeros(6), np.array([0, 0, 2, 2, 2, 3, 3]),
            np.array([0, 2, 1], dtype=np.uint32), np.array([1, 3, 2]),
        )  # fmt: skip
        bounded = HoeffdingBall().bounded(counts, 10, info)
        assert bounded.is_ball
        assert bounded.succ_ptr.tolist() == [0, 1, 3, 4, 5, 6, 7]
        assert bounded.succ.tolist() == [0, 0, 2, 0, 0, 1, 0]
        assert bounded.p_low.tolist() == [1.0, 0.25, 0.75, 1.0, 1.0, 1.0, 1.0]
        assert bounded.radius[[0, 2, 3, 5]].tolist() == [2.0] * 4

    def test_the_empirical_frequencies_of_many_successors_sum_to_one(self):
        """Thousands of successors, whose frequencies do not sum to 1 exactly."""
        info = ProblemInfo(3000, 1)
        times = np.random.default_rng(0).integers(1, 50, 3000)
        ptr = np.concatenate(([0], np.full(3000, 3000)))
        n = np.zeros(3000, dtype=np.int64)
        n[0] = times.sum()
        counts = Counts(n, np.zeros(3000), np.zeros(3000), ptr, np.arange(3000, dtype=np.uint32), times)
        for region in REGIONS:
            assert region.bounded(counts, 10**6, info).contains(_row(times))


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
