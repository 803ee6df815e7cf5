"""Every claim of the family holds, and every mutant breaks it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from family_claims import CLAIMS

FAMILY = Path(__file__).parents[2] / "docs" / "family.md"
MUTANTS = [
    pytest.param(claim, mutant, id=f"{claim.id}: {what}") for claim in CLAIMS for what, mutant in claim.mutants.items()
]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_it_holds(claim):
    claim.check(claim.real)


@pytest.mark.parametrize(("claim", "mutant"), MUTANTS)
def test_a_mutant_is_noticed(claim, mutant):
    with pytest.raises(AssertionError):
        claim.check(mutant)


def test_every_agent_has_its_ingredients():
    found = {}
    for claim in CLAIMS:
        found.setdefault(claim.agent, set()).add(claim.ingredient)
        assert claim.mutants, claim.id
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    assert set(found) == {"ucrl2b", "ucrl3", "kl-ucrl", "tucrl", "scal-plus", "focus", "psrl", "tsde", "imed-rl"}
    events = {"coverage", "good-event", "posterior", "growth", "index"}
    for agent, ingredients in found.items():
        assert ingredients & events, agent
        assert "episodes" in ingredients or agent == "imed-rl", "which has none"
        assert "optimism" in ingredients or agent in ("psrl", "tsde", "imed-rl"), "which are not optimistic"


def test_the_docs_list_them():
    assert sorted(re.findall(r"`(FAM-[a-z0-9-]+)`", FAMILY.read_text("utf-8"))) == sorted(claim.id for claim in CLAIMS)
