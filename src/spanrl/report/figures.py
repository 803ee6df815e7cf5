"""Figures: what is drawn on ``ax`` comes back as Axes, a whole figure as Figure; nothing is shown or saved."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanrl.axes import BLUE, DARK_GREY, GREY, RED, new_axes, new_figure, set_scales, tidy


class Learning(Protocol):
    """What a figure of learning needs of a :class:`spanrl.learning.run.Run`."""

    @property
    def t(self) -> NDArray[np.int64]:
        """Return the measurement times."""

    @property
    def span(self) -> NDArray[np.float64]:
        """Return the span of the optimistic bias at these times."""

    def plot(self, ax: Any = None) -> Any:
        """Draw the regret."""


def plot_gain_curve(
    span_bounds: ArrayLike, gains: ArrayLike, *, gain: float | None = None, span: float | None = None, ax: Any = None
) -> Any:
    """Draw g⁺(c), the price of a bound on the span; mark the optimal gain and sp(h*) where given."""
    ax = ax if ax is not None else new_axes()
    ax.plot(np.asarray(span_bounds), np.asarray(gains), color=BLUE, linewidth=2)
    if gain is not None:
        ax.axhline(gain, color=GREY, linewidth=1, linestyle="--")
        ax.annotate(f"g* = {gain:.4g}", (0.01, gain), xycoords=("axes fraction", "data"), va="bottom", color=DARK_GREY)
    if span is not None:
        ax.axvline(span, color=RED, linewidth=1, linestyle=":")
        ax.annotate(
            f"sp(h*) = {span:.4g}",
            (span, 0.03),
            xycoords=("data", "axes fraction"),
            ha="right",
            rotation=90,
            color=RED,
        )
    ax.set_xlabel("span bound c")
    ax.set_ylabel("certified gain g⁺(c)")
    tidy(ax)
    return ax


def plot_learning(run: Learning, scale: str = "linear") -> Any:
    """Return a figure of a learning run: its regret, and beside it the span of the optimistic bias on a logarithmic time axis.

    ``scale`` is that of both axes of the regret, "linear" or "log".
    """
    figure = new_figure(columns=2)
    left, right = figure.subplots(1, 2)
    run.plot(left)
    set_scales(left, scale, scale)
    tidy(left)
    figure.suptitle(left.get_title(), fontsize=left.title.get_fontsize())
    left.set_title("")
    right.plot(run.t, run.span, color=RED, linewidth=2)
    right.set_xscale("log")
    right.set_ylim(bottom=0.0)
    right.margins(x=0.02)
    right.set_xlabel("step t")
    right.set_ylabel("span of the optimistic bias")
    tidy(right)
    return figure
