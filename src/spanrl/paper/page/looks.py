"""The look of the reproduction's figures: what a colour, a marker and a band mean is the same in all of them.

UCRL is black and dashed. SCAL runs from light to dark as its bound c grows, so that the order shows in grey print too, and each bound of
the paper has a marker of its own, set off in time from the others, so that curves on top of each other are still told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.axes import new_figure, tidy
from spanrl.experiments.statistics import Estimate, mean_interval
from spanrl.paper.curves import Curves

INK, SHADE = "#222222", "#eeeeee"
WIDTH, HEIGHT, ROW = 8.4, 3.5, 0.23
"""Inches: the width of two panels, their height, and what a row of the legend adds to it. One panel is little more than half as wide:
letters must not shrink on a phone."""

_RAMP = {
    0.1: "#f7d354", 1: "#f2b134", 2: "#ee9a2b", 5: "#e0672f", 10: "#c43f5c", 15: "#9c3587", 20: "#6f3097", 25: "#43318f", 100: "#232c63",
}  # fmt: skip
_MARKERS = {2: "o", 5: "s", 10: "^", 15: "D", 20: "v", 25: "P", 100: "X"}
_MARKS = 7


@dataclass(frozen=True)
class Picture:
    """A figure with its file name (without an ending), title, caption, and the lines or bars that its legend names."""

    name: str
    title: str
    caption: str
    figure: Any
    keys: Sequence[Any] = ()


def colour(span_bound: float) -> str:
    """Return the colour of an agent by its bound: that of UCRL for ∞, else from light to dark, evenly between the bounds of the ramp.

    >>> colour(2), colour(float("inf"))
    ('#ee9a2b', '#222222')
    """
    if span_bound == inf:
        return INK
    ends = np.array([[int(code[i : i + 2], 16) for i in (1, 3, 5)] for code in _RAMP.values()])
    at = log(max(span_bound, min(_RAMP)))
    mixed = [round(float(np.interp(at, np.log(list(_RAMP)), ends[:, i]))) for i in range(3)]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def panels(columns: int, legend_rows: int = 0) -> tuple[Any, list[Any]]:
    """Return a figure and its panels side by side, with room below for a legend."""
    figure = new_figure(columns)
    figure.set_size_inches(WIDTH if columns > 1 else 0.58 * WIDTH, HEIGHT + ROW * legend_rows)
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def finished(ax: Any, x: str, y: str) -> None:
    """Name the axes of a panel and give it the common look."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    tidy(ax)
    if ax.get_yscale() == "linear" and 1e4 <= ax.get_ylim()[1] < 1e5:  # beyond, a power of ten stands above the axis
        ax.yaxis.set_major_formatter("{x:,.0f}")


def draw(ax: Any, group: Curves, value: str, kept: NDArray[np.int64]) -> Any:
    """Draw the mean of ``value`` of one agent at the times ``kept`` with its 95 % band; return the line."""
    t, found = group.t[kept], Estimate(*(part[kept] for part in mean_interval(getattr(group, value))))
    is_ucrl = group.span_bound == inf
    if np.isfinite(found.low).any():
        ax.fill_between(t, found.low, found.high, color=colour(group.span_bound), alpha=0.12, linewidth=0)
    (line,) = ax.plot(
        t,
        found.mean,
        color=colour(group.span_bound),
        linestyle=(0, (5, 2)) if is_ucrl else "solid",
        linewidth=1.9 if is_ucrl else 1.5,
        zorder=2.5 if is_ucrl else 2,
        label=group.name,
    )
    if not is_ucrl:
        _mark(line, group.span_bound, ax.get_xscale() == "log")
    return line


def _mark(line: Any, span_bound: float, is_log: bool) -> None:
    """Put a few markers on a line, evenly over the axis, elsewhere for every bound."""
    known = list(_MARKERS)
    offset = (known.index(int(span_bound)) if span_bound in known else 0) / len(known)
    t = np.log(line.get_xdata()) if is_log else line.get_xdata()
    wanted = t[0] + (np.arange(_MARKS) + 0.25 + 0.75 * offset) / _MARKS * (t[-1] - t[0])
    line.set_marker(_MARKERS.get(int(span_bound), "o"))
    line.set_markevery(np.unique(np.abs(t[:, None] - wanted).argmin(axis=0)).tolist())
    line.set_markersize(5.5)
    line.set_markeredgecolor("white")
    line.set_markeredgewidth(0.5)


def legend(figure: Any, handles: Sequence[Any], columns: int = 4) -> None:
    """Put the legend below the panels, to be read row by row."""
    columns = min(columns, len(handles))
    ordered = [handle for first in range(columns) for handle in handles[first::columns]]  # matplotlib fills columns
    figure.legend(handles=ordered, loc="outside lower center", ncols=columns, frameon=False, handlelength=3.2)


def positive_floor(ax: Any, values: Sequence[NDArray[np.float64]]) -> None:
    """Let a logarithmic axis begin at the least positive value: noise takes a regret below 0, where there is no logarithm."""
    found = np.concatenate(values)
    if (found > 0).any():
        ax.set_ylim(bottom=0.7 * found[found > 0].min())


def evenly(t: NDArray[np.int64], most: int = 400) -> NDArray[np.int64]:
    """Return indices of at most ``most`` of the times, evenly spread on a linear axis as far as they go, first and last among them."""
    return np.unique(np.searchsorted(t, np.linspace(t[0], t[-1], most)))
