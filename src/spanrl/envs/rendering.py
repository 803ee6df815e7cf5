"""Environments as text: a picture of the current state, for people; nothing here draws or changes a state."""

from __future__ import annotations

import re

from spanrl.envs import knight_quest as kq
from spanrl.envs.env import Env
from spanrl.models.mdp import MDP
from spanrl.terminal import visible

MOST_LINES = 40
"""At most so many states are listed, those around the current one; larger grids are listed, too."""

_CELL = re.compile(r"\((\d{1,2}), (\d{1,2})\)")


def describe(env: Env, state: int, action: int | None = None, reward: float | None = None) -> str:
    """Show ``state`` as text, and the action and reward that led to it (None: the process has just begun).

    Knight Quest is drawn as its grid: K knight, D dragon, P princess, T town, G gold mine. A model whose states are
    all named ``(row, column)`` is drawn as a grid: ``@`` the current state, ``.`` other states, ``#`` walls. Every other
    environment is a list of its states, at most 40 of them, with ``>`` before the current one. What a name holds that
    cannot be printed on a line is shown as Python escapes it.

    >>> from spanrl import make
    >>> print(describe(make("two-state"), 1, 0, 0.0))
      s0
    > s1
    last action: a0, reward 0
    """
    if _is_knight_quest(env.mdp, state):
        picture = _knight_quest(kq.state_tuple(state))
    else:
        picture = _grid(env.mdp, state) or _listing(env.mdp, state)
    return "\n".join((*picture, _last(env.mdp, action, reward)))


def _is_knight_quest(mdp: MDP, state: int) -> bool:
    """Tell by size and names, so that any model of the game is drawn and no other, whatever it is called."""
    same_size = mdp.n_states == 360 and mdp.action_names == kq.ACTIONS
    return same_size and mdp.state_label(state) == str(kq.state_tuple(state))


def _knight_quest(state: kq.State) -> list[str]:
    """Draw the cells, each with all that is in it, and list what the knight owns."""
    letters = dict.fromkeys(((row, col) for row in range(kq.SIZE) for col in range(kq.SIZE)), "")
    dragon, knight = kq.DRAGON_CELLS[state.dragon], (state.row, state.col)
    for cell, letter in ((kq.PRINCESS, "P"), (kq.TOWN, "T"), (kq.MINE, "G"), (dragon, "D"), (knight, "K")):
        letters[cell] += letter
    rows = [" ".join((letters[row, col] or ".").ljust(2) for col in range(kq.SIZE)).rstrip() for row in range(kq.SIZE)]
    goods = {"gold": state.gold, "key": state.owned & kq.KEY, "armour": state.owned & kq.ARMOUR}
    return [*rows, f"the knight owns: {', '.join(name for name, has in goods.items() if has) or 'nothing'}"]


def _grid(mdp: MDP, state: int) -> list[str]:
    """Draw the cells that the states are named after; nothing where one is not, or the grid is too large."""
    found = [_CELL.fullmatch(mdp.state_label(s)) for s in range(mdp.n_states)]
    cells = [(int(cell[1]), int(cell[2])) for cell in found if cell]
    if len(cells) < mdp.n_states or max(max(cell) for cell in cells) >= MOST_LINES:
        return []
    letters = dict.fromkeys(cells, ".") | {cells[state]: "@"}
    rows, cols = (range(min(numbers) - 1, max(numbers) + 2) for numbers in zip(*cells, strict=True))
    return ["".join(letters.get((row, col), "#") for col in cols) for row in rows]


def _listing(mdp: MDP, state: int) -> list[str]:
    """List the states one a line, the current one marked."""
    first = max(0, min(state - MOST_LINES // 2, mdp.n_states - MOST_LINES))
    last = min(mdp.n_states, first + MOST_LINES)
    lines = [f"{'>' if s == state else ' '} {visible(mdp.state_label(s))}" for s in range(first, last)]
    above = [f"  … {first} more"] if first else []
    below = [f"  … {mdp.n_states - last} more"] if last < mdp.n_states else []
    return above + lines + below


def _last(mdp: MDP, action: int | None, reward: float | None) -> str:
    """Name the last action and its reward."""
    if action is None or reward is None:
        return "last action: none"
    return f"last action: {visible(mdp.action_label(action))}, reward {reward:g}"
