"""Operations research: queues, a stock, a machine."""

from __future__ import annotations

import numpy as np
import pytest
from env_oracles import gain_by_lp, hitting_times, optimum, step

from spanrl import analyse, make
from spanrl.envs.machine_replacement import machine_replacement
from spanrl.errors import OptionError


class TestQueueAdmission:
    def test_moves(self):
        env = make("queue-admission")
        assert step(env, "0", "admit") == ({"0": 0.7, "1": 0.3}, 1)
        assert step(env, "0", "reject") == ({"0": 1}, 0.5 / 0.8)
        assert step(env, "3", "admit") == ({"2": 0.5, "3": 0.2, "4": 0.3}, (0.3 - 0.15 + 0.5) / 0.8)
        assert step(env, "10", "admit") == step(env, "10", "reject") == ({"9": 0.5, "10": 0.5}, 0), "a full queue"

    def test_the_best_policy_is_a_threshold(self):
        admits = analyse(make("queue-admission").mdp).policy.actions
        assert sorted(admits, reverse=True) == admits.tolist()
        assert 0 < admits[:10].sum() < 10

    def test_wrong_parameters(self):
        for text in ("capacity=0", "arrival=0", "service=0.8", "holding=-1"):
            with pytest.raises(OptionError, match=rf"queue-admission: .*{text.partition('=')[0]}.* must .*; got"):
                make(f"queue-admission[{text}]")


class TestTwoQueues:
    def test_constants(self):
        """g* by a linear program, the bias by policy iteration, D as the way to two full queues."""
        mdp = make("two-queues").mdp
        gain, h, q = optimum(mdp, sweeps=300)
        assert gain_by_lp(mdp) == pytest.approx(gain, abs=1e-5)  # its tolerance, and biases of thousands
        result = analyse(mdp, diameter=False)
        assert (result.gain, result.span) == pytest.approx((gain, np.ptp(h)), rel=1e-8)
        assert f"{gain:.5f} {np.ptp(h):.2f}" == "-1.64000 2450.33"
        assert f"{hitting_times(mdp, [399]).max():.1f}" == "1817388.0"
        serves_y = q.argmax(axis=1).reshape(20, 20)[1:8, 1:8]
        assert serves_y.all(), "the cμ rule: 1.5 · 0.5 > 1 · 0.7"

    def test_moves(self):
        env = make("two-queues")
        there, reward = step(env, "(3, 2)", "serve x")
        assert reward == -6
        assert there["(2, 2)"] == 0.7 * 0.75 * 0.85
        assert there["(3, 2)"] == 0.7 * 0.25 * 0.85 + 0.3 * 0.75 * 0.85
        assert there["(4, 3)"] == 0.3 * 0.25 * 0.15
        assert step(env, "(0, 0)", "serve y")[0] == {
            "(0, 0)": 0.75 * 0.85, "(1, 0)": 0.25 * 0.85, "(0, 1)": 0.75 * 0.15, "(1, 1)": 0.25 * 0.15
        }  # fmt: skip
        full, reward = step(env, "(19, 19)", "serve y")
        assert reward == -47.5 == env.mdp.r_min
        assert full == {"(19, 19)": 0.5 + 0.5 * 0.15, "(19, 18)": 0.5 * 0.85}

    def test_wrong_parameters(self):
        for text in ("places=1", "arrival_x=0", "service_y=1", "cost_y=0"):
            with pytest.raises(OptionError, match=rf"two-queues: {text.partition('=')[0]} must lie in .*; got"):
                make(f"two-queues[{text}]")


class TestInventory:
    def test_moves(self):
        env = make("inventory")
        mdp = env.mdp
        assert [int(np.diff(mdp.pair_ptr)[s]) for s in range(7)] == [7, 6, 5, 4, 3, 2, 1]

        def scaled(profit):
            return pytest.approx((profit + 2.4) / 4.4)

        assert step(env, "0", "order 0") == ({"0": 1}, scaled(0))
        assert step(env, "1", "order 2") == ({"3": 0.3, "2": 0.3, "1": 0.2, "0": 0.2}, scaled(2 * 1.3 - 1 - 1 - 0.6))
        assert step(env, "6", "order 0")[0] == {"6": 0.3, "5": 0.3, "4": 0.2, "3": 0.1, "2": 0.1}
        assert (mdp.reward.min(), mdp.reward.max()) == (0, 1)

    def test_nothing_earned_and_nothing_lost(self):
        assert make("inventory[capacity=1,fixed_cost=0,unit_cost=0,holding=0.7,price=1]").mdp.reward.tolist() == [0] * 3

    def test_wrong_parameters(self):
        for text in ("capacity=0", "fixed_cost=-1", "unit_cost=-1", "holding=-1", "price=0"):
            with pytest.raises(OptionError, match=rf"inventory: {text.partition('=')[0]} must lie in .*; got"):
                make(f"inventory[{text}]")


class TestMachineReplacement:
    def test_moves(self):
        env = make("machine-replacement")
        assert step(env, "0", "operate") == ({"0": 0.8, "1": 0.2}, 1)
        assert step(env, "5", "operate") == ({"5": 0.8, "6": 0.2}, 0.75)
        assert step(env, "5", "replace") == step(env, "10", "replace") == ({"0": 1}, -1.5)
        assert int(np.diff(env.mdp.pair_ptr)[10]) == 1, "a failed machine must be replaced"
        assert (env.mdp.r_min, env.mdp.r_max) == (-1.5, 1)

    @pytest.mark.parametrize("n, wear, cost", [(10, 0.2, 1.5), (4, 0.5, 0.0), (7, 1.0, 3.0)])
    def test_renewal_theory(self, n, wear, cost):
        earned = np.cumsum(1 - (np.arange(n) / n) ** 2) / wear
        gains = (earned - cost) / (np.arange(1, n + 1) / wear + 1)
        result = analyse(machine_replacement(n, wear, cost).mdp)
        assert result.gain == pytest.approx(gains.max())
        assert result.diameter == pytest.approx(n / wear)

    def test_wrong_parameters(self):
        for text in ("n=0", "wear=0", "cost=-1"):
            with pytest.raises(
                OptionError, match=rf"machine-replacement: {text.partition('=')[0]} must lie in .*; got"
            ):
                make(f"machine-replacement[{text}]")
