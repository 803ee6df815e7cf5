"""The reproduction in Markdown, for a repository: facts, verdicts, tables, figures by relative path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from html import unescape
from typing import TYPE_CHECKING

from spanrl.paper.claims.experiments import SIGNIFICANT, diameter_of
from spanrl.paper.curves import Experiment
from spanrl.paper.page.contents import EXPERIMENTS
from spanrl.paper.page.experiments import (
    AGENT_HEADERS,
    DIAMETER_HEADERS,
    FIGURES,
    SIGNS,
    agent_row,
    comparison_sentence,
    diameter_row,
    order_sentence,
    reference,
)
from spanrl.paper.page.extra import (
    BACKUP_HEADERS,
    COST_HEADERS,
    PLANNED,
    SWEEPS,
    backup_rows,
    cost_row,
    sweep_rows,
    sweep_sentence,
)
from spanrl.paper.page.findings import OverTime, costs, finals, over_time
from spanrl.paper.page.making import PART_HEADERS, Spent, busy_rows, command, dominates, part_rows, provenance
from spanrl.paper.page.parts import MARKS, Drawn, guarded, power, shown
from spanrl.paper.page.summary import AUTHORS, PAPER, facts, unexpected
from spanrl.paper.slips import Slip
from spanrl.report.text import number, one_line, plural

if TYPE_CHECKING:
    from spanrl.paper.reproduce import Reproduction


def markdown(found: Reproduction, drawn: Mapping[str, Drawn], slips: Sequence[Slip], time: Spent) -> str:
    """Return the text of reproduction.md, GitHub's flavour."""
    parts = [
        f"# The paper, executed\n\n*{PAPER}* by {AUTHORS}, ICML 2018: every claim checked, every figure reproduced, by "
        f"`{command(found.scale)}`.",
        _table(("Fact", "Value"), facts(found, time).items()),
        _surprises(found),
        "## Claims",
        _claims(found),
        "## The experiments",
        *(
            guarded(name, partial(_experiment, name, found, drawn), _plain)
            for name in EXPERIMENTS
            if name in found.claims
        ),
        "## Beyond the paper",
        "### Slips of the text",
        _slips(slips),
        "### Regret against the bound",
        _figures(drawn, "bound") or "The three-state experiment is not complete here.",
        "### When c is wrong",
        guarded("The sweeps", partial(_sweeps, found.experiments, drawn), _plain),
        "### The cost of planning",
        guarded("The cost of planning", partial(_planning, found, drawn), _plain),
        "## How it was made",
        dominates(time),
        _figures(drawn, "time"),
        _table(PART_HEADERS, part_rows(time)),
        _table(("Kind", "Core seconds", "Share"), busy_rows(time)),
        _table(("What", "Which"), provenance(found.run, found.scale).items()),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _surprises(found: Reproduction) -> str:
    names = unexpected(found)
    return f"**{plural(len(names), 'claim')} not as expected: {', '.join(names)}.**" if names else ""


def _claims(found: Reproduction) -> str:
    rows = [
        [
            name,
            entry["title"],
            entry["place"],
            f"{MARKS.get(entry['verdict'], '?')} {entry['verdict']}",
            entry["expected"],
        ]
        for name, entry in found.claims.items()
    ]
    reasons = [
        f"{name}, expected to {_verb(entry)}: {one_line(str(entry['reason']))}"
        for name, entry in found.claims.items()
        if entry.get("reason")
    ]
    return "\n\n".join([_table(("Id", "Claim", "Place", "Verdict", "Expected"), rows), *map(_plain, reasons)])


def _verb(entry: Mapping[str, object]) -> str:
    return {"fails": "fail", "vacuous": "be vacuous"}.get(str(entry["expected"]), str(entry["expected"]))


def _experiment(name: str, found: Reproduction, drawn: Mapping[str, Drawn]) -> str:
    entry, one = found.claims[name], found.experiments.get(EXPERIMENTS[name])
    head = f"### {name}. {_plain(entry['title'])}\n\n{_plain(entry['statement'])}\n\n**{entry['verdict']}**, expected: {entry['expected']}."
    if one is None:
        return f"{head}\n\nThis experiment is not complete here. `spanrl reproduce --only {name}` with the same scale and folder fills it."
    return "\n\n".join([head, _figures(drawn, *FIGURES[name]), *_tables(name, one)])


def _tables(name: str, one: Experiment) -> list[str]:
    at = f"At T = {power(one.horizon)}; brackets are 95 % t intervals of the mean."
    if name == "G1":
        rows = finals(sorted(one.groups, key=lambda group: diameter_of(group.env)))
        return [at, _table(DIAMETER_HEADERS, map(diameter_row, rows))]
    agents = one.agents()
    out = [at, _table(AGENT_HEADERS, map(agent_row, finals(agents, reference(agents))))]
    if reference(agents) is None or len(agents) == 1:
        return out
    told = over_time(agents)
    note = (
        f"Mean pseudo-regret over time; ▼ significantly below UCRL, ▲ significantly above it (level {SIGNIFICANT:g})."
    )
    return [*out, note, _over_time(told), order_sentence(told), comparison_sentence(told)]


def _over_time(told: OverTime) -> str:
    rows = [
        [name, *(f"{number(mean)} {SIGNS[mark]}" for mean, mark in zip(means, marks, strict=True))]
        for name, means, marks in zip(told.names, told.means, told.marks, strict=True)
    ]
    return _table(["Agent", *(f"t = {power(t)}" for t in told.times)], rows)


def _slips(slips: Sequence[Slip]) -> str:
    if not slips:
        return "The slips of the text could not be measured."
    rows = [
        [slip.title, slip.place, slip.printed, slip.found, _some(slip.numbers), "yes" if slip.shown else "no"]
        for slip in slips
    ]
    return _table(("Slip", "Place", "Printed", "Right", "Numbers", "Shown"), rows)


def _some(numbers: Mapping[str, object]) -> str:
    return "; ".join(f"{name}: {shown(value)}" for name, value in numbers.items())


def _sweeps(experiments: Mapping[str, Experiment], drawn: Mapping[str, Drawn]) -> str:
    parts = []
    for name in SWEEPS:
        if {name, f"{name}-sweep"} <= experiments.keys():
            found = sweep_rows(name, experiments)
            rows = [[(cells := agent_row(row))[0], power(row.t), *cells[1:]] for row in found]
            parts += [
                _figures(drawn, f"sweep-{name}"),
                _plain(sweep_sentence(name, found)),
                _table(("Agent", "T", *AGENT_HEADERS[1:]), rows),
            ]
    return "\n\n".join(part for part in parts if part) or "The sweeps over c are not complete here."


def _planning(found: Reproduction, drawn: Mapping[str, Drawn]) -> str:
    rows = [
        cost_row(cost)
        for cost in costs({name: found.experiments[name] for name in PLANNED if name in found.experiments})
    ]
    backups = list(backup_rows(found.claims.get("R5", {})))
    parts = [
        _figures(drawn, "planning"),
        _table(COST_HEADERS, rows) if rows else "No experiment is complete here.",
        _table(BACKUP_HEADERS, backups) if backups else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _figures(drawn: Mapping[str, Drawn], *names: str) -> str:
    found = [drawn[name] for name in names if name in drawn]
    return "\n\n".join(
        f"![{_plain(one.title)}](figures/{one.name}.png)\n\n*{_plain(one.title)}.* {_plain(one.caption)}"
        for one in found
    )


def _table(headers: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table; the cells may hold the little HTML of the page, which becomes plain text."""
    head = [_cell(header) for header in headers]
    lines = [head, ["---"] * len(head), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    text = str(value)
    for tag in ("<small>", "</small>"):
        text = text.replace(tag, "")
    return _plain(unescape(text))


def _plain(text: object) -> str:
    """Return text in which nothing is markup: what Markdown or HTML would read is escaped."""
    out = one_line(str(text))
    for letter in "\\`*_<>|":
        out = out.replace(letter, f"\\{letter}")
    return out.replace("](", "]\\(")  # else a link; intervals stay readable
