"""Two policies side by side, and the actions of a state: against dense linear algebra and exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from spanrl import MDP, BoundedMDP, Policy, compare, evaluate, make, solve
from spanrl.errors import InputError, ModelError, OptionError


@pytest.fixture(scope="module")
def random_mdp():
    """Return a model of 12 states named by tuples, with ragged actions."""
    rng = np.random.default_rng(5)
    available = rng.random((12, 4)) < 0.7
    available[:, 1] = True
    names = [(i, j) for i in range(3) for j in range(4)]
    actions = ["wait", "a", "b", "c"]
    P, r = rng.dirichlet(np.ones(12), size=(12, 4)), rng.uniform(-1, 2, (12, 4))
    options = {"available": available, "r_min": -1.0, "r_max": 2.0, "state_names": names, "action_names": actions}
    return MDP.from_dense(P, r, **options)


def dense_gain(mdp, policy):
    """Return the gain of a unichain policy from its stationary distribution."""
    P, r, _ = mdp.to_dense()
    chain, reward = np.einsum("sa,sat->st", policy.probs, P), (policy.probs * r).sum(axis=1)
    system = np.vstack((chain.T - np.eye(len(chain)), np.ones(len(chain))))
    mu = np.linalg.lstsq(system, np.append(np.zeros(len(chain)), 1.0), rcond=None)[0]
    return mu @ reward


def test_gains_and_states(random_mdp) -> None:
    best = solve(random_mdp, tol=1e-9).policy
    probs = best.probs.copy()
    probs[[2, 7]] = np.eye(4)[1]
    probs[9] = 0.5 * probs[9] + 0.5 * np.eye(4)[1]
    other = Policy(probs)
    found = compare(random_mdp, best, other)
    differ = [s for s in (2, 7, 9) if best.probs[s, 1] != 1.0]
    assert found.states.tolist() == differ
    assert len(differ) >= 2, "or nothing is tested"
    want = dense_gain(random_mdp, other) - dense_gain(random_mdp, best)
    np.testing.assert_allclose(found.difference, want, atol=1e-9)
    np.testing.assert_array_equal(found.first_value.gain, evaluate(random_mdp, best).gain)
    text = str(found).splitlines()
    assert text[1] == f"they differ in {len(differ)} of 12 states"
    assert text[3].startswith(str(random_mdp.state_names[differ[0]]))
    assert repr(found).startswith("<Comparison: gain ")


def test_a_policy_and_itself(random_mdp) -> None:
    policy = solve(random_mdp).policy
    found = compare(random_mdp, policy, policy)
    assert found.states.size == 0
    assert not found.difference.any()
    assert str(found).endswith("they differ in 0 of 12 states")
    assert "<table>" not in found._repr_html_()


def test_gains_that_differ_between_states() -> None:
    """Two closed states: one policy, two gains."""
    mdp = MDP.from_dense(np.eye(2)[:, None, :].repeat(2, axis=1), [[0.25, 0.5], [1.0, 0.0]])
    found = compare(mdp, Policy.deterministic([0, 0], 2), Policy.deterministic([1, 0], 2))
    assert found.difference.tolist() == [0.25, 0.0]
    assert "gain 0.25 … 1 and 0.5 … 1, second − first 0 … 0.25" in str(found)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("x", None, "compare: the first policy must be a Policy; got str"),
        (None, Policy([[1.0]]), r"compare: the second policy must have shape \(2, 2\) like the model; got \(1, 1\)"),
    ],
)
def test_bad_policies(first, second, words) -> None:
    mdp = make("two-state").mdp
    good = solve(mdp).policy
    with pytest.raises(OptionError, match=words):
        compare(mdp, first or good, second or good)


def test_policies_that_play_what_is_not_there() -> None:
    mdp = MDP.from_dense([[[1.0], [1.0]]], [[0.0, 1.0]], available=[[True, False]], state_names=["only"])
    words = "compare: the second policy in state 'only' plays an action that is not available there"
    with pytest.raises(InputError, match=words):
        compare(mdp, Policy([[1.0, 0.0]]), Policy([[0.0, 1.0]]))
    with pytest.raises(ModelError, match=r"compare: the model must be an MDP; got str\. Use make"):
        compare("two-state", Policy([[1.0]]), Policy([[1.0]]))


def test_values_of_actions(random_mdp) -> None:
    """r + p·h − g, from the dense arrays; what an action loses is what its value lacks."""
    solution = solve(random_mdp, tol=1e-10, ref_state=4)
    P, r, available = random_mdp.to_dense()
    q = r + P @ solution.bias - solution.gain
    for s, name in enumerate(random_mdp.state_names):
        found = solution.explain(name)
        order = [a for a in np.argsort(-q[s], kind="stable") if available[s, a]]
        assert found.actions == tuple(random_mdp.action_names[a] for a in order)
        np.testing.assert_allclose(found.value, q[s, order], atol=1e-9)
        np.testing.assert_allclose(found.loss, q[s, order[0]] - q[s, order], atol=1e-9)
        np.testing.assert_array_equal(found.reward, r[s, order])
        np.testing.assert_array_equal(found.probability, solution.policy.probs[s, order])
        assert found.loss[0] == 0.0
        assert found.value[0] == pytest.approx(found.bias, abs=1e-9)
        assert not found.truncated
    assert str(found).splitlines()[0] == f"State (2, 3) of bias {found.bias:.6g}; best {found.actions[0]}"


def test_truncated_states_say_so() -> None:
    """two-state, c = ¾: g = ¾ and h(1) = ¾ where the best action has 1 + ¾ − ¾ = 1 (exact fractions)."""
    solution = solve(make("two-state").mdp, span_bound=0.75, tol=1e-12)
    found = solution.explain("s1")
    assert found.truncated
    assert found.bias == pytest.approx(Fraction(3, 4), abs=1e-9)
    np.testing.assert_allclose(found.value, [1.0, -0.75], atol=1e-9)
    np.testing.assert_allclose(found.probability, [6 / 7, 1 / 7], atol=1e-9)
    said = "Truncated: the span bound holds the value at 0.75 instead of 1, by mixing the best action with the worst."
    assert said in str(found)
    assert said in found._repr_html_()
    greedy = solve(make("two-state").mdp, span_bound=0.75, policy="greedy").explain("s1")
    assert "and the policy alone does not reach it" in str(greedy)


def test_ties_lose_nothing() -> None:
    mdp = MDP.from_dense([[[1.0], [1.0], [1.0]]], [[0.1, 0.3, 0.3]])
    found = solve(mdp).explain(0)
    assert found.actions == (1, 2, 0)
    assert found.loss[:2].tolist() == [0.0, 0.0]
    assert found.loss[2] == pytest.approx(0.2)
    assert "best 1, 2" in str(found)


@pytest.mark.parametrize("sense", ["optimistic", "pessimistic"])
def test_bounded_models_take_the_model_that_was_solved_for(sense) -> None:
    """One state leads to two; the box gives either at most 0.8, at least 0.2."""
    low, high = np.full((2, 1, 2), 0.2), np.full((2, 1, 2), 0.8)
    bounded = BoundedMDP.from_dense(low, high, [[0.0], [1.0]], [[0.0], [1.0]])
    solution = solve(bounded, sense=sense, tol=1e-10)
    to_one = 0.8 if sense == "optimistic" else 0.2
    found = solution.explain(1)
    want = 1.0 + to_one * solution.bias[1] + (1 - to_one) * solution.bias[0] - solution.gain
    assert found.value[0] == pytest.approx(want, abs=1e-9)


def test_unknown_states(random_mdp) -> None:
    with pytest.raises(ModelError, match=r"no state is named \(9, 9\)"):
        solve(random_mdp).explain((9, 9))


def test_costs_are_compared_and_explained_as_costs(random_mdp) -> None:
    """The same model with costs 2 − r: values turn round, what an action loses does not."""
    P, r, available = random_mdp.to_dense()
    names = {"state_names": random_mdp.state_names, "action_names": random_mdp.action_names}
    costs = MDP.from_dense(P, 2.0 - r, available=available, r_min=0.0, r_max=3.0, costs=True, **names)
    ours, theirs = solve(random_mdp, tol=1e-10), solve(costs, tol=1e-10)
    for name in random_mdp.state_names:
        one, other = ours.explain(name), theirs.explain(name)
        assert other.actions == one.actions
        np.testing.assert_allclose(other.value, -one.value, atol=1e-8)
        np.testing.assert_allclose(other.loss, one.loss, atol=1e-8)
        np.testing.assert_allclose(other.reward, 2.0 - one.reward)
    assert str(other).splitlines()[1].split() == ["action", "played", "cost", "value", "loses"]
    lazy = Policy(np.eye(4)[np.ones(12, dtype=int)])
    found, mirrored = compare(costs, theirs.policy, lazy), compare(random_mdp, ours.policy, lazy)
    np.testing.assert_allclose(found.difference, -mirrored.difference, atol=1e-8)
    assert str(found).startswith("Comparison: average cost ")
