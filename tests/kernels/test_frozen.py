"""A frozen policy is a linear operator: at the values where it was frozen it is worth what the set is, elsewhere what its rows say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from desk_kernels import box_sweep, first_box_sweep
from desk_samples import is_free, pair_values, ragged_ptr, random_box, value_vectors

from spanrl.kernels.backups import box_values
from spanrl.kernels.frozen import by_length, freeze_box, new_frozen, sweep_frozen
from spanrl.kernels.jit import interpreted
from spanrl.kernels.layout import workspace
from spanrl.kernels.order import rank_states

ROUNDING = 1e-12
SIZES = [(1, 3), (2, 3), (3, 2), (6, 3), (40, 4), (300, 3)]


def look(sample, v, first=False):
    """Bring the workspace to v, rows in order, as a sweep over actions leaves it; return the values of all pairs."""
    desk = sample.desk
    rank_states(1.0, v, desk.ws)
    q = np.full(desk.reward.size, np.nan)
    if first:
        first_box_sweep(desk, sample.visits, q)
    else:
        box_sweep(desk, desk.everyone, q)
    return q


def freeze(sample, pairs, afresh):
    desk = sample.desk
    return freeze_box(desk.m, desk.reward, desk.ws, desk.rows, pairs, desk.frozen, afresh)


def at(sample, v):
    """Return the value u of the frozen rows at v [S]."""
    desk, u = sample.desk, np.full(v.size, np.nan)
    sweep_frozen(desk.frozen, desk.ws.order, np.empty(v.size), np.zeros(v.size + 1), v.copy(), u, np.inf, 1.0)
    return u


def rows_of(sample):
    """Return (reward [S], P [S, S]) of the frozen rows, by applying them to 0 and to unit vectors."""
    S = sample.low.shape[1]
    reward = at(sample, np.zeros(S))
    return reward, np.stack([at(sample, unit) - reward for unit in np.eye(S)], axis=1)


def any_pairs(rng, sample):
    ptr = sample.desk.m.pair_ptr
    return rng.integers(ptr[:-1], ptr[1:])


def assert_close(found, wanted, v):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=ROUNDING * max(1.0, np.abs(v).max()))


def brute_force(v, low, high):
    """Return max{pᵀv} over the vertices of a box: all states but one at an end. In fractions."""
    low, high, v = ([Fraction(x) for x in part.tolist()] for part in (low, high, v))
    best, S = None, len(v)
    for rest in range(S):
        for ends in range(2 ** (S - 1)):
            p = [(high if ends >> (s - (s > rest)) & 1 else low)[s] for s in range(S)]
            p[rest] = 1 - sum(p[s] for s in range(S) if s != rest)
            if low[rest] - Fraction(1e-15) <= p[rest] <= high[rest] + Fraction(1e-15):
                value = sum(a * b for a, b in zip(p, v, strict=True))
                best = value if best is None else max(best, value)
    return float(best)


class TestAtTheSameValues:
    @pytest.mark.parametrize(("S", "A"), SIZES)
    def test_is_worth_what_the_set_is(self, S, A):
        rng = np.random.default_rng([S, A])
        for _ in range(12 if S < 100 else 2):
            sample = random_box(rng, S, ragged_ptr(rng, S, A))
            first = True
            for v in value_vectors(rng, S):
                q = look(sample, v, first)
                pairs = any_pairs(rng, sample)
                freeze(sample, pairs, first)
                wanted = pair_values(sample, v)
                assert_close(q, wanted, v)
                assert_close(at(sample, v), wanted[pairs], v)
                first = False

    def test_equals_the_general_backup(self):
        """The kernel that all solvers use, with a workspace of its own."""
        rng = np.random.default_rng(2)
        for _ in range(20):
            sample = random_box(rng, 80, ragged_ptr(rng, 80, 3), listed=20)
            v = rng.normal(size=80)
            look(sample, v, True)
            pairs, m = any_pairs(rng, sample), sample.desk.m
            freeze(sample, pairs, True)
            other, q = workspace(m), np.empty(m.slack.size)
            rank_states(1.0, v, other)
            box_values(m, sample.desk.reward, 1.0, other, other.pairs, q)
            assert_close(at(sample, v), q[pairs], v)

    def test_equals_brute_force(self):
        rng = np.random.default_rng(3)
        for _ in range(15):
            sample = random_box(rng, 4, ragged_ptr(rng, 4, 2))
            for v in (rng.normal(size=4), rng.integers(0, 3, 4).astype(float)):
                look(sample, v, True)
                pairs = any_pairs(rng, sample)
                freeze(sample, pairs, True)
                wanted = [sample.desk.reward[i] + brute_force(v, sample.low[i], sample.high[i]) for i in pairs.tolist()]
                assert_close(at(sample, v), wanted, v)

    def test_all_kinds_of_rows_occur(self):
        """Otherwise the comparisons say nothing."""
        rng, kinds = np.random.default_rng(4), {"in turn": 0, "not": 0, "free": 0, "none listed": 0, "rest 0": 0}
        for _ in range(30):
            sample = random_box(rng, 40, ragged_ptr(rng, 40, 3))
            look(sample, rng.normal(size=40), True)
            pairs, m = any_pairs(rng, sample), sample.desk.m
            freeze(sample, pairs, True)
            turn = int((sample.desk.frozen.pair < -1).sum())
            kinds["in turn"] += turn
            kinds["not"] += 40 - turn
            kinds["free"] += int(is_free(sample)[pairs].sum())
            kinds["none listed"] += int((np.diff(m.succ_ptr)[pairs] == 0).sum())
            kinds["rest 0"] += int((m.rest[pairs] == 0).sum())
        assert min(kinds.values()) > 50, kinds


class TestAtOtherValues:
    @pytest.mark.parametrize(("S", "A"), SIZES[:-1])
    def test_is_one_distribution_of_the_set(self, S, A):
        rng = np.random.default_rng([7, S, A])
        for _ in range(8):
            sample = random_box(rng, S, ragged_ptr(rng, S, A))
            v = rng.normal(size=S)
            look(sample, v, True)
            pairs = any_pairs(rng, sample)
            freeze(sample, pairs, True)
            reward, P = rows_of(sample)
            np.testing.assert_array_equal(reward, sample.desk.reward[pairs])
            np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=ROUNDING)
            assert (sample.low[pairs] - ROUNDING <= P).all()
            assert (sample.high[pairs] + ROUNDING >= P).all()
            for other in value_vectors(rng, S):
                assert_close(at(sample, other), reward + P @ other, other)
                assert (at(sample, other) <= pair_values(sample, other)[pairs] + ROUNDING * 100).all()

    def test_also_with_ties(self):
        """Who of two states of equal value is given the mass does not matter: both have room for it."""
        rng = np.random.default_rng(8)
        for _ in range(30):
            sample = random_box(rng, 12, ragged_ptr(rng, 12, 3))
            v = rng.integers(0, 3, 12).astype(float)
            look(sample, v, True)
            pairs = any_pairs(rng, sample)
            freeze(sample, pairs, True)
            reward, P = rows_of(sample)
            np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=ROUNDING)
            assert (P >= -ROUNDING).all()
            assert_close(reward + P @ v, pair_values(sample, v)[pairs], v)
            inside = (
                sample.desk.rows.stop[pairs] < 11
            )  # else the last state has all that is left, also for others like it
            assert (sample.low[pairs] - ROUNDING <= P)[inside].all()
            assert (sample.high[pairs] + ROUNDING >= P)[inside].all()


class TestAgain:
    """A second freeze leaves what it may; it has the bits of one that is done afresh."""

    @pytest.mark.parametrize("S", [1, 2, 7, 60])
    def test_equals_a_fresh_one(self, S):
        rng = np.random.default_rng([9, S])
        for _ in range(10):
            sample, first = random_box(rng, S, ragged_ptr(rng, S, 4)), True
            pairs = any_pairs(rng, sample)
            for v in value_vectors(rng, S):
                look(sample, v, first)
                pairs = np.where(rng.random(S) < 0.3, any_pairs(rng, sample), pairs)
                freeze(sample, pairs, first)
                first = False
                fresh = sample._replace(desk=sample.desk._replace(frozen=new_frozen(S, sample.desk.frozen.succ.size)))
                freeze(fresh, pairs, True)
                for other in (v, *value_vectors(rng, S)):
                    assert at(sample, other).tobytes() == at(fresh, other).tobytes()

    def test_counts_the_states_with_another_pair(self):
        rng = np.random.default_rng(10)
        for _ in range(20):
            sample = random_box(rng, 20, ragged_ptr(rng, 20, 4))
            before = any_pairs(rng, sample)
            look(sample, rng.normal(size=20), True)
            assert freeze(sample, before, True) == 20
            assert freeze(sample, before, False) == 0
            look(sample, rng.normal(size=20))  # other rows depend on the values now
            assert freeze(sample, before, False) == 0
            pairs = any_pairs(rng, sample)
            assert freeze(sample, pairs, False) == (pairs != before).sum()

    def test_every_state_has_one_place_and_short_ones_come_first(self):
        rng = np.random.default_rng(11)
        sample = random_box(rng, 50, ragged_ptr(rng, 50, 3))
        look(sample, rng.normal(size=50), True)
        freeze(sample, any_pairs(rng, sample), True)
        m, frozen = sample.desk.m, sample.desk.frozen
        longest = [np.diff(m.succ_ptr)[m.pair_ptr[s] : m.pair_ptr[s + 1]].max() for s in range(50)]
        assert frozen.state.tolist() == sorted(range(50), key=lambda s: longest[s])
        assert np.diff(frozen.ptr).tolist() == sorted(longest)
        assert frozen.ptr[0] == 0


class TestSweep:
    @pytest.mark.parametrize("a", [1.0, 0.9, 0.5])
    @pytest.mark.parametrize("c", [0.0, 0.3, 2.0, np.inf])
    def test_is_the_relaxed_truncated_operator(self, c, a):
        rng = np.random.default_rng([13, int(10 * a)])
        for S in (1, 2, 9, 40):
            sample = random_box(rng, S, ragged_ptr(rng, S, 3))
            look(sample, rng.normal(size=S), True)
            freeze(sample, any_pairs(rng, sample), True)
            reward, P = rows_of(sample)
            desk, u, v, wanted = sample.desk, np.empty(S), *([rng.normal(size=S)] * 2)
            v = v.copy()
            for _ in range(5):
                width = sweep_frozen(desk.frozen, desk.ws.order, desk.ws.keys, desk.ws.prefix, v, u, c, a)
                q = reward + P @ wanted
                cut = np.minimum(q, q.min() + c)
                assert width == pytest.approx(np.ptp(cut - wanted), abs=1e-11)
                wanted = (1 - a) * wanted + a * cut
                wanted -= wanted[0]
                np.testing.assert_allclose(v, wanted, rtol=0, atol=1e-11)
                assert v[0] == 0.0

    def test_equal_steps_have_width_zero(self):
        """At the bias of the frozen rows: all states gain alike."""
        rng = np.random.default_rng(14)
        sample = random_box(rng, 10, ragged_ptr(rng, 10, 2))
        look(sample, rng.normal(size=10), True)
        freeze(sample, any_pairs(rng, sample), True)
        reward, P = rows_of(sample)
        system = np.hstack([np.eye(10) - P, np.ones((10, 1))])
        bias = np.linalg.lstsq(np.vstack([system, np.eye(11)[0]]), np.append(reward, 0.0), rcond=None)[0][:10]
        desk, v = sample.desk, bias.copy()
        width = sweep_frozen(desk.frozen, desk.ws.order, desk.ws.keys, desk.ws.prefix, v, np.empty(10), np.inf, 1.0)
        assert width <= 1e-9
        np.testing.assert_allclose(v, bias - bias[0], rtol=0, atol=1e-9)


class TestByLength:
    @pytest.mark.parametrize("seed", range(8))
    def test_is_a_stable_sort(self, seed):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(0, rng.integers(1, 9), 30)
        ptr = np.concatenate(([0], np.cumsum(sizes)))
        chosen = rng.permutation(30)[: rng.integers(0, 31)]
        for function in (by_length, by_length.py_func):
            out = np.full(chosen.size, -1)
            function(ptr, chosen, out)
            assert out.tolist() == np.argsort(sizes[chosen], kind="stable").tolist()

    def test_all_rows_empty(self):
        out = np.full(3, -1)
        by_length(np.zeros(4, dtype=np.int64), np.arange(3), out)
        assert out.tolist() == [0, 1, 2]


def test_interpreted_kernels_equal_the_compiled_ones():
    rng = np.random.default_rng(12)
    for S in (1, 3, 15):
        sample, first = random_box(rng, S, ragged_ptr(rng, S, 3)), True
        pairs = any_pairs(rng, sample)
        twin = sample._replace(desk=sample.desk._replace(frozen=new_frozen(S, sample.desk.frozen.succ.size)))
        for v in value_vectors(rng, S):
            look(sample, v, first)
            pairs = np.where(rng.random(S) < 0.5, any_pairs(rng, sample), pairs)
            changed, u = freeze(sample, pairs, first), at(sample, v)
            with interpreted():
                assert freeze(twin, pairs, first) == changed
                assert at(twin, v).tobytes() == u.tobytes()
            first = False
