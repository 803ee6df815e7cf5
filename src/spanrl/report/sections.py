"""The sections of the page as data: the chart and the table of final values for each environment, and the bars of planning."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spanrl.experiments.plotting import TITLES
from spanrl.report.chapters import Chapter
from spanrl.report.data import SHOWN_FIRST, chart_caption
from spanrl.report.standings import Estimate, Standing, p_text
from spanrl.report.table import Cell, Table
from spanrl.report.text import LEVEL, UNKNOWN, interval, number, runs_per_agent


@dataclass(frozen=True)
class Switch:
    """Buttons of which one is pressed: value → text."""

    key: str
    title: str
    choices: Mapping[str, str]
    chosen: str


@dataclass(frozen=True)
class Section:
    """One environment: its chart with the controls, and the table of final values."""

    title: str
    env: str
    constants: str
    switches: Sequence[Switch]
    shows: Mapping[str, str]
    caption: str
    measure: str
    finals: Table
    note: str


def chapter_section(chapter: Chapter, agents: Mapping[str, str], horizon: int) -> Section:
    """Return the section on an environment."""
    best = {"best": f"{SHOWN_FIRST} best"} if len(chapter.ranking) > SHOWN_FIRST else {}
    return Section(
        title=chapter.title,
        env=chapter.env,
        constants=_constants(chapter),
        switches=_switches(chapter),
        shows={"all": "all", "none": "none"} | best,
        caption=chart_caption(chapter, next(iter(chapter.curves)), horizon),
        measure=TITLES[chapter.measure],
        finals=_finals(chapter, agents, horizon),
        note=_note(chapter, agents),
    )


def _constants(chapter: Chapter) -> str:
    """Return the size of the environment and what is known of it: g*, sp(h*), D."""
    known = chapter.problem
    names = {"gain": "g*", "span": "sp(h*)", "diameter": "D"}
    told = [f"{letters} = {number(known[key])}" for key, letters in names.items() if not math.isnan(known[key])]
    cut = "" if known["exact"] else ". Episodes are cut, which g* ignores: regrets are not exact."
    return ", ".join([f"S = {known['n_states']:,}, A = {known['n_actions']:,}", *told]) + cut


def _switches(chapter: Chapter) -> list[Switch]:
    quantities = {value: TITLES[value] for value in chapter.curves}
    first = next(iter(quantities))
    scales = zip("xy", chapter.scales(first), strict=True)
    choices = {"linear": "linear", "log": "log"}
    return [
        Switch("quantity", "Quantity", quantities, first),
        *(Switch(axis, f"{axis} axis", choices, scale) for axis, scale in scales),
    ]


def _finals(chapter: Chapter, agents: Mapping[str, str], horizon: int) -> Table:
    headers = ["Agent", "Runs", "Mean", f"{LEVEL} interval", "Median", "Difference to the best", "p"]
    headers += ["Log-log slope"] if chapter.gain_known else []
    rows = [_final_row(agents[row.agent], row)[: len(headers)] for row in chapter.ranking]
    runs = runs_per_agent(row.n for row in chapter.ranking)
    caption = f"Final {TITLES[chapter.measure]} on {chapter.title}, at T = {horizon:,}, {runs}, best first."
    return Table(headers, rows, caption, is_sortable=True, is_best_first=True)


def _final_row(name: str, row: Standing) -> list[str | Cell]:
    return [
        name,
        Cell(f"{row.n:,}", value=row.n),
        Cell(number(row.mean.value), value=row.mean.value),
        Cell(interval(row.mean.low, row.mean.high), value=row.mean.low),
        Cell(number(row.median), value=row.median),
        Cell("best", value=0.0) if row.is_best else _estimate(row.difference),
        Cell("" if row.is_best else p_text(row.p_value), value=row.p_value),
        _estimate(row.slope),
    ]


def _estimate(estimate: Estimate) -> Cell:
    known = not math.isnan(estimate.value)
    return Cell(number(estimate.value), interval(estimate.low, estimate.high) if known else "", estimate.value)


def _note(chapter: Chapter, agents: Mapping[str, str]) -> str:
    """Say what the table compares and how, who is not in it, and what the slope is."""
    best = "lowest mean regret" if chapter.gain_known else "highest mean reward"
    note = (
        f"The best agent is the one with the {best} and is chosen from the same runs. Differences are paired on common seeds; p is that of "
        "the paired t-test, corrected by Holm’s method for all agents of this environment. "
        "* below 0.05, ** below 0.01, *** below 0.001."
    )
    ranked = {row.agent for row in chapter.ranking}
    if absent := ", ".join(name for agent, name in agents.items() if agent not in ranked):
        note += f" Without a finished run here: {absent}."
    if chapter.gain_known:
        note += " The slope is that of log regret against log t over the last two decades of t."
        if without := ", ".join(agents[row.agent] for row in chapter.ranking if math.isnan(row.slope.value)):
            note += f" None is given for {without}: the mean regret is not positive all that time, or was measured fewer than three times."
    return note


def planning_table(chapters: Sequence[Chapter], agents: Mapping[str, str], horizon: int) -> Table:
    """Return the shares of planning: a bar per agent and environment, drawn by the style sheet."""
    rows: list[list[str | Cell]] = [
        [name, *(_bar(chapter.planning_share.get(agent)) for chapter in chapters)] for agent, name in agents.items()
    ]
    runs = runs_per_agent(row.n for chapter in chapters for row in chapter.ranking)
    caption = f"Share of planning in the running time, {runs} and environment, T = {horizon:,}."
    return Table(["Agent", *(chapter.title for chapter in chapters)], rows, caption, "bars", is_sortable=True)


def _bar(share: float | None) -> Cell:
    if share is None:
        return Cell(UNKNOWN, value=math.nan)
    return Cell(f"{100 * share:.1f} %", value=round(share, 6), is_bar=True)
