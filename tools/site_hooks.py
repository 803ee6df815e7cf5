"""What MkDocs does not do by itself: pages from notebooks and sources, patterns in the navigation, public names by their homes."""

from __future__ import annotations

import base64
import json
import posixpath
import re
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import spanrl

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from griffe_docstrings import without_emphasis  # noqa: E402

NOTEBOOKS = ROOT / "examples" / "notebooks"
PAGES_OF = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
_LINK = re.compile(r"\]\(((?!https?:|#)[^)\s#]+)(#[^)\s]*)?\)")
_PUBLIC = re.compile(r"(?m)^::: spanrl\.(\w+)$")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages that are made: the changelog, notebooks, and every source file that a page links to."""
    for name, uri in PAGES_OF.items():
        if uri != "index.md":
            text = (ROOT / name).read_text(encoding="utf-8")
            files.append(File.generated(config, uri, content=_moved(text, ".", posixpath.dirname(uri))))
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        text, pictures = notebook_page(json.loads(path.read_text(encoding="utf-8")), path.stem)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, png in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=png))
    linked = {
        target
        for page in files.documentation_pages()
        for target in _targets(page.content_string, posixpath.dirname(page.src_uri))
        if target not in PAGES_OF
    }
    for target in sorted(linked):
        files.append(File.generated(config, f"source/{target}.md", content=_source_page(target)))
    config.nav = _expanded(config.nav, [file.src_uri for file in files.documentation_pages()])
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn links to sources into links to their pages, and public names into the modules where they stand."""
    folder = posixpath.dirname(page.file.src_uri)
    if page.file.src_uri not in PAGES_OF.values() or page.file.src_uri == "index.md":
        markdown = _moved(markdown, posixpath.join("docs", folder), folder)
    return _PUBLIC.sub(_public, without_emphasis(markdown))


def notebook_page(notebook: dict[str, Any], stem: str) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its pictures by name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![{_title(source)}]({name})")
            else:
                text = "".join(output.get("text", data.get("text/plain", ""))).rstrip()
                parts.append(f"```text\n{text}\n```")
    parts.append(f"*The notebook: `examples/notebooks/{stem}.ipynb`; continuous integration executes it.*")
    return "\n\n".join(parts) + "\n", pictures


def _title(source: str) -> str:
    return re.sub(r"[\[\]\n]", " ", source.strip().splitlines()[-1])


def _source_page(target: str) -> str:
    text = (ROOT / target).read_text(encoding="utf-8").rstrip()
    language = {".py": "python", ".toml": "toml", ".json": "json"}.get(Path(target).suffix, "text")
    return f"---\nsearch: {{exclude: true}}\n---\n# {target}\n\n````{language}\n{text}\n````\n"


def _targets(text: str, folder: str) -> set[str]:
    """Return the files outside docs/ that a page links to, by their paths in the repository."""
    wanted = set()
    for found in _LINK.finditer(text):
        path = posixpath.normpath(posixpath.join("docs", folder, found[1]))
        if not path.startswith(("docs/", "..")) and (ROOT / path).is_file():
            wanted.add(path)
    return wanted


def _moved(text: str, base: str, folder: str) -> str:
    """Rewrite links that are relative to ``base`` in the repository for a page in ``folder`` of the site."""

    def moved(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(base, found[1]))
        if path.startswith("docs/"):
            uri = path.removeprefix("docs/")
        elif path in PAGES_OF:
            uri = PAGES_OF[path]
        elif (ROOT / path).is_file():
            uri = f"source/{path}.md"
        else:
            return found[0]
        return f"]({posixpath.relpath(uri, folder or '.')}{found[2] or ''})"

    return _LINK.sub(moved, text)


def _public(found: re.Match[str]) -> str:
    """Return the directive of a public name: where it stands, under the name by which it is known."""
    name = found[1]
    thing = getattr(spanrl, name)
    home = thing.__name__ if name in spanrl._MODULES else f"{thing.__module__}.{name}"
    options = f"    options:\n      heading: {name}\n      toc_label: {name}\n"
    return f"::: {home}\n{options}"


def _expanded(nav: list[Any], uris: list[str]) -> list[Any]:
    """Return the navigation with every pattern replaced by the pages that match it; source pages are in none."""
    out: list[Any] = []
    for entry in nav:
        if isinstance(entry, str) and "*" in entry:
            out += _matches(entry, uris)
        elif isinstance(entry, dict):
            ((title, value),) = entry.items()
            if isinstance(value, str) and "*" in value:
                value = _matches(value, uris)
            out.append({title: _expanded(value, uris) if isinstance(value, list) else value})
        else:
            out.append(entry)
    return out


def _matches(pattern: str, uris: list[str]) -> list[str]:
    return sorted(uri for uri in uris if fnmatch(uri, pattern))
