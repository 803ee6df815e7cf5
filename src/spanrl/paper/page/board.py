"""The board of Knight Quest as a drawing: cells, landmarks, the way of a game, the knight and the dragon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources
from itertools import pairwise

from spanrl.envs.knight_quest import DRAGON_CELLS, MINE, PRINCESS, SIZE, TOWN

Cell = tuple[int, int]

CELL = 100
_GAP, _KEEP_RIGHT = 3, 10
_MIDDLE = complex(59, 56)
_LANDMARKS = {PRINCESS: "princess", TOWN: "town", MINE: "mine"}
_GOODS = "".join(
    f'<use class="knight-has knight-has-{good}" href="#knight-{picture}" x="9" y="5" width="21" height="21"/>'
    for good, picture in (("gold", "coin"), ("key", "key"))
)
_NAMES = {PRINCESS: "princess", TOWN: "town", MINE: "gold mine"}


def board(knight: Cell, dragon: Cell, legs: Sequence[Sequence[Cell]]) -> str:
    """Return the ``<svg>`` of the board with the two at their places and the legs of a way, each a list of cells."""
    size = SIZE * CELL
    cells = "\n".join(_cell((row, col)) for row in range(SIZE) for col in range(SIZE))
    ways = "\n".join(_way(number, list(_steps(leg))) for number, leg in enumerate(legs, 1))
    return (
        f'<svg class="knight-board" role="img" aria-labelledby="knight-title" viewBox="-2 -2 {size + 4} {size + 4}">\n'
        f'<title id="knight-title">{_title()}</title>\n'
        '<defs><pattern id="knight-hatch" width="9" height="9" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<path class="knight-stripe" d="M0 0V9"/></pattern>\n{_symbols()}</defs>\n{cells}\n{ways}\n'
        f"{_piece('dragon', dragon)}\n{_piece('hero', knight, _GOODS)}\n</svg>"
    )


def middle(cell: Cell) -> complex:
    """Return where a piece stands in a cell: x right, y down."""
    row, col = cell
    return complex(col, row) * CELL + _MIDDLE


def icon(name: str) -> str:
    """Return a small picture for a legend; the board must be on the page."""
    return f'<svg class="knight-icon" viewBox="0 0 48 48" aria-hidden="true"><use href="#knight-{name}" width="48" height="48"/></svg>'


def _title() -> str:
    """Say where things are."""
    places = ", ".join(f"the {name} at row {row + 1}, column {col + 1}" for (row, col), name in _NAMES.items())
    lairs = ", ".join(f"row {row + 1}, column {col + 1}" for row, col in DRAGON_CELLS)
    return f"A board of {SIZE} by {SIZE} cells: {places}. The dragon moves among the hatched cells: {lairs}."


def _symbols() -> str:
    return resources.files("spanrl.paper.page").joinpath("knight.svg").read_text("utf-8")


def _cell(cell: Cell) -> str:
    x, y = cell[1] * CELL, cell[0] * CELL
    side = CELL - 2 * _GAP
    place = f'x="{x + _GAP}" y="{y + _GAP}" width="{side}" height="{side}" rx="9"'
    kind = "knight-lair" if cell in DRAGON_CELLS else "knight-cell"
    parts = [f'<rect class="{kind}" {place}/>']
    if cell in DRAGON_CELLS:
        parts.append(f'<rect fill="url(#knight-hatch)" {place}/>')
    if cell in _LANDMARKS:
        parts.append(f'<use href="#knight-{_LANDMARKS[cell]}" x="{x + 7}" y="{y + 5}" width="38" height="38"/>')
        parts.append(f'<text class="knight-place" x="{x + 10}" y="{y + CELL - 9}">{_NAMES[cell]}</text>')
    return "".join(parts)


def _steps(leg: Sequence[Cell]) -> Iterator[tuple[complex, complex]]:
    """Yield (from, to) of every step that changes the cell, moved a little to the right, so that the way back lies beside."""
    for here, there in pairwise(leg):
        if here != there:
            start, end = middle(here), middle(there)
            aside = _KEEP_RIGHT * 1j * (end - start) / abs(end - start)
            yield start + aside, end + aside


def _way(number: int, steps: list[tuple[complex, complex]]) -> str:
    """Draw a leg: a line, an arrow head on each step, and its number on the second one."""
    line = "M" + "L".join(f"{p.real:g} {p.imag:g}" for p in _corners(steps))
    marked = min(1, len(steps) - 1)
    heads = "".join(_head(*step) for k, step in enumerate(steps) if k != marked)
    badge = sum(steps[marked]) / 2
    return (
        f'<g class="knight-way"><path class="knight-trail" d="{line}"/><path class="knight-heads" d="{heads}"/>'
        f'<circle cx="{badge.real:g}" cy="{badge.imag:g}" r="10"/>'
        f'<text x="{badge.real:g}" y="{badge.imag:g}" dy=".36em">{number}</text></g>'
    )


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
    left, right = (tip + ahead * turn for turn in (-10 + 6j, -10 - 6j))
    return f"M{left.real:g} {left.imag:g}L{tip.real:g} {tip.imag:g}L{right.real:g} {right.imag:g}"


def _piece(name: str, cell: Cell, more: str = "") -> str:
    place = middle(cell)
    return (
        f'<g id="knight-piece-{name}" class="knight-piece" transform="translate({place.real:g} {place.imag:g})">'
        f'<use href="#knight-{name}" x="-26" y="-26" width="52" height="52"/>{more}</g>'
    )
