"""The page of a report: one HTML file that holds its style, its charts' program and its data, and needs no network.

Whatever a user named (labels, the experiment, the texts of failures) is escaped where it enters: by ``html.escape`` in the page, by
``script_json`` in the data. The program of the charts escapes once more what it hands to plotly, which reads a little HTML itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING

from spanrl import __version__
from spanrl.errors import missing_extra
from spanrl.report.chapters import Chapter
from spanrl.report.data import chart_data, script_json
from spanrl.report.sections import chapter_section, planning_section
from spanrl.report.text import LEVEL, UNKNOWN, display_names, one_line, plural

if TYPE_CHECKING:
    from spanrl.experiments.results import Results


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
        data=script_json(chart_data(chapters, agents, results.horizon)),
        caption=_caption(results),
        facts=_facts(results),
        incomplete=_incomplete(results),
        contents=_contents(chapters),
        chapters="\n".join(chapter_section(i, chapter, agents, results.horizon) for i, chapter in enumerate(chapters)),
        planning=planning_section(chapters, agents, results.horizon) if chapters else "",
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
        raise missing_extra("report", "plotly", "report") from None
    return str(get_plotlyjs())


def _today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def _caption(results: Results) -> str:
    done, failed, missing = len(results.cells), len(results.failed), len(results.missing)
    n_cells = done + failed + missing
    rest = " and ".join(f"{count:,} {word}" for count, word in ((failed, "failed"), (missing, "missing")) if count)
    state = f"{done:,} of {plural(n_cells, 'run')} are finished; {rest}." if rest else f"All {n_cells:,} are finished."
    return (
        f"{plural(len(results.agents), 'agent')} on {plural(len(results.envs), 'environment')}, "
        f"{plural(len(results.spec.seeds), 'seed')} each, for T = {results.horizon:,} steps: {plural(n_cells, 'run')}. {state} "
        f"{_lines(results)}"
    )


def _lines(results: Results) -> str:
    """Say what the lines of the charts are."""
    if any(len(group.cells) > 1 for group in results.groups):
        return f"Lines are means over the runs, bands their {LEVEL} t intervals."
    return "Each line is a single run, so there are no intervals." if results.groups else ""


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
