"""One model of a table: a macro of ``macros.html.j2`` shows it on a page, ``markdown_table`` in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from spanrl.report.templates import escape


class Sign(NamedTuple):
    """A sign behind a number: its class in the style sheet, how it looks, and what it says to those who do not see it."""

    kind: str
    text: str
    words: str


NO_SIGN = Sign("no-sign", "", "")
"""Leaves the room of a sign, so that numbers stand below each other."""


@dataclass(frozen=True)
class Cell:
    """A cell that is more than its text: an interval in small print, a value to sort by (NaN: none), drawn as a bar or not, a sign."""

    text: str
    interval: str = ""
    value: float | None = None
    is_bar: bool = False
    sign: Sign | None = None

    @property
    def sort_key(self) -> str:
        """The value, where it is a number."""
        return str(self.value) if self.value is not None and isfinite(self.value) else ""


@dataclass(frozen=True)
class Table:
    """Headers (none: no line of them), rows, of which the first cell is the header, a caption, and classes of the style sheet."""

    head: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    caption: str = ""
    kind: str = "finals"
    is_sortable: bool = False
    is_best_first: bool = False


def markdown_table(table: Table) -> str:
    """Return a table in Markdown, without its caption.

    >>> print(markdown_table(Table(["Agent", "Regret"], [["a|b", Cell("1", "[0, 2]")]])))
    | Agent | Regret |
    | --- | --- |
    | a\\|b | 1 [0, 2] |
    """
    rows = [[_words(cell) for cell in row] for row in (table.head, *table.rows)]
    rows.insert(1, ["---"] * len(table.head))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _words(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return inert(cell)
    return inert(" ".join(part for part in (cell.text, cell.interval, cell.sign and cell.sign.text) if part))


def inert(words: str) -> str:
    """Return text or Markup in which nothing is Markdown, readable as it stands where that is safe.

    >>> inert("a_b < [1](2)")
    'a\\\\_b &lt; [1]\\\\(2)'
    """
    out = str(escape(words)).replace("&#39;", "'").replace("&#34;", '"')
    for letter in "\\`*_|~":
        out = out.replace(letter, f"\\{letter}")
    return out.replace("](", "]\\(")  # else a link; intervals stay readable
