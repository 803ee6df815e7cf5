"""The reproduction in Markdown, for a repository: facts, verdicts, tables, figures by relative path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from spanrl.paper.page.beyond import NO_SLIPS, SLIPS_INTRO, Sweep, beyond
from spanrl.paper.page.claims import ShownClaim
from spanrl.paper.page.contents import BOUND, EXPERIMENTS, PLANNING, TITLES, ordered
from spanrl.paper.page.experiments import NOTE, TIME_CAPTION, ShownExperiment, shown_experiments
from spanrl.paper.page.making import BUSY_CAPTION, Spent, busy_table, command, dominates, part_table, provenance
from spanrl.paper.page.notation import formula, plain, power, shown
from spanrl.paper.page.parts import Drawn, Figures, Missing, figures
from spanrl.paper.page.summary import AUTHORS, PAPER, facts, unexpected
from spanrl.paper.slips import Slip
from spanrl.report.table import Table, inert, markdown_table
from spanrl.report.text import plural

if TYPE_CHECKING:
    from spanrl.paper.reproduce import Reproduction


def markdown(found: Reproduction, drawn: Figures, time: Spent) -> str:
    """Return the text of reproduction.md, GitHub's flavour."""
    more = beyond(found, drawn)
    return (
        _joined(
            f"# The paper, executed\n\n*{PAPER}* by {AUTHORS}, ICML 2018: every claim checked, every figure reproduced, by "
            f"`{command(found.scale)}`.",
            markdown_table(Table(("Fact", "Value"), list(facts(found, time).items()))),
            _surprises(found),
            f"## {TITLES['experiments']}",
            *(_experiment(one, found) for one in shown_experiments(found, drawn)),
            f"## {TITLES['sweep']}",
            *map(_shown, more.sweeps),
            f"## {TITLES['claims']}",
            _claims(found),
            f"### {BOUND}",
            *map(_shown, more.bound),
            f"### {PLANNING}",
            *map(_shown, (*more.planning, *more.costs)),
            f"## {TITLES['slips']}",
            _slips([slip for slip, _ in more.slips]),
            f"## {TITLES['making']}",
            _text(dominates(time)),
            *map(_shown, figures(drawn, "time")),
            "Seconds on the clock by part of the work:",
            markdown_table(part_table(time)),
            _text(BUSY_CAPTION),
            markdown_table(busy_table(time)),
            markdown_table(Table(("What", "Which"), list(provenance(found.run, found.scale).items()))),
        )
        + "\n"
    )


def _surprises(found: Reproduction) -> str:
    names = unexpected(found)
    return f"**{plural(len(names), 'claim')} not as expected: {', '.join(names)}.**" if names else ""


def _claims(found: Reproduction) -> str:
    claims = [ShownClaim(name, found.claims[name]) for name in ordered(found.claims)]
    rows = [_claim_row(claim) for claim in claims]
    said = [_text(line) for claim in claims for line in _explained(claim)]
    return _joined(markdown_table(Table(("Id", "Claim", "Place", "Verdict", "Expected"), rows)), *said)


def _claim_row(claim: ShownClaim) -> list[str]:
    title, place, verdict, expected = (claim.entry[key] for key in ("title", "place", "verdict", "expected"))
    return [claim.id, formula(title), formula(place), f"{claim.sign} {verdict}", expected]


def _explained(claim: ShownClaim) -> Iterator[str]:
    """Yield why a claim is expected not to hold, and what its verdict rests on; that one was not asked for needs no sentence."""
    entry, (heading, words) = claim.entry, claim.broke
    if entry.get("reason"):
        verb = {"fails": "fail", "vacuous": "be vacuous"}.get(str(entry["expected"]), entry["expected"])
        yield f"{claim.id}, expected to {verb}: {entry['reason']}"
    if words and (entry["verdict"] != "not-run" or "error" in entry["numbers"]):
        yield f"{claim.id}, {entry['verdict']}. {heading} {words}."


def _experiment(one: ShownExperiment, found: Reproduction) -> str:
    name, tables = one.claim.id, one.tables
    head, more = _judged(one.claim, "### "), [_judged(claim, "#### ") for claim in one.more]
    if isinstance(tables, Missing):
        fill = f"`spanrl reproduce --only {name}` with the same scale and folder fills it."
        told = f"This experiment is not complete here. {fill}" if tables.claim else _text(tables.reason)
        return _joined(head, *map(_shown, one.figures), told, *more)
    at = f"At T = {power(found.experiments[EXPERIMENTS[name]].horizon)}; brackets are 95 % t intervals of the mean."
    over_time = [_text(NOTE), _text(TIME_CAPTION), markdown_table(tables.over_time)] if tables.over_time else []
    shown = map(_shown, (*one.figures, *one.alone))
    return _joined(head, *shown, at, markdown_table(tables.finals), *over_time, *map(_text, tables.said), *more)


def _judged(claim: ShownClaim, mark: str) -> str:
    """Return a claim about an experiment: heading, statement, verdict."""
    entry = claim.entry
    return _joined(
        f"{mark}{claim.id}. {_text(entry['title'])}",
        _text(entry["statement"]),
        f"**{claim.sign} {claim.verdict}**",
    )


def _slips(slips: Sequence[Slip]) -> str:
    return _joined(SLIPS_INTRO, "\n".join(map(_slip, slips))) if slips else NO_SLIPS


def _slip(slip: Slip) -> str:
    numbers = "; ".join(f"{name}: {shown(value)}" for name, value in slip.numbers.items())
    doubt = "" if slip.shown else " Not shown by these numbers."
    return (
        f"- **{_text(slip.title)}** ({_text(slip.place)}). Printed: {_text(slip.printed)} Right: {_text(slip.found)} "
        f"Numbers: {_text(numbers) or 'none'}.{doubt}"
    )


def _shown(one: Drawn | Sweep | Table | Missing) -> str:
    """Return a part of the page, or the sentence that stands in its place."""
    if isinstance(one, Missing):
        return _text(one.reason)
    if isinstance(one, Table):
        return markdown_table(one)
    if isinstance(one, Sweep):
        return _joined(*map(_shown, one.figures), _text(one.sentence), markdown_table(one.table))
    return f"![{_text(plain(one.title))}](figures/{one.name}.png)\n\n*{_text(one.title)}.* {_text(one.caption)}"


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _text(words: object) -> str:
    """Return text in which nothing is markup but indices and exponents."""
    return inert(formula(words))
