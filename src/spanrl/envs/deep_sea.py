"""DeepSea without end: a treasure that only one plan of n steps finds."""

from __future__ import annotations

from itertools import product

from spanrl.envs.env import Env, Outcome
from spanrl.options import require

LEFT, RIGHT = 0, 1


def deep_sea(n: int = 8, move_cost: float = 0.01) -> Env:
    """Return a dive that pays for one plan of n steps alone.

    States:
        The cells of an n × n grid, named (row, column). Cells right of the diagonal are never entered: D = ∞.
    Actions:
        left, right.
    Transitions:
        Each step goes one row down and one column left or right; at the edge the column stays. From the last row every
        action leads to the start.
    Rewards:
        *left* pays the move_cost that it saves, *right* pays 0, and *right* in the lower right corner pays 1; fixed.
    Start:
        (0, 0), the upper left corner.
    Constants:
        S = 64, A = 2, g* = 0.125, sp(h*) = 1.68, D = ∞. In general g* = 1/n where move_cost < 1/n, and sp(h*) = (n −
        1)(2/n − move_cost).
    Args:
        n: rows and columns, 2 to 300.
        move_cost: the reward of *left*, in [0, 1/n).
    Source:
        Osband et al., ICLR 2020 (bsuite), whose *right* costs 0.01/n; made continuing, shifted to [0, 1], and *right*
        is the same action in every cell.
    """
    require(2 <= n <= 300, "deep-sea", "n must lie in 2..300", n, "The usual number is 8.")
    rule = "move_cost must lie in [0, 1/n)"
    require(0 <= move_cost < 1 / n, "deep-sea", rule, move_cost, "Above that the treasure does not pay.")
    outcomes = {}
    for row, col in product(range(n), repeat=2):
        for action, there in ((LEFT, max(col - 1, 0)), (RIGHT, min(col + 1, n - 1))):
            found = (row, col, action) == (n - 1, n - 1, RIGHT)
            reward = 1.0 if found else move_cost * (action == LEFT)
            outcomes[row * n + col, action] = [Outcome(1.0, (row + 1) * n + there if row + 1 < n else 0, reward)]
    names = list(product(range(n), repeat=2))
    return Env.from_outcomes(outcomes, state_names=names, action_names=("left", "right"))
