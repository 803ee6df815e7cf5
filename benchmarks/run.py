"""All benchmarks in one go: ``python benchmarks/run.py [--smoke] [--only PART]``. Ratios are measured within this run."""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter

from harness import Row
from results import RESULTS, write_results
from tables import console, print_summary, print_tables

from spanrl.bench import machine

PARTS = {
    "starting": "starting:start_rows",
    "compiling": "compiling:compile_rows",
    "simulating": "simulating:simulation_rows",
    "three-state": "learning:three_state_rows",
    "knight-quest": "learning:knight_quest_rows",
    "profile": "profiling:profile_rows",
    "learning-peers": "learning_peers:learning_peer_rows",
    "sharp-sets": "sharp_sets:sharp_rows",
    "family-peers": "family_peers:family_rows",
    "planning-peers": "planning_peers:planning_peer_rows",
    "structure": "structure_peers:structure_rows",
    "building": "building:building_rows",
    "scale": "scale:scale_rows",
    "threads": "scale:thread_rows",
    "growth": "scale:growth_rows",
    "plain": "backups:plain_rows",
    "box": "backups:box_rows",
    "truncation": "backups:truncation_rows",
    "accelerators": "solving:accelerator_rows",
    "spans": "solving:span_rows",
    "domain": "solving:domain_rows",
    "warm-start": "learning:accelerator_rows",
    "large": "learning:large_rows",
    "runner": "experiments:runner_rows",
    "report": "experiments:report_rows",
}
"""Name → "module:function"; the function takes ``smoke`` and returns rows."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--smoke", action="store_true", help="toy sizes, to see that everything runs; targets mean nothing then"
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"one or more of {', '.join(PARTS)}")
    parser.add_argument(
        "--out", type=Path, help="where to write; default: benchmarks/results.json, a new folder for parts or toy sizes"
    )
    options = parser.parse_args(argv)
    out, here = console(), machine()
    rows: list[Row] = []
    seconds: dict[str, float] = {}
    failed: dict[str, str] = {}
    names = options.only or list(PARTS)
    for i, name in enumerate(names, 1):
        out.print(f"[{i}/{len(names)}] {name} …")
        begun = perf_counter()
        try:
            rows += measure(name, options.smoke)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
            traceback.print_exc()
        seconds[name] = round(perf_counter() - begun, 1)
        out.print(f"[{i}/{len(names)}] {name}: {'FAILED after ' if name in failed else ''}{seconds[name]:.1f} s")
    partial = options.smoke or options.only
    target = options.out or (Path(tempfile.mkdtemp()) / RESULTS.name if partial else RESULTS)
    results = write_results(target, here, seconds, failed, rows)
    print_tables(results["rows"], out)
    print_summary(results["rows"], out)
    for name, why in failed.items():
        out.print(f"failed: {name}: {why}", soft_wrap=True)
    out.print(f"{sum(seconds.values()):.0f} s in all; written to {target}", soft_wrap=True)
    return 1 if failed else 0


def measure(name: str, smoke: bool) -> list[Row]:
    """Return the rows of a part."""
    module, _, function = PARTS[name].partition(":")
    return list(getattr(import_module(module), function)(smoke))


if __name__ == "__main__":
    sys.exit(main())
