"""Curves that lie on each other in a chart: one hides the others, and the reader has to be told.

The program of the page does the same for what is switched on, on the axis that was chosen (``coinciding`` in page.js).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spanrl.report.chapters import Curve

WITHIN = 0.004
"""Of the height of a chart: curves that are nowhere further apart look like one, for this is less than the width of a line."""


def coinciding(curves: Mapping[str, Curve]) -> list[list[str]]:
    """Return the groups, of two names or more, of curves that look like one on a linear axis that begins at 0.

    A curve belongs to the first group whose first curve it coincides with.
    """
    ends = [end for curve in curves.values() for end in _ends(curve)]
    room = WITHIN * (max(ends, default=0.0) - min(ends, default=0.0))
    groups: list[list[str]] = []
    for name, curve in curves.items():
        near = (group for group in groups if _are_near(curves[group[0]], curve, room))
        group = next(near, None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return [group for group in groups if len(group) > 1]


def _ends(curve: Curve) -> list[float]:
    """Return the least and the largest value, and 0."""
    known = curve.mean[np.isfinite(curve.mean)]
    return [0.0, *([float(known.min()), float(known.max())] if known.size else [])]


def _are_near(first: Curve, second: Curve, room: float) -> bool:
    if not np.array_equal(first.t, second.t):
        return False
    return bool(np.allclose(first.mean, second.mean, rtol=0.0, atol=room, equal_nan=True))
