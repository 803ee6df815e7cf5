"""The sections of the page: a chart and a table of final values for each environment, and the bars of planning."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from spanrl.report.chapters import LINEAR, SCALES, TITLES, Chapter
from spanrl.report.data import SHOWN_FIRST, chart_caption
from spanrl.report.standings import Estimate, Standing, mark
from spanrl.report.text import LEVEL, UNKNOWN, interval, number, runs_per_agent


def chapter_section(i: int, chapter: Chapter, agents: Mapping[str, str], horizon: int) -> str:
    """Return the section on the ``i``-th environment: its chart with the controls, and the table of final values."""
    known = "" if chapter.title == chapter.env else f'<p class="id"><code>{escape(chapter.env)}</code></p>\n'
    caption = chart_caption(chapter, next(iter(chapter.curves)), horizon)
    return (
        f'<section aria-labelledby="env-{i}">\n<h2 id="env-{i}">{escape(chapter.title)}</h2>\n{known}'
        f'<figure data-chapter="{i}">\n{_controls(chapter)}\n'
        f'<div class="chart" role="img" aria-label="{escape(caption)}"></div>\n<figcaption>{escape(caption)}</figcaption>\n'
        f'<p class="note" aria-live="polite"></p>\n</figure>\n{_finals(chapter, agents, horizon)}\n</section>'
    )


def _controls(chapter: Chapter) -> str:
    quantities = {value: TITLES[value] for value in chapter.curves}
    first = next(iter(quantities))
    scales = dict(zip("xy", SCALES.get(first, LINEAR), strict=True))
    shows = {"all": "all", "none": "none"} | (
        {"best": f"{SHOWN_FIRST} best"} if len(chapter.ranking) > SHOWN_FIRST else {}
    )
    buttons = "".join(f'<button type="button" data-show="{key}">{text}</button>' for key, text in shows.items())
    return (
        '<div class="controls">'
        + _switch("quantity", "Quantity", quantities, first)
        + "".join(_switch(axis, f"{axis} axis", {"linear": "linear", "log": "log"}, scales[axis]) for axis in "xy")
        + f'<div class="group" role="group" aria-label="Agents"><span>Agents</span>{buttons}</div>'
        + f'<label><input type="checkbox" checked autocomplete="off"> {LEVEL} bands</label></div>'
    )


def _switch(key: str, title: str, choices: Mapping[str, str], chosen: str) -> str:
    buttons = "".join(
        f'<button type="button" data-set="{key}" data-value="{value}" aria-pressed="{str(value == chosen).lower()}">{text}</button>'
        for value, text in choices.items()
    )
    return f'<div class="group" role="group" aria-label="{title}"><span>{title}</span>{buttons}</div>'


def _finals(chapter: Chapter, agents: Mapping[str, str], horizon: int) -> str:
    what = TITLES[chapter.measure]
    headers = ["Agent", "Runs", "Mean", f"{LEVEL} interval", "Median", "Difference to the best", "p"]
    headers += ["Log-log slope"] if chapter.gain_known else []
    rows = "".join(_final_row(row, agents[row.agent], chapter.gain_known, horizon) for row in chapter.ranking)
    best = "lowest mean regret" if chapter.gain_known else "highest mean reward"
    note = (
        f"The best agent is the one with the {best} and is chosen from the same runs. Differences are paired on common seeds; p is that of "
        "the paired t-test, corrected by Holm’s method for all agents of this environment. "
        "* below 0.05, ** below 0.01, *** below 0.001."
    )
    slope = f" {_slope_note(chapter, agents)}" if chapter.gain_known else ""
    caption = f"Final {what} on {chapter.title}, at T = {horizon:,}, {runs_per_agent(row.n for row in chapter.ranking)}, best first."
    ranked = {row.agent for row in chapter.ranking}
    absent = ", ".join(escape(name) for agent, name in agents.items() if agent not in ranked)
    note += f" Without a finished run here: {absent}." if absent else ""
    return f'<h3>Final {what}</h3>\n{_table(headers, rows, caption)}\n<p class="note">{note}{slope}</p>'


def _slope_note(chapter: Chapter, agents: Mapping[str, str]) -> str:
    """Say what the slope is, and why some agents have none."""
    without = ", ".join(escape(agents[row.agent]) for row in chapter.ranking if math.isnan(row.slope.value))
    return "The slope is that of log regret against log t over the last two decades of t." + (
        f" None is given for {without}: the mean regret is not positive all that time, or was measured fewer than three times."
        if without
        else ""
    )


def _final_row(row: Standing, name: str, has_slope: bool, horizon: int) -> str:
    p_value = f"{number(round(row.p_value, 4)) if row.p_value >= 1e-4 else '&lt; 0.0001'} {mark(row.p_value)}"
    cells = [
        _cell(f"{row.n:,}", row.n),
        _cell(number(row.mean.value), row.mean.value),
        _cell(interval(row.mean.low, row.mean.high), row.mean.low),
        _cell(number(row.median), row.median),
        _cell("best", 0.0) if row.is_best else _estimate(row.difference),
        _cell("" if row.is_best else UNKNOWN if math.isnan(row.p_value) else p_value, row.p_value),
    ]
    if has_slope:
        cells.append(_estimate(row.slope))
    best = ' class="best"' if row.is_best else ""
    return f'<tr{best}><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>\n'


def planning_section(chapters: Sequence[Chapter], agents: Mapping[str, str], horizon: int) -> str:
    """Return the section on planning: a bar an agent and environment, drawn by the style sheet."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(_bar(chapter.planning_share.get(agent)) for chapter in chapters)}</tr>\n'
        for agent, name in agents.items()
    )
    counts = [row.n for chapter in chapters for row in chapter.ranking]
    caption = f"Share of planning in the running time, {runs_per_agent(counts)} and environment, T = {horizon:,}."
    table = _table(["Agent", *(escape(chapter.title) for chapter in chapters)], rows, caption, "bars")
    return f'<section aria-labelledby="planning">\n<h2 id="planning">Time spent planning</h2>\n{table}\n</section>'


def _bar(share: float | None) -> str:
    if share is None:
        return _cell(UNKNOWN, math.nan)
    return f'<td class="bar" data-value="{share:.6f}" style="--share: {share:.4f}">{100 * share:.1f} %</td>'


def _cell(text: str, value: float) -> str:
    return f'<td data-value="{value if math.isfinite(value) else ""}">{text}</td>'


def _estimate(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return _cell(UNKNOWN, math.nan)
    return _cell(f"{number(estimate.value)} <small>{interval(estimate.low, estimate.high)}</small>", estimate.value)


def _table(headers: Iterable[str], rows: str, caption: str, kind: str = "finals") -> str:
    head = "".join(f'<th scope="col"><button type="button">{header}</button></th>' for header in headers)
    return (
        f'<div class="scroll tall" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="{kind}">'
        f"<caption><span>{escape(caption)}</span></caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>"
    )
