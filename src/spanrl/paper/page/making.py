"""How the page was made: where the time went, on which machine, with what, and how to do it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spanrl.paper.curves import Experiment
from spanrl.report.table import Table
from spanrl.report.text import UNKNOWN

PART_HEADERS = ("Part", "Seconds", "Share")

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


def part_table(time: Spent) -> Table:
    """Return part, seconds and share, on the clock."""
    return _time_table(PART_HEADERS, time.parts, "Seconds on the clock by part of the work.")


def busy_table(time: Spent) -> Table:
    """Return kind, core seconds and share."""
    return _time_table(BUSY_HEADERS, time.busy, BUSY_CAPTION)


def _time_table(headers: tuple[str, ...], seconds: Mapping[str, float], caption: str) -> Table:
    whole = sum(seconds.values())
    rows = [[_name(name), f"{value:,.1f}", _share(value, whole)] for name, value in seconds.items()]
    return Table(headers, rows, caption, "finals narrow")


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


def _name(part: str) -> str:
    return (
        f"the experiment {part.removeprefix('experiment ')}"
        if part.startswith("experiment ")
        else {"claims": "the claims", "figures": "the figures"}.get(part, part)
    )


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}\u00a0%" if whole else UNKNOWN
