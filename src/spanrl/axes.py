"""Figures of one look, by matplotlib, of which this module alone knows: nothing is shown or saved.

Figures for files know of no display. Axes made for the screen (``run.plot()``) belong to pyplot where pyplot shows them: in a
notebook, or where it was imported and draws into windows; ``plt.show()`` and the end of a notebook's cell then find them.
"""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import missing_extra

BLUE, RED, GREY, DARK_GREY = "#1f5fa8", "#c44536", "#888888", "#555555"
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#b5539c", "#3a9bdc", "#b27d00", "#444444", "#7a5cc4")
"""Colours of many curves, told apart by colour-blind readers too; where there are more curves, the dashes change."""

DASHES = ((), (6, 2), (1.5, 1.5), (6, 2, 1.5, 2), (10, 3), (10, 3, 1.5, 3), (3, 3))
"""Lengths of dash and gap in line widths: solid first."""

_FILES_ONLY = {"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"}  # backends of matplotlib without a window
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_STAMPS = {
    "png": "Software",
    "pdf": "CreationDate",
    "svg": "Date",
}  # what matplotlib writes into a file unless told not to


def new_figure(columns: int = 1, *, shown: bool = False) -> Any:
    """Return an empty figure with room for ``columns`` panels side by side; one that pyplot looks after where it is to be ``shown``."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra("figures", "matplotlib", "report") from None
    size = (5.6 if columns == 1 else 4.8 * columns, 3.6)
    if shown:
        from matplotlib import pyplot

        with rc_context(
            {"figure.max_open_warning": 0}
        ):  # many runs may be drawn in one cell, at whose end they are closed
            figure: Any = pyplot.figure(figsize=size, dpi=160, layout="constrained")
    else:
        figure = Figure(figsize=size, dpi=160, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.09, h_pad=0.06)  # inches; the default touches the edge of the page
    return figure


def image(figure: Any, kind: str, box: Any = None) -> bytes:
    """Return ``figure`` as the bytes of a file of ``kind`` png, pdf or svg (text as paths), the same for the same figure.

    ``box`` is a part of it in inches, "tight" all that is drawn; a part has no background.
    """
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with warnings.catch_warnings(), rc_context({"svg.hashsalt": "spanrl", "svg.fonttype": "path"}):
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from font"
        )  # drawn as a box, and the name stands in the report
        options = {"metadata": {_STAMPS[kind]: None}, "transparent": box is not None}
        figure.savefig(buffer, format=kind, bbox_inches=box, pad_inches=0.02, **options)
    return buffer.getvalue()


def panel_images(figure: Any) -> list[bytes]:
    """Return the panels of a ``figure`` that was drawn before, each as an svg of its own of the same size, without the legend below."""
    from matplotlib.transforms import Bbox

    parts, out = [*figure.axes, *figure.legends], []
    boxes = [ax.get_tightbbox().transformed(figure.dpi_scale_trans.inverted()).padded(0.03) for ax in figure.axes]
    low, high, width = min(box.y0 for box in boxes), max(box.y1 for box in boxes), max(box.width for box in boxes)
    for ax, box in zip(figure.axes, boxes, strict=True):
        for part in parts:
            part.set_visible(part is ax)
        out.append(image(figure, "svg", Bbox([[box.x1 - width, low], [box.x1, high]])))
    for part in parts:
        part.set_visible(True)
    return out


def key_image(handle: Any) -> bytes:
    """Return the entry of a legend for ``handle``, a line or bars with a label, as an svg."""
    figure = new_figure()
    figure.set_layout_engine("none")
    figure.legend(handles=[handle], loc="center", frameon=False, handlelength=3.2, borderpad=0)
    return image(figure, "svg", "tight")


def new_axes() -> Any:
    """Return the axes of a fresh figure with one panel, for the screen."""
    return new_figure(shown=_is_notebook() or _has_windows()).add_subplot()


def _is_notebook() -> bool:
    """Tell whether a kernel of Jupyter runs us; nothing is imported to find out."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _has_windows() -> bool:
    """Tell whether the caller has imported pyplot and it draws into windows, not into files alone."""
    if "matplotlib.pyplot" not in sys.modules:
        return False
    from matplotlib import get_backend

    return get_backend().lower() not in _FILES_ONLY


def literal(text: str) -> str:
    """Return ``text`` so that matplotlib takes it literally: no formula between dollars, no hiding behind an underscore."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def draw_mean(ax: Any, t: Any, mean: Any, low: Any, high: Any, place: int, *, width: float = 1.6) -> Any:
    """Draw a line and, where its ends are known, a band, in the colour and dashes of the curve number ``place``; return the line."""
    colour, dashes = PALETTE[place % len(PALETTE)], DASHES[place // len(PALETTE) % len(DASHES)]
    if np.isfinite(low).any():
        ax.fill_between(t, low, high, color=colour, alpha=0.15, linewidth=0)
    return ax.plot(t, mean, color=colour, linestyle=(0, dashes) if dashes else "solid", linewidth=width)[0]


def set_scales(ax: Any, x: str, y: str) -> None:
    """Set the scales, "linear" or "log", of axes on which lines stand; one without a positive value stays linear."""
    lines = ax.get_lines()
    ax.set_xscale(x if any((line.get_xdata() > 0).any() for line in lines) else "linear")
    ax.set_yscale(y if any((line.get_ydata() > 0).any() for line in lines) else "linear")


def tidy(ax: Any) -> None:
    """Give ``ax`` the common look: two spines, a pale grid behind the lines, large numbers as multiples of a power of ten."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e5e5e5", linewidth=0.6)
    ax.set_axisbelow(True)
    for axis, scale in ((ax.xaxis, ax.get_xscale()), (ax.yaxis, ax.get_yscale())):
        if scale == "linear":
            ax.ticklabel_format(axis=axis.axis_name, style="sci", scilimits=(-4, 5), useMathText=True)
        else:
            _write_powers(axis)


def _write_powers(axis: Any) -> None:
    """Write the numbers of a logarithmic axis as 10⁶ in plain letters; matplotlib's formulas cost more time than the rest of a figure."""
    from matplotlib.ticker import LogFormatterSciNotation

    class Powers(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return power_of_ten(x) if super().__call__(x, pos) else ""

    axis.set_major_formatter(Powers())
    axis.set_minor_formatter(Powers(labelOnlyBase=False))


def discrete_colours(n: int) -> NDArray[np.float64]:
    """Return n colours [n, 3] for cells: those of the palette, or, where there are more, in order from dark blue to yellow."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    if n <= len(PALETTE):
        return np.array([to_rgb(colour) for colour in PALETTE[:n]])
    colours: NDArray[np.float64] = colormaps["cividis"](np.linspace(0.0, 1.0, n))[:, :3]
    return colours


def legend_of_colours(ax: Any, colours: Mapping[str, Any]) -> None:
    """Put a legend of coloured squares, and of what else has a label, to the right of ``ax``."""
    from matplotlib.patches import Patch

    drawn, labels = ax.get_legend_handles_labels()
    handles = [*(Patch(facecolor=colour) for colour in colours.values()), *drawn]
    texts = [text.replace("$", r"\$") for text in (*colours, *labels)]
    ax.legend(handles, texts, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, handlelength=1.0)


def whole_ticks(axis: Any, values: Sequence[int] | NDArray[np.int64] | None) -> None:
    """Put ticks at whole numbers: where the i-th place stands for ``values[i]``, write that number there."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    if values is not None:
        axis.set_major_formatter(FuncFormatter(lambda i, _: str(values[int(i)]) if 0 <= i < len(values) else ""))


def power_of_ten(value: float) -> str:
    """Write a number as a multiple of a power of ten.

    >>> power_of_ten(1e6), power_of_ten(2.5e7), power_of_ten(3e-5)
    ('10⁶', '2.5·10⁷', '3·10⁻⁵')
    """
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    times = f"{float(mantissa):g}·" if float(mantissa) != 1 else ""
    return f"{times}10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
