"""What a slip is: a sentence of the paper, what is right, and numbers that show the difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spanrl.errors import SpanrlError
from spanrl.paper.claims.base import Number, plain

Finding = tuple[dict[str, Number], bool]
"""The numbers by what they are, and whether they show the slip."""


@dataclass(frozen=True)
class Slip:
    """A slip of the text, measured: ``numbers`` are JSON values (∞ is the text "inf"), ``shown`` is decided by them."""

    id: str
    title: str
    place: str
    printed: str
    found: str
    numbers: Mapping[str, Number]
    shown: bool


@dataclass(frozen=True)
class Statement:
    """A slip before its numbers are known: what the text prints, what is right and what we do, and how to measure it."""

    id: str
    title: str
    place: str
    printed: str
    found: str
    measure: Callable[[], Finding] = field(repr=False)

    def measured(self) -> Slip:
        """Measure; an error that the software raises on purpose shows nothing, and its message takes the place of the numbers."""
        try:
            numbers, shown = self.measure()
        except SpanrlError as error:
            numbers, shown = {"error": f"{type(error).__name__}: {error}"}, False
        as_json = {name: plain(value) for name, value in numbers.items()}
        return Slip(self.id, self.title, self.place, self.printed, self.found, as_json, bool(shown))
