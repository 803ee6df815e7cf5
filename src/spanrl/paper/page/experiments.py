"""The section of the four experiments: verdict, figures, and tables of what each agent did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from html import escape
from math import isinf, isnan
from typing import Any

from spanrl.paper.claims import comparing
from spanrl.paper.claims.comparing import diameter_of
from spanrl.paper.curves import Curves, Experiment
from spanrl.paper.page.claims import claim_body, claim_head
from spanrl.paper.page.contents import EXPERIMENTS, shown_with
from spanrl.paper.page.findings import ABOVE, BELOW, Final, OverTime, finals, over_time
from spanrl.paper.page.notation import estimate, number, power
from spanrl.paper.page.parts import Figures, cards, empty, guarded, table
from spanrl.paper.page.sentences import sentences
from spanrl.report.standings import p_text
from spanrl.report.text import LEVEL, UNKNOWN, runs_per_agent

FIGURES = {
    "G1": ("diameter",),
    "G2": ("three-state", "three-state-scal"),
    "G3": ("infinite-diameter", "infinite-diameter-scal"),
    "G4": ("knight-quest",),
}

MANY = 10
"""Regrets that are so many times that of UCRL are not told in per cent."""

SIGNS = {BELOW: "▼", ABOVE: "▲", "": ""}

NOTE = (
    "p is that of the paired t-test against UCRL, corrected by Holm’s method: * below 0.05, ** below 0.01, *** below 0.001. The slope is "
    "that of the mean pseudo-regret against t over the last decade and a half, both logarithmic."
)

AGENT_HEADERS = (
    "Agent",
    "Runs",
    f"Regret [{LEVEL}]",
    f"Pseudo-regret [{LEVEL}]",
    "Relative to UCRL",
    f"Difference to UCRL [{LEVEL}]",
    "p (Holm)",
    "Log-log slope",
)
TIME_CAPTION = (
    "Mean pseudo-regret over time; ▼ significantly below UCRL, ▲ significantly above it "
    f"(level {comparing.SIGNIFICANT:g})."
)
DIAMETER_HEADERS = (
    "D = 1/δ",
    "Runs",
    f"Regret [{LEVEL}]",
    f"Pseudo-regret [{LEVEL}]",
    "Pseudo-regret / D",
    "Log-log slope",
)


def experiments_section(
    claims: Mapping[str, Mapping[str, Any]], experiments: Mapping[str, Experiment], drawn: Figures
) -> str:
    """Return the experiments of the paper, each whether it was run or not."""
    inner = "\n".join(
        _experiment(name, claims[name], experiments.get(EXPERIMENTS[name]), drawn)
        for name in EXPERIMENTS
        if name in claims
    )
    return (
        '<section aria-labelledby="experiments">\n<h2 id="experiments">The experiments</h2>\n'
        "<p>Regret at t is t g* less the rewards received; pseudo-regret counts the mean rewards of what was played instead: the same mean "
        f"with far less noise, and what all tests here use. Bands and brackets are {LEVEL} t intervals of the mean.</p>\n"
        f"{inner}\n</section>"
    )


def _experiment(name: str, entry: Mapping[str, Any], found: Experiment | None, drawn: Figures) -> str:
    remedy = f"Run <code>spanrl reproduce --only {escape(name)}</code> with the same scale and folder to fill it."
    shown, first = cards(drawn, *FIGURES.get(name, ())), shown_with(name)
    if first != name:
        middle = f'<p>Its figures and tables stand with <a href="#claim-{first}">{first}</a>.</p>'
    elif found is None:
        middle = empty("This experiment is not complete here, so there are no tables of it.", remedy)
    elif name == "G1":
        middle = guarded("The table", partial(diameter_table, found))
    else:
        middle = guarded("The tables", partial(agent_tables, found))
    return (
        f'<article class="experiment" aria-labelledby="claim-{name}">\n{claim_head(name, entry, level=3)}\n'
        f"{claim_body(name, entry)}\n{shown}\n{middle}\n</article>"
    )


def diameter_table(found: Experiment) -> str:
    """Return the table of the regret of UCRL by diameter."""
    groups = sorted(found.groups, key=lambda group: diameter_of(group.env))
    rows = [diameter_row(row) for row in finals(groups)]
    return table(
        DIAMETER_HEADERS, rows, f"UCRL at T = {power(found.horizon)} on three states by diameter, {_runs(groups)}."
    )


def diameter_row(row: Final) -> list[str]:
    """Return the cells of a diameter."""
    D = diameter_of(row.env)
    per = number(row.pseudo_regret.value / D)
    return [
        number(D),
        f"{row.n:,}",
        estimate(row.regret),
        estimate(row.pseudo_regret),
        per,
        number(round(row.slope, 3)),
    ]


def agent_tables(found: Experiment) -> str:
    """Return the final table, the table over time, and what it says."""
    agents = found.agents()
    rows = [agent_row(row) for row in finals(agents, reference(agents))]
    caption = (
        f"At T = {power(found.horizon)}, {_runs(agents)}. Comparisons are of pseudo-regrets, paired on common seeds."
    )
    out = table(AGENT_HEADERS, rows, caption)
    if reference(agents) is None or len(agents) == 1:
        return out
    told = over_time(agents)
    said = "\n".join(f"<p>{escape(one)}</p>" for one in sentences(found.name, told))
    return f'{out}\n<p class="note">{NOTE}</p>\n{_time_table(told)}\n{said}'


def reference(agents: Sequence[Curves]) -> Curves | None:
    """Return UCRL where it is among the agents."""
    return agents[0] if agents and isinf(agents[0].span_bound) else None


def agent_row(row: Final) -> list[str]:
    """Return the cells of an agent."""
    is_ucrl = isinf(row.span_bound)
    compared = ["", "", ""] if is_ucrl else [relative(row.ratio), estimate(row.difference), escape(p_text(row.p_value))]
    return [
        escape(row.name), f"{row.n:,}", estimate(row.regret), estimate(row.pseudo_regret), *compared, number(round(row.slope, 3)),
    ]  # fmt: skip


def relative(ratio: float) -> str:
    """Write a regret relative to that of UCRL.

    >>> relative(0.25), relative(14.14), relative(float("nan"))
    ('25.0\\xa0%', '14.14 times', '–')
    """
    if isnan(ratio):
        return UNKNOWN
    return f"{100 * ratio:.1f}\u00a0%" if ratio < MANY else f"{number(ratio)} times"


def _time_table(told: OverTime) -> str:
    rows = [
        [escape(name), *(_marked(mean, mark) for mean, mark in zip(means, marks, strict=True))]
        for name, means, marks in zip(told.names, told.means, told.marks, strict=True)
    ]
    return table(["Agent", *(f"t = {power(t)}" for t in told.times)], rows, TIME_CAPTION)


def _marked(mean: float, mark: str) -> str:
    sign = (
        f' <span class="{mark}" role="img" aria-label="significantly {mark} UCRL">{SIGNS[mark]}</span>' if mark else ""
    )
    return number(mean) + (sign or '<span class="no-sign"></span>')


def _runs(groups: Iterable[Curves]) -> str:
    return runs_per_agent(len(group.seeds) for group in groups)
