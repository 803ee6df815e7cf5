"""Rounds of policy improvement: every way of evaluating a policy ends with the same certified gain, also on models made to break it."""

import re
import warnings
from fractions import Fraction

import numpy as np
import pytest
from planning_models import garnet, optimal_gains, random_mdp

from spanrl import MDP, BoundedMDP, analyse, evaluate, gain_curve, make, scopt, solve
from spanrl.errors import MultichainError, NotConvergedError, OptionError
from spanrl.planning import resolvent, rounds
from spanrl.planning.components import classify
from spanrl.planning.iteration import Iteration

WAYS = ["sweeps", "krylov", "factors"]


@pytest.fixture
def forced(monkeypatch):
    """Evaluate every policy in one way, whatever it costs."""

    def force(way):
        monkeypatch.setattr(rounds, "_SYSTEMS", np.inf if way == "sweeps" else 0.0)
        monkeypatch.setattr(rounds, "_WARM", 0)
        original = resolvent.Resolvent.__init__

        def one_way(self, memory, **options):
            original(self, 0.0 if way == "krylov" else memory, **options)
            self._prefers_factors = way == "factors"

        monkeypatch.setattr(resolvent.Resolvent, "__init__", one_way)

    return force


def ring(S, seed=0, other=2):
    """A deterministic ring, one step or ``other`` steps (0: stay): policies are periodic."""
    rng, s = np.random.default_rng(seed), np.arange(S)
    succ = np.stack(((s + 1) % S, (s + other) % S), axis=1).ravel()
    return MDP.from_pairs(
        np.repeat(s, 2), np.tile([0, 1], S), np.arange(2 * S + 1), succ, np.ones(2 * S), rng.random(2 * S)
    )


def river(S):
    """A long river: the best action spreads from its end, and bad policies have a bias of 3ˢ."""
    return make(f"riverswim[n_states={S}]").mdp


def clusters(k, m, eps, seed=0):
    """k parts that are left with probability eps."""
    rng, S, A = np.random.default_rng(seed), k * m, 2
    P = np.zeros((S, A, S))
    for s in range(S):
        part = s // m * m
        for a in range(A):
            P[s, a, part : part + m] = rng.dirichlet(np.ones(m)) * (1 - eps)
            P[s, a, (part + m + rng.integers(m)) % S] += eps
    return MDP.from_dense(P, rng.random((S, A)) * np.repeat(rng.random(k), m)[:, None])


EARLIER = {("garnet", "krylov"), ("garnet", "factors")}
"""Where the first policies are the last ones: rounds of sweeps end the solve before a system is needed."""

MODELS = {
    "garnet": lambda: garnet(np.random.default_rng(0), 60, 3, 4),
    "ring": lambda: ring(51),
    "river": lambda: river(40),
    "clusters": lambda: clusters(4, 6, 1e-4),
    "knight-quest": lambda: make("knight-quest").mdp,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", MODELS)
def test_every_way_ends_with_the_optimal_gain(kind, way, forced):
    mdp = MODELS[kind]()
    wanted = analyse(mdp, diameter=False).gain if kind in ("clusters", "knight-quest") else optimal_gains(mdp)[0]
    forced(way)
    solution = solve(mdp, tol=1e-7)
    low, high = solution.gain_bounds
    assert high - low <= 1e-7
    assert low - 1e-8 <= wanted <= high + 1e-8
    assert evaluate(mdp, solution.policy).gain.min() >= low - 1e-9
    named = {
        "sweeps": "modified-policy-iteration",
        "krylov": "policy-iteration, Krylov",
        "factors": "policy-iteration, factorised",
    }
    assert solution.method == named[way] or (kind, way) in EARLIER
    assert (solution.factor_size > 0) == (solution.method == named["factors"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(60))
def test_no_false_bracket_on_small_models(seed, way, forced):
    """Deterministic, periodic, slow, multichain: a gain that holds, or an error that names two gains that do."""
    forced(way)
    mdp = random_mdp(np.random.default_rng(seed))
    gains = optimal_gains(mdp)
    try:
        solution = solve(mdp)
    except MultichainError:
        assert np.ptp(gains) > 1e-9
        assert classify(mdp) == "multichain"
        return
    low, high = solution.gain_bounds
    assert low - 1e-9 <= gains.min()
    assert gains.max() <= high + 1e-9
    assert evaluate(mdp, solution.policy).gain.min() >= low - 1e-9


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("part", [0.0, 0.3, 0.7, 0.99, 1.5])
@pytest.mark.parametrize("kind", ["garnet", "ring", "river", "clusters"])
def test_span_bounds_agree_with_value_iteration(kind, part, way, forced):
    mdp = MODELS[kind]()
    c = part * solve(mdp).span if kind != "clusters" else 10 * part
    wanted = scopt(mdp, c, method="value-iteration", tol=1e-5, on_fail="return", max_sweeps=10**5)
    forced(way)
    solution = scopt(mdp, c, tol=1e-6)
    low, high = solution.gain_bounds
    assert wanted.gain_bounds[0] <= high + 1e-12
    assert low <= wanted.gain_bounds[1] + 1e-12
    assert solution.span <= c + 1e-9
    P, r, available = mdp.to_dense()
    u = np.where(available, r + P @ solution.bias, -np.inf).max(axis=1)
    gaps = np.minimum(u, u.min() + c) - solution.bias
    assert (low, high) == pytest.approx((gaps.min(), gaps.max()), rel=0, abs=1e-11 * (1 + np.abs(solution.bias).max()))


@pytest.mark.parametrize("way", ["krylov", "factors"])
@pytest.mark.parametrize("part", [0.3, 0.9, np.inf])
@pytest.mark.parametrize("kind", ["garnet", "ring", "river", "clusters"])
def test_every_bracket_on_the_way_is_that_of_a_full_sweep(kind, part, way, forced, monkeypatch):
    """Not only the last one: spreading keeps Lv up to date state by state, and truncates it anew."""
    mdp = MODELS[kind]()
    c = part * (10.0 if kind == "clusters" else solve(mdp).span)
    P, r, available = mdp.to_dense()
    forced(way)
    original, seen = Iteration.test, []

    def compared(self):
        u = np.where(available, r + P @ self.v, -np.inf).max(axis=1)
        np.testing.assert_allclose(self.u, np.minimum(u, u.min() + c), rtol=0, atol=1e-12 * (1 + np.abs(u).max()))
        seen.append(1)
        original(self)

    monkeypatch.setattr(Iteration, "test", compared)
    scopt(mdp, c)
    assert seen or part == np.inf  # fast rounds test theirs in compiled code


@pytest.mark.parametrize("sense", ["optimistic", "pessimistic"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["box", "ball"])
def test_sets_agree_with_value_iteration(kind, way, sense, forced):
    mdp = clusters(3, 8, 1e-3)
    if kind == "ball":
        model = BoundedMDP.l1_ball(mdp, 1e-4, mdp.reward * 0.9, mdp.reward)
    else:
        low, high = np.maximum(mdp.prob - 1e-4, 0), np.minimum(mdp.prob + 1e-4, 1)
        table = (mdp.pair_state, mdp.action, mdp.succ_ptr, mdp.succ)
        model = BoundedMDP.from_pairs(*table, low, high, np.full(mdp.n_pairs, 1e-5), mdp.reward * 0.9, mdp.reward)
    wanted = solve(model, sense=sense, method="value-iteration")
    forced(way)
    solution = solve(model, sense=sense)
    assert solution.gain == pytest.approx(wanted.gain, abs=2e-6)


@pytest.mark.parametrize("leave", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("way", WAYS)
def test_nearly_separate_halves_in_exact_fractions(leave, way, forced):
    """Two states, left with chances a and b: the gain is (b r₀ + a r₁)/(a + b), the bias as large as 1/a."""
    forced(way)
    a, b = leave, 3 * leave
    mdp = MDP.from_dense([[[1 - a, a]], [[b, 1 - b]]], [[0.25], [0.75]])
    p, q = Fraction(mdp.prob[1]), Fraction(mdp.prob[2])
    exact = (q * Fraction(1, 4) + p * Fraction(3, 4)) / (p + q)
    low, high = solve(mdp, tol=1e-6, on_fail="return").gain_bounds
    assert Fraction(low) <= exact <= Fraction(high)


@pytest.mark.parametrize("back", [2.0**-27, 2.0**-30, 2.0**-33])
def test_biases_of_a_billion_are_certified(back):
    """It pays .97 to wait for a rare jump, and .95 for ever after: the bias is .03 over its chance, and all is exact in fractions."""
    high, low = 1 - 2.0**-5, 1 - 2.0**-4
    mdp = MDP.from_dense([[[1, 0], [1 - back, back]], [[0, 1], [0, 1]]], [[0.5, high], [0.25, low]])
    solution = solve(mdp, tol=1e-6)
    assert solution.gain_bounds[0] <= low <= solution.gain_bounds[1]
    assert solution.span == pytest.approx((high - low) / back, rel=1e-3)
    assert solution.policy.actions.tolist() == [1, 1]
    assert solution.sweeps < 1000


def test_a_bias_of_a_hundred_million_leaves_nine_digits_of_the_gain():
    """What is still to be evaluated is summed from differences: as u − v it would be lost beside v."""
    e, f, reward = 2.0**-16, 2.0**-30, [14 / 1024, 648 / 1024, 212 / 1024]
    solution = solve(
        MDP.from_dense([[[1, 0, 0]], [[0, 1 - e, e]], [[f, 0, 1 - f]]], np.array(reward)[:, None]), tol=1e-9
    )
    assert solution.gain_bounds[0] <= reward[0] <= solution.gain_bounds[1]
    assert solution.bias[2] - solution.bias[0] == pytest.approx((reward[2] - reward[0]) / f, abs=1e-9 / f)
    assert solution.bias[1] - solution.bias[2] == pytest.approx((reward[1] - reward[0]) / e, abs=2e-9 / e)


def test_a_constant_in_the_values_costs_no_digits():
    """The first policy loses every tenth step: its values differ by millions, and spreading lifts all states to the best of them."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 2] = P[0, 1, 0] = P[1, 0, 0] = P[1, 1, 2] = P[2, 0, 1] = P[2, 1, 1] = 1.0
    solution = solve(MDP.from_dense(P, [[0.37, 0.862], [0.17, 0.717], [0.319, 0.844]]), tol=1e-9)
    assert solution.gain_bounds[0] <= 0.862 <= solution.gain_bounds[1]
    assert solution.sweeps < 30


def test_no_leap_undoes_what_a_system_found():
    """Three fast states, and one nearly absorbing: a leap over the slow mode threw it a million below the others, again and again."""
    e, f, g, h = 2.0**-9, 2.0**-12, 2.0**-31, 2.0**-11
    P = np.zeros((4, 2, 4))
    P[0, 0, [0, 3]], P[0, 1, [0, 1]] = (1 - e, e), (1 - 2.0**-4, 2.0**-4)
    P[1, 0, [1, 2]], P[1, 1, [1, 3]] = (1 - f, f), (1 - 2.0**-4, 2.0**-4)
    P[2, 0, 2], P[2, 1, [1, 2]] = 1, (g, 1 - g)
    P[3, 0, [0, 3]], P[3, 1, 3] = (h, 1 - h), 1
    mdp = MDP.from_dense(P, np.array([[70, 387], [169, 314], [414, 913], [62, 715]]) / 1024)
    solution = solve(mdp)
    assert solution.gain == pytest.approx(analyse(mdp).gain, abs=1e-6)
    assert solution.sweeps < 20_000  # more than 10⁶ otherwise


def overloaded(K):
    """Admission to a queue with more customers than it can serve: thresholds of good policies jump from one end to the other."""
    n = np.arange(K + 1)
    succ = np.stack((np.minimum(n + 1, K), np.maximum(n - 1, 0), n, np.maximum(n - 1, 0)), axis=1)
    reward = np.stack((0.055 * K * (n < K) - 0.02 * n, -0.02 * n), axis=1)
    prob, ptr = np.tile([0.55, 0.45], 2 * K + 2), np.arange(0, 4 * K + 5, 2)
    reward = (reward - reward.min()) / np.ptp(reward)
    return MDP.from_pairs(
        np.repeat(n, 2), np.tile([0, 1], K + 1), ptr, succ.ravel(), prob, reward.ravel(), r_min=0.0, r_max=1.0
    )


def test_what_spreading_hides_is_not_lost(monkeypatch):
    """In a state where it raises the values around, the action of the frozen policy can become the best again."""
    mdp = overloaded(1000)
    found = solve(mdp)
    assert found.gain == pytest.approx(solve(mdp, method="policy-iteration").gain, abs=1e-6)
    monkeypatch.setattr(rounds, "_HIDDEN", 0.0)
    assert found.sweeps < 0.6 * solve(mdp).sweeps


def test_several_recurrent_classes_on_the_way(forced):
    """Staying looks best everywhere at first: every greedy policy at the start has as many classes as there are states."""
    S = 30
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2))
    P[np.arange(S), 0, np.arange(S)] = 1
    P[np.arange(S), 1, (np.arange(S) + 1) % S] = 1
    r[:, 0] = np.linspace(0.1, 0.9, S)
    for way in WAYS:
        forced(way)
        assert solve(MDP.from_dense(P, r)).gain == pytest.approx(0.9, abs=1e-6)


def test_a_long_river_takes_few_sweeps():
    """Plain value iteration needs some 60 000; the front crosses it while news spreads, not sweep by sweep."""
    assert solve(river(1000)).sweeps < 1000


def test_a_ring_takes_few_sweeps():
    """Plain value iteration needs 250 000, and damping."""
    assert solve(ring(1000)).sweeps < 1000


def test_factors_keep_within_the_memory():
    mdp = river(500)
    within = solve(mdp)
    assert within.method == "policy-iteration, factorised"
    assert 0 < within.factor_size * 8 < 2**26
    without = solve(mdp, memory=0)
    assert without.factor_size == 0
    assert without.gain == pytest.approx(within.gain, abs=2e-6)
    with pytest.raises(OptionError, match="memory must be a number of bytes ≥ 0; got -1"):
        solve(mdp, memory=-1)


@pytest.fixture
def impatient(monkeypatch):
    """Let factors that are not allowed be told, even if nothing is lost."""
    monkeypatch.setattr(resolvent, "_SECOND", -np.inf)
    monkeypatch.setattr(resolvent, "_MISSED", -np.inf)


def quietly(mdp, **options):
    """Solve, and fail where a warning is given."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return solve(mdp, **options)


def test_it_says_what_factors_would_need_where_they_are_missed(impatient):
    mdp, said = river(500), r"need about (.*) MB, and memory allows 0.01 MB.* give memory=(\S*) \("
    with pytest.warns(UserWarning, match=said) as caught:
        without = solve(mdp, memory=1e4)
    assert without.factor_size == 0
    assert [one.filename for one in caught] == [__file__]
    found = re.search(said, str(caught[0].message))
    within = quietly(mdp, memory=float(found[2]))
    assert within.factor_size > 0
    numbers, lists = 8 * within.factor_size, 150 * mdp.n_states
    assert numbers <= float(found[1]) * 1e6 <= numbers + lists


def test_the_warning_points_to_who_called_under_whatever_name(impatient):
    with pytest.warns(UserWarning, match="need about") as caught:
        scopt(river(500), np.inf, memory=1e4)
    with pytest.warns(UserWarning, match="need about") as caught_too:
        gain_curve(river(500), [np.inf], memory=1e4)
    assert [one.filename for one in (*caught, *caught_too)] == [__file__, __file__]


def test_it_says_nothing_where_little_is_lost():
    assert quietly(river(500), memory=1e4).factor_size == 0


@pytest.mark.parametrize("mdp", [river(500), make("riverswim[n_states=20]").mdp])
def test_it_says_nothing_where_factors_are_forbidden(impatient, mdp):
    assert quietly(mdp, memory=0).factor_size == 0


def test_without_narrow_separators_there_is_nothing_to_factorise_whatever_the_memory(forced):
    forced("factors")
    solution = quietly(garnet(np.random.default_rng(0), 3000, 2, 3), memory=np.inf)
    assert (solution.converged, solution.factor_size) == (True, 0)


def test_the_order_of_factors_that_are_not_allowed_is_let_go(monkeypatch):
    made, original = [], resolvent.Resolvent.__init__

    def noted(self, *args, **options):
        made.append(self)
        original(self, *args, **options)

    monkeypatch.setattr(resolvent.Resolvent, "__init__", noted)
    solve(river(500), memory=1e4)
    assert made[0]._refused is not None
    assert made[0]._elimination is None


def test_on_some_hundred_states_no_iteration_is_tried_before_the_factors_are_looked_at(monkeypatch):
    monkeypatch.setattr(resolvent, "new_system", None)
    assert solve(river(200)).factor_size > 0
    monkeypatch.setattr(resolvent, "_SMALL", 0.0)
    with pytest.raises(TypeError):
        solve(river(200))


def test_seconds_and_method_are_told():
    solution = solve(river(100))
    assert set(solution.seconds) == {"sweeps", "linear systems", "total"}
    assert 0 < solution.seconds["sweeps"] < solution.seconds["total"]
    assert solution.method in str(solution)
    assert solve(river(10), method="value-iteration").method == "value-iteration"
    assert solve(river(10), method="modified-policy-iteration").method == "modified-policy-iteration"


def test_max_sweeps_ends_the_rounds():
    with pytest.raises(NotConvergedError, match="max_sweeps is reached"):
        solve(river(500), max_sweeps=40)
    partial = solve(river(500), max_sweeps=40, on_fail="return")
    assert partial.sweeps <= 41  # what is returned is certified by one more
    assert partial.gain_bounds[0] <= solve(river(500)).gain <= partial.gain_bounds[1]


@pytest.mark.parametrize("most", [1, 2, 3, 7, 12, 30])
@pytest.mark.parametrize("c", [0.7, np.inf])
@pytest.mark.parametrize("kind", MODELS)
def test_no_more_sweeps_are_made_than_allowed(kind, c, most):
    """One more certifies what is returned."""
    mdp = MODELS[kind]()
    partial = scopt(mdp, c, method="modified-policy-iteration", tol=1e-12, max_sweeps=most, on_fail="return")
    assert partial.sweeps <= most + 1
    low, high = partial.gain_bounds
    wanted = scopt(mdp, c, tol=1e-5)
    assert low <= wanted.gain_bounds[1]
    assert wanted.gain_bounds[0] <= high


def test_a_bar_appears_where_a_solve_takes_long(monkeypatch, capsys):
    monkeypatch.setattr("spanrl.planning.progress._PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")  # rich draws no bars on a dumb one
    solve(river(300), progress=True)
    assert "sweeps, width" in capsys.readouterr().err
    solve(river(300))
    assert capsys.readouterr().err == ""


def test_taken_back_steps_leave_the_certificate_intact(monkeypatch):
    """Systems solved wrongly on purpose: the bracket stays true, and the solve still ends."""
    original, calls = resolvent.Resolvent.solve, []

    def wrong(self, *args, **options):
        x = original(self, *args, **options)
        calls.append(1)
        return x if x is None or len(calls) % 2 == 0 else -x

    monkeypatch.setattr(resolvent.Resolvent, "solve", wrong)
    monkeypatch.setattr(rounds, "_SYSTEMS", 0.0)
    mdp = clusters(4, 6, 1e-3)
    wanted = optimal_gains(mdp)[0]
    low, high = solve(mdp).gain_bounds
    assert len(calls) > 1
    assert low - 1e-9 <= wanted <= high + 1e-9


def test_a_system_that_has_nothing_to_do_costs_nothing():
    """Rewards far below 1: the residual of a system is 0 to its own precision."""
    mdp = clusters(3, 4, 1e-2)
    tiny = MDP.from_pairs(mdp.pair_state, mdp.action, mdp.succ_ptr, mdp.succ, mdp.prob, mdp.reward * 1e-200)
    assert solve(tiny, tol=1e-206).gain == pytest.approx(solve(mdp).gain * 1e-200, rel=1e-5)


def test_factors_of_another_policy_are_not_used(monkeypatch):
    """What is solved again belongs to the chain that was factorised."""
    factorised, original = [], resolvent.Resolvent.solve_again
    factorise = resolvent.factorise

    def kept(chain, *args):
        factorised[:] = [chain.prob[: chain.ptr[-1]].copy(), chain.succ[: chain.ptr[-1]].copy()]
        return factorise(chain, *args)

    def checked(self, d):
        found = original(self, d)
        if found is not None:
            chain = rounds_of[-1]._policy.chain
            np.testing.assert_array_equal(factorised[0], chain.prob[: chain.ptr[-1]])
            np.testing.assert_array_equal(factorised[1], chain.succ[: chain.ptr[-1]])
            used.append(1)
        return found

    rounds_of, used, start = [], [], rounds.Rounds.__init__

    def noted(self, *args, **options):
        rounds_of.append(self)
        start(self, *args, **options)

    monkeypatch.setattr(rounds.Rounds, "__init__", noted)
    monkeypatch.setattr(resolvent, "factorise", kept)
    monkeypatch.setattr(resolvent.Resolvent, "solve_again", checked)
    for mdp in (river(200), ring(300), ring(301, 1), ring(300, other=0), ring(200, other=0), ring(1000, other=0)):
        for tol in (1e-6, 1e-9):
            solve(mdp, tol=tol)
    assert used


@pytest.mark.parametrize("name", ["knight-quest", "two-queues", "riverswim[n_states=60]"])
def test_bits_do_not_depend_on_what_stood_in_memory(name, monkeypatch):
    """New arrays full of NaN change nothing: whatever is read was written before."""
    mdp = make(name).mdp
    first = solve(mdp)
    empty, empty_like = np.empty, np.empty_like

    def spoilt(array):
        if array.dtype.kind == "f":
            array.fill(np.nan)
        return array

    monkeypatch.setattr(np, "empty", lambda *args, **kw: spoilt(empty(*args, **kw)))
    monkeypatch.setattr(np, "empty_like", lambda *args, **kw: spoilt(empty_like(*args, **kw)))
    again = solve(mdp)
    assert (again.sweeps, again.gain_bounds, again.method) == (first.sweeps, first.gain_bounds, first.method)
    assert again.bias.tobytes() == first.bias.tobytes()
