"""Where the circles and dots of a drawn MDP stand, and how its arrows leave and arrive.

A point is a complex number: the real part goes right, the imaginary part down, as on a screen. Angles are in degrees,
0 to the right, 90 upwards. The examples of the paper are arranged by hand (``layouts.toml``); others stand on a circle.
"""

from __future__ import annotations

import cmath
import tomllib
from functools import cache
from importlib.resources import files
from math import degrees, radians
from typing import Any, NamedTuple

from spanrl.envs.env import Env
from spanrl.errors import OptionError
from spanrl.models.mdp import MDP

Pair = tuple[int, int]
MOST_STATES = 6
"""Models with more states are not drawn: nobody could read them."""

_DOT_DISTANCE = 58
_APART = 50
_TURN = 22


class Layout(NamedTuple):
    """States and action dots by place; arrows (state, action, next state) by the angles at which they leave and arrive."""

    states: tuple[complex, ...]
    dots: dict[Pair, complex]
    arrows: dict[tuple[int, int, int], tuple[float, float]]


@cache
def _layouts() -> dict[str, Layout]:
    """Read the arrangements made by hand."""
    tables = tomllib.loads(files("spanrl.paper.page").joinpath("layouts.toml").read_text(encoding="utf-8"))
    return {name: _made(tables[table.get("like", name)]) for name, table in tables.items()}


def _made(table: dict[str, Any]) -> Layout:
    return Layout(
        states=tuple(complex(*point) for point in table["states"]),
        dots={(dot["state"], dot["action"]): complex(*dot["at"]) for dot in table["dots"]},
        arrows={
            (arrow["state"], arrow["action"], arrow["next"]): (arrow["leaves"], arrow["arrives"])
            for arrow in table["arrows"]
        },
    )


def layout(env: Env) -> Layout:
    """Return the arrangement of an environment: its own by its name, else the states on a circle (at most six)."""
    mdp = env.mdp
    made = _layouts().get(env.info.id.partition("[")[0])
    if made is not None and _fits(made, mdp):
        return made
    if mdp.n_states > MOST_STATES:
        raise OptionError(
            f"mdp_graph: a drawing holds at most {MOST_STATES} states; {env.info.id} has {mdp.n_states}. Print the model instead."
        )
    return _circle(mdp)


def _fits(made: Layout, mdp: MDP) -> bool:
    """Tell whether the arrangement has a place for everything: a name is no promise about the model."""
    pairs = list(zip(mdp.pair_state.tolist(), mdp.action.tolist(), strict=True))
    arrows = {(s, a, succ) for s, a in pairs for succ, _ in mdp.successors(s, a)}
    return mdp.n_states == len(made.states) and made.dots.keys() >= set(pairs) and made.arrows.keys() >= arrows


def direction(angle: float) -> complex:
    """Return the unit step towards an angle."""
    return cmath.rect(1, -radians(angle))


def _angle(step: complex) -> float:
    return -degrees(cmath.phase(step))


def _circle(mdp: MDP) -> Layout:
    n = mdp.n_states
    radius = 0 if n == 1 else 62 + 42 * n
    states = tuple(radius * direction(180 - 360 * s / n) for s in range(n))
    dots, arrows = {}, {}
    for s, centre in enumerate(states):
        angles = _spread([_wished(mdp, states, i) for i in range(mdp.pair_ptr[s], mdp.pair_ptr[s + 1])])
        for a, angle in zip(mdp.action[mdp.pair_ptr[s] : mdp.pair_ptr[s + 1]].tolist(), angles, strict=True):
            dots[s, a] = centre + _DOT_DISTANCE * direction(angle)
            for succ, _ in mdp.successors(s, a):
                arrows[s, a, succ] = _turns(angle, dots[s, a], states[succ], succ == s)
    return Layout(states, dots, arrows)


def _wished(mdp: MDP, states: tuple[complex, ...], i: int) -> float:
    """Return the angle at which a pair's dot would like to stand: a little left of where it leads, outside for a loop."""
    s = int(mdp.pair_state[i])
    to = sum((states[succ] - states[s]) * p for succ, p in mdp.successors(s, int(mdp.action[i])))
    return _angle(to) + _TURN if abs(to) > 1 else _angle(states[s] or -1)


def _spread(wishes: list[float]) -> list[float]:
    """Move angles apart until neighbours keep their distance, in the order of the wishes."""
    order = sorted(range(len(wishes)), key=lambda i: wishes[i] % 360)
    apart = min(_APART, 360 / len(wishes))
    angles = [wishes[i] % 360 for i in order]
    for _ in range(100):
        for k in range(len(angles) - 1):
            lack = apart - (angles[k + 1] - angles[k])
            if lack > 0:
                angles[k], angles[k + 1] = angles[k] - lack / 2, angles[k + 1] + lack / 2
    return [angle for _, angle in sorted(zip(order, angles, strict=True))]


def _turns(angle: float, dot: complex, target: complex, is_loop: bool) -> tuple[float, float]:
    """Return how an arrow of a dot at ``angle`` of its state leaves it and arrives."""
    if is_loop:
        return angle + 85, angle + 50
    straight = _angle(target - dot)
    bend = (angle - straight + 180) % 360 - 180
    return straight + max(-60, min(60, bend * 0.6)), straight + 180 - _TURN
