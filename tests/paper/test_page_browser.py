"""The page of the reproduction in a real browser: widths, colours, print, the animation, and nothing from the network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from in_browser import Visit, visits
from page_by_hand import EVIL, drawn, entries, reproduction, time_of

from spanrl.paper.page.html import page

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

OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a page on which one claim is not as expected."""
    folder = tmp_path_factory.mktemp("page")
    found = reproduction(folder, claims=entries(O7={"verdict": "fails"}))
    (folder / "report.html").write_text(page(found, drawn(), time_of(found)), "utf-8")
    return folder / "report.html"


@pytest.fixture(scope="module")
def visit(path: Path) -> Iterator[Visit]:
    with visits(path) as found:
        yield found


@pytest.mark.parametrize("width", [360, 800, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_does_not_scroll_sideways(visit: Visit, width: int, scheme: str) -> None:
    with visit(width=width, color_scheme=scheme) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        tab.evaluate(OPEN_ALL)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        outside = """[...document.querySelectorAll("main *")].filter((one) =>
            !one.closest(".scroll, pre") && one.getBoundingClientRect().right > innerWidth + 1).length"""
        assert tab.evaluate(outside) == 0


def test_contents_fold_on_a_phone_and_stand_beside_the_page_on_a_workspace(visit: Visit) -> None:
    with visit(width=360, has_touch=True, is_mobile=True) as tab:
        assert not tab.is_visible(".toc-wide")
        assert not tab.is_visible(".toc-narrow a[href='#claim-E1']")
        tab.click(".toc-narrow summary")
        tab.click(".toc-narrow a[href='#claim-E1']")
        tab.wait_for_selector(".toc-narrow a[href='#claim-E1']", state="hidden")
        tab.wait_for_function("""() => {
            const top = document.getElementById("claim-E1").getBoundingClientRect().top;
            return top >= 0 && top < 300;
        }""")
    with visit(width=1400) as tab:
        assert not tab.is_visible(".toc-narrow")
        tab.evaluate("document.getElementById('claim-R3').scrollIntoView()")
        tab.wait_for_selector(".toc-wide a[href='#claim-R3'][aria-current]")
        box = tab.locator(".toc-wide").bounding_box()
        assert -1 <= box["y"] <= 1
        assert box["x"] + box["width"] <= tab.locator("main").bounding_box()["x"] + 1
        assert tab.get_attribute(".toc-wide a[href='#claim-O7'] .mark", "aria-label") == "fails, expected: holds"


def test_the_box_of_surprises_leads_to_the_claim(visit: Visit) -> None:
    with visit() as tab:
        tab.click(".alarm a[href='#claim-O7']")
        tab.wait_for_url("**#claim-O7")
        assert tab.inner_text("#claim-O7 .badge") == "✗ fails, expected: holds"


def test_details_open_and_show_the_numbers(visit: Visit) -> None:
    with visit() as tab:
        claim = tab.locator("#claim-E1")
        assert not claim.locator("table").is_visible()
        claim.locator("> summary").click()
        assert claim.locator("tbody tr").count() == 5
        assert "1, 2.5" in claim.inner_text()


def test_the_animation_steps_when_asked(visit: Visit) -> None:
    with visit() as tab:
        tab.locator("#knight").scroll_into_view_if_needed()
        assert "step 0 of" in tab.inner_text(".knight-count")
        before = tab.get_attribute("#knight-piece-hero", "style")
        tab.click("#knight [data-do=forward]")
        assert "step 1 of" in tab.inner_text(".knight-count")
        assert tab.get_attribute("#knight-piece-hero", "style") != before
        tab.click("#knight [data-do=play]")
        tab.wait_for_selector("#knight [data-do=play][aria-pressed=true]")


def test_it_can_be_read_without_a_program(visit: Visit) -> None:
    with visit(java_script_enabled=False) as tab:
        assert tab.is_visible("#claim-G4")
        assert tab.is_visible(".knight-board")
        assert not tab.is_visible(".knight-controls")
        tab.click("#claim-E1 > summary")
        assert tab.is_visible("#claim-E1 table")


def test_colours_of_page_and_figures_follow_the_scheme_and_print_is_light(visit: Visit) -> None:
    look = """[getComputedStyle(document.body).backgroundColor,
        ...["fill", "stroke"].map((key) => getComputedStyle(document.querySelector(".panel use"))[key])]"""
    light = ["rgb(255, 255, 255)", "rgb(34, 34, 34)", "rgb(255, 255, 255)"]
    with visit(color_scheme="dark") as tab:
        page, fill, stroke = tab.evaluate(look)
        assert page == "rgb(19, 22, 27)"
        assert all(int(part) > 190 for part in fill[4:-1].split(", "))
        assert all(int(part) < 40 for part in stroke[4:-1].split(", "))
        tab.emulate_media(media="print", color_scheme="dark")
        assert tab.evaluate(look) == light
        tab.emulate_media(media="screen", color_scheme="light")
        assert tab.evaluate(look) == light


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(visit: Visit, scheme: str) -> None:
    """WCAG 2 AA: a contrast of 4.5 at least, computed by its formula on the colours that the browser shows."""
    with visit(color_scheme=scheme) as tab:
        worst = tab.evaluate(WORST_CONTRAST)
        assert worst[0] >= 4.5, worst


def test_focus_is_seen(visit: Visit) -> None:
    with visit() as tab:
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.className") == "skip"
        tab.keyboard.press("Tab")
        assert tab.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)") >= 2


def test_all_claims_open_and_close_at_once(visit: Visit) -> None:
    with visit() as tab:
        tab.click("text=Open all")
        assert tab.is_visible("#claim-E1 table")
        assert tab.is_visible("#claim-R6 table")
        assert not tab.is_visible("#claim-G5 table")  # an experiment, not the theory
        tab.click("text=Close all")
        assert not tab.is_visible("#claim-E1 table")
    with visit(java_script_enabled=False) as tab:
        assert not tab.is_visible("text=Open all")


def test_it_is_short_while_folded(visit: Visit) -> None:
    with visit(width=1400) as tab:
        tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = false; })")
        assert tab.evaluate("document.documentElement.scrollHeight") <= 17_500


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_no_number_is_broken(visit: Visit, width: int) -> None:
    with visit(width=width) as tab:
        tab.evaluate(OPEN_ALL)
        lines = tab.evaluate(
            "[...document.querySelectorAll('table.numbers td .one')].map((one) => one.getClientRects().length)"
        )
        assert len(lines) > 42
        assert set(lines) == {1}
        over = (
            "[...document.querySelectorAll('tbody th')].filter((one) => one.scrollWidth > one.clientWidth + 1).length"
        )
        assert tab.evaluate(over) == 0
        kept = """[...document.querySelectorAll("table.finals td, table.finals small")].every((one) =>
            getComputedStyle(one).whiteSpace === "nowrap")"""
        assert tab.evaluate(kept)


def test_headings_stand_above_their_claims(visit: Visit) -> None:
    with visit(width=800) as tab:
        lefts = """[...document.querySelectorAll(".theme")].map((one) =>
            [...one.children].map((part) => part.getBoundingClientRect().left))"""
        assert all(heading == claims for heading, claims in tab.evaluate(lefts))


def test_panels_stand_below_each_other_on_a_phone_and_beside_each_other_elsewhere(visit: Visit) -> None:
    def boxes() -> list[dict[str, float]]:
        return [one.bounding_box() for one in tab.locator("#figure-three-state .panel svg").all()]

    with visit(width=360) as tab:
        first, second = boxes()
        assert second["y"] >= first["y"] + first["height"]
        assert first["width"] == second["width"] >= 300
        assert first["x"] + first["width"] <= 360
        letters = 10 * first["width"] / 300  # of 10 points in a panel that is 300 wide
        assert letters >= 10
        labels = [one.get_attribute("aria-label") for one in tab.locator("#figure-bound .keys li").all()]
        assert labels == ["UCRL", EVIL]
    with visit(width=1400) as tab:
        first, second = boxes()
        assert first["y"] == second["y"]
        assert second["x"] >= first["x"] + first["width"]


def test_a_figure_is_named_once_and_described_by_its_caption(visit: Visit) -> None:
    with visit() as tab:
        image = tab.locator("#figure-bound [role=img]").first
        assert image.get_attribute("aria-label") == "Title of bound"
        assert image.locator("svg:not([aria-hidden])").count() == 0
        described = tab.locator(f"#{image.get_attribute('aria-describedby')}").inner_text()
        assert described.startswith("Caption of bound")
        assert "Title" not in described


def test_a_link_to_what_is_folded_unfolds_it(visit: Visit) -> None:
    with visit() as tab:
        tab.click(".unheld a[href='#claim-R3']")
        tab.wait_for_selector("#claim-R3 table", state="visible")  # a browser tells of a new fragment a moment later
        tab.evaluate("location.hash = 'slip-one'")
        tab.wait_for_selector("#slip-one table", state="visible")


def test_in_print_no_heading_is_parted_from_its_figure(visit: Visit) -> None:
    """Everything before the figure of an experiment stays with it, and a figure is never cut."""
    with visit() as tab:
        tab.emulate_media(media="print")
        after = """[...document.querySelectorAll(".experiment > figure:first-of-type, #knight")].flatMap((figure) => {
            const before = [...figure.parentElement.children].filter((one) =>
                one.compareDocumentPosition(figure) & Node.DOCUMENT_POSITION_FOLLOWING);
            return before.slice(figure.id === "knight" ? -4 : 0).map((one) => getComputedStyle(one).breakAfter);
        })"""
        assert set(tab.evaluate(after)) == {"avoid"}
        inside = "[...document.querySelectorAll('figure')].map((one) => getComputedStyle(one).breakInside)"
        assert set(tab.evaluate(inside)) == {"avoid"}


def test_the_caption_of_a_slip_is_heard_and_not_seen(visit: Visit) -> None:
    with visit() as tab:
        tab.click("#slip-one > summary")
        box = tab.locator("#slip-one caption").bounding_box()
        assert max(box["width"], box["height"]) <= 1


def test_it_prints_light_with_contents_and_all_numbers(visit: Visit, tmp_path: Path) -> None:
    with visit(color_scheme="dark") as tab:
        assert tab.pdf(path=tmp_path / "page.pdf", format="A4").startswith(b"%PDF")
        tab.emulate_media(media="print")
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        for hidden in (".toc-wide", ".knight-controls", "#all-claims"):
            assert not tab.is_visible(hidden)
        for shown in ("#claim-G1", ".toc-narrow a[href='#claim-O7']", "#claim-E1 table"):
            assert tab.is_visible(shown)
        assert tab.is_visible("section:has(> #sweep) details table")


def test_without_a_program_print_shows_all_numbers_too(visit: Visit) -> None:
    with visit(java_script_enabled=False) as tab:
        assert not tab.is_visible("#claim-E1 table")
        tab.emulate_media(media="print")
        assert tab.is_visible("#claim-E1 table")
        assert tab.is_visible(".toc-narrow a[href='#claim-O7']")


def test_printing_opens_what_is_folded_and_folds_it_again(visit: Visit) -> None:
    folded = "document.querySelectorAll('details:not([open])').length"
    with visit() as tab:
        tab.click("#claim-E1 > summary")
        before = tab.evaluate(folded)
        assert before > 30
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert tab.evaluate(folded) == 0
        tab.evaluate("dispatchEvent(new Event('afterprint'))")
        assert tab.evaluate(folded) == before
        assert tab.is_visible("#claim-E1 table")
