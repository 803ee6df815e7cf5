"""Measure ratios within one run: the candidates take turns, so that what else the machine does hits them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

REPEATS = 5


@dataclass(frozen=True)
class Timing:
    """The seconds of one candidate, one number a turn."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def least(self) -> float:
        return min(self.seconds)


@dataclass(frozen=True)
class Row:
    """One line of a table.

    ``target`` is an upper limit on ``value``, or a lower one with ``at_least`` (None: only shown). ``least`` is the smallest of
    the repeats, in the unit of ``value``. A row that could not be measured has no value and says why in ``note``.
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


def interleaved(
    candidates: Mapping[str, Callable[[], float | None]], repeats: int = REPEATS, warm_up: int = 1
) -> dict[str, Timing]:
    """Run the candidates in turns and return their seconds; one that returns a number has timed itself.

    The first ``warm_up`` rounds are not counted.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(warm_up + repeats):
        for name, run in candidates.items():
            start = perf_counter()
            own = run()
            taken = perf_counter() - start if own is None else own
            if turn >= warm_up:
                seconds[name].append(taken)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}


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
    return Row(group, case, median(ratios), "×", target, at_least, min(ratios), note, data or {})
