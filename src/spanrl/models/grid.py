"""A grid of whole numbers: states [n, k] and their cells, numbered with the last coordinate fastest."""

from __future__ import annotations

from math import prod
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import ModelError
from spanrl.models.checks import Array
from spanrl.models.labels import CoordinateNames, shown

MOST_CELLS = 2**28
"""A table with a number of four bytes for each cell takes a gibibyte."""


class Grid(NamedTuple):
    """The values of each coordinate, and whether there is one alone."""

    low: list[int]
    length: list[int]
    is_flat: bool

    @classmethod
    def of(cls, shape: Any) -> Grid:
        """Read a shape."""
        is_flat = isinstance(shape, (Integral, range))
        try:
            sides = [side if isinstance(side, range) else range(int(side)) for side in ([shape] if is_flat else shape)]
        except (TypeError, ValueError):
            sides = []
        if not sides or not all(len(side) > 0 and side.step == 1 for side in sides):
            raise ModelError(
                f"MDP.from_grid: shape must be numbers ≥ 1 or ranges of step 1, one per coordinate; got {shown(shape)}. "
                "Write (4, range(-2, 3)), say."
            )
        grid = cls([side.start for side in sides], [len(side) for side in sides], is_flat)
        if grid.n_cells > MOST_CELLS:
            raise ModelError(
                f"MDP.from_grid: a grid must have at most 2²⁸ cells; got {grid.n_cells:,}. Use from_function for the few that are reached."
            )
        return grid

    @property
    def n_cells(self) -> int:
        """The number of all cells."""
        return prod(self.length)

    def states(self, cells: Array) -> NDArray[np.int64]:
        """Return the coordinates [n, k] of cells."""
        states: NDArray[np.int64] = np.stack(np.unravel_index(cells, self.length), axis=1) + np.array(self.low)
        return states

    def cells(self, states: Array) -> NDArray[np.int64]:
        """Return the cells of states [n, k], −1 for those outside."""
        inside = np.ones(len(states), dtype=bool)
        cells = np.zeros(len(states), dtype=np.int64)
        for column, low, length in zip(states.T, self.low, self.length, strict=True):
            at = column.astype(np.int64) - low
            inside &= (at >= 0) & (at < length)
            cells *= length
            cells += at
        cells[~inside] = -1
        return cells

    def name(self, cell: int) -> Any:
        """Return the name of a cell."""
        row = self.states(np.array([cell]))[0].tolist()
        return row[0] if self.is_flat else tuple(row)

    def names(self, cells: Array) -> CoordinateNames:
        """Return the names of states, as narrow as they can be kept."""
        ends = [*self.low, *(low + length for low, length in zip(self.low, self.length, strict=True))]
        narrow = np.result_type(*(np.min_scalar_type(-abs(end) - 1) for end in ends))
        states = self.states(cells).astype(narrow)
        return CoordinateNames(states[:, 0] if self.is_flat else states)

    def find(self, state: Any) -> int:
        """Return the cell of a state that is given by name."""
        row = (state,) if self.is_flat else state
        fits = isinstance(row, tuple) and len(row) == len(self.low) and all(isinstance(c, Integral) for c in row)
        cell = int(self.cells(np.array([row]))[0]) if fits else -1
        if cell < 0:
            raise ModelError(f"MDP.from_grid: start must be states of the grid; got {shown(state)}.")
        return cell
