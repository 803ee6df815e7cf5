"""The rows as tables, one a group: readable in a terminal, in a log file and at 100 columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from itertools import groupby
from textwrap import wrap
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDTH = 100  # where there is no terminal
_NOTE = 50  # columns of a note, which stands below its case

Entry = Mapping[str, Any]
"""A row as results.json has it."""


def console() -> Console:
    """Return where to print: as wide as the terminal, or 100 columns."""
    width = None if sys.stdout.isatty() else _WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


def number(value: float | None) -> str:
    """Return a number with three digits, a dash for none.

    >>> number(0.0123), number(1234.5), number(None), number(12), number(40.0), number(2.5e6)
    ('0.0123', '1230', '–', '12', '40', '2.5e+06')
    """
    if value is None:
        return "–"
    short = f"{value:.3g}"
    return f"{float(short):.0f}" if "e+" in short and abs(value) < 1e6 else short


def verdict(row: Entry) -> str:
    """Say what became of the target.

    >>> verdict({"target": 1.0, "value": None, "met": False}), verdict({"target": 1.0, "value": 2.0, "met": False})
    ('not measured', 'MISSED')
    """
    if row["value"] is None:
        return "not measured"
    if row["target"] is None:
        return ""
    return "met" if row["met"] else "MISSED"


def target(row: Entry) -> str:
    """Return the target with its direction.

    >>> target({"target": 3.0, "at_least": True}), target({"target": 0.3, "at_least": False}), target({"target": None})
    ('≥ 3', '≤ 0.3', '')
    """
    if row["target"] is None:
        return ""
    return f"{'≥' if row['at_least'] else '≤'} {number(row['target'])}"


def print_tables(rows: Iterable[Entry], out: Console) -> None:
    """Print one table a group, in the order of the rows."""
    for group, members in groupby(rows, key=lambda row: row["group"]):
        out.print(_table(group, list(members)))


def print_summary(rows: Iterable[Entry], out: Console) -> None:
    """Say how many targets were met, and name those that were not."""
    with_target = [row for row in rows if row["target"] is not None]
    missed = [row for row in with_target if not row["met"]]
    out.print(f"{len(with_target) - len(missed)} of {len(with_target)} targets met.")
    for row in missed:
        measured = "not measured" if row["value"] is None else f"{number(row['value'])} {row['unit']}"
        out.print(f"missed: {row['group']}, {row['case']}: {measured}, target {target(row)}", soft_wrap=True)


def _table(group: str, members: list[Entry]) -> Table:
    table = Table(
        title=Text(group), title_justify="left", box=SIMPLE_HEAD, pad_edge=False, title_style="bold", expand=False
    )
    for name, options in (
        ("case", {"overflow": "fold"}),
        ("median", {"justify": "right", "no_wrap": True}),
        ("unit", {"no_wrap": True}),
        ("smallest", {"justify": "right", "no_wrap": True}),
        ("target", {"justify": "right", "no_wrap": True}),
        ("", {"no_wrap": True}),
    ):
        table.add_column(name, **options)
    for row in members:
        said = verdict(row)
        case = Text(row["case"])
        if row["note"]:
            case.append("\n" + "\n".join(wrap(row["note"], _NOTE, initial_indent="  ", subsequent_indent="  ")), "dim")
        table.add_row(
            case, number(row["value"]), row["unit"], "" if row["least"] is None else number(row["least"]),
            target(row), Text(said, "bold red" if said in ("MISSED", "not measured") else ""),
        )  # fmt: skip
    return table
