"""What a certificate must survive: wide reward ranges, near ties, rounding in the rows, slow and banded chains."""

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from spanrl import MDP, BoundedMDP, Policy, analyse, evaluate, make, scopt, solve
from spanrl.errors import ModelError, MultichainError, NotConvergedError, OptionError
from spanrl.kernels.iterate import bracket, sharp_bracket
from spanrl.kernels.jit import interpreted
from spanrl.planning.options import METHODS
from spanrl.planning.problem import prepare


@pytest.mark.parametrize("method", METHODS)
def test_the_declared_range_decides_nothing(method):
    """Two actions with rewards .5 and .6 in a range of ±10⁹: they are no tie."""
    mdp = MDP.from_dense([[[1.0], [1.0]]], [[0.5, 0.6]], r_min=-1e9, r_max=1e9)
    solution = solve(mdp, method=method)
    assert solution.gain_bounds[0] <= 0.6 <= solution.gain_bounds[1]
    assert solution.policy.actions.tolist() == [1]
    assert analyse(mdp).gain == 0.6


@pytest.mark.parametrize("method", METHODS)
def test_near_ties_stay_below_the_tolerance(method):
    mdp = MDP.from_dense([[[1.0], [1.0]]], [[0.5, 0.5 + 9e-11]])
    low, high = solve(mdp, method=method, tol=1e-12).gain_bounds
    assert low <= 0.5 + 9e-11 <= high


def test_a_large_constant_in_the_rewards_costs_no_digits_of_the_policy():
    mdp = make("riverswim").mdp
    P, r, available = mdp.to_dense()
    shifted = MDP.from_dense(P, r + 1e6, available=available, r_min=1e6, r_max=1e6 + 1)
    result = analyse(shifted)
    assert result.policy == analyse(mdp).policy
    assert result.gain - 1e6 == pytest.approx(analyse(mdp).gain, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_sharp_bracket_holds_in_exact_fractions(seed):
    """At values of 10¹², in rows that are left with chances down to 2⁻⁴⁰, it holds what Lv − v is, and is narrow where the other is not."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    leave = 2.0 ** -rng.integers(1, 41, (S, A))
    P = np.zeros((S, A, S))
    np.put_along_axis(P, rng.integers(0, S, (S, A, 1)), leave[..., None], axis=2)
    P[np.arange(S), :, np.arange(S)] += 1 - leave
    mdp = MDP.from_dense(P, rng.random((S, A)))
    problem, v, q = prepare(mdp), rng.normal(size=S) * 1e12, np.empty(S * A)
    lo, hi = sharp_bracket(problem.arrays, problem.reward, v, q)
    exact = []
    for s in range(S):
        values = []
        for a in range(A):
            moves = [Fraction(P[s, a, x]) * (Fraction(v[x]) - Fraction(v[s])) for x in range(S) if x != s]
            values.append(Fraction(mdp.reward[s * A + a]) + sum(moves))
            size = float(abs(values[-1])) + float(sum(map(abs, moves))) + 1
            assert abs(Fraction(q[s * A + a]) - values[-1]) <= 20 * 2.0**-53 * size
        exact.append(max(values))
    assert Fraction(lo) <= min(exact)
    assert max(exact) <= Fraction(hi)
    wide = bracket(v, problem.backup(v), problem.rounding)
    slack = float(hi - max(exact)) + float(min(exact) - lo)
    assert slack <= 1e-3 * (wide[1] - wide[0] - float(max(exact) - min(exact))) or leave.max() > 1e-3
    with interpreted():
        assert sharp_bracket(problem.arrays, problem.reward, v, np.empty(S * A)) == (lo, hi)


@pytest.mark.parametrize("off", [0.9e-8, -0.9e-8])
def test_boxes_that_miss_one_by_rounding_are_rescaled(off):
    """Otherwise F(v + λ) ≠ Fv + λ, and the bracket would depend on the reference state."""
    P = np.array([[[1 - 1e-4, 1e-4]], [[1e-4, 1 - 1e-4]]]) * (1 + off)
    box = BoundedMDP.from_dense(np.minimum(P, 1), np.minimum(P, 1), [[0], [1]], [[0], [1]])
    for state in (0, 1):
        low, high = solve(box, ref_state=state).gain_bounds
        assert low - 1e-9 <= 0.5 <= high + 1e-9


def ring(S):
    states = np.arange(S)
    succ = np.stack((states, (states + 1) % S), axis=1)
    rewards = (states % 7) / 7
    return MDP.from_pairs(states, np.zeros(S, int), 2 * np.arange(S + 1), succ.ravel(), np.full(2 * S, 0.5), rewards)


def test_long_rings_are_solved_directly():
    """They mix in S² sweeps, but their states can be ordered in a band of two."""
    mdp = ring(5000)
    mean = mdp.reward.mean()
    result = evaluate(mdp, Policy(np.ones((5000, 1))))
    np.testing.assert_allclose(result.gain, mean, atol=1e-12)
    after = 0.5 * (result.bias + np.roll(result.bias, -1))
    np.testing.assert_allclose(mdp.reward - mean + after, result.bias, atol=1e-9)
    assert result.bias.mean() == pytest.approx(0, abs=1e-9)  # the stationary distribution is uniform
    assert analyse(mdp).gain == pytest.approx(mean, abs=1e-12)
    assert solve(mdp).gain == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize(("delta", "accuracy"), [(1e-2, 1e-11), (1e-5, 1e-9), (1e-9, 1e-6)])
def test_large_diameters(delta, accuracy):
    assert analyse(make("three-state", delta=delta).mdp).diameter * delta == pytest.approx(1, rel=accuracy)


def test_the_diameter_of_a_chain_against_the_current():
    """Up with .1, down with .9: the time to the top is a sum of powers of 9."""
    n, up, down = 10, 0.1, 0.9
    P = np.zeros((n, 1, n))
    for s in range(n):
        P[s, 0, min(s + 1, n - 1)] += up
        P[s, 0, max(s - 1, 0)] += down
    step, total = 0.0, 0.0
    for s in range(n - 1):
        step = (1 + down * step) / up if s else 1 / up
        total += step
    assert analyse(MDP.from_dense(P, np.zeros((n, 1)))).diameter == pytest.approx(total, rel=1e-6)


def test_a_state_that_is_hardly_ever_left():
    mdp = MDP.from_dense([[[1.0, 1e-17]], [[1.0, 0.0]]], [[0], [1]])
    assert analyse(mdp).diameter == pytest.approx(1e17, rel=1e-9)


def test_nature_may_keep_a_state_apart():
    """State 0 can be left in some models of the set only: optimistic 1 everywhere, pessimistic 0 and 1."""
    box = BoundedMDP.from_dense([[[0.5, 0]], [[0, 1]]], [[[1, 0.5]], [[0, 1]]], [[0.0], [1.0]], [[0.0], [1.0]])
    assert solve(box).gain == pytest.approx(1, abs=1e-6)
    with pytest.raises(MultichainError, match="at least 1 from state 1, at most 0 from state 0"):
        solve(box, sense="pessimistic")


def test_the_reason_of_a_failure_is_the_right_one():
    with pytest.raises(NotConvergedError, match="rounding allows no less"):
        solve(make("riverswim").mdp, method="policy-iteration", tol=1e-18)
    with pytest.raises(NotConvergedError, match="leave out contraction and damping"):
        scopt(make("counterexample-cycle").mdp, 0.4, contraction=0.5, max_sweeps=1000)
    with pytest.raises(MultichainError):
        solve(MDP.from_dense([[[1, 0]], [[0, 1]]], [[0], [1]]), contraction=0.5)


def test_results_travel_between_processes_and_are_read_only():
    solution = scopt(make("two-state").mdp, 0.75)
    again = pickle.loads(pickle.dumps(solution))
    assert again.gain == solution.gain
    np.testing.assert_array_equal(again.optimistic[1], solution.optimistic[1])
    with pytest.raises(NotConvergedError) as caught:
        solve(make("riverswim").mdp, max_sweeps=3)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (str(error), error.solution.gain) == (str(caught.value), caught.value.solution.gain)
    for array in (solution.bias, solution.truncated, solution.policy.probs, analyse(make("two-state").mdp).gains):
        assert not array.flags.writeable
    with pytest.raises(AttributeError):
        solution.policy.probs = None


def test_a_replaced_field_is_checked_too():
    mdp = make("two-state").mdp
    with pytest.raises(ModelError, match="must lie in"):
        replace(mdp, reward=np.full(4, 9.0))
    with pytest.raises(ModelError, match="arrays do not fit together"):
        replace(mdp, reward=np.zeros(3))
    with pytest.raises(ModelError, match="must sum to 1"):
        replace(mdp, prob=np.full(4, 0.5))
    ball = BoundedMDP.l1_ball(mdp, 0.1, 0, 1)
    with pytest.raises(ModelError, match=r"radius\[s=0, a=0\] is -1, must be a finite number ≥ 0 \(4 fail\)"):
        replace(ball, radius=np.full(4, -1.0))
    with pytest.raises(ModelError, match="contains no distribution"):
        replace(ball, p_low=np.full(4, 0.5), p_high=np.full(4, 0.5))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: solve("two-state"), r"Use make\('two-state'\).mdp"),
        (lambda: analyse(make("two-state")), "Use its .mdp"),
        (lambda: evaluate(make("two-state").mdp, [[1, 0], [0, 1]]), r"must be a Policy; got list. Use Policy\(probs\)"),
        (lambda: solve(make("two-state").mdp, tol=10**400), "tol must be a finite number"),
        (lambda: solve(make("two-state").mdp, ref_state=True), "ref_state must be a state"),
        (lambda: solve(make("two-state").mdp, span_bound=10**400), "span bound must be a number"),
        (lambda: MDP.from_dense([[[1.0]]], [[0]], r_min=-1.5e308, r_max=1.5e308), "r_min must be below r_max"),
        (lambda: MDP.from_dense([[[1j]]], [[0]]), "P must be an array of numbers"),
        (lambda: MDP.from_dense([[[1.0]]], [[0]], state_names=5), "state_names must be a list of names"),
        (lambda: MDP.from_dense([[[1.0]]], [[0]], start=[[1], [2, 3]]), "start must have shape"),
        (lambda: MDP.from_pairs([0, 10**13], [0, 0], [0, 1, 2], [0, 0], [1, 1], [0, 0]), "state 1 has no action"),
        (lambda: MDP.from_pairs([0], [10**13], [0, 1], [0], [1], [0]), "actions must be numbered below"),
    ],
)
def test_odd_input_ends_in_a_sentence(call, words):
    with pytest.raises((ModelError, OptionError), match=words):
        call()


def test_fractions_and_numpy_numbers_are_numbers():
    from fractions import Fraction

    mdp = make("counterexample-cycle").mdp
    solution = scopt(mdp, Fraction(2, 5), tol=Fraction(1, 10**6), damping=Fraction(1, 2), ref_state=np.int32(1))
    assert solution.gain == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize("rest", [1e-20, 1e-300, 5e-324])
def test_a_vanishing_interval_for_the_rest_stays_in_bounds(rest):
    box = BoundedMDP.from_pairs(
        [0, 1, 2], [0, 0, 0], [0, 1, 2, 3], [2, 2, 2], [0.0] * 3, [1.0] * 3, [rest] * 3, [0, 0.1, 0.2], [0.5, 1.0, 0.3]
    )
    chain, _ = solve(box).optimistic
    np.testing.assert_allclose(chain.toarray(), [[0, 0, 1]] * 3, atol=1e-15)


def walk(S, up):
    """A random walk on a line, with reward where the state is a multiple of five."""
    states = np.arange(S)
    succ = np.stack((np.maximum(states - 1, 0), np.minimum(states + 1, S - 1)), axis=1)
    prob = np.tile([1 - up, up], S)
    return MDP.from_pairs(states, np.zeros(S, int), 2 * np.arange(S + 1), succ.ravel(), prob, (states % 5 == 0) * 1.0)


@pytest.mark.parametrize("S", [1999, 2001, 20_000])
@pytest.mark.parametrize("up", [0.1, 0.6, 0.9])
def test_long_walks_with_a_drift(S, up):
    """The last state is next to never visited from one side: elimination without pivots would explode."""
    mdp = walk(S, up)
    result = evaluate(mdp, Policy(np.ones((S, 1))))
    after = (1 - up) * result.bias[np.maximum(np.arange(S) - 1, 0)] + up * result.bias[
        np.minimum(np.arange(S) + 1, S - 1)
    ]
    np.testing.assert_allclose(mdp.reward - result.gain + after, result.bias, atol=1e-9 * result.span)
    weight = np.exp(np.minimum(np.arange(S), 500) * np.log(min(up, 1 - up) / max(up, 1 - up)))
    stationary = weight / weight.sum() if up < 0.5 else weight[::-1] / weight.sum()
    assert result.gain[0] == pytest.approx(stationary @ mdp.reward, abs=1e-9)


def test_a_far_start_is_no_excuse_for_a_false_certificate():
    mdp = make("three-state").mdp
    for v in (np.full(3, 1e16), np.array([1e12, 0, -1e12])):
        low, high = solve(mdp, v_init=v, on_fail="return").gain_bounds
        assert low <= 2 / 3 <= high
    assert scopt(mdp, 0.001, v_init=np.array([1e6, 1e6 + 1, 1e6])).span <= 0.001


@pytest.mark.parametrize("seed", range(20))
def test_the_bracket_holds_where_rounding_rules(seed):
    """Two states that are left with chances of 1e-6 to 1e-13: the bias is as large as the digits are few."""
    rng = np.random.default_rng(seed)
    a, b = 10.0 ** rng.uniform(-13, -6, 2)
    r = rng.random(2)
    mdp = MDP.from_dense([[[1 - a, a]], [[b, 1 - b]]], r[:, None])
    exact = (b * r[0] + a * r[1]) / (a + b)
    for method in ("auto", "value-iteration"):
        low, high = solve(mdp, tol=1e-9, method=method, max_sweeps=10**5, on_fail="return").gain_bounds
        assert low <= exact <= high


@pytest.mark.parametrize("chance", [1e-8, 1e-9, 1e-12])
def test_a_tiny_chance_of_a_better_part_counts(chance):
    P = [[[1, 0], [1 - chance, chance]], [[0, 1], [chance, 1 - chance]]]
    mdp = MDP.from_dense(P, [[0.5, 0], [1, 0]])
    assert analyse(mdp, diameter=False).gain == 1.0
    low, high = solve(mdp, on_fail="return").gain_bounds
    assert low <= 1 <= high


def test_many_states_in_a_line_with_default_options():
    solution = solve(make("riverswim", n_states=1500).mdp)
    assert solution.gain == pytest.approx(2 / 9, abs=2e-6)


def test_excluded_successors_and_dust_join_nothing():
    """Two closed states: once by excluding the other in a wide box, once by a slack of one unit in the last place."""
    excluded = BoundedMDP.from_pairs(
        [0, 1], [0, 0], [0, 1, 2], [1, 0], [0.0] * 2, [0.0] * 2, [1.0] * 2, [0, 1.0], [0, 1.0]
    )
    dust = BoundedMDP.from_dense(
        [[[1 - 1e-16, 0]], [[0, 1 - 1e-16]]], np.ones((2, 1, 2)), [[0.0], [1.0]], [[0.0], [1.0]]
    )
    for box in (excluded, dust):
        with pytest.raises(MultichainError, match="at least 1 from state 1"):
            solve(box)


def test_policy_iteration_that_does_not_end_says_so_and_hands_back(monkeypatch):
    from spanrl.planning import policy_iteration

    monkeypatch.setattr(policy_iteration, "_MAX_POLICIES", 0)
    mdp = make("riverswim").mdp
    with pytest.raises(NotConvergedError, match="rounding allows no less") as caught:
        solve(mdp, method="policy-iteration")
    assert caught.value.solution.gain_bounds[0] <= analyse(mdp).gain <= caught.value.solution.gain_bounds[1]
    assert solve(ring(300)).gain == pytest.approx(ring(300).reward.mean(), abs=1e-5)


@pytest.mark.parametrize("seed", range(30))
def test_the_policy_is_within_tol_whatever_the_ties(seed):
    """Many actions that differ by less than the tolerance: the lowest of them may be played only as far as tol allows."""
    rng = np.random.default_rng(seed)
    S, A, tol = 4, 12, 10.0 ** rng.uniform(-9, -4)
    P = np.repeat(rng.dirichlet(np.ones(S), size=(S, 1)), A, axis=1)
    r = rng.random((S, 1)) * 0.5 + np.sort(rng.random((S, A)), axis=1) * 10.0 ** rng.uniform(-12, -4)
    mdp = MDP.from_dense(P, r)
    solution = solve(mdp, tol=tol)
    leads_to = P[:, 0].T - np.eye(S)
    leads_to[-1] = 1.0
    exact = np.linalg.solve(leads_to, np.eye(S)[-1]) @ r.max(axis=1)  # actions differ in their rewards alone
    assert solution.gain_bounds[0] <= exact <= solution.gain_bounds[1]
    assert (evaluate(mdp, solution.policy).gain >= exact - tol - 1e-14).all()
