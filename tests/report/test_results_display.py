"""What a notebook shows of an experiment: the table of its regrets, escaped, and not all of a large one."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from by_hand import ENVS, EVIL, experiment

from spanrl.experiments.spec import SpecEntry


def test_html_of_results(tmp_path: Path) -> None:
    agents = [SpecEntry(f"ucrl[delta=0.{k:03d}]", f"{EVIL[k % 3]} {k}") for k in range(1, 51)]
    results = experiment(tmp_path / "x", envs=ENVS[:1], agents=agents, seeds=1)
    html, cells, tags = results._repr_html_(), [], set()

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            tags.add(tag)

        def handle_data(self, data):
            cells.append(data)

    Reader().feed(html)
    assert cells[0] == f"Results: {results.name}, 50 of 50 cells done"
    assert tags == {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    assert cells[1:7] == ["env", "agent", "runs", "t", "regret", "95 % interval"]
    assert f"{EVIL[1]} 1" in cells
    assert cells[-1] == "… 14 more groups"
    assert "$" not in html
    assert str(results).splitlines()[1].split() == ["env", "agent", "runs", "t", "regret", "95", "%", "interval"]
