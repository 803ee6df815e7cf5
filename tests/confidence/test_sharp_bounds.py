"""Bounds without t, "ucrl2b" and "ucrl3": what agents, planners and solvers make of them."""

from __future__ import annotations

import numpy as np
import pytest
from estimate_samples import problem
from test_kt import listed, ragged_info

from spanrl import MDP, SCAL, UCRL, Env, bellman, check_agent, learn, make_agent
from spanrl.agents.episodes import DOUBLING, one_over_root
from spanrl.agents.planner import Planner, Start
from spanrl.agents.registry import agent_id
from spanrl.confidence.ucrl2b import UCRL2BBox
from spanrl.confidence.ucrl3 import UCRL3Box
from spanrl.errors import OptionError
from spanrl.models.counts import Batch, Counts
from spanrl.paper.oracles_sets import pair_maximum_lp
from spanrl.planning.problem import prepare
from ways import assert_all_ways_agree, assert_interpreted_agrees, ragged_env

BOUNDS = {"ucrl2b": UCRL2BBox, "ucrl3": UCRL3Box}
LP = 1e-9


@pytest.mark.parametrize("kind", BOUNDS.values())
@pytest.mark.parametrize("sense", ["optimistic", "pessimistic"])
def test_inner_maxima_and_minima_equal_an_lp(kind, sense):
    for seed in range(6):
        info, counts = problem(seed, most=3000)
        bounded, rng = kind(0.5).bounded(counts, 7, info), np.random.default_rng(seed)
        v, sign = rng.normal(size=info.n_states), 1 if sense == "optimistic" else -1
        reward = bounded.r_high if sign > 0 else bounded.r_low
        wanted = [reward[i] + sign * pair_maximum_lp(bounded, i, sign * v) for i in range(info.n_pairs)]
        np.testing.assert_allclose(prepare(bounded, sense).values(v), wanted, rtol=0, atol=LP)
        best = [max(wanted[a:b]) for a, b in zip(info.pair_ptr[:-1], info.pair_ptr[1:], strict=True)]
        np.testing.assert_allclose(bellman(bounded, v, sense=sense), best, rtol=0, atol=LP)


@pytest.mark.parametrize("kind", BOUNDS.values())
def test_a_set_brought_up_to_date_has_the_bits_of_one_from_scratch(kind):
    info, rng, estimate = ragged_info(6, 3, -1.0, 2.0), np.random.default_rng(8), kind(0.2)
    planner, counts = Planner(info, estimate, DOUBLING, one_over_root), Counts.empty(info.n_pairs)
    t = 1
    for _ in range(30):
        pairs = rng.choice(info.n_pairs, size=2, replace=False).tolist()
        seen = {(i, float(rng.integers(-1, 3)), int(rng.integers(6))): int(rng.integers(1, 9)) for i in pairs}
        planner.take_in(counts, Batch.from_dict(seen))
        start = Start(t, 0, 0, np.zeros(4, dtype=np.uint64))
        planner.plan(counts, start, span_bound=np.inf, mixture=False, from_bias=True)
        assert listed(planner._work.sets) == listed(estimate.sets(counts, t, info))
        t += sum(seen.values())


@pytest.mark.parametrize("name", BOUNDS)
class TestOptions:
    @pytest.mark.parametrize(
        ("option", "value", "sentence"),
        [
            ("p_scale", 0.5, "have no factor p_scale; got 0.5. Leave it out, or use bounds='bernstein'."),
            ("r_scale", 2.0, "have no factor r_scale; got 2.0. Leave it out"),
            ("delta", "rsqrt", "need a fixed delta; got 'rsqrt'. Leave it out"),
            ("perturb", True, "cannot be perturbed; got True. Leave it out"),
        ],
    )
    def test_what_they_do_not_define_is_refused(self, name, option, value, sentence):
        with pytest.raises(OptionError, match=f"SCAL: bounds='{name}' {sentence}"):
            SCAL(5.0, bounds=name, **{option: value})

    def test_text_form(self, name):
        for text in (f"scal[span_bound=5,bounds={name}]", f"ucrl[delta=0.1,bounds={name}]"):
            agent = make_agent(text)
            assert agent_id(agent) == text
            assert agent.rules.estimate == BOUNDS[name](agent.delta)


@pytest.mark.parametrize("name", BOUNDS)
class TestRuns:
    @pytest.mark.parametrize("kind", ["ucrl", "scal"])
    def test_all_ways_agree(self, name, kind):
        agent = UCRL(0.9, bounds=name) if kind == "ucrl" else SCAL(0.4, bounds=name)
        run, _ = assert_all_ways_agree(ragged_env(1), agent, 1000, 1)
        assert run.n_episodes[-1] > 10

    def test_interpreted(self, name):
        assert_interpreted_agrees(ragged_env(2, r_min=100.0, r_max=100.5), SCAL(0.4, bounds=name), 300, 1)

    def test_contract(self, name):
        check_agent(f"scal[span_bound=0.4,bounds={name}]")

    def test_sets_of_audited_runs_hold_the_model(self, name):
        """At δ = 0.05 a miss in any of ten runs would be a rarity: the sets of all episodes have it with probability above 0.6."""
        env = Env.from_mdp(MDP.from_dense([[[0.3, 0.7]], [[0.6, 0.4]]], [[0.5], [0.2]]), "bernoulli")
        for seed in range(10):
            run = learn(env, UCRL(bounds=name), horizon=1000, seed=seed, points=1, gain=0.0, audit=True)
            assert run.episodes["contains"].all()


@pytest.mark.parametrize(("name", "share"), [("ucrl2b", 2), ("ucrl3", 7)])
@pytest.mark.parametrize("kind", ["ucrl", "scal"])
def test_regret_is_far_below_that_of_the_papers_sets(name, share, kind):
    """Sums over three seeds on RiverSwim, T = 10⁶; the measured ratios are 3.4 and 15."""
    options = {"span_bound": 6.5} if kind == "scal" else {}
    wide, narrow = (
        sum(
            learn("riverswim", make_agent(kind, bounds=bounds, **options), horizon=10**6, seed=seed).pseudo_regret[-1]
            for seed in range(3)
        )
        for bounds in ("bernstein", name)
    )
    assert wide > 10_000
    assert narrow < wide / share
