"""The planner of the learners against the general solver on the checked, augmented model of the same set, and against the oracles."""

from __future__ import annotations

from math import inf, log, sqrt

import numpy as np
import pytest
from planner_samples import ROUNDING, assert_certified, assert_is_the_rule, at, augmented, new_planner

from experience import random_counts, random_info
from spanrl import Policy, ProblemInfo, scopt, span_bellman, span_greedy
from spanrl.agents.episodes import UNLIMITED
from spanrl.confidence.bernstein import BernsteinBox
from spanrl.confidence.hoeffding import HoeffdingBall
from spanrl.models.counts import Counts
from spanrl.paper import oracles

ESTIMATES = {"box": BernsteinBox(), "narrow box": BernsteinBox(0.05, 0.05, 0.05), "ball": HoeffdingBall()}
BOUNDS = [0.0, 0.3, 2.0, inf]
"""In units of the range of the rewards."""


def problem(seed, S=6, A=3, most=10**6, t=10**6):
    """Return (info, counts, t), with rewards in three ranges; every fourth has pairs that were never seen."""
    rng = np.random.default_rng(seed)
    low, high = ((0.0, 1.0), (-2.0, 3.0), (0.5, 0.625))[seed % 3]
    info = random_info(rng, S, A, r_min=low, r_max=high)
    return info, random_counts(rng, info, most, least=most // 100, unseen=0.2 if seed % 4 == 3 else 0.0), t


class TestPlan:
    @pytest.mark.parametrize("c", BOUNDS)
    @pytest.mark.parametrize("kind", ESTIMATES)
    def test_equals_the_general_solver(self, kind, c):
        for seed in range(8):
            info, counts, t = problem(seed)
            planner, bound = new_planner(info, ESTIMATES[kind]), c * info.size
            plan = planner.plan(counts, at(t), span_bound=bound, mixture=True, from_bias=False)
            bounded = augmented(ESTIMATES[kind], counts, t, info)
            assert_certified(plan, planner, bounded, bound, info.size / sqrt(t))
            assert_is_the_rule(plan, planner, bounded, bound)
            assert plan.allowed.tolist() == plan.left.tolist() == np.maximum(counts.n[plan.pairs], 1).tolist()
            assert plan.steps == UNLIMITED

    def test_some_of_these_plans_mix_and_are_not_trivial(self):
        """Otherwise the comparisons say nothing."""
        plans = []
        for seed in range(8):
            info, counts, t = problem(seed)
            planner = new_planner(info, ESTIMATES["narrow box"])
            plans.append(planner.plan(counts, at(t), span_bound=0.3 * info.size, mixture=True, from_bias=False))
            if seed % 4 != 3:
                assert plans[-1].gain_bounds[1] < info.r_max - 0.01 * info.size
        assert sum(plan.mixes for plan in plans) >= 4
        assert any(((plan.weight > 0) & (plan.weight < 1)).any() for plan in plans)

    @pytest.mark.parametrize("c", [0.3, inf])
    @pytest.mark.parametrize("kind", ESTIMATES)
    def test_warm_starts_keep_the_certificate(self, kind, c):
        """One planner over growing counts, as a learner has it; also over many more states than it has seen."""
        rng = np.random.default_rng(5)
        info = random_info(rng, 40, 3)
        planner = new_planner(info, ESTIMATES[kind])
        for t in (1, 10, 10**3, 10**5, 10**6):
            counts = random_counts(rng, info, max(2, t))
            plan = planner.plan(counts, at(t), span_bound=c, mixture=True, from_bias=True)
            bounded = augmented(ESTIMATES[kind], counts, t, info)
            assert_certified(plan, planner, bounded, c, info.size / sqrt(t))
            assert_is_the_rule(plan, planner, bounded, c)

    @pytest.mark.parametrize("kind", ESTIMATES)
    def test_without_a_warm_start_nothing_is_remembered(self, kind):
        info, counts, t = problem(3)
        used, fresh = (new_planner(info, ESTIMATES[kind]) for _ in range(2))
        for seed in (1, 5):
            used.plan(
                random_counts(np.random.default_rng(seed), info, 10**4),
                at(500),
                span_bound=1.0,
                mixture=True,
                from_bias=True,
            )
        one, other = (p.plan(counts, at(t), span_bound=0.3, mixture=True, from_bias=False) for p in (used, fresh))
        assert one.gain_bounds == other.gain_bounds
        assert one.sweeps == other.sweeps
        assert used.bias.tobytes() == fresh.bias.tobytes()
        assert one.pairs.tobytes() == other.pairs.tobytes()
        assert one.weight.tobytes() == other.weight.tobytes()

    def test_greedy_puts_no_weight_on_the_minimal_action(self):
        info, counts, t = problem(2)
        planner = new_planner(info, ESTIMATES["narrow box"])
        plan = planner.plan(counts, at(t), span_bound=0.3, mixture=False, from_bias=False)
        bounded = augmented(ESTIMATES["narrow box"], counts, t, info)
        assert_certified(plan, planner, bounded, 0.3, info.size / sqrt(t))
        assert_is_the_rule(plan, planner, bounded, 0.3, policy="greedy")
        assert not plan.mixes
        assert not plan.weight.any()

    @pytest.mark.parametrize("power", [10, -10, -40])
    def test_scaling_the_rewards_changes_no_decision(self, power):
        """By a power of two every operation scales exactly."""
        scale = 2.0**power
        for seed in range(8):
            info, counts, t = problem(seed)
            small = ProblemInfo(6, 3, r_min=info.r_min * scale, r_max=info.r_max * scale, available=info.available)
            few = Counts(
                counts.n, counts.r_mean * scale, counts.r_sq * scale**2, counts.succ_ptr, counts.succ, counts.times
            )
            for c in (0.3 * info.size, inf):
                one = new_planner(info, ESTIMATES["narrow box"]).plan(
                    counts, at(t), span_bound=c, mixture=True, from_bias=True
                )
                other = new_planner(small, ESTIMATES["narrow box"]).plan(
                    few, at(t), span_bound=c * scale, mixture=True, from_bias=True
                )
                np.testing.assert_array_equal(one.pairs, other.pairs)
                np.testing.assert_array_equal(one.weight, other.weight)
                assert (one.span * scale, one.sweeps) == (other.span, other.sweeps)

    @pytest.mark.parametrize("kind", ESTIMATES)
    @pytest.mark.parametrize("c", BOUNDS)
    def test_nothing_seen(self, kind, c):
        """Everything is possible: the gain is r_max, and the lowest actions are played."""
        info = ProblemInfo(3, 2, available=[[True, True], [False, True], [True, False]], r_min=-1.0, r_max=2.0)
        planner = new_planner(info, ESTIMATES[kind])
        plan = planner.plan(Counts.empty(info.n_pairs), at(1), span_bound=c, mixture=True, from_bias=True)
        assert plan.gain_bounds == pytest.approx((2.0, 2.0), abs=ROUNDING)
        assert plan.span == 0.0
        assert plan.policy(info) == Policy.deterministic([0, 1, 0], n_actions=2)

    def test_one_state(self):
        info = ProblemInfo(1, 2)
        counts = random_counts(np.random.default_rng(0), info, 1000, unseen=0.0)
        planner = new_planner(info, ESTIMATES["box"])
        plan = planner.plan(counts, at(10**4), span_bound=0.0, mixture=True, from_bias=False)
        bounded = augmented(ESTIMATES["box"], counts, 10**4, info)
        assert plan.gain_bounds == pytest.approx([bounded.r_high.max()] * 2, abs=ROUNDING)

    @pytest.mark.parametrize("kind", ESTIMATES)
    @pytest.mark.parametrize("c", [0.0, 0.3, 2.0])
    def test_equals_the_oracle(self, kind, c):
        """All vertices of the sets as actions, plain averaging: nothing of our kernels."""
        for seed in range(3):
            info, counts, t = problem(seed, S=3, A=2)
            plan = new_planner(info, ESTIMATES[kind]).plan(counts, at(t), span_bound=c, mixture=True, from_bias=False)
            gain, _ = oracles.fixed_point(oracles.finite(augmented(ESTIMATES[kind], counts, t, info)), c, tol=1e-7)
            assert plan.gain_bounds[0] - 1e-7 <= gain <= plan.gain_bounds[1] + 1e-7

    @pytest.mark.parametrize("c", [10.0, inf])
    def test_the_budget_between_two_looks_changes_nothing(self, c, monkeypatch):
        info, counts, t = problem(4, S=12, t=10**8)
        plans = []
        for budget in (1, 3, None):
            planner = new_planner(info, ESTIMATES["narrow box"])
            if budget is not None:
                monkeypatch.setattr(planner, "_budget", budget)
            plans.append(planner.plan(counts, at(t), span_bound=c, mixture=True, from_bias=False))
        assert plans[0].sweeps > 3
        for plan in plans[1:]:
            assert plan.gain_bounds == plans[0].gain_bounds
            assert plan.sweeps == plans[0].sweeps
            assert plan.weight.tobytes() == plans[0].weight.tobytes()


class TestBestOfBoth:
    def test_keeps_extended_value_iteration_while_the_span_allows_it(self):
        kept = 0
        for seed in range(10):
            info, counts, t = problem(seed, t=10**4, most=10**4)
            both, plain, bound = (new_planner(info, ESTIMATES["narrow box"]) for _ in range(3))
            c = 0.6 * info.size
            plan = both.plan(counts, at(t), span_bound=c, mixture=True, from_bias=True, plain=True)
            bounded = augmented(ESTIMATES["narrow box"], counts, t, info)
            if widest_iterate(bounded, info.size / sqrt(t)) <= c:
                kept += 1
                other = plain.plan(counts, at(t), span_bound=inf, mixture=True, from_bias=False)
                assert not plan.mixes
                assert_certified(plan, both, bounded, inf, info.size / sqrt(t))
                assert plan.gain_bounds[0] <= other.gain_bounds[1]
                assert other.gain_bounds[0] <= plan.gain_bounds[1]
                assert plan.span <= c
            else:
                other = bound.plan(counts, at(t), span_bound=c, mixture=True, from_bias=True)  # its bias is 0 still
                assert plan.gain_bounds == other.gain_bounds
                assert plan.pairs.tobytes() == other.pairs.tobytes()
                assert plan.weight.tobytes() == other.weight.tobytes()
        assert 0 < kept < 10, "both cases occur"


def widest_iterate(bounded, tol):
    """Return the largest span of an iterate of extended value iteration from 0, up to its stop."""
    v, widest = np.zeros(bounded.n_states), 0.0
    while True:
        u = span_bellman(bounded, v, inf)
        if np.ptp(u - v) <= tol:
            return widest
        v = u - u[0]
        widest = max(widest, float(np.ptp(v)))


class TestPerturbed:
    ESTIMATE = BernsteinBox(0.05, 0.02, 0.02)

    @pytest.mark.parametrize("c", [0.3, 2.0])
    def test_is_the_theorem(self, c):
        for seed in range(5):
            info, counts, t = problem(seed, most=3000, t=3000)
            planner = new_planner(info, self.ESTIMATE)
            plan = planner.plan_perturbed(counts, at(t), span_bound=c, mixture=True)
            eta = eta_by_hand(info, counts, t, c, self.ESTIMATE)
            bounded = augmented(self.ESTIMATE, counts, t, info)
            perturbed = bounded.perturb(eta, 0)
            exact, plain = scopt(perturbed, c, tol=1e-9), scopt(bounded, c, tol=1e-9)
            low, high = plan.gain_bounds
            assert high - low <= info.size / sqrt(t)
            assert low - 1e-9 <= exact.gain <= high + 1e-9
            assert plain.gain - eta * c - 1e-9 <= exact.gain <= plain.gain + 1e-9
            assert plan.span <= c * (1 + ROUNDING)
            rule = span_greedy(perturbed, planner.bias, c)
            np.testing.assert_allclose(plan.policy(info).probs, rule.policy.probs, rtol=0, atol=1e-9)

    def test_the_stopping_rule_of_the_theorem_takes_longer(self):
        info, counts, t = problem(1, most=3000, t=3000)
        planner = new_planner(info, self.ESTIMATE)
        plan = planner.plan_perturbed(counts, at(t), span_bound=0.3, mixture=True)
        eta = eta_by_hand(info, counts, t, 0.3, self.ESTIMATE)
        perturbed = augmented(self.ESTIMATE, counts, t, info).perturb(eta, 0)
        wanted = scopt(perturbed, 0.3, tol=info.size / sqrt(t), contraction=1 - eta)
        assert plan.sweeps == wanted.sweeps
        assert plan.sweeps > 10 * planner.plan(counts, at(t), span_bound=0.3, mixture=True, from_bias=False).sweeps

    @pytest.mark.parametrize("c", [0.0, 0.3, 50.0])
    def test_nothing_seen(self, c):
        info = ProblemInfo(3, 2)
        plan = new_planner(info, BernsteinBox()).plan_perturbed(Counts.empty(6), at(1), span_bound=c, mixture=True)
        assert plan.gain_bounds == pytest.approx((1.0, 1.0), abs=ROUNDING)


def eta_by_hand(info, counts, t, c, estimate):
    """Return η = min{1, (r_max − r_min)/(c t), min β_p(s, a, s̄)} with s̄ = 0."""
    b = log(2 * info.n_states * info.max_actions * t / estimate.delta)
    radii = []
    for i in range(info.n_pairs):
        part = slice(counts.succ_ptr[i], counts.succ_ptr[i + 1])
        n = int(counts.n[i])
        p = dict(zip(counts.succ[part].tolist(), counts.times[part].tolist(), strict=True)).get(0, 0) / max(1, n)
        radii.append(
            sqrt(14 * estimate.p_scale * p * (1 - p) * b / max(1, n)) + 49 / 3 * estimate.p_scale * b / max(1, n - 1)
        )
    return min(1.0, info.size / (c * t), *radii)
