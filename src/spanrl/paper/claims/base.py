"""What a claim is: a statement of the paper, and a checker that computes and can fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from spanrl.experiments.worker import one_line
from spanrl.paper.system import System

if TYPE_CHECKING:
    from spanrl.paper.curves import Experiment

Verdict = Literal["holds", "fails", "vacuous", "not-run"]
Number = float | int | bool | str | list[float]
Gaps = dict[str, float]

WHY = ("broken", "error", "never occurred", "no conclusion", "reason")
"""The names under which a checker says, among its numbers, what a verdict other than ``holds`` rests on."""

EXACT = 1e-9
"""Allowed excess in exact algebra: rounding of a few hundred double operations on numbers of order 10."""

LP_TOL = 1e-7
"""Allowed excess where a linear programme is the oracle: the feasibility tolerance of HiGHS."""


@dataclass(frozen=True)
class Scale:
    """How much to do: the number of random instances a statement is checked on."""

    name: str
    instances: int

    def pick(self, smoke: int, quick: int, paper: int) -> int:
        """Return the number meant for this scale: a horizon, or a number of runs."""
        return {"quick": quick, "paper": paper}.get(self.name, smoke)


SMOKE, QUICK, PAPER = Scale("smoke", 20), Scale("quick", 100), Scale("paper", 300)
SCALES = {scale.name: scale for scale in (SMOKE, QUICK, PAPER)}


@dataclass(frozen=True)
class CheckResult:
    """A verdict and the numbers behind it."""

    verdict: Verdict
    numbers: Mapping[str, Number]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it: numbers that are none (a broken formula gives them) become text."""
        return {"verdict": self.verdict, "numbers": {name: plain(value) for name, value in self.numbers.items()}}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> CheckResult:
        """Read what :meth:`to_json` wrote."""
        return cls(content["verdict"], content["numbers"])


def plain(value: Number) -> Number:
    """Return a value that JSON has: what is not finite becomes text."""
    if isinstance(value, list):
        return [plain(one) for one in value]  # type: ignore[misc]
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    return value


@dataclass(frozen=True)
class Claim:
    """A statement of the paper that software can check.

    A claim about an ``experiment`` also has a ``judge`` of what was measured elsewhere; its ``check`` measures on the spot.
    """

    id: str
    title: str
    place: str
    statement: str
    tolerance: str
    check: Callable[[System, Scale], CheckResult] = field(repr=False)
    experiment: str | None = None
    judge: Callable[[System, Experiment], CheckResult] | None = field(default=None, repr=False)

    def run(self, system: System, scale: Scale) -> CheckResult:
        """Check the claim; where its checker raises an error, nothing was found out: ``not-run``, with the message."""
        try:
            return self.check(system, scale)
        except Exception as error:
            return CheckResult("not-run", {"error": one_line(error)})


class Ledger:
    """Collects the requirements of a check: the worst excess of each inequality, and how often each case occurred."""

    def __init__(self) -> None:
        """Start empty."""
        self.numbers: dict[str, Number] = {}
        self.broken: set[str] = set()

    def within(self, name: str, excess: float, tol: float = EXACT) -> None:
        """Require ``excess`` ≤ ``tol``; keep the worst excess under ``name``. NaN is a failure."""
        excess = float(excess)
        key = f"worst excess, {name}"
        before = self.numbers.get(key, -math.inf)
        assert isinstance(before, float)
        if not excess <= before:
            self.numbers[key] = excess
        if not excess <= tol:
            self.broken.add(name)

    def equal(self, name: str, got: float, want: float, tol: float = EXACT) -> None:
        """Require |got − want| ≤ ``tol`` and keep what was got."""
        self.numbers[name] = float(got)
        if not abs(got - want) <= tol:
            self.broken.add(f"{name} should be {want:.9g}")

    def true(self, name: str, condition: object) -> None:
        """Require a condition."""
        if not condition:
            self.broken.add(name)

    def gaps(self, gaps: Gaps, tol: float = EXACT) -> None:
        """Require every excess of an instance function to be at most ``tol``."""
        for name, excess in gaps.items():
            self.within(name, excess, tol)

    def count(self, name: str, occurred: object = True) -> None:
        """Count a case; cases named in ``outcome(needs=…)`` must occur."""
        number = self.numbers.get(name, 0)
        assert isinstance(number, int)
        self.numbers[name] = number + bool(occurred)

    def note(self, name: str, value: Number) -> None:
        """Record a number that decides nothing."""
        self.numbers[name] = value

    def outcome(self, *, needs: tuple[str, ...] = ()) -> CheckResult:
        """Return the verdict: fails if a requirement broke, vacuous if a needed case never occurred, else holds."""
        if self.broken:
            return CheckResult("fails", self.numbers | {"broken": "; ".join(sorted(self.broken))})
        missing = [name for name in needs if not self.numbers.get(name)]
        if missing:
            return CheckResult("vacuous", self.numbers | {"never occurred": "; ".join(missing)})
        return CheckResult("holds", self.numbers)
