"""The page of a report: one HTML file that holds its style, its charts' program and its data, and needs no network.

The template escapes whatever a user named (labels, the experiment, the texts of failures), in the page as in the data. The program of the
charts escapes once more what it hands to plotly, which reads a little HTML itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from spanrl import __version__
from spanrl.errors import missing_extra
from spanrl.report.chapters import Chapter
from spanrl.report.data import chart_data
from spanrl.report.sections import chapter_section, planning_table
from spanrl.report.table import Table
from spanrl.report.templates import Markup, render
from spanrl.report.text import LEVEL, UNKNOWN, display_names, one_line, plural

if TYPE_CHECKING:
    from spanrl.experiments.results import Results


def page(results: Results, chapters: Sequence[Chapter]) -> str:
    """Return the HTML of the report."""
    agents = display_names(results.agents)
    return render(
        "report/page.html.j2",
        version=__version__,
        nonce=secrets.token_urlsafe(16),  # the browser runs our two scripts and no other
        title=one_line(results.name),
        caption=_caption(results),
        numbers=_numbers(results),
        incomplete={
            "failed": {cell: one_line(text) for cell, text in results.failed.items()},
            "missing": dict.fromkeys(results.missing, ""),
        },
        sections=[chapter_section(chapter, agents, results.horizon) for chapter in chapters],
        planning=planning_table(chapters, agents, results.horizon) if chapters else None,
        settings=results.spec.to_toml(),
        provenance=_provenance(results),
        date=_today(),
        data=chart_data(chapters, agents, results.horizon),
        plotly=Markup(_plotly()),
        level=LEVEL,
        plural=plural,
    )


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


def _numbers(results: Results) -> dict[str, str]:
    return {
        "Horizon T": f"{results.horizon:,}",
        "Finished runs": f"{len(results.cells):,}",
        "Environments": f"{len(results.envs):,}",
        "Agents": f"{len(results.agents):,}",
    }


def _provenance(results: Results) -> Table:
    planning, simulating, total = (
        f"{results.cells[name].sum():,.1f} s" for name in ("planning", "simulating", "total")
    )
    facts = {
        "Report written": _today(),
        "Computation": f"{total} in all finished runs together: {planning} planning, {simulating} simulating",
        **{name: ", ".join(found) or UNKNOWN for name, found in results.versions.items()},
    }
    caption = "What the runs were computed with; several versions stand side by side."
    return Table((), list(facts.items()), caption, "plain")
