"""What a run says of itself: vacuous sets, and span bounds below sp(h*)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from spanrl import MDP, SCAL, UCRL, Run, evi, learn, make
from spanrl.agents.learner import Learner, Rules
from spanrl.confidence.hoeffding import HoeffdingBall
from spanrl.confidence.kt import KT
from spanrl.confidence.vacuity import free_mass
from spanrl.experiments.cell import Computation
from spanrl.experiments.engine import Job
from spanrl.seeding import generator
from ways import Kept


def two_queues(n: int) -> MDP:
    """Return two queues of up to n − 1 with one server: arrivals .25 and .15, services .7 and .5, cost x + 1.5y per slot."""
    P, r = np.zeros((n * n, 2, n * n)), np.zeros((n * n, 2))
    for x, y, a in product(range(n), range(n), range(2)):
        served = (0.7, 0.5)[a]
        for to_x, to_y, done in product(range(2), repeat=3):
            p = (0.75, 0.25)[to_x] * (0.85, 0.15)[to_y] * (1 - served, served)[done]
            left = max(x - done * (a == 0), 0), max(y - done * (a == 1), 0)
            end = min(left[0] + to_x, n - 1) * n + min(left[1] + to_y, n - 1)
            P[x * n + y, a, end] += p
        r[x * n + y, a] = -(x + 1.5 * y)
    return MDP.from_dense(P, r, r_min=-2.5 * (n - 1), r_max=0.0)


class TestVacuousSets:
    def test_the_papers_constants_on_two_queues_of_400_states(self):
        """After 10⁶ steps; the bounds that are named do better on the same visits, and in a run of their own they are not flagged."""
        model = two_queues(20)
        run = learn(model, "scal[span_bound=50]", horizon=10**6, seed=0, gain=-1.64)
        (note,) = run.notes
        assert note.endswith(", and plans rest on optimism alone; UCRL or SCAL with bounds='kl' would leave 17 %.")
        assert 70 < int(note.partition("sets of ")[2].partition(" ")[0]) < 80
        assert learn(model, "scal[span_bound=50,bounds=kt]", horizon=10**6, seed=0, gain=-1.64).notes == []

    def test_narrow_sets_that_still_promise_everything(self):
        """KT on the same model: no set is vacuous, but 390 unseen successors of each pair add up, and the plan still hopes for r_max."""
        (note,) = learn(make("two-queues"), "scal[span_bound=2500,bounds=kt]", horizon=10**6, seed=0).notes
        assert "the last plan still promises a gain of -" in note
        assert "nearer to r_max = 0 than to g* = -1.64: exploration has not ended" in note

    def test_other_bounds_that_would_know_better_are_named(self, monkeypatch):
        """What is named is right: from the same counts its plan promises less than the middle of g* and r_max."""
        (short,) = learn("three-state", UCRL(), horizon=10**4, seed=0).notes
        assert short.endswith("exploration has not ended. Bounds 'kt' and 'kl' of UCRL and SCAL are the narrowest.")
        monkeypatch.setattr("spanrl.learning.notes._MANY_STEPS", 10**4)
        kept = Kept(UCRL())
        (note,) = learn("three-state", kept, horizon=10**4, seed=0).notes
        assert note.endswith("UCRL or SCAL with bounds='kt' would know better from the same visits.")
        (learner,) = kept.learners
        promised = evi(KT(0.05).bounded(learner.counts, learner.episode.start, learner.info)).gain
        assert promised < (2 / 3 + 1) / 2 < learner.plan.gain_bounds[0]
        assert learn("three-state", "ucrl[bounds=kt]", horizon=10**4, seed=0).notes == []

    @pytest.mark.parametrize("delta", [-1.0, 0.0, 1e6])
    def test_a_level_that_is_none_loses_no_run(self, delta):
        class Own(HoeffdingBall):
            def settings(self, info):
                return np.array([0.05])

        @dataclass(frozen=True)
        class Agent:
            def start(self, info, rng):
                return Learner(Rules(Own(delta)), info, generator("Agent", rng))

        run = learn("4-rooms", Agent(), horizon=5000, seed=0)
        assert "would leave" in run.notes[0] or "no other bounds" in run.notes[0]

    @pytest.mark.parametrize("agent", ["scal[span_bound=2]", "ucrl", "ucrl[bounds=kt]", "ucrl2", "psrl"])
    def test_three_states_are_learnt(self, agent):
        assert learn("three-state", agent, horizon=10**6, seed=0).notes == []

    def test_too_few_steps_for_any_bound(self):
        """KT, too, knows nothing of pairs that were visited a few times."""
        (note,) = learn("knight-quest", UCRL(), horizon=30, seed=0, gain=0.5).notes
        assert note == (
            "the confidence sets of 100 % of the pairs visited (3) are still vacuous, 100 % by steps, and plans rest on optimism alone; "
            "no other bounds would change that: there are too few steps per pair."
        )

    def test_agents_of_other_kinds_say_nothing(self):
        assert learn("three-state", "qlearning", horizon=10, seed=0).notes == []


def on_guarantee(run: Run) -> list[str]:
    return [note for note in run.notes if note.startswith("the guarantee")]


class TestSpanBounds:
    @pytest.mark.parametrize(("c", "holds"), [(1.0, False), (1.00502, False), (1.0050252, True), (2.0, True)])
    def test_below_the_span_of_the_optimal_bias(self, c, holds):
        """sp(h*) = 1.005025… on the three-state domain with δ = 0.005."""
        notes = on_guarantee(learn("three-state", SCAL(c), horizon=10**4, seed=0))
        wanted = f"the guarantee does not hold: span_bound = {c:.6g} is below sp(h*) = 1.00503."
        assert notes == ([] if holds else [wanted])

    def test_units_are_the_users(self):
        model = make("three-state").mdp
        P, r, available = model.to_dense()
        scaled = MDP.from_dense(P, 10 * r - 3, available=available, r_min=-3.0, r_max=7.0)
        assert on_guarantee(learn(scaled, SCAL(10.0), horizon=10**4, seed=0)) != []
        assert on_guarantee(learn(scaled, SCAL(10.1), horizon=10**4, seed=0)) == []

    def test_unknown_where_a_gain_is_given(self):
        """No model is solved only for this."""
        assert learn("three-state", SCAL(1.0), horizon=10**4, seed=0, gain=0.5).notes == []

    def test_agents_without_a_bound(self):
        assert on_guarantee(learn("three-state", UCRL(), horizon=10**4, seed=0)) == []

    @pytest.mark.parametrize(
        ("agent", "holds"),
        [("focus[span_bound=3]", False), ("focus[span_bound=6]", True), ("tsde[span_bound=2]", True)],
    )
    def test_the_bound_that_the_guarantee_needs(self, agent, holds):
        """FOCUS plans with twice its prior; what is proved of TSDE is Bayesian. sp(h*) = 5.018."""
        assert (on_guarantee(learn("riverswim", agent, horizon=1000, seed=0)) == []) == holds


class TestWhereTheyStand:
    def test_in_the_summary_and_in_files(self, tmp_path):
        run = learn("three-state", SCAL(1.0), horizon=10**4, seed=0)
        assert str(run).splitlines()[-1] == f"note      {run.notes[-1]}"
        run.save(tmp_path / "run")
        assert Run.load(tmp_path / "run").notes == run.notes == run.meta["notes"]
        assert json.loads((tmp_path / "run" / "meta.json").read_text())["run"]["notes"] == run.notes

    def test_cells_have_the_notes_of_learn(self):
        job = Job("id", "folder", "riverswim", "scal[span_bound=2]", 0, 1000, 100)
        files = Computation(job, None).run(lambda t, snapshot: None)
        run = learn("riverswim", "scal[span_bound=2]", horizon=1000, seed=0)
        assert json.loads(files["meta.json"])["run"]["notes"] == run.notes
        assert len(run.notes) == 2


class TestTheFirstEpisode:
    def test_one_that_never_ends_is_said(self):
        (note,) = learn("three-state", "ucrl[episodes=every-5000]", horizon=1000, seed=0).notes
        assert note.startswith("the first episode did not end in 1000 steps: its policy rests on no experience.")
        assert learn("three-state", "ucrl[episodes=every-500]", horizon=1000, seed=0).n_episodes[-1] == 2

    def test_few_steps_are_no_matter(self):
        assert learn("three-state", "ucrl[episodes=every-5000]", horizon=3, seed=0).notes == []


def test_vacuity_is_that_of_the_intersection():
    kept = Kept(UCRL(bounds="kt", intersect=True))
    learn("riverswim", kept, horizon=3000, seed=0)
    (learner,) = kept.learners
    at = learner.rules.estimate, learner.counts, learner.episode.start, learner.info, learner.began_in
    alone, both, bounded = free_mass(*at), free_mass(*at, learner.held), learner.confidence_set()
    low = np.add.reduceat(np.append(bounded.p_low, 0.0), np.minimum(bounded.succ_ptr[:-1], bounded.p_low.size))
    seen = learner.counts.n > 0
    assert (both[seen] <= 1 - low[seen] + 1e-12).all()
    assert (both <= alone + 1e-12).all()
    assert (both < alone - 1e-9).any()


def test_states_that_nothing_leads_to_are_named():
    """FrozenLake's holes keep their numbers but are never entered: UCRL hopes for them for ever, SCAL and PSRL do not."""
    (note,) = learn("gym:FrozenLake-v1", "ucrl[bounds=kt]", horizon=10**6, seed=0).notes
    assert "5 of 16 states were never seen; if nothing leads there, optimism about them never ends" in note
    assert learn("gym:FrozenLake-v1", "psrl", horizon=10**6, seed=0).notes == []


def test_start_states_with_different_gains():
    apart = MDP.from_dense(np.eye(2)[:, None], [[0.2], [1.0]], start=[0.5, 0.5])
    (note,) = learn(apart, "psrl", horizon=100, seed=0).notes
    assert note.startswith("the optimal gains of the start states differ, and g* is their mean")
    alike = MDP.from_dense(np.eye(2)[:, None], [[0.2], [0.2]], start=[0.5, 0.5])
    assert learn(alike, "psrl", horizon=100, seed=0).notes == []
