"""The planner's sweeps: Lv to the last bit whatever is left out, the same outcome whatever the budget, boxes closed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from workspace_kernels import box_sweep, choose, first_box_sweep, rank, start_planning, sweep
from workspace_samples import (
    BOXES,
    KINDS,
    Sample,
    copy_of,
    pair_values,
    ragged_ptr,
    random_box,
    read_only,
    value_vectors,
)

from spanrl.kernels import extended as module
from spanrl.kernels import iterate
from spanrl.kernels.backups import plain_values, some_values
from spanrl.kernels.box_sweeps import has_less_room, keep_due
from spanrl.kernels.extended import CONVERGED, RUNNING, TOO_WIDE, improve
from spanrl.kernels.iterate import bracket
from spanrl.kernels.jit import interpreted
from spanrl.kernels.kl import KL_ROUNDING
from spanrl.kernels.layout import PLAIN, workspace
from spanrl.kernels.order import rank_states
from spanrl.kernels.plan_workspace import Goal
from spanrl.kernels.projection import clip

ROUNDING = 1e-12


def narrow(sample: Sample) -> Sample:
    """Take the rewards far enough apart that many actions are out of the question."""
    rewards = sample.work.sets.r_high
    rewards[:] = np.random.default_rng(0).permutation(np.linspace(0.0, 1.0, rewards.size))
    return sample


def goal(c=np.inf, inner=6, budget=1, widest=np.inf):
    return Goal(float(c), float(widest), inner, True, budget)


def full_sweep(sample, v):
    """Return (Lv, q) of all pairs, on a fresh work."""
    fresh = copy_of(sample)
    work = fresh.work
    start_planning(work, False)
    work.v[:] = v
    rank(work, v)
    sweep(work, v)
    return work.u, work.ws.q


def general_values(work, v):
    """Return what the solvers' kernels make of all pairs at v; they know of no closed states."""
    q = np.empty(work.reward.size)
    if work.m.kind == PLAIN:
        plain_values(work.m, read_only(work.reward), v, q)
    else:
        general = workspace(work.m)
        rank_states(1.0, v, general)
        some_values(work.m, read_only(work.reward), 1.0, general, general.pairs, q)
    return q


class TestSweep:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("S", [1, 2, 7, 50])
    def test_first_and_later_sweeps_are_the_backup(self, kind, S):
        rng = np.random.default_rng([1, S])
        for _ in range(6):
            sample = KINDS[kind](rng, S, ragged_ptr(rng, S, 3))
            work, first = sample.work, True
            start_planning(work, False)
            for v in value_vectors(rng, S):
                rank(work, v)
                work.progress[2] = float(not first)
                sweep(work, v)
                first, m = False, work.m
                wanted = pair_values(sample, v)
                size = ROUNDING * max(1.0, np.abs(v).max())
                np.testing.assert_allclose(work.ws.q, wanted, rtol=0, atol=size)
                assert work.u.tobytes() == np.maximum.reduceat(work.ws.q, m.pair_ptr[:-1]).tobytes()
                assert work.u.tobytes() == work.ws.q[work.best].tobytes()
                assert ((m.pair_ptr[:-1] <= work.best) & (work.best < m.pair_ptr[1:])).all()
                everywhere = ~work.sets.flagged if work.sets.flagged.size else np.ones(m.slack.size, dtype=bool)
                np.testing.assert_allclose(
                    work.ws.q[everywhere], general_values(work, v)[everywhere], rtol=0, atol=size
                )

    @pytest.mark.parametrize("kind", BOXES)
    def test_closing_on_the_way_leaves_no_bit_different(self, kind):
        """The first sweep closes the boxes; the others find them closed."""
        rng = np.random.default_rng(2)
        for _ in range(10):
            sample = BOXES[kind](rng, 30, ragged_ptr(rng, 30, 3))
            work, v = sample.work, rng.normal(size=30)
            rank(work, v)
            one, other = np.empty((2, work.reward.size))
            first_box_sweep(work, one)
            box_sweep(work, work.everyone, other)
            assert one.tobytes() == other.tobytes()

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_order_of_the_pairs_does_not_matter(self, kind):
        rng = np.random.default_rng(3)
        sample = KINDS[kind](rng, 30, ragged_ptr(rng, 30, 3))
        other = copy_of(sample)
        other.work.ws.pairs[:] = rng.permutation(other.work.everyone)
        for one in (sample, other):
            start_planning(one.work, False)
            rank(one.work, np.arange(30.0) % 7)
            sweep(one.work, np.arange(30.0) % 7)
        assert sample.work.ws.q.tobytes() == other.work.ws.q.tobytes()
        assert sample.work.best.tolist() == other.work.best.tolist()


class TestElimination:
    @pytest.mark.parametrize("c", [0.2, 1.0, np.inf])
    @pytest.mark.parametrize("kind", KINDS)
    def test_lv_is_exact_to_the_last_bit(self, kind, c):
        """After every round: the values are clipped, but nothing is missing. Many pairs must really have been left out."""
        rounds, left_out = 0, 0
        for seed in range(6):
            rng = np.random.default_rng([4, seed])
            sample = narrow(KINDS[kind](rng, 25, ragged_ptr(rng, 25, 6)))
            work = sample.work
            start_planning(work, False)
            work.v[:] = rng.normal(size=25)
            for _ in range(30):
                far = work.progress[6]
                outcome, lo, hi = improve(work, goal(c), 1e-9)
                v = work.v if outcome == CONVERGED else work.rows.v
                wanted, q = full_sweep(sample, v)
                clip(wanted, c)
                assert work.u.tobytes() == wanted.tobytes()
                np.testing.assert_array_equal(work.ws.q[work.best], q[work.best])
                if outcome == CONVERGED:
                    assert (lo, hi) == bracket(v, wanted, KL_ROUNDING if kind == "KL" else iterate.ROUNDING)
                    break
                rounds += 1
                if work.progress[6] > 0.0:
                    assert work.progress[6] >= far
                    left_out += int((work.rows.lead > work.progress[6]).sum())
        assert rounds > 10
        assert left_out > 20 * rounds

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_is_left_out_is_behind(self, kind):
        """At the last v every pair that is left out is worth less than the best of its state, by the margin at least."""
        some = 0
        for seed in range(8):
            rng = np.random.default_rng([5, seed])
            sample = narrow(KINDS[kind](rng, 20, ragged_ptr(rng, 20, 6)))
            work = sample.work
            start_planning(work, False)
            outcome, _, _ = improve(work, goal(0.5, budget=200), 1e-6)
            assert outcome == CONVERGED
            out = work.rows.lead > work.progress[6]
            some += int(out.sum())
            q = pair_values(sample, work.v)
            state = np.repeat(np.arange(20), np.diff(work.m.pair_ptr))
            top = np.maximum.reduceat(q, work.m.pair_ptr[:-1])
            assert (q[out] < top[state[out]]).all()
            np.testing.assert_allclose(work.ws.q[~out], q[~out], rtol=0, atol=1e-11)
        assert some > 50

    def test_without_inner_sweeps_nothing_is_left_out(self):
        rng = np.random.default_rng(6)
        sample = narrow(random_box(rng, 20, ragged_ptr(rng, 20, 6)))
        start_planning(sample.work, False)
        outcome, _, _ = improve(sample.work, goal(inner=0, budget=10**4), 1e-6)
        assert outcome == CONVERGED
        assert (sample.work.rows.lead == -np.inf).all()
        assert sample.work.progress[0] == sample.work.progress[2]


class TestBudget:
    @pytest.mark.parametrize("inner", [0, 6])
    @pytest.mark.parametrize("kind", KINDS)
    def test_changes_no_bit(self, kind, inner):
        most = 0
        for seed in range(6):
            rng = np.random.default_rng([7, seed])
            sample = KINDS[kind](rng, 15, ragged_ptr(rng, 15, 4))
            found = []
            for budget in (1, 3, 10**6):
                one = copy_of(sample)
                start_planning(one.work, False)
                outcome, calls = RUNNING, 0
                while outcome == RUNNING:
                    outcome, lo, hi = improve(one.work, goal(0.7, inner, budget), 1e-8)
                    calls += 1
                    if outcome == RUNNING:
                        assert (lo, hi) == (-np.inf, np.inf)
                most = max(most, calls)
                pairs, weight = np.empty(30, dtype=np.int64), np.empty(15)
                mixes = choose(one.work, 0.7, 1e-8 - (hi - lo), True, pairs, weight)
                parts = one.work.v, one.work.u, one.work.best, one.work.progress, pairs, weight
                found.append((outcome, lo, hi, mixes, *(part.tobytes() for part in parts)))
            assert found[0] == found[1] == found[2]
            assert found[0][0] == CONVERGED
        assert most > 3


class TestImprove:
    @pytest.mark.parametrize("kind", KINDS)
    def test_the_bracket_is_that_of_the_operator_and_narrow(self, kind):
        for seed in range(6):
            rng = np.random.default_rng([8, seed])
            sample = KINDS[kind](rng, 10, ragged_ptr(rng, 10, 3))
            work = sample.work
            start_planning(work, False)
            for c, tol in ((0.3, 1e-3), (0.3, 1e-7), (np.inf, 1e-7)):
                start_planning(work, True)
                outcome, lo, hi = improve(work, goal(c, budget=10**5), tol)
                top = np.maximum.reduceat(pair_values(sample, work.v), work.m.pair_ptr[:-1])
                step = np.minimum(top, top.min() + c) - work.v
                assert outcome == CONVERGED
                assert hi - lo <= tol
                assert (lo, hi) == pytest.approx((step.min(), step.max()), abs=1e-11)

    def test_an_iterate_that_is_too_wide_ends_it(self):
        rng = np.random.default_rng(9)
        sample = random_box(rng, 10, ragged_ptr(rng, 10, 3))
        start_planning(sample.work, False)
        outcome, lo, hi = improve(sample.work, goal(inner=0, budget=100, widest=1e-3), 1e-9)
        assert outcome == TOO_WIDE
        assert np.ptp(sample.work.v) > 1e-3
        assert lo < hi
        assert sample.work.progress[0] == 1.0

    def test_starting_forgets(self):
        rng = np.random.default_rng(10)
        sample = random_box(rng, 12, ragged_ptr(rng, 12, 3))
        fresh, results = copy_of(sample), []
        start_planning(sample.work, False)
        improve(sample.work, goal(0.1, budget=5), 1e-12)
        for one in (sample, fresh):
            one.work.ws.version[0] += 1
            start_planning(one.work, False)
            assert not one.work.v.any()
            results.append((*improve(one.work, goal(0.5, budget=1000), 1e-8), one.work.v.tobytes()))
        assert results[0] == results[1]

    @pytest.mark.parametrize("kind", KINDS)
    def test_interpreted_kernels_equal_the_compiled_ones(self, kind, monkeypatch):
        found = []
        for mode in ("compiled", "interpreted"):
            for seed in range(2):
                rng = np.random.default_rng([11, seed])
                sample = KINDS[kind](rng, 6, ragged_ptr(rng, 6, 3))
                work, pairs, weight = sample.work, np.empty(12, dtype=np.int64), np.empty(6)
                if mode == "interpreted":
                    monkeypatch.setattr(module, "now", lambda moment: 0.0)  # the C library's clock is for compiled code
                    with interpreted():
                        result = plan(sample, pairs, weight)
                else:
                    result = plan(sample, pairs, weight)
                parts = work.v, work.u, work.best, work.progress, pairs, weight
                found.append((*result, *(part.tobytes() for part in parts)))
        assert found[:2] == found[2:]


def plan(sample, pairs, weight):
    start_planning(sample.work, False)
    outcome, lo, hi = improve(sample.work, goal(0.5, budget=60), 1e-5)
    mixes = choose(sample.work, 0.5, max(1e-5 - (hi - lo), 0.0), True, pairs, weight)
    return int(outcome), float(lo), float(hi), bool(mixes)


class TestSlack:
    @pytest.mark.parametrize("kind", BOXES)
    def test_the_first_sweep_closes_all_boxes(self, kind):
        """What is left of 1 after the lower ends, never negative; and where it ends if unlisted states alone take it."""
        rng, clear = np.random.default_rng(12), 0
        for _ in range(10):
            sample = BOXES[kind](rng, 20, ragged_ptr(rng, 20, 3))
            work, rows = sample.work, sample.work.rows
            assert np.isnan(work.m.slack).all()
            rank(work, rng.normal(size=20))
            first_box_sweep(work, work.ws.q)
            for i in range(work.reward.size):
                exact, rest = 1 - sum(map(Fraction, sample.low[i].tolist())), Fraction(float(work.m.rest[i]))
                assert work.m.slack[i] == pytest.approx(float(exact), abs=1e-15)
                assert work.m.slack[i] >= 0.0
                within = int((~work.sets.closed).sum()) if kind == "closed" and work.sets.flagged[i] else 20
                position = rows.stop[i] - (21 if within < 20 or (kind == "closed" and work.sets.flagged[i]) else 0)
                assert 0 <= position < within
                assert position * rest + Fraction(float(rows.part[i])) == pytest.approx(float(exact), abs=1e-12)
                if rest > 0 and 1e-9 < exact / rest % 1 < 1 - 1e-9:
                    assert position == min(exact // rest, within - 1) * (rest < 1)
                    clear += 1
        assert clear > 100

    @pytest.mark.parametrize("function", [has_less_room, has_less_room.py_func])
    def test_less_room_by_hand(self, function):
        rooms = read_only(np.array([0.5, 0.25, 0.0, 0.75]))
        assert not function(rooms, 0, 2, 0.25)
        assert not function(rooms, 0, 2, 0.25 + 5e-13), "a hair does not count"
        assert function(rooms, 0, 2, 0.2500001)
        assert function(rooms, 2, 3, 0.1)
        assert not function(rooms, 2, 3, 0.0), "nobody is given any"
        assert not function(rooms, 1, 1, 1.0), "an empty row"

    @pytest.mark.parametrize("function", [keep_due, keep_due.py_func])
    def test_due_rows_by_hand(self, function):
        """Six rows of one successor, of value 2 or 1, with the slack ending at a state of value 1; the fifth was found narrow before."""
        keys, stop = np.array([3.0, 1.0, 1.0]), np.array([1, 1, 2, 1, 1, 1])
        value, rooms = np.array([2.0, 1.0, 1.0, 1.0, 1.0, 1.0]), np.array([0.0, 0.3, 0.2, 0.2, 0.3, 0.0])
        rests, slack = np.full(6, 0.3), np.array([1.0, 1.0, 1.0, 0.1, 1.0, 1.0])
        narrow, todo = np.array([2, 2, 2, 2, 1, 0], dtype=np.uint8), np.arange(6)
        row = read_only(rooms), read_only(np.arange(7)), read_only(rests)
        n = function(todo, 6, value, keys, stop, narrow, *row, slack)
        assert todo[:n].tolist() == [0, 2, 4]
        assert narrow.tolist() == [2, 0, 1, 0, 1, 0], "the first was not looked at, the last was found wide before"
