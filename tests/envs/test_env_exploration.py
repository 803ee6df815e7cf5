"""What is hard to explore: rivers, arms, loops, lower bounds, Garnets."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from env_oracles import step
from scipy.stats import binom

from spanrl import analyse, make
from spanrl.envs.focus_pair import focus_pair
from spanrl.envs.jaksch_lower_bound import jaksch_lower_bound
from spanrl.errors import OptionError

LEVEL = 1e-3


class TestErgodicRiverSwim:
    def test_moves(self):
        env = make("ergodic-riverswim[slip=0.2]")
        assert step(env, "s0", "left") == ({"s0": 0.9, "s1": 0.1}, 0.1)
        assert step(env, "s2", "left") == ({"s1": 0.8, "s2": 0.1, "s3": 0.1}, 0)
        assert step(env, "s5", "left") == ({"s4": 0.8, "s5": 0.2}, 0)
        assert step(env, "s2", "right") == ({"s1": 0.05, "s2": 0.35, "s3": 0.6}, 0)
        assert step(env, "s5", "right") == ({"s4": 0.05, "s5": 0.95}, 1)

    def test_wrong_parameters(self):
        with pytest.raises(OptionError, match=r"ergodic-riverswim: slip must lie in \(0, 1\); got 0\.0\."):
            make("ergodic-riverswim[slip=0]")
        with pytest.raises(OptionError, match=r"ergodic-riverswim: n_states must lie in 2\.\.100000; got 1\."):
            make("ergodic-riverswim[n_states=1]")


class TestSixArms:
    def test_moves(self):
        env = make("six-arms")
        assert step(env, "hub", "a0") == ({"arm 1": 1}, 0)
        assert step(env, "hub", "a4") == ({"hub": 0.97, "arm 5": 0.03}, 0)
        assert step(env, "arm 1", "a0") == step(env, "arm 1", "a5") == ({"arm 1": 1}, 50 / 6000)
        assert step(env, "arm 1", "a4") == ({"hub": 1}, 0)
        assert step(env, "arm 5", "a4") == ({"arm 5": 1}, 1660 / 6000)
        assert step(env, "arm 6", "a4") == ({"hub": 1}, 0)
        assert step(env, "arm 6", "a5") == ({"arm 6": 1}, 1)


class TestNastySeven:
    def test_moves(self):
        env = make("nasty-7")
        assert step(env, "s0", "first") == ({"s0": 0.005, "s1": 0.995}, 0)
        assert step(env, "s0", "second") == ({"s0": 0.005, "s4": 0.995}, 0)
        assert step(env, "s1", "second") == ({"s0": 0.5, "s2": 0.5}, 0.99)
        assert step(env, "s6", "first") == ({"s4": 1}, 0.94)

    def test_wrong_parameters(self):
        with pytest.raises(OptionError, match=r"nasty-7: delta must lie in \[0, 1\); got 1\.0\."):
            make("nasty-7[delta=1]")
        with pytest.raises(OptionError, match=r"nasty-7: epsilon must lie in \[0, 0\.99\]; got 1\.0\."):
            make("nasty-7[epsilon=1]")


class TestJakschLowerBound:
    def test_moves(self):
        env = make("jaksch-lower-bound")
        assert step(env, "low 0", "a2") == ({"low 0": 0.9, "high 0": 0.1}, 0)
        assert step(env, "low 4", "a2") == ({"low 4": 0.85, "high 4": 0.15}, 0), "the good action"
        assert step(env, "low 4", "a1") == ({"low 4": 0.9, "high 4": 0.1}, 0)
        assert step(env, "high 3", "a0") == ({"low 3": 0.1, "high 3": 0.9}, 1)
        assert step(env, "low 0", "down 2") == ({"low 3": 1}, 0)
        assert step(env, "low 1", "down 0") == ({"low 4": 1}, 0)
        assert step(env, "low 4", "up") == ({"low 1": 1}, 0)

    @pytest.mark.parametrize(
        "copies, actions, longest, to_good", [(1, 2, 0, 0), (3, 2, 2, 2), (4, 3, 2, 2), (7, 2, 4, 4), (5, 3, 3, 3)]
    )
    def test_closed_form(self, copies, actions, longest, to_good):
        """The longest ways in the tree are counted by hand: 4 from leaf to leaf over the root of seven."""
        delta, epsilon = 4 / 100, 0.01
        result = analyse(jaksch_lower_bound(copies, actions, 100.0, epsilon).mdp)
        gain = (delta + epsilon) / (2 * delta + epsilon)
        assert (result.gain, result.span) == pytest.approx((gain, 1 / (2 * delta + epsilon) + gain * to_good))
        # alone: from low to high with the good action is faster than the way back
        assert result.diameter == pytest.approx(1 / delta if copies == 1 else 2 / delta + longest)

    def test_wrong_parameters(self):
        for text in ("n_copies=0", "n_actions=1", "diameter=7", "epsilon=0", "epsilon=0.2"):
            with pytest.raises(OptionError, match=rf"jaksch-lower-bound: {text.partition('=')[0]} must lie in .*; got"):
                make(f"jaksch-lower-bound[{text}]")


class TestFocusPair:
    def test_moves(self):
        for model, after in (("stays", "s2"), ("returns", "s1")):
            env = make("focus-pair", model=model)
            assert step(env, "s1", "stay") == ({"s1": 1}, 0.5)
            assert step(env, "s1", "leave") == ({"s1": 0.9, "s2": 0.1}, 0)
            assert step(env, "s2", "stay") == step(env, "s2", "leave") == ({after: 1}, 1)

    @pytest.mark.parametrize("B", [1, 3.5, 1000])
    def test_closed_form(self, B):
        first, second = (analyse(focus_pair(model, B).mdp) for model in ("stays", "returns"))
        assert (*first.gains, first.span, first.diameter) == pytest.approx((1, 1, B, inf))
        assert (second.gain, second.span, second.diameter) == pytest.approx((0.5, 0.5, B))

    def test_wrong_parameters(self):
        with pytest.raises(OptionError, match="focus-pair: model must be stays or returns; got 'third'"):
            make("focus-pair[model=third]")
        with pytest.raises(OptionError, match=r"focus-pair: span must lie in \[1, 1e9\]; got 0\.5"):
            make("focus-pair[span=0.5]")


class TestGarnet:
    def test_bits(self):
        """Equal on all machines: only the raw uniform numbers of PCG64 are used."""
        env = make("garnet")
        assert env == make("garnet[seed=0]") != make("garnet[seed=1]")
        uniform = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0))).random(6).tolist()
        places, cuts = [int(uniform[i] * (18 + i)) for i in range(3)], sorted(uniform[3:5])
        assert len(set(places)) == 3, "otherwise the first pair does not show it"
        gaps = dict(zip(places, (cuts[0], cuts[1] - cuts[0], 1 - cuts[1]), strict=True))
        assert dict(env.mdp.successors(0, 0)) == pytest.approx(gaps, abs=1e-15)
        assert env.mdp.reward[0] == uniform[5]

    @pytest.mark.parametrize("b", [1, 2, 5])
    def test_successors_are_uniform_and_distinct(self, b):
        mdp = make("garnet", n_states=5, n_actions=400, branching=b, seed=3).mdp
        assert (np.diff(mdp.succ_ptr) == b).all()
        seen = np.bincount(mdp.succ, minlength=5)
        low, high = binom.interval(1 - LEVEL / 5, 2000, b / 5)
        assert low <= seen.min() <= seen.max() <= high

    def test_wrong_parameters(self):
        for text in ("n_states=1", "n_actions=0", "branching=21", "branching=0", "seed=-1"):
            with pytest.raises(OptionError, match=rf"garnet: {text.partition('=')[0]} must .*; got"):
                make(f"garnet[{text}]")
        with pytest.raises(OptionError, match=r"garnet: n_states · n_actions must be at most 100000; got 200000"):
            make("garnet[n_states=100000,n_actions=2]")

    def test_chain(self):
        env, plain = make("garnet-chain[n_states=6,chain_length=3]"), make("garnet[n_states=6]")
        there, reward = step(env, "s0", "a0")
        before, same = step(plain, "s0", "a0")
        assert reward == same.expected
        assert there == {name: 0.99 * p.expected for name, p in before.items()} | {"c0": 0.01}
        assert step(env, "s3", "a1") == tuple(step(plain, "s3", "a1"))
        assert step(env, "c1", "a0")[0] == {"c1": 0.95, "c2": 0.05}
        assert step(env, "c2", "a0")[0] == {"c2": 0.95, "s5": 0.05}, "the end of the chain"

    def test_wrong_chains(self):
        for text in ("chain_length=0", "enter=0", "enter=1", "advance=0", "n_states=1"):
            with pytest.raises(OptionError, match=rf"garnet-chain: {text.partition('=')[0]} must .*; got"):
                make(f"garnet-chain[{text}]")
