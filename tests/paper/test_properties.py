"""Hypothesis on the claims' instance functions: the same inequalities, on examples that shrink."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanrl.errors import ModelError
from spanrl.models.checks import immutable
from spanrl.paper import oracles_chains
from spanrl.paper.claims import constrained, evaluation, feasibility, guarantees, sets, span_operator, truncation
from spanrl.paper.claims.base import EXACT, LP_TOL
from spanrl.paper.instances import generator
from spanrl.paper.oracles import finite, span
from spanrl.paper.system import System
from strategies import balls, boxes, mdps, models, policies, span_bounds, vectors

REAL = System.real()
CASES = settings(deadline=None, derandomize=True, max_examples=50)
FEW = settings(CASES, max_examples=20)
PAIRS = [truncation.gaps_O2, truncation.gaps_O3, truncation.gaps_O4, truncation.gaps_O5]
OPERATORS = [span_operator.gaps_O6, span_operator.gaps_O7, span_operator.gaps_O8, span_operator.gaps_O9]


def assert_none_broken(gaps, tol=EXACT):
    """Assert that no excess is above the tolerance."""
    broken = {name: gap for name, gap in gaps.items() if not gap <= tol}
    assert not broken, broken


@CASES
@given(st.data())
def test_evaluation_equations(data):
    mdp = data.draw(mdps())
    assert_none_broken(evaluation.gaps_evaluation(REAL, mdp, data.draw(policies(mdp))))


@FEW
@given(mdps())
def test_span_of_the_optimal_bias_and_diameter(mdp):
    assert_none_broken(evaluation.gaps_diameter(REAL, mdp), LP_TOL)


@FEW
@given(st.floats(0.501, 0.999))
def test_two_state_optimum(c):
    assert_none_broken(constrained.gaps_L2(REAL, REAL.make("two-state").mdp, c), 1e-7)


@CASES
@given(st.data())
def test_perturbation_bound(data):
    mdp = data.draw(mdps(positive=True))
    assert_none_broken(constrained.gaps_L5(REAL, mdp, data.draw(policies(mdp)), data.draw(policies(mdp))))


@CASES
@given(vectors(4), span_bounds())
def test_truncation_is_the_projection(v, c):
    assert_none_broken(truncation.gaps_O1(REAL, v, c))
    assert truncation.gap_O1_lp(REAL, v, c) <= LP_TOL


@pytest.mark.parametrize("gaps", PAIRS, ids=lambda g: g.__name__)
@CASES
@given(vectors(4), vectors(4), span_bounds())
def test_truncation(gaps, u, v, c):
    assert_none_broken(gaps(REAL, u, v, c))


@pytest.mark.parametrize("gaps", OPERATORS, ids=lambda g: g.__name__)
@CASES
@given(st.data())
def test_span_operator(gaps, data):
    model = data.draw(models())
    u, v = data.draw(vectors(model.n_states)), data.draw(vectors(model.n_states))
    assert_none_broken(gaps(REAL, model, u, v, data.draw(span_bounds())))


@pytest.mark.parametrize(
    ("gaps", "tol"), [(feasibility.gaps_F1, LP_TOL), (feasibility.gaps_F2, EXACT)], ids=["F1", "F2"]
)
@CASES
@given(st.data())
def test_feasibility_and_mixture(gaps, tol, data):
    model = data.draw(models())
    assert_none_broken(gaps(REAL, model, data.draw(vectors(model.n_states)), data.draw(span_bounds())), tol)


@CASES
@given(st.data())
def test_inner_maximum(data):
    bounded = data.draw(boxes(max_states=5, max_actions=1) | balls(max_actions=1))
    assert_none_broken(sets.gaps_B1(REAL, bounded, data.draw(vectors(bounded.n_states))), LP_TOL)


@CASES
@given(st.data())
def test_augmentation(data):
    bounded = data.draw(boxes(max_states=3) | balls())
    assert_none_broken(sets.gaps_M1(REAL, bounded, data.draw(vectors(bounded.n_states)), data.draw(span_bounds())))


@CASES
@given(st.data())
def test_perturbation(data):
    bounded = data.draw(boxes(max_states=3))
    eta, state = data.draw(st.sampled_from([0.01, 0.125, 0.5])), data.draw(st.integers(0, bounded.n_states - 1))
    u, v = data.draw(vectors(bounded.n_states)), data.draw(vectors(bounded.n_states))
    if not sets.can_reach(bounded, eta, state):
        with pytest.raises(ModelError):
            REAL.perturb(bounded, eta, state)
        return
    assert_none_broken(sets.gaps_M2(REAL, bounded, eta, state, u, v))
    assert_none_broken(sets.gaps_M3(REAL, bounded, eta, state, 0.5))


@CASES
@given(st.data())
def test_gain_is_dominant_and_unique(data):
    mdp, c = data.draw(mdps(max_states=3, max_actions=2)), data.draw(st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]))
    best, _ = oracles_chains.constrained_optimum(finite(mdp), c, 4)
    assert_none_broken(guarantees.gaps_D1(REAL, mdp, c, best, generator("property")))


@CASES
@given(
    models(),
    st.sampled_from([0.0, 0.25, 1.0]),
    st.sampled_from([0.5, 0.01, 1e-6]),
    st.sampled_from(["mixture", "greedy"]),
)
def test_promises_at_the_stop(model, c, eps, policy):
    gaps, _, _ = guarantees.gaps_S1(REAL, model, c, eps, policy=policy)
    assert_none_broken(gaps)


@FEW
@given(mdps(max_states=3, max_actions=2, positive=True), st.sampled_from([0.125, 0.5, 1.0]))
def test_constrained_optimum(mdp, c):
    gaps = guarantees.gaps_S2(REAL, mdp, c, 8)
    assert_none_broken(gaps or {}, guarantees.SOLVED)


@CASES
@given(st.data())
def test_bracket_holds_at_any_vector(data):
    """min(T_c v − v) ≤ g⁺ ≤ max(T_c v − v) for any v: the certificate."""
    model, c = data.draw(models()), data.draw(st.sampled_from([0.0, 0.25, 1.0, 3.0]))
    v = data.draw(vectors(model.n_states))
    step = REAL.span_bellman(model, v, c) - v
    low, high = REAL.solve(model, span_bound=c, tol=1e-8).gain_bounds
    assert step.min() <= high + EXACT
    assert low <= step.max() + EXACT


@CASES
@given(models(), st.sampled_from([0.25, 1.0]), st.sampled_from([0.5, 2.0]))
def test_scaling_the_rewards_scales_gain_and_span(model, c, factor):
    """Rewards times λ and c times λ give g⁺ times λ."""
    names = ("r_low", "r_high") if hasattr(model, "r_low") else ("reward",)
    scaled = replace(
        model, r_min=model.r_min * factor, r_max=model.r_max * factor,
        **{name: immutable(getattr(model, name) * factor, np.float64) for name in names},
    )  # fmt: skip
    one, other = (REAL.solve(m, span_bound=bound, tol=1e-8) for m, bound in ((model, c), (scaled, c * factor)))
    assert other.gain == pytest.approx(factor * one.gain, abs=1e-7)
    assert span(other.bias) <= c * factor + EXACT
