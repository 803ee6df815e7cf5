"""The solver against linear programmes, closed forms and brute force; its promises; its failures."""

import numpy as np
import pytest
from planning_models import garnet, optimal_gains, random_mdp

import spanrl
from spanrl import MDP, BoundedMDP, evaluate, evi, gain_curve, make, scopt, solve
from spanrl.errors import ModelError, MultichainError, NotConvergedError, OptionError
from spanrl.planning.iteration import Iteration
from spanrl.planning.options import METHODS


@pytest.mark.parametrize("seed", range(40))
def test_every_method_agrees_with_the_linear_programme(seed):
    mdp = random_mdp(np.random.default_rng(seed))
    unit = mdp.r_max - mdp.r_min
    gains = optimal_gains(mdp)
    constant = np.ptp(gains) < 1e-7 * unit
    for method in METHODS:
        if not constant:
            with pytest.raises(MultichainError, match="gain is not constant") as caught:
                solve(mdp, tol=1e-7 * unit, method=method)
            assert not caught.value.solution.converged
            continue
        solution = solve(mdp, tol=1e-7 * unit, method=method)
        low, high = solution.gain_bounds
        assert high - low <= 1e-7 * unit
        assert low - 1e-8 * unit <= gains[0] <= high + 1e-8 * unit
        assert (evaluate(mdp, solution.policy).gain >= gains[0] - 2e-7 * unit).all()


def truncated_iteration(mdp, c, sweeps=20000):
    """Iterate the damped T_c in plain numpy; return the gain bracket."""
    P, r, available = mdp.to_dense()
    v = np.zeros(mdp.n_states)
    for _ in range(sweeps):
        u = np.where(available, r + P @ v, -np.inf).max(axis=1)
        u = np.minimum(u, u.min() + c)
        d = u - v
        if np.ptp(d) < 1e-9:
            break
        v = (v + u) / 2
        v -= v[0]
    return d.min(), d.max()


@pytest.mark.parametrize("seed", range(30))
def test_scopt_agrees_with_plain_damped_iteration(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, kind=rng.choice(["deterministic", "sparse", "dense", "cycle"]))
    c = float(rng.choice([0, 0.1, 0.5, 1, 3])) * (mdp.r_max - mdp.r_min)
    low, high = truncated_iteration(mdp, c)
    solution = scopt(mdp, c, tol=1e-8)
    assert low - 1e-7 <= solution.gain <= high + 1e-7
    assert solution.span <= c + 1e-9
    chain, reward = solution.optimistic
    values = reward + chain @ solution.bias
    if solution.feasible:
        np.testing.assert_allclose(values - solution.bias, solution.gain, atol=2e-8)
    else:
        assert (values - solution.bias >= solution.gain - 2e-8).all()


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("sense", ["optimistic", "pessimistic"])
def test_bounded_models_agree_with_their_extreme_points(seed, sense):
    """With S = 2 the set of a pair is an interval of p(0): nature only ever needs its two ends."""
    rng = np.random.default_rng([seed, len(sense)])
    A = 3
    p = rng.uniform(0.2, 0.8, (2, A))
    half = rng.uniform(0, 0.2, (2, A))
    r = rng.random((2, A))
    ends = np.stack((p - half, p + half), axis=-1)
    low = np.stack((ends[..., 0], 1 - ends[..., 1]), axis=-1)
    high = np.stack((ends[..., 1], 1 - ends[..., 0]), axis=-1)
    box = BoundedMDP.from_dense(low, high, 0.9 * r, r)
    ball = BoundedMDP.l1_ball(np.stack((p, 1 - p), axis=-1), 2 * half, 0.9 * r, r)
    v = np.zeros(2)
    reward, pick = (r, np.max) if sense == "optimistic" else (0.9 * r, np.min)
    for _ in range(3000):
        inner = pick(ends * v[0] + (1 - ends) * v[1], axis=-1)
        u = (reward + inner).max(axis=1)
        d, v = u - v, u - u[0]
    for model in (box, ball):
        solution = evi(model, tol=1e-9, sense=sense)
        assert solution.gain == pytest.approx(d[0], abs=1e-8)


def test_the_paper_cycle_converges_by_damping_and_not_without():
    mdp = make("counterexample-cycle[delta=0.3]").mdp
    solution = scopt(mdp, 0.4, tol=1e-9)
    assert solution.gain == pytest.approx(0.2, abs=1e-9)  # v_{2n+1} = v_1 + nc: gain c/2
    with pytest.raises(NotConvergedError, match=r"not converged after 1000 sweeps.*max_sweeps") as caught:
        scopt(mdp, 0.4, damping=1.0, max_sweeps=1000)
    assert caught.value.solution.gain_bounds[0] <= 0.2 <= caught.value.solution.gain_bounds[1]
    partial = scopt(mdp, 0.4, damping=1.0, max_sweeps=1000, on_fail="return")
    assert not partial.converged
    assert partial.sweeps == 1000


@pytest.mark.parametrize("n", [2, 3, 50])
def test_a_periodic_chain_converges(n):
    """Relative value iteration that trusts the plain difference returns 0 here, or never ends."""
    P = np.zeros((n, 1, n))
    P[np.arange(n), 0, (np.arange(n) + 1) % n] = 1
    r = np.zeros((n, 1))
    r[0] = 1
    for method in ("auto", "value-iteration", "policy-iteration"):
        assert solve(MDP.from_dense(P, r), tol=1e-8, method=method).gain == pytest.approx(1 / n, abs=1e-8)


def test_two_slow_parts_with_one_gain_are_no_multichain():
    """The bracket stays flat for 10⁵ sweeps while the better part is found to be worth the way: not an error."""
    e = 1e-5
    P = [[[1, 0], [1 - e, e]], [[e, 1 - e], [0, 1]]]
    mdp = MDP.from_dense(P, [[0.5, 0.0], [0.0, 1.0]])
    assert solve(mdp).gain == pytest.approx(1, abs=1e-6)
    assert solve(mdp, method="value-iteration").gain == pytest.approx(1, abs=1e-6)


def test_a_bounded_multichain_model_is_named():
    """Two closed states, each with its own reward; with the pessimistic sense too."""
    low = high = np.eye(2).reshape(2, 1, 2)
    model = BoundedMDP.from_dense(low, high, [[0.0], [0.5]], [[0.2], [0.9]])
    for sense, gains in (("optimistic", ("0.9", "0.2")), ("pessimistic", ("0.5", "0"))):
        with pytest.raises(MultichainError, match=f"at least {gains[0]} from state 1, at most {gains[1]} from state 0"):
            solve(model, sense=sense)
    assert solve(model, span_bound=3.0).converged  # a finite bound always has a fixed point


def test_a_tolerance_below_rounding_ends_with_an_error():
    mdp = make("riverswim").mdp
    with pytest.raises(NotConvergedError, match="rounding allows no less"):
        solve(mdp, tol=1e-18, method="value-iteration")


def test_contraction_is_the_stopping_rule_of_the_paper():
    """Counted by hand: sp{v_{n+1} − v_n} + 2γⁿ/(1−γ) sp{v_1 − v_0} ≤ ε."""
    mdp = random_mdp(np.random.default_rng(12), S=4, A=3, kind="dense")
    P, r, available = mdp.to_dense()
    for gamma in (0.0, 0.5, 0.9):
        v, n, first, eps, c = np.zeros(4), 0, None, 1e-4, 0.3 * (mdp.r_max - mdp.r_min)
        while n < 1000:
            u = np.where(available, r + P @ v, -np.inf).max(axis=1)
            u = np.minimum(u, u.min() + c)
            width = np.ptp(u - v)
            first = width if first is None else first
            extra = 2 * gamma**n / (1 - gamma) * first if gamma else 0.0
            if width + extra <= eps:
                break
            v, n = u - u[0], n + 1
        solution = scopt(mdp, c, tol=eps, contraction=gamma, method="value-iteration")
        assert solution.sweeps == n + 1
        np.testing.assert_allclose(solution.bias, v, atol=1e-12)


def test_warm_start_saves_sweeps_and_is_clipped():
    mdp = make("knight-quest").mdp
    cold = scopt(mdp, 2.0, tol=1e-8, method="value-iteration")
    assert scopt(mdp, 2.0, tol=1e-8, v_init=scopt(mdp, 2.0, tol=1e-8).bias).sweeps == 1
    warm = scopt(mdp, 2.0, tol=1e-8, v_init=cold.bias * 1.0001, method="value-iteration")
    assert warm.sweeps < cold.sweeps
    assert warm.gain == pytest.approx(cold.gain, abs=1e-8)
    wide = scopt(mdp, 2.0, tol=1e-8, v_init=np.linspace(0, 100, 360))
    assert wide.gain == pytest.approx(cold.gain, abs=1e-8)


@pytest.mark.parametrize("budget", [1, 7, 10**6])
def test_results_do_not_depend_on_the_budget(budget, monkeypatch):
    mdp = make("knight-quest").mdp
    expected = solve(mdp, tol=1e-7)
    original = Iteration.__init__

    def patched(self, *args, **options):
        original(self, *args, **options)
        self._budget = budget

    monkeypatch.setattr(Iteration, "__init__", patched)
    got = solve(mdp, tol=1e-7)
    assert got.bias.tobytes() == expected.bias.tobytes()
    assert (got.sweeps, got.gain_bounds) == (expected.sweeps, expected.gain_bounds)


@pytest.mark.parametrize("seed", range(5))
def test_scaling_and_relabelling(seed):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, S=6, A=3, kind="dense")
    P, r, available = mdp.to_dense()
    c, a, b = 0.3 * (mdp.r_max - mdp.r_min), 2.5, -1.0
    base = scopt(mdp, c, tol=1e-10)
    scaled = scopt(
        MDP.from_dense(P, a * r + b, available=available, r_min=a * mdp.r_min + b, r_max=a * mdp.r_max + b),
        a * c,
        tol=1e-10,
    )
    assert scaled.gain == pytest.approx(a * base.gain + b, abs=1e-8)
    assert scaled.span == pytest.approx(a * base.span, abs=1e-7)
    order = rng.permutation(6)
    moved = MDP.from_dense(
        P[order][:, :, order], r[order], available=available[order], r_min=mdp.r_min, r_max=mdp.r_max
    )
    other = scopt(moved, c, tol=1e-10)
    assert other.gain == pytest.approx(base.gain, abs=1e-9)
    np.testing.assert_allclose(other.policy.probs, base.policy.probs[order], atol=1e-6)


def test_greedy_policy_and_gain_curve():
    mdp = make("two-state").mdp
    greedy = scopt(mdp, 0.75, policy="greedy")
    assert greedy.policy.is_deterministic
    assert greedy.truncated.tolist() == [False, True]
    gains = gain_curve(mdp, [0, 0.25, 0.5, 0.6, 0.75, 1, np.inf])
    np.testing.assert_allclose(gains, [0.5, 0.5, 0.5, 0.6, 0.75, 1, 1], atol=1e-6)


def test_zero_span_bound_gives_the_worst_best_reward():
    rng = np.random.default_rng(0)
    mdp = random_mdp(rng, S=5, A=3, kind="dense")
    _, r, available = mdp.to_dense()
    assert scopt(mdp, 0).gain == pytest.approx(np.where(available, r, -np.inf).max(axis=1).min(), abs=1e-9)


def test_slow_mixing_is_solved_by_fewer_backups_with_frozen_policies():
    rng = np.random.default_rng(4)
    S = 1500  # beyond what policy iteration takes over
    fast = garnet(rng, S, 4, 3)
    P = [(fast.prob * 0.002)[j] for j in range(fast.succ.size)]
    rows = np.repeat(np.arange(fast.n_pairs), 3)
    succ = np.concatenate((fast.succ.astype(int).reshape(-1, 3), fast.pair_state[:, None]), axis=1)
    prob = np.concatenate((np.array(P).reshape(-1, 3), np.full((fast.n_pairs, 1), 0.998)), axis=1)
    assert rows.size == fast.succ.size
    slow = MDP.from_pairs(
        fast.pair_state, fast.action, np.arange(fast.n_pairs + 1) * 4, succ.ravel(), prob.ravel(), fast.reward
    )
    auto, plain = solve(slow), solve(slow, method="value-iteration")
    assert auto.gain == pytest.approx(plain.gain, abs=2e-6)
    assert plain.sweeps > 1000
    assert (evaluate(slow, auto.policy).gain >= plain.gain_bounds[0] - 2e-6).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"span_bound": -1}, "span bound must be a number ≥ 0"),
        ({"span_bound": float("nan")}, "span bound must be a number ≥ 0"),
        ({"span_bound": "wide"}, "span bound must be a number ≥ 0"),
        ({"tol": 0}, "tol must be a finite number > 0"),
        ({"tol": float("nan")}, "tol must be a finite number > 0"),
        ({"method": "magic"}, "method must be one of auto"),
        ({"method": "policy-iteration", "span_bound": 1}, "works for an MDP without a span bound"),
        ({"sense": "neutral"}, "sense must be 'optimistic' or 'pessimistic'"),
        ({"ref_state": 2}, r"ref_state must be a state in 0\.\.1"),
        ({"damping": 0}, r"damping must lie in \(0, 1\]"),
        ({"contraction": 1}, r"contraction must lie in \[0, 1\)"),
        ({"contraction": 0.5, "method": "policy-iteration"}, "contraction is a rule of value iteration"),
        ({"policy": "soft"}, "policy must be 'mixture' or 'greedy'"),
        ({"max_sweeps": 0}, "max_sweeps must be at least 1"),
        ({"on_fail": "ignore"}, "on_fail must be 'raise' or 'return'"),
        ({"threads": 0}, "threads must be a whole number ≥ 1; got 0"),
        ({"threads": 1.5}, "threads must be a whole number ≥ 1"),
        ({"threads": True}, "threads must be a whole number ≥ 1"),
        ({"v_init": [0.0]}, r"v_init must have shape \(2\)"),
        ({"v_init": [0.0, np.nan]}, "v_init.*must be finite"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises((OptionError, ModelError), match=words):
        solve(make("two-state").mdp, **options)


def test_wrong_models_are_named():
    with pytest.raises(OptionError, match="the model must be an MDP or a BoundedMDP; got Env"):
        solve(make("two-state"))
    with pytest.raises(OptionError, match="must be a BoundedMDP; got MDP"):
        evi(make("two-state").mdp)


def test_solution_prints_its_certificate():
    text = str(scopt(make("two-state").mdp, 0.75))
    assert "gain 0.75, certified in [0.75, 0.75]" in text
    assert "truncated in 1 of 2 states" in text
    assert "converged" in repr(spanrl.solve(make("two-state").mdp))
