"""The two-state, three-state and RiverSwim environments against closed forms and the literature."""

from __future__ import annotations

import numpy as np
import pytest
from env_oracles import diameter, gain_by_lp, optimum

from spanrl import make
from spanrl.envs.env import Outcome
from spanrl.errors import OptionError

RIVERSWIM = {  # variant: g*, sp(h*), D with the digits of the literature; strehl's span is 547/109 exactly, not 5.0184
    "strehl": ("0.222936", "5.0183", "22.51"),
    "osband": ("0.428622", "6.3103", "14.722"),
    "ucrl3": ("0.875003", "12.143", "13.878"),
    "statisticalrl": ("0.916667", "8.1818", "8.926"),
}


def shown(value, like):
    """Return ``value`` with as many decimals as ``like`` has."""
    return f"{value:.{len(like.split('.')[1])}f}"


class TestTwoState:
    def test_outcomes(self):
        env = make("two-state")
        assert [env.outcomes(s, a) for s in range(2) for a in range(2)] == [
            [Outcome(1.0, 1, 0.0)],
            [Outcome(1.0, 0, 0.5)],
            [Outcome(1.0, 0, 0.0)],
            [Outcome(1.0, 1, 1.0)],
        ]
        assert env.mdp.state_names == ("s0", "s1")
        assert env.mdp.action_names == ("a0", "a1")

    def test_optimum(self):
        mdp = make("two-state").mdp
        g, h, _ = optimum(mdp)
        assert (g, h[1] - h[0], diameter(mdp)[0]) == pytest.approx((1.0, 1.0, 1.0), abs=1e-12)

    @pytest.mark.parametrize("x, y", [(0.5, 0.25), (1.0, 1 / 7), (0.01, 0.01), (0.0, 1.0), (1.0, 0.0)])
    def test_gain_and_bias_of_a_policy(self, x, y):
        P, r, _ = make("two-state").mdp.to_dense()
        d = np.array([[x, 1 - x], [y, 1 - y]])
        P_d, r_d = np.einsum("sa,sat->st", d, P), (d * r).sum(axis=1)
        g, difference = np.linalg.solve(np.column_stack([np.ones(2), (np.eye(2) - P_d)[:, 1]]), r_d)
        assert g == pytest.approx(0.5 + x * (1 - 3 * y) / (2 * (x + y)))
        assert difference == pytest.approx(0.5 + (1 - 3 * y) / (2 * (x + y)))


class TestThreeState:
    def test_outcomes(self):
        env = make("three-state[delta=0.25]")
        assert env.outcomes(0, 0) == [Outcome(0.25, 1, 0.0), Outcome(0.75, 2, 0.0)]
        assert env.outcomes(1, 0) == [Outcome(1.0, 0, 1 / 3, 1)]
        assert env.outcomes(2, 0) == [Outcome(0.75, 0, 2 / 3, 1), Outcome(0.25, 1, 2 / 3, 1)]
        assert env.outcomes(2, 1) == [Outcome(1.0, 2, 2 / 3, 1)]
        assert env.mdp.n_pairs == 4
        assert env.mdp.start.tolist() == [1, 0, 0]

    @pytest.mark.parametrize("delta", [0.0, 0.005, 0.1, 1 / 3])
    def test_closed_forms(self, delta):
        mdp = make("three-state", delta=delta).mdp
        g, h, q = optimum(mdp)
        assert g == pytest.approx(2 / 3, abs=1e-12)
        assert gain_by_lp(mdp) == pytest.approx(2 / 3, abs=1e-9)
        assert h - h[2] == pytest.approx([-(2 + delta) / (3 * (1 - delta)), -1 / (1 - delta), 0], abs=1e-9)
        assert np.ptp(h) == pytest.approx(1 / (1 - delta), abs=1e-9)
        assert q[2].argmax() == 1
        assert diameter(mdp)[0] == pytest.approx(1 / delta if delta else np.inf, rel=1e-9)

    def test_diameter_for_large_delta_is_the_way_from_s1_to_s2(self):
        assert diameter(make("three-state[delta=0.5]").mdp) == (pytest.approx(4.0), 1, 2)

    def test_at_delta_zero_every_pair_has_one_successor(self):
        mdp = make("three-state[delta=0]").mdp
        assert mdp.max_support == 1
        assert 1 not in mdp.succ

    @pytest.mark.parametrize("delta", [-0.1, 1.0, float("nan"), float("inf")])
    def test_delta_out_of_range(self, delta):
        with pytest.raises(OptionError, match=r"three-state: delta must lie in \[0, 1\); got .*\. The paper uses"):
            make("three-state", delta=delta)


class TestRiverSwim:
    @pytest.mark.parametrize("variant", RIVERSWIM)
    def test_numbers_of_the_literature(self, variant):
        mdp = make("riverswim", variant=variant).mdp
        g, h, _ = optimum(mdp)
        D, s, target = diameter(mdp)
        assert tuple(map(shown, (g, np.ptp(h), D), RIVERSWIM[variant])) == RIVERSWIM[variant]
        assert gain_by_lp(mdp) == pytest.approx(g, abs=1e-9)
        assert (s, target) == (0, 5)

    def test_outcomes_of_the_default_are_strehl_and_littmans(self):
        env = make("riverswim")
        assert env.info.parameters == {"variant": "strehl", "n_states": 6}
        assert env.outcomes(0, 0) == [Outcome(1.0, 0, 0.0005)]
        assert env.outcomes(0, 1) == [Outcome(0.7, 0, 0.0), Outcome(0.3, 1, 0.0)]
        assert env.outcomes(3, 0) == [Outcome(1.0, 2, 0.0)]
        assert env.outcomes(3, 1) == [Outcome(0.1, 2, 0.0), Outcome(0.6, 3, 0.0), Outcome(0.3, 4, 0.0)]
        assert env.outcomes(5, 1) == [Outcome(0.7, 4, 1.0), Outcome(0.3, 5, 1.0)]
        assert env.mdp.reward[-1] == 1.0
        assert env.mdp.action_names == ("left", "right")

    @pytest.mark.parametrize("n_states", [2, 3, 40])
    def test_other_lengths(self, n_states):
        mdp = make("riverswim", n_states=n_states).mdp
        assert (mdp.n_states, mdp.n_pairs, mdp.max_support) == (n_states, 2 * n_states, min(n_states, 3))
        assert mdp.state_names[-1] == f"s{n_states - 1}"

    def test_options_out_of_range(self):
        for wrong in ("1", "100001", "100000000", "1e308", "9" * 100):
            with pytest.raises(OptionError, match=r"riverswim: n_states must lie in 2\.\.100000; got \d+\. The usual"):
                make(f"riverswim[n_states={wrong}]")
        with pytest.raises(OptionError, match="must be strehl or osband or ucrl3 or statisticalrl; got 'jaksch'"):
            make("riverswim[variant=jaksch]")
