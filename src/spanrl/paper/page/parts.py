"""Small parts that every section of the page is made of: tables, verdicts, figures, numbers. What comes from data is escaped here."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import isnan
from typing import Any

from spanrl.report.standings import Estimate, mark
from spanrl.report.text import UNKNOWN, interval, number, one_line

MARKS = {"holds": "✓", "fails": "✗", "vacuous": "∅", "not-run": "–"}

_INDEX = re.compile(r"_(\{[^{}]+\}|max|min|∞|[A-Za-z0-9]{1,2}[\u0300-\u036f]?)(?![A-Za-z0-9_])")
_EXPONENT = re.compile(r"\^(\{[^{}]+\}|[A-Za-z0-9π])(?![A-Za-z0-9])")
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Drawn:
    """A figure of the page: its name among the files, its caption, and the picture as svg."""

    name: str
    title: str
    caption: str
    svg: bytes


def formula(text: object) -> str:
    """Return text as HTML, escaped, with indices and exponents set as such; names of code keep their underscores.

    >>> formula("T_c v_{n+1} < r_max and span_bound"), formula("sp(h^π)"), formula("L_{G_c v}")
    ('T<sub>c</sub> v<sub>n+1</sub> &lt; r<sub>max</sub> and span_bound', 'sp(h<sup>π</sup>)', 'L<sub>G<sub>c</sub> v</sub>')
    """
    return _set(escape(one_line(str(text))))


def _set(text: str) -> str:
    """Set indices, also those within an index, and exponents."""
    lowered = _INDEX.sub(lambda found: f"<sub>{_set(found[1].strip('{}'))}</sub>", text)
    return _EXPONENT.sub(lambda found: f"<sup>{found[1].strip('{}')}</sup>", lowered)


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


def shown(value: Any) -> str:
    """Write a value of a claim or slip as plain text: numbers short, lists with commas, ∞ and NaN by name.

    >>> shown([1.0, "inf", "-inf", "nan"]), shown(True), shown(12345), shown("s0; s1")
    ('1, ∞, −∞, not a number', 'yes', '12,345', 's0; s1')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(shown(one) for one in value) or UNKNOWN
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if isinstance(value, float):
        return "not a number" if isnan(value) else number(value)
    return {"inf": "∞", "-inf": "−∞", "nan": "not a number"}.get(str(value), one_line(str(value)))


def power(t: int) -> str:
    """Write a time: powers of ten as such.

    >>> power(1000), power(25_000_000), power(400), power(1234567)
    ('10³', '2.5·10⁷', '400', '1,234,567')
    """
    digits = str(t).rstrip("0")
    if t < 1000 or len(digits) > 3:
        return f"{t:,}"
    lead = digits[0] + (f".{digits[1:]}" if digits[1:] else "")
    exponent = str(len(str(t)) - 1).translate(_SUPERSCRIPTS)
    return f"10{exponent}" if lead == "1" else f"{lead}·10{exponent}"


def estimate(value: Estimate) -> str:
    """Write a mean with its interval."""
    return f"{number(value.value)} <small>{interval(value.low, value.high)}</small>"


def p_text(p_value: float) -> str:
    """Write a corrected p-value with its stars.

    >>> p_text(0.0), p_text(0.031), p_text(float("nan"))
    ('< 0.0001 ***', '0.031 *', '–')
    """
    if isnan(p_value):
        return UNKNOWN
    return f"{number(round(p_value, 4)) if p_value >= 1e-4 else '< 0.0001'} {mark(p_value)}".rstrip()


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], caption: str, kind: str = "finals") -> str:
    """Return a table that scrolls inside its box; the first cell of a row is its header. Cells are HTML, the caption is text."""
    head = "".join(f'<th scope="col">{header}</th>' for header in headers)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>\n'
        for first, *cells in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="{kind}">'
        f"<caption><span>{formula(caption)}</span></caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
    )


def numbers_table(numbers: Mapping[str, Any], caption: str) -> str:
    """Return the numbers of a claim or slip as a table of names and values."""
    rows = [(formula(name), formula(shown(value))) for name, value in numbers.items()]
    return table(("Number", "Value"), rows, caption, "plain numbers")


def card(drawn: Drawn) -> str:
    """Return a figure on a white card, with its caption and links to the files for print."""
    data, name = base64.b64encode(drawn.svg).decode("ascii"), escape(drawn.name)
    return (
        f'<figure class="plot" id="figure-{name}"><div class="card">'
        f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(drawn.caption)}">'
        f"</div><figcaption><strong>{escape(drawn.title)}.</strong> {escape(drawn.caption)} "
        f'<span class="files"><a href="figures/{name}.png">PNG</a> <a href="figures/{name}.pdf">PDF</a></span></figcaption></figure>'
    )


def cards(drawn: Mapping[str, Drawn], *names: str) -> str:
    """Return the figures of these names that there are."""
    return "\n".join(card(drawn[name]) for name in names if name in drawn)


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
