"""Words and numbers as a reader sees them: names made presentable, numbers short, intervals and counts in one form."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

UNKNOWN = "–"
"""What stands where there is no number."""

LEVEL = "95\u00a0%"
"""The level of all intervals of a report; the space does not break."""


class Named(Protocol):
    """An environment or agent of an experiment."""

    @property
    def id(self) -> str:
        """Return the canonical text form."""

    @property
    def label(self) -> str:
        """Return the name for figures."""


def display_names(entries: Sequence[Named]) -> dict[str, str]:
    """Return id → name: the label, with the id behind it where several entries share the label."""
    labels = {entry.id: one_line(entry.label) or entry.id for entry in entries}
    often = Counter(labels.values())
    return {key: label if often[label] == 1 else f"{label} ({key})" for key, label in labels.items()}


def one_line(text: str) -> str:
    """Return ``text`` without line breaks, control characters and invisible marks, which no label needs.

    >>> one_line("two\\nlines")
    'two lines'
    """
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def elided(text: str, longest: int) -> str:
    """Return ``text``, without its middle where it is long: names of a grid differ at their ends.

    >>> elided("an agent with a long label, span_bound=2", 30)
    'an agent with …l, span_bound=2'
    """
    if len(text) <= longest:
        return text
    head = longest // 2 - 1
    return f"{text[:head]}…{text[head + 1 - longest :]}"


def number(value: float | None) -> str:
    """Write a number with about four digits.

    >>> number(1234567.8), number(12.3456789), number(-0.00123), number(3.0), number(4.2e-9), number(None)
    ('1,234,568', '12.35', '−0.00123', '3', '4.2e−9', '–')
    """
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size != 0 and not 1e-4 <= size < 1e9:
        mantissa, _, exponent = f"{value:.3e}".partition("e")
        text = f"{_trimmed(mantissa)}e{int(exponent)}"
    elif size >= 1e3:
        text = f"{value:,.0f}"
    else:
        digits = 3 - (math.floor(math.log10(size)) if size else 0)
        text = _trimmed(f"{value:,.{digits}f}")
    return text.replace("-", "−")


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def interval(low: float | None, high: float | None) -> str:
    """Write an interval, or a dash where one run alone gives none.

    >>> interval(1.5, 2.0), interval(None, None)
    ('[1.5, 2]', '–')
    """
    ends = (number(low), number(high))
    return UNKNOWN if UNKNOWN in ends else f"[{ends[0]}, {ends[1]}]"


def plural(count: int, noun: str) -> str:
    """Write a count with its noun.

    >>> plural(1, "run"), plural(5000, "run")
    ('1 run', '5,000 runs')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def runs_per_agent(counts: Iterable[int]) -> str:
    """Write how many runs stand behind each mean.

    >>> runs_per_agent([10, 10]), runs_per_agent([8, 10]), runs_per_agent([1])
    ('10 runs per agent', '8 to 10 runs per agent', '1 run per agent')
    """
    least, most = min(found := list(counts)), max(found)
    return f"{plural(most, 'run')} per agent" if least == most else f"{least:,} to {plural(most, 'run')} per agent"
