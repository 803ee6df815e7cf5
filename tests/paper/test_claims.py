"""Every claim has its expected verdict, on our functions and on the slow ones, and turns on each of its mutants."""

from __future__ import annotations

import dataclasses
import functools
import json

import mutants_domains
import pytest
from mutants_of import MUTANTS_OF

from spanrl.errors import ModelError
from spanrl.paper.claims import SMOKE, all_claims, expected_verdicts
from spanrl.paper.claims.base import CheckResult, Claim, Ledger
from spanrl.paper.experiments import experiment_spec

CLAIMS = all_claims()
LEARNING = ["C0", "C1", "C2", "R1", "R2", "R6", "R3", "R4", "R5"]
EXPERIMENTS = ["G1", "G2", "G5", "G6", "G7", "G3", "G4"]
IDS = [
    *("E0", "E1", "L2", "L3", "P1", "L5"),
    *(f"O{i}" for i in range(1, 10)),
    *("F1", "F2", "F3", "X1", "X2", "X3", "B1", "B2", "M1", "M2", "M3", "D1", "S1", "S2"),
    *LEARNING,
    *EXPERIMENTS,
]
SOME = dataclasses.replace(SMOKE, instances=SMOKE.instances // 2)
MUTANTS = [pytest.param(c, name, id=f"{c.id}-{name}") for c in CLAIMS for name in MUTANTS_OF[c.id]]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_verdict_is_the_expected_one(claim, real):
    outcome = claim.run(real, SMOKE)
    assert outcome.verdict == expected_verdicts()[claim.id]["verdict"], outcome.numbers
    assert json.loads(json.dumps(outcome.numbers, allow_nan=False)) == outcome.numbers


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.id not in EXPERIMENTS], ids=lambda c: c.id)
def test_checker_asks_for_nothing_that_only_our_kernels_do(claim, slow, slow_learning):
    """Half of the instances do, unless a rare case is not among them."""
    system, expected = slow_learning if claim.id in LEARNING else slow, expected_verdicts()[claim.id]["verdict"]
    outcome = claim.run(system, SOME)
    if outcome.verdict == "vacuous" != expected:
        outcome = claim.run(system, SMOKE)
    assert outcome.verdict == expected, outcome.numbers


class Noticed(BaseException):
    """A requirement is broken; no checker takes this for an error of its own."""


class Alarm(set):
    """The broken requirements of a ledger, of which the first ends the check: the verdict ``fails`` is certain then."""

    def add(self, name):
        raise Noticed(name)


class HastyLedger(Ledger):
    def __init__(self):
        super().__init__()
        self.broken = Alarm()


def few_seeds(name, scale):
    """Return an experiment with its first two seeds alone."""
    spec = experiment_spec(name, scale)
    return dataclasses.replace(spec, seeds=spec.seeds[:2])


@pytest.fixture(scope="module")
def with_few_seeds(real):
    """Return what tells whether a mutant breaks a requirement that our functions keep on the same two seeds: they cost a third."""

    def broken(claim, system):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(f"{claim.check.__module__}.experiment_spec", few_seeds)
            return set(str(claim.run(system, SMOKE).numbers.get("broken", "")).split("; ")) - {""}

    kept = functools.cache(lambda claim: broken(claim, real))
    return lambda claim, system: bool(broken(claim, system) - kept(claim))


@pytest.mark.parametrize(("claim", "name"), MUTANTS)
def test_mutant_turns_the_claim(claim, name, real, with_few_seeds, monkeypatch):
    """Where a claim holds, the first requirement that a mutant breaks is enough; where it fails, the mutant must end that."""
    expected, mutant = expected_verdicts()[claim.id]["verdict"], MUTANTS_OF[claim.id][name]
    if expected == "fails":
        outcome = claim.run(mutant(real), SMOKE)
        assert outcome.verdict != "fails", f"{claim.id} does not notice: {name}"
        return
    if claim.experiment is not None and with_few_seeds(claim, mutant(real)):
        return
    monkeypatch.setattr(f"{claim.check.__module__}.Ledger", HastyLedger)
    with pytest.raises(Noticed):
        claim.run(mutant(real), SMOKE)


def test_registry_is_complete_and_agrees_with_the_tables():
    assert [c.id for c in CLAIMS] == IDS
    assert list(expected_verdicts()) == IDS
    assert list(MUTANTS_OF) == IDS


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_claim_is_described_and_has_a_mutant(claim):
    assert MUTANTS_OF[claim.id]
    for words in (claim.title, claim.place, claim.statement, claim.tolerance):
        assert words.strip()


def test_table_gives_a_reason_where_a_claim_does_not_hold():
    for entry in expected_verdicts().values():
        assert entry["verdict"] in {"holds", "fails", "vacuous", "not-run"}
        assert entry["verdict"] == "holds" or entry["reason"]


def test_system_is_frozen(real):
    with pytest.raises(dataclasses.FrozenInstanceError):
        real.clip_span = None


def test_ledger_keeps_the_worst_and_fails_on_nan():
    ledger = Ledger()
    ledger.within("a", -1.0)
    ledger.within("a", -0.5)
    ledger.within("a", -2.0)
    assert ledger.outcome().verdict == "holds"
    assert ledger.outcome().numbers["worst excess, a"] == -0.5
    ledger.within("a", float("nan"))
    assert ledger.outcome().verdict == "fails"
    assert ledger.outcome().numbers["broken"] == "a"


def test_ledger_is_vacuous_without_the_cases_it_needs():
    ledger = Ledger()
    ledger.count("cases", False)
    assert ledger.outcome(needs=("cases",)).verdict == "vacuous"
    ledger.count("cases")
    assert ledger.outcome(needs=("cases",)).verdict == "holds"
    ledger.equal("g", 1.0, 2.0)
    assert ledger.outcome(needs=("cases",)).verdict == "fails"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ImportError("cannot import name 'diags_array'"), "ImportError: cannot import name 'diags_array'"),
        (ZeroDivisionError(), "ZeroDivisionError"),
        (ModelError("broken model"), "broken model"),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("name", ["L2", "R3"])
def test_an_error_in_a_checker_finds_nothing_out(name, error, told, real):
    """It is no failure of the paper's statement, whether that is expected to hold (L2) or to fail (R3)."""

    def check(system, scale):
        raise error

    claim = next(one for one in CLAIMS if one.id == name)
    assert dataclasses.replace(claim, check=check).run(real, SMOKE) == CheckResult("not-run", {"error": told})


def test_an_interruption_is_not_swallowed(real):
    def check(system, scale):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Claim("Z", "t", "p", "s", "t", check).run(real, SMOKE)


@pytest.mark.parametrize("change", [mutants_domains.lower_thresholds, mutants_domains.swapped_successors])
def test_other_tables_have_the_types_that_loops_are_compiled_for(change, real):
    """Otherwise a run after others would fail for that alone."""
    env = mutants_domains.drawing(change)(real).make("three-state")
    *tables, clock = env.sampler
    assert not any(part.flags.writeable for part in tables)
    assert clock.flags.writeable
    assert any((one != other).any() for one, other in zip(env.sampler, real.make("three-state").sampler, strict=True))
