"""The paper's counterexamples: their transitions and rewards, and that they show what they were made for."""

from __future__ import annotations

import numpy as np
import pytest
from env_oracles import truncated

from spanrl import make
from spanrl.envs.env import Outcome
from spanrl.errors import OptionError


def table(env):
    """Return {(s, a): outcomes}."""
    return {(int(s), int(a)): env.outcomes(s, a) for s, a in zip(env.mdp.pair_state, env.mdp.action, strict=True)}


def test_nonfeasible():
    env = make("counterexample-nonfeasible")
    assert table(env) == {
        (0, 0): [Outcome(1.0, 1, 0.0)],
        (0, 1): [Outcome(1.0, 0, 0.0)],
        (1, 0): [Outcome(1.0, 0, 1.0)],
        (1, 1): [Outcome(1.0, 1, 1.0)],
    }
    assert truncated(env.mdp, np.zeros(2), 0.5).tolist() == [0.0, 0.5]
    assert env.mdp.reward.reshape(2, 2).min(axis=1)[1] > 0.5  # no mixture in s1 pays as little as T_c asks


class TestFixedPoint:
    def test_outcomes(self):
        assert table(make("counterexample-fixed-point[alpha=0.6,beta=0.1,delta=0.4]")) == {
            (0, 0): [Outcome(1.0, 1, 0.6)],
            (1, 0): [Outcome(1.0, 2, 0.1)],
            (1, 1): [Outcome(1.0, 2, 0.4)],
            (2, 0): [Outcome(1.0, 2, 0.0)],
        }

    @pytest.mark.parametrize("extra", [False, True])
    def test_the_fixed_point_of_the_text(self, extra):
        env = make("counterexample-fixed-point", extra_action=extra)
        alpha, beta, delta = (env.info.parameters[key] for key in ("alpha", "beta", "delta"))
        h = np.array([alpha + beta, delta, 0.0])
        np.testing.assert_allclose(truncated(env.mdp, h, alpha + beta), h, atol=1e-15)  # g⁺ = 0
        assert alpha + delta > alpha + beta  # the only action of s0 pays more than h⁺(s0) asks for

    def test_the_extra_action_pays_nothing(self):
        plain, extra = make("counterexample-fixed-point"), make("counterexample-fixed-point[extra_action=true]")
        assert table(extra) == table(plain) | {(1, 2): [Outcome(1.0, 2, 0.0)]}
        assert (plain.mdp.n_actions, extra.mdp.n_actions) == (2, 3)

    @pytest.mark.parametrize("text", ["alpha=0.3", "beta=0.3", "beta=-0.1", "alpha=0.9", "delta=0.6", "delta=nan"])
    def test_the_order_of_the_rewards_is_checked(self, text):
        with pytest.raises(OptionError, match="must have 0 ≤ beta < delta < alpha and alpha"):
            make(f"counterexample-fixed-point[{text}]")

    def test_the_extra_action_needs_a_positive_beta(self):
        assert make("counterexample-fixed-point[beta=0]").mdp.n_pairs == 4
        with pytest.raises(OptionError, match="beta must be above 0 with extra_action"):
            make("counterexample-fixed-point[beta=0,extra_action=true]")


class TestCycle:
    def test_outcomes(self):
        one = {
            (0, 0): [Outcome(0.25, 0, 1.0), Outcome(0.75, 1, 1.0)],
            (1, 0): [Outcome(1.0, 2, 0.0)],
            (2, 0): [Outcome(1.0, 0, 0.0)],
        }
        assert table(make("counterexample-cycle[delta=0.25]")) == one
        again = {(0, 1): [Outcome(0.25, 0, 0.0), Outcome(0.75, 1, 0.0)]}
        assert table(make("counterexample-cycle[delta=0.25,duplicate=true]")) == one | again

    @pytest.mark.parametrize("duplicate", [False, True])
    @pytest.mark.parametrize("delta", [0.1, 0.5, 0.9])
    @pytest.mark.parametrize("share", [0.3, 1.0])
    def test_the_iterates_cycle_up_to_c_of_one_over_two_minus_delta(self, delta, duplicate, share):
        mdp = make("counterexample-cycle", delta=delta, duplicate=duplicate).mdp
        c = share / (2 - delta)
        v = np.zeros(3)
        for n in range(20):
            v = truncated(mdp, v, c)
            shape = [c, 0, 0] if n % 2 == 0 else [c, 0, c]
            np.testing.assert_allclose(v - v[1], shape, atol=1e-12)

    def test_above_that_bound_the_iterates_are_others(self):
        mdp, c = make("counterexample-cycle[delta=0.5]").mdp, 0.7  # 1/(2 − δ) = 2/3
        v = truncated(mdp, truncated(mdp, truncated(mdp, np.zeros(3), c), c), c)
        assert v == pytest.approx([1.35, 0.7, 0.7])  # not (2c, c, c)

    @pytest.mark.parametrize("delta", [0, 1, -0.5])
    def test_delta_out_of_range(self, delta):
        with pytest.raises(OptionError, match=r"counterexample-cycle: delta must lie in \(0, 1\)"):
            make("counterexample-cycle", delta=delta)
