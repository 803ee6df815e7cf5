"""The oracles of learning against numbers computed by hand, and the tools that watch learners."""

from __future__ import annotations

import ast
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import spanrl
import spanrl.paper
from spanrl.agents.learner import Learner
from spanrl.paper import oracles_learning as paper
from spanrl.paper.claims import SMOKE
from spanrl.paper.claims.base import Ledger, Scale
from spanrl.paper.claims.confidence import TABLE, counts_of, setting, wanted
from spanrl.paper.claims.optimism import clear_states, optimum, q_ends
from spanrl.paper.claims.regret import check_R1, crossing, worst_loss
from spanrl.paper.instances import generator, random_set
from spanrl.paper.oracles import finite, q_values
from spanrl.paper.oracles_learning import Seen, Setting
from spanrl.paper.replay import Watched, pair_index, replay, run, sizes

THREE = spanrl.make("three-state")


def test_formulas_import_nothing_of_ours():
    tree = ast.parse((Path(spanrl.paper.__file__).parent / "oracles_learning.py").read_text(encoding="utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert not [m for m in modules if m.startswith("spanrl")]


@pytest.mark.parametrize("row", TABLE, ids=range(len(TABLE)))
def test_sets_equal_the_table_computed_by_hand(row):
    info = spanrl.ProblemInfo(row.S, row.A, r_min=row.r_min, r_max=row.r_max)
    seen = Seen(Counter(row.rewards), Counter(row.successors))
    found = wanted(row.region, seen, setting(row.region, row.t, info, row.A))
    for got, want in zip(found, row.ends, strict=True):
        assert (got is None and want is None) or np.allclose(got, want, rtol=0, atol=1e-16 * 4)


def test_statistics_are_exact():
    seen = Seen()
    assert seen.n == 0
    assert seen.variance == 0
    for reward, successor in ((1.0, 0), (0.0, 2), (0.5, 2), (0.5, 0)):
        seen.add(reward, successor)
    assert (seen.n, seen.mean, seen.variance) == (4, Fraction(1, 2), Fraction(1, 6))
    assert dict(seen.successors) == {0: 2, 2: 2}
    counts = counts_of([Seen(), seen])
    assert counts.n.tolist() == [0, 4]
    assert counts.succ_ptr.tolist() == [0, 0, 2]
    assert counts.r_variance.tolist() == pytest.approx([0, 1 / 6], abs=1e-16)


def test_radius_has_the_printed_constants():
    # √(14·¼·4/7) = √2 and 49·4/(3·6)
    root, slope = Decimal(2).sqrt(), Decimal(98) / 9
    assert abs(paper.bernstein(Fraction(1, 4), 7, Decimal(4), 1.0, 1.0) - root - slope) < Decimal("1e-25")
    assert abs(paper.bernstein(Fraction(1, 4), 7, Decimal(4), 0.25, 3.0) - root / 2 - 3 * slope / 4) < Decimal("1e-25")
    assert paper.bernstein(Fraction(0), 0, Decimal(3), 1.0, 1.0) == 49
    assert paper.bernstein(Fraction(0), 1, Decimal(3), 1.0, 1.0) == 49


def test_perturbation_is_the_smallest_of_three():
    at = Setting(2, 1, 50, 0.1, p_scale=0.001)
    many = Seen(Counter({0.0: 10**6}), Counter({1: 10**6}))
    assert paper.perturbation([Seen()], at, 1e-3, 0) == pytest.approx(0.049 / 3 * np.log(2000))
    assert paper.perturbation([Seen(), many], at, 2.0, 0) < 1e-6
    assert paper.perturbation([Seen()], at._replace(p_scale=1.0), 4.0, 0) == pytest.approx(1 / 200)
    assert paper.perturbation([Seen()], at._replace(p_scale=1.0, t=1), 0.5, 0) == 1.0


def test_regret_formula_by_hand():
    # bc -l, 30 digits: T = 10⁶, S = 3, A = 2, Γ = 2, c = 2, δ = 0.05, r_max = 1
    assert paper.regret_bound(10**6, 3, 2, 2, 2.0, 0.05, 1.0) == pytest.approx(978915.806482803687, rel=1e-14)
    assert paper.regret_bound(5, 3, 2, 3, 4.0, 0.9, 2.0) == pytest.approx(2 * np.sqrt(30))
    assert paper.most_episodes(48, 3, 2) == 36
    assert paper.root_sum_bound(6, 3, 2) == pytest.approx(6 * (np.sqrt(2) + 1))
    assert paper.harmonic_sum_bound(1, 3, 2) == 36


def test_where_the_bound_begins_to_say_something():
    g, h = optimum(THREE.mdp)
    assert (g, h) == (pytest.approx(2 / 3, abs=1e-10), pytest.approx(1 / 0.995))
    loss = worst_loss(THREE.mdp, g)
    for rate in (g, loss):
        T = crossing(THREE.mdp, 2.0, rate)
        assert paper.regret_bound(T, 3, 2, 2, 2.0, 0.05, 1.0) < rate * T
        assert paper.regret_bound(T // 2, 3, 2, 2, 2.0, 0.05, 1.0) > rate * (T // 2)
    assert loss < 0.34


def test_values_of_pairs_equal_those_over_all_vertices():
    rng = generator("ends of values")
    for _ in range(20):
        bounded = random_set(rng)
        v = rng.normal(size=bounded.n_states)
        high, low = q_ends(bounded, v)
        dense = finite(bounded)
        q = q_values(dense, v)
        for i, (s, a) in enumerate(zip(bounded.pair_state, bounded.action, strict=True)):
            mine = q[s, dense.available[s] & (dense.action[s] == a)]
            assert (high[i], low[i]) == (pytest.approx(mine.max()), pytest.approx(mine.min()))


def test_ties_are_no_clear_choices():
    everything = spanrl.BoundedMDP.from_dense(
        np.zeros((2, 2, 2)), np.ones((2, 2, 2)), np.zeros((2, 2)), np.ones((2, 2))
    )
    assert clear_states(everything, np.array([0.0, 1.0]), [True, True]) == []


def test_replay_counts_every_step(real):
    moments = list(replay(real, THREE, spanrl.SCAL(2.0), horizon=400, seed=3))
    assert [m.over for m in moments] == [False] * (len(moments) - 1) + [True]
    assert moments[0].last is None
    assert sum(int(m.last.visits.sum()) for m in moments[1:]) == 400
    for before, after in pairwise(moments):
        assert np.array_equal(before.n + after.last.visits, after.n)
        assert after.t - before.t == after.last.visits.sum()
    assert moments[-1].n.sum() == 400 == sum(seen.n for seen in moments[-1].seen)
    assert sizes(THREE.mdp) == (3, 2)
    assert pair_index(THREE.mdp)[2, 1] == 3


def test_watching_changes_nothing(real):
    starts = []
    agent = spanrl.SCAL(0.5, p_scale=0.05, r_scale=0.05)
    watched = run(real, THREE, agent, horizon=20_000, seed=1, watch=lambda one: starts.append(one.episode.start))
    plain = spanrl.learn(THREE, agent, horizon=20_000, seed=1, points=20)
    assert np.array_equal(watched.reward, plain.reward)
    assert starts == plain.episodes["start"].tolist()
    assert isinstance(Watched(agent, real.start, print).start(spanrl.ProblemInfo(2, 1), 0), Learner)


@pytest.mark.parametrize("agent", [spanrl.SCAL(2.0, p_scale=0.05, r_scale=0.05), spanrl.UCRL(), spanrl.UCRL2()])
def test_slow_learner_makes_the_same_episodes(real, slow_learning, agent):
    fast, slow = (run(system, THREE, agent, horizon=10_000, seed=0) for system in (real, slow_learning))
    assert slow.episodes["start"].tolist() == fast.episodes["start"].tolist()
    assert np.array_equal(slow.reward, fast.reward)


def test_regret_claim_is_vacuous_while_the_bound_says_nothing(real):
    outcome = check_R1(real, SMOKE, horizon=10**5)
    assert outcome.verdict == "vacuous"
    assert "exceeds g* T" in str(outcome.numbers["reason"])
    broken = real.changed(regret_bound=lambda horizon, **given: 1.0)
    assert check_R1(broken, SMOKE, horizon=10**5).verdict == "fails"


def test_scales_pick_their_numbers():
    assert [Scale(name, 1).pick(1, 2, 3) for name in ("smoke", "quick", "paper", "other")] == [1, 2, 3, 1]


def test_ledger_reports_what_was_noted():
    ledger = Ledger()
    ledger.note("power", "low")
    assert ledger.outcome().numbers["power"] == "low"
