"""The page of a report: one HTML file that holds its style, its charts' program and its data, and needs no network.

Whatever a user named (labels, the experiment, the texts of failures) is escaped where it enters: by ``html.escape`` in the page, by
``_json`` in the data. The program of the charts escapes once more what it hands to plotly, which reads a little HTML itself.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from spanrl import __version__
from spanrl.axes import PALETTE
from spanrl.errors import MissingExtraError
from spanrl.report.chapters import TITLES, Chapter, Curve
from spanrl.report.standings import Estimate, Standing, mark
from spanrl.report.text import LEVEL, UNKNOWN, display_names, interval, number, one_line, plural, runs_per_agent

if TYPE_CHECKING:
    from spanrl.experiments.results import Results

SHOWN_FIRST = 10
"""So many agents, the best ones, are drawn when a chart opens; the legend brings the others."""

_DIGITS = 6


def page(results: Results, chapters: Sequence[Chapter]) -> str:
    """Return the HTML of the report."""
    agents = display_names(results.agents)
    return Template(_part("page.html")).substitute(
        version=__version__,
        nonce=secrets.token_urlsafe(16),  # the browser runs our two scripts and no other
        title=escape(one_line(results.name)),
        css=_part("page.css"),
        js=_part("page.js"),
        plotly=_plotly(),
        data=_json(_data(chapters, agents, results.horizon)),
        caption=_caption(results),
        facts=_facts(results),
        incomplete=_incomplete(results),
        contents=_contents(chapters),
        chapters="\n".join(_chapter(i, chapter, agents, results.horizon) for i, chapter in enumerate(chapters)),
        planning=_planning(chapters, agents, results.horizon) if chapters else "",
        settings=escape(results.spec.to_toml()),
        provenance=_provenance(results),
        date=_today(),
    )


def _part(name: str) -> str:
    return resources.files("spanrl.report").joinpath(name).read_text("utf-8")


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError("report: plotly is not installed. Run: pip install 'spanrl[report]'.") from None
    return str(get_plotlyjs())


def _today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


# what the charts draw


def _data(chapters: Sequence[Chapter], agents: Mapping[str, str], horizon: int) -> dict[str, Any]:
    places = {agent: i for i, agent in enumerate(agents)}
    return {
        "colours": PALETTE,
        "agents": list(agents.values()),
        "chapters": [
            {
                "folder": chapter.folder,
                "unknown": not chapter.gain_known,
                "first": SHOWN_FIRST,
                "quantities": [
                    {"key": value, "title": TITLES[value], "caption": _chart_caption(chapter, value, horizon)}
                    for value in chapter.curves
                ],
                "series": [_series(chapter, row.agent, places[row.agent]) for row in chapter.ranking],
            }
            for chapter in chapters
        ],
    }


def _series(chapter: Chapter, agent: str, place: int) -> dict[str, Any]:
    curves = {value: of_agent[agent] for value, of_agent in chapter.curves.items()}
    t = next(iter(curves.values())).t
    return {"agent": place, "t": t.tolist(), "values": {value: _numbers(curve) for value, curve in curves.items()}}


def _numbers(curve: Curve) -> dict[str, list[float | None]]:
    has_band = np.isfinite(curve.low).any()
    names = ("mean", "low", "high") if has_band else ("mean",)
    return {name: [_rounded(value) for value in getattr(curve, name).tolist()] for name in names}


def _rounded(value: float) -> float | int | None:
    """Return ``value`` with six digits, whole numbers as integers, which are shorter; None for what is no number."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() else short


def _json(data: Any) -> str:
    """Return JSON that cannot end the script it stands in: ASCII alone, and no letter that HTML knows."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


# what stands above


def _caption(results: Results) -> str:
    done, failed, missing = len(results.cells), len(results.failed), len(results.missing)
    n_cells = done + failed + missing
    state = (
        f"All {n_cells:,} are finished." if done == n_cells else f"{done:,} of {plural(n_cells, 'run')} are finished"
    )
    if done < n_cells:
        rest = [f"{count:,} {word}" for count, word in ((failed, "failed"), (missing, "missing")) if count]
        state += f"; {' and '.join(rest)}."
    return (
        f"{plural(len(results.agents), 'agent')} on {plural(len(results.envs), 'environment')}, "
        f"{plural(len(results.spec.seeds), 'seed')} each, for T = {results.horizon:,} steps: {plural(n_cells, 'run')}. {state} "
        f"Lines are means over the runs, bands their {LEVEL} t intervals."
    )


def _facts(results: Results) -> str:
    facts = {
        "Horizon T": f"{results.horizon:,}",
        "Finished runs": f"{len(results.cells):,}",
        "Environments": f"{len(results.envs):,}",
        "Agents": f"{len(results.agents):,}",
    }
    return f'<dl class="facts">{"".join(f"<div><dt>{key}</dt><dd>{value}</dd></div>" for key, value in facts.items())}</dl>'


def _incomplete(results: Results) -> str:
    failed = [f"<code>{escape(cell)}</code> {escape(one_line(text))}" for cell, text in results.failed.items()]
    missing = [f"<code>{escape(cell)}</code>" for cell in results.missing]
    return _listed("failed", failed) + _listed("missing", missing)


def _listed(what: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    lines = "".join(f"<li>{item}</li>" for item in items)
    return f'<details class="warn"><summary>{plural(len(items), "run")} {what}</summary><ul tabindex="0">{lines}</ul></details>\n'


def _contents(chapters: Sequence[Chapter]) -> str:
    if len(chapters) < 2:
        return ""
    links = "".join(f'<li><a href="#env-{i}">{escape(chapter.title)}</a></li>' for i, chapter in enumerate(chapters))
    return f'<nav aria-label="Environments"><ul class="contents">{links}</ul></nav>'


# a chapter: chart and table


def _chapter(i: int, chapter: Chapter, agents: Mapping[str, str], horizon: int) -> str:
    known = "" if chapter.title == chapter.env else f'<p class="id"><code>{escape(chapter.env)}</code></p>\n'
    caption = _chart_caption(chapter, next(iter(chapter.curves)), horizon)
    return (
        f'<section aria-labelledby="env-{i}">\n<h2 id="env-{i}">{escape(chapter.title)}</h2>\n{known}'
        f'<figure data-chapter="{i}">\n{_controls(chapter)}\n'
        f'<div class="chart" role="img" aria-label="{escape(caption)}"></div>\n<figcaption>{escape(caption)}</figcaption>\n'
        f'<p class="note" aria-live="polite"></p>\n</figure>\n{_finals(chapter, agents, horizon)}\n</section>'
    )


def _chart_caption(chapter: Chapter, value: str, horizon: int) -> str:
    counts = [row.n for row in chapter.ranking]
    band = f" with {LEVEL} t intervals" if max(counts) > 1 else ""
    title = TITLES[value]
    return f"{title[0].upper()}{title[1:]} on {chapter.title}: mean{band}, {runs_per_agent(counts)}, T = {horizon:,}."


def _controls(chapter: Chapter) -> str:
    quantities = {value: TITLES[value] for value in chapter.curves}
    best = (
        f'<button type="button" data-show="best">{SHOWN_FIRST} best</button>'
        if len(chapter.ranking) > SHOWN_FIRST
        else ""
    )
    return (
        '<div class="controls">'
        + _switch("quantity", "Quantity", quantities, next(iter(quantities)))
        + _switch("x", "x axis", {"log": "log", "linear": "linear"}, "log")
        + _switch("y", "y axis", {"log": "log", "linear": "linear"}, "linear")
        + '<div class="group" role="group" aria-label="Agents"><span>Agents</span>'
        + f'<button type="button" data-show="all">all</button><button type="button" data-show="none">none</button>{best}</div>'
        + '<label><input type="checkbox" checked autocomplete="off"> 95 % bands</label></div>'
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
    slope = (
        " The slope is that of log regret against log t over the last two decades of t." if chapter.gain_known else ""
    )
    caption = f"Final {what} on {chapter.title}, at T = {horizon:,}, {runs_per_agent(row.n for row in chapter.ranking)}, best first."
    return f'<h3>Final {what}</h3>\n{_table(headers, rows, caption)}\n<p class="note">{note}{slope}</p>'


def _final_row(row: Standing, name: str, has_slope: bool, horizon: int) -> str:
    early = "" if row.t == horizon else f"<small>at t = {row.t:,}</small>"
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
    return f'<tr{best}><th scope="row">{escape(name)}{early}</th>{"".join(cells)}</tr>\n'


def _cell(text: str, value: float) -> str:
    return f'<td data-value="{value if math.isfinite(value) else ""}">{text}</td>'


def _estimate(estimate: Estimate) -> str:
    return _cell(f"{number(estimate.value)} <small>{interval(estimate.low, estimate.high)}</small>", estimate.value)


def _table(headers: Iterable[str], rows: str, caption: str, kind: str = "finals") -> str:
    head = "".join(f'<th scope="col"><button type="button">{header}</button></th>' for header in headers)
    return (
        f'<div class="scroll tall" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="{kind}">'
        f"<caption><span>{escape(caption)}</span></caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>"
    )


# what stands below


def _planning(chapters: Sequence[Chapter], agents: Mapping[str, str], horizon: int) -> str:
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


def _provenance(results: Results) -> str:
    planning, simulating, total = (
        f"{results.cells[name].sum():,.1f} s" for name in ("planning", "simulating", "total")
    )
    facts = {
        "Report written": _today(),
        "Computation": f"{total} in all finished runs together: {planning} planning, {simulating} simulating",
        **{name: ", ".join(found) or UNKNOWN for name, found in results.versions.items()},
    }
    rows = "".join(
        f'<tr><th scope="row">{escape(key)}</th><td>{escape(value)}</td></tr>' for key, value in facts.items()
    )
    caption = "What the runs were computed with; several versions stand side by side."
    return f'<div class="scroll"><table class="plain"><caption><span>{caption}</span></caption><tbody>{rows}</tbody></table></div>'
