"""Figures as part of the page: an svg of matplotlib without what only a file needs, in colours that follow the page.

On a dark page lightness is turned round and hue stays, so that what stands out on white stands out there: the larger the bound c, the
further the colour of SCAL is from the paper, on both.
"""

from __future__ import annotations

import re
from functools import cache
from xml.etree import ElementTree

import numpy as np

from spanrl.report.templates import Markup

_SVG, _LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
_COLOUR = re.compile(r"(fill|stroke): (#[0-9a-f]{6})")
_REFERENCE = re.compile(r"url\(#([^)]+)\)|^#(.+)$")
_DIGITS = re.compile(r"(\.\d\d)\d+")
_POINTS = 10.0
"""Size of the letters in the figures."""

# Björn Ottosson, "A perceptual color space for image processing" (2020): linear sRGB → cone responses → (L, a, b)
_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
_GREY = 0.03
"""Below this chroma a colour is a grey."""


def inlined(svg: bytes, name: str) -> Markup:
    """Return the ``<svg>`` to stand in a page; ``name`` sets its ids apart from those of other figures. It is as wide as it has room."""
    root = ElementTree.fromstring(svg)
    used = {found for part in root.iter() for value in part.attrib.values() for found in _referred(value)}
    _strip(root, name, used)
    width = float(root.get("viewBox", "0 0 0 0").split()[2])
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("style", f"{_both('fill: #000000')}; --natural: {width / _POINTS:.4g}em")
    root.set("aria-hidden", "true")
    ElementTree.register_namespace("", _SVG)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _strip(part: ElementTree.Element, name: str, used: set[str]) -> None:
    """Drop metadata, styles for the whole document and ids that nothing refers to; shorten numbers, and give every colour its dark twin."""
    for child in list(part):
        if child.tag.endswith(("}metadata", "}style")):
            part.remove(child)
        else:
            _strip(child, name, used)
    part.text = part.tail = None
    if _LINK in part.attrib:
        part.set("href", part.attrib.pop(_LINK))
    if part.attrib.get("id") not in used:
        part.attrib.pop("id", None)
    for key, value in part.attrib.items():
        if key == "d":
            part.set(key, _DIGITS.sub(r"\1", " ".join(value.split())))
        elif key == "id":
            part.set(key, f"{name}-{value}")
        elif key == "style":
            part.set(key, _both(value))
        else:
            part.set(key, _REFERENCE.sub(lambda found: found[0].replace("#", f"#{name}-"), value))


def _referred(value: str) -> list[str]:
    return [one or other for one, other in _REFERENCE.findall(value)]


def _both(style: str) -> str:
    """Write every colour twice: as it is, for browsers that know one scheme only, and by the scheme of the page."""
    return _COLOUR.sub(lambda found: f"{found[0]}; {found[1]}: light-dark({found[2]}, {dark(found[2])})", style)


@cache
def dark(colour: str) -> str:
    """Return the colour on a dark page that stands for ``colour`` on a white one.

    >>> dark("#ffffff"), dark("#000000"), dark("#43318f")
    ('#161616', '#f5f5f5', '#a89fff')
    """
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    light, a, b = _LAB @ np.cbrt(_CONES @ linear)
    is_grey = np.hypot(a, b) < _GREY
    turned = [0.97 - 0.77 * light**1.5 if is_grey else 0.95 - 0.5 * light, a, b]
    linear = np.clip(np.linalg.solve(_CONES, np.linalg.solve(_LAB, turned) ** 3), 0, 1)
    rgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in rgb)
