"""Inner maxima over KL balls: against a convex solver, certified optimal in decimals on nasty instances, and what plans make of them."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.optimize import minimize
from workspace_kernels import least_values, rank, start_planning, sweep
from workspace_samples import copy_of, pair_values, ragged_ptr, random_kl, value_vectors

from spanrl.kernels.extended import CONVERGED, improve
from spanrl.kernels.jit import interpreted
from spanrl.kernels.kl import _PRECISELY, _ROUGHLY, KL_ROUNDING, kl_answer
from spanrl.kernels.plan_workspace import Goal

SOLVER = 1e-7  # what the convex solver is good for, in units of the span


def answer(p, w, radius, close=_ROUGHLY, kernel=kl_answer):
    """Return the maximum of qᵀw for a row that lists the states with p > 0, and the q that attains it."""
    succ, top = np.flatnonzero(p).astype(np.uint32), float(w.max())
    gap, scale, theta, left, share, moved = kernel(succ, p[succ], 0, succ.size, w, top, float(radius), close)
    q = np.zeros(p.size)
    q[succ] = share * p[succ] / (left + theta * scale * (top - w[succ]))
    q[int(np.argmax(w))] += moved
    return top - gap, q


def by_solver(p, w, radius):
    """Return max{qᵀw : KL(p, q) ≤ radius} by sequential quadratic programming.

    In y = ln q of the listed states: minimise Σ zⱼ e^{yⱼ} with the gaps z = max w − w, where Σ e^{yⱼ} ≤ 1, the best state has what is left,
    and Σ pⱼ(ln pⱼ − yⱼ) ≤ radius. This is a convex program.
    """
    seen, span = p > 0, np.ptp(w)
    if span == 0:
        return float(w.max())
    p, z = p[seen], (w.max() - w[seen]) / span
    constraints = (
        {"type": "ineq", "fun": lambda y: 1 - np.exp(y).sum(), "jac": lambda y: -np.exp(y)},
        {"type": "ineq", "fun": lambda y: radius - p @ (np.log(p) - y), "jac": lambda y: p},
    )
    found = minimize(
        lambda y: z @ np.exp(y), np.log(p), jac=lambda y: z * np.exp(y), constraints=constraints, method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-15},
    )  # fmt: skip
    return float(w.max() - span * found.fun)


def random_instance(rng):
    """Return (p, w, radius) as a learner meets them: counts, values with and without ties, an unseen best state or none."""
    S = int(rng.integers(2, 7))
    n = np.zeros(S)
    who = rng.choice(S, int(rng.integers(1, S + 1)), replace=False)
    n[who] = rng.multinomial(200, rng.dirichlet(np.full(who.size, 0.7))) + 1
    w = [rng.normal(size=S), rng.integers(0, 3, S).astype(float), 30.0 + rng.random(S)][int(rng.integers(3))]
    return n / n.sum(), w, float(10 ** rng.uniform(-3, 0.5))


class TestConvexSolver:
    def test_random_instances(self):
        rng = np.random.default_rng(1)
        unseen = 0
        for _ in range(60):
            p, w, radius = random_instance(rng)
            size = SOLVER * max(np.ptp(w), 1e-300)
            for sign in (1.0, -1.0):
                assert sign * answer(p, sign * w, radius)[0] == pytest.approx(
                    sign * by_solver(p, sign * w, radius), abs=size
                )
            unseen += p[np.argmax(w)] == 0
        assert 10 < unseen < 50

    def test_sweeps_and_smallest_values(self):
        rng = np.random.default_rng(2)
        for S in (1, 2, 5):
            sample = random_kl(rng, S, ragged_ptr(rng, S, 2))
            work = sample.work
            for v in value_vectors(rng, S)[:4]:
                start_planning(work, False)
                work.v[:] = v
                rank(work, v)
                sweep(work, v)
                least_values(work, work.everyone)
                for i in range(work.reward.size):
                    p, radius = sample.low[i], sample.high[i, 0]
                    if radius == np.inf:
                        most, least = v.max(), v.min()
                    elif radius in (0.0, 1e-5):  # too small for the solver; see the other classes
                        continue
                    else:
                        most, least = by_solver(p, v, radius), -by_solver(p, -v, radius)
                    assert work.ws.q[i] - work.reward[i] == pytest.approx(most, abs=SOLVER * max(1.0, np.ptp(v)))
                    assert work.ws_least.q[i] == pytest.approx(least, abs=SOLVER * max(1.0, np.ptp(v)))


def nasty_instances():
    """Yield (name, p, w, radius): all that makes a root hard to find."""
    radii = (1e-300, 1e-18, 1e-9, 1e-4, 0.1, 3.0, 1e5)
    rows = {
        "one point": [0, 1, 0], "best unseen": [0, 0.25, 0.75], "best seen": [0.25, 0.75, 0], "all seen": [0.2, 0.3, 0.5],
        "best rare": [2.0**-40, 1 - 2.0**-40, 0], "worst rare": [0.5, 0.5 - 2.0**-40, 2.0**-40], "next rare": [0, 2.0**-30, 1 - 2.0**-30],
    }  # fmt: skip
    values = {
        "apart": [1.0, 0.5, 0.0], "constant": [2.0, 2.0, 2.0], "tie above": [1.0, 1.0, 0.0], "tie below": [1.0, 0.0, 0.0],
        "nearly a tie": [1.0, 1.0 - 2.0**-50, 0.0], "far": [1e9 + 1, 1e9, 1e9 - 1], "wide": [1e9, 1e-9, -1e9], "tiny": [2e-200, 1e-200, 0],
    }  # fmt: skip
    for row, p in rows.items():
        for value, w in values.items():
            for radius in radii:
                yield f"{row}, {value}, {radius:g}", np.array(p, dtype=float), np.array(w), radius


def upper_bound(p, w, radius, q):
    """Return a bound on qᵀw over the ball, in decimals: ν − e^{−radius} Π (ν − w)^p for any ν ≥ max w, by the inequality of the means.

    The least of some: the q found tells ν, as (ν − wₖ)/(ν − wᵢ) = qᵢpₖ/(qₖpᵢ), up to rounding.
    """
    seen = np.flatnonzero(p)
    p_, w_, q_ = ({i: Decimal(float(x[i])) for i in seen} for x in (p, w, q))
    top = Decimal(float(w.max()))
    if min(w_.values()) == top:
        return top
    mean = sum(p_[i] * (top - w_[i]) for i in seen)
    points = [top, *(top + mean * Decimal(2) ** e for e in range(-60, 61, 12))]
    for i in seen:
        for k in seen:
            if w_[i] > w_[k] and q_[k] > 0 and q_[i] * p_[k] > q_[k] * p_[i]:
                ratio = q_[i] * p_[k] / (q_[k] * p_[i])
                points.append(max(top, w_[i] + (w_[i] - w_[k]) / (ratio - 1)))
    return min(_bound(nu, p_, w_, radius) for nu in points)


def _bound(nu, p, w, radius):
    if nu in w.values():
        return nu
    return nu - (sum(p[i] * (nu - w[i]).ln() for i in p) - Decimal(radius)).exp()


class TestNastyInstances:
    def test_are_certified(self):
        """The q found is a distribution in the ball worth the value found, and nothing in the ball is worth more: both in decimals."""
        with localcontext() as context:
            context.prec = 50
            for name, p, w, radius in nasty_instances():
                value, _ = answer(p, w, radius)
                precise, q = answer(p, w, radius, _PRECISELY)
                seen, room = p > 0, KL_ROUNDING * max(np.abs(w).max(), np.ptp(w))
                assert value == pytest.approx(precise, abs=room), name
                assert (q >= 0).all(), name
                assert q.sum() == pytest.approx(1.0, abs=4e-15), name
                if radius < 30:
                    pairs = [(Decimal(a), Decimal(b)) for a, b in zip(p[seen].tolist(), q[seen].tolist(), strict=True)]
                    assert float(sum(a * (a / b).ln() for a, b in pairs)) <= radius * (1 + 1e-9) + 1e-15, name
                worth = sum(Decimal(a) * Decimal(x) for a, x in zip(q.tolist(), w.tolist(), strict=True))
                assert float(worth - Decimal(value)) >= -2 * room, name
                assert abs(float(upper_bound(p, w, radius, q) - Decimal(value))) <= 2 * room, name

    def test_interpreted_equals_compiled(self):
        for name, p, w, radius in nasty_instances():
            for close in (_ROUGHLY, _PRECISELY):
                value, q = answer(p, w, radius, close)
                with interpreted():
                    other, q_other = answer(p, w, radius, close)
                assert (value, q.tobytes()) == (other, q_other.tobytes()), name

    def test_one_successor_and_two_by_hand(self):
        """From one state mass 1 − e^{−ε} leaves for a better one; of two, q₁ solves kl(p₁, q₁) = ε."""
        value, q = answer(np.array([0.0, 1.0]), np.array([5.0, 1.0]), 0.25)
        assert value == pytest.approx(5 - 4 * np.exp(-0.25), abs=1e-14)
        assert q == pytest.approx([1 - np.exp(-0.25), np.exp(-0.25)], abs=1e-15)
        q_1 = (1 + np.sqrt(1 - np.exp(-0.2))) / 2  # −½ ln(4 q₁(1 − q₁)) = 0.1
        value, q = answer(np.array([0.5, 0.5]), np.array([3.0, -1.0]), 0.1, _PRECISELY)
        assert value == pytest.approx(-1 + 4 * q_1, abs=1e-14)
        assert q == pytest.approx([q_1, 1 - q_1], abs=1e-13)

    def test_radius_0_and_infinity(self):
        p, w = np.array([0.25, 0.75, 0.0]), np.array([1.0, 2.0, 4.0])
        assert answer(p, w, 0.0) == (1.75, pytest.approx(p))
        assert answer(p, w, np.inf) == (4.0, pytest.approx([0.0, 0.0, 1.0]))
        assert answer(p, -w, np.inf) == (-1.0, pytest.approx([1.0, 0.0, 0.0], abs=1e-12))
        assert answer(np.zeros(3), w, np.inf)[0] == 4.0

    def test_a_constant_changes_nothing_else(self):
        """Where all listed successors are as good as any, the centre stays."""
        assert answer(np.array([0.5, 0.5, 0.0]), np.array([1.0, 1.0, 0.0]), 0.3)[1].tolist() == [0.5, 0.5, 0.0]


class TestOperator:
    def test_monotone_equivariant_and_not_expansive(self):
        rng = np.random.default_rng(3)
        for S in (1, 2, 9, 40):
            sample = random_kl(rng, S, ragged_ptr(rng, S, 3))
            for v in value_vectors(rng, S):
                base, up = swept(sample, v), rng.random(S)
                size = 1e-13 * max(1.0, np.abs(v).max())
                assert (swept(sample, v + up) >= base - size).all()
                assert (swept(sample, v + up) <= base + up.max() + size).all()
                np.testing.assert_allclose(swept(sample, v + 7.0), base + 7.0, rtol=0, atol=1e-12 + size)
                other = rng.normal(size=S)
                assert np.abs(swept(sample, other) - base).max() <= np.abs(other - v).max() + size

    def test_grows_with_the_radius(self):
        rng = np.random.default_rng(4)
        for _ in range(50):
            p, w, _ = random_instance(rng)
            values = [answer(p, w, radius)[0] for radius in np.geomspace(1e-9, 100.0, 60)]
            assert (np.diff(values) >= -1e-14 * max(1.0, np.abs(w).max())).all()
            assert p @ w - 1e-13 * np.abs(w).max() <= values[0]
            assert values[-1] <= w.max()


def swept(sample, v):
    """Return the value of every pair at v."""
    work = sample.work
    start_planning(work, False)
    rank(work, v)
    sweep(work, v)
    return work.ws.q.copy()


class TestPlans:
    @pytest.mark.parametrize("c", [0.2, 1.0, np.inf])
    def test_brackets_with_and_without_frozen_sweeps(self, c):
        """Each is [min, max](T_c v − v) for the operator in plain numpy, so that it holds the gain; both hold the same."""
        for seed in range(4):
            rng = np.random.default_rng([5, seed])
            sample = random_kl(rng, 4, ragged_ptr(rng, 4, 3), hub=True)
            ptr, brackets = sample.work.m.pair_ptr, []
            for inner in (0, 6):
                work = copy_of(sample).work
                start_planning(work, False)
                outcome, lo, hi = improve(work, Goal(float(c), np.inf, inner, True, 2000), 1e-8)
                assert outcome == CONVERGED
                u = np.maximum.reduceat(pair_values(sample, work.v), ptr[:-1])
                step = np.minimum(u, u.min() + c) - work.v
                assert (lo, hi) == pytest.approx((step.min(), step.max()), abs=1e-12)
                brackets.append((lo, hi))
            assert brackets[0][0] <= brackets[1][1]
            assert brackets[1][0] <= brackets[0][1]
