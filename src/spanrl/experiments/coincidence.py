"""Curves that lie on each other in a chart: one hides the others, and the reader has to be told.

The program of a report's page does the same for what is switched on, on the axis that was chosen (``coinciding`` in page.js).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Line(Protocol):
    """What a curve must have."""

    @property
    def t(self) -> NDArray[np.int64]:
        """Return the times."""

    @property
    def mean(self) -> NDArray[np.float64]:
        """Return the values that are drawn."""


WITHIN = 0.004
"""Of the height of a chart: curves that are nowhere further apart look like one, for this is less than the width of a line."""


def coinciding(curves: Mapping[str, Line], scale: str = "linear") -> list[list[str]]:
    """Return the groups, of two names or more, of curves that look like one on a linear axis that begins at 0, or on a logarithmic one.

    A curve belongs to the first group whose first curve it coincides with.
    """
    heights = {name: _heights(curve.mean, scale) for name, curve in curves.items()}
    known = np.concatenate([[] if scale == "log" else [0.0], *(y[np.isfinite(y)] for y in heights.values())])
    room = WITHIN * float(np.ptp(known)) if known.size else 0.0
    groups: list[list[str]] = []
    for name, y in heights.items():
        near = (group for group in groups if _are_near(curves[group[0]], curves[name], heights[group[0]], y, room))
        group = next(near, None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return [group for group in groups if len(group) > 1]


def _heights(mean: NDArray[Any], scale: str) -> NDArray[np.float64]:
    """Return where the points of a line stand on the axis; NaN for those that a logarithmic one leaves out."""
    if scale != "log":
        return mean.astype(np.float64)
    positive = mean > 0
    return np.where(positive, np.log10(np.where(positive, mean, 1.0)), np.nan)


def _are_near(first: Line, second: Line, y: NDArray[np.float64], z: NDArray[np.float64], room: float) -> bool:
    if not np.array_equal(first.t, second.t):
        return False
    return bool(np.allclose(y, z, rtol=0.0, atol=room, equal_nan=True))
