"""Measure ratios within one run: the candidates take turns, so that what else the machine does hits them alike."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter


@dataclass(frozen=True)
class Row:
    """One line of the table. ``target`` is an upper limit on ``value`` (None: only shown)."""

    group: str
    case: str
    value: float
    unit: str
    target: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.value <= self.target


def interleaved(candidates: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each candidate over ``repeats`` rounds, after one round to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(repeats + 1):
        for name, run in candidates.items():
            start = perf_counter()
            run()
            if turn:
                seconds[name].append(perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}


def report(rows: list[Row], path: Path) -> int:
    """Print the table, write it to ``path``, and return how many targets were missed."""
    width = max(len(row.case) for row in rows)
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            print(f"\n{group}")
        goal = "" if row.target is None else f"  target ≤ {row.target:g}: {'met' if row.met else 'MISSED'}"
        print(f"  {row.case:<{width}}  {row.value:9.3g} {row.unit}{goal}{'  ' + row.note if row.note else ''}")
    missed = sum(row.met is False for row in rows)
    print(f"\n{missed} of {sum(row.target is not None for row in rows)} targets missed.")
    machine = {"machine": platform.machine(), "python": platform.python_version()}
    path.write_text(
        json.dumps({"machine": machine, "rows": [asdict(row) | {"met": row.met} for row in rows]}, indent=1) + "\n"
    )
    print(f"written to {path}")
    return missed
