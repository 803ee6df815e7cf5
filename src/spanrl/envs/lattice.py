"""Worlds on a grid: cells, moves, walls, and cells that lead back to the start.

A map is a list of rows of letters: ``#`` wall, ``S`` start, ``G`` goal, ``H`` hole; any other letter is a free cell.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from spanrl.envs.env import Env, Outcome

Cell = tuple[int, int]

ACTIONS = ("left", "down", "right", "up")
"""In the order of a turn: the neighbours of an action in it are its sides."""

_STEPS = ((0, -1), (1, 0), (0, 1), (-1, 0))


def cells_of(rows: Sequence[str]) -> dict[Cell, str]:
    """Return the letter of every cell (row, column) that is no wall, row by row."""
    return {(i, j): letter for i, row in enumerate(rows) for j, letter in enumerate(row) if letter != "#"}


def moved(cells: Collection[Cell], cell: Cell, action: int) -> Cell:
    """Return the cell that a step leads to: the same one where there is no cell to step on.

    >>> moved({(0, 0), (0, 1)}, (0, 0), ACTIONS.index("right")), moved({(0, 0), (0, 1)}, (0, 0), ACTIONS.index("up"))
    ((0, 1), (0, 0))
    """
    down, right = _STEPS[action]
    there = (cell[0] + down, cell[1] + right)
    return there if there in cells else cell


def grid_world(rows: Sequence[str], *, straight: float, side: float, stay: float = 0.0) -> Env:
    """Return the world of a map: a move goes ``straight``, to either ``side`` or nowhere with these probabilities.

    Walls, and the edge of the map, leave the walker where he is. A goal pays 1 and leads to the start, whatever is played; a hole pays 0
    and does the same; everything else pays 0. States are named by their (row, column).
    """
    cells = cells_of(rows)
    index = {cell: s for s, cell in enumerate(cells)}
    start = next(index[cell] for cell, letter in cells.items() if letter == "S")
    outcomes = {}
    for cell, letter in cells.items():
        for a in range(len(ACTIONS)):
            if letter in "GH":
                outcomes[index[cell], a] = [Outcome(1.0, start, float(letter == "G"))]
                continue
            turns = ((straight, a), (side, (a + 1) % 4), (side, (a - 1) % 4))
            walks = [Outcome(p, index[moved(cells, cell, b)], 0.0) for p, b in turns]
            outcomes[index[cell], a] = [*walks, Outcome(stay, index[cell], 0.0)]
    return Env.from_outcomes(outcomes, start=start, state_names=list(cells), action_names=ACTIONS)
