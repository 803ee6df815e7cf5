"""SCAL with difference constraints: plans, all ways of running, ids, and what the knowledge is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from spanrl import MDP, SCAL, BiasDifferences, Env, analyse, bellman, learn, make_agent
from spanrl.agents.learner import Learner, Rules
from spanrl.agents.psrl import Posterior
from spanrl.agents.registry import agent_id
from spanrl.confidence.estimate import Estimate
from spanrl.confidence.hoeffding import HoeffdingBall
from spanrl.errors import OptionError, UnknownNameError
from spanrl.seeding import generator
from ways import assert_all_ways_agree, assert_interpreted_agrees, by_hand, compiled, curves, ragged_env

D = np.random.default_rng(0).uniform(0.05, 1.2, size=(5, 5))
D[0, 3] = np.inf
D[1, 2] = -0.04
SCALE = {"p_scale": 0.02, "r_scale": 0.02, "policy": "greedy"}


@dataclass(frozen=True)
class With:
    """An agent of any estimate with difference constraints."""

    estimate: Estimate
    differences: BiasDifferences

    def start(self, info: Any, rng: Any) -> Learner:
        rules = Rules(self.estimate, mixture=False, span_bound=3.0, differences=self.differences)
        return Learner(rules, info, generator("With", rng))


AGENTS = {
    "bernstein": SCAL(2.0, **SCALE, differences=D),
    "kt": SCAL(np.inf, bounds="kt", policy="greedy", differences=np.minimum(D, 0.4)),
    "cold": SCAL(2.0, **SCALE, differences=D, warm_start=False),
    "ball": With(HoeffdingBall(), BiasDifferences(np.minimum(D, 0.2))),
    "plain": With(Posterior(), BiasDifferences(D)),
}


def queue() -> Env:
    """Return admission to a queue of ten: arrivals 0.3, service 0.5; whoever is admitted pays, and whoever waits costs."""
    K, arrival, service = 10, 0.3, 0.5
    P, r = np.zeros((K + 1, 2, K + 1)), np.zeros((K + 1, 2))
    for x in range(K + 1):
        for admits in range(2):
            up, down = arrival * (admits and x < K), service * (x > 0)
            P[x, admits, min(x + 1, K)] += up
            P[x, admits, max(x - 1, 0)] += down
            P[x, admits, x] += 1 - up - down
            r[x, admits] = (up - 0.05 * x + 0.5) / 0.8
    return Env.from_mdp(MDP.from_dense(P, r), "bernoulli")


LONGER = np.arange(11)[:, None] >= np.arange(11)
FALLING = np.where(LONGER, 0.0, np.inf)
"""h(x) ≤ h(y) for x ≥ y: a longer queue is worth no more."""


class TestPlans:
    @pytest.mark.parametrize("name", ["bernstein", "kt", "cold", "ball"])
    def test_they_are_those_of_the_operator(self, name):
        """At every episode, from the set and the bias: the bracket is [min, max](Proj_d Lv − v), and v keeps the differences."""
        agent, seen = AGENTS[name], []

        def look(learner):
            d, v, image = (
                learner.rules.bounds_within(learner.info),
                learner.bias,
                bellman(learner.confidence_set(), learner.bias),
            )
            steps = (image + d).min(axis=1) - v
            assert learner.episode.gain_low == pytest.approx(steps.min(), abs=1e-9)
            assert learner.episode.gain_high == pytest.approx(steps.max(), abs=1e-9)
            assert learner.episode.gain_high - learner.episode.gain_low <= 3 / np.sqrt(learner.episode.start)
            assert (v[:, None] - v - d).max() <= 1e-9
            assert v[0] == 0
            assert learner.episode.deterministic
            seen.append(bool((image > (image + d).min(axis=1) + 1e-9).any()))

        @dataclass(frozen=True)
        class Looked:
            def start(self, info, rng):
                learner = agent.start(info, rng)
                learner.on_episode.append(look)
                return learner

        learn(ragged_env(2), Looked(), horizon=1500, seed=3)
        assert sum(seen) > 10, "else nothing is cut"

    def test_a_constant_is_scal_to_the_last_bit(self):
        for bounds in ("bernstein", "kt"):
            for c in (0.0, 0.3, 1.0):
                one = learn(ragged_env(2), SCAL(c, bounds=bounds, policy="greedy"), horizon=20_000, seed=1)
                agent = SCAL(np.inf, bounds=bounds, policy="greedy", differences=np.full((5, 5), c))
                assert curves(learn(ragged_env(2), agent, horizon=20_000, seed=1)) == curves(one)


class TestAllWaysOfRunning:
    @pytest.mark.parametrize("name", AGENTS)
    def test_have_the_same_bits(self, name):
        assert_all_ways_agree(ragged_env(2), AGENTS[name], 1200, 5)

    @pytest.mark.parametrize("name", ["bernstein", "ball"])
    def test_interpreted(self, name):
        assert_interpreted_agrees(ragged_env(2), AGENTS[name], 200, 5)

    def test_steps_by_hand_see_the_differences(self):
        """They are not those of SCAL without."""
        with_them, steps = by_hand(ragged_env(2), AGENTS["bernstein"], 1200, 5)
        _, others = by_hand(ragged_env(2), SCAL(2.0, **SCALE), 1200, 5)
        assert steps != others
        assert with_them.rules.differences == BiasDifferences(D)


def test_knowing_that_a_longer_queue_is_worth_less_saves_more_than_half_of_the_regret():
    """With the paper's constants at T = 10⁶: about 11 500 with a span bound alone, 4 500 with the order of the states; h* keeps both."""
    env = queue()
    best = analyse(env.mdp, diameter=False)
    c = 1.2 * best.span
    assert BiasDifferences(FALLING).excess(best.bias) <= 0
    plain = learn(env, SCAL(c, policy="greedy"), horizon=10**6, seed=0)
    knowing = learn(env, SCAL(c, policy="greedy", differences=FALLING), horizon=10**6, seed=0)
    assert knowing.pseudo_regret[-1] < 0.5 * plain.pseudo_regret[-1]
    assert (knowing.episodes["gain"] >= best.gain - 1 / np.sqrt(knowing.episodes["start"])).all(), "optimism"
    assert knowing.notes == []


def test_knowledge_that_is_wrong_is_told():
    rising = SCAL(20.0, policy="greedy", differences=FALLING.T)
    (note,) = [note for note in learn(queue(), rising, horizon=10**4, seed=0).notes if "guarantee" in note]
    assert note == "the guarantee does not hold: h* breaks the differences by up to 11.8072."


class TestIds:
    def test_they_have_a_digest(self):
        one, other = AGENTS["bernstein"], SCAL(2.0, **SCALE, differences=D + 0.1)
        word = str(BiasDifferences(D))
        assert agent_id(one) == f"scal[span_bound=2,differences={word},p_scale=0.02,r_scale=0.02,policy=greedy]"
        assert agent_id(one) != agent_id(other)
        run, _ = compiled(ragged_env(), one, 10, 0)
        assert learn(ragged_env(), one, horizon=10, seed=0).meta["agent"] == agent_id(one)
        assert run.t[-1] == 10

    def test_without_any_the_id_is_what_it_was(self):
        assert agent_id(SCAL(2.0)) == "scal[span_bound=2]"

    def test_equality(self):
        assert (
            SCAL(2.0, **SCALE, differences=D)
            == SCAL(2.0, **SCALE, differences=BiasDifferences(D))
            == AGENTS["bernstein"]
        )
        assert SCAL(2.0, **SCALE) != AGENTS["bernstein"]
        assert hash(SCAL(2.0, **SCALE, differences=D)) == hash(AGENTS["bernstein"])

    def test_no_text_holds_them(self):
        with pytest.raises(UnknownNameError, match="scal: unknown parameter 'differences'"):
            make_agent(agent_id(AGENTS["bernstein"]))


class TestRefused:
    def test_mixtures(self):
        with pytest.raises(OptionError, match=r"SCAL: with differences the policy must be greedy; got 'mixture'"):
            SCAL(2.0, differences=D)
        with pytest.raises(OptionError, match=r"Rules: differences go with a greedy policy"):
            Rules(HoeffdingBall(), differences=BiasDifferences(D))

    @pytest.mark.parametrize("name", ["perturb", "best_of_both"])
    def test_other_ways_of_planning(self, name):
        with pytest.raises(OptionError, match=rf"SCAL: differences and {name} exclude each other; got True"):
            SCAL(2.0, policy="greedy", differences=D, **{name: True})

    def test_pairs_without_a_bound(self):
        agent = SCAL(np.inf, policy="greedy", differences=FALLING)
        with pytest.raises(OptionError, match=r"nothing follows for h\(0\) − h\(1\)\. Give a finite span_bound"):
            learn(queue(), agent, horizon=10, seed=0)

    def test_another_number_of_states(self):
        with pytest.raises(OptionError, match=r"each of the 11 states of the model; got 5 rows"):
            learn(queue(), AGENTS["bernstein"], horizon=10, seed=0)
