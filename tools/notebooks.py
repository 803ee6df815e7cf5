"""Execute notebooks and keep what they print and draw: ``python tools/notebooks.py FILE…``.

Nothing that changes from one time to the next is kept: no execution counts, times or ids of processes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbclient
import nbformat

LARGEST = 200_000  # characters of a notebook with its figures


def execute(path: Path) -> None:
    """Execute one notebook in place; refuse errors, warnings and large outputs."""
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    for i, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{i}", {}
        if cell.cell_type == "code":
            cell.execution_count = None
            for output in cell.outputs:
                if output.output_type == "stream" and output.name == "stderr":
                    raise SystemExit(f"{path}: cell {i} must say nothing on standard error; it said {output.text!r}.")
                output.pop("execution_count", None)
                output["metadata"] = {} if output.output_type == "display_data" else output.get("metadata", {})
                if output.output_type == "execute_result":
                    output["execution_count"] = None
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    text = nbformat.writes(notebook) + "\n"
    if len(text) > LARGEST:
        raise SystemExit(f"{path}: {len(text):,} characters with its outputs, at most {LARGEST:,} are wanted.")
    path.write_text(text, encoding="utf-8")
    print(f"{path}: {len(notebook.cells)} cells, {len(text):,} characters")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        execute(Path(name))
