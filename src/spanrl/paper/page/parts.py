"""Small parts that every section of the pages is made of: figures, tables of numbers, and what stands where something is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from spanrl.paper.page.notation import formula, shown
from spanrl.report.table import Table
from spanrl.report.templates import Markup, render
from spanrl.report.text import UNKNOWN, one_line, plural

T = TypeVar("T")

ALL = "all"


@dataclass(frozen=True)
class Missing:
    """What stands where there is nothing to show: why, and the claim whose run fills it (``ALL``: a run of everything)."""

    reason: str
    claim: str = ""


@dataclass(frozen=True)
class Drawn:
    """A figure of the page: its name among the files, its caption, its panels, and what their lines mean: label → sample."""

    name: str
    title: str
    caption: str
    panels: Sequence[Markup]
    keys: Mapping[str, Markup] = field(default_factory=dict)


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


def part(name: str, **values: Any) -> Markup:
    """Return a template of the page, filled."""
    return render(f"paper/page/{name}.html.j2", formula=formula, plural=plural, **values)


def figures(drawn: Figures, *names: str) -> list[Drawn | Missing]:
    """Return the figures of these names that there are, and a sentence for those that could not be drawn."""
    found = [drawn[name] for name in names if name in drawn]
    return [one if isinstance(one, Drawn) else Missing(one.told) for one in found]


def numbers_table(numbers: Mapping[str, Any], caption: str, kind: str = "") -> Table:
    """Return the numbers of a claim or slip as a table of names and values."""
    rows = [(formula(name), _value(value)) for name, value in numbers.items()]
    return Table(("Number", "Value"), rows, formula(caption), f"plain numbers {kind}".rstrip())


def _value(value: Any) -> str:
    """Return a value; a line may end between the numbers of a list, but not within one."""
    if isinstance(value, list | tuple):
        return Markup(", ").join(map(_value, value)) or UNKNOWN
    words = formula(shown(value))
    return words if isinstance(value, str) else Markup('<span class="one">{}</span>').format(words)


def guarded(what: str, make: Callable[[], T]) -> T | Missing:
    """Return what ``make`` makes, or a sentence where it fails: no broken part may hide the verdicts."""
    try:
        return make()
    except Exception as error:
        return Missing(f"{what}: this part could not be made ({one_line(f'{type(error).__name__}: {error}')}).")
