"""Leaving out actions that cannot be best changes no bit; longer steps keep the certificate."""

import numpy as np
import pytest
from planning_models import garnet, optimal_gains, random_mdp
from test_planning_threads import boxed, models

from spanrl import MDP, Policy, evaluate, evi, make, scopt, solve
from spanrl.errors import MultichainError
from spanrl.kernels.extract import best_pairs, least_stay
from spanrl.planning import shortlist
from spanrl.planning.problem import prepare


@pytest.mark.parametrize("sense", ["optimistic", "pessimistic"])
@pytest.mark.parametrize("kind", ["plain", "box", "ball"])
def test_contenders_have_the_same_values_within_their_reach(kind, sense):
    rng = np.random.default_rng(5)
    problem = prepare(models()[kind], sense)
    v = rng.random(problem.n_states)
    for reach in (0.0, 0.05, 0.3):
        fewer = problem.contenders(v, reach, problem.n_pairs)
        assert problem.n_states <= fewer.n_pairs < problem.n_pairs
        for _ in range(20):
            near = v + reach * rng.random(problem.n_states) + rng.normal()
            assert fewer.backup(near).tobytes() == problem.backup(near).tobytes()
    assert problem.contenders(v, 0.3, fewer.n_pairs - 1) is None


def test_contenders_are_all_pairs_within_reach_of_the_best():
    problem = prepare(models()["plain"])
    v = np.random.default_rng(6).random(problem.n_states)
    q = problem.values(v).reshape(-1, 3)
    fewer = problem.contenders(v, 0.1, problem.n_pairs)
    np.testing.assert_array_equal(np.diff(fewer.arrays.pair_ptr), (q >= q.max(axis=1, keepdims=True) - 0.1).sum(axis=1))


@pytest.mark.parametrize("span_bound", [np.inf, 0.3])
@pytest.mark.parametrize("kind", ["plain", "box", "ball", "knight-quest"])
def test_a_shorter_list_of_actions_changes_no_bit(kind, span_bound, monkeypatch):
    model = make(kind).mdp if kind == "knight-quest" else models()[kind]
    lists = []
    original = shortlist.Shortlist.update

    def spy(self, *args):
        original(self, *args)
        lists.append(self.problem.n_pairs)

    monkeypatch.setattr(shortlist.Shortlist, "update", spy)
    fast = scopt(model, span_bound, method="value-iteration")
    if kind != "knight-quest" and fast.sweeps > 12:
        assert min(lists) < 0.7 * model.n_pairs
    monkeypatch.setattr(shortlist, "_FIRST", 10**9)
    slow = scopt(model, span_bound, method="value-iteration")
    assert fast.bias.tobytes() == slow.bias.tobytes()
    assert (fast.gain_bounds, fast.sweeps, fast.policy) == (slow.gain_bounds, slow.sweeps, slow.policy)


def test_a_list_that_v_outruns_is_given_up(monkeypatch):
    """With a reach far too short the list must be made anew again and again, and the bits stay."""
    model = models()["plain"]
    expected = solve(model, method="value-iteration")
    resets = []
    original = shortlist.Shortlist.update

    def spy(self, *args):
        resets.append(self.left < 0)
        original(self, *args)

    monkeypatch.setattr(shortlist.Shortlist, "update", spy)
    monkeypatch.setattr(shortlist, "_SAFETY", 0.05)
    got = solve(model, method="value-iteration")
    assert sum(resets) > 1
    assert (got.gain_bounds, got.sweeps) == (expected.gain_bounds, expected.sweeps)
    assert got.bias.tobytes() == expected.bias.tobytes()


def lazy(mdp, stay):
    """Return the model that keeps its state with probability ``stay`` and otherwise does as before: gains (1 − stay)·r + stay·r."""
    P, r, available = mdp.to_dense()
    S = mdp.n_states
    return MDP.from_dense(
        (1 - stay) * P + stay * np.eye(S)[:, None, :], r, available=available, r_min=mdp.r_min, r_max=mdp.r_max
    )


@pytest.mark.parametrize("seed", range(25))
def test_longer_steps_agree_with_the_linear_programme(seed):
    """Also where the model without its self-loops is periodic: cycles are among the models."""
    rng = np.random.default_rng(seed)
    mdp = lazy(random_mdp(rng, kind=rng.choice(["cycle", "dense", "sparse"])), float(rng.choice([0.8, 0.9, 0.999])))
    gains = optimal_gains(mdp)
    if np.ptp(gains) > 1e-7:
        with pytest.raises(MultichainError, match="gain is not constant"):
            solve(mdp)
        return
    low, high = solve(mdp).gain_bounds
    assert high - low <= 1e-6
    assert low - 1e-8 <= gains[0] <= high + 1e-8


def test_longer_steps_take_the_sweeps_of_the_model_without_its_self_loops():
    fast = garnet(np.random.default_rng(2), 300, 4, 5)
    slow = lazy(fast, 0.99)
    quick, plain = solve(slow), solve(slow, method="value-iteration")
    assert quick.sweeps <= solve(fast).sweeps + 2
    assert quick.sweeps < plain.sweeps / 50
    assert quick.gain_bounds[0] <= plain.gain_bounds[1]
    assert plain.gain_bounds[0] <= quick.gain_bounds[1]
    assert quick.policy == plain.policy


@pytest.mark.parametrize("sense", ["optimistic", "pessimistic"])
def test_longer_steps_in_a_box(sense):
    box = boxed(lazy(garnet(np.random.default_rng(3), 120, 3, 4), 0.9), width=0.01, rest=1e-4)
    quick, plain = evi(box, sense=sense), evi(box, sense=sense, method="value-iteration")
    assert quick.sweeps < plain.sweeps / 2
    assert quick.gain == pytest.approx(plain.gain, abs=1e-6)


def test_the_least_probability_of_staying():
    mdp = lazy(random_mdp(np.random.default_rng(1), S=6, A=3, kind="dense"), 0.6)
    P, _, available = mdp.to_dense()
    stays = np.array([P[s, :, s][available[s]].min() for s in range(6)])
    assert least_stay(prepare(mdp).arrays, 0.5) == stays.min()
    assert least_stay(prepare(mdp).arrays, stays.min() + 1e-9) == 0.0
    assert least_stay.py_func(prepare(mdp).arrays, 0.5) == stays.min()


def test_the_first_of_tied_pairs_is_taken():
    q, ptr = np.array([1.0, 2.0, 2.0 - 1e-12, 0.0, 3.0, 1.0]), np.array([0, 3, 6])
    pair = np.empty(2, dtype=np.int64)
    best_pairs(ptr, q, 1.0, np.array([2.0, 3.0]), 1e-9, pair)
    assert pair.tolist() == [1, 4]
    best_pairs(ptr, q, -1.0, np.array([-1.0, 0.0]), 1.5, pair)
    assert pair.tolist() == [0, 3]


def test_a_lazy_chain_has_the_gain_of_the_quick_one_and_a_bias_that_is_longer_by_its_waits():
    """With P = (1−δ)P' + δI: h = r − g + Ph is (1−δ)h = r − g + P'(1−δ)h. Too many states for a direct solution."""
    fast = garnet(np.random.default_rng(4), 2100, 1, 4)
    every = Policy(np.ones((2100, 1)))
    quick, slow = evaluate(fast, every), evaluate(lazy(fast, 0.98), every)
    np.testing.assert_allclose(slow.gain, quick.gain, rtol=0, atol=1e-10)
    np.testing.assert_allclose(0.02 * slow.bias, quick.bias, rtol=0, atol=1e-8)
