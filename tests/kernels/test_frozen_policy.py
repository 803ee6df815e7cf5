"""A frozen policy is a linear operator: at the values where it was frozen it is worth what the set is, elsewhere what its rows say."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from workspace_kernels import box_sweep, first_box_sweep, freeze_pairs, frozen_sweep, rank
from workspace_samples import (
    BOXES,
    LINEAR,
    copy_of,
    pair_values,
    ragged_ptr,
    random_box,
    random_plain,
    read_only,
    value_vectors,
)

from spanrl.kernels.backups import box_values, plain_sweep
from spanrl.kernels.frozen_policy import by_length, new_frozen_policy
from spanrl.kernels.jit import interpreted
from spanrl.kernels.kl import kl_values
from spanrl.kernels.layout import BOX, KL, PLAIN, workspace
from spanrl.kernels.order import rank_states

ROUNDING = 1e-12
SIZES = [(1, 3), (2, 3), (3, 2), (6, 3), (40, 4), (120, 3)]


def look(sample, v, first=False):
    """Bring the workspace to v, rows in order, as a sweep over actions leaves it; return the values of all pairs."""
    work = sample.work
    q = np.full(work.reward.size, np.nan)
    rank(work, v)
    if work.m.kind == PLAIN:
        plain_sweep(work.m.succ_ptr, work.m.succ, work.m.low, work.reward, work.everyone, v, q)
    elif work.m.kind == KL:
        kl_values(work.m, work.reward, 1.0, work.ws, work.everyone, q)
    elif first:
        first_box_sweep(work, q)
    else:
        box_sweep(work, work.everyone, q)
    return q


def freeze(sample, pairs, afresh):
    return freeze_pairs(sample.work, pairs, afresh)


def at(sample, v):
    """Return the value u of the frozen rows at v [S]; the ranking stays as it is."""
    work, u = sample.work, np.full(v.size, np.nan)
    ranked = work.ranked._replace(keys=work.ranked.keys.copy(), prefix=work.ranked.prefix.copy())
    work = work._replace(ranked=ranked, ws=work.ws._replace(keys=ranked.keys[: v.size]))
    frozen_sweep(work, v.copy(), u, np.inf, 1.0)
    return u


def rows_of(sample):
    """Return (reward [S], P [S, S]) of the frozen rows, by applying them to 0 and to unit vectors."""
    S = sample.low.shape[1]
    reward = at(sample, np.zeros(S))
    return reward, np.stack([at(sample, unit) - reward for unit in np.eye(S)], axis=1)


def assert_in_the_sets(sample, pairs, P):
    """Each row must be a distribution within the set of its pair.

    There is one exception: where all listed successors are worth as little as the worst state, and all states together may not have the
    slack, that state has what is left, also for them. It is worth the same, and only a start for the next sweep over actions.
    """
    work = sample.work
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=ROUNDING)
    if work.m.kind == KL:
        assert (P >= -ROUNDING).all()
        for p, q, radius in zip(sample.low[pairs], P, sample.high[pairs, 0], strict=True):
            assert p[p > 0] @ np.log(p[p > 0] / (q[p > 0] + 1e-15)) <= radius + 1e-9  # rows are read with this error
        return
    assert (sample.low[pairs] - ROUNDING <= P).all()
    over = P - sample.high[pairs]
    if work.m.kind == BOX:
        last = work.rows.stop[pairs]
        crowded = (work.rows.peak[pairs] == work.ranked.keys[last]) & (work.rows.part[pairs] > work.m.rest[pairs])
        at = np.flatnonzero(crowded)
        over[at, work.ranked.order[last[at]]] = 0.0
    assert (over <= ROUNDING).all()


def any_pairs(rng, sample):
    ptr = sample.work.m.pair_ptr
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
    @pytest.mark.parametrize("kind", LINEAR)
    @pytest.mark.parametrize(("S", "A"), SIZES)
    def test_is_worth_what_the_set_is(self, S, A, kind):
        rng = np.random.default_rng([S, A])
        for _ in range(12 if S < 100 else 1):
            sample = LINEAR[kind](rng, S, ragged_ptr(rng, S, A))
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
            pairs, m = any_pairs(rng, sample), sample.work.m
            freeze(sample, pairs, True)
            other, q = workspace(m), np.empty(m.slack.size)
            rank_states(1.0, v, other)
            box_values(m, read_only(sample.work.reward), 1.0, other, other.pairs, q)
            assert_close(at(sample, v), q[pairs], v)

    @pytest.mark.parametrize("kind", BOXES)
    def test_equals_brute_force(self, kind):
        rng = np.random.default_rng(3)
        for _ in range(15):
            sample = BOXES[kind](rng, 4, ragged_ptr(rng, 4, 2))
            for v in (rng.normal(size=4), rng.integers(0, 3, 4).astype(float)):
                look(sample, v, True)
                pairs = any_pairs(rng, sample)
                freeze(sample, pairs, True)
                wanted = [sample.work.reward[i] + brute_force(v, sample.low[i], sample.high[i]) for i in pairs.tolist()]
                assert_close(at(sample, v), wanted, v)

    @pytest.mark.parametrize("kind", BOXES)
    def test_all_kinds_of_rows_occur(self, kind):
        """Otherwise the comparisons say nothing."""
        rng = np.random.default_rng(4)
        names = "walked", "not walked", "none listed", "all listed", "rest 0", "rest 1", "rest 1, low > 0", "less room"
        counted = dict.fromkeys(
            (*names, "no room", "no slack", *(["flagged", "walked and flagged"] * (kind == "closed"))), 0
        )
        for _ in range(20):
            sample = BOXES[kind](rng, 40, ragged_ptr(rng, 40, 3))
            work, m = sample.work, sample.work.m
            look(sample, rng.normal(size=40), True)
            pairs = any_pairs(rng, sample)
            freeze(sample, pairs, True)
            walked = np.zeros(m.slack.size, dtype=bool)
            walked[pairs] = work.frozen.pair[np.argsort(work.frozen.state)] < -1
            sizes, low = np.diff(m.succ_ptr), sample.low.sum(axis=1)
            least = np.array([(m.room[a:b]).min(initial=np.inf) for a, b in itertools.pairwise(m.succ_ptr)])
            reach = (sample.high > 0).sum(axis=1)
            found = {
                "walked": walked, "not walked": ~walked, "none listed": sizes == 0,
                "all listed": (sizes > 8) & (sizes >= reach), "rest 0": m.rest == 0, "rest 1": m.rest == 1,
                "rest 1, low > 0": (m.rest == 1) & (low > 0), "less room": least < m.rest, "no room": least == 0,
                "no slack": low == 1.0,
            }  # fmt: skip
            if kind == "closed":
                found |= {"flagged": work.sets.flagged, "walked and flagged": walked & work.sets.flagged}
            for name, mask in found.items():
                counted[name] += int(mask[pairs].sum())
        assert min(counted.values()) > 20, counted


class TestAtOtherValues:
    @pytest.mark.parametrize("kind", LINEAR)
    @pytest.mark.parametrize(("S", "A"), SIZES[:-1])
    def test_is_one_distribution_of_the_set(self, S, A, kind):
        """Also with ties, where it matters who of two states of equal value has room, and where all values are equal."""
        rng = np.random.default_rng([7, S, A])
        for _ in range(8 if S < 40 else 2):
            sample = LINEAR[kind](rng, S, ragged_ptr(rng, S, A))
            first = True
            for v in reversed(value_vectors(rng, S)):  # at the last no two are equal
                look(sample, v, first)
                pairs = any_pairs(rng, sample)
                freeze(sample, pairs, first)
                first = False
                reward, P = rows_of(sample)
                np.testing.assert_array_equal(reward, sample.work.reward[pairs])
                assert_in_the_sets(sample, pairs, P)
                assert_close(reward + P @ v, pair_values(sample, v)[pairs], v)
            for other in value_vectors(rng, S):
                assert_close(at(sample, other), reward + P @ other, other)
                assert (at(sample, other) <= pair_values(sample, other)[pairs] + ROUNDING * 100).all()

    def test_with_many_ties(self):
        rng = np.random.default_rng(8)
        for seed in range(60):
            sample = BOXES[("boxes", "closed")[seed % 2]](rng, 12, ragged_ptr(rng, 12, 3))
            v = rng.integers(0, int(rng.integers(1, 4)), 12).astype(float)
            look(sample, v, True)
            pairs = any_pairs(rng, sample)
            freeze(sample, pairs, True)
            reward, P = rows_of(sample)
            assert_in_the_sets(sample, pairs, P)
            assert_close(reward + P @ v, pair_values(sample, v)[pairs], v)


class TestAgain:
    """A second freeze leaves what it may; it has the bits of one that is done afresh."""

    @pytest.mark.parametrize("kind", LINEAR)
    @pytest.mark.parametrize("S", [1, 2, 7, 60])
    def test_equals_a_fresh_one(self, S, kind):
        rng = np.random.default_rng([9, S])
        for _ in range(10):
            sample, first = LINEAR[kind](rng, S, ragged_ptr(rng, S, 4)), True
            pairs = any_pairs(rng, sample)
            for v in value_vectors(rng, S):
                look(sample, v, first)
                pairs = np.where(rng.random(S) < 0.3, any_pairs(rng, sample), pairs)
                freeze(sample, pairs, first)
                first = False
                fresh = sample._replace(
                    work=sample.work._replace(frozen=new_frozen_policy(S, sample.work.frozen.succ.size))
                )
                freeze(fresh, pairs, True)
                for other in (v, *value_vectors(rng, S)[:3]):
                    assert at(sample, other).tobytes() == at(fresh, other).tobytes()

    @pytest.mark.parametrize("kind", LINEAR)
    def test_counts_the_states_with_another_pair(self, kind):
        rng = np.random.default_rng(10)
        for _ in range(20):
            sample = LINEAR[kind](rng, 20, ragged_ptr(rng, 20, 4))
            before = any_pairs(rng, sample)
            look(sample, rng.normal(size=20), True)
            assert freeze(sample, before, True) == 20
            assert freeze(sample, before, False) == 0
            look(sample, rng.normal(size=20))  # other rows depend on the values now
            assert freeze(sample, before, False) == 0
            pairs = any_pairs(rng, sample)
            assert freeze(sample, pairs, False) == (pairs != before).sum()

    @pytest.mark.parametrize("kind", LINEAR)
    def test_every_state_has_one_place_and_short_ones_come_first(self, kind):
        rng = np.random.default_rng(11)
        sample = LINEAR[kind](rng, 50, ragged_ptr(rng, 50, 3))
        look(sample, rng.normal(size=50), True)
        freeze(sample, any_pairs(rng, sample), True)
        m, frozen = sample.work.m, sample.work.frozen
        longest = [np.diff(m.succ_ptr)[m.pair_ptr[s] : m.pair_ptr[s + 1]].max() for s in range(50)]
        assert frozen.state.tolist() == sorted(range(50), key=lambda s: longest[s])
        assert np.diff(frozen.ptr).tolist() == sorted(longest)
        assert frozen.ptr[0] == 0

    def test_rows_that_an_estimate_owns_get_new_places_with_every_plan(self):
        """Their lengths change although there are as many entries as before; those of counts only ever grow."""
        rng, moved = np.random.default_rng(14), 0
        for _ in range(20):
            ptr = ragged_ptr(rng, 12, 3)
            sample = random_plain(rng, 12, ptr)
            look(sample, rng.normal(size=12))
            freeze(sample, any_pairs(rng, sample), True)
            before = np.diff(sample.work.frozen.ptr).tolist()
            sizes = np.diff(sample.work.m.succ_ptr)
            other = rearranged(rng, sample, rng.permutation(sizes))
            assert other.work.frozen.listed[0] == other.work.m.succ_ptr[-1]
            look(other, rng.normal(size=12))
            pairs = any_pairs(rng, other)
            freeze(other, pairs, True)
            reward, P = rows_of(other)
            np.testing.assert_array_equal(reward, other.work.reward[pairs])
            np.testing.assert_allclose(P, other.low[pairs], rtol=0, atol=1e-15)
            moved += np.diff(other.work.frozen.ptr).tolist() != before
        assert moved > 10


def rearranged(rng, sample, sizes):
    """Write rows of other lengths, but as many entries, to the work of a plain model, as the next plan finds it."""
    k, S = sample.low.shape
    sets, low = sample.work.sets, np.zeros((k, S))
    sets.succ_ptr[1:] = np.cumsum(sizes)
    for i in range(k):
        who = np.sort(rng.choice(S, sizes[i], replace=False))
        low[i, who] = rng.dirichlet(np.ones(sizes[i]))
        part = slice(sets.succ_ptr[i], sets.succ_ptr[i + 1])
        sets.succ[part], sets.low[part] = who, low[i, who]
    sample.work.ws.version[0] += 1
    return sample._replace(low=low, high=low)


class TestSweep:
    @pytest.mark.parametrize("kind", LINEAR)
    @pytest.mark.parametrize("a", [1.0, 0.9, 0.5])
    @pytest.mark.parametrize("c", [0.0, 0.3, 2.0, np.inf])
    def test_is_the_relaxed_truncated_operator(self, c, a, kind):
        rng = np.random.default_rng([13, int(10 * a)])
        for S in (1, 2, 9, 40):
            sample = LINEAR[kind](rng, S, ragged_ptr(rng, S, 3))
            look(sample, rng.normal(size=S), True)
            freeze(sample, any_pairs(rng, sample), True)
            reward, P = rows_of(sample)
            work, u, v, wanted = sample.work, np.empty(S), *([rng.normal(size=S)] * 2)
            v = v.copy()
            for _ in range(5):
                width = frozen_sweep(work, v, u, c, a)
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
        sample = random_box(rng, 10, ragged_ptr(rng, 10, 3), hub=True)
        look(sample, rng.normal(size=10), True)
        freeze(sample, any_pairs(rng, sample), True)
        reward, P = rows_of(sample)
        system = np.hstack([np.eye(10) - P, np.ones((10, 1))])
        bias = np.linalg.lstsq(np.vstack([system, np.eye(11)[0]]), np.append(reward, 0.0), rcond=None)[0][:10]
        v = bias.copy()
        width = frozen_sweep(sample.work, v, np.empty(10), np.inf, 1.0)
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


@pytest.mark.parametrize("kind", LINEAR)
def test_interpreted_kernels_equal_the_compiled_ones(kind):
    rng = np.random.default_rng(12)
    for S in (1, 3, 15):
        sample, first = LINEAR[kind](rng, S, ragged_ptr(rng, S, 3)), True
        pairs, twin = any_pairs(rng, sample), copy_of(sample)
        for v in value_vectors(rng, S):
            q = look(sample, v, first)
            pairs = np.where(rng.random(S) < 0.5, any_pairs(rng, sample), pairs)
            changed, u = freeze(sample, pairs, first), at(sample, v)
            with interpreted():
                assert look(twin, v, first).tobytes() == q.tobytes()
                assert freeze(twin, pairs, first) == changed
                assert at(twin, v).tobytes() == u.tobytes()
            first = False
