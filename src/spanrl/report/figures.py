"""Figures, by matplotlib: each function draws on ``ax``, returns it, and neither shows nor saves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanrl.errors import MissingExtraError


def new_axes() -> Any:
    """Return fresh axes without touching a display."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("figures: matplotlib is not installed. Run: pip install 'spanrl[report]'.") from None
    return Figure(figsize=(5.6, 3.6), dpi=160, layout="constrained").add_subplot()


def plot_gain_curve(
    span_bounds: ArrayLike, gains: ArrayLike, *, gain: float | None = None, span: float | None = None, ax: Any = None
) -> Any:
    """Draw g⁺(c), the price of a bound on the span; mark the optimal gain and sp(h*) where given."""
    ax = ax if ax is not None else new_axes()
    ax.plot(np.asarray(span_bounds), np.asarray(gains), color="#1f5fa8", linewidth=2)
    if gain is not None:
        ax.axhline(gain, color="#888888", linewidth=1, linestyle="--")
        ax.annotate(f"g* = {gain:.4g}", (0.01, gain), xycoords=("axes fraction", "data"), va="bottom", color="#555555")
    if span is not None:
        ax.axvline(span, color="#c44536", linewidth=1, linestyle=":")
        ax.annotate(
            f"sp(h*) = {span:.4g}",
            (span, 0.03),
            xycoords=("data", "axes fraction"),
            ha="right",
            rotation=90,
            color="#c44536",
        )
    ax.set_xlabel("span bound c")
    ax.set_ylabel("certified gain g⁺(c)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e5e5e5", linewidth=0.6)
    ax.set_axisbelow(True)
    return ax
