"""Small MDPs drawn as graphs: states are circles, actions dots, and arrows lead from a dot to where its action may end.

Names, probabilities and rewards come from the environment; only the arrangement is made by hand (``layouts``). What a
policy plays is drawn thicker and in the accent colour. The description says the same to those who do not see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import numpy as np

from spanrl.envs.env import Env
from spanrl.models.policy import Policy
from spanrl.paper.page.layouts import Layout, Pair, direction, layout
from spanrl.paper.page.placing import FONT_SIZE, Board, Label, text_width
from spanrl.paper.page.wording import action_name, pairs, played, reward_text, state_name, transitions, value
from spanrl.report.templates import Markup, render
from spanrl.report.text import elided

_DOT, _MARGIN, _LONGEST_NAME = 4.5, 8.0, 14
_HEAD_LENGTH, _HEAD_WIDTH = 10.0, 4.5
_TIMES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82)
_numbers = count(1)


class Arrow(NamedTuple):
    """A cubic curve from a dot to the circle of a state."""

    start: complex
    leave: complex
    arrive: complex
    tip: complex

    def at(self, t: float) -> complex:
        """Return the point at t in [0, 1]."""
        u = 1 - t
        return u**3 * self.start + 3 * u * u * t * self.leave + 3 * u * t * t * self.arrive + t**3 * self.tip

    def tangent(self, t: float) -> complex:
        """Return the unit direction at t."""
        step = self.at(t + 0.01) - self.at(t - 0.01)
        return step / abs(step)


class Drawing(NamedTuple):
    """A graph with everything in its place; ``labels`` are all texts but the names in the circles."""

    layout: Layout
    radius: float
    stems: dict[Pair, Arrow]
    arrows: dict[Pair, list[Arrow]]
    actions: dict[Pair, Label]
    probabilities: dict[Pair, list[Label]]

    @property
    def labels(self) -> list[Label]:
        """Every label outside the circles."""
        return [*self.actions.values(), *(label for labels in self.probabilities.values() for label in labels)]


class DrawnPair(NamedTuple):
    """A pair as paths: the lines to its dot and on from there, the heads of its arrows; its dot and all labels beside them."""

    is_marked: bool
    lines: str
    heads: str
    dot: complex
    labels: list[Label]


def mdp_graph(env: Env, *, caption: str, policy: Policy | None = None) -> Markup:
    """Return an ``<svg>`` of a small MDP, at most six states; its title is ``caption``, what ``policy`` plays is marked."""
    graph = drawing(env)
    marked = {(s, a) for s, a in graph.arrows if policy is not None and policy.probs[s, a] > 0}
    ordered = sorted(graph.arrows, key=lambda pair: (pair in marked, pair))  # what is marked lies on top
    return render(
        "paper/page/graph.svg.j2",
        id=f"mdp-graph-{next(_numbers)}",
        caption=caption,
        description=transitions(env) + (f" {played(env.mdp, policy)}" if policy is not None else ""),
        frame=_frame(graph),
        font_size=FONT_SIZE,
        pairs=[_pair(graph, pair, pair in marked) for pair in ordered],
        dot_radius=_DOT,
        states=[(_short(state_name(env.mdp, s)), centre) for s, centre in enumerate(graph.layout.states)],
        radius=graph.radius,
    )


def drawing(env: Env) -> Drawing:
    """Arrange the graph of an environment: first the shapes, then each label where it covers none of them."""
    mdp, places = env.mdp, layout(env)
    widest = max(text_width(_short(state_name(mdp, s))) for s in range(mdp.n_states))
    radius = max(21.0, widest / 2 + 5)
    arrows = {(s, a): [_arrow(places, radius, s, a, succ) for succ, _ in mdp.successors(s, a)] for s, a in pairs(mdp)}
    stems = {pair: _stem(places, pair, arrows[pair]) for pair in arrows}
    board = Board(np.array(list(_ink(places, radius, stems, arrows))))
    actions = {
        (s, a): board.near(
            f"{_short(action_name(mdp, a))}, {reward_text(env, s, a)}",
            places.dots[s, a],
            places.dots[s, a] - places.states[s],
        )
        for s, a in arrows
    }
    probabilities = {
        (s, a): [
            board.along(value(p), [(arrow.at(t), arrow.tangent(t)) for t in _TIMES])
            for arrow, (_, p) in zip(arrows[s, a], mdp.successors(s, a), strict=True)
            if p != 1
        ]
        for s, a in arrows
    }
    return Drawing(places, radius, stems, arrows, actions, probabilities)


def _short(name: str) -> str:
    return elided(name, _LONGEST_NAME)


def _arrow(places: Layout, radius: float, s: int, a: int, succ: int) -> Arrow:
    out, into = (direction(angle) for angle in places.arrows[s, a, succ])
    start, tip = places.dots[s, a], places.states[succ] + (radius + 1.5) * into
    looseness = 0.42 * abs(tip - start) + (14 if succ == s else 0)
    return Arrow(start, start + looseness * out, tip + looseness * into, tip)


def _stem(places: Layout, pair: Pair, arrows: list[Arrow]) -> Arrow:
    """Return the line from a state to a dot, bent so that the arrows go on from it without a corner."""
    centre, dot = places.states[pair[0]], places.dots[pair]
    onward = _unit(sum(_unit(arrow.leave - dot) for arrow in arrows))
    turn = dot - 0.45 * abs(dot - centre) * onward
    return Arrow(centre, (centre + 2 * turn) / 3, (dot + 2 * turn) / 3, dot)


def _ink(places: Layout, radius: float, stems: dict[Pair, Arrow], arrows: dict[Pair, list[Arrow]]) -> Iterator[complex]:
    """Yield points all over what is drawn, dense enough that no label slips between them."""
    for centre in places.states:
        yield from (centre + r * direction(angle) for angle in range(0, 360, 12) for r in (radius, radius / 2))
    for pair, curves in arrows.items():
        yield from (places.dots[pair] + (_DOT + 1) * direction(angle) for angle in range(0, 360, 45))
        yield from (curve.at(k / 60) for curve in (stems[pair], *curves) for k in range(61))


def _frame(graph: Drawing) -> tuple[float, float, float, float]:
    """Return left, top, width and height of all that is drawn, with a margin."""
    points = [
        *_ink(graph.layout, graph.radius, graph.stems, graph.arrows),
        *(p for label in graph.labels for p in label.box.corners),
    ]
    left, top = min(p.real for p in points) - _MARGIN, min(p.imag for p in points) - _MARGIN
    return left, top, max(p.real for p in points) + _MARGIN - left, max(p.imag for p in points) + _MARGIN - top


def _xy(point: complex) -> str:
    return f"{point.real:.1f} {point.imag:.1f}"


def _pair(graph: Drawing, pair: Pair, is_marked: bool) -> DrawnPair:
    """Write a pair as paths."""
    stem, arrows = graph.stems[pair], graph.arrows[pair]
    return DrawnPair(
        is_marked,
        lines="".join([_curve(stem, 0), *(_curve(arrow, _HEAD_LENGTH / 2) for arrow in arrows)]),
        heads="".join(map(_head, arrows)),
        dot=graph.layout.dots[pair],
        labels=[graph.actions[pair], *graph.probabilities[pair]],
    )


def _curve(arrow: Arrow, short: float) -> str:
    """Write the curve, a little short of its end, so that the line does not blunt the tip of a head."""
    end = arrow.tip + short * _unit(arrow.arrive - arrow.tip)
    return f"M{_xy(arrow.start)}C{_xy(arrow.leave)} {_xy(arrow.arrive)} {_xy(end)}"


def _head(arrow: Arrow) -> str:
    back = _unit(arrow.arrive - arrow.tip)
    base, side = arrow.tip + _HEAD_LENGTH * back, _HEAD_WIDTH * back * 1j
    return f"M{_xy(arrow.tip)}L{_xy(base + side)}L{_xy(arrow.tip + 0.72 * _HEAD_LENGTH * back)}L{_xy(base - side)}Z"


def _unit(step: complex) -> complex:
    return step / abs(step)
