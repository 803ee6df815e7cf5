"""Write the report on an experiment: figures for print, and one page for the screen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from spanrl.axes import image
from spanrl.errors import RunFileError
from spanrl.experiments.plotting import SCALES
from spanrl.options import one_of
from spanrl.report.chapters import chapters
from spanrl.report.page import page
from spanrl.report.plots import figures
from spanrl.report.text import display_names
from spanrl.tables import write_bytes

if TYPE_CHECKING:
    from spanrl.experiments.results import Results


def write_report(results: Results, *, scale: str = "linear") -> Path:
    """Write DIR/report.html and DIR/figures/<quantity>--<environment>.png and .pdf; return the path of the page.

    ``scale`` is that of the axes of what is summed over time, "linear" or "log"; on the page it can be changed.

    Every file is written under another name and renamed: whoever looks meanwhile sees the old one or the new one, whole.
    """
    one_of("report", "scale", scale, SCALES)
    found, names = chapters(results, scale), display_names(results.agents)
    for chapter in found:
        for name, figure in figures(chapter, names, results.horizon):
            for kind in ("png", "pdf"):
                put(results.dir / "figures" / f"{name}.{kind}", image(figure, kind))
    target = results.dir / "report.html"
    put(target, page(results, found).encode())
    return target


def put(path: Path, data: bytes) -> None:
    """Write a file so that whoever looks meanwhile sees the old one or the new one, whole."""
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(temporary, data)
        os.replace(temporary, path)
    except OSError as error:
        raise RunFileError(
            f"report: cannot write {path} ({error.strerror or error}). Make room or another folder."
        ) from None
    finally:
        temporary.unlink(missing_ok=True)
