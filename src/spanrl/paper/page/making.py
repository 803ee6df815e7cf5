"""How the page was made: where the time went, on which machine, with what, and how to do it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from spanrl.paper.curves import Experiment
from spanrl.paper.page.parts import Figures, cards, table
from spanrl.report.text import UNKNOWN

PART_HEADERS = ("Part", "Seconds", "Share")

_BESIDE = (
    '<p>Beside this page: <a href="claims.json">claims.json</a>, all verdicts and numbers; <a href="reproduction.md">reproduction.md</a>, '
    'this page in short; <a href="figures/">figures</a>, for print.</p>'
)


BUSY_HEADERS = ("Kind", "Core seconds", "Share")
BUSY_CAPTION = (
    "The cores’ time over the whole run: planning and simulation as the runs measured them, the claims by the clock. The rest is starting, "
    "measuring, writing, drawing, and waiting for the last run."
)


@dataclass(frozen=True)
class Spent:
    """Seconds by part on the clock, and core seconds by kind: planning, simulation, the claims, and the rest of what the cores could do."""

    parts: Mapping[str, float]
    busy: Mapping[str, float]

    @property
    def total(self) -> float:
        """Seconds on the clock."""
        return sum(self.parts.values())


def spent(run: Mapping[str, Any], experiments: Mapping[str, Experiment], drawing: float) -> Spent:
    """Add up where the time went; ``drawing`` are the seconds of the figures."""
    parts = {str(name): float(value) for name, value in run.get("seconds", {}).items() if name != "pages"}
    parts |= {"figures": drawing} if drawing else {}
    cores = int(run.get("workers", run.get("machine", {}).get("cores", 1)))
    planning, simulating = (
        float(sum(getattr(group, part).sum() for one in experiments.values() for group in one.groups))
        for part in ("planning", "simulating")
    )
    busy = {"planning": planning, "simulation": simulating, "claims": cores * parts.get("claims", 0.0)}
    return Spent(parts, busy | {"the rest": max(0.0, cores * sum(parts.values()) - sum(busy.values()))})


def dominates(time: Spent) -> str:
    """Say in one sentence what takes the most time."""
    if not time.total:
        return "No time was measured."
    part, kind = (max(found, key=lambda name: found[name]) for found in (time.parts, time.busy))
    whole = sum(time.busy.values())
    return (
        f"Of {duration(time.total)} on the clock, {time.parts[part] / time.total:.0%} went to {_name(part)}, more than to any other part; "
        f"of the cores’ time, {time.busy[kind] / whole:.0%} went to {_name(kind)}, more than to anything else."
    ).replace("%", "\u00a0%")


def duration(seconds: float) -> str:
    """Write a time as a reader says it.

    >>> duration(42.31), duration(754), duration(4000)
    ('42.3 s', '12 min 34 s', '1 h 06 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def command(scale: str) -> str:
    """Return the command that makes such a page."""
    return f"spanrl reproduce --scale {scale} --out DIR"


def part_rows(time: Spent) -> list[list[str]]:
    """Return part, seconds and share, on the clock."""
    return [[_name(name), f"{value:,.1f}", _share(value, time.total)] for name, value in time.parts.items()]


def busy_rows(time: Spent) -> list[list[str]]:
    """Return kind, core seconds and share."""
    whole = sum(time.busy.values())
    return [[_name(name), f"{value:,.1f}", _share(value, whole)] for name, value in time.busy.items()]


def provenance(run: Mapping[str, Any], scale: str) -> dict[str, str]:
    """Return what a reader needs to know to trust the numbers, and to get them again."""
    machine = run.get("machine", {})
    versions = {str(name): str(version) for name, version in run.get("versions", {}).items()}
    return {
        "Begun": str(run.get("begun", UNKNOWN)),
        "Machine": f"{machine.get('processor', UNKNOWN)}, {machine.get('cores', UNKNOWN)} cores, {machine.get('system', UNKNOWN)}",
        "Versions": ", ".join(f"{name} {version}" for name, version in versions.items()) or UNKNOWN,
        "Git": str(run.get("git") or "not in a repository"),
        "Sources": str(run.get("sources", UNKNOWN)),
        "Scale": scale,
    }


def making_section(run: Mapping[str, Any], scale: str, time: Spent, drawn: Figures) -> str:
    """Return the last section."""
    rows = "".join(
        f'<tr><th scope="row">{escape(key)}</th><td>{escape(value)}</td></tr>'
        for key, value in provenance(run, scale).items()
    )
    parts = [[escape(cell) for cell in row] for row in part_rows(time)]
    busy = [[escape(cell) for cell in row] for row in busy_rows(time)]
    return (
        '<section aria-labelledby="making">\n<h2 id="making">How it was made</h2>\n'
        f'<p>This does it again, and goes on where it was stopped:</p>\n<pre tabindex="0"><code>{escape(command(scale))}</code></pre>\n'
        f"<p>{escape(dominates(time))}</p>\n{cards(drawn, 'time')}\n"
        f'<div class="sides">{table(PART_HEADERS, parts, "Seconds on the clock by part of the work.", "finals narrow")}\n'
        f"{table(BUSY_HEADERS, busy, BUSY_CAPTION, 'finals narrow')}</div>\n"
        f'<div class="scroll" tabindex="0" role="region" aria-label="Machine and versions">'
        f'<table class="plain"><tbody>{rows}</tbody></table></div>\n'
        f"{_BESIDE}\n</section>"
    )


def _name(part: str) -> str:
    return (
        f"the experiment {part.removeprefix('experiment ')}"
        if part.startswith("experiment ")
        else {"claims": "the claims", "figures": "the figures"}.get(part, part)
    )


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}\u00a0%" if whole else UNKNOWN
