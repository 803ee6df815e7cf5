"""Costs and ranges: a model of costs is the model of the negative rewards, told in costs wherever a number is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp
from model_samples import entries, pairs_of, random_dense, rewrite, small_mdp

import spanrl
from spanrl import MDP, BoundedMDP, Env, analyse, evaluate, gain_curve, learn, simulate, solve
from spanrl.errors import ModelError, ModelFileError, MultichainError

P, COST, AVAILABLE = random_dense(np.random.default_rng(3), S=6, A=3)
COST = 4.0 * COST + 1.0
REWARDS = MDP.from_dense(P, -COST, available=AVAILABLE, r_min=-5.0, r_max=0.0)
COSTS = MDP.from_dense(P, COST, available=AVAILABLE, r_min=0.0, r_max=5.0, costs=True)


def same_but_sense(one: MDP, other: MDP) -> bool:
    """Tell whether two models differ by their sense alone."""
    arrays = all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in MDP.ARRAYS)
    return arrays and (one.r_min, one.r_max, one.costs, other.costs) == (other.r_min, other.r_max, True, False)


# --- constructors ---------------------------------------------------------------------------------------------------


def test_every_constructor_takes_costs() -> None:
    assert same_but_sense(COSTS, REWARDS)
    options: dict[str, Any] = {"r_min": 0.0, "r_max": 5.0, "costs": True}
    assert MDP.from_pairs(**pairs_of(P, COST, AVAILABLE), n_actions=3, **options) == COSTS
    assert MDP.from_scipy([sp.csr_array(P[:, a]) for a in range(3)], COST, available=AVAILABLE, **options) == COSTS
    states, actions = COSTS.pair_state.tolist(), COSTS.action.tolist()
    pairs = {
        (s, a): [(p, t, COST[s, a]) for t, p in COSTS.successors(s, a)] for s, a in zip(states, actions, strict=True)
    }
    env = Env.from_outcomes(pairs, n_actions=3, **options)
    np.testing.assert_allclose(env.mdp.reward, COSTS.reward, rtol=1e-14)
    assert env.mdp.costs
    assert env.outcomes(0, int(COSTS.action[0]))[0].reward < 0
    assert Env.from_mdp(COSTS).mdp.costs


def test_a_gymnasium_table_of_costs() -> None:
    class Table:
        P = {0: {0: [(1.0, 0, 3.0, False)], 1: [(0.5, 0, 1.0, False), (0.5, 0, 2.0, True)]}}  # noqa: RUF012

    mdp = MDP.from_gymnasium(Table(), start=0, costs=True)
    assert (mdp.costs, mdp.reward.tolist(), mdp.r_min, mdp.r_max) == (True, [3.0, 1.5], 1.0, 3.0), (
        "Gymnasium pays rewards"
    )
    assert solve(mdp).gain == pytest.approx(-3.0), "the best reward is the least cost"


def test_bounded_models_swap_the_ends() -> None:
    low, high = COST - 0.5, COST + 1.0
    ends: dict[str, Any] = {"available": AVAILABLE}
    boxes = [
        BoundedMDP.from_dense(P, P, low, high, **ends, costs=True),
        BoundedMDP.from_dense(P, P, -high, -low, **ends),
    ]
    balls = [BoundedMDP.l1_ball(P, 0.2, low, high, **ends, costs=True), BoundedMDP.l1_ball(P, 0.2, -high, -low, **ends)]
    for costs, rewards in (boxes, balls):
        np.testing.assert_array_equal(costs.r_low, rewards.r_low)
        np.testing.assert_array_equal(costs.r_high, rewards.r_high)
        assert (costs.r_min, costs.r_max) == (rewards.r_min, rewards.r_max)
        for sense in ("optimistic", "pessimistic"):
            mine, theirs = (solve(model, sense=sense, tol=1e-9) for model in (costs, rewards))
            assert mine.gain == -theirs.gain
        assert solve(costs).gain < solve(costs, sense="pessimistic").gain
    assert BoundedMDP.kl_ball(COSTS, 0.1, 1.0, 5.0).costs, "the sense of the centre"
    with pytest.raises(ModelError, match=r"r_low\[s=0, a=0\] = 3 > r_high = 2, r_low must not exceed"):
        BoundedMDP.from_dense([[[1.0]]], [[[1.0]]], [[3.0]], [[2.0]], costs=True)


def test_no_cost_is_minus_zero() -> None:
    mdp = MDP.from_dense([[[1.0]]], [[0.0]], costs=True)
    assert not np.signbit(mdp.reward).any()
    assert str(solve(mdp).gain) == "0.0"


# --- results --------------------------------------------------------------------------------------------------------


def test_solvers_answer_in_costs() -> None:
    mine, theirs = solve(COSTS, tol=1e-9), solve(REWARDS, tol=1e-9)
    assert (mine.gain, mine.gain_bounds) == (-theirs.gain, (-theirs.gain_bounds[1], -theirs.gain_bounds[0]))
    np.testing.assert_array_equal(mine.bias, 0.0 - theirs.bias)
    assert (mine.policy, mine.span, mine.residual) == (theirs.policy, theirs.span, theirs.residual)
    assert mine.gain == pytest.approx(analyse(COSTS).gain, abs=1e-8)
    value = evaluate(COSTS, mine.policy)
    np.testing.assert_allclose(value.gain, mine.gain, atol=1e-8)
    np.testing.assert_allclose(np.ptp(value.bias - mine.bias), 0.0, atol=1e-6)
    assert analyse(COSTS).gains.tolist() == (-analyse(REWARDS).gains).tolist()
    assert "average cost" in str(mine)
    assert "average cost" in repr(mine)
    assert "average cost" in repr(value)
    assert "optimal average cost" in str(analyse(COSTS))
    assert "costs in [0, 5], from 1" in str(COSTS)


def test_what_is_given_to_a_solver_is_in_costs_too() -> None:
    mine = solve(COSTS, tol=1e-9)
    again = solve(COSTS, tol=1e-9, v_init=mine.bias)
    assert again.sweeps < mine.sweeps
    span = mine.span
    curves = [gain_curve(model, [0.2 * span, 2 * span], tol=1e-9) for model in (COSTS, REWARDS)]
    np.testing.assert_array_equal(curves[0], -curves[1])
    assert curves[0][0] > curves[0][1], "a bound costs something"


def test_differences_of_the_bias_of_costs() -> None:
    """h(s) − h(s') ≤ d(s, s') holds for the bias that is returned, in both senses."""
    d = np.full((6, 6), 2.0 * solve(COSTS).span)
    d[1, 0], d[0, 2] = -0.3, 0.1
    options: dict[str, Any] = {"policy": "greedy", "tol": 1e-7}
    mine = solve(COSTS, differences=d, **options)
    assert (mine.bias[:, None] - mine.bias <= d + 1e-9).all()
    theirs = solve(REWARDS, differences=d.T, **options)
    assert mine.gain == -theirs.gain
    assert mine.gain > solve(COSTS).gain


def test_a_cost_that_differs_between_states_is_named() -> None:
    mdp = MDP.from_dense(np.eye(2)[:, None, :], [[3.0], [7.0]], costs=True)
    with pytest.raises(
        MultichainError, match="optimal cost is not constant: at most 3 from state 0, at least 7 from state 1"
    ):
        solve(mdp)
    assert analyse(mdp).gains.tolist() == [3.0, 7.0]


def test_operators_are_the_papers() -> None:
    np.testing.assert_array_equal(spanrl.bellman(COSTS, np.zeros(6)), spanrl.bellman(REWARDS, np.zeros(6)))


def test_simulations_and_runs() -> None:
    best = solve(COSTS)
    played = simulate(COSTS, best.policy, horizon=20_000, seed=0)
    assert played.mean == pytest.approx(best.gain, rel=0.05)
    assert played.reward < 0
    mine, theirs = (learn(model, "ucrl", horizon=2000, seed=0) for model in (COSTS, REWARDS))
    np.testing.assert_array_equal(mine.reward, theirs.reward)
    np.testing.assert_array_equal(mine.regret, theirs.regret)
    assert (mine.costs, theirs.costs, "costs" in theirs.meta) == (True, False, False)
    assert mine.meta["gain"] == theirs.meta["gain"] == pytest.approx(-best.gain, abs=1e-5)
    assert f"cost      {-mine.reward[-1]:.6g}" in str(mine)
    given = learn(COSTS, "ucrl", horizon=100, seed=0, gain=2.0)
    assert given.regret[-1] == pytest.approx(-200.0 - given.reward[-1])


def test_a_run_without_a_gain_draws_costs(tmp_path: Path) -> None:
    matplotlib.use("agg")
    run = learn(COSTS, "ucrl", horizon=100, seed=0)
    unknown = replace(run, regret=np.full(run.t.size, np.nan))
    ax = unknown.plot()
    assert ax.get_ylabel() == "cumulative cost"
    assert ax.lines[0].get_ydata()[-1] == -run.reward[-1]
    run.save(tmp_path / "run")
    assert spanrl.Run.load(tmp_path / "run").costs


# --- files ----------------------------------------------------------------------------------------------------------


def test_files_hold_rewards_and_the_sense(tmp_path: Path) -> None:
    COSTS.save(tmp_path / "m.npz")
    stored = entries(tmp_path / "m.npz")
    np.testing.assert_array_equal(stored["reward"], REWARDS.reward)
    assert MDP.load(tmp_path / "m.npz") == COSTS
    REWARDS.save(tmp_path / "r.npz")
    assert stored.keys() - entries(tmp_path / "r.npz").keys() == {"costs"}
    bounded = BoundedMDP.l1_ball(COSTS, 0.1, 1.0, 5.0)
    bounded.save(tmp_path / "b.npz")
    assert BoundedMDP.load(tmp_path / "b.npz") == bounded
    rewrite(tmp_path / "m.npz", costs=np.array(2))
    with pytest.raises(ModelFileError, match="damaged: costs must be 0 or 1; got 2"):
        MDP.load(tmp_path / "m.npz")


# --- ranges ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rewards", "options", "range_", "is_found"),
    [
        ([0.2, 0.7], {}, (0.0, 1.0), False),
        ([0.0, 1.0 + 1e-13], {}, (0.0, 1.0), False),
        ([3.0, 9.0], {}, (3.0, 9.0), True),
        ([-1.0, 0.5], {}, (-1.0, 0.5), True),
        ([5.0, 5.0], {}, (5.0, 6.0), True),
        ([3.0, 9.0], {"r_max": 20}, (0.0, 20.0), False),
        ([3.0, 9.0], {"r_min": 1}, (1.0, 9.0), True),
        ([-3.0, 0.5], {"r_max": 1}, (-3.0, 1.0), True),
        ([0.2, 0.7], {"costs": True}, (-1.0, 0.0), False),
        ([3.0, 9.0], {"costs": True}, (-9.0, -3.0), True),
        ([3.0, 9.0], {"costs": True, "r_max": 10.0}, (-10.0, 0.0), False),
    ],
)  # fmt: skip
def test_ranges_are_found(tmp_path: Path, rewards: Any, options: Any, range_: Any, is_found: bool) -> None:
    mdp = MDP.from_dense(np.full((2, 1, 2), 0.5), [[rewards[0]], [rewards[1]]], **options)
    assert (mdp.r_min, mdp.r_max, mdp.range_is_found) == (*range_, is_found)
    mdp.save(tmp_path / "m.npz")
    assert MDP.load(tmp_path / "m.npz") == mdp
    outcomes = {(s, 0): [(0.5, 0, rewards[s]), (0.5, 1, rewards[s])] for s in (0, 1)}
    env = Env.from_outcomes(outcomes, **options)
    assert (env.mdp.r_min, env.mdp.r_max, env.mdp.range_is_found) == (*range_, is_found)


def test_the_range_of_an_env_is_that_of_its_outcomes() -> None:
    env = Env.from_outcomes({(0, 0): [(0.5, 0, -4.0), (0.5, 0, 10.0)]})
    assert (env.mdp.r_min, env.mdp.r_max) == (-4.0, 10.0)


def test_learners_need_a_declared_range() -> None:
    mdp = small_mdp()
    assert not any("declared" in note for note in learn(mdp, "ucrl", horizon=50, seed=0).notes)
    found = MDP.from_dense(P, COST, available=AVAILABLE, costs=True)
    notes = learn(found, "ucrl", horizon=50, seed=0).notes
    low, high = COST[AVAILABLE].min(), COST[AVAILABLE].max()
    assert notes[0].startswith(
        f"the range of the costs was not declared, and the agent was told that of the model, [{low:.6g}, {high:.6g}]"
    )
    with pytest.raises(ModelError, match="Bernoulli rewards are r_min or r_max, which must be declared"):
        Env.from_mdp(found, "bernoulli")
    with pytest.raises(ModelError, match="Env: Bernoulli rewards are r_min or r_max, which must be declared"):
        Env.from_outcomes({(0, 0): [spanrl.envs.env.Outcome(1.0, 0, 2.0, 1)]})
