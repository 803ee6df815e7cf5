"""Figures: what is drawn, in whose axes, and that nothing is shown or saved."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from spanrl.axes import new_axes, new_figure, tidy
from spanrl.errors import MissingExtraError
from spanrl.report.figures import plot_gain_curve, plot_learning


def stand_in() -> Any:
    """A run as figures see it; the real one stands in a layer that they do not know."""
    t = np.array([1, 10, 100, 1000])

    def plot(ax: Any = None) -> Any:
        ax.plot(t, np.sqrt(t))
        ax.set_title("scal on two-state")
        return ax

    return SimpleNamespace(t=t, span=np.array([0.0, 1.0, 2.0, 1.5]), plot=plot)


# --- axes -----------------------------------------------------------------------------------------------------------


def test_new_axes_stand_alone_in_their_figure() -> None:
    ax = new_axes()
    assert isinstance(ax.figure, Figure)
    assert ax.figure.axes == [ax]
    assert ax.figure is not new_axes().figure


def test_a_figure_grows_with_its_panels() -> None:
    assert new_figure().axes == []
    assert new_figure(columns=2).get_figwidth() > 1.5 * new_figure().get_figwidth()
    assert new_figure(columns=2).get_figheight() == new_figure().get_figheight()


@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
def test_tidy_takes_every_scale(scale: str) -> None:
    ax = new_axes()
    ax.set_xscale(scale)
    ax.set_yscale(scale)
    tidy(ax)
    assert not ax.spines["top"].get_visible()
    assert ax.spines["bottom"].get_visible()
    ax.figure.savefig(io.BytesIO())


def test_large_numbers_are_multiples_of_a_power_of_ten() -> None:
    ax = new_axes()
    ax.plot([0, 1e6], [0, 1])
    tidy(ax)
    ax.figure.savefig(io.BytesIO())
    assert "10^{6}" in ax.xaxis.get_offset_text().get_text()
    assert ax.yaxis.get_offset_text().get_text() == ""


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(
        MissingExtraError,
        match=r"matplotlib is not installed. Run: pip install matplotlib .*pip install '\.\[report\]'",
    ):
        new_axes()


def test_no_display_is_touched() -> None:
    code = "import sys; from spanrl.axes import new_axes; new_axes(); print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"


# --- figures --------------------------------------------------------------------------------------------------------


def test_gain_curve_marks_what_is_given() -> None:
    ax = plot_gain_curve([0, 1, 2], [0.0, 0.5, 0.5], gain=0.5, span=1.0)
    assert [text.get_text() for text in ax.texts] == ["g* = 0.5", "sp(h*) = 1"]
    assert len(ax.lines) == 3
    assert len(plot_gain_curve([0, 1, 2], [0.0, 0.5, 0.5]).lines) == 1


def test_gain_curve_draws_on_given_axes() -> None:
    ax = new_axes()
    assert plot_gain_curve([0, 1], [0.0, 0.5], ax=ax) is ax


def test_learning_has_two_panels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = stand_in()
    figure = plot_learning(run)
    assert isinstance(figure, Figure)
    left, right = figure.axes
    assert figure.get_suptitle() == "scal on two-state"
    assert left.get_title() == "", "said once, above both"
    assert (left.get_xscale(), right.get_xscale()) == ("linear", "log")
    assert right.get_ylabel() == "span of the optimistic bias"
    assert right.get_ylim()[0] == 0.0
    np.testing.assert_array_equal(right.lines[0].get_xdata(), run.t)
    np.testing.assert_array_equal(right.lines[0].get_ydata(), run.span)
    assert list(tmp_path.iterdir()) == []
    figure.savefig(io.BytesIO())
