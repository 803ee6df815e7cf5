"""The frame of the benchmarks: targets, ratios, tables, what pages show of the results, and parts that fail."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

ROOT = Path(__file__).parents[1]
MODULES = ("harness", "tables", "results", "run")

BY_HAND = {
    "date": "2026-01-31",
    "machine": {"processor": "Abacus 3", "cores": 2, "memory": 7.8, "python": "3.11.7", "numpy": "2.1", "numba": "0.6"},
    "seconds": {"total": 3.0, "one": 3.0},
    "failed": {},
    "rows": [
        {
            "group": "Running", "case": "fast", "value": 1.2345, "unit": "×", "target": 1.3, "at_least": False, "least": 1.1,
            "note": "not shown", "data": {"readme": "`learn` over pure simulation"}, "met": True,
        },
        {
            "group": "Running", "case": "no label", "value": 7.0, "unit": "s", "target": None, "at_least": False, "least": 7.0,
            "note": "", "data": {}, "met": None,
        },
        {
            "group": "Peers", "case": "slow", "value": 2.0, "unit": "×", "target": 3.0, "at_least": True, "least": 1.9,
            "note": "", "data": {"readme": "Against a peer"}, "met": False,
        },
        {
            "group": "Peers", "case": "absent", "value": None, "unit": "×", "target": 3.0, "at_least": True, "least": None,
            "note": "it does not install", "data": {"readme": "Against another"}, "met": False,
        },
    ],
}  # fmt: skip

TABLE = """\
| what | measured | target | |
|---|---:|---:|---|
| `learn` over pure simulation | 1.23 × | ≤ 1.3 | met |
| Against a peer | 2 × | ≥ 3 | **missed** |
| Against another | – | ≥ 3 | **missed**: it does not install |

One run of `make bench` on 2026-01-31, medians of its repeats: Abacus 3, 2 cores, 8 GiB, Python 3.11.7, numpy 2.1, numba 0.6. \
All rows: `benchmarks/results.json`."""


@pytest.fixture(scope="module")
def benchmarks():
    """The modules of benchmarks/, which is a folder of scripts and no package."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        yield {name: __import__(name) for name in MODULES}
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
        for name in MODULES:
            sys.modules.pop(name)


def test_upper_and_lower_targets(benchmarks):
    Row = benchmarks["harness"].Row
    assert Row("g", "c", 1.3, "×", 1.3).met is True
    assert Row("g", "c", 1.31, "×", 1.3).met is False
    assert Row("g", "c", 3.0, "×", 3.0, at_least=True).met is True
    assert Row("g", "c", 2.99, "×", 3.0, at_least=True).met is False
    assert Row("g", "c", 5.0, "×").met is None
    assert Row("g", "c", None, "×").met is None
    assert Row("g", "c", None, "×", 3.0, at_least=True).met is False
    assert Row("g", "c", None, "×", 3.0).as_json()["met"] is False


def test_ratios_are_taken_turn_by_turn(benchmarks):
    harness = benchmarks["harness"]
    over, under = harness.Timing((2.0, 30.0, 4.0)), harness.Timing((1.0, 10.0, 4.0))
    row = harness.ratio_row("g", "c", over, under, target=2.0, data={"readme": "x"})
    assert (row.value, row.least, row.unit, row.met) == (2.0, 1.0, "×", True)
    assert row.data == {"readme": "x"}
    with pytest.raises(ValueError, match="shorter"):
        harness.ratio_row("g", "c", over, harness.Timing((1.0,)))


def test_values(benchmarks):
    row = benchmarks["harness"].value_row("g", "c", [5.0, 1.0, 3.0, 4.0], "s", target=3.0)
    assert (row.value, row.least, row.met) == (3.5, 1.0, False)


def test_the_speed_table(benchmarks):
    assert benchmarks["results"].speed_table(BY_HAND) == TABLE


def test_what_was_missed_is_told_also_without_a_line_of_its_own(benchmarks):
    row = benchmarks["harness"].Row
    rows = [
        row("Speed", "of light", 2.0, "s", 1.0),
        row("Speed", "of sound", 0.5, "s", 1.0),
        row("Speed", "of thought", 9.0, "s"),
    ]
    table = benchmarks["results"].speed_table({**BY_HAND, "rows": [one.as_json() for one in rows]})
    assert "Missed besides these: Speed, of light: 2 s (≤ 1)." in table
    assert "sound" not in table
    assert "thought" not in table


def test_sections_stand_between_their_markers(benchmarks, monkeypatch):
    results = benchmarks["results"]
    monkeypatch.setattr(results, "SECTIONS", {"speed table": lambda _: "new", "speed figures": lambda _: "some"})
    page = "before\n<!-- speed table -->\nold\n<!-- /speed table -->\nbetween\n<!-- speed figures -->\n<!-- /speed figures -->\nafter"
    assert results.with_sections(page, BY_HAND) == page.replace("old", "new").replace(
        "figures -->\n<!--", "figures -->\nsome\n<!--"
    )
    with pytest.raises(SystemExit, match="must have a marker"):
        results.with_sections("no markers", BY_HAND)
    with pytest.raises(SystemExit, match="once each"):
        results.with_sections("<!-- speed table -->", BY_HAND)


def test_three_figures_are_shown_by_their_labels(benchmarks, monkeypatch):
    results = benchmarks["results"]
    label = next(row["data"]["readme"] for row in BY_HAND["rows"] if row["data"].get("readme"))
    monkeypatch.setattr(results, "FIGURES", (label, "never measured"))
    first, second = results.speed_figures(BY_HAND).splitlines()
    assert first.startswith(f"* {label}: 1.23 ×")
    assert second == "* never measured: –"


def test_check(benchmarks, tmp_path, monkeypatch, capsys):
    results = benchmarks["results"]
    page = tmp_path / "page.md"
    page.write_text("# Title\n<!-- speed table -->\n<!-- /speed table -->\nend\n", encoding="utf-8")
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results.json")
    results.RESULTS.write_text(json.dumps(BY_HAND), encoding="utf-8")
    assert results.main([str(page), "--check"]) == 1
    assert "does not show what is in" in capsys.readouterr().err
    assert results.main([str(page)]) == 0
    shown = page.read_text(encoding="utf-8")
    assert shown == f"# Title\n<!-- speed table -->\n{TABLE}\n<!-- /speed table -->\nend\n"
    assert results.main([str(page), "--check"]) == 0


def test_the_pages_agree_with_the_results(benchmarks):
    """`make bench` writes all of them."""
    results = benchmarks["results"]
    assert results.main([str(ROOT / "docs" / "speed.md"), str(ROOT / "README.md"), "--check"]) == 0
    assert "–" not in results.speed_figures(json.loads(results.RESULTS.read_text("utf-8")))


def test_tables_at_100_columns(benchmarks):
    tables = benchmarks["tables"]
    out = Console(width=100, record=True, highlight=False, markup=False)
    long = BY_HAND["rows"][0] | {
        "group": "Words",
        "case": "c" * 70,
        "note": "a word " * 30 + "the end",
        "unit": "u" * 15,
    }
    tables.print_tables([*BY_HAND["rows"], long], out)
    tables.print_summary(BY_HAND["rows"], out)
    lines = out.export_text().splitlines()
    assert max(map(len, lines)) <= 100
    shown = [line.split() for line in lines if line.strip()]
    assert ["fast", "1.23", "×", "1.1", "≤", "1.3", "met"] in shown
    assert ["slow", "2", "×", "1.9", "≥", "3", "MISSED"] in shown
    assert ["absent", "–", "×", "≥", "3", "not", "measured"] in shown
    assert "it does not install" in " ".join(" ".join(words) for words in shown)
    assert any(words[-2:] == ["the", "end"] for words in shown), "a note is not cut"
    assert ["1", "of", "3", "targets", "met."] in shown
    assert sum(words[0] == "missed:" for words in shown) == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.01234, "0.0123"), (1234.5, "1230"), (123456.0, "123000"), (None, "–"), (40.0, "40"), (2.5e6, "2.5e+06")],
)
def test_numbers(benchmarks, value, text):
    assert benchmarks["tables"].number(value) == text


@pytest.fixture
def two_parts(benchmarks, monkeypatch):
    """One part that works and one that does not, in place of the real ones."""
    run, part = benchmarks["run"], ModuleType("part_of_the_test")

    def works(smoke):
        return [benchmarks["harness"].Row("Part", f"smoke={smoke}", 1.0, "s", 0.5)]

    def breaks(smoke):
        raise RuntimeError("out of paper")

    part.works, part.breaks = works, breaks
    monkeypatch.setitem(sys.modules, part.__name__, part)
    monkeypatch.setattr(run, "PARTS", {"bad": f"{part.__name__}:breaks", "good": f"{part.__name__}:works"})
    return run


def test_a_part_that_fails_does_not_stop_the_rest(two_parts, tmp_path, capsys):
    path = tmp_path / "results.json"
    assert two_parts.main(["--smoke", "--out", str(path)]) == 1
    results, shown = json.loads(path.read_text(encoding="utf-8")), capsys.readouterr().out
    assert results["failed"] == {"bad": "RuntimeError: out of paper"}
    assert [(row["case"], row["met"]) for row in results["rows"]] == [("smoke=True", False)]
    assert set(results["seconds"]) == {"total", "bad", "good"}
    assert results["machine"]["cores"] >= 1
    assert "[1/2] bad: FAILED" in shown
    assert "failed: bad: RuntimeError: out of paper" in shown
    assert list(tmp_path.iterdir()) == [path]


def test_one_part_alone(two_parts, tmp_path):
    """A missed target is no failure: it is shown."""
    path = tmp_path / "results.json"
    assert two_parts.main(["--only", "good", "--out", str(path)]) == 0
    assert json.loads(path.read_text(encoding="utf-8"))["rows"][0]["case"] == "smoke=False"
    with pytest.raises(SystemExit):
        two_parts.main(["--only", "ugly"])
