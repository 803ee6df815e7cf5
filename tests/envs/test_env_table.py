"""The outcome table: consistent with its MDP, canonical, validated, read-only."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanrl import MDP, Env, list_envs, make
from spanrl.envs.env import EnvInfo, Outcome
from spanrl.errors import ModelError, OptionError

ARRAYS = ("out_ptr", "out_prob", "out_succ", "out_reward", "out_law")
EVERY = [entry.name for entry in list_envs()] + [
    "knight-quest[rewards=mean]",
    "riverswim[variant=ucrl3,n_states=9]",
    "three-state[delta=0]",
    "counterexample-fixed-point[extra_action=true]",
    "counterexample-cycle[duplicate=true]",
]
OWN_UNITS = {"taxi", "two-queues", "machine-replacement"}
"""Their rewards are money or points; all others are in [0, 1]."""


def assert_consistent(env):
    """Check Σ prob·reward = r(s, a) and the marginal of the successors = p(·|s, a), pair by pair."""
    mdp = env.mdp
    for s, a in zip(mdp.pair_state, mdp.action, strict=True):
        table = env.outcomes(int(s), int(a))
        marginal = {}
        for o in table:
            assert o.prob > 0
            assert mdp.r_min <= o.reward <= mdp.r_max
            assert o.law in (0, 1)
            marginal[o.succ] = marginal.get(o.succ, 0.0) + o.prob
        assert sum(o.prob * o.reward for o in table) == pytest.approx(mdp.reward[mdp.pair(s, a)], abs=1e-12)
        assert marginal == pytest.approx(dict(mdp.successors(int(s), int(a))), abs=1e-12)
        assert table == sorted(table, key=lambda o: o[1:])


@pytest.mark.parametrize("text", EVERY)
def test_every_environment_is_consistent_named_and_read_only(text):
    env = make(text)
    assert_consistent(env)
    assert env.info.id == text
    assert env.info.summary.endswith((".", "?"))
    assert env.info.source
    assert env.mdp.state_names
    assert env.mdp.action_names
    assert env.info.id.partition("[")[0] in OWN_UNITS or (env.mdp.r_min, env.mdp.r_max) == (0.0, 1.0)
    dtypes = [getattr(env, name).dtype for name in ARRAYS]
    assert dtypes == [np.int64, np.float64, np.uint32, np.float64, np.uint8]
    for name in ARRAYS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(env, name)[0] = 0
    assert pickle.loads(pickle.dumps(env)) == env


outcome = st.tuples(st.integers(1, 5), st.integers(0, 2), st.sampled_from([-1.0, 0.0, 0.3, 2.0]), st.integers(0, 1))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(outcome, min_size=1, max_size=5), min_size=3, max_size=3))
def test_any_table_is_consistent_with_its_mdp_whatever_the_order(rows):
    table = {(s, 0): [Outcome(w / sum(o[0] for o in row), *rest) for w, *rest in row] for s, row in enumerate(rows)}
    env = Env.from_outcomes(table, r_min=-1.0, r_max=2.0)
    assert_consistent(env)
    turned = Env.from_outcomes({pair: row[::-1] for pair, row in reversed(table.items())}, r_min=-1.0, r_max=2.0)
    assert turned.mdp.succ.tolist() == env.mdp.succ.tolist()
    np.testing.assert_allclose(turned.out_prob, env.out_prob, atol=1e-15)


class TestFromOutcomes:
    def test_a_shared_successor_keeps_its_rewards_apart_and_equal_outcomes_are_added_up(self):
        env = Env.from_outcomes({(0, 0): [(0.25, 0, 1.0), (0.5, 0, 0.0), (0.25, 0, 1.0), (0.0, 0, 0.7)]})
        assert env.outcomes(0, 0) == [Outcome(0.5, 0, 0.0), Outcome(0.5, 0, 1.0)]
        assert env.mdp.reward.tolist() == [0.5]
        assert env.mdp.prob.tolist() == [1.0]

    def test_the_mean_of_equal_rewards_is_that_reward_exactly(self):
        env = Env.from_outcomes({(s, 0): [(0.1, 0, 0.3), (0.6, 1, 0.3), (0.3, 2, 0.3)] for s in range(3)})
        assert (env.mdp.reward == 0.3).all()

    def test_rows_off_by_rounding_are_rescaled_as_in_the_mdp(self):
        env = Env.from_outcomes({(0, 0): [(0.5 + 4e-9, 0, 1.0), (0.5, 0, 0.0)]})
        assert env.out_prob.sum() == pytest.approx(1.0, abs=1e-15)
        assert_consistent(env)

    @pytest.mark.parametrize(
        "row, words",
        [
            ([], r"Env: pair \(s=0, a=0\) must have an outcome"),
            ([(0.9, 0, 0.5)], "sums to 0.9, must sum to 1"),
            ([(0.0, 0, 0.5)], "sums to 0, must sum to 1"),
            ([(2.0, 0, 0.5), (-1.0, 0, 0.5)], "is -1, must not be negative"),
            ([(float("nan"), 0, 0.5)], "is nan, must be finite"),
            ([(float("inf"), 0, 0.0)], "is inf, must be finite"),
            ([(1.0, 4, 0.5)], r"successor 4 of P\[s=0, a=0\] must be a state"),
            ([(1.0, 0.5, 0.5)], "succ must be a one-dimensional array of integers"),
            (
                [(0.5, 0, 0.5), (0.5, 0, float("nan"))],
                r"Env: reward of outcome 1 of \(s=0, a=0\) is nan, must be finite",
            ),
            ([(1.0, 0, float("nan"))], "is nan, must be finite"),
            ([(1.0, 0, 0.5, 2)], r"Env: law of outcome 0 of \(s=0, a=0\) is 2, must be 0 \(fixed\) or 1 \(Bernoulli\)"),
            ([("half", 0, 0.5)], "prob must be an array of numbers"),
            (None, r"Env: outcomes of \(s=0, a=0\) must be a list; got None"),
            (iter([(1.0, 0, 0.5)]), r"Env: outcomes of \(s=0, a=0\) must be a list"),
            (
                [(1.0, 0)],
                r"Env: outcome 0 of \(s=0, a=0\) must read \(probability, next state, reward\) or .* got \(1.0, 0\)",
            ),
            ([(1.0, 0, 0.5), 5], r"Env: outcome 1 of \(s=0, a=0\) must read .* got 5"),
            ([(1.0, 0, 0.5, "x")], r"Env: outcome 0 of \(s=0, a=0\) must read .* got \(1.0, 0, 0.5, x\)"),
        ],
    )
    def test_what_is_wrong_is_named(self, row, words):
        with pytest.raises(ModelError, match=words):
            Env.from_outcomes({(0, 0): row})

    @pytest.mark.parametrize("key", [0, "x", ("a", 0), (0, -1), (0, 0, 0), (0.5, 0)])
    def test_keys_are_pairs(self, key):
        with pytest.raises(ModelError, match=r"must have pairs \(state, action\) of whole numbers ≥ 0 as keys; got"):
            Env.from_outcomes({(0, 0): [(1.0, 0, 0.5)], key: [(1.0, 0, 0.5)]})

    def test_no_pairs_at_all(self):
        with pytest.raises(ModelError, match="got no pairs"):
            Env.from_outcomes({})


class TestFromMdp:
    def test_mean_pays_the_mean(self):
        mdp = make("three-state").mdp
        env = Env.from_mdp(mdp)
        assert (env.out_law == 0).all()
        assert env.mdp is mdp
        assert_consistent(env)

    def test_bernoulli_leaves_the_ends_of_the_range_fixed(self):
        env = make("three-state")
        assert Env.from_mdp(env.mdp, rewards="bernoulli") == env
        assert Env.from_mdp(make("two-state").mdp, rewards="bernoulli").out_law.tolist() == [0, 1, 0, 0]

    def test_another_word_is_refused(self):
        words = r"Env.from_mdp: rewards must be mean or bernoulli; got 'gauss'\. Leave it out for 'mean'\."
        with pytest.raises(OptionError, match=words):
            Env.from_mdp(make("two-state").mdp, rewards="gauss")


class TestPresentation:
    def test_text(self):
        env = make("three-state[delta=0.01]")
        assert str(env).splitlines()[:2] == ["three-state[delta=0.01]", env.info.summary]
        assert str(env).endswith(str(env.mdp))
        assert repr(env) == "<Env three-state[delta=0.01]: 3 states, 2 actions>"

    def test_without_a_name(self):
        env = Env.from_mdp(MDP.from_dense([[[1.0]]], [[0.5]]))
        assert env.info == EnvInfo()
        assert str(env).startswith("unnamed\n")

    def test_equality_is_by_table_not_by_info(self):
        env = make("two-state")
        same = Env.from_mdp(env.mdp)
        assert same == env
        assert hash(same) == hash(env)
        assert same.info != env.info
        assert env != make("counterexample-nonfeasible")
        assert env != "two-state"
        assert Env.from_mdp(make("three-state").mdp) != make("three-state")
        assert {env.info: 1}[make("two-state").info] == 1
