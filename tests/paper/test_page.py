"""The page of the reproduction: its numbers against scipy, its parts against a reader of HTML, and what is missing or broken."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_by_hand import EVIL, HORIZON, curves, drawn, entries, experiment, experiments, reproduction, time_of
from scipy import stats

from spanrl.axes import new_figure
from spanrl.errors import OptionError
from spanrl.paper.claims import SMOKE, all_claims
from spanrl.paper.folder import Folder
from spanrl.paper.page import domains, write
from spanrl.paper.page.beyond import NO_BACKUPS, backup_rows, sweep_rows, sweep_sentence
from spanrl.paper.page.contents import EXPERIMENTS, GROUPS, TITLES
from spanrl.paper.page.findings import compared, costs, decades, finals, over_time
from spanrl.paper.page.html import page
from spanrl.paper.page.looks import Picture
from spanrl.paper.page.making import dominates, spent
from spanrl.paper.page.markdown import markdown
from spanrl.paper.page.notation import formula, plain, with_powers
from spanrl.paper.page.parts import Undrawn
from spanrl.paper.page.sentences import comparison_sentence, horizon_sentence, order_sentence, sentences
from spanrl.paper.system import System
from spanrl.report.templates import Markup

FIRST = ("G1", "G2", "G3", "G4")
"""The claims that the figures of the experiments were made for."""


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
    return page(found, drawn(), time_of(found))


@pytest.fixture
def plain_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the graphs out where a test is about something else: they take a second."""
    monkeypatch.setattr("spanrl.paper.page.html.domains_section", lambda: Markup('<section id="domains"></section>'))


def section(text: str, start: str, end: str = "</article>") -> str:
    return text[(i := text.index(start)) : text.index(end, i)]


def claim_part(text: str, name: str) -> str:
    """Return what the page shows of a claim: to the end of its fold, or of its experiment."""
    return section(text, f'id="claim-{name}"', "</article>" if name in FIRST else "</details>")


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
    assert said.endswith("Elsewhere the difference is not significant at this level.")


def test_what_the_paper_says_of_all_bounds_is_told_at_the_horizon() -> None:
    ucrl, low, same, high = (
        curves(level=5.0),
        curves(2.0, level=2.0),
        curves(5.0, level=5.0, place=0),
        curves(10.0, level=9.0),
    )
    assert (
        horizon_sentence(over_time([ucrl, low, same, replace(same, span_bound=7.0, agent="scal[span_bound=7]")]))
        == "At T this shows with c = 2; with c = 5 and 7 the difference is not significant at this level."
    )
    assert (
        horizon_sentence(over_time([ucrl, low, replace(low, span_bound=3.0, agent="")]))
        == "At T this shows with every c."
    )
    assert horizon_sentence(over_time([ucrl, same, high])) == (
        "At T this shows with no c; with c = 5 the difference is not significant at this level; with c = 10 SCAL is significantly worse."
    )
    told = over_time([ucrl, low])
    assert sentences("three-state", told)[-1].startswith(
        "The paper says that SCAL always performs better than UCRL (claim G5). At T"
    )
    assert not any("The paper says" in one for one in sentences("knight-quest", told))


def test_the_order_in_c_is_told_where_it_does_not_hold() -> None:
    worse = curves(2.0, level=5.0, shape=lambda t: np.where(t < 5000, 1.0, 0.1) * np.sqrt(t))
    agents = [curves(level=9.0), worse, curves(5.0, level=2.0)]
    told = over_time(agents)
    assert told.disordered == (1000,)
    p_value = stats.ttest_rel(*(group.pseudo_regret[:, list(group.t).index(1000)] for group in agents[1:])).pvalue
    assert p_value < 1e-3
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
    assert cost.microseconds == pytest.approx(2500)
    slow = replace(curves(seeds=3), planning=np.array([9.0, 0.25, 0.26]))  # the first run loads kernels
    assert costs({"x": experiment("x", [slow])})[0].microseconds == pytest.approx(2600)


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
    assert (
        "grows linearly (t to the power 0.8 or more) with c = 5; at a rate in between (0.6 to 0.8) with c = 2; sub-linearly"
        in said
    )
    assert "sub-linearly (0.6 or less) with c = 10 and 20." in said
    assert (
        "With bounds above sp(h*) the regret grows linearly too: these runs are too short to tell what a smaller one costs."
        in said
    )
    said = sweep_sentence("three-state", [row for row in rows if row.span_bound != 5])
    assert "Every bound below sp(h*) that was tried costs linear regret." in said


def test_the_sweep_tells_the_best_bound_and_what_too_small_a_bound_costs() -> None:
    rows = sweep_rows("three-state", experiments())
    least = min(rows[1:], key=lambda row: row.pseudo_regret.value)
    assert least.span_bound == 2.0
    said = sweep_sentence("three-state", rows)
    assert (
        f"At T = 10⁵ the least mean pseudo-regret, {least.pseudo_regret.value:.1f}, is that of c = 2, above sp(h*)."
        in said
    )
    assert "No bound below sp(h*) that was tried costs linear regret within these runs." in said
    half, *rest = rows[1:]
    lower = replace(half, span_bound=0.25, slope=1.0, pseudo_regret=replace(half.pseudo_regret, value=1.0))
    said = sweep_sentence("three-state", [lower, half, *rest])
    assert "least mean pseudo-regret, 1, is that of c = 0.25, below sp(h*)." in said
    assert (
        "Of the bounds below sp(h*), linear regret comes with c = 0.25, and not with c = 0.5 within these runs." in said
    )


def test_a_bound_whose_growth_is_unknown_is_named() -> None:
    rows = [
        replace(row, slope=float("nan")) if row.span_bound == 5 else row
        for row in sweep_rows("three-state", experiments())
    ]
    assert "; at a rate that could not be measured with c = 5." in sweep_sentence("three-state", rows)


def test_time_is_split_and_what_dominates_is_told(tmp_path: Path) -> None:
    found = reproduction(tmp_path)
    time = time_of(found)
    assert time.total == 120.0  # what earlier pages took does not count twice
    runs = sum(len(group.seeds) for one in found.experiments.values() for group in one.groups)
    kinds = {"planning": 0.25 * runs, "simulation": 0.75 * runs, "claims": 2 * 30.0, "the rest": 2 * (120 - 30) - runs}
    assert time.busy == kinds
    assert sum(time.busy.values()) == 2 * time.total
    assert "Of 2 min 00 s on the clock, 50\u00a0% went to the experiment knight-quest" in dominates(time)
    assert f"of the cores’ time, {kinds['the rest'] / 240:.0%} went to the rest".replace("%", "\u00a0%") in dominates(
        time
    )
    assert list(time.parts)[-1] == "figures"
    assert "figures" not in spent(found.run, {}, 0.0).parts
    assert spent({}, found.experiments, 1.0).busy["the rest"] == 0.0
    assert dominates(spent({}, {}, 0.0)) == "No time was measured."


# the page


def test_every_claim_has_anchor_verdict_and_tolerance(whole: str) -> None:
    ids = Reader(whole).ids
    for name, entry in entries().items():
        assert ids.count(f"claim-{name}") == 1
        part = claim_part(whole, name)
        assert f"</span> {entry['verdict']}</span>" in part
        assert "Tolerance or level:" in part
    assert "as expected" not in whole
    assert "Mixtures are over augmented extended actions" in claim_part(whole, "R3")


def test_results_come_first(whole: str) -> None:
    order = [key for key in Reader(whole).ids if key in TITLES]
    assert order == list(TITLES) == ["experiments", "sweep", "claims", "domains", "slips", "making"]
    assert [key for key in Reader(whole).ids if key in ("claim-G4", "sweep", "bound", "knight", "slip-one")] == [
        "claim-G4", "sweep", "bound", "knight", "slip-one",
    ]  # fmt: skip


def test_all_but_results_is_folded(whole: str) -> None:
    assert whole.count("<details") > 60
    assert not re.findall(r"<details[^>]* open", whole)
    without = re.sub(r"<details.*?</details>", "", whole, flags=re.DOTALL)
    assert "<table" not in without
    assert "Printed" not in without


def test_what_else_the_paper_says_of_a_figure_stands_with_it(whole: str, tmp_path: Path) -> None:
    article = claim_part(whole, "G2")
    ids = [key for key in Reader(article).ids if key.startswith("claim-")]
    assert ids == ["claim-G5", "claim-G6", "claim-G7"]
    assert article.index('id="figure-three-state"') < article.index("What else the paper says of it:")
    assert "ScOpt never truncates" in claim_part(whole, "G5")
    found = reproduction(
        tmp_path, claims=entries(G5={"numbers": {"broken": "SCAL is no better than UCRL with c = 25"}})
    )
    text = markdown(found, drawn(), time_of(found))
    assert "### G2. " in text
    assert "\n#### G5. Three states, D = 200: SCAL is always better than UCRL\n" in text
    assert "**✗ fails**\n\n#### G6. " in text
    assert "G5, fails. What failed: SCAL is no better than UCRL with c = 25." in text
    assert text.count("figures/three-state.png") == 1


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
    assert "data:" not in without_names
    assert "src=" not in re.sub(
        r"<script.*?</script>", "", without_names.replace("script-src", ""), flags=re.DOTALL
    ).replace("img src=x", "")
    assert whole.count('<div class="panel"><svg ') == 2 * len(drawn())


def test_facts_count_claims_runs_and_steps(whole: str) -> None:
    head = section(whole, '<dl class="facts">', "</dl>")
    told = re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", head)
    assert told[:5] == [("Statements", "45"), ("Hold", "41"), ("Fail", "4"), ("Vacuous", "0"), ("Not run", "0")]
    runs = sum(len(group.seeds) for one in experiments().values() for group in one.groups)
    assert f"<dd>{runs}</dd>" in head
    assert "2 min 00 s" in head
    assert '<div class="alarm"' not in whole
    known = section(whole, '<div class="unheld"', "</div>")
    assert re.findall(r'href="#claim-(..)"', known) == ["R3", "G5", "G6", "G7"]


@pytest.mark.usefixtures("plain_domains")
def test_an_unexpected_verdict_is_named_at_the_head(tmp_path: Path) -> None:
    numbers = {"broken": "T_c v ≤ Lv <b>", "worst": "nan"}
    found = reproduction(tmp_path, claims=entries(O7={"verdict": "fails", "numbers": numbers}, R3={"verdict": "holds"}))
    text = page(found, {}, time_of(found))
    alarm = section(text, '<div class="alarm"', "</div>")
    assert "2 claims not as expected" in alarm
    assert '<a href="#claim-O7">O7</a>' in alarm
    assert '<a href="#claim-R3">R3</a>' in alarm
    part = claim_part(text, "O7")
    assert part.startswith('id="claim-O7" open>')
    assert "fails, expected: holds" in part
    assert "<strong>What failed:</strong> T<sub>c</sub> v ≤ Lv &lt;b&gt;" in part
    assert "not a number" in part
    assert "<dt>Hold</dt><dd>41</dd>" in text
    assert "<dt>Fail</dt><dd>4</dd>" in text
    assert "O7" not in section(text, '<div class="unheld"', "</div>")
    assert text.count('aria-label="fails, expected: holds" title="fails, expected: holds">✗!</span>') == 2
    assert "**2 claims not as expected: O7, R3.**" in markdown(found, {}, time_of(found))


@pytest.mark.usefixtures("plain_domains")
def test_claims_that_were_not_run_are_no_surprise_and_experiments_may_be_missing(tmp_path: Path) -> None:
    away = {"verdict": "not-run", "numbers": {"reason": "not asked for, or not yet done"}}
    claims = entries(**{name: away for name in entries() if name != "E1"})
    claims["R5"] |= away
    found = reproduction(tmp_path, claims=claims, found={}, slips=())
    object.__setattr__(found, "surprises", ())
    text = page(found, {}, time_of(found))
    assert "<dt>Hold</dt><dd>1</dd>" in text
    assert "<dt>Not run</dt><dd>44</dd>" in text
    assert '<div class="alarm"' not in text
    assert text.count("This experiment is not complete here") == 4
    assert "spanrl reproduce --only G3</code>" in text
    assert "Three states, D = 200: the sweep over c is not complete here." in text
    assert "Knight Quest: a sweep over c is not part of the scale smoke." in text
    assert "The slips of the text were not measured." in text
    assert "spanrl reproduce --only R5</code>" in text
    assert "not run</span>" in claim_part(text, "O1")
    told = markdown(found, {}, time_of(found))
    assert "| O1 |" in told
    assert "– not-run | holds |" in told
    assert "not asked for" not in told
    assert "This experiment is not complete here." in told
    assert "Knight Quest: a sweep over c is not part of the scale smoke." in told


@pytest.mark.usefixtures("plain_domains")
def test_whatever_comes_from_data_is_escaped(tmp_path: Path) -> None:
    evil = dict.fromkeys(("title", "statement", "place", "tolerance", "reason"), EVIL) | {
        "numbers": {EVIL: EVIL, "list": [EVIL]}
    }
    found = reproduction(tmp_path, claims=entries(E1=evil, G2=evil, R3=evil | {"verdict": "fails"}))
    text = page(found, drawn(), time_of(found))
    assert "<img src=x" not in text
    assert "&lt;img src=x" in text
    read = Reader(text)
    assert (read.wrong, read.open) == ([], [])
    assert not any("=" in name for name in read.attributes)
    assert not re.search(r"(?<!\\)<img", markdown(found, drawn(), time_of(found)))


@pytest.mark.usefixtures("plain_domains")
def test_numbers_that_are_none_do_not_break_the_page(tmp_path: Path) -> None:
    broken = curves(2.0, shape=lambda t: np.full(t.size, np.nan))
    found = reproduction(tmp_path, found=experiments() | {"three-state": experiment("three-state", [curves(), broken])})
    text = page(found, {}, time_of(found))
    assert "SCAL c = 2" in section(text, 'id="claim-G2"')
    assert "–" in section(text, 'id="claim-G2"')
    markdown(found, {}, time_of(found))


def test_a_part_that_cannot_be_made_says_so_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise OptionError("analyse: <broken> on purpose.")

    monkeypatch.setattr(domains, "analyse", fails)
    text = domains.domains_section()
    assert (
        text.count("this part could not be made (OptionError: analyse: &lt;broken&gt; on purpose.)")
        == len(domains.DOMAINS) + len(domains.COUNTEREXAMPLES) + 1
    )
    assert 'id="domains"' in text


def test_indices_are_set_as_such_and_infinity_is_written(whole: str) -> None:
    assert "T<sub>c</sub>" in whole
    assert "<dt>diameter D</dt><dd>∞</dd>" in whole
    assert '<span class="one">1</span>, ∞' in section(whole, 'id="slip-one"', "</details>")
    assert "not shown by these numbers" in section(whole, 'id="slip-two"', "</details>")


@pytest.mark.parametrize(
    ("words", "html"),
    [
        ("sp(L_η v) ≤ η", "sp(L<sub>η</sub> v) ≤ η"),
        ("argmax_π g^π ⊆ Π*_c", "argmax<sub>π</sub> g<sup>π</sup> ⊆ Π*<sub>c</sub>"),
        ("‖_{∞,1} max |H_ij|, ‖H_P̂‖", "‖<sub>∞,1</sub> max |H<sub>ij</sub>|, ‖H<sub>P̂</sub>‖"),
        ("riverswim[n_states=4]", "riverswim[n_states=4]"),
        ("tol = 1e-10.", "tol = 10⁻¹⁰."),
        ("T = 1e+08; 4.979e−11", "T = 10⁸; 4.979·10⁻¹¹"),
        ("1e999 and 3e2x", "1e999 and 3e2x"),
    ],
)
def test_formulas_are_set(words: str, html: str) -> None:
    assert formula(words) == html


def test_powers_of_ten_have_one_form(whole: str) -> None:
    assert '<span class="one">10⁻¹²</span>' in whole
    without_style = re.sub(r"<(style|script).*?</\1>", "", whole, flags=re.DOTALL)
    assert not re.findall(r"\b\d(?:\.\d+)?e[+−-]?\d+\b", without_style)
    assert with_powers("−2.5e−7") == "−2.5·10⁻⁷"


def test_titles_that_cannot_be_set_have_no_underscore(whole: str) -> None:
    assert plain("T_c^n v_{n+1}") == "Tcn vn+1"
    titles = re.findall(r"<title[^>]*>([^<]*)</title>|aria-label=\"([^\"]*)\"| title=\"([^\"]*)\"", whole)
    assert "Tc belongs to no decision rule" in {text for found in titles for text in found}
    assert not [found for found in titles if re.search(r"[A-ZΓ]_c", "".join(found))]


def test_worst_excess_is_explained(whole: str) -> None:
    assert "a negative one has room to spare" in section(whole, 'id="claims"', "</p>")


def test_the_backups_of_r5_stand_in_a_table(whole: str, tmp_path: Path) -> None:
    assert '<th scope="row">three-state, c = 2</th><td>1,000</td><td>600</td><td>0.6</td>' in whole
    assert NO_BACKUPS not in whole
    found = reproduction(tmp_path)
    assert "| three-state, c = 2 | 1,000 | 600 | 0.6 |" in markdown(found, {}, time_of(found))
    without = reproduction(tmp_path, claims=entries() | {"R5": entries()["R5"] | {"numbers": {}}})
    assert NO_BACKUPS in markdown(without, {}, time_of(without))


def test_what_the_checker_of_r5_kept_on_disk_comes_to_the_table(real: System, tmp_path: Path) -> None:
    folder = Folder(tmp_path, SMOKE)
    folder.keep("R5", next(claim for claim in all_claims() if claim.id == "R5").run(real, SMOKE).to_json(), 1.0)
    kept = folder.kept("R5")
    assert kept is not None
    numbers = {name: value for name, value in kept["numbers"].items() if "backups of" in name}
    assert len(numbers) == 4
    rows = list(backup_rows(kept))
    assert [row[0] for row in rows] == [name.partition(":")[0] for name in numbers]
    assert [row[1:3] for row in rows] == [[f"{count:,.0f}" for count in pair] for pair in numbers.values()]


def test_backups_may_be_any_numbers_that_json_has() -> None:
    name = "two-state, c = 1: backups of EVI, of ScOpt"
    for value, cells in {
        "[340, 170]": ["340", "170", "0.5"],
        "[340.0, 170.0]": ["340", "170", "0.5"],
        "[0, 5.0]": ["0", "5", "–"],
        '["nan", "inf"]': ["–", "∞", "–"],
    }.items():
        assert list(backup_rows({"numbers": {name: json.loads(value)}})) == [["two-state, c = 1", *cells]]


# Markdown


def test_markdown_tables_parse(tmp_path: Path) -> None:
    found = reproduction(tmp_path, claims=entries(E1={"title": EVIL}))
    text = markdown(found, drawn(), time_of(found))
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
    assert len(claims) == 2 + 45
    read = Reader(page(found, {}, time_of(found)))
    assert [row.split(" | ")[0][2:] for row in claims[2:]] == [key[6:] for key in read.ids if key.startswith("claim-")]
    assert {f"figures/{name}.png" for name in drawn()} == set(re.findall(r"\]\((figures/[^)]+)\)", text))
    assert "2026-01-02 03:04 UTC" in text
    assert "`spanrl reproduce --scale smoke --out DIR`" in text


def test_markdown_tells_slips_as_a_list_and_explains_its_tables(tmp_path: Path) -> None:
    found = reproduction(tmp_path)
    text = markdown(found, drawn(), time_of(found))
    assert (
        "- **A slip of T<sub>c</sub>** (Sec. 1). Printed: printed &lt;b&gt; Right: right &amp; proper "
        "Numbers: a list: 1, ∞; nothing: not a number."
    ) in text
    assert "Numbers: none. Not shown by these numbers." in text
    assert "p is that of the paired t-test against UCRL, corrected by Holm’s method: \\* below 0.05" in text
    assert "The slope is that of the mean pseudo-regret against t" in text
    assert "&#39;" not in text


# files


def picture(name: str) -> Picture:
    figure = new_figure()
    figure.add_subplot().plot([0, 1], [0, 1])
    return Picture(name, "A title", "A caption.", figure)


def test_pages_and_figures_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "makers", lambda _: {"bound": lambda: picture("bound"), "planning": lambda: None})
    assert write.write_pages(reproduction(tmp_path)) == {}
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
def test_a_figure_that_cannot_be_drawn_says_why_and_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Picture:
        raise ValueError("broken <on> purpose")

    monkeypatch.setattr(write, "makers", lambda _: {"three-state": broken, "diameter": lambda: picture("diameter")})
    assert write.write_pages(reproduction(tmp_path)) == {"three-state": "ValueError: broken <on> purpose"}
    assert [path.name for path in sorted((tmp_path / "figures").iterdir())] == ["diameter.pdf", "diameter.png"]
    told = "This figure could not be drawn: ValueError: broken &lt;on&gt; purpose."
    text = (tmp_path / "report.html").read_text("utf-8")
    assert 'id="figure-diameter"' in text
    assert told in section(text, 'id="claim-G2"')
    assert told in (tmp_path / "reproduction.md").read_text("utf-8")
    assert Undrawn("x", "two\nlines").told == "This figure could not be drawn: two lines."
