"""The oracles against each other, closed forms and hand-computed numbers."""

from __future__ import annotations

import ast
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import spanrl.paper
from spanrl import MDP, BoundedMDP
from spanrl.paper import oracles, oracles_chains, oracles_sets
from spanrl.paper.instances import as_bounded, generator, random_ball, random_box, random_mdp, random_member, random_set
from spanrl.paper.oracles import finite

RNG = generator("tests of the oracles")
TWO = MDP.from_dense([[[0, 1], [1, 0]], [[1, 0], [0, 1]]], [[0, 0.5], [0, 1]])


def three_state(delta):
    """The paper's three-state MDP, written out once more."""
    P, r = np.zeros((3, 2, 3)), np.zeros((3, 2))
    P[0, 0] = [0, delta, 1 - delta]
    P[1, 0] = [1, 0, 0]
    P[2, 0], P[2, 1] = [1 - delta, delta, 0], [0, 0, 1]
    r[1, 0], r[2] = 1 / 3, 2 / 3
    return MDP.from_dense(P, r, available=[[True, False], [True, False], [True, True]])


@pytest.mark.parametrize("name", ["oracles.py", "oracles_sets.py", "oracles_chains.py", "instances.py"])
def test_oracles_import_nothing_of_kernels_or_planning(name):
    tree = ast.parse((Path(spanrl.paper.__file__).parent / name).read_text(encoding="utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    ours = {m for m in modules if m.startswith("spanrl")}
    assert ours <= {
        "spanrl.models.mdp", "spanrl.models.bounded", "spanrl.paper.oracles", "spanrl.paper.oracles_sets",
    }  # fmt: skip


def inner_maxima(bounded, v):
    """Inner maximum of each pair by LP, by the greedy rule, and over the vertices."""
    by_rule = oracles_sets.max_ball_greedy if bounded.is_ball else oracles_sets.max_box_greedy
    ends = oracles_sets.pair_ball if bounded.is_ball else oracles_sets.pair_box
    for i in range(bounded.n_pairs):
        p = by_rule(v, *ends(bounded, i))
        yield oracles_sets.pair_maximum_lp(bounded, i, v), p, oracles_sets.pair_vertices(bounded, i)


@pytest.mark.parametrize("draw", [random_box, random_ball])
def test_inner_maximum_three_ways(draw):
    for _ in range(20):
        bounded = draw(RNG)
        v = RNG.normal(size=bounded.n_states)
        for lp, p, vertices in inner_maxima(bounded, v):
            assert p.sum() == pytest.approx(1, abs=1e-12)
            assert p.min() >= 0
            assert p @ v == pytest.approx(lp, abs=1e-9)
            assert (vertices @ v).max() == pytest.approx(lp, abs=1e-9)
            assert np.allclose(vertices.sum(axis=1), 1)


def test_vertices_of_known_sets():
    simplex = oracles_sets.box_vertices(np.zeros(3), np.ones(3))
    assert sorted(map(tuple, simplex)) == sorted(map(tuple, np.eye(3)))
    assert sorted(map(tuple, oracles_sets.ball_vertices(np.ones(3) / 3, 2.0))) == sorted(map(tuple, np.eye(3)))
    point = np.array([0.25, 0.75])
    assert np.allclose(oracles_sets.box_vertices(point, point), [point])
    assert np.allclose(oracles_sets.ball_vertices(point, 0.0), [point])
    edge = oracles_sets.ball_vertices(point, 0.5)
    assert np.allclose(edge[np.argsort(edge[:, 0])], [[0, 1], [0.5, 0.5]])
    hexagon = oracles_sets.box_vertices(np.full(3, 0.1), np.full(3, 0.6))
    assert len(hexagon) == 6
    assert np.allclose(np.sort(hexagon, axis=1), [0.1, 0.3, 0.6])
    assert np.allclose(oracles_sets.box_vertices(np.ones(1), np.ones(1)), [[1.0]])
    assert np.allclose(oracles_sets.ball_vertices(np.ones(1), 0.3), [[1.0]])


def test_unlisted_successors_share_one_interval():
    bounded = BoundedMDP.from_pairs(
        [0, 1, 2], [0] * 3, [0, 1, 2, 3], [1, 1, 1], [0.2] * 3, [0.5] * 3, [0.4] * 3, [0] * 3, [1] * 3
    )
    low, high = oracles_sets.pair_box(bounded, 0)
    assert low.tolist() == [0, 0.2, 0]
    assert high.tolist() == [0.4, 0.5, 0.4]


def test_bounded_model_of_one_mdp_is_that_mdp():
    for _ in range(10):
        mdp = random_mdp(RNG)
        v = RNG.normal(size=mdp.n_states)
        for operator in (oracles.bellman, oracles.lowest):
            assert np.allclose(operator(finite(as_bounded(mdp)), v), operator(finite(mdp), v))


def test_sampled_members_lie_in_the_set():
    for _ in range(30):
        bounded = random_set(RNG)
        assert bounded.contains(random_member(RNG, bounded), tol=1e-9)


def test_span_operator_against_its_linear_programme():
    feasible = infeasible = 0
    for _ in range(60):
        model = finite(random_mdp(RNG))
        v, c = RNG.normal(size=model.n_states), RNG.uniform(0, 2)
        found = oracles.span_bellman_lp(model, v, c)
        possible = (oracles.lowest(model, v) <= oracles.bellman(model, v).min() + c).all()
        assert (found is not None) == possible
        feasible, infeasible = feasible + possible, infeasible + (not possible)
        if found is not None:
            assert np.allclose(found[0], oracles.span_bellman(model, v, c), atol=1e-8)
            P, r = oracles_chains.decision(model, found[1])
            assert np.allclose(r + P @ v, found[0], atol=1e-8)
    assert feasible > 5
    assert infeasible > 5


def test_truncation_is_the_nearest_vector_of_that_span():
    for _ in range(20):
        v, c = RNG.normal(size=5), RNG.uniform(0, 3)
        assert oracles.projection_distance_lp(v, c) == pytest.approx(oracles.span(oracles.truncate(v, c) - v), abs=1e-8)


def test_evaluation_satisfies_the_equations_and_equals_fractions():
    several = 0
    for _ in range(40):
        S = int(RNG.integers(1, 6))
        P = np.array([np.bincount(RNG.integers(0, S, size=2), minlength=S) for _ in range(S)]) / 2
        r = RNG.integers(0, 5, size=S) / 4
        gain, bias = oracles_chains.evaluate(P, r)
        exact_gain, exact_bias = oracles_chains.evaluate(oracles_chains.as_fractions(P), oracles_chains.as_fractions(r))
        assert all(isinstance(x, Fraction) for x in (*exact_gain, *exact_bias))
        assert np.allclose(gain, exact_gain.astype(float), atol=1e-10)
        assert np.allclose(bias, exact_bias.astype(float), atol=1e-10)
        F, rf = oracles_chains.as_fractions(P), oracles_chains.as_fractions(r)
        assert (F @ exact_gain == exact_gain).all()
        assert (rf + F @ exact_bias == exact_bias + exact_gain).all()
        assert (oracles_chains.stationary_matrix(F) @ exact_bias == 0).all()
        several += len(oracles_chains.recurrent_classes(P)) > 1
    assert several > 3


def test_stationary_matrix_is_the_cesaro_limit():
    for P in (np.eye(2)[::-1], np.array([[0.5, 0.25, 0.25], [0, 1, 0], [0, 0, 1]]), np.eye(3)):
        power, total = np.eye(len(P)), np.zeros(P.shape)
        for _ in range(4000):
            total, power = total + power, power @ P
        assert np.allclose(oracles_chains.stationary_matrix(P), total / 4000, atol=1e-3)


def test_deviation_matrix_by_hand():
    assert np.allclose(oracles_chains.deviation_matrix(np.full((2, 2), 0.5)), [[0.5, -0.5], [-0.5, 0.5]])
    swap = oracles_chains.as_fractions([[0, 1], [1, 0]])
    assert oracles_chains.deviation_matrix(swap)[0, 0] == Fraction(1, 4)


def best_gain(model):
    """Return g*(s) as the best gain of all deterministic decision rules."""
    rules = (oracles_chains.decision(model, probs) for probs in oracles_chains.deterministic_rules(model))
    return np.max([oracles_chains.evaluate(*rule)[0] for rule in rules], axis=0)


def test_gain_three_ways():
    for _ in range(25):
        model = finite(random_mdp(RNG, positive=True))
        lp = oracles_chains.optimal_gain_lp(model)
        assert np.allclose(lp, best_gain(model), atol=1e-8)
        assert oracles.fixed_point(model)[0] == pytest.approx(lp[0], abs=1e-8)


def test_gain_of_multichain_models():
    several = 0
    for _ in range(60):
        model = finite(random_mdp(RNG))
        gains = best_gain(model)
        assert np.allclose(oracles_chains.optimal_gain_lp(model), gains, atol=1e-8)
        several += np.ptp(gains) > 1e-6
    assert several > 0


def test_fixed_point_refuses_a_multichain_model():
    apart = finite(MDP.from_dense(np.eye(2)[:, None], [[0.0], [1.0]]))
    with pytest.raises(ArithmeticError, match="wide after"):
        oracles.fixed_point(apart, limit=100)
    assert oracles.fixed_point(apart, 0.0)[0] == pytest.approx(0.0)


@pytest.mark.parametrize("delta", [0.005, 0.1, 0.5])
def test_three_state_closed_forms(delta):
    model = finite(three_state(delta))
    g, h = oracles.fixed_point(model)
    assert g == pytest.approx(2 / 3, abs=1e-9)
    assert h - h[2] == pytest.approx([-(2 + delta) / (3 * (1 - delta)), -1 / (1 - delta), 0], abs=1e-7)
    assert oracles_chains.diameter(model) == pytest.approx(max(1 / delta, 2 / (1 - delta)), rel=1e-6)


def test_diameter_is_infinite_where_a_state_cannot_be_reached():
    assert oracles_chains.diameter(finite(three_state(0.0))) == np.inf
    assert oracles_chains.diameter(finite(TWO)) == pytest.approx(1.0)
    assert oracles_chains.diameter(finite(MDP.from_dense([[[1.0]]], [[0.0]]))) == 0.0


def test_hitting_times_against_enumeration():
    for _ in range(10):
        model = finite(random_mdp(RNG, S=3, A=2, positive=True))
        for target in range(3):
            best = np.full(3, np.inf)
            for probs in oracles_chains.deterministic_rules(model):
                P, _ = oracles_chains.decision(model, probs)
                keep = [s for s in range(3) if s != target]
                times = np.zeros(3)
                times[keep] = np.linalg.solve(np.eye(2) - P[np.ix_(keep, keep)], np.ones(2))
                best = np.minimum(best, times)
            assert np.allclose(oracles_chains.hitting_times(model, target), best, atol=1e-6)


def test_ergodic_coefficient_bounds_and_attains_the_contraction():
    for _ in range(20):
        mdp = random_mdp(RNG, positive=True)
        model = finite(mdp)
        gamma = oracles_chains.ergodic_coefficient(oracles_chains.all_rows(model))
        u, v = RNG.normal(size=mdp.n_states), RNG.normal(size=mdp.n_states)
        moved = oracles.span(oracles.bellman(model, u) - oracles.bellman(model, v))
        assert moved <= gamma * oracles.span(u - v) + 1e-12
    swap = oracles_chains.as_fractions([[0, 1], [1, 0]])
    assert oracles_chains.ergodic_coefficient(swap) == 1
    assert oracles_chains.ergodic_coefficient(np.ones((1, 1))) == 0


def test_policy_grid_counts_and_sums():
    rules = list(oracles_chains.policy_grid(finite(TWO), 4))
    assert len(rules) == 25
    assert np.allclose(np.sum(rules, axis=2), 1)
    three = finite(MDP.from_dense(np.ones((1, 3, 1)), [[0, 0.5, 1]]))
    assert len({tuple(rule[0]) for rule in oracles_chains.policy_grid(three, 5)}) == 21


@pytest.mark.parametrize("c", [0.5, 0.6, 0.75, 1.0])
def test_constrained_optimum_of_the_two_state_example(c):
    y = Fraction(1 - Fraction(c).limit_denominator(), 1 + Fraction(c).limit_denominator()).limit_denominator(1000)
    best, rule = oracles_chains.constrained_optimum(finite(TWO), c, 7 * 12)
    assert best <= c + 1e-9
    assert best == pytest.approx(c, abs=0.02)
    assert rule[1, 0] == pytest.approx(float(y), abs=0.02)


def test_constrained_optimum_knows_when_no_policy_keeps_the_bound():
    chain = finite(MDP.from_dense([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]]))
    assert oracles_chains.constrained_optimum(chain, 0.5, 3) == (-np.inf, None)
    assert oracles_chains.constrained_optimum(chain, 1.0, 3)[0] == pytest.approx(0.5)


def test_constrained_optimum_counts_multichain_policies_of_constant_gain():
    equal = MDP.from_dense([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0.5, 0.0], [0.5, 0.0]])
    best, rule = oracles_chains.constrained_optimum(finite(equal), 0.0, 2)
    assert best == pytest.approx(0.5)
    assert rule[:, 0].tolist() == [1, 1]


def test_span_lp_is_the_gain_lp_without_a_bound():
    for _ in range(10):
        model = finite(random_mdp(RNG, positive=True))
        assert oracles.span_lp_gain(model, 1e4) == pytest.approx(oracles_chains.optimal_gain_lp(model)[0], abs=1e-6)


def test_two_state_policies_in_fractions():
    model = finite(TWO)
    exact = replace(model, P=oracles_chains.as_fractions(model.P), r=oracles_chains.as_fractions(model.r))
    y = Fraction(1, 7)
    rule = np.array([[1, 0], [y, 1 - y]], dtype=object)
    gain, bias = oracles_chains.evaluate(*oracles_chains.decision(exact, rule))
    assert gain.tolist() == [Fraction(3, 4)] * 2
    assert bias[1] - bias[0] == Fraction(3, 4)


def test_rounding_dust_connects_nothing():
    assert oracles_chains.recurrent_classes(np.array([[1.0, 6e-17], [0.0, 1.0]])) == [[0], [1]]
    exact = np.array([[1 - Fraction(1, 10**20), Fraction(1, 10**20)], [0, 1]], dtype=object)
    assert oracles_chains.recurrent_classes(exact) == [[1]]
