"""A reader of the report's page: what a test asks about."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

from spanrl.experiments.results import Results
from spanrl.report.chapters import chapters
from spanrl.report.page import page


class Reader(HTMLParser):
    """Collect tags, the text outside scripts and styles, table rows, and the content of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self._in: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._in:
            while self._in.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if "script" in self._in:
            self.scripts[-1] += data
        elif "style" not in self._in:
            self.words.append(data)
            if self.rows and ("th" in self._in or "td" in self._in):
                self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).replace("\u00a0", " ").split())

    @property
    def data(self) -> dict[str, Any]:
        return dict(json.loads(self.scripts[0]))

    def row(self, name: str, which: int = 0) -> list[str]:
        return [" ".join(cell.split()) for cell in [row for row in self.rows if row and row[0] == name][which]]


def read(results: Results) -> Reader:
    return Reader(page(results, chapters(results)))
