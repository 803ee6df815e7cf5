"""The four experiments as the pages show them: verdict, figures, and tables of what each agent did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isinf, isnan
from typing import TYPE_CHECKING

from spanrl.paper.claims import comparing
from spanrl.paper.claims.comparing import diameter_of
from spanrl.paper.curves import Curves, Experiment
from spanrl.paper.page.claims import ShownClaim
from spanrl.paper.page.contents import EXPERIMENTS, about
from spanrl.paper.page.findings import ABOVE, BELOW, Final, OverTime, finals, over_time
from spanrl.paper.page.notation import estimate, number, power
from spanrl.paper.page.parts import Drawn, Figures, Missing, figures, guarded
from spanrl.paper.page.sentences import sentences
from spanrl.report.standings import p_text
from spanrl.report.table import NO_SIGN, Cell, Sign, Table
from spanrl.report.text import LEVEL, UNKNOWN, runs_per_agent

if TYPE_CHECKING:
    from spanrl.paper.reproduce import Reproduction

ALONE = "-scal"
"""Ends the name of the figure that shows SCAL without UCRL."""

MANY = 10
"""Regrets that are so many times that of UCRL are not told in per cent."""

SIGNS = {
    BELOW: Sign(BELOW, "▼", f"significantly {BELOW} UCRL"),
    ABOVE: Sign(ABOVE, "▲", f"significantly {ABOVE} UCRL"),
    "": NO_SIGN,
}

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


@dataclass(frozen=True)
class ExperimentTables:
    """The final values of an experiment, the comparison over time, and what it says; G1 has the first alone."""

    finals: Table
    over_time: Table | None = None
    said: Sequence[str] = ()


@dataclass(frozen=True)
class ShownExperiment:
    """An experiment: the claim that its figure was made for, the figure, the same without UCRL, tables, and what else the paper says."""

    claim: ShownClaim
    figures: Sequence[Drawn | Missing]
    alone: Sequence[Drawn | Missing]
    tables: ExperimentTables | Missing
    more: Sequence[ShownClaim]


def shown_experiments(found: Reproduction, drawn: Figures) -> list[ShownExperiment]:
    """Return the experiments of the paper, each whether it was run or not."""
    out = []
    for name in dict.fromkeys(EXPERIMENTS.values()):
        first, *more = (ShownClaim(claim, found.claims[claim]) for claim in about(name))
        tables = _tables(first.id, found.experiments.get(name))
        out.append(ShownExperiment(first, figures(drawn, name), figures(drawn, name + ALONE), tables, more))
    return out


def _tables(name: str, found: Experiment | None) -> ExperimentTables | Missing:
    if found is None:
        return Missing("This experiment is not complete here, so there are no tables of it.", name)
    return guarded("The tables", partial(_diameter_table if name == "G1" else _agent_tables, found))


def _diameter_table(found: Experiment) -> ExperimentTables:
    """Return the table of the regret of UCRL by diameter."""
    groups = sorted(found.groups, key=lambda group: diameter_of(group.env))
    rows = [_diameter_row(row) for row in finals(groups)]
    caption = f"UCRL at T = {power(found.horizon)} on three states by diameter, {_runs(groups)}."
    return ExperimentTables(Table(DIAMETER_HEADERS, rows, caption))


def _diameter_row(row: Final) -> list[str | Cell]:
    D = diameter_of(row.env)
    per = number(row.pseudo_regret.value / D)
    return [
        number(D), f"{row.n:,}", estimate(row.regret), estimate(row.pseudo_regret), per, number(round(row.slope, 3)),
    ]  # fmt: skip


def _agent_tables(found: Experiment) -> ExperimentTables:
    """Return the final table, the table over time, and what it says."""
    agents = found.agents()
    rows = [agent_row(row) for row in finals(agents, reference(agents))]
    caption = (
        f"At T = {power(found.horizon)}, {_runs(agents)}. Comparisons are of pseudo-regrets, paired on common seeds."
    )
    table = Table(AGENT_HEADERS, rows, caption)
    if reference(agents) is None or len(agents) == 1:
        return ExperimentTables(table)
    told = over_time(agents)
    return ExperimentTables(table, _time_table(told), sentences(found.name, told))


def reference(agents: Sequence[Curves]) -> Curves | None:
    """Return UCRL where it is among the agents."""
    return agents[0] if agents and isinf(agents[0].span_bound) else None


def agent_row(row: Final) -> list[str | Cell]:
    """Return the cells of an agent."""
    is_ucrl = isinf(row.span_bound)
    compared = ("", "", "") if is_ucrl else (relative(row.ratio), estimate(row.difference), p_text(row.p_value))
    return [
        row.name, f"{row.n:,}", estimate(row.regret), estimate(row.pseudo_regret), *compared, number(round(row.slope, 3)),
    ]  # fmt: skip


def relative(ratio: float) -> str:
    """Write a regret relative to that of UCRL.

    >>> relative(0.25), relative(14.14), relative(float("nan"))
    ('25.0\\xa0%', '14.14 times', '–')
    """
    if isnan(ratio):
        return UNKNOWN
    return f"{100 * ratio:.1f}\u00a0%" if ratio < MANY else f"{number(ratio)} times"


def _time_table(told: OverTime) -> Table:
    rows: list[list[str | Cell]] = [
        [name, *(Cell(number(mean), sign=SIGNS[mark]) for mean, mark in zip(means, marks, strict=True))]
        for name, means, marks in zip(told.names, told.means, told.marks, strict=True)
    ]
    return Table(["Agent", *(f"t = {power(t)}" for t in told.times)], rows, TIME_CAPTION)


def _runs(groups: Iterable[Curves]) -> str:
    return runs_per_agent(len(group.seeds) for group in groups)
