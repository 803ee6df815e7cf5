"""SCAL, UCRL and UCRL2: frozen configurations, every option checked, and what the options do."""

from __future__ import annotations

import warnings
from dataclasses import FrozenInstanceError, replace
from math import inf, nan

import numpy as np
import pytest

from experience import random_counts
from spanrl import SCAL, UCRL, UCRL2, ProblemInfo, learn, make
from spanrl.agents.episodes import DOUBLING, one_over_root
from spanrl.confidence.bernstein import BernsteinBox
from spanrl.confidence.hoeffding import HoeffdingBall
from spanrl.errors import OptionError

INFO = ProblemInfo(3, 2)
AGENTS = [SCAL(2.0), UCRL(), UCRL2()]


class TestConfiguration:
    @pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: type(agent).__name__)
    def test_frozen_equal_and_hashable(self, agent):
        assert agent == replace(agent)
        assert hash(agent) == hash(replace(agent))
        assert agent != replace(agent, delta=0.01)
        for name in ("delta", "anything"):
            with pytest.raises((FrozenInstanceError, AttributeError)):
                setattr(agent, name, 0.3)

    def test_defaults(self):
        assert SCAL(5) == SCAL(5.0, 0.05, 1.0, 1.0, "mixture", False, False, True)
        assert UCRL() == UCRL(0.05, 1.0, 1.0, True)
        assert UCRL2() == UCRL2(0.05, True)

    def test_the_parts_of_an_agent(self):
        rules = SCAL(5, "rsqrt", 0.5, 0.25, "greedy", best_of_both=True, warm_start=False).start(INFO, 0).rules
        assert rules.estimate == BernsteinBox("rsqrt", 0.5, 0.25)
        assert (rules.span_bound, rules.mixture, rules.perturb, rules.best_of_both, rules.warm_start) == (
            5.0,
            False,
            False,
            True,
            False,
        )
        rules = UCRL(0.1, 0.5, 0.25, warm_start=False).start(INFO, 0).rules
        assert rules.estimate == BernsteinBox(0.1, 0.5, 0.25)
        assert (rules.span_bound, rules.perturb, rules.best_of_both, rules.warm_start) == (inf, False, False, False)
        rules = UCRL2(0.2).start(INFO, 0).rules
        assert rules.estimate == HoeffdingBall(0.2)
        assert (rules.span_bound, rules.warm_start) == (inf, True)
        assert (rules.episodes, rules.tolerance) == (DOUBLING, one_over_root)

    def test_learners_share_nothing(self):
        agent = SCAL(2.0)
        one, other = agent.start(INFO, 0), agent.start(INFO, 0)
        one.act(0)
        assert (one.n_episodes, other.n_episodes) == (1, 0)
        assert one.counts is not other.counts
        assert one.rng is not other.rng


class TestOptions:
    @pytest.mark.parametrize("value", [-1, -1e-9, nan, "5", None, True, [2.0], 1j])
    def test_span_bound(self, value):
        with pytest.raises(
            OptionError, match=r"SCAL: span_bound must be a number ≥ 0; got .*\. Give a bound on sp\(h\*\)"
        ):
            SCAL(value)

    @pytest.mark.parametrize("value", [0, 0.0, 3, 2.5, inf, np.float64(1.0), np.int32(4)])
    def test_span_bounds_that_are_fine(self, value):
        assert SCAL(value).start(INFO, 0).rules.span_bound == float(value)

    def test_span_bound_must_be_given(self):
        with pytest.raises(TypeError, match="span_bound"):
            SCAL()

    @pytest.mark.parametrize("value", [0, 0.0, 1, 1.0, -0.1, 2, nan, inf, "sqrt", "0.05"])
    @pytest.mark.parametrize("kind", [lambda delta: SCAL(2.0, delta), UCRL, UCRL2])
    def test_level(self, kind, value):
        with pytest.raises(
            OptionError, match=r"(SCAL|UCRL|UCRL2): delta must lie in \(0, 1\) or be 'rsqrt'; got .*\. Use 0\.05, say"
        ):
            kind(delta=value)

    @pytest.mark.parametrize("value", [0, -1, nan, inf])
    @pytest.mark.parametrize("name", ["p_scale", "r_scale"])
    @pytest.mark.parametrize("kind", [lambda **given: SCAL(2.0, **given), UCRL])
    def test_scales(self, kind, name, value):
        with pytest.raises(
            OptionError, match=rf"(SCAL|UCRL): {name} must be a finite number > 0; got .*\. 1 is the theory"
        ):
            kind(**{name: value})

    @pytest.mark.parametrize("value", ["mixed", "Greedy", "", None, 1])
    def test_policy(self, value):
        with pytest.raises(
            OptionError, match=r"SCAL: policy must be mixture or greedy; got .*\. Leave it out for 'mixture'"
        ):
            SCAL(2.0, policy=value)

    def test_perturb_needs_a_bound(self):
        with pytest.raises(OptionError, match=r"SCAL: perturb needs a finite span_bound; got inf\. Leave perturb out"):
            SCAL(inf, perturb=True)

    @pytest.mark.parametrize("given", [{"delta": None}, {"delta": [0.1]}, {"p_scale": "1"}, {"r_scale": None}])
    def test_levels_and_scales_that_are_no_numbers(self, given):
        with pytest.raises(OptionError, match=r"SCAL: (delta|p_scale|r_scale) must"):
            SCAL(2.0, **given)

    @pytest.mark.parametrize("name", ["perturb", "best_of_both", "warm_start"])
    def test_truth_values(self, name):
        with pytest.raises(OptionError, match=f"{name} must be true or false"):
            SCAL(2.0, **{name: "False"})

    def test_a_seed_that_is_none(self):
        for agent in AGENTS:
            with pytest.raises(
                OptionError, match=rf"{type(agent).__name__}: the seed must be a whole number ≥ 0; got -1"
            ):
                agent.start(INFO, -1)


class TestPerturb:
    def test_a_long_horizon_warns(self):
        with pytest.warns(
            UserWarning,
            match=r"SCAL: perturb=True takes tens of c·t sweeps per episode; with a horizon above 10000 that is slow",
        ):
            SCAL(2.0, perturb=True).start(ProblemInfo(3, 2, horizon=10_001), 0)

    @pytest.mark.parametrize("horizon", [None, 1, 10_000])
    def test_a_short_or_open_one_does_not(self, horizon):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            SCAL(2.0, perturb=True).start(ProblemInfo(3, 2, horizon=horizon), 0)
            SCAL(2.0).start(ProblemInfo(3, 2, horizon=10**9), 0)

    def test_it_learns(self):
        run = learn("three-state[delta=0.1]", SCAL(2.0, perturb=True, p_scale=0.05, r_scale=0.05), horizon=2000, seed=0)
        plain = learn("three-state[delta=0.1]", SCAL(2.0, p_scale=0.05, r_scale=0.05), horizon=2000, seed=0)
        assert run.episodes["sweeps"].max() > 10 * plain.episodes["sweeps"].max()
        assert run.span.max() <= 2.0 + 1e-12
        assert run.pseudo_regret[-1] < 0.25 * 2000


class TestWhatTheOptionsDo:
    ENV = make("three-state[delta=0.01]")

    def run(self, agent, horizon=20_000):
        return learn(self.ENV, agent, horizon=horizon, seed=1)

    def test_a_bound_keeps_the_span(self):
        for c in (0.0, 0.5, 2.0):
            assert self.run(SCAL(c)).episodes["span"].max() <= c + 1e-12
        assert self.run(UCRL()).episodes["span"].max() > 2.0

    def test_no_bound_is_ucrl(self):
        one, other = self.run(SCAL(inf)), self.run(UCRL())
        for name in ("reward", "pseudo_regret", "span", "n_episodes"):
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes()

    def test_greedy_is_deterministic_and_the_mixture_is_not(self):
        assert self.run(SCAL(0.5, policy="greedy")).episodes["deterministic"].all()
        assert not self.run(SCAL(0.5)).episodes["deterministic"].all()

    def test_best_of_both_keeps_the_span_and_differs_from_the_mixture(self):
        run = self.run(SCAL(0.5, best_of_both=True))
        assert run.episodes["span"].max() <= 0.5 + 1e-12
        assert run.n_episodes[-1] > 10

    def test_a_cold_start_takes_more_sweeps(self):
        warm, cold = (self.run(SCAL(2.0, warm_start=start, p_scale=0.05, r_scale=0.05)) for start in (True, False))
        assert cold.episodes["sweeps"].sum() > warm.episodes["sweeps"].sum()

    def test_narrow_sets_lower_the_optimistic_gain(self):
        wide, narrow = self.run(UCRL()), self.run(UCRL(p_scale=0.05, r_scale=0.05))
        assert narrow.episodes["gain"][-1] < wide.episodes["gain"][-1]

    def test_a_shrinking_level_widens_the_sets(self):
        """δ_k = 1/√t_k is above 0.05 before t = 400 and below after."""
        info = ProblemInfo.from_mdp(self.ENV.mdp)
        counts = random_counts(np.random.default_rng(0), info, 10**5, least=10**4, unseen=0.0)
        for t, sign in ((399, -1), (401, 1)):
            fixed, varied = (BernsteinBox(delta).bounded(counts, t, info) for delta in (0.05, "rsqrt"))
            assert (sign * (varied.rest_high - fixed.rest_high) > 0).all()
        assert self.run(UCRL(delta="rsqrt")).n_episodes[-1] > 10
