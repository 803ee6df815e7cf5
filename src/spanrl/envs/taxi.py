"""Taxi without end: fetch a passenger, bring him to his hotel, and there is the next one."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from spanrl.envs.env import Env, Outcome

ACTIONS = ("down", "up", "right", "left", "pick up", "drop off")
DOWN, UP, RIGHT, LEFT, PICK_UP, DROP_OFF = range(6)
SIZE = 5
STOPS = {"R": (0, 0), "G": (0, 4), "Y": (4, 0), "B": (4, 3)}
WALLS = frozenset({(0, 1), (1, 1), (3, 0), (4, 0), (3, 2), (4, 2)})
"""Cells with a wall on their right side."""

STEP, DELIVERED, MISUSED = -1, 20, -10
TAXI = "taxi"


class State(NamedTuple):
    """Where the taxi is, where the passenger is (a stop or "taxi"), and where he wants to go."""

    row: int
    col: int
    passenger: str
    hotel: str

    def __str__(self) -> str:
        """Return a name such as ``(2, 3) R to G`` or ``(2, 3) taxi to G``."""
        return f"({self.row}, {self.col}) {self.passenger} to {self.hotel}"


STATES = tuple(
    State(*where) for where in product(range(SIZE), range(SIZE), (*STOPS, TAXI), STOPS) if where[2] != where[3]
)


def taxi() -> Env:
    """Return a taxi that brings one passenger after the other.

    ::

        R .|. . G
        . .|. . .      R, G, Y, B: stops, where passengers wait and want to go
        . . . . .      | wall between two cells
        .|. .|. .
        Y|. .|B .

    States:
        (row, column), the passenger at one of four stops or in the taxi, and the hotel, one of the other stops: 25·(4·3
        + 4) = 400. The usual 500 include 100 in which the passenger waits at his own hotel; those are never entered
        from outside, but the taxi could stay among them for ever (the model is multichain), and are left out.
    Actions:
        down, up, right, left, pick up, drop off.
    Transitions:
        Deterministic. Walls and the edge leave the taxi where it is. The passenger gets in where he waits, and out at
        any stop; at his hotel he leaves, and the next state is drawn as at the start.
    Rewards:
        −1 for a step, 20 for a delivery, −10 for picking up or dropping off where that does nothing; in [−10, 20],
        fixed.
    Start:
        Taxi anywhere, passenger at one of the stops, hotel another one: uniform on 300 states.
    Constants:
        S = 400, A = 6, g* = 0.606733, sp(h*) = 27.3145, D = 74.1067.
    Source:
        Dietterich, JAIR 2000; rewards and map as in Gymnasium's Taxi, made continuing.
    """
    index = {state: s for s, state in enumerate(STATES)}
    start = np.array([state.passenger != TAXI for state in STATES], dtype=float)
    start /= start.sum()
    fresh = [Outcome(float(p), s, DELIVERED) for s, p in enumerate(start) if p]
    outcomes = {}
    for s, state in enumerate(STATES):
        for a in range(len(ACTIONS)):
            after, reward = _played(state, a)
            outcomes[s, a] = fresh if after is None else [Outcome(1.0, index[after], reward)]
    return Env.from_outcomes(
        outcomes,
        r_min=MISUSED,
        r_max=DELIVERED,
        start=start,
        state_names=[str(state) for state in STATES],
        action_names=ACTIONS,
    )


def _played(state: State, action: int) -> tuple[State | None, float]:
    """Return the next state, None after a delivery, and the reward."""
    if action not in (PICK_UP, DROP_OFF):
        return _driven(state, action), STEP
    here = next((stop for stop, cell in STOPS.items() if cell == (state.row, state.col)), None)
    if action == PICK_UP and here == state.passenger:
        return state._replace(passenger=TAXI), STEP
    if action == DROP_OFF and here is not None and state.passenger == TAXI:
        return (None, DELIVERED) if here == state.hotel else (state._replace(passenger=here), STEP)
    return state, MISUSED


def _driven(state: State, action: int) -> State:
    """Return the state after a move."""
    row, col = state.row, state.col
    if action in (DOWN, UP):
        return state._replace(row=min(max(row + (1 if action == DOWN else -1), 0), SIZE - 1))
    border = (row, col if action == RIGHT else col - 1)
    if border in WALLS:
        return state
    return state._replace(col=min(max(col + (1 if action == RIGHT else -1), 0), SIZE - 1))
