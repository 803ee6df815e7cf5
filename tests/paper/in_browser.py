"""A real Chromium for the tests of a page: whatever the page says on the console or asks of the network fails the test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
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

    @cache
    def tab_of(**options: Any) -> Any:
        """Return the one tab of its options; each page that it opens starts afresh."""
        return browser.new_context(**options).new_page()

    @contextmanager
    def opened(
        width: int = 1400,
        height: int = 900,
        *,
        color_scheme: str = "light",
        reduced_motion: str = "reduce",
        **options: Any,
    ) -> Iterator[Any]:
        tab, noises = tab_of(**options), []
        tab.goto("about:blank")
        tab.set_viewport_size({"width": width, "height": height})
        tab.emulate_media(media="screen", color_scheme=color_scheme, reduced_motion=reduced_motion)
        tab.mouse.move(0, 0)
        listeners = {
            "console": lambda message: noises.append(f"console: {message.text}"),
            "pageerror": lambda error: noises.append(f"error: {error}"),
            "request": lambda request: (
                None if request.url.startswith(("file:", "data:")) else noises.append(request.url)
            ),
        }
        for event, listener in listeners.items():
            tab.on(event, listener)
        try:
            tab.goto(path.as_uri())
            yield tab
            assert noises == []
        finally:
            for event, listener in listeners.items():
                tab.remove_listener(event, listener)

    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield opened
        finally:
            browser.close()
