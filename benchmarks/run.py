"""All benchmarks in one go: ``python benchmarks/run.py [--smoke]``. Ratios are measured within this run; times are only shown."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from backups import box_rows, plain_rows, truncation_rows
from harness import Row, report
from solving import accelerator_rows, domain_rows, start_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--smoke", action="store_true", help="toy sizes, to see that everything runs; targets mean nothing then"
    )
    smoke = parser.parse_args().smoke
    rows: list[Row] = []
    for part in (plain_rows, box_rows, truncation_rows, accelerator_rows, domain_rows, start_rows):
        print(f"measuring {part.__name__.removesuffix('_rows')} …", flush=True)
        rows += part(smoke)
    folder = Path(tempfile.mkdtemp()) if smoke else Path(__file__).parent
    report(rows, folder / "results.json")


if __name__ == "__main__":
    main()
