"""Rows that miss one, boxes of a thousand states, biases of 10¹², starts of 10¹⁶: what is certified holds, and what fails says why."""

from fractions import Fraction

import numpy as np
import pytest

from spanrl import MDP, BoundedMDP, evaluate, make, scopt, solve
from spanrl.errors import MultichainError, NotConvergedError, OptionError
from spanrl.planning.multichain import gain_gap
from spanrl.planning.problem import prepare


def rows_of_thirds(digits):
    """Three states that pay .5 and lead to each other by thirds with so many digits; a fourth pays nothing and seldom goes there."""
    third = float("0." + "3" * digits)
    prob = [third] * 9 + [1e-7, 1 - 1e-7]
    return MDP.from_pairs([0, 1, 2, 3], [0] * 4, [0, 3, 6, 9, 11], [0, 1, 2] * 3 + [0, 3], prob, [0.5, 0.5, 0.5, 0.0])


@pytest.mark.parametrize("digits", [9, 10, 11, 12, 13, 14, 15, 16, 17])
def test_rows_given_with_few_digits_are_rescaled(digits):
    """Whatever the rows sum to, every recurrent state pays .5."""
    mdp = rows_of_thirds(digits)
    assert mdp.row_error <= 4 * 2.0**-52
    low, high = solve(mdp).gain_bounds
    assert low <= 0.5 <= high


@pytest.mark.parametrize("c", [np.inf, 1e12])
def test_rows_that_cannot_be_rescaled_widen_the_bracket(c):
    """A model made by hand, or read from a file, keeps its rows."""
    exact = rows_of_thirds(17)
    prob = exact.prob.copy()
    prob[:9] *= 1 - 1e-9
    mdp = MDP(exact.pair_ptr, exact.action, exact.succ_ptr, exact.succ, prob, exact.reward, 0.0, 1.0, exact.start, 1)
    assert mdp.row_error == pytest.approx(1e-9, rel=1e-3)
    solution = scopt(mdp, c, on_fail="return")
    low, high = solution.gain_bounds
    assert low <= 0.5 <= high
    assert not solution.converged or c == np.inf  # what is summed from differences needs no sum of one


@pytest.mark.parametrize("seed", range(12))
def test_the_bracket_of_a_box_holds_where_a_thousand_states_share_an_interval(seed):
    """The best 300 states pay 1 and all but the last are reached with at most q each: the gain is 300q."""
    rng, S = np.random.default_rng(seed), 1000
    leave, q = 10.0 ** -rng.uniform(4, 9), 1 / rng.uniform(600, 990)
    reward, rest = np.where(np.arange(S) < 300, 1.0, 0.0), np.append(np.full(S - 1, q), 0.0)
    ptr, last = np.append(np.zeros(S, dtype=int), 2), [leave, 1 - leave]
    box = BoundedMDP.from_pairs(np.arange(S), np.zeros(S, dtype=int), ptr, [0, S - 1], last, last, rest, reward, reward)
    wanted = 300 * Fraction(q)
    start = np.append(reward[:-1], -float(wanted) / leave)
    for tol in (8e-15 / leave, 4e-13 / leave):
        low, high = solve(box, tol=tol, v_init=start, max_sweeps=200, on_fail="return").gain_bounds
        assert Fraction(low) <= wanted <= Fraction(high)


def far_jump(e):
    """From the last of three states, in which it pays to wait, the first is reached once in 1/e steps: its gain is everybody's."""
    rewards = [0.7037688161764154, 0.31599978623692426, 0.6834573642512735, 0.42387860631233365, 0.8024527183370452]
    return MDP.from_pairs(
        [0, 1, 1, 2, 2], [0, 0, 1, 0, 1], [0, 1, 2, 3, 4, 6], [0, 2, 1, 2, 2, 0], [1, 1, 1, 1, 1 - e, e], rewards
    )


@pytest.mark.parametrize("e", [1e-6, 1e-9, 1e-11, 3.4303457835583873e-12, 1e-13])
def test_gains_that_do_not_differ_are_not_said_to(e):
    """State 1 can stay where it is, for less: only what really is chosen certifies a gain."""
    mdp = far_jump(e)
    try:
        low, high = solve(mdp).gain_bounds
    except MultichainError:
        pytest.fail("the optimal gain is that of the first state, from everywhere")
    except NotConvergedError as error:
        low, high = error.solution.gain_bounds
    assert low <= mdp.reward[0] <= high


@pytest.mark.parametrize("scale", [1e9, 1e11, 1e13, 1e15])
def test_gains_are_certified_by_what_is_attained(scale):
    """At large values staying and going tie, but for rounding; neither earns more than the rewards."""
    mdp = MDP.from_pairs([0, 0, 1], [0, 1, 0], [0, 1, 3, 4], [0, 0, 1, 1], [1, 1 - 1e-11, 1e-11, 1], [0.0, 1.0, 0.5])
    assert gain_gap(prepare(mdp), np.array([-scale, 0.0])) is None
    parts = MDP.from_dense(np.eye(2)[:, None], [[0.25], [0.75]])
    better, worse, low, high = gain_gap(prepare(parts), np.zeros(2))
    assert (better, worse) == (1, 0)
    assert 0.25 <= high < low <= 0.75


def test_a_policy_keeps_its_promise_beside_large_values():
    mdp = MDP.from_pairs([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 2, 3, 4], [0, 0, 1, 0], [1] * 4, [0, 1, 1, 0])
    for start in ([0, 5e14], [0, 1e16], [-1e17, 3.0]):
        solution = solve(mdp, v_init=start)
        assert evaluate(mdp, solution.policy).gain.min() >= solution.gain_bounds[0] - 1e-9


def halves(S, eps, seed=0):
    """Two random graphs of S/2 states, left with probability eps: no narrow separator, and a bias of 1/eps."""
    rng, m, A = np.random.default_rng(seed), S // 2, 2
    part = np.repeat([0, 1], m)[:, None, None]
    near = np.argsort(rng.random((S, A, m)), axis=2)[:, :, :4] + m * part
    succ = np.concatenate((near, (1 - part) * m + rng.integers(0, m, (S, A, 1))), axis=2)
    prob = np.concatenate((rng.dirichlet(np.ones(4), size=(S, A)) * (1 - eps), np.full((S, A, 1), eps)), axis=2)
    reward = rng.random((S, A)) * rng.random(2)[part[:, 0]]
    state, action = np.divmod(np.arange(S * A), A)
    ptr = np.arange(S * A + 1) * 5
    return MDP.from_pairs(state, action, ptr, succ.ravel(), prob.ravel(), reward.ravel())


@pytest.mark.parametrize(("eps", "tol"), [(1e-6, 1e-6), (1e-9, 1e-6), (1e-10, 1e-5), (2e-11, 1e-2), (4e-11, 1e-2)])
@pytest.mark.parametrize("S", [100, 230])
def test_where_iterations_do_not_get_on_factors_do(S, eps, tol):
    mdp = halves(S, eps)
    solution = solve(mdp, tol=tol, max_sweeps=10**5)
    exact = solve(mdp, tol=tol, method="policy-iteration").gain_bounds
    assert max(solution.gain_bounds[0], exact[0]) <= min(solution.gain_bounds[1], exact[1])


def test_what_rounding_hides_from_rounds_policy_iteration_finds():
    """The bias is 10⁹, and has 2·10⁻⁷ beside it in double precision."""
    solution = solve(halves(100, 1e-10, seed=3), tol=1e-6)
    assert solution.method == "policy-iteration"
    assert evaluate(halves(100, 1e-10, seed=3), solution.policy).gain.min() >= solution.gain_bounds[0] - 1e-9


@pytest.mark.parametrize("memory", [0, 1e4])
def test_policy_iteration_makes_no_factors_that_are_not_allowed(memory, monkeypatch):
    monkeypatch.setattr("spanrl.planning.solve.policy_iteration", lambda *args: pytest.fail("factors are not allowed"))
    solution = solve(halves(100, 1e-10, seed=3), memory=memory, max_sweeps=10**5, on_fail="return")
    assert solution.factor_size == 0
    exact = solve(halves(100, 1e-10, seed=3), method="value-iteration", max_sweeps=10, on_fail="return").gain_bounds
    assert max(solution.gain_bounds[0], exact[0]) <= min(solution.gain_bounds[1], exact[1])


@pytest.mark.parametrize("scale", [1e6, 1e11, 1e13, 1e15, 1e16])
@pytest.mark.parametrize("seed", range(4))
def test_a_start_may_be_as_bad_as_it_likes(seed, scale):
    mdp = make("riverswim").mdp
    wanted = solve(mdp)
    start = np.random.default_rng(seed).normal(size=mdp.n_states) * scale
    low, high = solve(mdp, v_init=start).gain_bounds
    assert max(low, wanted.gain_bounds[0]) <= min(high, wanted.gain_bounds[1])


def test_a_start_whose_span_overflows_is_refused():
    start = [1.7e308, -1.7e308, 0, 0, 0, 0]
    with pytest.raises(OptionError, match=r"the span of v_init must be finite; it overflows\. Scale v_init down\."):
        solve(make("riverswim").mdp, v_init=start)


@pytest.mark.parametrize("c", [1e7, np.inf])
def test_a_span_bound_that_does_not_bind_costs_no_digits(c):
    """With a bias of 8·10⁵ a bracket of 10⁻⁹ is kept by summing from differences alone."""
    back = 2.0**-20
    mdp = MDP.from_dense([[[1 - back, back], [0, 1]], [[0, 1], [0, 1]]], [[31 / 32, 0.5], [0.25, 0.125]])
    low, high = scopt(mdp, c, tol=1e-10).gain_bounds
    assert low <= 0.25 <= high
