"""A real Chromium for the tests of a page: whatever the page says on the console or asks of the network fails the test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

Visit = Callable[..., AbstractContextManager[Any]]


@contextmanager
def visits(path: Path) -> Iterator[Visit]:
    """Give a context manager that opens the page in a new tab; skip where there is no browser."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")

    @contextmanager
    def opened(width: int = 1400, height: int = 900, **options: Any) -> Iterator[Any]:
        options = {"reduced_motion": "reduce"} | options
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        tab, noises = context.new_page(), []
        tab.on("console", lambda message: noises.append(f"console: {message.text}"))
        tab.on("pageerror", lambda error: noises.append(f"error: {error}"))
        tab.on(
            "request",
            lambda request: None if request.url.startswith(("file:", "data:")) else noises.append(request.url),
        )
        try:
            tab.goto(path.as_uri())
            yield tab
            assert noises == []
        finally:
            context.close()

    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield opened
        finally:
            browser.close()
