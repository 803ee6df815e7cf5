"""The drawn MDPs: they say all of the model and nothing else, and every label can be read."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from spanrl import MDP, Env, Policy, make
from spanrl.envs.env import BERNOULLI, EnvInfo, Outcome
from spanrl.errors import OptionError
from spanrl.paper.page.graphs import drawing, mdp_graph
from spanrl.paper.page.wording import reward_text, value

ENVS = (
    "two-state",
    "three-state[delta=0.005]",
    "three-state[delta=0]",
    "counterexample-nonfeasible",
    "counterexample-fixed-point",
    "counterexample-fixed-point[extra_action=true]",
    "counterexample-cycle",
    "counterexample-cycle[duplicate=true]",
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
ACCENT = "var(--accent, #0b5cad)"
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def pairs(env: Env) -> list[tuple[int, int]]:
    return [(int(s), int(a)) for s, a in np.argwhere(env.mdp.to_dense()[2])]


def as_number(text: str) -> float:
    return float(Fraction(text.replace("−", "-")))


@pytest.mark.parametrize("name", ENVS)
def test_every_pair_with_its_reward_is_named_once(name: str) -> None:
    env = make(name)
    _, rewards, _ = env.mdp.to_dense()
    found = Counter()
    for text in texts(mdp_graph(env, caption=name)):
        if label := re.fullmatch(r"(a\d), r (=|~) (Be\()?([\d./]+)\)?", text):
            found[label[1], label[2] == "~", round(as_number(label[4]), 12)] += 1
    expected = Counter(
        (f"a{a}", any(o.law == BERNOULLI for o in env.outcomes(s, a)), round(rewards[s, a], 12)) for s, a in pairs(env)
    )
    assert found == expected


@pytest.mark.parametrize("name", ENVS)
def test_states_and_probabilities_are_those_of_the_model(name: str) -> None:
    env = make(name)
    P, _, _ = env.mdp.to_dense()
    shown = texts(mdp_graph(env, caption=name))
    assert Counter(text for text in shown if re.fullmatch(r"s\d", text)) == Counter(env.mdp.state_names)
    numbers = sorted(as_number(text) for text in shown if re.fullmatch(r"[\d./]+", text))
    assert np.allclose(numbers, np.sort(P[(P > 0) & (P < 1)]), rtol=0, atol=1e-12)
    assert len(shown) == env.mdp.n_states + env.mdp.n_pairs + len(numbers)


@pytest.mark.parametrize("name", [*ENVS, "riverswim"])
def test_arrows_lead_from_the_dot_of_a_pair_to_its_successors(name: str) -> None:
    env = make(name)
    P, _, _ = env.mdp.to_dense()
    graph = drawing(env)
    assert set(graph.arrows) == set(graph.actions) == set(pairs(env))
    for (s, a), arrows in graph.arrows.items():
        ends = []
        for arrow in arrows:
            assert arrow.at(0) == graph.layout.dots[s, a]
            gaps = [abs(arrow.at(1) - centre) - graph.radius for centre in graph.layout.states]
            ends.append(int(np.argmin(gaps)))
            assert 0 <= min(gaps) < 3
        assert ends == np.flatnonzero(P[s, a]).tolist()
        assert len(graph.probabilities[s, a]) == (len(ends) if len(ends) > 1 else 0)


@pytest.mark.parametrize("name", ENVS)
def test_no_label_covers_a_label_a_circle_or_a_dot_or_is_cut_off(name: str) -> None:
    env = make(name)
    graph = drawing(env)
    assert all(a.box.overlap(b.box) == 0 for a, b in combinations(graph.labels, 2))
    for label in graph.labels:
        half = complex(label.box.width, label.box.height) / 2
        for centre, radius in [(c, graph.radius) for c in graph.layout.states] + [
            (c, 5.5) for c in graph.layout.dots.values()
        ]:
            apart = centre - label.box.centre
            outside = complex(max(0.0, abs(apart.real) - half.real), max(0.0, abs(apart.imag) - half.imag))
            assert abs(outside) > radius
        for arrows in graph.arrows.values():
            assert label.box.holds(np.array([arrow.at(t) for arrow in arrows for t in np.linspace(0, 1, 300)])) == 0
    left, top, width, height = map(float, ElementTree.fromstring(mdp_graph(env, caption="x")).attrib["viewBox"].split())
    for corner in (corner for label in graph.labels for corner in label.box.corners):
        assert left < corner.real < left + width
        assert top < corner.imag < top + height


def test_boxes_overlap_when_they_share_an_area() -> None:
    label = drawing(make("two-state")).labels[0].box
    assert label.overlap(label) == pytest.approx(label.width * label.height)
    assert label.overlap(label._replace(centre=label.centre + label.width)) == 0
    assert label.overlap(label._replace(centre=label.centre + 1j * label.height)) == 0


@pytest.mark.parametrize("name", ENVS)
def test_the_policy_is_marked_and_nothing_else(name: str) -> None:
    env = make(name)
    first = dict(reversed(pairs(env)))  # the lowest action of each state
    policy = Policy.deterministic([first[s] for s in range(env.mdp.n_states)], env.mdp.n_actions)
    groups = [g for g in ElementTree.fromstring(mdp_graph(env, caption=name, policy=policy)) if g.tag == f"{SVG}g"]
    drawn = [g for g in groups if "stroke-width" in g.attrib and g.attrib["fill"] == "none"]
    assert len(drawn) == env.mdp.n_pairs
    assert sum(g.attrib["stroke"] == ACCENT for g in drawn) == env.mdp.n_states
    labels = [g[0].text or "" for g in groups if g.attrib.get("fill") == ACCENT]
    assert sorted(text.partition(",")[0] for text in labels) == sorted(f"a{a}" for a in first.values())
    assert ACCENT not in mdp_graph(env, caption=name)


def test_the_description_says_the_transitions_and_the_policy() -> None:
    env = make("three-state")
    root = ElementTree.fromstring(mdp_graph(env, caption="The domain", policy=Policy([[1, 0], [1, 0], [0.25, 0.75]])))
    title, description = root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc") or ""
    assert title == "The domain"
    assert "In s0, a0 (r = 0) leads to s1 with probability 0.005 and to s2 with probability 0.995." in description
    assert "In s2, a1 (r ~ Be(2/3)) leads to s2." in description
    assert description.endswith("In colour: a0 in s0, a0 in s1, a0 (probability 0.25) or a1 (probability 0.75) in s2.")
    assert root.attrib["role"] == "img"
    named = root.attrib["aria-labelledby"].split()
    assert named == [root.find(f"{SVG}{tag}").attrib["id"] for tag in ("title", "desc")]


def test_ids_differ_from_call_to_call() -> None:
    env = make("two-state")
    ids = re.findall(r' id="([^"]+)"', mdp_graph(env, caption="one") + mdp_graph(env, caption="two"))
    assert len(ids) == len(set(ids)) == 4


def test_names_are_escaped() -> None:
    evil = '<script>"&\n'
    mdp = MDP.from_dense([[[0.5, 0.5]], [[1, 0]]], [[0], [1]], state_names=(evil, "b"), action_names=("</svg><b>",))
    svg = mdp_graph(Env.from_mdp(mdp), caption="</title><i>")
    assert "<script" not in svg
    assert svg.count("</svg>") == 1
    assert {'<script>"&', "b", "</svg><b>, r = 0"} <= set(texts(svg))
    assert ElementTree.fromstring(svg).findtext(f"{SVG}title") == "</title><i>"


def test_other_models_stand_on_a_circle() -> None:
    graph = drawing(make("riverswim"))
    assert np.allclose(np.abs(graph.layout.states), abs(graph.layout.states[0]))
    assert min(abs(a - b) for a, b in combinations(graph.layout.dots.values(), 2)) > 12
    single = Env.from_outcomes({(0, 0): [(1.0, 0, 0.5)], (0, 1): [(0.5, 0, 0.0), (0.5, 0, 1.0)]})
    assert {"0, r = 0.5", "1, mean r = 0.5"} <= set(texts(mdp_graph(single, caption="one state")))


def test_a_name_is_no_promise_about_the_model() -> None:
    mdp = MDP.from_dense(np.full((3, 1, 3), 1 / 3), np.zeros((3, 1)))
    assert len(drawing(Env.from_mdp(mdp, info=EnvInfo(id="two-state"))).layout.states) == 3


def test_large_models_are_refused() -> None:
    with pytest.raises(OptionError, match=r"at most 6 states; riverswim\[n_states=7\] has 7"):
        mdp_graph(make("riverswim[n_states=7]"), caption="long")


@pytest.mark.parametrize(
    ("x", "text"), [(0.0, "0"), (-0.25, "−0.25"), (1 / 3, "1/3"), (-5 / 6, "−5/6"), (0.12345, "0.1235")]
)
def test_values(x: float, text: str) -> None:
    assert value(x) == text


def test_bernoulli_rewards_on_another_range_name_it() -> None:
    env = Env.from_outcomes({(0, 0): [Outcome(1.0, 0, 0.5, BERNOULLI)]}, r_min=-1.0, r_max=2.0)
    assert reward_text(env, 0, 0) == "r = −1 or 2, mean 0.5"


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_in_a_browser_no_text_is_wider_than_its_place(tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    page = tmp_path / "graphs.html"
    graphs = [mdp_graph(make(name), caption=name) for name in ENVS]
    page.write_text(f"<!DOCTYPE html><body style='font-family:system-ui'>{''.join(graphs)}</body>", "utf-8")
    measure = "svgs => svgs.map(svg => [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBBox().width]))"
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        tab = browser.new_page()
        tab.goto(page.as_uri())
        measured = tab.eval_on_selector_all("svg", measure)
        browser.close()
    for name, rows in zip(ENVS, measured, strict=True):
        graph = drawing(make(name))
        widths = {label.text: label.box.width for label in graph.labels}
        assert len(rows) == len(graph.labels) + len(graph.layout.states)
        for text, width in rows:
            assert 0 < width <= widths.get(text, 2 * graph.radius - 4), (name, text)
