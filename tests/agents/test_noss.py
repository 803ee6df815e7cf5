"""UCRL3 with NOSS: decision by decision against plain numpy, plans that are cut and counted, and sole successors."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from family_samples import Decision, assert_same_decisions, lowest

import plain_bounds as plain
from spanrl import UCRL3, ProblemInfo, check_agent, learn, make, make_agent
from spanrl.agents.learner import Learner, Rules
from spanrl.agents.registry import agent_id
from spanrl.confidence.ucrl3 import NearOptimisticBox, UCRL3Box
from spanrl.errors import OptionError
from ways import assert_all_ways_agree, assert_interpreted_agrees, ragged_env

RIVER, SHORT_RIVER = "riverswim[variant=ucrl3]", "riverswim[variant=osband,n_states=4]"


class Damped:
    """Value iteration as the planner does it where nothing is monotone: 1000 sweeps at most, steps of 1, 0.9 and 0.5."""

    def __init__(self, S, warm):
        self.v, self.warm, self.n_cut = np.zeros(S), warm, 0

    def __call__(self, q, tol):
        v, a, before, look = self.v if self.warm else 0 * self.v, 1.0, np.inf, 4
        for n in range(1, 1001):
            u = q(v).max(axis=1)
            width = np.ptp(u - v)
            if width <= tol or n == 1000:
                self.n_cut += bool(width > tol)
                break
            if n == look:
                a = a if width <= 0.9 * before else 0.9 if a == 1.0 else 0.5
                before, look = width, 2 * look
            v = (1 - a) * v + a * u
            v = v - v[0]
        self.v = v
        return v


def plain_noss(S, *, warm=True, power=2 / 3, sole=False):
    """Return the decisions of UCRL3 with NOSS as its docstring has them, and the iteration that keeps its last values."""
    iterate = Damped(S, warm)

    def decide(counts, allowed, t, s, steps):
        M = plain.ucrl3_set(counts, allowed)
        kappa = plain.noss_kappa(counts) * max(1, counts.N.max()) ** (2 / 3 - power)
        low = M.p_low.copy()
        for i in zip(*np.nonzero((counts.successors > 0).sum(axis=2) == 1), strict=True):
            x = counts.successors[i].argmax()
            low[(*i, x)] = max(low[(*i, x)], 0.5 ** (1 / counts.N[i])) if sole else low[(*i, x)]

        def q(v):
            found = np.full(allowed.shape, -np.inf)
            for i in zip(*np.nonzero(allowed), strict=True):
                seen = counts.successors[i] > 0
                found[i] = M.r_high[i] + plain.noss_value(low[i], M.p_high[i], seen, kappa[i], v)[0]
            return found

        best = lowest(q(iterate(q, 1 / sqrt(t))))
        return Decision(best, best, np.zeros(S), np.maximum(1, counts.N))

    return decide, iterate


@pytest.mark.parametrize(
    ("env", "options"),
    [("three-state[delta=0.05]", {}), (SHORT_RIVER, {"sole_successors": True})],
    ids=["three-state", "riverswim"],
)
def test_a_plain_version_decides_alike(env, options):
    decide, _ = plain_noss(make(env).mdp.n_states, sole=bool(options))
    assert_same_decisions(make(env), UCRL3(noss=True, **options), decide, 500, fewest=10)


def test_a_cold_start_decides_alike():
    decide, _ = plain_noss(3, warm=False)
    assert_same_decisions(make("three-state[delta=0.05]"), UCRL3(noss=True, warm_start=False), decide, 500, fewest=10)


def test_another_power_shows():
    decide, _ = plain_noss(4, power=2.0)
    with pytest.raises(AssertionError):
        assert_same_decisions(make(SHORT_RIVER), UCRL3(noss=True), decide, 1500, fewest=10)


def test_plans_that_go_round_in_circles_are_cut_and_counted():
    run = learn(RIVER, UCRL3(noss=True), horizon=5000, seed=8, audit=True)
    wide = run.episodes["gain_high"] - run.episodes["gain_low"] > 1 / np.sqrt(run.episodes["start"])
    assert run.meta["plans_cut"] == wide.sum() > 0
    assert (run.episodes["sweeps"][wide] == 1000).all()
    assert run.episodes["contains"].all()
    (note,) = (note for note in run.notes if "NOSS" in note)
    assert note.startswith(f"{wide.sum()} of {wide.size} plans ended after 1000 sweeps")


def test_without_noss_nothing_is_counted():
    run = learn("three-state", UCRL3(), horizon=100, seed=0)
    assert "plans_cut" not in run.meta


@pytest.mark.parametrize("agent", [UCRL3(noss=True), UCRL3(noss=True, warm_start=False)], ids=["warm", "cold"])
def test_all_ways_agree(agent):
    run, _ = assert_all_ways_agree(ragged_env(1), agent, 2000, 1)
    assert run.n_episodes[-1] > 10


def test_interpreted():
    assert_interpreted_agrees(ragged_env(1), UCRL3(noss=True, sole_successors=True), 200, 1)


def test_sole_successors_exclude_what_is_true():
    """A successor of probability ½ that comes twice in a row, which happens in a quarter of all cases, is said to have 0.7 or more."""
    info = ProblemInfo(2, 1)
    learner = UCRL3(noss=True, sole_successors=True).start(info, 0)
    for _ in range(3):
        learner.act(0)
        learner.observe(0.0, 0)
    assert learner.counts.n.sum() == 2
    lows = [
        estimate.bounded(learner.counts, 3, info).p_low[0]
        for estimate in (NearOptimisticBox(0.05, sole_successors=True), UCRL3Box(0.05))
    ]
    assert lows[0] == pytest.approx(sqrt(0.5))
    assert lows[1] < 0.5


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"noss": 1}, r"UCRL3: noss must be true or false; got 1"),
        ({"noss": True, "sole_successors": "x"}, r"UCRL3: sole_successors must be true or false"),
        ({"sole_successors": True}, r"UCRL3: sole_successors goes with noss; got True\. Give noss=True, too"),
    ],
)
def test_options(given, words):
    with pytest.raises(OptionError, match=words):
        UCRL3(**given)


def test_nothing_else_goes_with_it():
    for more in ({"mixture": True}, {"mixture": False, "span_bound": 2.0}):
        with pytest.raises(OptionError, match="NOSS goes with mixture=False, and without span_bound and differences"):
            Rules(NearOptimisticBox(0.05), **more)
    rules = Rules(NearOptimisticBox(0.05), mixture=False, intersect=True)
    with pytest.raises(OptionError, match="cannot be intersected"):
        Learner(rules, ProblemInfo(2, 1), np.random.default_rng(0))


def test_contract():
    check_agent(UCRL3(noss=True))


def test_names():
    agent = UCRL3(noss=True, sole_successors=True)
    assert make_agent(agent_id(agent)) == agent
