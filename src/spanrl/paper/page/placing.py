"""Find places for the labels of a drawing, so that none covers another, a shape or a line.

Labels are placed one after the other, each where it disturbs least: a plain search over a few dozen candidates around the
thing it belongs to. Widths are upper estimates, as of a wide font: the reader's own is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.paper.page.layouts import direction

FONT_SIZE = 15
_NARROW, _WIDE = frozenset(" ,.;:'|!()[]/ijlrtf1I"), frozenset("=~+−<>∞mwMW@%…")
_GAPS = (7, 11, 16, 22, 30)
_SPACE = 3


class Box(NamedTuple):
    """A rectangle: centre, width and height."""

    centre: complex
    width: float
    height: float

    @property
    def corners(self) -> tuple[complex, complex]:
        """The upper left and the lower right corner."""
        half = complex(self.width, self.height) / 2
        return self.centre - half, self.centre + half

    def overlap(self, other: Box) -> float:
        """Return the area that two rectangles share."""
        shared = [
            (a + b) / 2 - abs(apart)
            for a, b, apart in (
                (self.width, other.width, (self.centre - other.centre).real),
                (self.height, other.height, (self.centre - other.centre).imag),
            )
        ]
        return max(0.0, shared[0]) * max(0.0, shared[1])

    def holds(self, points: NDArray[np.complex128]) -> int:
        """Return how many of the points lie inside."""
        apart = points - self.centre
        return int(np.sum((np.abs(apart.real) < self.width / 2) & (np.abs(apart.imag) < self.height / 2)))

    def grown(self, by: float) -> Box:
        """Return the rectangle with a margin."""
        return Box(self.centre, self.width + 2 * by, self.height + 2 * by)


class Label(NamedTuple):
    """A text in its place."""

    text: str
    box: Box


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Return an upper estimate of the width of a text."""
    return size * sum(0.43 if letter in _NARROW else 0.98 if letter in _WIDE else 0.66 for letter in text)


@dataclass
class Board:
    """What has been drawn: points of shapes and lines, and labels; new labels keep clear of all of it."""

    ink: NDArray[np.complex128]
    labels: list[Label] = field(default_factory=list)

    def near(self, text: str, point: complex, away: complex) -> Label:
        """Place a label around a point, best on the side that faces ``away``."""
        angles = range(0, 360, 15)
        return self._best(text, ((point, direction(angle), _turned(direction(angle), away)) for angle in angles))

    def along(self, text: str, places: Iterable[tuple[complex, complex]]) -> Label:
        """Place a label beside a line, given as (point, tangent), the best points first."""
        sides = (
            (point, side * tangent * 1j, 0.15 * k) for k, (point, tangent) in enumerate(places) for side in (1, -1)
        )
        return self._best(text, sides)

    def _best(self, text: str, anchors: Iterable[tuple[complex, complex, float]]) -> Label:
        candidates = self._candidates(text, anchors)
        label = min(candidates, key=lambda one: one[0])[1]
        self.labels.append(label)
        return label

    def _candidates(
        self, text: str, anchors: Iterable[tuple[complex, complex, float]]
    ) -> Iterator[tuple[float, Label]]:
        width, height = text_width(text), FONT_SIZE * 1.2
        for point, side, dislike in anchors:
            reach = abs(side.real) * width / 2 + abs(side.imag) * height / 2
            for k, gap in enumerate(_GAPS):
                box = Box(point + side * (gap + reach), width, height)
                yield self._trouble(box) + dislike + 0.4 * k, Label(text, box)

    def _trouble(self, box: Box) -> float:
        wide = box.grown(_SPACE)
        return 10.0 * wide.holds(self.ink) + 100.0 * sum(wide.overlap(label.box) > 0 for label in self.labels)


def _turned(side: complex, away: complex) -> float:
    """Return 0 for a side that faces ``away``, 1 for its opposite, and a little for slanted ones."""
    facing = (side * away.conjugate()).real / (abs(away) or 1)
    return (1 - facing) / 2 + 0.3 * min(abs(side.real), abs(side.imag))
