"""The planner's sweeps: Lv to the last bit whatever is left out, the same outcome whatever the budget, boxes closed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from desk_kernels import box_sweep, choose, first_box_sweep, rank, start_planning, sweep
from desk_samples import BOXES, KINDS, Sample, copy_of, pair_values, ragged_ptr, random_box, read_only, value_vectors

from spanrl.kernels import extended as module
from spanrl.kernels import iterate
from spanrl.kernels.backups import plain_values, some_values
from spanrl.kernels.desk import Goal
from spanrl.kernels.extended import CONVERGED, RUNNING, TOO_WIDE, has_less_room, improve, keep_due
from spanrl.kernels.iterate import bracket, clip
from spanrl.kernels.jit import interpreted
from spanrl.kernels.layout import PLAIN, workspace
from spanrl.kernels.order import rank_states

ROUNDING = 1e-12


def narrow(sample: Sample) -> Sample:
    """Take the rewards far enough apart that many actions are out of the question."""
    rewards = sample.desk.sets.r_high
    rewards[:] = np.random.default_rng(0).permutation(np.linspace(0.0, 1.0, rewards.size))
    return sample


def goal(c=np.inf, inner=6, budget=1, widest=np.inf):
    return Goal(float(c), float(widest), inner, True, budget)


def full_sweep(sample, v):
    """Return (Lv, q) of all pairs, on a fresh desk."""
    fresh = copy_of(sample)
    desk = fresh.desk
    start_planning(desk, False)
    desk.v[:] = v
    rank(desk, v)
    sweep(desk, v)
    return desk.u, desk.ws.q


def general_values(desk, v):
    """Return what the solvers' kernels make of all pairs at v; they know of no closed states."""
    q = np.empty(desk.reward.size)
    if desk.m.kind == PLAIN:
        plain_values(desk.m, read_only(desk.reward), v, q)
    else:
        general = workspace(desk.m)
        rank_states(1.0, v, general)
        some_values(desk.m, read_only(desk.reward), 1.0, general, general.pairs, q)
    return q


class TestSweep:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("S", [1, 2, 7, 50])
    def test_first_and_later_sweeps_are_the_backup(self, kind, S):
        rng = np.random.default_rng([1, S])
        for _ in range(6):
            sample = KINDS[kind](rng, S, ragged_ptr(rng, S, 3))
            desk, first = sample.desk, True
            start_planning(desk, False)
            for v in value_vectors(rng, S):
                rank(desk, v)
                desk.progress[2] = float(not first)
                sweep(desk, v)
                first, m = False, desk.m
                wanted = pair_values(sample, v)
                size = ROUNDING * max(1.0, np.abs(v).max())
                np.testing.assert_allclose(desk.ws.q, wanted, rtol=0, atol=size)
                assert desk.u.tobytes() == np.maximum.reduceat(desk.ws.q, m.pair_ptr[:-1]).tobytes()
                assert desk.u.tobytes() == desk.ws.q[desk.best].tobytes()
                assert ((m.pair_ptr[:-1] <= desk.best) & (desk.best < m.pair_ptr[1:])).all()
                everywhere = ~desk.sets.flagged if desk.sets.flagged.size else np.ones(m.slack.size, dtype=bool)
                np.testing.assert_allclose(
                    desk.ws.q[everywhere], general_values(desk, v)[everywhere], rtol=0, atol=size
                )

    @pytest.mark.parametrize("kind", BOXES)
    def test_closing_on_the_way_leaves_no_bit_different(self, kind):
        """The first sweep closes the boxes; the others find them closed."""
        rng = np.random.default_rng(2)
        for _ in range(10):
            sample = BOXES[kind](rng, 30, ragged_ptr(rng, 30, 3))
            desk, v = sample.desk, rng.normal(size=30)
            rank(desk, v)
            one, other = np.empty((2, desk.reward.size))
            first_box_sweep(desk, one)
            box_sweep(desk, desk.everyone, other)
            assert one.tobytes() == other.tobytes()

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_order_of_the_pairs_does_not_matter(self, kind):
        rng = np.random.default_rng(3)
        sample = KINDS[kind](rng, 30, ragged_ptr(rng, 30, 3))
        other = copy_of(sample)
        other.desk.ws.pairs[:] = rng.permutation(other.desk.everyone)
        for one in (sample, other):
            start_planning(one.desk, False)
            rank(one.desk, np.arange(30.0) % 7)
            sweep(one.desk, np.arange(30.0) % 7)
        assert sample.desk.ws.q.tobytes() == other.desk.ws.q.tobytes()
        assert sample.desk.best.tolist() == other.desk.best.tolist()


class TestElimination:
    @pytest.mark.parametrize("c", [0.2, 1.0, np.inf])
    @pytest.mark.parametrize("kind", KINDS)
    def test_lv_is_exact_to_the_last_bit(self, kind, c):
        """After every round: the values are clipped, but nothing is missing. Many pairs must really have been left out."""
        rounds, left_out = 0, 0
        for seed in range(6):
            rng = np.random.default_rng([4, seed])
            sample = narrow(KINDS[kind](rng, 25, ragged_ptr(rng, 25, 6)))
            desk = sample.desk
            start_planning(desk, False)
            desk.v[:] = rng.normal(size=25)
            for _ in range(30):
                far = desk.progress[6]
                outcome, lo, hi = improve(desk, goal(c), 1e-9)
                v = desk.v if outcome == CONVERGED else desk.rows.v
                wanted, q = full_sweep(sample, v)
                clip(wanted, c)
                assert desk.u.tobytes() == wanted.tobytes()
                np.testing.assert_array_equal(desk.ws.q[desk.best], q[desk.best])
                if outcome == CONVERGED:
                    assert (lo, hi) == bracket(v, wanted, iterate.ROUNDING)
                    break
                rounds += 1
                if desk.progress[6] > 0.0:
                    assert desk.progress[6] >= far
                    left_out += int((desk.rows.lead > desk.progress[6]).sum())
        assert rounds > 10
        assert left_out > 20 * rounds

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_is_left_out_is_behind(self, kind):
        """At the last v every pair that is left out is worth less than the best of its state, by the margin at least."""
        some = 0
        for seed in range(8):
            rng = np.random.default_rng([5, seed])
            sample = narrow(KINDS[kind](rng, 20, ragged_ptr(rng, 20, 6)))
            desk = sample.desk
            start_planning(desk, False)
            outcome, _, _ = improve(desk, goal(0.5, budget=200), 1e-6)
            assert outcome == CONVERGED
            out = desk.rows.lead > desk.progress[6]
            some += int(out.sum())
            q = pair_values(sample, desk.v)
            state = np.repeat(np.arange(20), np.diff(desk.m.pair_ptr))
            top = np.maximum.reduceat(q, desk.m.pair_ptr[:-1])
            assert (q[out] < top[state[out]]).all()
            np.testing.assert_allclose(desk.ws.q[~out], q[~out], rtol=0, atol=1e-11)
        assert some > 50

    def test_without_inner_sweeps_nothing_is_left_out(self):
        rng = np.random.default_rng(6)
        sample = narrow(random_box(rng, 20, ragged_ptr(rng, 20, 6)))
        start_planning(sample.desk, False)
        outcome, _, _ = improve(sample.desk, goal(inner=0, budget=10**4), 1e-6)
        assert outcome == CONVERGED
        assert (sample.desk.rows.lead == -np.inf).all()
        assert sample.desk.progress[0] == sample.desk.progress[2]


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
                start_planning(one.desk, False)
                outcome, calls = RUNNING, 0
                while outcome == RUNNING:
                    outcome, lo, hi = improve(one.desk, goal(0.7, inner, budget), 1e-8)
                    calls += 1
                    if outcome == RUNNING:
                        assert (lo, hi) == (-np.inf, np.inf)
                most = max(most, calls)
                pairs, weight = np.empty(30, dtype=np.int64), np.empty(15)
                mixes = choose(one.desk, 0.7, 1e-8 - (hi - lo), True, pairs, weight)
                parts = one.desk.v, one.desk.u, one.desk.best, one.desk.progress, pairs, weight
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
            desk = sample.desk
            start_planning(desk, False)
            for c, tol in ((0.3, 1e-3), (0.3, 1e-7), (np.inf, 1e-7)):
                start_planning(desk, True)
                outcome, lo, hi = improve(desk, goal(c, budget=10**5), tol)
                top = np.maximum.reduceat(pair_values(sample, desk.v), desk.m.pair_ptr[:-1])
                step = np.minimum(top, top.min() + c) - desk.v
                assert outcome == CONVERGED
                assert hi - lo <= tol
                assert (lo, hi) == pytest.approx((step.min(), step.max()), abs=1e-11)

    def test_an_iterate_that_is_too_wide_ends_it(self):
        rng = np.random.default_rng(9)
        sample = random_box(rng, 10, ragged_ptr(rng, 10, 3))
        start_planning(sample.desk, False)
        outcome, lo, hi = improve(sample.desk, goal(inner=0, budget=100, widest=1e-3), 1e-9)
        assert outcome == TOO_WIDE
        assert np.ptp(sample.desk.v) > 1e-3
        assert lo < hi
        assert sample.desk.progress[0] == 1.0

    def test_starting_forgets(self):
        rng = np.random.default_rng(10)
        sample = random_box(rng, 12, ragged_ptr(rng, 12, 3))
        fresh, results = copy_of(sample), []
        start_planning(sample.desk, False)
        improve(sample.desk, goal(0.1, budget=5), 1e-12)
        for one in (sample, fresh):
            one.desk.ws.version[0] += 1
            start_planning(one.desk, False)
            assert not one.desk.v.any()
            results.append((*improve(one.desk, goal(0.5, budget=1000), 1e-8), one.desk.v.tobytes()))
        assert results[0] == results[1]

    @pytest.mark.parametrize("kind", KINDS)
    def test_interpreted_kernels_equal_the_compiled_ones(self, kind, monkeypatch):
        found = []
        for mode in ("compiled", "interpreted"):
            for seed in range(2):
                rng = np.random.default_rng([11, seed])
                sample = KINDS[kind](rng, 6, ragged_ptr(rng, 6, 3))
                desk, pairs, weight = sample.desk, np.empty(12, dtype=np.int64), np.empty(6)
                if mode == "interpreted":
                    monkeypatch.setattr(module, "now", lambda moment: 0.0)  # the C library's clock is for compiled code
                    with interpreted():
                        result = plan(sample, pairs, weight)
                else:
                    result = plan(sample, pairs, weight)
                parts = desk.v, desk.u, desk.best, desk.progress, pairs, weight
                found.append((*result, *(part.tobytes() for part in parts)))
        assert found[:2] == found[2:]


def plan(sample, pairs, weight):
    start_planning(sample.desk, False)
    outcome, lo, hi = improve(sample.desk, goal(0.5, budget=60), 1e-5)
    mixes = choose(sample.desk, 0.5, max(1e-5 - (hi - lo), 0.0), True, pairs, weight)
    return int(outcome), float(lo), float(hi), bool(mixes)


class TestSlack:
    @pytest.mark.parametrize("kind", BOXES)
    def test_the_first_sweep_closes_all_boxes(self, kind):
        """What is left of 1 after the lower ends, never negative; and where it ends if unlisted states alone take it."""
        rng, clear = np.random.default_rng(12), 0
        for _ in range(10):
            sample = BOXES[kind](rng, 20, ragged_ptr(rng, 20, 3))
            desk, rows = sample.desk, sample.desk.rows
            assert np.isnan(desk.m.slack).all()
            rank(desk, rng.normal(size=20))
            first_box_sweep(desk, desk.ws.q)
            for i in range(desk.reward.size):
                exact, rest = 1 - sum(map(Fraction, sample.low[i].tolist())), Fraction(float(desk.m.rest[i]))
                assert desk.m.slack[i] == pytest.approx(float(exact), abs=1e-15)
                assert desk.m.slack[i] >= 0.0
                within = int((~desk.sets.closed).sum()) if kind == "closed" and desk.sets.flagged[i] else 20
                position = rows.stop[i] - (21 if within < 20 or (kind == "closed" and desk.sets.flagged[i]) else 0)
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
