"""Execute notebooks and keep what they print and draw: ``python tools/notebooks.py [--check] FILE…``.

With ``--check`` nothing is kept; the exit code is 1 where one prints something else than before.

Nothing that changes from one time to the next is kept: no execution counts, times or ids of processes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat

LARGEST = 100_000  # characters of a notebook with its figures


def executed(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with its outputs; refuse errors, warnings and large outputs."""
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    for i, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{i}", {}
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [_tidy(path, i, output) for output in cell.outputs]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def _tidy(path: Path, i: int, output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    if output.output_type == "stream":
        if output.name == "stderr":
            raise SystemExit(f"{path}: cell {i} must say nothing on standard error; it said {output.text!r}.")
        return output
    output["metadata"] = {}
    if output.output_type == "execute_result":
        output["execution_count"] = None
    return output


def printed(cells: list[dict[str, Any]]) -> list[str]:
    """Return the text of every output; a figure counts as one, whatever its bytes are."""
    out = []
    for cell in cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            text = output.get("text", data.get("text/plain", ""))
            out.append("<figure>" if "image/png" in data else "".join(text))
    return out


def main(names: list[str], *, check: bool) -> int:
    wrong = 0
    for path in map(Path, names):
        notebook = executed(path)
        text = nbformat.writes(notebook) + "\n"
        if len(text) > LARGEST:
            raise SystemExit(f"{path}: {len(text):,} characters with its outputs, at most {LARGEST:,} are wanted.")
        if not check:
            path.write_text(text, encoding="utf-8")
        elif printed(notebook.cells) != printed(nbformat.read(path, as_version=4).cells):
            print(f"{path}: prints something else than before. Look at it after 'make notebooks'.", file=sys.stderr)
            wrong = 1
        print(f"{path}: {len(notebook.cells)} cells, {len(text):,} characters", flush=True)
    return wrong


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main([name for name in given if name != "--check"], check="--check" in given))
