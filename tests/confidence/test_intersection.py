"""Running intersections: against dense tables that are intersected in plain numpy, in all ways of running, across checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from estimate_samples import dense
from test_kt import add, ragged_info

from spanrl import SCAL, UCRL, Run, check_agent, learn, make_agent, solve
from spanrl.agents.episodes import DOUBLING, one_over_root
from spanrl.agents.learner import Learner, Rules
from spanrl.agents.planner import Planner, Start
from spanrl.agents.registry import agent_id
from spanrl.confidence.bernstein import BernsteinBox
from spanrl.confidence.hoeffding import HoeffdingBall
from spanrl.confidence.intersection import held_from, intersect
from spanrl.confidence.kt import KT
from spanrl.confidence.ucrl2b import UCRL2BBox
from spanrl.confidence.ucrl3 import UCRL3Box
from spanrl.errors import OptionError, RunFileError
from spanrl.models.counts import Batch, Counts
from spanrl.models.states import StateReader
from spanrl.paper.oracles_sets import pair_maximum_lp
from spanrl.planning.problem import prepare
from spanrl.seeding import generator
from ways import Kept, assert_all_ways_agree, assert_interpreted_agrees, ragged_env


@dataclass(frozen=True)
class TooNarrow(KT):
    """KT intervals at a level that they are not meant for: the true model is often missed, so that intersections are empty."""

    is_uniform: ClassVar = True

    def settings(self, info):
        return np.array([0.02])


@dataclass(frozen=True)
class Agent:
    """UCRL or SCAL with intersections of any bound."""

    estimate: object
    span_bound: float = np.inf

    def start(self, info, rng):
        rules = Rules(self.estimate, span_bound=self.span_bound, intersect=True)
        return Learner(rules, info, generator("Agent", rng))


class DenseIntersection:
    """What must be left, pair by pair, with every state written out."""

    def __init__(self, info):
        self.low, self.high = np.zeros((info.n_pairs, info.n_states)), np.ones((info.n_pairs, info.n_states))
        self.r_low, self.r_high = np.full(info.n_pairs, info.r_min), np.full(info.n_pairs, info.r_max)
        self.n_fallbacks = 0

    def take(self, bounded):
        low, high = dense(bounded)
        for i in range(low.shape[0]):
            both = np.maximum(self.low[i], low[i]), np.minimum(self.high[i], high[i])
            rewards = max(self.r_low[i], bounded.r_low[i]), min(self.r_high[i], bounded.r_high[i])
            beside = both[0].sum() > 1 + 1e-12 or both[1].sum() < 1 - 1e-12
            if beside or (both[0] > both[1]).any() or rewards[0] > rewards[1]:
                both, rewards = (low[i], high[i]), (bounded.r_low[i], bounded.r_high[i])
                self.n_fallbacks += 1
            (self.low[i], self.high[i]), (self.r_low[i], self.r_high[i]) = both, rewards

    def check(self, bounded):
        low, high = dense(bounded)
        np.testing.assert_allclose(low, self.low, rtol=0, atol=1e-15)
        np.testing.assert_allclose(high, self.high, rtol=0, atol=1e-15)
        np.testing.assert_array_equal(bounded.r_low, self.r_low)
        np.testing.assert_array_equal(bounded.r_high, self.r_high)


def random_batches(rng, info, n, drift):
    """Yield experience whose law changes on the way, if it is to ``drift``: then sets contradict each other."""
    for k in range(n):
        seen = {}
        for i in rng.choice(info.n_pairs, size=2, replace=False).tolist():
            first = 0 if not drift or k < n // 2 else 3
            for _ in range(int(rng.integers(1, 4))):
                succ = int(first + rng.integers(3 if drift else 6))
                reward = float(rng.integers(-1, 1) if not drift or k < n // 2 else 2)
                key = i, reward, succ
                seen[key] = seen.get(key, 0) + int(rng.integers(1, 9))
        yield Batch.from_dict(seen)


class TestSets:
    @pytest.mark.parametrize("room", [0, 300], ids=["room is made on the way", "there is room"])
    @pytest.mark.parametrize("drift", [False, True])
    @pytest.mark.parametrize(
        "estimate", [KT(0.9), UCRL2BBox(0.9), UCRL3Box(0.9), TooNarrow()], ids=lambda e: type(e).__name__
    )
    def test_are_the_intersections_of_all_so_far(self, estimate, drift, room):
        info, rng = ragged_info(6, 3, -1.0, 2.0), np.random.default_rng(8)
        planner = Planner(info, estimate, DOUBLING, one_over_root, intersect=True)
        counts, wanted, t = Counts.empty(info.n_pairs), DenseIntersection(info), 1
        counts.reserve(room)
        for batch in random_batches(rng, info, 40, drift):
            planner.take_in(counts, batch)
            start = Start(t, 0, 0, np.zeros(4, dtype=np.uint64))
            planner.plan(counts, start, span_bound=np.inf, mixture=False, from_bias=True)
            wanted.take(estimate.bounded(counts, t, info))
            found = estimate.bounded(counts, t, info, held=planner.held)
            wanted.check(found)
            n, sets = int(counts.succ_ptr[-1]), planner._work.sets
            np.testing.assert_array_equal(sets.low[:n], found.p_low)
            np.testing.assert_array_equal(sets.rest, found.rest_high)
            np.testing.assert_array_equal(sets.r_high, found.r_high)
            assert planner.held.n_fallbacks[0] == wanted.n_fallbacks
            t += int(batch.times.sum())
        assert planner._work.exact, (
            "what is left of an interval may be smaller than the shared one, whatever the bound promises"
        )
        if drift and not isinstance(estimate, UCRL2BBox):
            assert wanted.n_fallbacks > 0

    @pytest.mark.parametrize(
        ("before", "is_empty"),
        [
            ({}, False),
            ({"r_high": 0.2}, True),
            ({"r_high": 0.99}, False),
            ({"high": [0.05, 0.9]}, True),  # the sums are as they should be
            ({"high": [0.45, 0.45], "rest": 0.01}, True),  # Σ high < 1
            ({"high": [0.45, 0.45]}, False),
            ({"low": [0.55, 0.55]}, True),  # Σ low > 1
            ({"low": [0.45, 0.55]}, False),
        ],
    )
    def test_each_kind_of_emptiness_falls_back(self, before, is_empty):
        info, estimate = ragged_info(6, 1, 0.0, 1.0), UCRL3Box(0.5)
        counts = Counts.empty(info.n_pairs)
        counts.reserve(2)
        add(counts, {(0, 1.0, 0): 50, (0, 1.0, 1): 50})
        fresh, sets = (estimate.sets(counts, 1, info) for _ in range(2))
        assert fresh.rest[0] > 0.1, "the cases are made for this"
        assert 0.05 < fresh.low[0] < 0.45
        assert fresh.low[0] + fresh.room[0] > 0.55
        usual = {"rest": 1.0, "r_low": 0.0, "r_high": 1.0, "low": [0.0, 0.0], "high": [1.0, 1.0]} | before
        state = {f"held.{key}": np.full(6, x) if key[0] == "r" else np.array(x) for key, x in usual.items()}
        held = held_from(StateReader(state | {"fallbacks": 0}), info, 2)
        intersect(np.array([0]), 6, held, sets)
        assert held.n_fallbacks[0] == is_empty
        same = [(x[0], x[1]) == (y[0], y[1]) for x, y in ((sets.low, fresh.low), (sets.room, fresh.room))]
        same += [x[0] == y[0] for x, y in ((sets.rest, fresh.rest), (sets.r_high, fresh.r_high))]
        assert all(same) == (is_empty or not before)
        np.testing.assert_array_equal(held.succ[1] - held.succ[0], sets.room[:2])
        intersect(np.array([0]), 6, held, sets)
        assert held.n_fallbacks[0] == is_empty, "the same once more changes nothing"

    def test_inner_maxima_equal_an_lp(self):
        """Listed successors may have less room than those never seen, and lower ends beside them."""
        kept = Kept(UCRL(0.9, bounds="ucrl3", intersect=True))
        learn(ragged_env(3), kept, horizon=1500, seed=2)
        bounded = kept.learners[0].confidence_set()
        v = np.random.default_rng(1).normal(size=bounded.n_states)
        for sense, sign, reward in (("optimistic", 1, bounded.r_high), ("pessimistic", -1, bounded.r_low)):
            wanted = [reward[i] + sign * pair_maximum_lp(bounded, i, sign * v) for i in range(bounded.n_pairs)]
            np.testing.assert_allclose(prepare(bounded, sense).values(v), wanted, rtol=0, atol=1e-9)

    @pytest.mark.parametrize("estimate", [KT(0.9), TooNarrow()])
    def test_plans_are_those_of_the_solver_on_the_intersection(self, estimate):
        kept = Kept(Agent(estimate))
        learn(ragged_env(3), kept, horizon=700, seed=2)
        (learner,) = kept.learners
        exact = solve(learner.confidence_set(), tol=1e-9)
        low, high = learner.plan.gain_bounds
        assert low - 1e-9 <= exact.gain <= high + 1e-9


class TestRuns:
    @pytest.mark.parametrize(
        "agent",
        [UCRL(0.9, bounds="kt", intersect=True), SCAL(0.4, bounds="ucrl3", intersect=True), Agent(TooNarrow(), 0.5)],
        ids=["ucrl", "scal", "too narrow"],
    )
    def test_all_ways_agree(self, agent):
        """Compiled, watched, by hand and in pieces: the intersection is part of the state, and its fallbacks too."""
        _, learner = assert_all_ways_agree(ragged_env(1), agent, 1500, 1)
        assert {"held.low", "held.high", "held.rest", "fallbacks"} <= set(learner.get_state())
        if isinstance(agent, Agent):
            assert learner.notes["fallbacks"] > 0

    def test_interpreted(self):
        env = ragged_env(2, r_min=100.0, r_max=100.5)
        assert_interpreted_agrees(env, Agent(TooNarrow()), 300, 1)
        assert_interpreted_agrees(env, SCAL(0.4, bounds="ucrl2b", intersect=True), 300, 1)

    def test_contract(self):
        check_agent("scal[span_bound=0.4,bounds=kt,intersect=true]")

    def test_the_true_model_is_in_all_of_them(self):
        run = learn("three-state", UCRL(bounds="kt", intersect=True), horizon=20_000, seed=0, audit=True)
        assert run.episodes["contains"].all()
        assert run.meta["fallbacks"] == 0

    def test_the_record_tells_how_often_one_was_empty(self, tmp_path):
        kept = Kept(Agent(TooNarrow()))
        run = learn(ragged_env(1), kept, horizon=2000, seed=0)
        assert run.meta["fallbacks"] == kept.learners[0].notes["fallbacks"] > 0
        run.save(tmp_path / "run")
        assert Run.load(tmp_path / "run").meta["fallbacks"] == run.meta["fallbacks"]
        assert "fallbacks" not in learn(ragged_env(1), UCRL(bounds="kt"), horizon=200, seed=0).meta

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("held.low", 0.9),
            ("held.high", 1.5),
            ("held.rest", -0.1),
            ("held.r_low", 7.0),
            ("fallbacks", -1),
            ("held.rest", None),
        ],
    )
    def test_a_checkpoint_that_cannot_be_one(self, name, value):
        kept = Kept(UCRL(bounds="kt", intersect=True))
        learn(ragged_env(1), kept, horizon=500, seed=0)
        (learner,) = kept.learners
        state = learner.get_state()
        if value is None:
            del state[name]
        elif name == "fallbacks":
            state[name] = value
        else:
            state[name] = np.full_like(state[name], value)
        with pytest.raises(RunFileError, match=f"checkpoint: '{'held.high' if name == 'held.low' else name}'"):
            kept.agent.start(learner.info, 0).set_state(state)


class TestOptions:
    def test_bounds_that_depend_on_t_are_refused(self):
        words = r"bounds='bernstein' cannot be intersected: boxes that .* can; got True\. Leave it out, or use bounds='kt'\."
        for agent in ("scal[span_bound=1,intersect=true]", "ucrl[intersect=true]"):
            with pytest.raises(OptionError, match=words):
                make_agent(agent)
        for estimate in (BernsteinBox(), HoeffdingBall()):
            with pytest.raises(
                OptionError, match=rf"Rules: the sets of {type(estimate).__name__} cannot be intersected"
            ):
                Agent(estimate).start(ragged_info(3, 2, 0.0, 1.0), 0)

    def test_a_flag(self):
        for make in (lambda: UCRL(bounds="kt", intersect=1), lambda: SCAL(1, bounds="kt", intersect="yes")):
            with pytest.raises(OptionError, match="intersect"):
                make()

    def test_text_form(self):
        text = "ucrl[bounds=kt,intersect=true]"
        assert agent_id(make_agent(text)) == text
        assert make_agent(text).rules.intersect
