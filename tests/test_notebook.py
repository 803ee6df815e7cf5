"""A notebook is executed: figures appear in it, bars do not complain, and many figures in one cell are no warning."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest

from spanrl import axes

nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed (pip install '.[dev]')")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (pip install '.[dev]')")

CELLS = (
    "%matplotlib inline\nimport spanrl",
    "run = spanrl.learn('two-state', 'ucrl', horizon=1000, seed=0, progress=True)\nrun.plot()",
    "import matplotlib\nmatplotlib.rcParams['figure.max_open_warning'] = 1\nfor _ in range(3):\n    run.plot()",
    "axes = run.plot()\naxes.set_title('given')\n_ = run.plot(axes)",
)


@pytest.fixture(scope="module")
def outputs():
    """Return the outputs of each cell."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells]


def pictures(cell):
    return [output for output in cell if "image/png" in output.get("data", {})]


def printed(cell):
    return "".join(output.text for output in cell if output.output_type == "stream")


def test_a_figure_appears(outputs):
    assert len(pictures(outputs[1])) == 1


def test_the_bar_is_drawn_without_a_warning(outputs):
    assert "ucrl on two-state" in printed(outputs[1])
    assert "arning" not in printed(outputs[1])


def test_many_figures_are_no_warning(outputs):
    assert len(pictures(outputs[2])) == 3
    assert printed(outputs[2]) == ""


def test_given_axes_are_drawn_on_once(outputs):
    assert len(pictures(outputs[3])) == 1


@pytest.mark.parametrize(("backend", "shown"), [("agg", False), ("module://some_windows", True)])
def test_elsewhere_pyplot_is_asked_where_it_has_windows(monkeypatch, backend, shown):
    """A script that only writes files keeps its figures to itself: pyplot would hold on to every one."""
    made = []
    pyplot = ModuleType("matplotlib.pyplot")
    pyplot.figure = lambda **options: made.append(options) or mpl.figure.Figure(**options)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    monkeypatch.setattr(mpl, "pyplot", pyplot, raising=False)
    monkeypatch.setattr(mpl, "get_backend", lambda: backend)
    axes.new_axes().plot(np.arange(3))
    assert bool(made) is shown


def test_a_notebook_is_known_by_its_kernel(monkeypatch):
    assert not axes._is_notebook()
    for kernel, known in ((object(), True), (None, False)):
        shell = SimpleNamespace(kernel=kernel)
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert axes._is_notebook() is known
