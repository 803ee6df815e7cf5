"""Difference constraints on the bias: the closure, the projection against an LP, contradictions, equality."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse.csgraph import csgraph_from_dense, floyd_warshall

from spanrl import BiasDifferences, clip_span
from spanrl.errors import ModelError, OptionError
from spanrl.planning.differences import MOST_STATES

INF = np.inf


def random_bounds(seed: int, S: int = 7) -> np.ndarray:
    """Return differences that some h keeps, negative ones among them, with gaps."""
    rng = np.random.default_rng(seed)
    h = rng.normal(size=S)
    d = h[:, None] - h + rng.exponential(1.0, size=(S, S)) + 0.01
    return np.where(rng.random((S, S)) < 0.4, d, INF)


def consequences(d: np.ndarray) -> np.ndarray:
    """Return the largest h(s) − h(s') that d allows, by one LP per pair; inf where there is no bound."""
    S = len(d)
    rows = [(s, x) for s in range(S) for x in range(S) if s != x and np.isfinite(d[s, x])]
    A = np.array([np.eye(S)[s] - np.eye(S)[x] for s, x in rows])
    b = [d[s, x] for s, x in rows]
    out = np.zeros((S, S))
    for s in range(S):
        for x in range(S):
            found = linprog(np.eye(S)[x] - np.eye(S)[s], A, b, bounds=(None, None))
            out[s, x] = -found.fun if found.status == 0 else INF
    return out


class TestClosure:
    @pytest.mark.parametrize("seed", range(3))
    def test_it_is_what_follows(self, seed):
        d = random_bounds(seed)
        np.testing.assert_allclose(BiasDifferences(d).bounds, consequences(d), atol=1e-9)

    @pytest.mark.parametrize("seed", range(20))
    def test_scipy_agrees(self, seed):
        d = random_bounds(seed, 12)
        np.fill_diagonal(d, 0.0)
        wanted = floyd_warshall(csgraph_from_dense(d, null_value=INF))
        np.testing.assert_allclose(BiasDifferences(d).bounds, wanted, atol=1e-10)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("more", [0.1, 5.0])
    def test_together_with_a_span_bound(self, seed, more):
        """The closed form is the closure of min(d, c)."""
        d = random_bounds(seed)
        c = more - BiasDifferences(d).bounds.min()
        both = BiasDifferences(np.minimum(d, c)).bounds
        np.testing.assert_allclose(BiasDifferences(d).within(c, 7), both, atol=1e-10)

    def test_nothing_but_a_span_bound(self):
        found = BiasDifferences(np.full((3, 3), INF)).within(0.3, 3)
        assert found.tolist() == [[0, 0.3, 0.3], [0.3, 0, 0.3], [0.3, 0.3, 0]]

    def test_differences_of_one_vector_are_no_contradiction(self):
        """Cycles sum to −1e-16 or so, and nothing grows from it."""
        for seed in range(20):
            h = np.random.default_rng(seed).normal(size=60) * 1000
            np.testing.assert_allclose(BiasDifferences(h[:, None] - h).bounds, h[:, None] - h, atol=1e-8)

    def test_they_are_read_only(self):
        d = random_bounds(0)
        found = BiasDifferences(d)
        before = found.bounds.copy()
        d[:] = 0
        assert (found.bounds == before).all()
        with pytest.raises(ValueError, match="read-only"):
            found.bounds[0, 0] = 1
        with pytest.raises(ValueError, match="read-only"):
            found.within(100.0, 7)[0, 0] = 1


class TestProjection:
    @pytest.mark.parametrize("seed", range(5))
    def test_it_is_the_largest_vector_below_that_keeps_them(self, seed):
        found, u = BiasDifferences(random_bounds(seed)), np.random.default_rng(seed + 100).normal(size=7) * 3
        S, d = 7, found.bounds
        rows = [(s, x) for s in range(S) for x in range(S) if np.isfinite(d[s, x])]
        A = np.array([np.eye(S)[s] - np.eye(S)[x] for s, x in rows])
        wanted = linprog(-np.ones(S), A, [d[s, x] for s, x in rows], bounds=[(None, top) for top in u]).x
        v = found.project(u)
        np.testing.assert_allclose(v, wanted, atol=1e-9)
        assert found.excess(v) <= 1e-10
        assert found.excess(u) > 0.1
        np.testing.assert_allclose(found.project(v), v, atol=1e-10)
        assert (v <= u).all()
        assert (v < u).any()

    def test_a_constant_is_the_truncation_of_scal(self):
        for c in (0.0, 0.7, 2.5):
            u = np.random.default_rng(0).normal(size=9)
            assert (BiasDifferences(np.full((9, 9), c)).project(u) == clip_span(u, c)).all()


class TestRefused:
    def test_a_cycle_is_named(self):
        d = np.full((6, 6), INF)
        d[1, 4], d[4, 2], d[2, 1] = 1.0, -3.0, 1.5
        d[0, 1] = d[3, 4] = d[2, 5] = 0.0
        with pytest.raises(ModelError) as found:
            BiasDifferences(d)
        text = str(found.value)
        assert "the differences contradict each other: d sums to -0.5 < 0 around the states " in text
        cycle = [int(s) for s in text.partition("states ")[2].partition(".")[0].split(" → ")]
        assert cycle[0] == cycle[-1]
        assert sorted(cycle[1:]) == [1, 2, 4]
        assert sum(d[s, x] for s, x in pairwise(cycle)) == -0.5

    @pytest.mark.parametrize("seed", range(10))
    def test_cycles_at_random(self, seed):
        rng = np.random.default_rng(seed)
        d = np.where(rng.random((9, 9)) < 0.4, rng.normal(0.3, 1.0, (9, 9)), INF)
        np.fill_diagonal(d, 0.0)
        with pytest.raises(ModelError, match="contradict each other") as found:
            BiasDifferences(d)
        cycle = [int(s) for s in str(found.value).partition("states ")[2].partition(".")[0].split(" → ")]
        assert len(set(cycle)) == len(cycle) - 1
        assert sum(d[s, x] for s, x in pairwise(cycle)) < 0

    def test_a_state_below_itself(self):
        with pytest.raises(ModelError, match=r"d sums to -1 < 0 around the states 1 → 1\. Raise one of them"):
            BiasDifferences([[0.0, 1.0], [1.0, -1.0]])

    @pytest.mark.parametrize("value", [np.nan, -INF])
    def test_what_is_no_bound(self, value):
        with pytest.raises(
            ModelError, match=r"BiasDifferences: d\[0, 1\] is .*must be a number or inf .*Write inf where nothing"
        ):
            BiasDifferences([[0.0, value], [1.0, 0.0]])

    @pytest.mark.parametrize("shape", [(2, 3), (0, 0), (4,)])
    def test_shapes(self, shape):
        with pytest.raises(ModelError, match="BiasDifferences: d must have shape"):
            BiasDifferences(np.zeros(shape))

    def test_many_states(self):
        many = np.broadcast_to(1.0, (MOST_STATES + 1, MOST_STATES + 1))
        with pytest.raises(
            ModelError, match=r"S must be at most 5000, .*all S² differences; got 5001\. Use a span bound"
        ):
            BiasDifferences(many)

    def test_pairs_without_a_bound(self):
        d = BiasDifferences([[0.0, 1.0], [INF, 0.0]])
        with pytest.raises(OptionError, match=r"nothing follows for h\(1\) − h\(0\)\. Give a finite span_bound, too"):
            d.within(INF, 2)
        assert d.within(5.0, 2).tolist() == [[0, 1], [5, 0]]

    def test_a_span_bound_that_contradicts_them(self):
        d = BiasDifferences([[0.0, -3.0], [4.0, 0.0]])
        with pytest.raises(OptionError, match=r"ask for h\(1\) − h\(0\) ≥ 3, more than span_bound = 2 allows"):
            d.within(2.0, 2)
        assert d.within(3.0, 2).tolist() == [[0, -3], [3, 0]]

    def test_another_number_of_states(self):
        with pytest.raises(OptionError, match=r"one row for each of the 3 states of the model; got 2 rows"):
            BiasDifferences(np.ones((2, 2))).within(1.0, 3)


def test_equality_and_words():
    """What follows is what counts, not how it was said."""
    one = BiasDifferences([[0, 1, 9], [INF, 0, 1], [INF, INF, 0]])
    same = BiasDifferences([[5, 1, 2], [INF, 0, 1], [INF, INF, 0]])
    other = BiasDifferences([[0, 1, 1], [INF, 0, 1], [INF, INF, 0]])
    assert one == same
    assert hash(one) == hash(same)
    assert str(one) == str(same) != str(other)
    assert one not in (other, 5, None)
    assert len(str(one)) == 16
    assert BiasDifferences.of(one) is one
    assert repr(one) == f"<BiasDifferences: 3 states, {one}>"
    assert BiasDifferences([[0.0, -0.0], [0.0, 0.0]]) == BiasDifferences(np.zeros((2, 2)))
