"""The lines of the tables, and ratios measured within one run: what is compared takes turns (``spanrl.bench.interleaved``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from spanrl.bench import REPEATS, Timing, interleaved

__all__ = ["REPEATS", "Row", "Timing", "interleaved", "ratio_row", "value_row"]


@dataclass(frozen=True)
class Row:
    """One line of a table.

    ``target`` is an upper limit on ``value``, or a lower one with ``at_least`` (None: only shown). ``least`` is the smallest of
    the repeats, in the unit of ``value``. A row that could not be measured has no value and says why in ``note``. Where
    ``data["readme"]`` is set, the row is shown in docs/speed.md under that label.
    """

    group: str
    case: str
    value: float | None
    unit: str
    target: float | None = None
    at_least: bool = False
    least: float | None = None
    note: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target was met; a case that could not be measured has not met its target."""
        if self.target is None:
            return None
        if self.value is None:
            return False
        return self.value >= self.target if self.at_least else self.value <= self.target

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"met": self.met}


def value_row(
    group: str,
    case: str,
    values: Sequence[float],
    unit: str,
    *,
    target: float | None = None,
    at_least: bool = False,
    note: str = "",
    data: Mapping[str, Any] | None = None,
) -> Row:
    """Return the row of the median of ``values``, one a turn, and the smallest of them."""
    return Row(group, case, median(values), unit, target, at_least, min(values), note, data or {})


def ratio_row(
    group: str,
    case: str,
    over: Timing,
    under: Timing,
    *,
    target: float | None = None,
    at_least: bool = False,
    note: str = "",
    data: Mapping[str, Any] | None = None,
) -> Row:
    """Return the row ``over / under``: the median of the ratios of single turns, and the smallest of them."""
    ratios = [a / b for a, b in zip(over.seconds, under.seconds, strict=True)]
    return value_row(group, case, ratios, "×", target=target, at_least=at_least, note=note, data=data)
