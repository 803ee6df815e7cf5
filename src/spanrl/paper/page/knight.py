"""Knight Quest played by its optimal policy: the frames, and the figure that shows them one after the other.

Without JavaScript, and on paper, the figure is the board with the way of the first game and the story beside it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spanrl.envs import knight_quest as kq
from spanrl.envs.env import Env
from spanrl.envs.registry import make
from spanrl.errors import OptionError
from spanrl.models.policy import Policy
from spanrl.paper.page.board import Cell, board, middle
from spanrl.planning.solve import solve
from spanrl.report.templates import Markup, render

LONGEST = 10_000  # steps of a game before something must be wrong
SHOWN = 58
"""The seed of the games on the page: the first goes straight to the princess, in the others the dragon is in the way."""


class Frame(NamedTuple):
    """The board after a step (``step`` 0: before the first one of a game), and how it came about.

    ``reward`` of the step and ``total`` of the game so far are in the game's own units, before scaling.
    """

    game: int
    step: int
    row: int
    col: int
    gold: int
    dragon: Cell
    owned: int
    action: str
    reward: int
    total: int
    event: str

    @property
    def cell(self) -> Cell:
        """Where the knight is."""
        return self.row, self.col

    @property
    def carries(self) -> str:
        """What the knight has, in words."""
        goods = {"gold": self.gold, "the key": self.owned & kq.KEY, "armour": self.owned & kq.ARMOUR}
        return " and ".join(name for name, has in goods.items() if has) or "nothing"

    @property
    def leg(self) -> int:
        """The part of the quest: 1 to the mine, 2 back to the town with the gold, 3 to the princess with the key."""
        return 3 if self.owned & kq.KEY else 2 if self.gold else 1


def optimal_play(seed: int = 0, games: int = 3) -> list[Frame]:
    """Play the optimal policy until the princess was rescued ``games`` times; each game begins with a frame of step 0.

    An ending leads back to the town in the same step; its frame still shows where it happened, with the dragon where it
    was before, because the new game replaces the dragon's move.
    """
    env = make("knight-quest")
    actions, rng = optimal_policy(env).actions, np.random.default_rng(seed)
    state, frames = env.reset(rng), []
    for game in range(1, games + 1):
        frame = _opening(game, kq.state_tuple(state))
        frames.append(frame)
        while frame.reward != kq.RESCUE:
            if frame.step == LONGEST:
                raise OptionError(f"knight-quest: the policy does not reach the princess within {LONGEST} steps.")
            action = int(actions[state])
            reward, after = env.step(state, action, rng)
            frame = _frame(frame, action, unscaled(reward), kq.state_tuple(after))
            frames.append(frame)
            state = after
    return frames


def optimal_policy(env: Env) -> Policy:
    """Return the greedy policy that value iteration ends with."""
    return solve(env.mdp, policy="greedy").policy


def unscaled(reward: float) -> int:
    """Return a reward in the game's own units."""
    return round(reward * 40 - 20)


def _opening(game: int, state: kq.State) -> Frame:
    dragon = kq.DRAGON_CELLS[state.dragon]
    return Frame(game, 0, state.row, state.col, state.gold, dragon, state.owned, "", 0, 0, "sets out from the town")


def _frame(before: Frame, action: int, reward: int, after: kq.State) -> Frame:
    """Return the frame of a step. The optimal policy never meets the dragon, so that the one ending is the rescue."""
    assert reward != kq.DEATH
    if reward == kq.RESCUE:
        row, col = kq.PRINCESS
        told = before._replace(row=row, col=col, event="rescues the princess")
    else:
        dragon = kq.DRAGON_CELLS[after.dragon]
        told = before._replace(row=after.row, col=after.col, gold=after.gold, dragon=dragon, owned=after.owned)
        told = told._replace(event=_event(before, action, told))
    total = before.total + reward
    return told._replace(step=before.step + 1, action=kq.ACTIONS[action], reward=reward, total=total)


def _event(before: Frame, action: int, after: Frame) -> str:
    """Say what the knight did."""
    if action < len(kq.MOVES):
        return f"walks {kq.ACTIONS[action]}" if after.cell != before.cell else "waits for the dragon to move on"
    return {kq.COLLECT: "collects gold", kq.BUY_KEY: "buys the key", kq.BUY_ARMOUR: "buys armour"}[action]


def fewest_steps() -> int:
    """Return how many steps the optimal policy needs to the princess when the dragon is never in the way."""
    env = make("knight-quest")
    actions = optimal_policy(env).actions
    reached, steps = set(np.flatnonzero(env.mdp.start).tolist()), 1
    while True:
        outcomes = [outcome for s in reached for outcome in env.outcomes(s, int(actions[s]))]
        if any(unscaled(outcome.reward) == kq.RESCUE for outcome in outcomes):
            return steps
        reached, steps = {outcome.succ for outcome in outcomes}, steps + 1


def knight_figure() -> Markup:
    """Return the figure: board, story, controls, and the frames as JSON. The page adds ``knight.css`` and ``knight.js``."""
    frames = optimal_play(SHOWN)
    first = [frame for frame in frames if frame.game == 1]
    legs = [[frame.cell for frame in first if frame.leg == leg] for leg in (1, 2, 3)]
    return render(
        "paper/page/knight.html.j2",
        board=board(first[0].cell, first[0].dragon, legs),
        steps=first[-1].step,
        cost=-kq.STEP,
        prize=kq.RESCUE,
        fewest=", the fewest possible" if first[-1].step == fewest_steps() else "",
        games=_counted(frames[-1].game),
        last=len(frames) - 1,
        data=_data(frames),
    )


def _counted(games: int) -> str:
    word = {1: "One", 2: "Two", 3: "Three"}.get(games, str(games))
    return f"{word} game{'s' * (games > 1)}"


def _data(frames: list[Frame]) -> list[dict[str, Any]]:
    """Return what the animation needs of each frame."""
    steps = {frame.game: frame.step for frame in frames}  # the last frame of a game counts
    return [
        {
            "game": frame.game,
            "games": len(steps),
            "step": frame.step,
            "steps": steps[frame.game],
            "leg": frame.leg,
            "knight": _place(frame.cell),
            "dragon": _place(frame.dragon),
            "event": frame.event,
            "carries": frame.carries,
            "reward": frame.reward,
            "total": frame.total,
        }
        for frame in frames
    ]


def _place(cell: Cell) -> tuple[float, float]:
    place = middle(cell)
    return place.real, place.imag
