"""The report in a real browser: a headless Chromium opens the file, clicks, hovers, and must stay off the network."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from by_hand import AGENTS, ENVS, EVIL, experiment, root

from spanrl.experiments.spec import Cell, SpecEntry
from spanrl.report.chapters import chapters
from spanrl.report.page import page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
CHART = "figure[data-chapter='0'] .chart"

Open = Callable[..., AbstractContextManager[Any]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def tab_of(browser: Any) -> Callable[..., Any]:
    """Return a function that gives the one tab of its options: a process compiles plotly once, which is most of the time of a visit."""

    @cache
    def made(**options: Any) -> Any:
        return browser.new_context(reduced_motion="reduce", **options).new_page()

    return made


@pytest.fixture(scope="module")
def visit(tab_of: Callable[..., Any]) -> Open:
    """Return a context manager that opens a page and fails where it spoke on the console, asked the network or opened a dialog."""

    @contextmanager
    def opened(
        path: Path, *, width: int = 1280, height: int = 900, color_scheme: str = "light", **options: Any
    ) -> Iterator[Any]:
        tab = tab_of(**options)
        tab.goto("about:blank")
        tab.set_viewport_size({"width": width, "height": height})
        tab.emulate_media(media="screen", color_scheme=color_scheme)
        tab.mouse.move(0, 0)
        noises: list[str] = []
        listeners = {
            "console": lambda message: noises.append(f"console: {message.text}"),
            "pageerror": lambda error: noises.append(f"error: {error}"),
            "dialog": lambda dialog: (noises.append(f"dialog: {dialog.message}"), dialog.dismiss()),
            "request": lambda request: noises.append(request.url) if _is_outside(request.url) else None,
        }
        for event, listener in listeners.items():
            tab.on(event, listener)
        try:
            tab.goto(path.as_uri())
            tab.wait_for_selector(f"{CHART} .main-svg")
            yield tab
            assert noises == []
        finally:
            for event, listener in listeners.items():
                tab.remove_listener(event, listener)

    return opened


def _is_outside(url: str) -> bool:
    return not url.startswith(("file:", "data:", "blob:"))


def negative_at_first(cell: Cell, place: int, t: np.ndarray) -> np.ndarray:
    """Return a regret that is not positive up to t = 9."""
    return root(cell, place, t) * np.where(t < 10, -1.0, 1.0)


def _write(folder: Path, **options: Any) -> Path:
    results = experiment(folder, **options)
    path = folder / "report.html"
    path.write_text(page(results, chapters(results)), "utf-8")
    return path


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write(tmp_path_factory.mktemp("browser") / "x", regret=negative_at_first)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    label = "a rather long label for the agent with the number {}"
    agents = [SpecEntry(f"scal[span_bound={i + 1}]", label.format(i)) for i in range(50)]
    return _write(tmp_path_factory.mktemp("large") / "x", agents=agents, seeds=2)


def press(tab: Any, key: str, value: str) -> None:
    tab.click(f"figure[data-chapter='0'] button[data-set='{key}'][data-value='{value}']")


def ask(tab: Any, expression: str) -> Any:
    """Evaluate JavaScript with ``chart``, the first chart, at hand."""
    return tab.evaluate(f"(() => {{ const chart = document.querySelector(`{CHART}`); return {expression}; }})()")


def until(tab: Any, expression: str) -> None:
    """Wait until the expression holds; playwright's own way needs eval, which the page forbids."""
    for _ in range(100):
        if ask(tab, expression):
            return
        tab.wait_for_timeout(50)
    pytest.fail(f"never came true: {expression}")


def lines(tab: Any) -> dict[str, Any]:
    """Return name → visibility of the agents' lines."""
    return dict(ask(tab, "chart.data.filter((one) => !one.meta.isBand).map((one) => [one.name, one.visible])"))


def pressed(tab: Any) -> dict[str, str]:
    """Return key → value of the switches that are on."""
    on = "figure[data-chapter='0'] button[data-set][aria-pressed='true']"
    return dict(tab.eval_on_selector_all(on, "all => all.map((one) => [one.dataset.set, one.dataset.value])"))


def bands(tab: Any) -> int:
    return int(ask(tab, "chart.data.filter((one) => one.meta.isBand).length"))


def click_legend(tab: Any, name: str, times: int = 1) -> None:
    entry = tab.locator(f"{CHART} .legend .traces", has_text=re.compile(rf"^{name}$"))
    box = entry.locator(".legendtoggle").bounding_box()
    tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, click_count=times)


def test_the_axes_switch(report: Path, visit: Open) -> None:
    with visit(report) as tab:
        types = "[chart._fullLayout.xaxis.type, chart._fullLayout.yaxis.type]"
        assert ask(tab, types) == ["linear", "linear"]
        press(tab, "quantity", "span")
        assert ask(tab, types) == ["log", "linear"], "what suits the quantity"
        assert pressed(tab) == {"quantity": "span", "x": "log", "y": "linear"}
        press(tab, "y", "log")
        press(tab, "quantity", "regret")
        assert ask(tab, types) == ["linear", "log"], "what the reader chose stays"
        assert pressed(tab) == {"quantity": "regret", "x": "linear", "y": "log"}
        press(tab, "x", "log")
        assert ask(tab, types) == ["log", "log"]


def test_lines_that_coincide_are_named_as_long_as_they_are_shown(visit: Open, tmp_path: Path) -> None:
    def regret(cell: Cell, place: int, t: np.ndarray) -> np.ndarray:
        """UCRL2 is 1 above ucrl: nothing at the end, and another line on a logarithmic axis."""
        return 2 * np.sqrt(t) * (1 if place else 20) + (place == 2)

    with visit(_write(tmp_path / "x", envs=ENVS[:1], regret=regret)) as tab:
        note = f"{CHART} ~ .note"
        assert tab.inner_text(note) == "ucrl = UCRL2: these lines coincide, and one hides the others."
        press(tab, "y", "log")
        assert tab.inner_text(note) == ""
        press(tab, "y", "linear")
        assert "coincide" in tab.inner_text(note)
        click_legend(tab, "ucrl")
        until(tab, "chart.data.some((one) => one.visible === 'legendonly')")
        assert tab.inner_text(note) == ""
        press(tab, "quantity", "span")
        assert tab.inner_text(note) == "UCRL2 = SCAL: these lines coincide, and one hides the others."


def test_a_log_axis_leaves_out_what_is_not_positive_and_says_so(report: Path, visit: Open) -> None:
    with visit(report) as tab:
        note = f"{CHART} ~ .note"
        total = ask(tab, "chart.data.at(-1).y.filter((y) => y <= 0).length")
        assert tab.inner_text(note) == ""
        press(tab, "y", "log")
        assert f"{3 * total} of the points drawn are zero or negative" in tab.inner_text(note)
        assert ask(tab, "chart.data.flatMap((one) => one.y).filter((y) => y !== null && y <= 0)") == []
        low, high = ask(tab, "chart._fullLayout.yaxis.range")
        assert 0 < low < high < 3


def test_the_quantity_switches(report: Path, visit: Open) -> None:
    with visit(report) as tab:
        title = f"{CHART} .ytitle"
        assert tab.text_content(title) == "regret"
        press(tab, "quantity", "span")
        assert tab.text_content(title) == "span of the optimistic bias"
        assert ask(tab, "chart.data.at(-1).y.at(-1)") == pytest.approx(2.0001)
        caption = "Span of the optimistic bias on three states: mean with 95\u00a0% t intervals, 4 runs per agent, T = 10,000."
        assert tab.inner_text(f"{CHART} ~ figcaption") == caption


def test_hover_shows_agent_time_mean_and_interval(report: Path, visit: Open) -> None:
    with visit(report) as tab:
        x, y = ask(
            tab,
            """(() => {
                chart.scrollIntoView();
                const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect();
                const line = chart.data.at(-1), i = line.x.indexOf(1000);
                return [box.x + xaxis._offset + xaxis.d2p(line.x[i]), box.y + yaxis._offset + yaxis.d2p(line.y[i])];
            })()""",
        )
        tab.mouse.move(x - 1, y)
        tab.mouse.move(x, y)
        shown = tab.wait_for_selector(f"{CHART} .hoverlayer .hovertext").text_content()
        mean = 3.15 * np.sqrt(1000)
        assert "UCRL2" in shown
        assert "t = 1,000" in shown
        assert f"mean {mean:.3f}"[:10] in shown
        assert "95\u00a0%: [93.1" in shown  # 3.15 − t₃(0.975) · 0.0645 = 2.9446, times √1000


def test_agents_switch_by_the_legend_and_all_at_once(report: Path, visit: Open) -> None:
    with visit(report) as tab:
        figure = "figure[data-chapter='0']"
        click_legend(tab, "ucrl")
        until(tab, "chart.data.some((one) => one.visible === 'legendonly')")
        assert lines(tab) == {"SCAL": True, "ucrl": "legendonly", "UCRL2": True}
        assert bands(tab) == 2
        press(tab, "quantity", "n_episodes")
        assert lines(tab)["ucrl"] == "legendonly"
        tab.wait_for_timeout(350)  # else it is a double click
        click_legend(tab, "ucrl")
        until(tab, "chart.data.every((one) => one.visible !== 'legendonly')")
        tab.click(f"{figure} button[data-show='none']")
        assert set(lines(tab).values()) == {"legendonly"}
        tab.click(f"{figure} button[data-show='all']")
        assert set(lines(tab).values()) == {True}


def test_a_double_click_on_the_legend_isolates_and_brings_back(report: Path, visit: Open) -> None:
    with visit(report) as tab:
        click_legend(tab, "SCAL", times=2)
        until(tab, "chart.data.filter((one) => one.visible === 'legendonly').length === 2")
        assert lines(tab) == {"SCAL": True, "ucrl": "legendonly", "UCRL2": "legendonly"}
        tab.wait_for_timeout(350)
        click_legend(tab, "SCAL", times=2)
        until(tab, "chart.data.every((one) => one.visible !== 'legendonly')")


def test_bands_go_and_come(report: Path, visit: Open) -> None:
    with visit(report) as tab:
        box = "figure[data-chapter='0'] input"
        counts = [bands(tab)]
        for _ in range(2):
            tab.click(box)
            counts.append(bands(tab))
        assert counts == [3, 0, 3]


def test_a_table_sorts_by_its_headers(report: Path, visit: Open) -> None:
    with visit(report) as tab:
        table = tab.locator("table.finals").first
        names = table.locator("tbody th")
        assert names.all_inner_texts() == ["SCAL", "ucrl", "UCRL2"]
        header = table.locator("thead th", has_text="Mean")
        header.locator("button").click()
        header.locator("button").click()
        assert names.all_inner_texts() == ["UCRL2", "ucrl", "SCAL"]
        assert header.get_attribute("aria-sort") == "descending"


def test_charts_are_drawn_when_they_come_into_sight(report: Path, visit: Open) -> None:
    with visit(report, height=500) as tab:
        second = "figure[data-chapter='1']"
        assert tab.locator(f"{second} .main-svg").count() == 0
        tab.locator(second).scroll_into_view_if_needed()
        tab.wait_for_selector(f"{second} .main-svg")


@pytest.mark.parametrize("which", ["report", "large"])
def test_a_phone_does_not_scroll_sideways(which: str, visit: Open, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(which)
    with visit(path, width=360, height=740, has_touch=True, is_mobile=True) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        assert ask(tab, "chart._fullLayout.xaxis._length") > 200
        assert ask(tab, "chart._fullLayout.yaxis._length") > 200
        below = ask(
            tab,
            "chart.querySelector('.legend').getBoundingClientRect().top - chart.querySelector('.xtitle').getBoundingClientRect().bottom",
        )
        assert below > 0


def test_a_chart_follows_the_width_of_the_window(report: Path, visit: Open) -> None:
    with visit(report) as tab:
        assert ask(tab, "chart._fullLayout.width") == 1184  # 1280 less a padding of 48 on either side
        tab.set_viewport_size({"width": 500, "height": 900})
        until(tab, "chart._fullLayout.width < 500 && chart._fullLayout.legend.y < 0")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 500


def test_the_buttons_of_plotly_ask_no_server(report: Path, visit: Open) -> None:
    with visit(report) as tab:
        tab.hover(CHART)
        titles = tab.eval_on_selector_all(f"{CHART} .modebar-btn", "all => all.map((one) => one.dataset.title)")
        assert len(titles) == 4
        assert not any(word in title for title in titles for word in ("Cloud", "Studio", "Share", "Link", "Edit"))


def test_fifty_agents_start_with_the_ten_best(large: Path, visit: Open) -> None:
    with visit(large) as tab:
        seen = list(lines(tab).values())
        assert (seen[:10], set(seen[10:])) == ([True] * 10, {"legendonly"})
        assert "10 of 50 agents are shown, at first the 10 best" in tab.inner_text(f"{CHART} ~ .note")
        looks = ask(tab, "chart.data.filter((one) => !one.meta.isBand).map((one) => one.line.color + one.line.dash)")
        assert len(set(looks)) == 50
        tab.click("figure[data-chapter='0'] button[data-show='all']")
        assert set(lines(tab).values()) == {True}
        assert ask(tab, "chart._fullLayout.xaxis._length") > 600


def test_dark_mode_and_its_change_while_open(report: Path, visit: Open) -> None:
    look = "[getComputedStyle(document.body).backgroundColor, chart._fullLayout.plot_bgcolor, chart.data.at(-1).line.color]"
    with visit(report, color_scheme="dark") as tab:
        dark = ask(tab, look)
        tab.emulate_media(color_scheme="light")
        until(tab, "chart._fullLayout.plot_bgcolor === '#ffffff'")
        light = ask(tab, look)
    assert dark[:2] == ["rgb(19, 22, 27)", "#13161b"]
    assert light[:2] == ["rgb(255, 255, 255)", "#ffffff"]
    assert dark[2] != light[2]


def test_it_prints_light_and_whole(report: Path, visit: Open, tmp_path: Path) -> None:
    with visit(report, height=300, color_scheme="dark") as tab:
        tab.evaluate(
            """addEventListener("beforeprint", () => {
                const layouts = [...document.querySelectorAll(".chart")].map((one) => one._fullLayout);
                window.atPrint = layouts.map((one) => [one.paper_bgcolor, one.width]);
            })"""
        )
        data = tab.pdf(path=tmp_path / "report.pdf", format="A4")
        assert data.startswith(b"%PDF")
        assert tab.evaluate("atPrint") == [["#ffffff", 680]] * 2
        assert ask(tab, "chart._fullLayout.paper_bgcolor") == "#13161b"
        tab.emulate_media(media="print")
        assert not tab.is_visible("figure[data-chapter='0'] .controls")
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_names_of_users_appear_literally(visit: Open, tmp_path: Path) -> None:
    agents = tuple(replace(agent, label=label) for agent, label in zip(AGENTS, EVIL, strict=True))
    envs = (replace(ENVS[0], label="</title><img src=x onerror=alert(4)>"),)
    path = _write(tmp_path / "x", agents=agents, envs=envs, failed=["three-state[delta=0.01]/ucrl/001"])
    with visit(path) as tab:
        assert tab.locator("h2").first.inner_text() == envs[0].label
        assert tab.locator("img").count() == 0
        shown = tab.locator(f"{CHART} .legendtext").all_text_contents()
        assert shown == [f"{EVIL[0][:15]}…{EVIL[0][-14:]}", EVIL[1], EVIL[2]]
        assert tab.locator("table.finals tbody th").all_inner_texts() == list(EVIL)
        tab.click("summary")
        assert "ValueError: <script>alert(2)</script>" in tab.inner_text("details")
        labels = tab.locator(f"{CHART} .legendtoggle")
        assert labels.count() == 3
        ask(tab, "Plotly.Fx.hover(chart, [{ curveNumber: chart.data.length - 3, pointNumber: 40 }])")
        assert EVIL[0] in tab.wait_for_selector(f"{CHART} .hovertext").text_content()


def test_an_unknown_gain_is_told(visit: Open, tmp_path: Path) -> None:
    path = _write(tmp_path / "x", envs=ENVS[1:], regret=lambda _, __, t: np.full(t.size, np.nan), seeds=1)
    with visit(path) as tab:
        assert tab.text_content(f"{CHART} .ytitle") == "cumulative reward"
        assert "Regret unknown: the optimal gain is not known." in tab.inner_text(f"{CHART} ~ .note")
        assert bands(tab) == 0
