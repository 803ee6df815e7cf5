"""What notebooks show of results: short, escaped, and the same facts as the text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import spanrl
from spanrl import MDP, Policy
from spanrl.display import SHOWN_IN_HTML, Table, as_html, as_text

HOSTILE = "<script>alert('x')</script>\x1b[31m$x$ & \"y\"\n"


class Tags(HTMLParser):
    """Tags in the order of their appearance, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def large():
    """Return a model of 200 states in a ring, with hostile names."""
    S = 200
    names = [f"{HOSTILE}{s}" for s in range(S)]
    pairs = np.repeat(np.arange(S), 2), np.tile([0, 1], S), np.arange(2 * S + 1)
    succ = np.stack(((np.arange(S) + 1) % S, np.arange(S)), axis=1).ravel()
    reward = np.zeros(2 * S)
    reward[1] = 1.0
    return MDP.from_pairs(*pairs, succ, np.ones(2 * S), reward, state_names=names, action_names=[HOSTILE, "stay"])


@pytest.fixture(scope="module")
def results(large):
    """Return one of each thing that a notebook shows; tests/report has that of an experiment."""
    solution = spanrl.solve(large)
    run = spanrl.learn(large, "ucrl", horizon=100, seed=0)
    other = Policy(1.0 - solution.policy.probs)
    things = [
        large, solution, solution.policy, spanrl.evaluate(large, solution.policy),
        spanrl.analyse(large, diameter=False), run, run.model, solution.explain(large.state_names[1]),
        spanrl.compare(large, solution.policy, other),
    ]  # fmt: skip
    return {type(thing).__name__: thing for thing in things}


NAMES = ("MDP", "Solution", "Policy", "Evaluation", "Analysis", "Run", "LearnedModel", "Explanation", "Comparison")


@pytest.mark.parametrize("name", NAMES)
def test_html_is_short_and_escaped(results, name) -> None:
    html = results[name]._repr_html_()
    found = Tags(html)
    assert found.tags <= {"div", "strong", "br", "table", "thead", "tbody", "tr", "th", "td"}
    assert len(html) < 20_000
    assert html.count("<tr>") <= SHOWN_IN_HTML + 1
    assert "\x1b" not in html
    assert "$" not in html, "Jupyter would set a formula"
    assert found.text.startswith(name if name != "Explanation" else "State ")


@pytest.mark.parametrize("name", NAMES)
def test_print_is_short(results, name) -> None:
    text = str(results[name])
    assert text.count("\n") < 45
    assert "\x1b" not in text


@pytest.mark.parametrize("name", ["MDP", "Analysis", "Run"])
def test_html_says_what_print_says(results, name) -> None:
    text = Tags(results[name]._repr_html_()).text
    first = str(results[name]).splitlines()[1]
    assert re.sub(r"\W", "", first)[:60] in re.sub(r"\W", "", text)


def test_solutions_show_action_and_bias() -> None:
    html = Tags(spanrl.solve(spanrl.make("two-state").mdp)._repr_html_()).text
    assert html.endswith("stateactionbiass0a00s1a11")


def test_evaluations_show_gains_by_name() -> None:
    mdp = spanrl.make("two-state").mdp
    found = Tags(spanrl.evaluate(mdp, Policy.deterministic([0, 1]))._repr_html_()).text
    assert found.endswith("stategainbiass01-1s110")


def test_columns_are_aligned_by_what_a_terminal_shows() -> None:
    text = as_text(Table(("r̂", "b"), [("城", "1"), ("xyz", "2")]))
    assert text.splitlines() == ["r̂    b", "城   1", "xyz  2"]


def test_long_cells_are_cut() -> None:
    assert len(as_html("x", Table(("a",), [("y" * 10**6,)]))) < 1000
