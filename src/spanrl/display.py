"""Small tables for people: as text on a terminal, as HTML in a notebook. Few rows, everything escaped, no dump of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, *([table.more] if table.more else [])])


def as_html(title: str, facts: Mapping[str, str] | None = None, table: Table | None = None) -> str:
    """Return a title, facts by name and a table as a piece of HTML; all of it is text, and none of it acts.

    >>> as_html("<b>", {"gain": "1"})
    '<div><strong>&lt;b&gt;</strong><table><tbody><tr><th style="text-align:left">gain</th><td style="text-align:left">1</td></tr></tbody></table></div>'
    """
    parts = [f"<strong>{_cell(title)}</strong>"]
    if facts:
        body = "".join(_row([_tag("th", name), _tag("td", fact)]) for name, fact in facts.items())
        parts.append(f"<table><tbody>{body}</tbody></table>")
    if table is not None:
        head = _row(_tag("th", name) for name in table.head)
        body = "".join(_row(_tag("td", cell) for cell in row) for row in table.rows)
        more = f"<p>{_cell(table.more)}</p>" if table.more else ""
        parts.append(f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{more}")
    return f"<div>{''.join(parts)}</div>"


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _tag(name: str, text: str) -> str:
    return f"<{name}{_LEFT}>{_cell(text)}</{name}>"


def _cell(text: str) -> str:
    shown = visible(text)
    # Jupyter would set what stands between dollars as a formula.
    return escape(shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…").replace("$", "&#36;")
