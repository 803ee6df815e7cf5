"""Write the page of the reproduction, the same in Markdown, and the figures for print."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from spanrl.axes import image, key_image, panel_images
from spanrl.paper.page.figures import Maker, makers
from spanrl.paper.page.html import page
from spanrl.paper.page.inline import inlined
from spanrl.paper.page.making import spent
from spanrl.paper.page.markdown import markdown
from spanrl.paper.page.parts import Drawn, Undrawn
from spanrl.report.write import put

if TYPE_CHECKING:
    from spanrl.paper.reproduce import Reproduction


def write_pages(found: Reproduction) -> dict[str, str]:
    """Write DIR/report.html, DIR/reproduction.md and DIR/figures/<name>.png and .pdf, whatever the verdicts are and whatever is missing.

    Returns name → reason for the figures that could not be drawn; the pages say so in their place.
    """
    start = perf_counter()
    drawn: dict[str, Drawn | Undrawn] = {}
    for name, make in makers(found.experiments).items():
        one, files = _drawn(name, make)
        for kind, content in files.items():
            put(found.dir / "figures" / f"{name}.{kind}", content)
        if one is not None:
            drawn[name] = one
    time = spent(found.run, found.experiments, perf_counter() - start if drawn else 0.0)
    put(found.dir / "report.html", page(found, drawn, time).encode())
    put(found.dir / "reproduction.md", markdown(found, drawn, time).encode())
    return {name: one.reason for name, one in drawn.items() if isinstance(one, Undrawn)}


def _drawn(name: str, make: Maker) -> tuple[Drawn | Undrawn | None, dict[str, bytes]]:
    """Draw a figure for the page, and its files for print; where that fails (numbers of a broken formula), the page says why."""
    try:
        picture = make()
        if picture is None:
            return None, {}
        files = {}
        for kind in ("png", "pdf"):
            files[kind] = image(picture.figure, kind)
            # everything is in its place now; to find it again takes as long as to draw
            picture.figure.set_layout_engine("none")
        panels = [inlined(svg, f"{name}-{i}") for i, svg in enumerate(panel_images(picture.figure))]
        keys = {one.get_label(): inlined(key_image(one), f"{name}-key-{i}") for i, one in enumerate(picture.keys)}
    except Exception as error:
        return Undrawn(name, f"{type(error).__name__}: {error}"), {}
    return Drawn(name, picture.title, picture.caption, panels, keys), files
