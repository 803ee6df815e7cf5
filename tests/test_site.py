"""What the site does beyond MkDocs, and what notebooks hold; continuous integration builds the one and executes the others."""

from __future__ import annotations

import doctest
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("mkdocs", reason="mkdocs is not installed (pip install '.[docs]')")

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def tool(name: str) -> ModuleType:
    """Return a script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def hooks():
    return tool("site_hooks")


@pytest.mark.parametrize("name", ["griffe_docstrings", "site_check"])
def test_examples_of_the_tools(name):
    failed, attempted = doctest.testmod(tool(name))
    assert failed == 0
    assert attempted > 0


def test_docstrings_become_markdown():
    text = "Do it::\n\n    a map\n\nSee :func:`spanrl.solve`.\n\n>>> for x in y:\n...     z\n1\n\nMore.\n"
    assert tool("griffe_docstrings").markdown(text) == (
        "Do it:\n\n    a map\n\nSee `spanrl.solve`.\n\n```pycon\n>>> for x in y:\n...     z\n1\n```\n\nMore.\n"
    )


def test_links_out_of_the_docs_lead_to_pages_of_the_site(hooks):
    text = "[a](../src/spanrl/agents/scal.py) [b](../README.md) [c](solver.md#x) [d](https://x.org) [e](../no.py)"
    assert hooks._targets(text, "") == {"src/spanrl/agents/scal.py", "README.md"}
    assert hooks._moved(text, "docs", "") == (
        "[a](source/src/spanrl/agents/scal.py.md) [b](index.md) [c](solver.md#x) [d](https://x.org) [e](../no.py)"
    )
    assert hooks._moved("[a](../../src/spanrl/agents/scal.py)", "docs/algorithms", "algorithms") == (
        "[a](../source/src/spanrl/agents/scal.py.md)"
    )


def test_patterns_in_the_navigation(hooks):
    nav = [{"Home": "index.md"}, {"All": ["family.md", "algorithms/*.md"]}, {"Books": "notebooks/*.md"}]
    pages = ["index.md", "algorithms/b.md", "algorithms/a.md", "notebooks/q.md", "family.md"]
    assert hooks._expanded(nav, pages) == [
        {"Home": "index.md"},
        {"All": ["family.md", "algorithms/a.md", "algorithms/b.md"]},
        {"Books": ["notebooks/q.md"]},
    ]


def test_public_names_stand_where_they_are_made(hooks):
    text = hooks._PUBLIC.sub(hooks._public, "::: spanrl.MDP\n\n::: spanrl.reference")
    assert "::: spanrl.models.mdp.MDP\n    options:\n      heading: MDP\n" in text
    assert "::: spanrl.agents.reference\n" in text


def test_a_notebook_becomes_a_page(hooks):
    picture = {"output_type": "display_data", "data": {"image/png": "UE5H", "text/plain": "<Figure>"}}
    printed = {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]}
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "Text."]},
        {"cell_type": "code", "source": "draw()", "outputs": [printed, picture]},
    ]
    text, pictures = hooks.notebook_page({"cells": cells}, "n")
    assert pictures == {"n-1.png": b"PNG"}
    assert text.startswith("# Title\nText.\n\n```python\ndraw()\n```\n\n```text\none\ntwo\n```\n\n![draw()](n-1.png)\n")


def test_outputs_are_compared_by_their_text():
    notebooks = tool("notebooks")
    cells = [{"cell_type": "code", "outputs": [{"output_type": "stream", "text": "a\n"}]}, {"cell_type": "markdown"}]
    figure = {"output_type": "display_data", "data": {"image/png": "x", "text/plain": "<Figure>"}}
    assert notebooks.printed(cells) == ["a\n"]
    assert notebooks.printed([{"cell_type": "code", "outputs": [figure]}]) == ["<figure>"]


def test_notebooks_are_small_and_without_errors():
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        assert path.stat().st_size < 100_000
        outputs = [one for cell in json.loads(path.read_text("utf-8"))["cells"] for one in cell.get("outputs", [])]
        assert outputs, "make notebooks"
        assert {one["output_type"] for one in outputs} <= {"stream", "display_data", "execute_result"}
