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

CELLS = {
    "plain": "import spanrl\nrun = spanrl.learn('two-state', 'ucrl', horizon=1000, seed=0, progress=True)\nrun.plot()",
    "magic": "%matplotlib inline\nrun.plot()",
    "many": "import matplotlib\nmatplotlib.rcParams['figure.max_open_warning'] = 1\nfor _ in range(3):\n    run.plot()",
    "given": "axes = run.plot()\naxes.set_title('given')\n_ = run.plot(axes)",
    "policy": "solution = spanrl.solve(spanrl.make('inventory').mdp)\nsolution.policy.plot()",
    "model": "spanrl.make('inventory').mdp",
    "solution": "solution",
    "run": "run",
    "seen": "run.model",
    "explain": "solution.explain(0)",
    "bars": "_ = spanrl.analyse(spanrl.make('riverswim').mdp, diameter=True, progress=True)\n"
    "_ = spanrl.solve(spanrl.make('riverswim').mdp, progress=True)",
}
"""One kernel for all of them; the first has no magic before it."""


@pytest.fixture(scope="module")
def outputs():
    """Return the outputs of each cell by its name."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS.values()])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return dict(zip(CELLS, (cell.outputs for cell in notebook.cells), strict=True))


def pictures(cell):
    return [output for output in cell if "image/png" in output.get("data", {})]


def printed(cell):
    return "".join(output.text for output in cell if output.output_type == "stream")


@pytest.mark.parametrize("cell", ["plain", "magic", "policy"])
def test_a_figure_appears_once_and_the_axes_come_back(outputs, cell):
    assert len(pictures(outputs[cell])) == 1
    returned = [output.data["text/plain"] for output in outputs[cell] if output.output_type == "execute_result"]
    assert len(returned) == 1
    assert returned[0].startswith("<Axes: ")


@pytest.mark.parametrize("cell", ["plain", "bars"])
def test_bars_are_drawn_without_a_warning(outputs, cell):
    assert {"plain": "ucrl on two-state", "bars": "diameter"}[cell] in printed(outputs[cell])
    assert "arning" not in printed(outputs[cell])


def test_many_figures_are_no_warning(outputs):
    assert len(pictures(outputs["many"])) == 3
    assert printed(outputs["many"]) == ""


def test_given_axes_are_drawn_on_once(outputs):
    assert len(pictures(outputs["given"])) == 1


@pytest.mark.parametrize(
    ("cell", "title"),
    [
        ("model", "MDP: 7 states"),
        ("solution", "Solution: converged"),
        ("run", "Run: ucrl on two-state"),
        ("seen", "LearnedModel: 1,000 steps"),
        ("explain", "State 0 of bias 0; best order 4"),
    ],
)
def test_results_are_shown_as_html(outputs, cell, title):
    (output,) = outputs[cell]
    assert output.data["text/html"].startswith(f"<div><strong>{title}")


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
