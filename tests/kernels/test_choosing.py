"""The policy of a plan against the rule in plain Python, and the smallest values against the general backup."""

from __future__ import annotations

import numpy as np
import pytest
from workspace_kernels import choose, least_of_boxes, least_values, rank, start_planning, sweep
from workspace_samples import (
    BOXES,
    KINDS,
    copy_of,
    pair_values,
    ragged_ptr,
    random_ball,
    random_box,
    random_plain,
    value_vectors,
)

from spanrl.kernels.backups import box_values
from spanrl.kernels.choosing import _mix
from spanrl.kernels.jit import interpreted
from spanrl.kernels.layout import workspace
from spanrl.kernels.order import rank_states
from spanrl.kernels.plan_workspace import LIVE

ROUNDING = 1e-12


def swept(sample, v):
    """Return the sample after a sweep over all actions at v."""
    work = sample.work
    start_planning(work, False)
    work.v[:] = v
    rank(work, v)
    sweep(work, v)
    return sample


def chosen(sample, c, room=0.0, mixture=True):
    S = sample.low.shape[1]
    pairs, weight = np.full(2 * S, -1), np.full(S, np.nan)
    mixes = choose(sample.work, c, room, mixture, pairs, weight)
    return bool(mixes), pairs, weight


def rule(sample, v, c):
    """Return (best pairs, smallest pairs, weights) of G_c v with ties to the lowest action, and how clear these choices are."""
    q, q_low, ptr = pair_values(sample, v), pair_values(sample, v, -1.0), sample.work.m.pair_ptr
    ceiling = np.maximum.reduceat(q, ptr[:-1]).min() + c
    best, least, weight = [], [], []
    for s in range(v.size):
        part = range(ptr[s], ptr[s + 1])
        best.append(next(i for i in part if q[i] >= max(q[k] for k in part) - 1e-9))
        least.append(next(i for i in part if q_low[i] <= min(q_low[k] for k in part) + 1e-9))
        high, low = q[best[-1]], q_low[least[-1]]
        if high <= ceiling + 1e-9 or best[-1] == least[-1]:
            weight.append(0.0)
        elif low > ceiling:
            weight.append(1.0)
        else:
            weight.append((high - ceiling) / (high - low))
    return np.array(best), np.array(least), np.array(weight)


class TestChoose:
    @pytest.mark.parametrize("c", [0.0, 0.2, 0.7, np.inf])
    @pytest.mark.parametrize("kind", KINDS)
    def test_is_the_rule(self, kind, c):
        mixed = partly = 0
        for seed in range(12):
            rng = np.random.default_rng([1, seed])
            sample = KINDS[kind](rng, 12, ragged_ptr(rng, 12, 4))
            v = rng.normal(size=12)
            mixes, pairs, weight = chosen(swept(sample, v), c)
            best, least, wanted = rule(sample, v, c)
            np.testing.assert_array_equal(pairs[::2], best)
            np.testing.assert_allclose(weight, wanted, rtol=0, atol=1e-9)
            assert mixes == (wanted > 0).any()
            np.testing.assert_array_equal(pairs[1::2][wanted > 0], least[wanted > 0])
            cut = np.maximum.reduceat(pair_values(sample, v), sample.work.m.pair_ptr[:-1])
            inside = cut <= cut.min() + c
            np.testing.assert_array_equal(pairs[1::2][inside], best[inside])
            mixed, partly = mixed + mixes, partly + ((weight > 0) & (weight < 1)).sum()
        if c < 0.5:
            assert mixed > 6
            assert partly > 6
        if c == np.inf:
            assert mixed == 0

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_mixture_is_worth_the_ceiling(self, kind):
        """Def. 2: (1 − w)·q(best) + w·q_low(smallest) = min Lv + c wherever T_c truncates and can."""
        some = 0
        for seed in range(12):
            rng = np.random.default_rng([2, seed])
            sample, v = KINDS[kind](rng, 10, ragged_ptr(rng, 10, 4)), rng.normal(size=10)
            _, pairs, weight = chosen(swept(sample, v), 0.3)
            q, q_low = pair_values(sample, v), pair_values(sample, v, -1.0)
            top = np.maximum.reduceat(q, sample.work.m.pair_ptr[:-1])
            inner = (weight > 0) & (weight < 1)
            value = (1 - weight) * q[pairs[::2]] + weight * q_low[pairs[1::2]]
            np.testing.assert_allclose(value[inner], top.min() + 0.3, rtol=0, atol=1e-10)
            assert (q_low[pairs[1::2]][weight == 1] >= top.min() + 0.3 - 1e-10).all()
            some += inner.sum()
        assert some > 10

    def test_greedy_does_not_mix(self):
        rng = np.random.default_rng(3)
        sample = swept(random_box(rng, 12, ragged_ptr(rng, 12, 4)), rng.normal(size=12))
        _, mixed, _ = chosen(sample, 0.1)
        mixes, pairs, weight = chosen(sample, 0.1, mixture=False)
        assert not mixes
        assert not weight.any()
        np.testing.assert_array_equal(pairs[::2], mixed[::2])
        np.testing.assert_array_equal(pairs[1::2], mixed[::2])

    @pytest.mark.parametrize("room", [0.0, 1e-11, 1.0])
    def test_ties_go_to_the_lowest_action_as_far_as_the_bracket_has_room(self, room):
        """Where all states are worth the same, pairs differ by their rewards alone: spread 1, so that 1e-10 of it is the tie."""
        rng = np.random.default_rng(4)
        sample = random_box(rng, 2, [0, 4, 6])
        work = sample.work
        for gap, expected in ((1e-16, 0), (5e-12, 0 if room else 1), (5e-11, 0 if room == 1.0 else 1), (1e-9, 1)):
            work.sets.r_high[:] = 0.5 - gap, 0.5, 0.5, 0.0, 1.0, 0.0
            swept(sample, np.zeros(2))
            _, pairs, _ = chosen(sample, np.inf, room)
            assert pairs[::2].tolist() == [expected, 4], gap

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_was_left_out_is_not_chosen(self, kind):
        """Old values of such pairs, however large, do not matter."""
        rng = np.random.default_rng(5)
        for _ in range(10):
            sample = swept(KINDS[kind](rng, 12, ragged_ptr(rng, 12, 4)), rng.normal(size=12))
            before = chosen(sample, 0.5)
            work, q = sample.work, sample.work.ws.q
            top = q[work.best]
            state = np.repeat(np.arange(12), np.diff(work.m.pair_ptr))
            out = (q < top[state] - 1e-3) & (q > q.min()) & (rng.random(q.size) < 0.7)
            live = np.flatnonzero(~out)
            work.progress[LIVE], work.rows.live[: live.size] = live.size, live
            q[out] = top.max() + rng.random(out.sum())
            after = chosen(sample, 0.5)
            assert out.any()
            assert before[0] == after[0]
            np.testing.assert_array_equal(before[1][::2], after[1][::2])
            np.testing.assert_allclose(before[2], after[2], rtol=0, atol=1e-12)

    @pytest.mark.parametrize("kind", KINDS)
    def test_interpreted_kernels_equal_the_compiled_ones(self, kind):
        rng = np.random.default_rng(6)
        for c in (0.0, 0.3, np.inf):
            sample = swept(KINDS[kind](rng, 9, ragged_ptr(rng, 9, 4)), rng.normal(size=9))
            mixes, pairs, weight = chosen(sample, c)
            with interpreted():
                other = chosen(sample, c)
            assert (mixes, pairs.tobytes(), weight.tobytes()) == (other[0], other[1].tobytes(), other[2].tobytes())


class TestLeastValues:
    @pytest.mark.parametrize("kind", BOXES)
    @pytest.mark.parametrize("S", [1, 2, 6, 40, 120])
    def test_of_boxes(self, S, kind):
        rng = np.random.default_rng([7, S])
        rows = by_hand = 0
        for _ in range(8 if S < 40 else 1):
            sample = BOXES[kind](rng, S, ragged_ptr(rng, S, 3))
            for v in value_vectors(rng, S):
                work = swept(copy_of(sample), v).work
                cut = np.flatnonzero(rng.random(work.reward.size) < 0.6)
                wanted = pair_values(sample, v, -1.0)[cut]
                general, q = workspace(work.m), np.full(work.reward.size, np.nan)
                rank_states(-1.0, v, general)
                box_values(work.m, work.least, -1.0, general, cut, q)
                size = ROUNDING * max(1.0, np.abs(v).max())
                todo, found = np.full(cut.size, -1), np.full(work.reward.size, np.nan)
                n = least_of_boxes(work, cut, todo, found)
                done = ~np.isin(cut, todo[:n])
                np.testing.assert_allclose(found[cut][done], wanted[done], rtol=0, atol=size)
                least_values(work, cut)
                np.testing.assert_allclose(work.ws_least.q[cut], wanted, rtol=0, atol=size)
                everywhere = cut[~work.sets.flagged[cut]] if kind == "closed" else cut
                np.testing.assert_allclose(work.ws_least.q[everywhere], q[everywhere], rtol=0, atol=size)
                rows, by_hand = rows + cut.size, by_hand + n
        assert S < 6 or 0.02 * rows < by_hand < 0.98 * rows, "both ways occur"

    @pytest.mark.parametrize("random_model", [random_ball, random_plain])
    @pytest.mark.parametrize("S", [1, 2, 6, 40])
    def test_of_other_models(self, S, random_model):
        rng = np.random.default_rng([8, S])
        for _ in range(8 if S < 40 else 3):
            sample = random_model(rng, S, ragged_ptr(rng, S, 3))
            for v in value_vectors(rng, S):
                work = swept(copy_of(sample), v).work
                cut = np.flatnonzero(rng.random(work.reward.size) < 0.6)
                least_values(work, cut)
                wanted = pair_values(sample, v, -1.0)[cut]
                size = ROUNDING * max(1.0, np.abs(v).max())
                np.testing.assert_allclose(work.ws_least.q[cut], wanted, rtol=0, atol=size)


class TestMix:
    @pytest.mark.parametrize("mix", [_mix, _mix.py_func])
    def test_by_hand(self, mix):
        """Four states with two pairs each, all but the second truncated at 1."""
        ptr, cut = np.array([0, 2, 4, 6, 8]), np.array([0, 1, 4, 5, 6, 7])
        high = np.array([3.0, 2.0, 0.5, 0.4, 2.0, 5.0, 3.0, 1.5])
        low = np.array([2.5, 0.0, -9.0, -9.0, 1.5, 1.25, 0.5, 2.0])
        pairs, weight = np.array([0, 0, 2, 2, 5, 5, 6, 6]), np.zeros(4)
        assert mix(ptr, high, low, cut, 1.0, 1e-12, 1e-12, pairs, weight)
        assert pairs.tolist() == [0, 1, 2, 2, 5, 5, 6, 6]
        assert weight.tolist() == [2 / 3, 0.0, 0.0, 0.0], (
            "the third is infeasible with its own pair, the fourth is its own smallest"
        )

    @pytest.mark.parametrize("mix", [_mix, _mix.py_func])
    def test_an_infeasible_state_plays_its_smallest_pair(self, mix):
        pairs, weight = np.array([0, 0]), np.zeros(1)
        found = mix(
            np.array([0, 2]), np.array([5.0, 4.0]), np.array([3.0, 2.0]), np.arange(2), 1.0, 1e-12, 0.0, pairs, weight
        )
        assert found
        assert (pairs.tolist(), weight.tolist()) == ([0, 1], [1.0])

    @pytest.mark.parametrize("mix", [_mix, _mix.py_func])
    def test_smallest_pairs_that_tie_go_to_the_lowest_action(self, mix):
        pairs, weight = np.array([2, 2]), np.zeros(1)
        low = np.array([0.5, 1e-11, 0.0])
        mix(np.array([0, 3]), np.array([1.0, 2.0, 3.0]), low, np.arange(3), 1.0, 1e-12, 1e-10, pairs, weight)
        assert pairs.tolist() == [2, 1]
        assert weight[0] == pytest.approx(2 / 3, abs=1e-10)
