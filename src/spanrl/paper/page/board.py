"""The board of Knight Quest as data for its drawing: cells, landmarks, the way of a game, the knight and the dragon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from spanrl.envs.knight_quest import DRAGON_CELLS, MINE, PRINCESS, SIZE, TOWN

Cell = tuple[int, int]

CELL = 100
_KEEP_RIGHT = 10
_MIDDLE = complex(59, 56)
_NAMES = {PRINCESS: "princess", TOWN: "town", MINE: "gold mine"}


class Square(NamedTuple):
    """A cell of the board: its corner, whether the dragon comes there, and the picture and name of the landmark in it."""

    x: int
    y: int
    is_lair: bool
    picture: str
    name: str


class Way(NamedTuple):
    """A leg: its line and the arrow heads on it as paths, and where its number stands, on the second step."""

    line: str
    heads: str
    x: str
    y: str


class Board(NamedTuple):
    """All that is drawn; places are written as in SVG."""

    size: int
    title: str
    squares: list[Square]
    ways: list[Way]
    knight: str
    dragon: str


def board(knight: Cell, dragon: Cell, legs: Sequence[Sequence[Cell]]) -> Board:
    """Return the board with the two at their places and the legs of a way, each a list of cells."""
    return Board(
        size=SIZE * CELL,
        title=_title(),
        squares=[_square((row, col)) for row in range(SIZE) for col in range(SIZE)],
        ways=[_way(list(_steps(leg))) for leg in legs],
        knight=_point(middle(knight)),
        dragon=_point(middle(dragon)),
    )


def middle(cell: Cell) -> complex:
    """Return where a piece stands in a cell: x right, y down."""
    row, col = cell
    return complex(col, row) * CELL + _MIDDLE


def _title() -> str:
    """Say where things are."""
    places = ", ".join(f"the {name} at row {row + 1}, column {col + 1}" for (row, col), name in _NAMES.items())
    lairs = ", ".join(f"row {row + 1}, column {col + 1}" for row, col in DRAGON_CELLS)
    return f"A board of {SIZE} by {SIZE} cells: {places}. The dragon moves among the hatched cells: {lairs}."


def _square(cell: Cell) -> Square:
    name = _NAMES.get(cell, "")
    return Square(cell[1] * CELL, cell[0] * CELL, cell in DRAGON_CELLS, name.removeprefix("gold "), name)


def _steps(leg: Sequence[Cell]) -> Iterator[tuple[complex, complex]]:
    """Yield (from, to) of every step that changes the cell, moved a little to the right, so that the way back lies beside."""
    for here, there in pairwise(leg):
        if here != there:
            start, end = middle(here), middle(there)
            aside = _KEEP_RIGHT * 1j * (end - start) / abs(end - start)
            yield start + aside, end + aside


def _way(steps: list[tuple[complex, complex]]) -> Way:
    """Draw a leg: a line, and an arrow head on each step but the one that has its number."""
    marked = min(1, len(steps) - 1)
    number = sum(steps[marked]) / 2
    heads = "".join(_head(*step) for k, step in enumerate(steps) if k != marked)
    return Way(_path(_corners(steps)), heads, f"{number.real:g}", f"{number.imag:g}")


def _corners(steps: list[tuple[complex, complex]]) -> Iterator[complex]:
    """Yield the points of the line: where the way turns, the lines beside the two steps meet in one corner."""
    yield steps[0][0]
    for (start, end), (onward, next_end) in pairwise(steps):
        along, turn = (end - start) / abs(end - start), next_end - onward
        if (turn * along.conjugate()).imag:
            yield end + along * ((onward - end) * along.conjugate()).real
        else:
            yield from (end, onward)
    yield steps[-1][1]


def _head(start: complex, end: complex) -> str:
    ahead = (end - start) / abs(end - start)
    tip = (start + end) / 2 + 5 * ahead
    return _path((tip + ahead * (-10 + 6j), tip, tip + ahead * (-10 - 6j)))


def _path(points: Iterable[complex]) -> str:
    return "M" + "L".join(map(_point, points))


def _point(place: complex) -> str:
    return f"{place.real:g} {place.imag:g}"
