"""Knight Quest: collect gold, buy a key, rescue the princess, mind the dragon (appendix "Experiments" of the paper).

::

        0 1 2 3      P princess   T town   G gold mine   D cells of the dragon
      0 P D . T
      1 D D . .      A state is (row, col, gold, dragon, owned): gold 0 or 1; dragon 0 at (0,1), 1 at (1,0), 2 at (1,1);
      2 . . . .      owned 0 nothing, 1 key, 2 armour, 3 both.
      3 . G . .

Knight and dragon move together, and what has happened is judged on the new positions. The game ends in the step that
brings the knight to the princess with the key (20) or onto the dragon's cell without armour (−20), so that the 24
states in which it has just ended do not exist: S = 16·2·3·4 − 24 = 360. Collecting outside the mine and buying outside
the town cost 10, any other step 1. Armour halves the chance to move and makes collecting a matter of 1 %. Rewards are
scaled to [0, 1] by (r + 20)/40.

Differs from the paper: buying uses up the gold (otherwise D = ∞), and a second key does not turn into armour.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from spanrl.envs.env import Env, Outcome
from spanrl.errors import OptionError
from spanrl.options import one_of

ACTIONS = ("right", "down", "left", "up", "stay", "collect gold", "buy key", "buy armour")
COLLECT, BUY_KEY, BUY_ARMOUR = 5, 6, 7
MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0), (0, 0))
KEY, ARMOUR = 1, 2  # two flags: 3 is both
SIZE = 4
PRINCESS, TOWN, MINE = (0, 0), (0, 3), (3, 1)
DRAGON_CELLS = ((0, 1), (1, 0), (1, 1))
DRAGON_CHAIN = ((0.4, 0.0, 0.6), (0.0, 0.4, 0.6), (0.4, 0.2, 0.4))
RESCUE, DEATH, MISUSE, STEP = 20, -20, -10, -1
ARMOURED_MOVE, ARMOURED_COLLECT = 0.5, 0.01


class State(NamedTuple):
    """A position of the game: gold 0 or 1, dragon 0, 1 or 2, owned 0 (nothing), 1 (key), 2 (armour) or 3 (both)."""

    row: int
    col: int
    gold: int
    dragon: int
    owned: int

    def __str__(self) -> str:
        """Return a name such as ``(2,3) gold dragon=(1,1) key``; what the knight lacks is left out."""
        parts = [f"({self.row},{self.col})", "gold" * self.gold, "dragon=({},{})".format(*DRAGON_CELLS[self.dragon])]
        return " ".join(filter(None, [*parts, ("", "key", "armour", "key+armour")[self.owned]]))


STARTS = tuple(State(*TOWN, gold=0, dragon=d, owned=0) for d in range(3))


def knight_quest(rewards: str = "outcome") -> Env:
    """Return a 4 × 4 game with mine, town, dragon and princess.

    ::

        P D . T
        D D . .      P princess, T town, G gold mine, D cells of the dragon
        . . . .
        . G . .

    States:
        (row, column) of the knight, his gold, the cell of the dragon, and what the knight owns (key, armour); 24
        combinations in which the game has just ended do not exist.
    Actions:
        right, down, left, up, stay, collect gold, buy key, buy armour.
    Transitions:
        Knight and dragon move together. Gold is collected in the mine and spent in the town; armour protects from the
        dragon, halves the chance to move and makes collecting a matter of 1 %. A game ends when the knight reaches the
        princess with the key, or the dragon without armour, and the next one begins.
    Rewards:
        20 for the princess, −20 for the dragon, −10 for collecting or buying in the wrong place, −1 for any other step,
        scaled to [0, 1] by (r + 20)/40.
    Start:
        The town, without gold or object, the dragon uniform on its three cells.
    Constants:
        S = 360, A = 8, g* = 0.501071, sp(h*) = 3.28494, D = 248.5. At most 6 successors per pair.
    Args:
        rewards: "outcome" pays what happened; "mean" pays r(s, a) whatever happened (as the authors' program did).
    Source:
        Fruit, Pirotta, Lazaric & Ortner, ICML 2018, appendix on experiments.
    """
    one_of("knight-quest", "rewards", rewards, ("outcome", "mean"))
    states = _states()
    start = np.zeros(len(states))
    start[[state_index(*state) for state in STARTS]] = 1 / 3
    table = {
        (s, a): [Outcome(p, state_index(*after), (r + 20) / 40) for p, after, r in outcomes(state, a)]
        for s, state in enumerate(states)
        for a in range(len(ACTIONS))
    }
    env = Env.from_outcomes(table, start=start, state_names=[str(state) for state in states], action_names=ACTIONS)
    return env if rewards == "outcome" else Env.from_mdp(env.mdp, "mean")


def outcomes(state: State, action: int) -> Iterator[tuple[float, State, int]]:
    """Yield (probability, next state, reward before scaling) of an action; equal next states may come several times."""
    misused = (action == COLLECT and state[:2] != MINE) or (action in (BUY_KEY, BUY_ARMOUR) and state[:2] != TOWN)
    for p_knight, knight in _act(state, action):
        for dragon, p_dragon in enumerate(DRAGON_CHAIN[state.dragon]):
            p, after = p_knight * p_dragon, knight._replace(dragon=dragon)
            if _rescues(after) or _dies(after):
                for start in STARTS:
                    yield p / 3, start, RESCUE if _rescues(after) else DEATH
            else:
                yield p, after, MISUSE if misused else STEP


def _act(state: State, action: int) -> list[tuple[float, State]]:
    """Return what the knight's action makes of his half of the state, with probabilities; the dragon waits."""
    if action < len(MOVES):
        return _attempt(state, _moved(state, action), ARMOURED_MOVE)
    if action == COLLECT and state[:2] == MINE:
        return _attempt(state, state._replace(gold=1), ARMOURED_COLLECT)
    if action in (BUY_KEY, BUY_ARMOUR) and state[:2] == TOWN and state.gold:
        return [(1.0, state._replace(gold=0, owned=state.owned | (KEY if action == BUY_KEY else ARMOUR)))]
    return [(1.0, state)]


def _attempt(state: State, success: State, p_armoured: float) -> list[tuple[float, State]]:
    """Succeed for certain without armour, with probability ``p_armoured`` in it."""
    if state.owned & ARMOUR:
        return [(p_armoured, success), (1 - p_armoured, state)]
    return [(1.0, success)]


def _moved(state: State, action: int) -> State:
    """Move the knight one cell; a wall leaves him where he is."""
    down, right = MOVES[action]
    row, col = state.row + down, state.col + right
    return state._replace(row=min(max(row, 0), SIZE - 1), col=min(max(col, 0), SIZE - 1))


def _rescues(state: State) -> bool:
    """Tell whether the knight is with the princess and has the key."""
    return state[:2] == PRINCESS and bool(state.owned & KEY)


def _dies(state: State) -> bool:
    """Tell whether the knight is on the dragon's cell without armour."""
    return state[:2] == DRAGON_CELLS[state.dragon] and not state.owned & ARMOUR


@cache
def _states() -> tuple[State, ...]:
    """List the 360 states in order of (row, col, gold, dragon, owned)."""
    everything = (State(*t) for t in product(range(SIZE), range(SIZE), range(2), range(3), range(4)))
    return tuple(state for state in everything if not (_rescues(state) or _dies(state)))


@cache
def _indices() -> dict[State, int]:
    """Return the index of every state."""
    return {state: s for s, state in enumerate(_states())}


def state_index(row: int, col: int, gold: int, dragon: int, owned: int) -> int:
    """Return the index of a state of the game, 0 … 359.

    >>> state_index(0, 3, 0, 0, 0), state_tuple(state_index(2, 1, 1, 2, 3))
    (56, State(row=2, col=1, gold=1, dragon=2, owned=3))
    """
    state = State(row, col, gold, dragon, owned)
    try:
        return _indices()[state]
    except KeyError:
        raise OptionError(
            f"knight-quest: {tuple(state)} is no state (row, col, gold, dragon, object); row and col must lie in 0..3, "
            "gold in 0..1, dragon in 0..2, object in 0..3. On the dragon's cell without armour, or with the princess "
            "and a key, the game is over and the knight in town."
        ) from None


def state_tuple(index: int) -> State:
    """Return (row, col, gold, dragon, owned) of the state with this index, 0 … 359."""
    if not 0 <= index < len(_states()):
        raise OptionError(f"knight-quest: the index of a state must lie in 0..{len(_states()) - 1}; got {index!r}.")
    return _states()[index]
