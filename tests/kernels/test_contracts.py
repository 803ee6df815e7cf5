"""Planning on all sets that the contract allows, against linear programs: inner maxima and minima, the gain, and the policy's value.

No box here need look like a Bernstein bound's: see :func:`workspace_samples.random_box`.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from workspace_kernels import choose, least_values, rank, start_planning, sweep
from workspace_samples import KINDS, copy_of, pair_values, ragged_ptr, random_box, random_plain, value_vectors

from spanrl.kernels import extended as module
from spanrl.kernels.extended import CONVERGED, improve
from spanrl.kernels.jit import interpreted
from spanrl.kernels.layout import BALL, PLAIN
from spanrl.kernels.plan_workspace import ROUNDS, Goal
from spanrl.paper.oracles import Finite, fixed_point, span_bellman
from spanrl.paper.oracles_chains import optimal_gain_lp
from spanrl.paper.oracles_sets import ball_vertices, box_vertices, max_ball_lp, max_box_lp

LP = 1e-7  # what the solver of linear programs promises
HUBS = {
    "boxes": partial(random_box, hub=True),
    "closed": partial(random_box, closes=True, hub=True),
    "plain": partial(random_plain, hub=True),
}
POLYTOPES = {name: kind for name, kind in KINDS.items() if name != "KL"}
"""Those with vertices; for the others see :mod:`test_kl_values`."""
MODES = "compiled", "interpreted"


@pytest.fixture(params=MODES)
def mode(request, monkeypatch):
    """Run kernels as they are, and as plain Python."""
    if request.param == "interpreted":
        monkeypatch.setattr(module, "now", lambda moment: 0.0)  # the C library's clock is for compiled code
    return interpreted if request.param == "interpreted" else nullcontext


def inner_lp(sample, i, v):
    """Return max{pᵀv : p in set i} by a linear program."""
    if sample.work.m.kind == PLAIN:
        return float(sample.low[i] @ v)
    if sample.work.m.kind == BALL:
        radius = min(float(sample.high[i, 0]), 2.0)
        centre = sample.low[i] if sample.low[i].any() else np.eye(v.size)[0]
        return max_ball_lp(v, centre, radius)
    return max_box_lp(v, *within_reach(sample, i))


def within_reach(sample, i):
    """Return the ends of a box, pulled apart where rounding has left no distribution between them."""
    low, high = sample.low[i].copy(), sample.high[i].copy()
    if low.sum() > 1.0:
        low *= 1.0 / low.sum() - 1e-15
    if high.sum() < 1.0:
        high[high > 0] += 1e-15
    return low, high


def vertices(sample, i):
    """Return the vertices [n, S] of set i."""
    if sample.work.m.kind == PLAIN:
        return sample.low[i : i + 1]
    if sample.work.m.kind == BALL:
        radius = min(float(sample.high[i, 0]), 2.0)
        return ball_vertices(sample.low[i] if sample.low[i].any() else np.eye(sample.low.shape[1])[0], radius)
    return box_vertices(sample.low[i], sample.high[i])


def finite_model(sample):
    """Return the MDP that has an action for every vertex of every pair, with the largest reward, and as ``action`` the pair."""
    work, S = sample.work, sample.low.shape[1]
    state = np.repeat(np.arange(S), np.diff(work.m.pair_ptr))
    rows = [[(p, i) for i in np.flatnonzero(state == s) for p in vertices(sample, i)] for s in range(S)]
    most = max(map(len, rows))
    P, r = np.zeros((S, most, S)), np.zeros((S, most))
    available, pair = np.zeros((S, most), dtype=bool), np.zeros((S, most), dtype=np.int64)
    for s, row in enumerate(rows):
        for k, (p, i) in enumerate(row):
            P[s, k], r[s, k], available[s, k], pair[s, k] = p, work.reward[i], True, i
    return Finite(P, r, available, pair)


def planned(sample, c, tol, mode, inner=6, budget=2000):
    work = sample.work
    with mode():
        start_planning(work, False)
        return improve(work, Goal(float(c), np.inf, inner, True, budget), tol)


class TestInnerProblems:
    @pytest.mark.parametrize("kind", POLYTOPES)
    def test_sweeps_solve_the_linear_programs(self, kind, mode):
        """The first sweep over all pairs, the later ones, and the smallest values; the greedy rule of the other tests as well."""
        rng = np.random.default_rng(1)
        for S in (1, 2, 6):
            sample = KINDS[kind](rng, S, ragged_ptr(rng, S, 2))
            work = sample.work
            start_planning(work, False)
            for n, v in enumerate(value_vectors(rng, S)[:4]):
                work.progress[ROUNDS], work.v[:] = n, v
                with mode():
                    rank(work, v)
                    sweep(work, v)
                    least_values(work, work.everyone)
                most = [work.reward[i] + inner_lp(sample, i, v) for i in range(work.reward.size)]
                least = [-inner_lp(sample, i, -v) for i in range(work.reward.size)]
                size = LP * max(1.0, np.abs(v).max())
                np.testing.assert_allclose(work.ws.q, most, rtol=0, atol=size)
                np.testing.assert_allclose(pair_values(sample, v), most, rtol=0, atol=size)
                np.testing.assert_allclose(work.ws_least.q, least, rtol=0, atol=size)
                np.testing.assert_allclose(pair_values(sample, v, -1.0), least, rtol=0, atol=size)

    @pytest.mark.parametrize("S", [3, 30])
    def test_all_states_open_is_no_state_closed(self, S):
        """Flags alone change nothing: with and without them the values are the same."""
        rng = np.random.default_rng([2, S])
        for _ in range(6):
            plain = random_box(rng, S, ragged_ptr(rng, S, 3))
            sets = plain.work.sets
            flagged = sets._replace(flagged=rng.random(sets.rest.size) < 0.5, closed=np.zeros(S, dtype=bool))
            other = copy_of(plain._replace(work=plain.work._replace(sets=flagged)))
            for n, v in enumerate(value_vectors(rng, S)):
                for sample in (plain, other):
                    sample.work.progress[ROUNDS], sample.work.rows.lead[:] = n, -np.inf
                    rank(sample.work, v)
                    sweep(sample.work, v)
                atol = 1e-12 * max(1.0, np.abs(v).max())
                np.testing.assert_allclose(plain.work.ws.q, other.work.ws.q, rtol=0, atol=atol)


class TestWholePlans:
    @pytest.mark.parametrize("inner", [0, 6])
    @pytest.mark.parametrize("kind", HUBS)
    def test_the_bracket_holds_the_gain_of_the_vertices(self, kind, inner, mode):
        """By the multichain linear program (Puterman 1994, Sec. 9.3) on the MDP of all vertices."""
        for seed in range(5 if mode is interpreted else 15):
            rng = np.random.default_rng([3, seed])
            S = int(rng.integers(1, 5))
            sample = HUBS[kind](rng, S, ragged_ptr(rng, S, 3))
            gain = optimal_gain_lp(finite_model(sample))
            outcome, lo, hi = planned(sample, np.inf, 1e-6, mode, inner)
            assert outcome == CONVERGED
            assert hi - lo <= 1e-6
            assert lo - LP <= gain.min()
            assert gain.max() <= hi + LP

    @pytest.mark.parametrize("kind", POLYTOPES)
    def test_it_does_so_whatever_the_classes(self, kind):
        """Without a state that all rows lead to the bracket need not close, but it holds all gains."""
        closed = 0
        for seed in range(15):
            rng = np.random.default_rng([4, seed])
            S = int(rng.integers(2, 5))
            sample = KINDS[kind](rng, S, ragged_ptr(rng, S, 2))
            gain = optimal_gain_lp(finite_model(sample))
            outcome, lo, hi = planned(sample, np.inf, 1e-6, nullcontext)
            if outcome == CONVERGED:
                closed += 1
                assert lo - LP <= gain.min()
                assert gain.max() <= hi + LP
            else:
                work = sample.work
                step = work.u - work.rows.v
                assert step.min() - LP <= gain.min()
                assert gain.max() <= step.max() + LP
        assert closed > 4

    @pytest.mark.parametrize("c", [0.0, 0.2, 1.0])
    @pytest.mark.parametrize("kind", HUBS)
    def test_with_truncation_it_holds_that_of_the_operator(self, kind, c, mode):
        """T_c h = h + g·e by averaging, in plain numpy on all vertices."""
        for seed in range(3 if mode is interpreted else 8):
            rng = np.random.default_rng([5, seed])
            S = int(rng.integers(2, 5))
            sample = HUBS[kind](rng, S, ragged_ptr(rng, S, 3))
            model = finite_model(sample)
            gain, _ = fixed_point(model, c)
            outcome, lo, hi = planned(sample, c, 1e-6, mode)
            assert outcome == CONVERGED
            assert lo - 1e-9 <= gain <= hi + 1e-9
            step = span_bellman(model, sample.work.v, c) - sample.work.v
            assert (lo, hi) == pytest.approx((step.min(), step.max()), abs=1e-10)

    @pytest.mark.parametrize("kind", HUBS)
    def test_the_policy_attains_it(self, kind):
        """Restricted to the pairs that were chosen, the model has the same gain up to the bracket."""
        for seed in range(10):
            rng = np.random.default_rng([6, seed])
            sample = HUBS[kind](rng, 4, ragged_ptr(rng, 4, 3))
            model = finite_model(sample)
            _, lo, hi = planned(sample, np.inf, 1e-6, nullcontext)
            pairs, weight = np.empty(8, dtype=np.int64), np.empty(4)
            assert not choose(sample.work, np.inf, 1e-6 - (hi - lo), True, pairs, weight)
            played = model.available & (model.action == pairs[::2, None])
            gain = optimal_gain_lp(Finite(model.P, model.r, played, model.action))
            assert gain.min() >= lo - LP

    def test_one_compiled_planner_serves_all(self):
        """Boxes, balls and plain models, closed states, rows of one's own: all have the same types."""
        rng = np.random.default_rng(7)
        for random_model in KINDS.values():
            planned(random_model(rng, 3, ragged_ptr(rng, 3, 2)), np.inf, 1e-3, nullcontext, budget=5)
        assert len(improve._dispatcher.signatures) == 1

    def test_rows_of_ones_own_may_change_between_plans(self):
        """Their lengths are dealt anew, with as many entries in all; the second plan is that of a fresh work."""
        changed = 0
        for seed in range(8):
            rng = np.random.default_rng([8, seed])
            ptr = ragged_ptr(rng, 6, 3)
            sample = random_plain(rng, 6, ptr, hub=True)
            planned(sample, 1.0, 1e-7, nullcontext)
            sizes = np.diff(sample.work.m.succ_ptr)
            other = other_rows(rng, sample, rng.permutation(sizes))
            changed += (np.diff(other.work.m.succ_ptr) != sizes).any()
            fresh = copy_of(other)
            one, two = (planned(each, 1.0, 1e-7, nullcontext) for each in (other, fresh))
            assert one == two
            assert other.work.v.tobytes() == fresh.work.v.tobytes()
            assert one[0] == CONVERGED
            gain, _ = fixed_point(finite_model(other), 1.0)
            assert one[1] - 1e-9 <= gain <= one[2] + 1e-9
        assert changed > 4


def other_rows(rng, sample, sizes):
    """Write rows of other lengths to the work of a plain model, as its estimate does for the next plan."""
    k, S = sample.low.shape
    sets, low = sample.work.sets, np.zeros((k, S))
    sets.succ_ptr[1:] = np.cumsum(sizes)
    for i in range(k):
        who = np.union1d(rng.choice(np.arange(1, S), sizes[i] - 1, replace=False), [0])
        low[i, who] = rng.dirichlet(np.ones(sizes[i]))
        part = slice(sets.succ_ptr[i], sets.succ_ptr[i + 1])
        sets.succ[part], sets.low[part] = who, low[i, who]
    sample.work.ws.version[0] += 1
    return sample._replace(low=low, high=low)
