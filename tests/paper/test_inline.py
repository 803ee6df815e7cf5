"""Figures inside the page: what is left of matplotlib's file, whose ids, and which colours on a dark page."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from page_by_hand import EVIL, SVG

from spanrl.axes import image, key_image, new_figure, panel_images
from spanrl.paper.page.inline import dark, inlined
from spanrl.paper.page.looks import colour

PAPER = "#13161b"
"""Of the dark page."""


def luminance(code: str) -> float:
    """WCAG 2."""
    parts = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(code: str) -> float:
    return (luminance(code) + 0.05) / (luminance(PAPER) + 0.05)


def test_nothing_is_left_that_concerns_the_whole_document() -> None:
    text = inlined(SVG, "here")
    assert text.startswith("<svg ")
    for gone in ("matplotlib", "<style", "line_1", "xlink", "<?xml", "width="):
        assert gone not in text.replace('rect width="300"', "").replace("stroke-width=", "")
    assert 'd="M 0.12 1 L 2 3"' in text
    ids = set(re.findall(r'id="([^"]+)"', text))
    assert ids == {"here-m1", "here-p1"} == set(re.findall(r"#(here-[a-z0-9-]+)", text))


def test_every_colour_has_a_twin_behind_it_for_browsers_that_know_it() -> None:
    text = inlined(SVG, "here")
    assert f"fill: #222222; fill: light-dark(#222222, {dark('#222222')}); stroke: #ffffff; stroke: light-dark(" in text
    root = ElementTree.fromstring(text)
    assert root.attrib["style"].startswith(
        "fill: #000000; fill: light-dark(#000000, "
    )  # letters have no colour of their own


@pytest.mark.parametrize("c", [0.125, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 25.0, 100.0, float("inf")])
def test_lines_stand_out_on_a_dark_page(c: float) -> None:
    assert contrast(dark(colour(c))) >= 3, dark(colour(c))


def test_the_larger_c_the_further_from_the_paper_on_a_dark_page_too() -> None:
    found = [luminance(dark(colour(c))) for c in (0.125, 2.0, 5.0, 15.0, 25.0, 100.0, float("inf"))]
    assert all(first < second for first, second in pairwise(found))


def test_a_grid_stays_faint_and_white_becomes_paper() -> None:
    assert contrast(dark("#ffffff")) < 1.1 < contrast(dark("#e5e5e5")) < 2
    assert contrast(dark("#000000")) > 12


def test_panels_have_one_size_and_come_without_the_legend() -> None:
    figure = new_figure(2)
    for i, ax in enumerate(figure.subplots(1, 2)):
        (line,) = ax.plot([0, 1], [0, 10 ** (5 * i)], color="#123456", label=EVIL)
        ax.set_title(EVIL)
    figure.legend(handles=[line], loc="outside lower center")
    whole = image(figure, "svg")
    panels = panel_images(figure)
    sizes = {ElementTree.fromstring(panel).attrib["viewBox"] for panel in panels}
    assert len(sizes) == 1
    assert [panel.count(b"#123456") for panel in (*panels, whole)] == [1, 1, 3]
    assert all(part.get_visible() for part in (*figure.axes, *figure.legends))
    key = key_image(line)
    assert key.count(b"#123456") == 1
    for i, svg in enumerate((*panels, key)):
        assert "<img" not in inlined(svg, f"x-{i}")
