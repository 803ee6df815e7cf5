"""``solve`` with difference constraints: against enumeration by LPs, a plain iteration in numpy, and Γ_c as a special case."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from spanrl import MDP, BiasDifferences, BoundedMDP, analyse, bellman, evaluate, make, solve
from spanrl.bench import garnet
from spanrl.errors import NotConvergedError, OptionError

INF = np.inf


def random_case(seed: int, S: int = 4) -> tuple[MDP, np.ndarray]:
    """Return a model and finite closed differences that cut some of its bias down, asymmetric, with a negative one."""
    rng = np.random.default_rng(seed)
    P, r = rng.dirichlet(np.full(S, 0.6), size=(S, 2)), rng.random((S, 2))
    d = rng.uniform(0.02, 0.4, size=(S, S))
    d[0, 1] = -0.01
    return MDP.from_dense(P, r), BiasDifferences(d).bounds


def gain_by_programs(mdp: MDP, d: np.ndarray) -> float:
    """Return g⁺ = max{g : Proj_d Lv ≥ v + g for some v}: for a policy π, r_π(x) + P_π v(x) + d(s, x) ≥ v(s) + g for all s, x."""
    P, r, _ = mdp.to_dense()
    S, best = len(d), -INF
    for policy in product(range(2), repeat=S):
        p, pay = P[range(S), policy], r[range(S), policy]
        A = [[*(np.eye(S)[s] - p[x]), 1.0] for s in range(S) for x in range(S)]
        b = [pay[x] + d[s, x] for s in range(S) for x in range(S)]
        found = linprog([*np.zeros(S), -1.0], A, b, bounds=[(0, 0), *[(None, None)] * S])
        best = max(best, -found.fun)
    return best


def gain_by_iteration(mdp: MDP, d: np.ndarray) -> float:
    """Iterate v ← ½v + ½Proj_d Lv in plain numpy."""
    P, r, _ = mdp.to_dense()
    v = np.zeros(len(d))
    for _ in range(20_000):
        u = ((r + P @ v).max(axis=1) + d).min(axis=1)
        if np.ptp(u - v) < 1e-10:
            return float((u - v).mean())
        v = (v + u) / 2 - (v + u)[0] / 2
    raise AssertionError


@pytest.mark.parametrize("seed", range(8))
def test_the_gain_is_that_of_the_programs(seed):
    mdp, d = random_case(seed)
    solution = solve(mdp, differences=d, policy="greedy", tol=1e-9)
    assert solution.gain == pytest.approx(gain_by_programs(mdp, d), abs=1e-7)
    assert solution.gain == pytest.approx(gain_by_iteration(mdp, d), abs=1e-8)
    assert solution.gain < analyse(mdp).gain - 1e-4, "else nothing is cut"
    assert solution.method == "value-iteration"


@pytest.mark.parametrize("seed", range(8))
def test_what_the_solution_promises(seed):
    """The bias keeps the differences, the bracket is that of the operator, and the greedy policy earns g⁺ − tol or more."""
    mdp, d = random_case(seed, 30)
    solution = solve(mdp, differences=d, policy="greedy", tol=1e-7)
    v = solution.bias
    assert (v[:, None] - v - d).max() <= 1e-12
    image = bellman(mdp, v)
    steps = (image + d).min(axis=1) - v
    assert solution.gain_bounds == pytest.approx((steps.min(), steps.max()), abs=1e-13)
    np.testing.assert_array_equal(solution.truncated, image > (image + d).min(axis=1) + 1e-12)
    assert solution.truncated.any()
    assert solution.policy.is_deterministic
    assert evaluate(mdp, solution.policy).gain.min() >= solution.gain_bounds[0] - 1e-12


@pytest.mark.parametrize("c", [0.0, 0.1, 0.4, 5.0])
def test_a_constant_is_a_span_bound_to_the_last_bit(c):
    mdp = garnet(40, 3, 4, seed=1)
    options = {"policy": "greedy", "tol": 1e-9}
    by_span = solve(mdp, span_bound=c, method="value-iteration", **options)
    for given in ({"differences": np.full((40, 40), c)}, {"differences": np.full((40, 40), INF), "span_bound": c}):
        found = solve(mdp, **given, **options)
        assert found.gain_bounds == by_span.gain_bounds
        assert found.bias.tobytes() == by_span.bias.tobytes()
        assert found.policy.probs.tolist() == by_span.policy.probs.tolist()
        assert (found.truncated == by_span.truncated).all()


def test_differences_that_the_optimal_bias_keeps_cost_nothing():
    for name in ("riverswim", "three-state", "knight-quest"):
        mdp = make(name).mdp
        best = analyse(mdp, diameter=False)
        d = np.maximum(best.bias[:, None] - best.bias, 0.0) + 1e-9
        solution = solve(mdp, differences=d, policy="greedy", tol=1e-7)
        assert solution.gain == pytest.approx(best.gain, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["box", "ball"])
def test_optimism(seed, kind):
    """g⁺ ≥ g* where the set holds the model and h* keeps the differences; and it is no more than without them."""
    mdp, _ = random_case(seed, 6)
    P, r, _ = mdp.to_dense()
    h = analyse(mdp).bias
    if kind == "box":
        low, high = np.maximum(P - 0.1, 0.0), np.minimum(P + 0.1, 1.0)
        model = BoundedMDP.from_dense(low, high, np.maximum(r - 0.05, 0), np.minimum(r + 0.05, 1))
    else:
        model = BoundedMDP.l1_ball(mdp, 0.2, np.maximum(mdp.reward - 0.05, 0), np.minimum(mdp.reward + 0.05, 1))
    d = np.maximum(h[:, None] - h, 0.01)
    solution, free = solve(model, differences=d, policy="greedy"), solve(model)
    assert analyse(mdp).gain <= solution.gain_bounds[1] + 1e-9
    assert solution.gain < free.gain - 1e-4, "the differences are worth something"
    pessimistic = solve(model, differences=d, policy="greedy", sense="pessimistic")
    assert pessimistic.gain < analyse(mdp).gain


def test_where_plain_iteration_cycles():
    """Two states that swap, paying 0 and 1: the bracket of v ← Fv never closes, the damped one does."""
    mdp = MDP.from_dense([[[0.0, 1.0]], [[1.0, 0.0]]], [[0.0], [1.0]])
    solution = solve(mdp, differences=[[0, 3], [3, 0]], policy="greedy")
    assert solution.gain == pytest.approx(0.5, abs=1e-6)
    with pytest.raises(NotConvergedError, match=r"solve: not converged after 50 sweeps"):
        solve(mdp, differences=[[0, 3], [3, 0]], policy="greedy", damping=1.0, max_sweeps=50)


def test_closed_states_have_one_gain():
    """Without differences the gains are 0 and 1; h(1) − h(0) ≤ 2 asks state 1 to be worth no more than that."""
    mdp = MDP.from_dense([[[1.0, 0.0]], [[0.0, 1.0]]], [[0.0], [1.0]])
    assert solve(mdp, differences=[[0, 2], [2, 0]], policy="greedy").gain == pytest.approx(0.0, abs=1e-6)


def test_a_start_is_projected_first():
    mdp, d = random_case(0, 30)
    cold = solve(mdp, differences=d, policy="greedy", tol=1e-9)
    warm = solve(mdp, differences=d, policy="greedy", tol=1e-9, v_init=cold.bias + 5)
    assert warm.sweeps <= 2
    far = solve(mdp, differences=d, policy="greedy", tol=1e-3, v_init=np.arange(30) * 100.0)
    assert (far.bias[:, None] - far.bias - d).max() <= 1e-9


class TestRefused:
    def test_mixtures(self):
        with pytest.raises(
            OptionError,
            match=r"solve: with differences the policy must be greedy; got 'mixture'\. Give policy='greedy'",
        ):
            solve(make("two-state").mdp, differences=np.ones((2, 2)))

    @pytest.mark.parametrize("method", ["policy-iteration", "modified-policy-iteration"])
    def test_other_methods(self, method):
        with pytest.raises(OptionError, match=rf"solve: differences need value iteration; got method '{method}'"):
            solve(make("two-state").mdp, differences=np.ones((2, 2)), policy="greedy", method=method)

    def test_other_models(self):
        with pytest.raises(OptionError, match=r"one row for each of the 2 states"):
            solve(make("two-state").mdp, differences=np.ones((3, 3)), policy="greedy")
