"""Checks of a planner against the general solver and operators."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from spanrl import evi, scopt, span_bellman, span_greedy
from spanrl.agents.episodes import DOUBLING, one_over_root
from spanrl.agents.planner import Planner, Start

ROUNDING = 1e-12


def new_planner(info, estimate):
    return Planner(info, estimate, DOUBLING, one_over_root)


def at(t, state=0, steps=0):
    """Return the start of an episode at step t."""
    return Start(t, state, steps, np.zeros(4, dtype=np.uint64))


def augmented(estimate, counts, t, info):
    return estimate.bounded(counts, t, info).augment()


def reference(bounded, c, tol=1e-9):
    return evi(bounded, tol=tol) if c == inf else scopt(bounded, c, tol=tol)


def assert_certified(plan, planner, bounded, c, tol):
    """Check the bracket at the planner's bias: it is that of T_c there, as wide as promised, and holds g⁺."""
    low, high = plan.gain_bounds
    scale = max(1.0, abs(bounded.r_min), abs(bounded.r_max), float(np.ptp(planner.bias)))
    assert 0 <= high - low <= tol
    step = span_bellman(bounded, planner.bias, c) - planner.bias
    assert (low, high) == pytest.approx((step.min(), step.max()), abs=ROUNDING * scale)
    exact = reference(bounded, c)
    assert low - ROUNDING * scale <= exact.gain_bounds[1]
    assert exact.gain_bounds[0] <= high + ROUNDING * scale
    assert plan.span == np.ptp(planner.bias)
    assert plan.span <= c * (1 + ROUNDING) + ROUNDING


def assert_is_the_rule(plan, planner, bounded, c, policy="mixture"):
    """Check pairs and weights against G_c v of the general operators."""
    rule = span_greedy(bounded, planner.bias, c, policy=policy)
    np.testing.assert_array_equal(plan.pairs[::2], rule.pair)
    mixed = plan.weight > 0
    np.testing.assert_array_equal(plan.pairs[1::2][mixed], rule.least_pair[mixed])
    np.testing.assert_allclose(plan.weight, np.where(rule.pair == rule.least_pair, 0.0, rule.weight), rtol=0, atol=1e-9)
    np.testing.assert_allclose(plan.policy(planner.info).probs, rule.policy.probs, rtol=0, atol=1e-9)
    assert plan.mixes == mixed.any()
