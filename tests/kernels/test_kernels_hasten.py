"""Sweeps that keep all values, short lists and extrapolation, against plain numpy; compiled and interpreted."""

import numpy as np
import pytest

from spanrl.kernels import hasten as kernels
from spanrl.kernels.hasten import Rows
from spanrl.kernels.jit import interpreted


def some_rows(seed, S=9, writable=False):
    """Draw ragged rows: one to four pairs a state, one to five successors a pair."""
    rng = np.random.default_rng(seed)
    pair_ptr = np.concatenate(([0], np.cumsum(rng.integers(1, 5, S))))
    succ_ptr = np.concatenate(([0], np.cumsum(rng.integers(1, 6, pair_ptr[-1]))))
    succ = rng.integers(0, S, succ_ptr[-1]).astype(np.uint32)
    rows = Rows(pair_ptr, succ_ptr, succ, rng.random(succ.size), rng.random(pair_ptr[-1]))
    for array in rows:
        array.flags.writeable = writable
    return rows


def values(rows, v):
    """Return r + Pv of every pair, and the largest of each state."""
    q = np.array([
        rows.reward[i] + sum(rows.prob[j] * v[rows.succ[j]] for j in range(rows.succ_ptr[i], rows.succ_ptr[i + 1]))
        for i in range(rows.reward.size)
    ])  # fmt: skip
    return q, np.maximum.reduceat(q, rows.pair_ptr[:-1])


@pytest.mark.parametrize("seed", range(5))
def test_a_sweep_is_a_step_with_its_bracket(seed):
    rows = some_rows(seed)
    v = np.random.default_rng(seed).normal(size=9)
    q, top = values(rows, v)
    out, got = np.empty(9), np.empty(q.size)
    lo, hi = kernels.sweep(rows, v, out, got, 1.5, 0.25)
    np.testing.assert_allclose(got, q, rtol=1e-14)
    np.testing.assert_allclose(out, v + 1.5 * (top - v) - 0.25, rtol=0, atol=1e-14)
    np.testing.assert_allclose((lo, hi), ((top - v).min(), (top - v).max()), rtol=0, atol=1e-14)
    low, high = kernels.widen(v, lo, hi)
    assert lo - 1e-13 < low < lo
    assert hi < high < hi + 1e-13


def test_the_first_sweep_is_one_at_zero():
    rows = some_rows(3)
    results = []
    for run in (
        lambda out, q: kernels.first_sweep(rows, out, q, 1.5),
        lambda out, q: kernels.sweep(rows, np.zeros(9), out, q, 1.5, 0.0),
    ):
        out, q = np.empty(9), np.empty(rows.reward.size)
        results.append((run(out, q), out.tolist(), q.tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("reach", [0.0, 0.3, 10.0])
def test_lists_hold_the_pairs_near_the_best(reach, in_place):
    rows = some_rows(7, writable=True)
    q = np.random.default_rng(0).random(rows.reward.size)
    state = np.repeat(np.arange(9), np.diff(rows.pair_ptr))
    keep = np.flatnonzero(q >= np.maximum.reduceat(q, rows.pair_ptr[:-1])[state] - reach)
    entries = np.concatenate([np.arange(rows.succ_ptr[i], rows.succ_ptr[i + 1]) for i in keep])
    expected = (
        np.concatenate(([0], np.cumsum(np.bincount(state[keep])))),
        np.concatenate(([0], np.cumsum(np.diff(rows.succ_ptr)[keep]))),
        rows.succ[entries], rows.prob[entries], rows.reward[keep],
    )  # fmt: skip
    out = rows if in_place else Rows(*(np.empty_like(array) for array in rows))
    pairs = np.empty(q.size + 1, dtype=np.int64)
    n = kernels.find_near(rows.pair_ptr, q, reach, pairs, out.pair_ptr)
    assert pairs[:n].tolist() == keep.tolist()
    kernels.copy_rows(rows, pairs, n, out)
    for got, want in zip(out, expected, strict=True):
        np.testing.assert_array_equal(got[: want.size], want)


@pytest.mark.parametrize("mode", [0.9, 0.9999, -1.0, -0.7])
def test_a_single_mode_is_extrapolated_to_its_end(mode):
    """x_n = x* + λⁿ d + n·e: one leap lands on x*, up to a constant, and can be taken back."""
    rng = np.random.default_rng(2)
    goal, d = rng.normal(size=(2, 50))
    x, y, z = (goal + mode**n * d + 0.1 * n for n in range(3))
    before = z.copy()
    f = kernels.extrapolate(x, y, z)
    assert f == pytest.approx(mode / (1 - mode), rel=1e-6)
    assert np.ptp(z - goal) < 1e-5
    kernels.take_back(y, z, f)
    np.testing.assert_allclose(z, before, rtol=0, atol=1e-10)


@pytest.mark.parametrize("modes", [(0.99, 0.5), (0.9, -0.9), (0.3, 0.3), (1.0, 1.0), (1.1, 1.1)])
def test_what_is_not_one_slow_mode_is_left_alone(modes):
    x, d, e = np.random.default_rng(2).normal(size=(3, 50))
    y = x + d + e
    z = y + modes[0] * d + modes[1] * e
    before = z.copy()
    assert kernels.extrapolate(x, y, z) == 0.0
    assert z.tolist() == before.tolist()


def test_constant_steps_are_left_alone():
    x = np.arange(5.0)
    assert kernels.extrapolate(x, x + 1.0, x + 2.0) == 0.0


def test_ties_go_to_the_first_pair():
    q, ptr = np.array([1.0, 2.0, 2.0 - 1e-12, 2.0 - 1e-12, 2.0, 1.0]), np.array([0, 3, 6])
    top, pair, at_pair = np.empty(2), np.empty(2, dtype=np.int64), np.empty(2)
    kernels.choose(ptr, q, np.inf, 1e-10, 2e-15, top, pair, at_pair)
    assert (top.tolist(), pair.tolist(), at_pair.tolist()) == ([2.0, 2.0], [1, 3], [2.0, 2.0 - 1e-12])
    kernels.choose(ptr, q, 1e-13, 1e-10, 2e-15, top, pair, at_pair)
    assert (pair.tolist(), at_pair.tolist()) == ([1, 4], [2.0, 2.0])


def test_interpreted_kernels_have_the_same_bits():
    rows = some_rows(11)
    probabilities = rows.prob / np.repeat(np.add.reduceat(rows.prob, rows.succ_ptr[:-1]), np.diff(rows.succ_ptr))
    probabilities.flags.writeable = False
    rows = rows._replace(prob=probabilities)
    found = []
    for python in (False, True):
        x, q, start = np.zeros((3, 9)), np.empty(rows.reward.size), kernels.Pace(True)
        if python:
            with interpreted():
                n, outcome, pace = kernels.hasten(rows, x, q, start, 1e-9, 1.0, 1000, 1000)
        else:
            n, outcome, pace = kernels.hasten(rows, x, q, start, 1e-9, 1.0, 1000, 1000)
        assert outcome == kernels.CLOSED
        found.append((n, tuple(pace), x[pace.at].tolist(), q.tolist()))
    assert found[0] == found[1]
