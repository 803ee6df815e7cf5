"""Rooms with narrow doors: the grid worlds of UCRL3."""

from __future__ import annotations

from spanrl.envs.env import Env
from spanrl.envs.lattice import grid_world
from spanrl.options import require

FOUR_ROOMS = (
    "#######",
    "#S....#",
    "#..#..#",
    "#.##.##",
    "#.....#",
    "#..#.G#",
    "#######",
)
TWO_ROOMS = (
    "###########",
    "#S........#",
    "#.........#",
    "#.........#",
    "#####.#####",
    "#.........#",
    "#.........#",
    "#........G#",
    "###########",
)


def four_rooms(slip: float = 0.1) -> Env:
    """Return four rooms with doors: one reward, in the far corner.

    ::

        #######
        #S....#      S start, G goal, # wall
        #..#..#
        #.##.##
        #.....#
        #..#.G#
        #######

    States:
        The 20 free cells, named (row, column).
    Actions:
        left, down, right, up.
    Transitions:
        A move succeeds with probability 1 − 3·slip; with probability slip each it goes to one side, to the other side,
        or nowhere. Walls leave the walker where he is. From the goal every action leads to the start.
    Rewards:
        1 for any action in the goal, 0 elsewhere; fixed.
    Start:
        (1, 1), the upper left corner.
    Constants:
        S = 20, A = 4, g* = 0.075626, sp(h*) = 0.92437, D = 12.22.
    Args:
        slip: probability of each of the three mishaps, in [0, 1/3].
    Source:
        Bourel, Maillard & Talebi, ICML 2020 (UCRL3). StatisticalRL's version pays 0.99 in the goal.
    """
    return _rooms("4-rooms", FOUR_ROOMS, slip)


def two_rooms(slip: float = 0.1) -> Env:
    """Return two rooms with a door: one reward, in the far corner.

    ::

        ###########
        #S........#      S start, G goal, # wall
        #.........#
        #.........#
        #####.#####
        #.........#
        #.........#
        #........G#
        ###########

    States:
        The 55 free cells, named (row, column).
    Actions:
        left, down, right, up.
    Transitions:
        A move succeeds with probability 1 − 3·slip; with probability slip each it goes to one side, to the other side,
        or nowhere. Walls leave the walker where he is. From the goal every action leads to the start.
    Rewards:
        1 for any action in the goal, 0 elsewhere; fixed.
    Start:
        (1, 1), the upper left corner.
    Constants:
        S = 55, A = 4, g* = 0.047306, sp(h*) = 0.95269, D = 21.14.
    Args:
        slip: probability of each of the three mishaps, in [0, 1/3].
    Source:
        Bourel, Maillard & Talebi, ICML 2020 (UCRL3). StatisticalRL's version pays 0.99 in the goal.
    """
    return _rooms("2-rooms", TWO_ROOMS, slip)


def _rooms(name: str, rows: tuple[str, ...], slip: float) -> Env:
    require(0 <= slip <= 1 / 3, name, "slip must lie in [0, 1/3]", slip, "The literature uses 0.1.")
    return grid_world(rows, straight=1 - 3 * slip, side=slip, stay=slip)
