"""results.json, and the README's speed table made from it alone: ``python benchmarks/results.py [--check] README.md``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tables import number, target

RESULTS = Path(__file__).with_name("results.json")
BEGIN, END = "<!-- speed table -->", "<!-- /speed table -->"

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
    """Return the README's table: the rows that have a label for it, and what they were measured on."""
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


def with_table(page: str, table: str) -> str:
    """Return the page with the table between its markers."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise SystemExit(f"results: the page must have {BEGIN} and {END} once each.")
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path, help="the page with the markers")
    parser.add_argument("--check", action="store_true", help="only tell, by the exit code, whether the page agrees")
    options = parser.parse_args(argv)
    page = options.page.read_text(encoding="utf-8")
    wanted = with_table(page, speed_table(json.loads(RESULTS.read_text(encoding="utf-8"))))
    if options.check:
        if page != wanted:
            print(f"results: the speed table of {options.page} is not that of {RESULTS.name}.", file=sys.stderr)
        return int(page != wanted)
    options.page.write_text(wanted, encoding="utf-8")
    return 0


def _measured(row: Mapping[str, Any]) -> str:
    return "–" if row["value"] is None else f"{number(row['value'])} {row['unit']}"


def _verdict(row: Mapping[str, Any]) -> str:
    if row["target"] is None:
        return ""
    return "met" if row["met"] else f"**missed**{': ' + row['note'] if row['value'] is None else ''}"


if __name__ == "__main__":
    sys.exit(main())
