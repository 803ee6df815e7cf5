"""Small MDPs drawn as graphs: states are circles, actions dots, and arrows lead from a dot to where its action may end.

Names, probabilities and rewards come from the environment; only the arrangement is made by hand (``layouts``). What a
policy plays is drawn thicker and in the accent colour. The description says the same to those who do not see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import count
from typing import NamedTuple

import numpy as np

from spanrl.envs.env import Env
from spanrl.models.policy import Policy
from spanrl.paper.page.layouts import Layout, Pair, direction, layout
from spanrl.paper.page.placing import FONT_SIZE, Board, Label, text_width
from spanrl.paper.page.wording import action_name, pairs, played, reward_text, state_name, transitions, value
from spanrl.report.text import elided

INK, SOFT, PAPER = "var(--ink, #1b1f24)", "var(--soft, #57606a)", "var(--paper, #fff)"
RAISED, ACCENT = "var(--raised, #f6f7f9)", "var(--accent, #0b5cad)"
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


def mdp_graph(env: Env, *, caption: str, policy: Policy | None = None) -> str:
    """Return an ``<svg>`` of a small MDP, at most six states; its title is ``caption``, what ``policy`` plays is marked."""
    graph, name = drawing(env), f"mdp-graph-{next(_numbers)}"
    marked = {(s, a) for s, a in graph.arrows if policy is not None and policy.probs[s, a] > 0}
    left, top, width, height = _frame(graph)
    description = transitions(env) + (f" {played(env.mdp, policy)}" if policy is not None else "")
    ordered = sorted(graph.arrows, key=lambda pair: (pair in marked, pair))  # what is marked lies on top
    return (
        f'<svg class="mdp-graph" role="img" aria-labelledby="{name}-title {name}-desc" xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}" width="{1.1 * width:.0f}" font-size="{FONT_SIZE}" '
        'text-anchor="middle" style="max-width:100%;height:auto">\n'
        f'<title id="{name}-title">{escape(caption)}</title>\n<desc id="{name}-desc">{escape(description)}</desc>\n'
        f"{_lines([_pair(graph, pair, pair in marked) for pair in ordered])}"
        f"{_lines([_state(graph, s, state_name(env.mdp, s)) for s in range(env.mdp.n_states)])}"
        f"{_lines([_labels(graph, pair, pair in marked) for pair in ordered])}</svg>"
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


def _lines(shapes: list[str]) -> str:
    return "".join(f"{shape}\n" for shape in shapes)


def _xy(point: complex) -> str:
    return f"{point.real:.1f} {point.imag:.1f}"


def _pair(graph: Drawing, pair: Pair, is_marked: bool) -> str:
    """Draw the line to a dot, the dot, and its arrows."""
    dot = graph.layout.dots[pair]
    colour, width = (ACCENT, 2.5) if is_marked else (SOFT, 1.5)
    stem = _curve(graph.stems[pair], 0)
    curves = "".join(_curve(arrow, _HEAD_LENGTH / 2) for arrow in graph.arrows[pair])
    heads = "".join(_head(arrow) for arrow in graph.arrows[pair])
    return (
        f'<g stroke="{colour}" stroke-width="{width}" fill="none"><path d="{stem}{curves}"/>'
        f'<g fill="{colour}" stroke="none"><path d="{heads}"/>'
        f'<circle cx="{dot.real:g}" cy="{dot.imag:g}" r="{_DOT + is_marked}"/></g></g>'
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


def _state(graph: Drawing, s: int, name: str) -> str:
    centre = graph.layout.states[s]
    return (
        f'<g><circle cx="{centre.real:.1f}" cy="{centre.imag:.1f}" r="{graph.radius:.1f}" fill="{RAISED}" stroke="{INK}" '
        f'stroke-width="1.5"/><text x="{centre.real:.1f}" y="{centre.imag:.1f}" dy=".35em" fill="{INK}" font-weight="600">'
        f"{escape(_short(name))}</text></g>"
    )


def _labels(graph: Drawing, pair: Pair, is_marked: bool) -> str:
    """Write the label of a pair and of its arrows, with a rim in the colour of the page should a line come near."""
    colour = ACCENT if is_marked else INK
    texts = "".join(map(_text, (graph.actions[pair], *graph.probabilities[pair])))
    return (
        f'<g fill="{colour}" stroke="{PAPER}" stroke-width="3" paint-order="stroke" stroke-linejoin="round">{texts}</g>'
    )


def _text(label: Label) -> str:
    centre = label.box.centre
    return f'<text x="{centre.real:.1f}" y="{centre.imag:.1f}" dy=".35em">{escape(label.text)}</text>'
