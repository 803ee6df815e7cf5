"""The page of the reproduction in a real browser: widths, colours, print, the animation, and nothing from the network."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from page_by_hand import SLIPS, drawn, entries, reproduction, time_of

from spanrl.paper.page.html import page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

WORST_CONTRAST = """() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const linear = (x) => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
    const behind = (one) => {
        const found = one ? rgba(getComputedStyle(one).backgroundColor) : [255, 255, 255, 255];
        return found[3] === 255 ? found : behind(one.parentElement);
    };
    const texts = "h1, h2, h3, h4, p, a, dt, dd, th, td, small, figcaption, summary, .badge, .mark, .below, .above";
    const shown = [...document.querySelectorAll(texts)].filter((one) => !one.closest("svg") && one.textContent.trim());
    const found = shown.map((one) => {
        const [a, b] = [light(rgba(getComputedStyle(one).color)), light(behind(one))];
        return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), one.outerHTML.slice(0, 120)];
    });
    return found.sort((one, other) => one[0] - other[0])[0];
}"""

Open = Callable[..., AbstractContextManager[Any]]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a page on which one claim is not as expected."""
    folder = tmp_path_factory.mktemp("page")
    found = reproduction(folder, claims=entries(O7={"verdict": "fails"}))
    (folder / "report.html").write_text(page(found, drawn(), SLIPS, time_of(found)), "utf-8")
    return folder / "report.html"


@pytest.fixture(scope="module")
def visit(path: Path) -> Iterator[Open]:
    """Return a context manager that opens the page and fails where it spoke on the console or asked the network."""

    @contextmanager
    def opened(*, width: int = 1400, height: int = 900, **options: Any) -> Iterator[Any]:
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
        yield opened
        browser.close()


@pytest.mark.parametrize("width", [360, 800, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_does_not_scroll_sideways(visit: Open, width: int, scheme: str) -> None:
    with visit(width=width, color_scheme=scheme) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        outside = """[...document.querySelectorAll("main *")].filter((one) =>
            !one.closest(".scroll") && !one.closest("pre") && one.getBoundingClientRect().right > innerWidth + 1).length"""
        assert tab.evaluate(outside) == 0


def test_contents_fold_on_a_phone_and_stand_beside_the_page_on_a_desk(visit: Open) -> None:
    with visit(width=360, has_touch=True, is_mobile=True) as tab:
        assert not tab.is_visible(".toc-wide")
        assert not tab.is_visible(".toc-narrow a[href='#claim-E1']")
        tab.click(".toc-narrow summary")
        tab.click(".toc-narrow a[href='#claim-E1']")
        assert not tab.is_visible(".toc-narrow a[href='#claim-E1']")
        assert 0 <= tab.evaluate("document.getElementById('claim-E1').getBoundingClientRect().top") < 300
    with visit(width=1400) as tab:
        assert not tab.is_visible(".toc-narrow")
        tab.evaluate("document.getElementById('claim-R3').scrollIntoView()")
        tab.wait_for_selector(".toc-wide a[href='#claim-R3'][aria-current]")
        box = tab.locator(".toc-wide").bounding_box()
        assert -1 <= box["y"] <= 1
        assert box["x"] + box["width"] <= tab.locator("main").bounding_box()["x"] + 1
        assert tab.get_attribute(".toc-wide a[href='#claim-O7'] .mark", "aria-label") == "fails, expected: holds"


def test_the_box_of_surprises_leads_to_the_claim(visit: Open) -> None:
    with visit() as tab:
        tab.click(".alarm a[href='#claim-O7']")
        assert tab.url.endswith("#claim-O7")
        assert tab.inner_text("article:has(#claim-O7) .badge") == "✗ fails, expected: holds"


def test_details_open_and_show_the_numbers(visit: Open) -> None:
    with visit() as tab:
        claim = tab.locator("article:has(#claim-E1)")
        assert not claim.locator("table").is_visible()
        claim.locator("summary").click()
        assert claim.locator("tbody tr").count() == 4
        assert "1, 2.5" in claim.inner_text()


def test_the_animation_steps_when_asked(visit: Open) -> None:
    with visit() as tab:
        tab.locator("#knight").scroll_into_view_if_needed()
        assert "step 0 of" in tab.inner_text(".knight-count")
        before = tab.get_attribute("#knight-piece-hero", "style")
        tab.click("#knight [data-do=forward]")
        assert "step 1 of" in tab.inner_text(".knight-count")
        assert tab.get_attribute("#knight-piece-hero", "style") != before
        tab.click("#knight [data-do=play]")
        tab.wait_for_selector("#knight [data-do=play][aria-pressed=true]")


def test_it_can_be_read_without_a_program(visit: Open) -> None:
    with visit(java_script_enabled=False) as tab:
        assert tab.is_visible("#claim-G4")
        assert tab.is_visible(".knight-board")
        assert not tab.is_visible(".knight-controls")
        tab.click("article:has(#claim-E1) summary")
        assert tab.is_visible("article:has(#claim-E1) table")


def test_colours_follow_the_scheme_and_figures_keep_a_white_card(visit: Open) -> None:
    look = "[document.body, document.querySelector('.card')].map((one) => getComputedStyle(one).backgroundColor)"
    with visit(color_scheme="dark") as tab:
        assert tab.evaluate(look) == ["rgb(19, 22, 27)", "rgb(255, 255, 255)"]
        assert tab.evaluate("document.querySelector('.card img').naturalWidth") == 600
        assert tab.evaluate("document.querySelector('.card img').getBoundingClientRect().width") == 600
        tab.emulate_media(color_scheme="light")
        assert tab.evaluate(look) == ["rgb(255, 255, 255)", "rgb(255, 255, 255)"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(visit: Open, scheme: str) -> None:
    """WCAG 2 AA: a contrast of 4.5 at least, computed by its formula on the colours that the browser shows."""
    with visit(color_scheme=scheme) as tab:
        worst = tab.evaluate(WORST_CONTRAST)
        assert worst[0] >= 4.5, worst


def test_focus_is_seen(visit: Open) -> None:
    with visit() as tab:
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.className") == "skip"
        tab.keyboard.press("Tab")
        assert tab.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)") >= 2


def test_it_prints_light_without_the_contents(visit: Open, tmp_path: Path) -> None:
    with visit(color_scheme="dark") as tab:
        assert tab.pdf(path=tmp_path / "page.pdf", format="A4").startswith(b"%PDF")
        tab.emulate_media(media="print")
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not tab.is_visible(".toc-wide")
        assert not tab.is_visible(".toc-narrow")
        assert not tab.is_visible(".knight-controls")
        assert tab.is_visible("#claim-G1")
