"""The second writing of the domains against outcomes typed by hand, and the checks of tables and draws, which must notice mistakes."""

from __future__ import annotations

import ast
from pathlib import Path

import mutants_domains as wrong
import numpy as np
import pytest
from mutants_learning import wider_delta
from scipy.stats import chi2, chisquare, kstest

import spanrl
import spanrl.paper
from spanrl.models.counts import Batch
from spanrl.paper.claims import sampling
from spanrl.paper.claims.base import Ledger
from spanrl.paper.claims.domains import check_domain, drawn_law, leads_on, rules_of
from spanrl.paper.claims.sampling import PlainDraw, Statistic, check_sampling, drawn, judge, wander, word_by_word
from spanrl.paper.oracles_domains import Chance, Scene, domain, state_of

NAMES = ("two-state", "three-state", "three-state[delta=0]", "three-state[delta=0.05]", "knight-quest")
STEP, MISUSE, DEATH, RESCUE = 0.475, 0.25, 0.0, 1.0
RESET = {"(0,3) dragon=(0,1)": 1 / 3, "(0,3) dragon=(1,0)": 1 / 3, "(0,3) dragon=(1,1)": 1 / 3}


def outcomes(here, action):
    """Return {(name of the next state, reward): probability} of Knight Quest."""
    names = {state_of(name): name for name in spanrl.make("knight-quest").mdp.state_names}
    return {(names[one.after], one.mean): one.prob for one in domain("knight-quest").chances[state_of(here), action]}


def patrol(after, reward, share=1.0):
    """Return the outcomes of a step that ends in ``after`` (a name with {} for the dragon) while the dragon leaves (0,1)."""
    return {(after.format("(0,1)"), reward): 0.4 * share, (after.format("(1,1)"), reward): 0.6 * share}


BY_HAND = {
    "a move without armour": ("(2,2) dragon=(0,1)", "right", patrol("(2,3) dragon={}", STEP)),
    "a move into a wall": ("(3,3) gold dragon=(0,1)", "down", patrol("(3,3) gold dragon={}", STEP)),
    "a move with armour": (
        "(2,2) dragon=(0,1) armour",
        "up",
        patrol("(1,2) dragon={} armour", STEP, 0.5) | patrol("(2,2) dragon={} armour", STEP, 0.5),
    ),
    "staying with armour": ("(2,2) dragon=(0,1) armour", "stay", patrol("(2,2) dragon={} armour", STEP)),
    "collecting": ("(3,1) dragon=(0,1)", "collect gold", patrol("(3,1) gold dragon={}", STEP)),
    "collecting in armour": (
        "(3,1) dragon=(0,1) key+armour",
        "collect gold",
        patrol("(3,1) gold dragon={} key+armour", STEP, 0.01) | patrol("(3,1) dragon={} key+armour", STEP, 0.99),
    ),
    "collecting with gold in hand": (
        "(3,1) gold dragon=(0,1) armour",
        "collect gold",
        patrol("(3,1) gold dragon={} armour", STEP),
    ),
    "collecting outside the mine": ("(3,2) dragon=(0,1)", "collect gold", patrol("(3,2) dragon={}", MISUSE)),
    "buying a key": ("(0,3) gold dragon=(0,1)", "buy key", patrol("(0,3) dragon={} key", STEP)),
    "buying a second key": ("(0,3) gold dragon=(0,1) key", "buy key", patrol("(0,3) dragon={} key", STEP)),
    "buying armour to a key": ("(0,3) gold dragon=(0,1) key", "buy armour", patrol("(0,3) dragon={} key+armour", STEP)),
    "buying in armour": ("(0,3) gold dragon=(0,1) armour", "buy key", patrol("(0,3) dragon={} key+armour", STEP)),
    "buying without gold": ("(0,3) dragon=(0,1)", "buy armour", patrol("(0,3) dragon={}", STEP)),
    "buying outside the town": ("(0,2) gold dragon=(0,1)", "buy key", patrol("(0,2) gold dragon={}", MISUSE)),
    "meeting on arrival": (
        "(0,2) gold dragon=(0,1) key",
        "left",
        {("(0,1) gold dragon=(1,1) key", STEP): 0.6} | {(name, DEATH): 0.4 * p for name, p in RESET.items()},
    ),
    "meeting after misuse": (
        "(1,1) dragon=(0,1)",
        "buy key",
        {("(1,1) dragon=(0,1)", MISUSE): 0.4} | {(name, DEATH): 0.6 * p for name, p in RESET.items()},
    ),
    "a swap of cells": (
        "(1,1) dragon=(0,1) key",
        "up",
        {("(0,1) dragon=(1,1) key", STEP): 0.6} | {(name, DEATH): 0.4 * p for name, p in RESET.items()},
    ),
    "on the dragon's cell in armour": (
        "(0,1) dragon=(0,1) armour",
        "stay",
        patrol("(0,1) dragon={} armour", STEP),
    ),
    "rescue": ("(1,0) dragon=(0,1) key", "up", {(name, RESCUE): p for name, p in RESET.items()}),
    "rescue in armour": (
        "(0,1) gold dragon=(0,1) key+armour",
        "left",
        {(name, RESCUE): 0.5 * p for name, p in RESET.items()} | patrol("(0,1) gold dragon={} key+armour", STEP, 0.5),
    ),
    "at the princess without a key": ("(0,1) dragon=(1,0)", "left", {("(0,0) dragon=(1,0)", STEP): 0.4,
                                                                     ("(0,0) dragon=(1,1)", STEP): 0.6}),
}  # fmt: skip


@pytest.mark.parametrize("what", BY_HAND)
def test_outcomes_of_knight_quest_by_hand(what):
    here, action, want = BY_HAND[what]
    assert outcomes(here, action) == pytest.approx(want, abs=1e-15)


def test_knight_quest_has_no_scene_that_is_an_ending():
    quest = domain("knight-quest")
    assert len({scene for scene, _ in quest.chances}) == 360
    assert len(quest.chances) == 360 * 8
    assert (Scene((0, 0), (1, 1), key=True), "up") not in quest.chances
    assert (Scene((1, 1), (1, 1), gold=True), "up") not in quest.chances
    assert quest.start == {state_of(name): p for name, p in RESET.items()}


def test_small_domains_by_hand():
    assert domain("two-state").chances["s1", "a1"] == [Chance(1.0, "s1", "fixed", 1.0)]
    assert domain("three-state").chances["s0", "a0"][0] == Chance(0.005, "s1", "fixed", 0.0)
    assert domain("three-state[delta=0]").chances["s2", "a0"] == [Chance(1.0, "s0", "bernoulli", 2 / 3)]
    assert domain("three-state[delta=0.25]").chances["s2", "a0"][1].prob == 0.75


def test_second_writing_imports_nothing_of_ours():
    tree = ast.parse((Path(spanrl.paper.__file__).parent / "oracles_domains.py").read_text(encoding="utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert not [m for m in modules if m.startswith("spanrl")]


@pytest.mark.parametrize("name", NAMES)
def test_environments_are_their_domains(name):
    ledger = Ledger()
    check_domain(ledger, spanrl.make(name), name)
    assert ledger.outcome().verdict == "holds", ledger.outcome()


DOMAIN_MUTANTS = {
    "thresholds": (wrong.drawing(wrong.lower_thresholds), "three-state", "tables to draw from"),
    "successors": (wrong.drawing(wrong.swapped_successors), "knight-quest", "leads where it says"),
    "means": (wrong.paid_as_means, "three-state", "outcomes"),
    "means of outcomes": (wrong.paid_as_means, "knight-quest", "outcomes"),
    "twice the slip": (wider_delta, "three-state[delta=0.05]", "outcomes"),
    "death": (wrong.quest(wrong.lesser_death), "knight-quest", "mean rewards of the model"),
    "misuse": (wrong.quest(wrong.free_misuse), "knight-quest", "mean rewards of the model"),
    "lair": (wrong.quest(wrong.same_lair), "knight-quest", "transitions of the model"),
    "second key": (wrong.quest(wrong.key_to_armour), "knight-quest", "transitions of the model"),
}


@pytest.mark.parametrize("mistake", DOMAIN_MUTANTS)
def test_mistakes_in_a_domain_are_noticed(mistake, real):
    mutant, name, words = DOMAIN_MUTANTS[mistake]
    ledger = Ledger()
    check_domain(ledger, mutant(real).make(name), name)
    assert any(words in broken for broken in ledger.broken), ledger.outcome()


def test_other_states_are_noticed(real):
    ledger = Ledger()
    check_domain(ledger, real.make("two-state"), "three-state")
    assert ledger.broken == {"three states: the states and actions are those of the rules"}


def test_law_of_the_tables_is_that_of_many_draws():
    env = spanrl.Env.from_outcomes({(0, 0): [(0.6, 0, 0.0), (0.3, 0, 0.5), (0.1, 0, 1.0)]})
    assert drawn_law(env.sampler) == pytest.approx({(0, 0, 0.0): 0.6, (0, 0, 0.5): 0.3, (0, 0, 1.0): 0.1}, abs=1e-15)
    assert leads_on(env.sampler)
    assert not leads_on(env.sampler._replace(successors=env.sampler.successors + np.uint64(1)))


def test_draws_have_the_law_of_the_rules(real):
    ledger = Ledger()
    check_sampling(real, ledger)
    assert ledger.outcome().verdict == "holds", ledger.outcome()


def broken_by(system, name, horizon, limit):
    """Return what the statistics alone notice of a domain."""
    ledger = Ledger()
    env = system.make(name)
    law = rules_of(ledger, env, name).law
    judge(ledger, wander(system, ledger, env, name, law, horizon=horizon, limit=limit))
    return "; ".join(ledger.broken)


def test_small_mistakes_of_compiled_runs_are_noticed_word_by_word(real):
    name = sampling.RUNS[1][0]
    system, ledger = wrong.drawing_compiled(wrong.lower_thresholds)(real), Ledger()
    word_by_word(system, ledger, system.make(name), name)
    assert ledger.broken == {f"{name}: a compiled run draws what its words say"}


def test_plain_draws_by_hand():
    env = spanrl.Env.from_outcomes({(0, 0): [(0.25, 0, 0.0), (0.75, 0, 1.0)]})
    draw = PlainDraw(env.sampler)
    # two slots: the first half of all words is shared, half a half for the reward 0; the second half pays 1
    assert [draw(0, int(u * 2**64))[0] for u in (0.0, 0.24, 0.26, 0.49, 0.51, 0.99)] == [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]


def test_single_steps_are_looked_at(real, monkeypatch):
    name = sampling.RUNS[1][0]
    ledger = Ledger()
    monkeypatch.setattr(spanrl.Env, "step", lambda self, state, action, rng: (float(rng.integers(2)), 0))
    word_by_word(real, ledger, real.make(name), name)
    assert ledger.broken == {f"{name}: single steps draw what their words say"}


@pytest.mark.parametrize(
    ("mutant", "words"),
    [
        (wrong.one_stream, "χ²"),
        (wrong.paid_as_means, "outcomes seen that cannot be"),
        (wrong.drawing(wrong.swapped_successors), "visits of a state less its arrivals"),
    ],
)
def test_statistics_alone_notice_mistakes(mutant, words, real):
    assert words in broken_by(mutant(real), "three-state[delta=0.05]", 10**6, 10**5)


@pytest.mark.parametrize("change", [wrong.lesser_death, wrong.free_misuse, wrong.same_lair])
def test_statistics_alone_notice_other_rules(change, real):
    assert broken_by(wrong.quest(change)(real), *sampling.RUNS[2])


def test_streams_that_are_one_are_noticed(monkeypatch):
    def same(seed):
        return spanrl.streams(0)[0], spanrl.streams(0)[0]

    monkeypatch.setattr(sampling, "streams", same)
    ledger = Ledger()
    judge(ledger, sampling.streams_apart(ledger))
    assert {"streams share no number", "streams: correlation (level 0.001 over all tests)"} == ledger.broken


def test_distance_from_uniform_is_that_of_scipy():
    u = np.random.default_rng(0).random(1000) ** 1.2
    assert sampling._distance(u) == pytest.approx(kstest(u, "uniform").statistic, abs=1e-15)


def test_chi_square_is_that_of_scipy():
    seen = Batch.from_dict({(0, 0.0, 0): 480, (0, 1.0, 0): 520, (1, 0.5, 1): 7, (2, 0.0, 0): 3})
    law = {(0, 0, 0.0): 0.5, (0, 0, 1.0): 0.5, (1, 1, 0.5): 1.0, (2, 0, 0.0): 0.5, (2, 1, 0.0): 0.5}
    ledger = Ledger()
    chi, mean = drawn(ledger, "coin", seen, law)
    assert chi.value == pytest.approx(chisquare([480, 520]).statistic)
    assert chi.law.args == (1,)
    assert mean.value == pytest.approx((20 / np.sqrt(250)) ** 2)
    assert not ledger.broken


def test_judge_keeps_the_worst_of_equal_names():
    ledger = Ledger()
    judge(ledger, [Statistic("a", 3.0, chi2(1)), Statistic("a", 20.0, chi2(1)), Statistic("a", 1.0, chi2(1))])
    assert ledger.numbers["a: statistic and threshold"] == [20.0, pytest.approx(chi2.isf(1e-3 / 3, 1))]
    assert ledger.broken == {"a (level 0.001 over all tests)"}
