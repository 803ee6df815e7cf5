"""A claim as the pages show it: its verdict in words and as a sign, what the verdict rests on, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spanrl.paper.claims.base import WHY
from spanrl.paper.page.parts import numbers_table
from spanrl.report.table import Table

MARKS = {"holds": "✓", "fails": "✗", "vacuous": "∅", "not-run": "–"}


@dataclass(frozen=True)
class ShownClaim:
    """A claim and its entry in claims.json."""

    id: str
    entry: Mapping[str, Any]

    @property
    def is_surprise(self) -> bool:
        """Whether it was checked and is not what it should be."""
        return self.entry["verdict"] not in ("not-run", self.entry["expected"])

    @property
    def sign(self) -> str:
        """The verdict as one letter."""
        return MARKS.get(str(self.entry["verdict"]), "?")

    @property
    def verdict(self) -> str:
        """The verdict, and the expected one where that is another.

        >>> ShownClaim("X", {"verdict": "fails", "expected": "fails"}).verdict
        'fails'
        >>> ShownClaim("X", {"verdict": "fails", "expected": "holds"}).verdict
        'fails, expected: holds'
        """
        told = str(self.entry["verdict"]).replace("-", " ")
        return f"{told}, expected: {self.entry['expected']}" if self.is_surprise else told

    @property
    def look(self) -> str:
        """The class of its badge: surprise, holds, neutral (what is known not to hold) or not-run."""
        known = {"holds": "holds", "not-run": "not-run"}
        return "surprise" if self.is_surprise else known.get(str(self.entry["verdict"]), "neutral")

    @property
    def broke(self) -> tuple[str, str]:
        """What a verdict other than ``holds`` rests on: a heading and the words of the checker; ("", "") where there are none."""
        numbers, verdict = self.entry["numbers"], str(self.entry["verdict"])
        told = [str(numbers[key]) for key in WHY if key in numbers]
        if verdict == "holds" or not told:
            return "", ""
        vacuous = "No conclusion:" if "no conclusion" in numbers else "What never occurred:"
        words = {"fails": "What failed:", "vacuous": vacuous, "not-run": "Why not:"}
        return words.get(verdict, "Why:"), "; ".join(told)

    @property
    def has_numbers(self) -> bool:
        """Whether it was checked, and its checker gave numbers."""
        return self.entry["verdict"] != "not-run" and bool(self.entry["numbers"])

    @property
    def numbers(self) -> Table:
        """All numbers of the checker."""
        return numbers_table(
            self.entry["numbers"], f"Numbers behind {self.id}, at scale {self.entry.get('scale', '')}."
        )
