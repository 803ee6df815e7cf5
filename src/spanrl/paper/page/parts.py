"""Small parts that every section of the page is made of: tables, verdicts, figures. What comes from data is escaped here."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from spanrl.paper.page.notation import formula, plain, shown
from spanrl.report.text import UNKNOWN, one_line

MARKS = {"holds": "✓", "fails": "✗", "vacuous": "∅", "not-run": "–"}


@dataclass(frozen=True)
class Drawn:
    """A figure of the page: its name among the files, its caption, and the picture as svg."""

    name: str
    title: str
    caption: str
    svg: bytes


@dataclass(frozen=True)
class Undrawn:
    """A figure that could not be drawn, and why."""

    name: str
    reason: str

    @property
    def told(self) -> str:
        """The sentence that stands in its place."""
        return f"This figure could not be drawn: {one_line(self.reason)}."


Figures = Mapping[str, Drawn | Undrawn]
"""By their names."""


def is_surprise(entry: Mapping[str, Any]) -> bool:
    """Tell whether a claim was checked and is not what it should be."""
    return entry["verdict"] not in ("not-run", entry["expected"])


def verdict_words(entry: Mapping[str, Any]) -> str:
    """Say the verdict, and the expected one where that needs saying.

    >>> verdict_words({"verdict": "fails", "expected": "fails"}), verdict_words({"verdict": "fails", "expected": "holds"})
    ('fails, as expected', 'fails, expected: holds')
    """
    verdict, expected = str(entry["verdict"]), str(entry["expected"])
    if verdict == "not-run":
        return f"not run, expected: {expected}"
    return f"{verdict}, as expected" if verdict == expected else f"{verdict}, expected: {expected}"


def kind(entry: Mapping[str, Any]) -> str:
    """Return the look of a verdict: surprise, holds, neutral (what is known not to hold) or not-run."""
    if is_surprise(entry):
        return "surprise"
    return {"holds": "holds", "not-run": "not-run"}.get(str(entry["verdict"]), "neutral")


def badge(entry: Mapping[str, Any]) -> str:
    """Return the verdict as a badge."""
    sign = MARKS.get(str(entry["verdict"]), "?")
    return f'<span class="badge {kind(entry)}"><span aria-hidden="true">{sign}</span> {escape(verdict_words(entry))}</span>'


def small_mark(entry: Mapping[str, Any]) -> str:
    """Return the verdict as one sign, told in words to those who do not see it."""
    words, sign = escape(verdict_words(entry)), MARKS.get(str(entry["verdict"]), "?") + "!" * is_surprise(entry)
    return f'<span class="mark {kind(entry)}" role="img" aria-label="{words}" title="{words}">{sign}</span>'


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], caption: str, kind: str = "finals") -> str:
    """Return a table that scrolls inside its box; the first cell of a row is its header. Cells are HTML, the caption is text."""
    head = "".join(f'<th scope="col">{header}</th>' for header in headers)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>\n'
        for first, *cells in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(plain(caption))}"><table class="{kind}">'
        f"<caption><span>{formula(caption)}</span></caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
    )


def numbers_table(numbers: Mapping[str, Any], caption: str, kind: str = "") -> str:
    """Return the numbers of a claim or slip as a table of names and values."""
    rows = [(formula(name), _value(value)) for name, value in numbers.items()]
    return table(("Number", "Value"), rows, caption, f"plain numbers {kind}".rstrip())


def _value(value: Any) -> str:
    """Return a value as HTML; a line may end between the numbers of a list, but not within one."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value)) or UNKNOWN
    words = formula(shown(value))
    return words if isinstance(value, str) else f'<span class="one">{words}</span>'


def card(drawn: Drawn) -> str:
    """Return a figure on a white card, with its caption and links to the files for print."""
    data, name, title = base64.b64encode(drawn.svg).decode("ascii"), escape(drawn.name), escape(plain(drawn.title))
    return (
        f'<figure class="plot" id="figure-{name}"><div class="card" tabindex="0" role="group" aria-label="Figure">'
        f'<img src="data:image/svg+xml;base64,{data}" alt="{title}" aria-describedby="caption-{name}"></div>'
        f'<figcaption><strong>{formula(drawn.title)}.</strong> <span id="caption-{name}">{formula(drawn.caption)}</span> '
        f'<span class="files"><a href="figures/{name}.png">PNG</a> <a href="figures/{name}.pdf">PDF</a></span></figcaption></figure>'
    )


def cards(drawn: Figures, *names: str) -> str:
    """Return the figures of these names that there are, and a sentence for those that could not be drawn."""
    found = [drawn[name] for name in names if name in drawn]
    return "\n".join(card(one) if isinstance(one, Drawn) else empty(one.told) for one in found)


def empty(what: str, remedy: str = "") -> str:
    """Return the sentence that stands where there is nothing to show; ``what`` is text, ``remedy`` is HTML."""
    return f'<p class="empty">{escape(what)} {remedy}</p>'


def guarded(what: str, make: Callable[[], str], say: Callable[[str], str] = empty) -> str:
    """Return what ``make`` makes, or a sentence where it fails: no broken part may hide the verdicts."""
    try:
        return make()
    except Exception as error:
        told = one_line(f"{type(error).__name__}: {error}")
        return say(f"{what}: this part could not be made ({told}).")
