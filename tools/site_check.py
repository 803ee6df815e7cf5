"""Find what a page would fetch from elsewhere: ``python tools/site_check.py build/site`` ends with 1 where there is something.

Links that a reader may follow are fine; scripts, styles, fonts, pictures and frames must be files of the site itself.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_TAG = re.compile(r"<(script|link|img|iframe|source|video|audio|embed|object|use|image)\b([^>]*)>", re.IGNORECASE)
_ADDRESS = re.compile(r"""\b(?:src|href|srcset|data|xlink:href)=["']?\s*((?:https?:)?//[^"'\s>]+)""", re.IGNORECASE)
_STYLE = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


def fetched(text: str, *, is_style: bool = False) -> list[str]:
    """Return the addresses elsewhere that a page or a style sheet fetches.

    >>> fetched('<a href="https://example.org">x</a> <img src="a.png"> <script src="//example.org/a.js"></script>')
    ['//example.org/a.js']
    >>> fetched("@font-face{src:url(https://example.org/f.woff2)}", is_style=True)
    ['https://example.org/f.woff2']
    """
    styles = [text] if is_style else re.findall(r"(?s)<style.*?</style>|style=\"[^\"]*\"", text)
    out = [] if is_style else [url for _, inside in _TAG.findall(text) for url in _ADDRESS.findall(inside)]
    return out + [url for style in styles for url in _STYLE.findall(style)]


def main(site: Path) -> int:
    pages = sorted(site.rglob("*.html"))
    if not pages:
        raise SystemExit(f"site: {site} must hold pages; there is none.")
    wrong = 0
    for path in [*pages, *sorted(site.rglob("*.css"))]:
        for url in fetched(path.read_text(encoding="utf-8"), is_style=path.suffix == ".css"):
            print(f"site: {path.relative_to(site)} fetches {url}; keep a copy in docs/assets instead.", file=sys.stderr)
            wrong = 1
    if not wrong:
        print(f"{len(pages)} pages; nothing is fetched from elsewhere")
    return wrong


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
