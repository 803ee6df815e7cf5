"""The reproduction in Markdown, for a repository: facts, verdicts, tables, figures by relative path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from spanrl.paper.claims.comparing import diameter_of
from spanrl.paper.curves import Experiment
from spanrl.paper.page.beyond import (
    BACKUP_HEADERS,
    COST_HEADERS,
    NO_BACKUPS,
    NO_SLIPS,
    SLIPS_INTRO,
    SWEEP_HEADERS,
    backup_rows,
    cost_rows,
    no_sweep,
    sweep_row,
    sweep_rows,
    sweep_sentence,
)
from spanrl.paper.page.claims import what_broke
from spanrl.paper.page.contents import BEYOND, EXPERIMENTS, ordered, shown_with
from spanrl.paper.page.experiments import (
    AGENT_HEADERS,
    DIAMETER_HEADERS,
    FIGURES,
    NOTE,
    SIGNS,
    TIME_CAPTION,
    agent_row,
    diameter_row,
    reference,
)
from spanrl.paper.page.findings import OverTime, finals, over_time
from spanrl.paper.page.making import (
    BUSY_CAPTION,
    BUSY_HEADERS,
    PART_HEADERS,
    Spent,
    busy_rows,
    command,
    dominates,
    part_rows,
    provenance,
)
from spanrl.paper.page.notation import formula, number, plain, power, shown
from spanrl.paper.page.parts import MARKS, Drawn, Figures, Undrawn, guarded
from spanrl.paper.page.places import SWEPT
from spanrl.paper.page.sentences import sentences
from spanrl.paper.page.summary import AUTHORS, PAPER, facts, unexpected
from spanrl.paper.slips import Slip
from spanrl.report.text import plural

if TYPE_CHECKING:
    from spanrl.paper.reproduce import Reproduction


def markdown(found: Reproduction, drawn: Figures, time: Spent) -> str:
    """Return the text of reproduction.md, GitHub's flavour."""
    parts = [
        f"# The paper, executed\n\n*{PAPER}* by {AUTHORS}, ICML 2018: every claim checked, every figure reproduced, by "
        f"`{command(found.scale)}`.",
        _table(("Fact", "Value"), _texts(facts(found, time))),
        _surprises(found),
        "## Claims",
        _claims(found),
        "## The experiments",
        *(
            guarded(name, partial(_experiment, name, found, drawn), _text)
            for name in EXPERIMENTS
            if name in found.claims
        ),
        "## Beyond the paper",
        f"### {BEYOND['slips']}",
        _slips(found.slips),
        f"### {BEYOND['bound']}",
        _figures(drawn, "bound") or "The three-state experiment is not complete here.",
        f"### {BEYOND['sweep']}",
        *(guarded("The sweep", partial(_sweep, name, found, drawn), _text) for name in SWEPT),
        f"### {BEYOND['planning']}",
        guarded("The cost of planning", partial(_planning, found, drawn), _text),
        "## How it was made",
        _text(dominates(time)),
        _figures(drawn, "time"),
        "Seconds on the clock by part of the work:",
        _table(PART_HEADERS, part_rows(time)),
        _text(BUSY_CAPTION),
        _table(BUSY_HEADERS, busy_rows(time)),
        _table(("What", "Which"), _texts(provenance(found.run, found.scale))),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _texts(found: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    return ((key, escape(value)) for key, value in found.items())


def _surprises(found: Reproduction) -> str:
    names = unexpected(found)
    return f"**{plural(len(names), 'claim')} not as expected: {', '.join(names)}.**" if names else ""


def _claims(found: Reproduction) -> str:
    claims = {name: found.claims[name] for name in ordered(found.claims)}
    rows = [
        [
            escape(name),
            formula(entry["title"]),
            formula(entry["place"]),
            escape(f"{MARKS.get(entry['verdict'], '?')} {entry['verdict']}"),
            escape(entry["expected"]),
        ]
        for name, entry in claims.items()
    ]
    said = [_text(line) for name, entry in claims.items() for line in _explained(name, entry)]
    return "\n\n".join([_table(("Id", "Claim", "Place", "Verdict", "Expected"), rows), *said])


def _explained(name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield why a claim is expected not to hold, and what its verdict rests on; that one was not asked for needs no sentence."""
    if entry.get("reason"):
        yield f"{name}, expected to {_verb(entry)}: {entry['reason']}"
    heading, words = what_broke(entry)
    if words and (entry["verdict"] != "not-run" or "error" in entry["numbers"]):
        yield f"{name}, {entry['verdict']}. {heading} {words}."


def _verb(entry: Mapping[str, object]) -> str:
    return {"fails": "fail", "vacuous": "be vacuous"}.get(str(entry["expected"]), str(entry["expected"]))


def _experiment(name: str, found: Reproduction, drawn: Figures) -> str:
    entry, one = found.claims[name], found.experiments.get(EXPERIMENTS[name])
    head = f"### {name}. {_text(entry['title'])}\n\n{_text(entry['statement'])}\n\n**{entry['verdict']}**, expected: {entry['expected']}."
    if (first := shown_with(name)) != name:
        return f"{head}\n\nIts figures and tables stand with {first}."
    if one is None:
        return f"{head}\n\nThis experiment is not complete here. `spanrl reproduce --only {name}` with the same scale and folder fills it."
    return "\n\n".join(part for part in (head, _figures(drawn, *FIGURES[name]), *_tables(name, one)) if part)


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
    return [*out, _text(NOTE), _text(TIME_CAPTION), _over_time(told), *map(_text, sentences(one.name, told))]


def _over_time(told: OverTime) -> str:
    rows = [
        [escape(name), *(f"{number(mean)} {SIGNS[mark]}" for mean, mark in zip(means, marks, strict=True))]
        for name, means, marks in zip(told.names, told.means, told.marks, strict=True)
    ]
    return _table(["Agent", *(f"t = {power(t)}" for t in told.times)], rows)


def _slips(slips: Sequence[Slip]) -> str:
    return "\n\n".join([SLIPS_INTRO, "\n".join(map(_slip, slips))]) if slips else NO_SLIPS


def _slip(slip: Slip) -> str:
    numbers = "; ".join(f"{name}: {shown(value)}" for name, value in slip.numbers.items())
    doubt = "" if slip.shown else " Not shown by these numbers."
    return (
        f"- **{_text(slip.title)}** ({_text(slip.place)}). Printed: {_text(slip.printed)} Right: {_text(slip.found)} "
        f"Numbers: {_text(numbers) or 'none'}.{doubt}"
    )


def _sweep(name: str, found: Reproduction, drawn: Figures) -> str:
    if reason := no_sweep(name, found):
        return reason
    rows = sweep_rows(name, found.experiments)
    parts = [
        _figures(drawn, f"sweep-{name}"),
        _text(sweep_sentence(name, rows)),
        _table(SWEEP_HEADERS, map(sweep_row, rows)),
    ]
    return "\n\n".join(part for part in parts if part)


def _planning(found: Reproduction, drawn: Figures) -> str:
    rows = cost_rows(found.experiments)
    backups = [[escape(where), *cells] for where, *cells in backup_rows(found.claims.get("R5", {}))]
    parts = [
        _figures(drawn, "planning"),
        _table(COST_HEADERS, rows) if rows else "No experiment is complete here.",
        _table(BACKUP_HEADERS, backups) if backups else NO_BACKUPS,
    ]
    return "\n\n".join(part for part in parts if part)


def _figures(drawn: Figures, *names: str) -> str:
    return "\n\n".join(_figure(drawn[name]) for name in names if name in drawn)


def _figure(one: Drawn | Undrawn) -> str:
    if isinstance(one, Undrawn):
        return _text(one.told)
    title = _text(one.title)
    return f"![{_text(plain(one.title))}](figures/{one.name}.png)\n\n*{title}.* {_text(one.caption)}"


def _table(headers: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; the cells are HTML, as on the page."""
    head = [_inert(header) for header in headers]
    lines = [head, ["---"] * len(head), *([_inert(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(words: object) -> str:
    """Return text in which nothing is markup but indices and exponents."""
    return _inert(formula(words))


def _inert(html: str) -> str:
    """Return HTML in which nothing is Markdown, readable as it stands where that is safe."""
    for code, words in {"<small>": "", "</small>": "", "&#x27;": "'", "&quot;": '"'}.items():
        html = html.replace(code, words)
    for letter in "\\`*_|~":
        html = html.replace(letter, f"\\{letter}")
    return html.replace("](", "]\\(")  # else a link; intervals stay readable
