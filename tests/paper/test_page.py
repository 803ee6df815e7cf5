"""The page of the reproduction: its numbers against scipy, its parts against a reader of HTML, and what is missing or broken."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_by_hand import EVIL, HORIZON, SLIPS, curves, drawn, entries, experiment, experiments, reproduction, time_of
from scipy import stats

from spanrl.axes import new_figure
from spanrl.errors import OptionError
from spanrl.paper.claims.experiments import unordered_times
from spanrl.paper.page import domains, write
from spanrl.paper.page.contents import EXPERIMENTS, GROUPS
from spanrl.paper.page.experiments import comparison_sentence, order_sentence
from spanrl.paper.page.extra import sweep_rows, sweep_sentence
from spanrl.paper.page.figures import Picture
from spanrl.paper.page.findings import compared, costs, decades, finals, over_time
from spanrl.paper.page.html import page
from spanrl.paper.page.making import dominates, spent
from spanrl.paper.page.markdown import markdown


class Reader(HTMLParser):
    """Collects what a test asks about: ids, links, headings, attributes, and whether every tag is closed."""

    VOID = frozenset({"meta", "img", "input", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[int] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.attributes |= {f"{name}={value}" if name.startswith("on") else name for name, value in found.items()}
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if tag == "a" else []
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = reproduction(tmp_path_factory.mktemp("page"))
    return page(found, drawn(), SLIPS, time_of(found))


@pytest.fixture
def plain_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the graphs out where a test is about something else: they take a second."""
    monkeypatch.setattr("spanrl.paper.page.html.domains_section", lambda: '<section id="domains"></section>')


def section(text: str, start: str, end: str = "</article>") -> str:
    return text[(i := text.index(start)) : text.index(end, i)]


# numbers


def test_final_numbers_are_those_of_scipy() -> None:
    ucrl, *scal = experiments()["three-state"].agents()
    rows = finals([ucrl, *scal], ucrl)
    p_values = []
    for row, group in zip(rows[1:], scal, strict=True):
        values, theirs = group.pseudo_regret[:, -1], ucrl.pseudo_regret[:, -1]
        low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
        assert (row.pseudo_regret.value, row.pseudo_regret.low, row.pseudo_regret.high) == pytest.approx(
            (values.mean(), low, high)
        )
        assert row.regret.value == pytest.approx(values.mean() + 1)
        test = stats.ttest_rel(values, theirs)
        ends = test.confidence_interval(0.95)
        assert (row.difference.value, row.difference.low, row.difference.high) == pytest.approx(
            ((values - theirs).mean(), ends.low, ends.high)
        )
        assert row.ratio == pytest.approx(values.mean() / theirs.mean())
        late = group.t >= group.t[-1] / 10**1.5
        fit = stats.linregress(np.log(group.t[late]), np.log(group.pseudo_regret[:, late].mean(axis=0)))
        assert row.slope == pytest.approx(fit.slope)
        p_values.append(test.pvalue)
    ordered = np.argsort(p_values)
    corrected = np.maximum.accumulate([min(1, (3 - i) * p_values[j]) for i, j in enumerate(ordered)])
    assert [rows[1 + j].p_value for j in ordered] == pytest.approx(list(corrected))
    assert isnan(rows[0].ratio)
    assert isnan(rows[0].p_value)


def test_one_run_has_no_interval() -> None:
    (row,) = finals([curves(seeds=1)])
    assert row.n == 1
    assert isnan(row.pseudo_regret.low)


def test_agents_with_other_seeds_are_compared_on_the_common_ones() -> None:
    ucrl, few = curves(level=5.0, seeds=6), curves(2.0, seeds=3)
    test = stats.ttest_rel(few.pseudo_regret[:, -1], ucrl.pseudo_regret[:3, -1])
    assert compared(few, ucrl, HORIZON).p_value[0] == pytest.approx(test.pvalue)


def test_an_agent_that_stopped_earlier_is_compared_at_its_own_horizon() -> None:
    row = sweep_rows("knight-quest", experiments())[1]
    ucrl = experiments()["knight-quest"].agents()[0]
    assert (row.span_bound, row.t) == (1.0, 10**4)
    theirs = ucrl.pseudo_regret[: row.n, list(ucrl.t).index(10**4)]  # the same seeds
    assert row.ratio == pytest.approx(row.pseudo_regret.value / theirs.mean())


def test_another_time_or_other_seeds_compare_nothing() -> None:
    odd = curves(2.0, t=np.array([10, 100, 1234]))
    stranger = replace(curves(2.0), seeds=np.arange(100, 106))
    assert all(isnan(row.ratio) for row in finals([odd, stranger], curves()))


def test_marks_over_time_follow_the_tests() -> None:
    early = curves(2.0, level=1.0, shape=lambda t: np.where(t < 5000, 9.0, 0.5) * np.sqrt(t))
    same = curves(5.0, level=5.0, place=0)
    told = over_time([curves(level=5.0), early, same])
    assert told.times == (1000, 10_000, 100_000)
    assert told.marks == (("", "", ""), ("above", "below", "below"), ("", "", ""))
    assert told.means[0][0] == pytest.approx(curves(level=5.0).pseudo_regret[:, list(early.t).index(1000)].mean())
    said = comparison_sentence(told)
    assert "below UCRL from t = 10⁴ on with c = 2; at no t with c = 5." in said
    assert "above UCRL at t = 10³ with c = 2; at no t with c = 5." in said


def test_the_order_in_c_is_told_where_it_does_not_hold() -> None:
    worse = curves(2.0, level=5.0, shape=lambda t: np.where(t < 5000, 1.0, 0.1) * np.sqrt(t))
    agents = [curves(level=9.0), worse, curves(5.0, level=2.0)]
    told = over_time(agents)
    assert told.disordered == (1000,)
    assert [t for t in unordered_times(agents[1:]) if t >= 1000] == [1000.0]
    assert "does not hold at t = 10³, where" in order_sentence(told)
    assert "at none of these times" in order_sentence(
        over_time([curves(level=9.0), curves(2.0), curves(5.0, level=4.0)])
    )
    assert "no order in c" in order_sentence(over_time([curves(), curves(2.0)]))


def test_decades_end_with_the_horizon() -> None:
    assert decades(curves()) == (1000, 10_000, 100_000)
    assert decades(curves(t=np.array([1, 1000, 2500]))) == (1000, 2500)
    assert decades(curves(t=np.array([1, 20]))) == (20,)


def test_costs_by_hand() -> None:
    cost = costs({"x": experiment("x", [curves(seeds=4)])})[0]
    assert (cost.episodes, cost.sweeps, cost.share) == (100.0, 7.0, 0.25)
    assert cost.seconds == pytest.approx(0.0025)


def test_the_sweep_tells_how_fast_regret_grows_on_both_sides() -> None:
    said = sweep_sentence("three-state", sweep_rows("three-state", experiments()))
    assert "Below sp(h*) = 1.005 the pseudo-regret grows sub-linearly (0.6 or less) with c = 0.5." in said
    assert "Above it the pseudo-regret grows sub-linearly (0.6 or less) with c = 2, 5, 10 and 20." in said


def test_the_sweep_tells_linear_bounds_from_others() -> None:
    rows = [
        replace(row, slope=slope)
        for row, slope in zip(sweep_rows("three-state", experiments())[1:], (0.9, 0.7, 0.95, 0.1, 0.6), strict=True)
    ]
    said = sweep_sentence("three-state", rows)
    assert "Below sp(h*) = 1.005 the pseudo-regret grows linearly (t to the power 0.8 or more) with c = 0.5." in said
    assert "grows linearly (t to the power 0.8 or more) with c = 5; in between with c = 2; sub-linearly" in said
    assert "sub-linearly (0.6 or less) with c = 10 and 20." in said


def test_time_is_split_and_what_dominates_is_told(tmp_path: Path) -> None:
    found = reproduction(tmp_path)
    time = time_of(found)
    assert time.total == 120.0  # what earlier pages took does not count twice
    runs = sum(len(group.seeds) for one in found.experiments.values() for group in one.groups)
    assert (time.planning, time.simulating) == (0.25 * runs, 0.75 * runs)
    assert time.rest == 2 * 70 - runs
    assert "Of 2 min 00 s on the clock, 50\u00a0% went to the experiment knight-quest" in dominates(time)
    assert "45\u00a0% went to simulation, more" in dominates(time)
    assert spent({}, found.experiments, 1.0).rest == 0.0
    assert dominates(spent({}, {}, 0.0)) == "No time was measured."


# the page


def test_every_claim_has_anchor_verdict_and_expected_verdict(whole: str) -> None:
    ids = Reader(whole).ids
    for name, entry in entries().items():
        assert ids.count(f"claim-{name}") == 1
        part = section(whole, f'id="claim-{name}"')
        assert f"{entry['verdict']}, as expected" in part
        assert "Tolerance or level:" in part
    assert "fails, as expected" in section(whole, 'id="claim-R3"')
    assert "Mixtures are over augmented extended actions" in section(whole, 'id="claim-R3"')


def test_every_claim_is_in_a_group() -> None:
    named = [name for _, ids in GROUPS.values() for name in ids] + list(EXPERIMENTS)
    assert sorted(named) == sorted(entries())


def test_the_page_is_well_formed_and_its_links_lead_somewhere(whole: str) -> None:
    read = Reader(whole)
    assert (read.wrong, read.open) == ([], [])
    assert len(set(read.ids)) == len(read.ids)
    inner = {link[1:] for link in read.links if link.startswith("#")}
    assert inner <= set(read.ids)
    assert {link for link in read.links if not link.startswith(("#", "figures/"))} == {"claims.json", "reproduction.md"}
    assert read.headings[0] == 1
    assert read.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(read.headings, read.headings[1:], strict=False))
    assert not any("=" in name for name in read.attributes)  # no inline handlers


def test_it_holds_all_that_it_shows_and_runs_no_other_script(whole: str) -> None:
    without_names = whole.replace("http://www.w3.org/2000/svg", "")
    assert "http:" not in without_names
    assert "https:" not in without_names
    nonce = re.search(r"script-src 'nonce-([^']+)'", whole)
    assert nonce
    assert re.findall(r"<script(?! type=\"application/json\")[^>]*>", whole) == [f'<script nonce="{nonce[1]}">']
    assert whole.count("data:image/svg+xml;base64,") == len(drawn())


def test_facts_count_claims_runs_and_steps(whole: str) -> None:
    head = section(whole, '<dl class="facts">', "</dl>")
    assert "42 of 42" in head
    runs = sum(len(group.seeds) for one in experiments().values() for group in one.groups)
    assert f"<dd>{runs}</dd>" in head
    assert "2 min 00 s" in head
    assert '<div class="alarm"' not in whole


@pytest.mark.usefixtures("plain_domains")
def test_an_unexpected_verdict_is_named_at_the_head(tmp_path: Path) -> None:
    numbers = {"broken": "T_c v ≤ Lv <b>", "worst": "nan"}
    found = reproduction(tmp_path, claims=entries(O7={"verdict": "fails", "numbers": numbers}, R3={"verdict": "holds"}))
    text = page(found, {}, SLIPS, time_of(found))
    alarm = section(text, '<div class="alarm"', "</div>")
    assert "2 claims not as expected" in alarm
    assert '<a href="#claim-O7">O7</a>' in alarm
    assert '<a href="#claim-R3">R3</a>' in alarm
    assert "fails, expected: holds" in section(text, 'id="claim-O7"')
    assert "<strong>What failed:</strong> T<sub>c</sub> v ≤ Lv &lt;b&gt;" in section(text, 'id="claim-O7"')
    assert "not a number" in section(text, 'id="claim-O7"')
    assert "40 of 42" in text
    assert text.count('aria-label="fails, expected: holds" title="fails, expected: holds">✗!</span>') == 2
    assert "**2 claims not as expected: O7, R3.**" in markdown(found, {}, SLIPS, time_of(found))


@pytest.mark.usefixtures("plain_domains")
def test_claims_that_were_not_run_are_no_surprise_and_experiments_may_be_missing(tmp_path: Path) -> None:
    away = {"verdict": "not-run", "numbers": {"reason": "not asked for, or not yet done"}}
    claims = entries(**{name: away for name in entries() if name != "E1"})
    claims["R5"] |= away
    found = reproduction(tmp_path, claims=claims, found={})
    object.__setattr__(found, "surprises", ())
    text = page(found, {}, (), time_of(found))
    assert "1 of 1" in text
    assert "Claims not run" in text
    assert '<div class="alarm"' not in text
    assert text.count("This experiment is not complete here") == 4
    assert "spanrl reproduce --only G3</code>" in text
    assert "The sweeps over c are not complete here." in text
    assert "The slips of the text could not be measured." in text
    assert "spanrl reproduce --only R5</code>" in text
    assert "not run, expected: holds" in section(text, 'id="claim-O1"')
    told = markdown(found, {}, (), time_of(found))
    assert "| O1 |" in told
    assert "– not-run | holds |" in told
    assert "This experiment is not complete here." in told


@pytest.mark.usefixtures("plain_domains")
def test_whatever_comes_from_data_is_escaped(tmp_path: Path) -> None:
    evil = dict.fromkeys(("title", "statement", "place", "tolerance", "reason"), EVIL) | {
        "numbers": {EVIL: EVIL, "list": [EVIL]}
    }
    found = reproduction(tmp_path, claims=entries(E1=evil, G2=evil, R3=evil | {"verdict": "fails"}))
    text = page(found, drawn(), SLIPS, time_of(found))
    assert "<img src=x" not in text
    assert "&lt;img src=x" in text
    read = Reader(text)
    assert (read.wrong, read.open) == ([], [])
    assert not any("=" in name for name in read.attributes)
    assert not re.search(r"(?<!\\)<img", markdown(found, drawn(), SLIPS, time_of(found)))


@pytest.mark.usefixtures("plain_domains")
def test_numbers_that_are_none_do_not_break_the_page(tmp_path: Path) -> None:
    broken = curves(2.0, shape=lambda t: np.full(t.size, np.nan))
    found = reproduction(tmp_path, found=experiments() | {"three-state": experiment("three-state", [curves(), broken])})
    text = page(found, {}, SLIPS, time_of(found))
    assert "SCAL c = 2" in section(text, 'id="claim-G2"')
    assert "–" in section(text, 'id="claim-G2"')
    markdown(found, {}, SLIPS, time_of(found))


def test_a_part_that_cannot_be_made_says_so_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise OptionError("analyse: <broken> on purpose.")

    monkeypatch.setattr(domains, "analyse", fails)
    text = domains.domains_section()
    assert (
        text.count("this part could not be made (OptionError: analyse: &lt;broken&gt; on purpose.)")
        == len(domains.DOMAINS) + 1
    )
    assert 'id="domains"' in text


def test_indices_are_set_as_such_and_infinity_is_written(whole: str) -> None:
    assert "T<sub>c</sub>" in whole
    assert "<dt>diameter D</dt><dd>∞</dd>" in whole
    assert "1, ∞" in section(whole, 'id="slip-one"')
    assert "not shown by these numbers" in section(whole, 'id="slip-two"')


def test_the_backups_of_r5_stand_in_a_table(whole: str) -> None:
    assert '<th scope="row">three-state, c = 2</th><td>1,000</td><td>600</td><td>0.6</td>' in whole


# Markdown


def test_markdown_tables_parse(tmp_path: Path) -> None:
    found = reproduction(tmp_path, claims=entries(E1={"title": EVIL}))
    text = markdown(found, drawn(), SLIPS, time_of(found))
    tables, block = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            block.append(line)
        elif block:
            tables.append(block)
            block = []
    assert len(tables) >= 14
    for rows in tables:
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
        assert len(widths) == 1, rows[0]
        assert set(rows[1]) <= set("| -")
    claims = next(rows for rows in tables if rows[0].startswith("| Id |"))
    assert len(claims) == 2 + 42
    assert "| R3 |" in claims[2 + list(entries()).index("R3")]
    assert {f"figures/{name}.png" for name in drawn()} == set(re.findall(r"\]\((figures/[^)]+)\)", text))
    assert "2026-01-02 03:04 UTC" in text
    assert "`spanrl reproduce --scale smoke --out DIR`" in text


# files


def picture(name: str) -> Picture:
    figure = new_figure()
    figure.add_subplot().plot([0, 1], [0, 1])
    return Picture(name, "A title", "A caption.", figure)


def test_pages_and_figures_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "pictures", lambda _: [picture("bound")])
    write.write_pages(reproduction(tmp_path))
    kinds = {
        "figures/bound.png": b"\x89PNG",
        "figures/bound.pdf": b"%PDF",
        "report.html": b"<!DOCTYPE",
        "reproduction.md": b"# ",
    }
    for name, start in kinds.items():
        assert (tmp_path / name).read_bytes().startswith(start)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")} == set(kinds)
    assert 'id="figure-bound"' in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.usefixtures("plain_domains")
def test_a_figure_that_cannot_be_drawn_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pictures(found: Any) -> list[Picture]:
        if "three-state" in found:
            raise ValueError("broken on purpose")
        return [picture(name) for name in found if name == "diameter"]

    monkeypatch.setattr(write, "pictures", pictures)
    write.write_pages(reproduction(tmp_path, slips=()))
    assert [path.name for path in sorted((tmp_path / "figures").iterdir())] == ["diameter.pdf", "diameter.png"]
    text = (tmp_path / "report.html").read_text("utf-8")
    assert 'id="figure-diameter"' in text
    assert "The slips of the text could not be measured." in text
