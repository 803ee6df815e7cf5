"""The short way to the bracket: certified by all actions, whatever lists and leaps did before."""

import numpy as np
import pytest
from planning_models import garnet, optimal_gains, random_mdp

from spanrl import MDP, Policy, bellman, evaluate, make, solve
from spanrl.errors import MultichainError
from spanrl.planning import threads
from spanrl.planning.iteration import Iteration


def halves(rng, S, leave):
    """Return two Garnets that are left with probability ``leave`` a step."""
    parts = [garnet(rng, S // 2, 3, 4) for _ in range(2)]
    succ = np.concatenate([part.succ.reshape(-1, 4).astype(int) + k * (S // 2) for k, part in enumerate(parts)])
    other = (np.concatenate([part.pair_state for part in parts]) + np.repeat([S // 2, 0], S // 2 * 3))[:, None]
    prob = np.concatenate([part.prob.reshape(-1, 4) for part in parts]) * (1 - leave)
    succ, prob = np.concatenate((succ, other), axis=1), np.concatenate((prob, np.full((S * 3, 1), leave)), axis=1)
    order = np.argsort(succ, axis=1)
    state, action = np.divmod(np.arange(S * 3), 3)
    reward = np.concatenate((parts[0].reward, 0.9 * parts[1].reward))
    rows = (np.take_along_axis(array, order, axis=1).ravel() for array in (succ, prob))
    return MDP.from_pairs(state, action, np.arange(S * 3 + 1) * 5, *rows, reward)


@pytest.fixture
def hastened(monkeypatch):
    """Note whether the short way closed the bracket."""
    closed = []
    original = Iteration.hasten

    def spy(self):
        original(self)
        closed.append(self.converged)

    monkeypatch.setattr(Iteration, "hasten", spy)
    return closed


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("kind", ["garnet", "many actions", "one action", "halves", "knight-quest"])
def test_the_bracket_is_that_of_all_actions_at_the_bias(kind, tol, hastened):
    rng = np.random.default_rng(8)
    mdp = {
        "garnet": lambda: garnet(rng, 300, 4, 5),
        "many actions": lambda: garnet(rng, 60, 20, 3),
        "one action": lambda: garnet(rng, 200, 1, 4),
        "halves": lambda: halves(rng, 100, 1e-3),
        "knight-quest": lambda: make("knight-quest").mdp,
    }[kind]()
    solution = solve(mdp, tol=tol)
    assert hastened == [True]
    step = bellman(mdp, solution.bias) - solution.bias
    low, high = solution.gain_bounds
    assert high - low <= tol
    assert low <= step.min() + 1e-13
    assert high >= step.max() - 1e-13
    plain = solve(mdp, tol=tol, method="value-iteration")
    assert low <= plain.gain_bounds[1]
    assert high >= plain.gain_bounds[0]
    assert Policy(solution.policy.probs) == solution.policy  # it was not checked, and passes
    gains = evaluate(mdp, solution.policy).gain
    assert (gains >= low - 1e-9).all()
    assert (gains <= high + 1e-9).all()


def test_one_slow_mode_costs_few_sweeps(hastened):
    mdp = halves(np.random.default_rng(1), 200, 1e-3)
    quick, plain = solve(mdp), solve(mdp, method="value-iteration")
    assert hastened == [True]
    assert quick.sweeps < plain.sweeps / 20
    assert quick.gain == pytest.approx(plain.gain, abs=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_gains_of_the_linear_programme_from_anywhere(seed):
    """Also from far away, where the first lists and leaps mislead."""
    rng = np.random.default_rng([seed, 1])
    mdp = random_mdp(rng)
    gains, v = optimal_gains(mdp), rng.normal(size=mdp.n_states) * 10.0 ** rng.integers(-2, 4)
    if np.ptp(gains) > 1e-7 * (mdp.r_max - mdp.r_min):
        with pytest.raises(MultichainError, match="gain is not constant"):
            solve(mdp, v_init=v)
        return
    low, high = solve(mdp, v_init=v).gain_bounds
    assert high - low <= 1e-6
    assert low - 1e-7 <= gains[0] <= high + 1e-7


@pytest.mark.parametrize("most", [1, 2, 3, 7, 10, 20, 40])
def test_bounds_hold_when_the_sweeps_run_out(most):
    """A list has a bracket as well, but not one that bounds the gain."""
    mdp = garnet(np.random.default_rng(3), 300, 4, 5)
    gain = solve(mdp, tol=1e-10).gain
    partial = solve(mdp, tol=1e-12, max_sweeps=most, on_fail="return")
    low, high = partial.gain_bounds
    assert partial.sweeps == most
    assert low - 1e-12 <= gain <= high + 1e-12
    assert not partial.converged


def test_left_to_plain_sweeps(hastened, monkeypatch):
    """Where the options say how to iterate, with a span bound, and where threads may share the sweeps."""
    mdp = garnet(np.random.default_rng(3), 50, 3, 4)
    solve(mdp, damping=0.9)
    solve(mdp, contraction=0.5)
    solve(mdp, span_bound=0.5)
    monkeypatch.setattr(threads, "PAYS", mdp.succ.size)
    solve(mdp)
    assert hastened == [False] * 4
    monkeypatch.setattr(threads, "PAYS", mdp.succ.size + 1)
    solve(mdp)
    assert hastened[-1]


def test_a_warm_start_is_certified_at_once():
    mdp = garnet(np.random.default_rng(3), 200, 4, 5)
    cold = solve(mdp, tol=1e-9)
    warm = solve(mdp, tol=1e-9, v_init=cold.bias)
    assert warm.sweeps == 1
    assert warm.policy == cold.policy


def test_a_solve_that_is_cut_off_tells_of_what_it_returns():
    """The policy pays at least the lower end of the bracket, wherever sweeps end: also just after a leap, or one that was taken back."""
    e, d = 1e-7, 3.0359277177299385e-09
    P = [[[1 - e, e], [1.0, 0.0], [1 - e, e]], [[d, 1 - d], [0.0, 1.0], [e, 1 - e]]]
    reward = [
        [0.20410693099089938, 0.3757487497427745, 0.2067249297934024],
        [0.6683974177457588, 0.5806272772691092, 0.47158438577265827],
    ]
    mdp = MDP.from_dense(P, reward)
    for most in range(1, 60):
        found = solve(mdp, tol=1e-8, max_sweeps=most, on_fail="return")
        assert not found.converged
        assert evaluate(mdp, found.policy).gain.min() >= found.gain_bounds[0] - 1e-8, most
