"""Write the page of the reproduction, the same in Markdown, and the figures for print."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from spanrl.axes import image
from spanrl.paper.curves import Experiment
from spanrl.paper.page.figures import Picture, pictures
from spanrl.paper.page.html import page
from spanrl.paper.page.making import spent
from spanrl.paper.page.markdown import markdown
from spanrl.paper.page.parts import Drawn
from spanrl.report.write import put

if TYPE_CHECKING:
    from spanrl.paper.reproduce import Reproduction


def write_pages(found: Reproduction) -> None:
    """Write DIR/report.html, DIR/reproduction.md and DIR/figures/<name>.png and .pdf, whatever the verdicts are and whatever is missing."""
    start = perf_counter()
    drawn = {picture.name: _draw(picture, found.dir / "figures") for picture in _pictures(found.experiments)}
    time = spent(found.run, found.experiments, perf_counter() - start)
    put(found.dir / "report.html", page(found, drawn, found.slips, time).encode())
    put(found.dir / "reproduction.md", markdown(found, drawn, found.slips, time).encode())


def _draw(picture: Picture, folder: Path) -> Drawn:
    """Write a figure for print; return it for the page."""
    for kind in ("png", "pdf"):
        put(folder / f"{picture.name}.{kind}", image(picture.figure, kind))
        picture.figure.set_layout_engine(
            "none"
        )  # everything is in its place now; to find it again takes as long as to draw
    return Drawn(picture.name, picture.title, picture.caption, image(picture.figure, "svg"))


def _pictures(experiments: Mapping[str, Experiment]) -> list[Picture]:
    """Draw the figures; where one cannot be drawn (numbers of a broken formula), those of each experiment by itself that can."""
    try:
        return pictures(experiments)
    except Exception:
        out = []
        for name, one in experiments.items():
            try:
                out += pictures({name: one})
            except Exception:
                continue
        return list({picture.name: picture for picture in out}.values())
