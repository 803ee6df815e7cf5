"""evaluate, analyse and the diameter against dense linear algebra, closed forms and exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from planning_models import garnet, optimal_gains, random_mdp
from scipy.sparse import csc_array

from spanrl import MDP, Policy, analyse, evaluate, make, solve
from spanrl.errors import ModelError, OptionError, SpanrlError
from spanrl.planning import chain, direct, iterative
from spanrl.planning.diameter import times_to


def dense_gain_bias(P, r):
    """Return gain and bias by the limit matrix P*: the lazy chain (I + P)/2 has the same, and its powers converge."""
    n = r.size
    limit = (np.eye(n) + P) / 2
    for _ in range(40):
        limit = limit @ limit
        limit /= limit.sum(axis=1, keepdims=True)
    fundamental = np.linalg.inv(np.eye(n) - P + limit)
    return limit @ r, (fundamental - limit) @ r


def random_policy(rng, mdp):
    _, _, available = mdp.to_dense()
    weights = rng.random(available.shape) * available
    if rng.random() < 0.5:
        weights = (weights == weights.max(axis=1, keepdims=True)).astype(float)
    return Policy(weights / weights.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("factorised", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_evaluate_equals_dense_linear_algebra(seed, factorised, monkeypatch):
    if not factorised:
        monkeypatch.setattr(direct, "elimination_order", lambda P: None)
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, kind=rng.choice(["deterministic", "sparse", "dense", "cycle"]))
    policy = random_policy(rng, mdp)
    P, r, _ = mdp.to_dense()
    P_d = np.einsum("sa,sax->sx", policy.probs, P)
    gain, bias = dense_gain_bias(P_d, (policy.probs * r).sum(axis=1))
    result = evaluate(mdp, policy)
    np.testing.assert_allclose(result.gain, gain, atol=1e-8)
    np.testing.assert_allclose(result.bias, bias, atol=1e-7)
    assert result.span == pytest.approx(np.ptp(bias), abs=1e-7)


def test_evaluate_of_a_large_chain_satisfies_its_equations():
    rng = np.random.default_rng(1)
    mdp = garnet(rng, 5000, 2, 4)
    policy = random_policy(rng, mdp)
    result = evaluate(mdp, policy)
    P, r = chain_of(mdp, policy)
    np.testing.assert_allclose(P @ result.gain, result.gain, atol=1e-9)
    np.testing.assert_allclose(r - result.gain + P @ result.bias, result.bias, atol=1e-8)


def chain_of(mdp, policy):
    from spanrl.planning.operators import policy_chain

    return policy_chain(mdp, policy)


def test_evaluate_in_exact_fractions():
    """Two-state, x = 1, y = 1/7: gain and span are 3/4."""
    x, y = Fraction(1), Fraction(1, 7)
    gain = Fraction(1, 2) + x * (1 - 3 * y) / (2 * (x + y))
    rise = Fraction(1, 2) + (1 - 3 * y) / (2 * (x + y))
    result = evaluate(make("two-state").mdp, Policy([[1, 0], [1 / 7, 6 / 7]]))
    assert result.gain == pytest.approx(float(gain), abs=1e-12)
    assert result.bias[1] - result.bias[0] == pytest.approx(float(rise), abs=1e-12)


def test_evaluate_refuses_what_does_not_fit():
    mdp = make("three-state").mdp
    with pytest.raises(OptionError, match=r"must have shape \(3, 2\)"):
        evaluate(mdp, Policy([[1.0]]))
    with pytest.raises(ModelError, match=r"state 's0'.*action that is not available"):
        evaluate(mdp, Policy([[0, 1], [1, 0], [1, 0]]))
    with pytest.raises(ModelError, match="must be an MDP"):
        evaluate(make("three-state"), Policy([[1.0]]))


@pytest.mark.parametrize("leak", [0.0, 1e-3])
def test_evaluate_raises_where_iterations_do_not_get_there(leak, monkeypatch):
    """A walk among some states, and one that is left for a state that pays .5: residuals tell."""
    monkeypatch.setattr(direct, "elimination_order", lambda P: None)
    monkeypatch.setattr(chain, "DIRECT", 1)
    rng, S = np.random.default_rng(0), 40
    P = np.zeros((S + 1, 1, S + 1))
    walk = (np.eye(S)[np.maximum(np.arange(S) - 1, 0)] + np.eye(S)[np.minimum(np.arange(S) + 1, S - 1)]) / 2
    P[:S, 0, :S], P[:S, 0, S], P[S, 0, S] = walk * (1 - leak), leak, 1
    first = slice(0, S if leak == 0.0 else S + 1)
    mdp = MDP.from_dense(P[first, :, first], np.append(rng.random(S), 0.5)[first, None])
    policy = Policy(np.ones((mdp.n_states, 1)))
    gain, bias = dense_gain_bias(P[first, 0, first], mdp.reward) if leak == 0.0 else (np.full(S + 1, 0.5), None)
    result = evaluate(mdp, policy)
    np.testing.assert_allclose(result.gain, gain, atol=1e-9)
    assert leak or result.bias == pytest.approx(bias, abs=1e-9)
    monkeypatch.setattr(iterative, "_MOST_ITERATIONS", 1)
    with pytest.raises(SpanrlError, match=r"cannot be evaluated as accurately as promised: .*the bias to"):
        evaluate(mdp, policy)


def test_a_large_transient_block_is_left_slowly():
    """20 000 states that are left once in 10⁷ steps: the equations hold to the last digits, and take some iterations."""
    rng, S, leak = np.random.default_rng(0), 20_000, 1e-7
    succ = np.concatenate((rng.integers(0, S, (S, 4)), np.full((S, 1), S)), axis=1)
    prob = np.concatenate((rng.dirichlet(np.ones(4), S) * (1 - leak), np.full((S, 1), leak)), axis=1)
    ptr = np.append(np.arange(S + 1) * 5, 5 * S + 1)
    rewards = np.append(rng.random(S), 0.5)
    mdp = MDP.from_pairs(
        np.arange(S + 1), np.zeros(S + 1, dtype=int), ptr, np.append(succ, S), np.append(prob, 1.0), rewards
    )
    policy = Policy(np.ones((S + 1, 1)))
    result = evaluate(mdp, policy)
    assert (result.gain == 0.5).all()
    P, r = chain_of(mdp, policy)
    left = r - 0.5 + P @ result.bias - result.bias
    assert np.abs(left).max() <= 1e-14 * np.abs(result.bias).max()
    assert result.span > 1e3  # the mean reward is not .5 for 10⁷ steps


def test_evaluate_is_exact_on_nearly_separate_parts():
    """p(s, s) rounds to 1 here, so 1 − p(s, s) must be summed from the rest of the row."""
    mdp = MDP.from_dense([[[1.0, 3e-200]], [[1e-200, 1.0]]], [[0], [1]])
    assert evaluate(mdp, Policy([[1], [1]])).gain == pytest.approx(0.75, abs=1e-12)


def test_a_singular_system_is_named():
    with pytest.raises(SpanrlError, match="singular to working precision"):
        direct._factor(csc_array((2, 2)))


def slow_diameter(mdp):
    P, _, available = mdp.to_dense()
    largest = 0.0
    for target in range(mdp.n_states):
        tau = np.zeros(mdp.n_states)
        for _ in range(200_000):
            new = np.where(available, 1 + P @ tau, np.inf).min(axis=1)
            new[target] = 0
            if np.abs(new - tau).max() < 1e-11:
                break
            tau = new
        largest = max(largest, new.max())
    return largest


@pytest.mark.parametrize("seed", range(12))
def test_diameter_equals_plain_value_iteration(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, S=int(rng.integers(2, 8)), kind="dense")
    assert analyse(mdp).diameter == pytest.approx(slow_diameter(mdp), rel=1e-8)


@pytest.mark.parametrize("delta", [0.3, 0.1, 0.005, 1e-4])
def test_three_state_in_closed_form(delta):
    result = analyse(make("three-state", delta=delta).mdp)
    assert result.classification == "communicating"
    assert result.gain == pytest.approx(2 / 3, abs=1e-12)
    expected = np.array([-(2 + delta) / (3 * (1 - delta)), -1 / (1 - delta), 0])
    np.testing.assert_allclose(result.bias - result.bias[2], expected, atol=1e-10)
    assert result.span == pytest.approx(1 / (1 - delta), abs=1e-10)
    assert result.diameter == pytest.approx(1 / delta, rel=1e-8)
    assert result.policy.actions.tolist() == [0, 0, 1]


def test_three_state_without_the_bad_state_has_infinite_diameter():
    result = analyse(make("three-state", delta=0).mdp)
    assert result.classification == "weakly communicating"
    assert result.diameter == np.inf
    assert result.gain == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("variant", "gain", "span", "diameter"),
    [
        ("strehl", 0.222936, 5.01835, 22.51),
        ("osband", 0.428622, 6.3103, 14.722),
        ("ucrl3", 0.875003, 12.143, 13.878),
        ("statisticalrl", 0.916667, 8.1818, 8.926),
    ],
)
def test_riverswim_constants(variant, gain, span, diameter):
    result = analyse(make("riverswim", variant=variant).mdp)
    assert result.gain == pytest.approx(gain, abs=6e-7)
    assert result.span == pytest.approx(span, rel=1e-4)
    assert result.diameter == pytest.approx(diameter, rel=1e-4)


def test_knight_quest_numbers():
    result = analyse(make("knight-quest").mdp)
    assert (result.n_states, result.n_actions, result.max_support, result.classification) == (
        360,
        8,
        6,
        "communicating",
    )
    assert result.gain == pytest.approx(0.50, abs=0.005)
    assert result.span == pytest.approx(3.28, abs=0.01)
    assert result.diameter == pytest.approx(250, abs=2)


@pytest.mark.parametrize(
    ("P", "expected"),
    [
        ([[[0, 1]], [[1, 0]]], "communicating"),
        ([[[0, 1]], [[0, 1]]], "weakly communicating"),
        ([[[1, 0]], [[0, 1]]], "multichain"),
        ([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], "multichain"),  # state 0 may stay, though state 1 is closed
        ([[[0.5, 0.5], [0, 1]], [[0, 1], [0, 1]]], "weakly communicating"),  # state 0 is left whatever is done
        ([[[1.0]]], "communicating"),
    ],
)
def test_classification(P, expected):
    mdp = MDP.from_dense(P, np.zeros(np.shape(P)[:2]))
    result = analyse(mdp)
    assert result.classification == expected
    assert (result.diameter < np.inf) == (expected == "communicating")


@pytest.mark.parametrize("seed", range(25))
def test_gains_of_all_states_equal_the_linear_programme(seed):
    mdp = random_mdp(np.random.default_rng(1000 + seed))
    result = analyse(mdp, diameter=False)
    gains = optimal_gains(mdp)
    unit = mdp.r_max - mdp.r_min
    np.testing.assert_allclose(result.gains, gains, atol=1e-7 * unit)
    assert (result.gain is None) == (result.classification == "multichain")
    assert result.gain is None or np.ptp(gains) < 1e-7 * unit
    assert result.diameter is None
    np.testing.assert_allclose(evaluate(mdp, result.policy).gain, gains, atol=1e-7 * unit)
    assert (result.span is None) == (np.ptp(gains) > 1e-7 * unit)
    if result.gain is not None:
        P, r, available = mdp.to_dense()
        backup = np.where(available, r + P @ result.bias, -np.inf).max(axis=1)
        np.testing.assert_allclose(backup - result.bias, result.gain, atol=1e-7 * unit * max(1, result.span))


def test_large_models_leave_the_diameter_to_a_request():
    mdp = garnet(np.random.default_rng(2), 1200, 4, 5)
    result = analyse(mdp)
    assert result.diameter is None
    assert result.gain == pytest.approx(solve(mdp, tol=1e-9).gain, abs=1e-8)
    assert times_to(mdp, 0).max() > 1
    with pytest.raises(OptionError, match="diameter must be 'auto', True or False"):
        analyse(mdp, diameter="maybe")


def test_ill_conditioned_riverswim_is_exact():
    """A policy far from the optimum has a bias of 3⁵⁰: policy iteration must not start there."""
    result = analyse(make("riverswim", n_states=50).mdp)
    assert result.gain == pytest.approx(2 / 9, abs=1e-6)
    assert result.policy.actions.tolist() == [1] * 50
