"""Numbers and formulas as the page writes them: powers of ten in one form, indices and exponents set as such."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isnan
from typing import Any

from spanrl.axes import power_of_ten
from spanrl.report import text
from spanrl.report.standings import Estimate
from spanrl.report.table import Cell
from spanrl.report.templates import Markup, escape
from spanrl.report.text import UNKNOWN, one_line

_LETTER = "A-Za-zΑ-Ωα-ω0-9"
_INDEX = re.compile(rf"_(\{{[^{{}}]+\}}|max|min|∞|[{_LETTER}]{{1,2}}[\u0300-\u036f]?)(?![{_LETTER}_])")
_EXPONENT = re.compile(rf"\^(\{{[^{{}}]+\}}|[{_LETTER}])(?![{_LETTER}])")
_POWER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+−-]?\d{1,3})(?!\w|\.\d)")


def formula(words: object) -> Markup:
    """Return text as HTML, escaped, with indices, exponents and powers of ten set as such; names of code keep their underscores.

    >>> print(formula("T_c v_{n+1} < r_max and span_bound"))
    T<sub>c</sub> v<sub>n+1</sub> &lt; r<sub>max</sub> and span_bound
    >>> print(formula("argmax_π g^π; L_{G_c v} to 1e-09"))
    argmax<sub>π</sub> g<sup>π</sup>; L<sub>G<sub>c</sub> v</sub> to 10⁻⁹
    """
    escaped = str(escape(with_powers(one_line(str(words)))))
    return Markup(_set(escaped, "<sub>{}</sub>".format, "<sup>{}</sup>".format))


def plain(words: object) -> str:
    """Return text without marks of indices and exponents, for where nothing can be set.

    >>> plain("T_c belongs to no rule; v_{n+1}, span_bound")
    'Tc belongs to no rule; vn+1, span_bound'
    """
    return _set(with_powers(one_line(str(words))), str, str)


def _set(words: str, lower: Callable[[str], str], raised: Callable[[str], str]) -> str:
    """Set indices, also those within an index, and exponents."""
    lowered = _INDEX.sub(lambda found: lower(_set(found[1].strip("{}"), lower, raised)), words)
    return _EXPONENT.sub(lambda found: raised(found[1].strip("{}")), lowered)


def with_powers(words: str) -> str:
    """Return text with numbers such as 1e-09 written as powers of ten.

    >>> with_powers("1e-09, 4.979e−11 and T = 2e+07"), with_powers("cafe1e5 and delta=5e-3]")
    ('10⁻⁹, 4.979·10⁻¹¹ and T = 2·10⁷', 'cafe1e5 and delta=5·10⁻³]')
    """
    return _POWER.sub(_power, words)


def _power(found: re.Match[str]) -> str:
    mantissa, exponent = found[1], int(found[2].replace("−", "-"))
    if abs(exponent) > 300:  # no float has it
        return found[0]
    ten = power_of_ten(float(f"1e{exponent}"))
    return ten if float(mantissa) == 1 else f"{mantissa}·{ten}"


def number(value: float | None) -> str:
    """Write a number with about four digits.

    >>> number(1234567.8), number(12.3456789), number(-4.2e-9), number(None)
    ('1,234,568', '12.35', '−4.2·10⁻⁹', '–')
    """
    return with_powers(text.number(value))


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
    """Write a time exactly: a short multiple of a power of ten as such.

    >>> power(1000), power(25_000_000), power(400), power(1234567)
    ('10³', '2.5·10⁷', '400', '1,234,567')
    """
    return power_of_ten(t) if t >= 1000 and len(str(t).rstrip("0")) <= 3 else f"{t:,}"


def large(value: float) -> str:
    """Write a number that may be large, rounded: from 10⁵ on as a multiple of a power of ten.

    >>> large(25_000_000), large(1500.0), large(42), large(-2e6)
    ('2.5·10⁷', '1,500', '42', '−2·10⁶')
    """
    size = abs(value)
    if size >= 1e5:
        out = power_of_ten(size)
    else:
        out = f"{size:,.4g}" if size < 1e3 else f"{size:,.0f}"
    return f"−{out}" if value < 0 else out


def estimate(value: Estimate) -> Cell:
    """Return a mean with its interval."""
    return Cell(number(value.value), with_powers(text.interval(value.low, value.high)))
