"""All benchmarks in one go: ``python benchmarks/run.py [--smoke]``. Ratios are measured within this run; times are only shown."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from backups import box_rows, plain_rows, truncation_rows
from harness import Row, report
from solving import accelerator_rows, domain_rows, start_rows

from experiments import report_rows, runner_rows
from learning import accelerator_rows as learning_accelerator_rows
from learning import knight_quest_rows, large_rows, three_state_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--smoke", action="store_true", help="toy sizes, to see that everything runs; targets mean nothing then"
    )
    smoke = parser.parse_args().smoke
    rows: list[Row] = []
    planning = (plain_rows, box_rows, truncation_rows, accelerator_rows, domain_rows, start_rows)
    learning = (three_state_rows, knight_quest_rows, learning_accelerator_rows, large_rows)
    for part in (*planning, *learning, runner_rows, report_rows):
        print(f"measuring {part.__name__.removesuffix('_rows')} …", flush=True)
        rows += part(smoke)
    folder = Path(tempfile.mkdtemp()) if smoke else Path(__file__).parent
    report(rows, folder / "results.json")


if __name__ == "__main__":
    main()
