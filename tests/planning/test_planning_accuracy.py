"""Nearly decomposable chains and models against exact fractions: right to the accuracy promised, or an error.

The exact chain is the one whose successors other than s itself have the given probabilities; staying is what is left.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

from spanrl import MDP, Policy, analyse, evaluate
from spanrl.errors import SpanrlError
from spanrl.paper.oracles_chains import evaluate as evaluate_exactly
from spanrl.paper.oracles_chains import solve_linear
from spanrl.planning import chain, direct
from spanrl.planning.chain import BIAS_ACCURACY, GAIN_ACCURACY, solve_chain
from spanrl.planning.diameter import ACCURACY, diameter
from spanrl.planning.direct import Direct
from spanrl.planning.precise import Precise

ORDERS = (3, 9, 20, 40, 100, 250)


def fractions(values):
    return np.vectorize(lambda x: Fraction(float(x)), otypes=[object])(values)


def with_staying(P):
    """Return P in fractions with p(s, s) = 1 − Σ_{x≠s} p(x); P is [S, S] or [S, A, S]."""
    Q = fractions(P)
    for s in range(len(Q)):
        for row in Q[s].reshape(-1, len(Q)):
            row[s] = 1 - (row.sum() - row[s])
    return Q


def rare_row(rng, S, orders):
    """Return a distribution on up to three states with probabilities of many orders of magnitude."""
    k = int(rng.integers(1, min(S, 3) + 1))
    weight = 10.0 ** -rng.uniform(0, orders, k)
    weight[rng.integers(k)] = 1.0
    if rng.random() < 0.3:
        weight = rng.random(k)
    row = np.zeros(S)
    row[rng.choice(S, k, replace=False)] = weight / weight.sum()
    return row


def rare_chain(rng):
    S, orders = int(rng.integers(2, 8)), rng.choice(ORDERS)
    P = np.array([rare_row(rng, S, orders) for _ in range(S)])
    kind = rng.integers(3)
    if kind == 1:  # parts that hang together by a thread
        thread = 10.0 ** -rng.uniform(3, orders)
        P = P * (1 - thread) + thread * np.eye(S)[rng.integers(S, size=S)]
    if kind == 2:  # birth and death
        up, down = 0.5 * 10.0 ** -rng.uniform(0, orders / 2, (2, S))
        up[-1] = down[0] = 0.0
        P = np.diag(up[:-1], 1) + np.diag(down[1:], -1) + np.diag(1 - up - down)
    return P, rng.random(S) if rng.random() < 0.7 else rng.integers(0, 2, S).astype(float)


def largest_error(values, exact):
    return max(float(abs(Fraction(float(x)) - y)) for x, y in zip(values, exact, strict=True))


@pytest.mark.parametrize("seed", range(100))
def test_evaluate_on_nearly_decomposable_chains(seed):
    rng = np.random.default_rng(seed)
    P, r = rare_chain(rng)
    gain, bias = evaluate_exactly(with_staying(P), fractions(r))
    result = evaluate(MDP.from_dense(P[:, None], r[:, None]), Policy(np.ones((r.size, 1))))
    scale = max(np.ptp(r), float(max(bias) - min(bias)))
    assert largest_error(result.gain, gain) <= GAIN_ACCURACY * np.ptp(r)
    assert largest_error(result.bias, bias) <= BIAS_ACCURACY * scale


@pytest.mark.parametrize(
    ("way", "iterates"),
    [
        (Direct(), False),
        (Direct(), True),
        (Direct(refined=True), False),
        (Direct(refined=True), True),
        (Precise(), False),
    ],
)
def test_the_bounds_on_the_error_hold(way, iterates, monkeypatch):
    """What each way says of its own error, on chains it is not made for, too."""
    if iterates:
        monkeypatch.setattr(direct, "elimination_order", lambda P: None)
    rng, judged = np.random.default_rng(1), 0
    for _ in range(40):
        P, r = rare_chain(rng)
        try:
            value = solve_chain(way, csr_array(P), r)
        except SpanrlError:
            continue
        gain, bias = evaluate_exactly(with_staying(P), fractions(r))
        largest = float(max(abs(h) for h in bias))
        if np.isfinite(value.bias).all() and np.isfinite(value.bias_error):
            assert largest_error(value.gain, gain) <= value.gain_error + 2e-16
            assert largest_error(value.bias, bias) <= value.bias_error + 4e-16 * largest
            judged += 1
    assert judged >= 25


def rare_model(rng):
    S, A, orders = int(rng.integers(2, 5)), int(rng.integers(1, 4)), rng.choice(ORDERS[:-1])
    P = np.array([[rare_row(rng, S, orders) for _ in range(A)] for _ in range(S)])
    return P, rng.random((S, A)) if rng.random() < 0.7 else rng.integers(0, 2, (S, A)).astype(float)


@pytest.mark.parametrize("seed", range(40))
def test_analyse_on_models_with_rare_transitions(seed):
    rng = np.random.default_rng(seed)
    P, r = rare_model(rng)
    S, A, _ = P.shape
    Q, R, every = with_staying(P), fractions(r), np.arange(S)
    values = [evaluate_exactly(Q[every, rule], R[every, rule]) for rule in product(range(A), repeat=S)]
    gains = np.max([gain for gain, _ in values], axis=0)
    spans = [float(max(h) - min(h)) for g, h in values if (g == gains).all()]
    result = analyse(MDP.from_dense(P, r), diameter=False)
    assert largest_error(result.gains, gains) <= 1.1 * GAIN_ACCURACY * np.ptp(r)
    if result.span is not None:
        assert any(abs(result.span - x) <= 1.1 * BIAS_ACCURACY * max(x, np.ptp(r)) for x in spans)


def least_time(Q, target):
    """Return the largest of the least expected times to the target, over all policies; None where none reaches it from everywhere."""
    others = np.flatnonzero(np.arange(len(Q)) != target)
    best = None
    for rule in product(range(Q.shape[1]), repeat=others.size):
        system = fractions(np.eye(others.size)) - Q[others, rule][:, others]
        try:
            times = solve_linear(system, fractions(np.ones(others.size)))
        except (ZeroDivisionError, StopIteration, ValueError):
            continue
        if min(times) > 0:
            best = times if best is None else np.minimum(best, times)
    return None if best is None else max(best)


def test_diameters_of_models_with_rare_transitions():
    rng, judged = np.random.default_rng(5), 0
    while judged < 25:
        P, r = rare_model(rng)
        mdp = MDP.from_dense(P, r)
        if analyse(mdp, diameter=False).classification != "communicating":
            continue
        exact = max(least_time(with_staying(P), target) for target in range(mdp.n_states))
        assert abs(Fraction(diameter(mdp)) / exact - 1) <= ACCURACY
        judged += 1


def test_a_pair_that_hardly_leaves_is_not_taken_for_the_noise_of_another():
    """Staying in state 0 or 3 for ever has value 0 and no noise; the noise of the present pair must not make it look better."""
    P = np.zeros((4, 2, 4))
    P[0] = [1, 0, 0, 0], [7e-71, 1.3e-12, 0, 1]
    P[1] = [1, 0, 0, 0], [0, 1, 0, 0]
    P[2] = [1, 0, 9e-60, 1.8e-64], [1.7e-11, 0, 1, 7e-11]
    P[3] = [3.6e-34, 0, 1.9e-90, 1], [0, 0, 0, 1]
    exact = max(least_time(with_staying(P), target) for target in range(4))
    assert abs(Fraction(diameter(MDP.from_dense(P, np.zeros((4, 2))))) / exact - 1) <= ACCURACY


def queue(K):
    """Admission to a queue of at most K: up with probability 0.3 if admitted, down with 0.5."""
    P = np.zeros((K + 1, 2, K + 1))
    for s, a in product(range(K + 1), (0, 1)):
        up, down = 0.3 * (a and s < K), 0.5 * (s > 0)
        P[s, a, min(s + 1, K)] += up
        P[s, a, max(s - 1, 0)] += down
        P[s, a, s] += 1 - up - down
    return MDP.from_dense(P, np.repeat(-np.arange(K + 1)[:, None], 2, axis=1), r_min=-K, r_max=0)


@pytest.mark.parametrize("K", [12, 50])
def test_the_diameter_of_a_queue_in_closed_form(K):
    """From empty to full by admitting always: Σ_s of the times from s to s + 1, t_s = (1 + 0.5 t_{s−1})/0.3."""
    climb, total = Fraction(0), Fraction(0)
    for s in range(K):
        climb = (1 + Fraction(0.5) * climb) / Fraction(0.3) if s else 1 / Fraction(0.3)
        total += climb
    assert abs(Fraction(analyse(queue(K)).diameter) / total - 1) <= ACCURACY


def test_the_diameter_is_left_out_where_no_digit_would_be_right(monkeypatch):
    monkeypatch.setattr("spanrl.planning.diameter.DIRECT", 10)
    assert analyse(queue(50)).diameter is None
    with pytest.raises(SpanrlError, match=r"too long to be computed to 1e-06 on 51 states.*diameter=False"):
        analyse(queue(50), diameter=True)


def test_two_halves_with_equal_gains_take_more_digits(monkeypatch):
    """A moderate bias beside times of 1e30: double precision has no digit of it, and says so where it may not take more."""
    half = np.array([[0.25, 0.75], [0.5, 0.5]])
    P = np.block([[half, np.eye(2) * 1e-30], [np.eye(2)[::-1] * 1e-30, half[::-1, ::-1]]])
    r = np.array([0.3, 0.9, 0.9, 0.3])
    _, bias = evaluate_exactly(with_staying(P), fractions(r))
    mdp, policy = MDP.from_dense(P[:, None], r[:, None]), Policy(np.ones((4, 1)))
    assert largest_error(evaluate(mdp, policy).bias, bias) <= BIAS_ACCURACY * 0.6
    monkeypatch.setattr(chain, "DIRECT", 1)
    with pytest.raises(SpanrlError, match=r"cannot be evaluated as accurately as promised.*the bias to"):
        evaluate(mdp, policy)


def test_iterations_do_not_judge_what_they_cannot_see(monkeypatch):
    """Two halves with the same gain to the last bit but one: the bias of 2⁻² hangs on transitions of chance 10⁻¹²."""
    monkeypatch.setattr(direct, "elimination_order", lambda P: None)
    monkeypatch.setattr(chain, "DIRECT", 1)
    mdp = MDP.from_dense([[[1 - 1e-12, 1e-12]], [[1e-12, 1 - 1e-12]]], [[0.5], [0.5 + 1e-12]])
    try:
        bias = evaluate(mdp, Policy([[1], [1]])).bias
    except SpanrlError as error:
        assert "cannot be evaluated as accurately as promised" in str(error)  # noqa: PT017
        return
    _, exact = evaluate_exactly(with_staying(mdp.to_dense()[0][:, 0]), fractions(mdp.reward))
    assert largest_error(bias, exact) <= 1e-8


@pytest.mark.parametrize("digits", [None, 40])
def test_visits_and_times_agree(digits):
    """Expected visits from a start, summed, are the expected time from it: two ways through the same factors."""
    from decimal import localcontext

    from spanrl.planning.elimination import Budget, Elimination

    with localcontext(prec=50):
        numbers = Precise(digits).numbers
        rate = numbers(np.array([0, 0.5, 0.25, 0.1, 0, 0.2, 0.3, 0.3, 0])).reshape(3, 3)
        block = Elimination(rate, numbers(np.array([0.25, 0.7, 0.4])), Budget(1e3))
        times, visits = block.solve(numbers(np.ones(3))), block.visits(numbers(np.eye(3)[0]))
        assert float(visits.sum()) == pytest.approx(float(times[0]), rel=1e-14)
        with pytest.raises(SpanrlError, match="fills up"):
            Elimination(numbers(np.ones(9)).reshape(3, 3), numbers(np.ones(3)), Budget(1))


@pytest.mark.parametrize("chance", [1e-5, 1e-10, 1e-20, 1e-60, 1e-100])
@pytest.mark.parametrize("alone", [True, False])
def test_a_tiny_difference_of_gains_is_worth_the_whole(chance, alone):
    """State 1 leaks into state 0, which pays 1; staying in state 2 pays 0.6, and going back to 1 for ever pays 1 in the end."""
    S = 4 if alone else 3
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2))
    P[0, :, 0], r[0] = 1, 1
    P[1, :, :3], r[1] = [chance, 0.5 - chance, 0.5], 0.4
    P[2, 0, 2] = 1
    P[2, 1, 1:3], r[2] = 0.5, 0.6
    if alone:
        P[3, :, 3] = 1
    else:
        P[0, 1] = [0, 0, 1]
    result = analyse(MDP.from_dense(P, r), diameter=False)
    np.testing.assert_allclose(result.gains, [1, 1, 1, 0][:S], atol=1e-9)


def test_classes_with_equal_gains_are_no_reason_to_raise():
    """Two rooms of two states each, with the same gain and no way between them, and a hall that leads to both."""
    room = np.array([[0.25, 0.75], [0.5, 0.5]])
    P, r = np.zeros((5, 2, 5)), np.zeros((5, 2))
    P[:2, :, :2], P[2:4, :, 2:4] = room[:, None], room[::-1, None, ::-1]
    r[:4] = np.array([0.3, 0.9, 0.9, 0.3])[:, None]
    P[4, 0], P[4, 1] = [0.5, 0, 0, 0, 0.5], [0, 0.1, 0.1, 0, 0.8]
    result = analyse(MDP.from_dense(P, r))
    np.testing.assert_allclose(result.gains, 0.4 * 0.3 + 0.6 * 0.9, atol=1e-12)


@pytest.mark.parametrize("constant", [1.0, 1e9])
def test_a_constant_in_the_rewards_costs_no_digits(constant):
    """A reflecting walk on more states than decimals are tried on; without the constant it is ordinary."""
    S = 2500
    up, down = np.minimum(np.arange(S) + 1, S - 1), np.maximum(np.arange(S) - 1, 0)
    state = np.arange(S)
    P = csr_array((np.repeat([0.3, 0.4, 0.3], S), (np.tile(state, 3), np.concatenate((up, down, state)))), shape=(S, S))
    small = np.arange(S) % 10 / 10.0
    for reward in (small, np.zeros(S)):
        mdp = MDP.from_scipy([P], (constant + reward)[:, None], r_min=constant, r_max=constant + 1)
        plain = MDP.from_scipy([P], reward[:, None])
        found, expected = (evaluate(one, Policy(np.ones((S, 1)))) for one in (mdp, plain))
        assert found.gain[0] - constant == pytest.approx(expected.gain[0], abs=1e-9 + 2e-16 * constant)
        np.testing.assert_allclose(
            found.bias, expected.bias, atol=1e-6 * max(1.0, expected.span) * max(1.0, constant / 1e6)
        )


@pytest.mark.filterwarnings("error")
def test_equal_rewards_need_no_digits():
    tiny = 1e-309
    mdp = MDP.from_dense([[[1 - tiny, tiny]], [[tiny / 3, 1 - tiny / 3]]], [[0.7], [0.7]])
    result = analyse(mdp)
    assert (result.gain, result.span, result.diameter) == (0.7, 0.0, None)
    assert evaluate(mdp, result.policy).bias.tolist() == [0.0, 0.0]


def test_a_bias_beyond_the_range_of_numbers_is_named():
    tiny = 1e-309
    mdp = MDP.from_dense([[[1 - tiny, tiny]], [[tiny / 3, 1 - tiny / 3]]], [[0.2], [0.7]])
    with pytest.raises(SpanrlError, match="exceeds the range of double precision"):
        evaluate(mdp, Policy([[1], [1]]))
