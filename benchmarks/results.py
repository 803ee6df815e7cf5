"""results.json, and what pages show of it, made from it alone: ``python benchmarks/results.py [--check] docs/speed.md README.md``.

``<!-- speed table -->`` in a page is followed by all labelled rows, ``<!-- speed figures -->`` by three of them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tables import number, target

RESULTS = Path(__file__).with_name("results.json")
FIGURES = (
    "Pure simulation, three-state",
    "Learning on statisticalRL's RiverSwim, T = 100000: steps per second of SCAL over its UCRL3",
    "Planning with 10⁶ states, A = 4, Γ = 6, to 1e-6",
)
"""The rows that the README shows."""

Results = Mapping[str, Any]


def write_results(
    path: Path, machine: Mapping[str, Any], seconds: Mapping[str, float], failed: Mapping[str, str], rows: Iterable[Any]
) -> Results:
    """Write everything that was measured, in one step; return it."""
    results = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": dict(machine),
        "seconds": {"total": sum(seconds.values()), **seconds},
        "failed": dict(failed),
        "rows": [row.as_json() for row in rows],
    }
    text = json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
    return results


def speed_table(results: Results) -> str:
    """Return the table of all rows that have a label, and what they were measured on."""
    lines = ["| what | measured | target | |", "|---|---:|---:|---|"]
    for row in results["rows"]:
        label = row["data"].get("readme")
        if label:
            lines.append(f"| {label} | {_measured(row)} | {target(row)} | {_verdict(row)} |")
    others = [row for row in results["rows"] if row["met"] is False and not row["data"].get("readme")]
    if others:
        told = "; ".join(f"{row['group']}, {row['case']}: {_measured(row)} ({target(row)})" for row in others)
        lines += ["", f"Missed besides these: {told}."]
    here = results["machine"]
    memory = f", {here['memory']:.0f} GiB" if here["memory"] else ""
    lines += [
        "",
        f"One run of `make bench` on {results['date']}, medians of its repeats: {here['processor']}, {here['cores']} cores{memory}, "
        f"Python {here['python']}, numpy {here['numpy']}, numba {here['numba']}. All rows: `benchmarks/results.json`.",
    ]
    return "\n".join(lines)


def speed_figures(results: Results) -> str:
    """Return three rows as a list; one that was not measured is shown as a dash."""
    rows = {row["data"].get("readme"): row for row in results["rows"]}
    return "\n".join(f"* {label}: {_measured(rows[label]) if label in rows else '–'}" for label in FIGURES)


SECTIONS: dict[str, Callable[[Results], str]] = {"speed table": speed_table, "speed figures": speed_figures}


def with_sections(page: str, results: Results) -> str:
    """Return the page with all it shows of the results between their markers."""
    shown = [name for name in SECTIONS if f"<!-- {name} -->" in page]
    if not shown:
        raise SystemExit(
            f"results: the page must have a marker, {' or '.join(f'<!-- {name} -->' for name in SECTIONS)}."
        )
    for name in shown:
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise SystemExit(f"results: the page must have {begin} and {end} once each.")
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{SECTIONS[name](results)}\n{end}{rest.partition(end)[2]}"
    return page


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", type=Path, nargs="+", help="pages with markers")
    parser.add_argument("--check", action="store_true", help="only tell, by the exit code, whether the pages agree")
    options = parser.parse_args(argv)
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    wrong = 0
    for path in options.pages:
        page = path.read_text(encoding="utf-8")
        wanted = with_sections(page, results)
        if options.check and page != wanted:
            print(f"results: {path} does not show what is in {RESULTS.name}.", file=sys.stderr)
            wrong = 1
        elif not options.check:
            path.write_text(wanted, encoding="utf-8")
    return wrong


def _measured(row: Mapping[str, Any]) -> str:
    return "–" if row["value"] is None else f"{number(row['value'])} {row['unit']}"


def _verdict(row: Mapping[str, Any]) -> str:
    if row["target"] is None:
        return ""
    return "met" if row["met"] else f"**missed**{': ' + row['note'] if row['value'] is None else ''}"


if __name__ == "__main__":
    sys.exit(main())
