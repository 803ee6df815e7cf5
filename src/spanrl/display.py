"""Small tables for people: as text on a terminal, as HTML in a notebook. Few rows, everything escaped, no dump of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from spanrl.terminal import visible

SHOWN = 30
"""Rows of a printed table."""

SHOWN_IN_HTML = 12
"""Rows in a notebook, where more than a screen hides what comes next."""

_LONGEST = 200  # characters of a cell in a notebook
_LEFT = ' style="text-align:left"'


class Table(NamedTuple):
    """A title for each column, the first rows, and a line on those that are not shown."""

    head: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    more: str = ""


def left_out(total: int, shown: int, what: str) -> str:
    """Say how many are not shown; nothing where all are.

    >>> left_out(100, 30, "states"), left_out(5, 30, "states")
    ('… 70 more states', '')
    """
    return f"… {total - shown:,} more {what}" if total > shown else ""


def as_text(table: Table) -> str:
    """Return a table in aligned columns.

    >>> print(as_text(Table(("state", "action"), [("0", "wait")], "… 2 more states")))
    state  action
    0      wait
    … 2 more states
    """
    rows = [table.head, *([visible(cell) for cell in row] for row in table.rows)]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    padded = ([cell + " " * (w - _width(cell)) for cell, w in zip(row, widths, strict=True)] for row in rows)
    lines = ["  ".join(row).rstrip() for row in padded]
    return "\n".join([*lines, *([table.more] if table.more else [])])


def _width(text: str) -> int:
    """Return the columns that a text takes on a terminal: two for a letter of some scripts, none for an accent."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def as_html(text: str, table: Table | None = None) -> str:
    """Return lines of text, the first as a title, and a table as a piece of HTML; all of it is shown, and none of it acts.

    >>> as_html("MDP <b>\\nstart: 0")
    '<div><strong>MDP &lt;b&gt;</strong><br>start: 0</div>'
    """
    title, *lines = text.split("\n")
    parts = "<br>".join([f"<strong>{_cell(title)}</strong>", *map(_cell, lines)])
    if table is not None:
        head = _row(_tag("th", name) for name in table.head)
        body = "".join(_row(_tag("td", cell) for cell in row) for row in table.rows)
        more = _cell(table.more)
        parts += f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{more}"
    return f"<div>{parts}</div>"


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _tag(name: str, text: str) -> str:
    return f"<{name}{_LEFT}>{_cell(text)}</{name}>"


def _cell(text: str) -> str:
    shown = visible(text)
    # Jupyter would set what stands between dollars as a formula.
    return escape(shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…").replace("$", "&#36;")
