"""The domains of the paper's experiments, written once more from their descriptions; nothing of ``envs`` is used.

A :class:`Domain` says with which probability play starts where, and what may happen after each pair of a state and an action, both by
their names. Knight Quest is played here with :class:`Scene` values: a knight at a cell, what he carries, and a dragon.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any, NamedTuple

Cell = tuple[int, int]


class Chance(NamedTuple):
    """One thing that may happen: its probability, the state after it, and the reward: ``fixed`` or ``bernoulli``, and its mean."""

    prob: float
    after: Any
    law: str
    mean: float


class Domain(NamedTuple):
    """Where play starts, and the chances of every pair (state, name of the action)."""

    start: dict[Any, float]
    chances: dict[tuple[Any, str], list[Chance]]


class Scene(NamedTuple):
    """A moment of Knight Quest."""

    knight: Cell
    dragon: Cell
    gold: bool = False
    key: bool = False
    armour: bool = False


PRINCESS, TOWN, MINE = (0, 0), (0, 3), (3, 1)
EDGE = 3
PATROL: dict[Cell, dict[Cell, float]] = {
    (0, 1): {(0, 1): 0.4, (1, 1): 0.6},
    (1, 0): {(1, 0): 0.4, (1, 1): 0.6},
    (1, 1): {(0, 1): 0.4, (1, 0): 0.2, (1, 1): 0.4},
}
MOVES = {"right": (0, 1), "down": (1, 0), "left": (0, -1), "up": (-1, 0), "stay": (0, 0)}
DEEDS = {"collect gold": MINE, "buy key": TOWN, "buy armour": TOWN}
RESCUE, DEATH, MISUSE, STEP = 20, -20, -10, -1


@cache
def domain(name: str) -> Domain:
    """Return the domain called ``name``: ``two-state``, ``three-state[delta=…]`` or ``knight-quest``."""
    bare, _, rest = name.rstrip("]").partition("[")
    if bare == "three-state":
        return three_state(float(rest.partition("delta=")[2] or 0.005))
    return {"two-state": two_state, "knight-quest": knight_quest}[bare]()


def state_of(name: str) -> Any:
    """Return the state of an oracle that is called ``name`` in a model.

    >>> state_of("(2,3) gold dragon=(1,1) key+armour")
    Scene(knight=(2, 3), dragon=(1, 1), gold=True, key=True, armour=True)
    >>> state_of("s1")
    's1'
    """
    found = re.fullmatch(r"\((\d),(\d)\)( gold)? dragon=\((\d),(\d)\)(?: (key|armour|key\+armour))?", name)
    if found is None:
        return name
    row, col, gold, *dragon, carried = found.groups()
    owned = (carried or "").split("+")
    lair = (int(dragon[0]), int(dragon[1]))
    return Scene((int(row), int(col)), lair, gold is not None, "key" in owned, "armour" in owned)


def two_state() -> Domain:
    """Return Example 1: a0 changes the state for nothing, a1 stays for ½ and 1."""
    swap = {(s, "a0"): [Chance(1.0, t, "fixed", 0.0)] for s, t in (("s0", "s1"), ("s1", "s0"))}
    wait = {(s, "a1"): [Chance(1.0, s, "fixed", r)] for s, r in (("s0", 0.5), ("s1", 1.0))}
    return Domain({"s0": 1.0}, swap | wait)


def three_state(delta: float) -> Domain:
    """Return the three-state domain: a0 of s0 and of s2 slips into s1 with probability δ."""
    third, two_thirds = ("bernoulli", 1 / 3), ("bernoulli", 2 / 3)
    chances = {
        ("s0", "a0"): [Chance(delta, "s1", "fixed", 0.0), Chance(1 - delta, "s2", "fixed", 0.0)],
        ("s1", "a0"): [Chance(1.0, "s0", *third)],
        ("s2", "a0"): [Chance(delta, "s1", *two_thirds), Chance(1 - delta, "s0", *two_thirds)],
        ("s2", "a1"): [Chance(1.0, "s2", *two_thirds)],
    }
    return Domain({"s0": 1.0}, {pair: [one for one in listed if one.prob] for pair, listed in chances.items()})


def knight_quest() -> Domain:
    """Return Knight Quest, with rewards paid for what happens."""
    side = range(EDGE + 1)
    cells = list(product(side, side))
    either = (False, True)
    scenes = (Scene(at, lair, *owned) for at, lair, owned in product(cells, PATROL, product(either, either, either)))
    going = [scene for scene in scenes if ending(scene) is None]
    return Domain(fresh(), {(scene, what): _chances(scene, what) for scene in going for what in (*MOVES, *DEEDS)})


def fresh() -> dict[Scene, float]:
    """Return where a game begins: in town with nothing, the dragon anywhere."""
    return {Scene(TOWN, lair): 1 / 3 for lair in PATROL}


def ending(scene: Scene) -> int | None:
    """Return what the end of the game pays if this is one, else None."""
    if scene.knight == scene.dragon and not scene.armour:
        return DEATH
    return RESCUE if scene.knight == PRINCESS and scene.key else None


def _chances(scene: Scene, what: str) -> list[Chance]:
    """Let the knight act and the dragon move, then look where both are."""
    toll = MISUSE if what in DEEDS and scene.knight != DEEDS[what] else STEP
    sums: defaultdict[tuple[Scene, int], float] = defaultdict(float)
    for (chance, acted), (lair, move) in product(_efforts(scene, what), PATROL[scene.dragon].items()):
        there = acted._replace(dragon=lair)
        prize = ending(there)
        after = {there: 1.0} if prize is None else fresh()
        for state, share in after.items():
            sums[state, toll if prize is None else prize] += chance * move * share
    return [Chance(prob, state, "fixed", (pay + 20) / 40) for (state, pay), prob in sums.items()]


def _efforts(scene: Scene, what: str) -> Iterator[tuple[float, Scene]]:
    """Yield what the knight may make of an action, with its probability: armour makes him clumsy, except at the counter."""
    skill = 1.0
    if scene.armour:
        skill = 0.5 if what in MOVES else 0.01 if what == "collect gold" else 1.0
    yield skill, _done(scene, what)
    if skill < 1:
        yield 1 - skill, scene


def _done(scene: Scene, what: str) -> Scene:
    """Return the scene after the knight did what he wanted; the dragon has not moved yet."""
    if what in MOVES:
        row, col = (min(max(x + step, 0), EDGE) for x, step in zip(scene.knight, MOVES[what], strict=True))
        return scene._replace(knight=(row, col))
    if scene.knight != DEEDS[what]:
        return scene
    if what == "collect gold":
        return scene._replace(gold=True)
    if not scene.gold:
        return scene
    key, armour = scene.key or what == "buy key", scene.armour or what == "buy armour"
    return scene._replace(gold=False, key=key, armour=armour)
