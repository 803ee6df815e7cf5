"""Knight Quest on the page: the frames are a play of the optimal policy in the real game, and the figure shows them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from in_browser import Visit, visits

from spanrl import analyse, make
from spanrl.envs import knight_quest as kq
from spanrl.paper.page import knight
from spanrl.paper.page.board import middle
from spanrl.paper.page.knight import SHOWN, Frame, fewest_steps, knight_figure, optimal_play

FEWEST = 5 + 1 + 5 + 1 + 3
"""To the mine, collect, back, buy, to the princess: distances on the grid."""


@pytest.fixture(scope="module")
def frames() -> list[Frame]:
    return optimal_play(SHOWN)


@pytest.fixture(scope="module")
def figure() -> str:
    return knight_figure()


def state_of(frame: Frame) -> int:
    return kq.state_index(frame.row, frame.col, frame.gold, kq.DRAGON_CELLS.index(frame.dragon), frame.owned)


def steps_of(frames: list[Frame]) -> list[tuple[Frame, Frame]]:
    return [(before, after) for before, after in pairwise(frames) if after.step]


# --- the play -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 3, SHOWN])
def test_every_step_is_one_of_the_game(seed: int) -> None:
    env, played = make("knight-quest"), optimal_play(seed)
    for k, (before, after) in enumerate(pairwise(played)):
        if after.step == 0:
            continue
        outcomes = env.outcomes(state_of(before), kq.ACTIONS.index(after.action))
        if after.reward == kq.RESCUE:
            landings = {o.succ for o in outcomes if o.prob > 0 and o.reward == 1.0}
            begun = played[k + 2 : k + 3]
            assert landings
            assert all(state_of(frame) in landings for frame in begun)
        else:
            paid = {(o.succ, round(o.reward * 40 - 20)) for o in outcomes if o.prob > 0}
            assert (state_of(after), after.reward) in paid


def test_every_action_is_optimal(frames: list[Frame]) -> None:
    mdp = make("knight-quest").mdp
    P, r, _ = mdp.to_dense()
    q = r + P @ analyse(mdp, diameter=False).bias
    for before, after in steps_of(frames):
        s = state_of(before)
        assert q[s, kq.ACTIONS.index(after.action)] > q[s].max() - 1e-4


def test_games_begin_in_town_and_end_with_the_rescue(frames: list[Frame]) -> None:
    assert {frame.game for frame in frames} == {1, 2, 3}
    for game in (1, 2, 3):
        play = [frame for frame in frames if frame.game == game]
        assert [frame.step for frame in play] == list(range(len(play)))
        assert (play[0].cell, play[0].gold, play[0].owned, play[0].reward) == (kq.TOWN, 0, 0, 0)
        assert (play[-1].cell, play[-1].owned, play[-1].reward) == (kq.PRINCESS, kq.KEY, kq.RESCUE)
        assert play[-1].event == "rescues the princess"
        assert sum(frame.reward == kq.RESCUE for frame in play) == 1
        assert [frame.total for frame in play] == np.cumsum([frame.reward for frame in play]).tolist()
        assert [frame.leg for frame in play] == sorted(frame.leg for frame in play)


def test_the_knight_never_meets_the_dragon_and_never_wears_armour() -> None:
    for frame in (frame for seed in range(5) for frame in optimal_play(seed)):
        assert frame.cell != frame.dragon
        assert frame.owned in (0, kq.KEY)
        assert frame.reward in (0, kq.STEP, kq.RESCUE)


def test_events_happen_where_they_can(frames: list[Frame]) -> None:
    for before, after in steps_of(frames):
        moved = (after.row - before.row, after.col - before.col)
        if after.event == "collects gold":
            assert (after.cell, before.gold, after.gold, after.carries) == (kq.MINE, 0, 1, "gold")
        elif after.event == "buys the key":
            assert (after.cell, after.gold, after.owned, after.carries) == (kq.TOWN, 0, kq.KEY, "the key")
        elif after.event == "waits for the dragon to move on":
            assert moved == (0, 0)
        elif after.event != "rescues the princess":
            assert after.event == f"walks {after.action}"
            assert moved == kq.MOVES[kq.ACTIONS.index(after.action)] != (0, 0)
    assert {"collects gold", "buys the key", "waits for the dragon to move on"} <= {frame.event for frame in frames}


def test_the_seed_decides() -> None:
    assert optimal_play(1) == optimal_play(1) != optimal_play(2)
    assert len({frame.game for frame in optimal_play(1, games=5)}) == 5


def test_the_first_game_shown_goes_straight_and_the_others_do_not(frames: list[Frame]) -> None:
    lengths = [max(frame.step for frame in frames if frame.game == game) for game in (1, 2, 3)]
    assert lengths[0] == FEWEST < min(lengths[1:])


def test_the_fewest_steps_are_the_distances() -> None:
    assert fewest_steps() == FEWEST


# --- the figure -----------------------------------------------------------------------------------------------------


def test_the_data_are_the_frames(figure: str, frames: list[Frame]) -> None:
    found = re.search(r'<script type="application/json" id="knight-data">(.*?)</script>', figure, re.DOTALL)
    assert found
    data = json.loads(found[1])
    assert len(data) == len(frames)
    for row, frame in zip(data, frames, strict=True):
        assert complex(*row["knight"]) == middle(frame.cell)
        assert complex(*row["dragon"]) == middle(frame.dragon)
        assert [row[key] for key in ("game", "step", "event", "reward", "total", "carries", "leg")] == [
            frame.game, frame.step, frame.event, frame.reward, frame.total, frame.carries, frame.leg,
        ]  # fmt: skip
    assert [row["steps"] for row in data if row["reward"] == 20] == [row["step"] for row in data if row["reward"] == 20]


def test_the_figure_is_well_formed_with_unique_ids_and_no_handlers(figure: str) -> None:
    assert ElementTree.fromstring(re.sub(r"<input ([^>]*)>", r"<input \1/>", figure).replace(" hidden>", ' hidden="">'))
    ids = re.findall(r'\bid="([^"]+)"', figure)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href|url)[="(]+#([\w-]+)', figure)) <= set(ids)
    assert not re.search(r"\son\w+\s*=|javascript:|\$\w", figure)


def test_the_way_of_the_first_game_is_drawn(figure: str, frames: list[Frame]) -> None:
    ways = re.findall(r'class="knight-trail" d="M([^"]+)"', figure)
    ends = [[complex(*map(float, point.split())) for point in way.split("L")] for way in ways]
    stops = [kq.TOWN, kq.MINE, kq.TOWN, kq.PRINCESS]
    for (begin, *_, end), (here, there) in zip(ends, pairwise(stops), strict=True):
        assert abs(begin - middle(here)) < 15
        assert abs(end - middle(there)) < 15
    moves = sum(before.cell != after.cell for before, after in steps_of(frames) if after.game == 1)
    heads = "".join(re.findall(r'class="knight-heads" d="([^"]*)"', figure))
    assert heads.count("M") == moves - len(ways)  # a number stands on one step of each leg
    assert (
        f"<figcaption>Three games of the optimal policy. The line is the way of the first one: {FEWEST} steps, the fewest possible."
        in figure
    )


def test_a_longer_way_is_not_called_the_shortest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knight, "SHOWN", 0)
    first = max(frame.step for frame in optimal_play(0) if frame.game == 1)
    assert first > FEWEST
    assert f": {first} steps. Each step costs" in knight_figure()


# --- in a browser ---------------------------------------------------------------------------------------------------


def part(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text("utf-8")


@pytest.fixture(scope="module")
def page(figure: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page like that of the reproduction, with space above the figure."""
    path = tmp_path_factory.mktemp("knight") / "page.html"
    css = part("spanrl.report", "page.css") + part("spanrl.paper.page", "knight.css")
    policy = "default-src 'none'; script-src 'nonce-n'; style-src 'unsafe-inline'; img-src data: blob:"
    path.write_text(
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Knight</title><meta name="viewport" '
        f'content="width=device-width"><meta http-equiv="Content-Security-Policy" content="{policy}"><style>{css}</style></head>'
        f'<body><main><div style="height: 2000px"></div>{figure}</main>'
        f'<script nonce="n">{part("spanrl.paper.page", "knight.js")}</script></body></html>',
        "utf-8",
    )
    return path


@pytest.fixture(scope="module")
def visit(page: Path) -> Iterator[Visit]:
    with visits(page) as found:
        yield found


def event(tab: Any) -> str:
    return str(tab.locator(".knight-event").text_content())


def knight_at(tab: Any) -> complex:
    x, y = tab.evaluate(
        "() => { const m = new DOMMatrix(getComputedStyle(document.getElementById('knight-piece-hero')).transform); return [m.e, m.f]; }"
    )
    return complex(x, y)


def test_stepping_by_button_and_slider(visit: Visit, frames: list[Frame]) -> None:
    with visit(reduced_motion="reduce") as tab:
        assert event(tab) == "A new game: the knight sets out from the town."
        assert knight_at(tab) == middle(kq.TOWN)
        tab.get_by_role("button", name="One step forward").click()
        assert event(tab) == f"The knight {frames[1].event}."
        assert knight_at(tab) == middle(frames[1].cell)
        tab.get_by_role("button", name="One step back").press("Enter")
        tab.get_by_role("button", name="One step back").press("Enter")
        assert knight_at(tab) == middle(kq.TOWN)
        slider = tab.get_by_role("slider")
        for _ in range(6):
            slider.press("ArrowRight")
        assert event(tab) == "The knight collects gold."
        assert tab.locator("[data-number=carries]").text_content() == "gold"
        assert tab.locator(".knight-has-gold").is_visible()
        assert tab.locator("li[aria-current=step]").text_content().startswith("Back to the town")
        assert slider.get_attribute("aria-valuetext") == "Game 1 of 3 · step 6 of 15: The knight collects gold."
        slider.press("End")
        assert event(tab) == "The knight rescues the princess."
        assert knight_at(tab) == middle(kq.PRINCESS)
        assert tab.locator("[data-number=reward]").text_content() == "+20"


def test_play_and_pause(visit: Visit) -> None:
    with visit(reduced_motion="reduce") as tab:
        button = tab.locator("[data-do=play]")
        assert (button.get_attribute("aria-label"), button.get_attribute("aria-pressed")) == ("Play", "false")
        button.press("Space")
        assert (button.get_attribute("aria-label"), button.get_attribute("aria-pressed")) == ("Pause", "true")
        assert tab.locator("#knight-status").get_attribute("aria-live") == "off"
        tab.wait_for_function("() => document.querySelector('.knight-slider').value === '2'")
        button.press("Space")
        place = tab.locator(".knight-slider").input_value()
        tab.wait_for_timeout(1200)
        assert tab.locator(".knight-slider").input_value() == place
        assert tab.locator("#knight-status").get_attribute("aria-live") == "polite"
        tab.get_by_role("slider").press("End")
        assert button.get_attribute("aria-label") == "Play again"
        button.click()
        assert event(tab).startswith("A new game")


def test_it_starts_by_itself_in_sight_alone_and_never_against_the_readers_wish(visit: Visit) -> None:
    with visit(reduced_motion="no-preference") as tab:
        tab.wait_for_timeout(300)
        assert tab.locator("[data-do=play]").get_attribute("aria-pressed") == "false"
        tab.locator(".knight-board").scroll_into_view_if_needed()
        tab.wait_for_function("() => document.querySelector('[data-do=play]').ariaPressed === 'true'")
        tab.evaluate("() => scrollTo({ top: 0, behavior: 'instant' })")
        tab.wait_for_function("() => document.querySelector('[data-do=play]').ariaPressed === 'false'")
    with visit(reduced_motion="reduce") as tab:
        tab.locator(".knight-board").scroll_into_view_if_needed()
        tab.wait_for_timeout(500)
        assert tab.locator("[data-do=play]").get_attribute("aria-pressed") == "false"


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_the_figure_fits(visit: Visit, width: int) -> None:
    with visit(width, reduced_motion="reduce") as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        for button in tab.locator(".knight-controls button").all():
            box = button.bounding_box()
            assert min(box["width"], box["height"]) >= 40


def test_without_javascript_the_story_is_told_and_nothing_dead_is_offered(visit: Visit) -> None:
    with visit(java_script_enabled=False) as tab:
        assert tab.locator(".knight-story li").count() == 3
        assert tab.locator(".knight-trail").count() == 3
        assert tab.locator(".knight-board").is_visible()
        assert not tab.locator(".knight-show").is_visible()
