"""FrozenLake without end: cross the ice, mind the holes, begin again."""

from __future__ import annotations

from spanrl.envs.env import Env
from spanrl.envs.lattice import grid_world
from spanrl.options import require

LAKES = {
    "4x4": "SFFF-FHFH-FFFH-HFFG",
    "8x8": "SFFFFFFF-FFFFFFFF-FFFHFFFF-FFFFFHFF-FFFHFFFF-FHHFFFHF-FHFFHFHF-FFFHFFFG",
}


def frozen_lake(lake: str = "4x4", slippery: bool = True) -> Env:
    """Return a walk over slippery ice with holes.

    ::

        SFFF
        FHFH      S start, F frozen, H hole, G goal
        FFFH
        HFFG

    States:
        All cells, named (row, column); holes and goal are states, too.
    Actions:
        left, down, right, up.
    Transitions:
        On slippery ice a move goes straight or to either side with probability 1/3 each, otherwise straight. The edge
        leaves the walker where he is. From holes and goal every action leads to the start.
    Rewards:
        1 for any action in the goal, 0 elsewhere; fixed.
    Start:
        The cell S.
    Constants:
        S = 16, A = 4, g* = 0.017555, sp(h*) = 1.0102, D = 57.5.
    Args:
        lake: 4x4, 8x8, or the rows of a map joined by "-", such as SF-HG: letters S, F, H, G, one S, at least one G.
        slippery: whether the ice is slippery.
    Source:
        Gymnasium's FrozenLake, made continuing: an episode that ends begins anew one step later.
    """
    rows = LAKES.get(lake, lake).split("-")
    letters = "".join(rows)
    is_map = set(letters) <= set("SFHG") and letters.count("S") == 1 and "G" in letters
    require(
        is_map and len({len(row) for row in rows}) == 1,
        "frozen-lake",
        "lake must be 4x4, 8x8 or rows of equal length joined by '-', of letters S, F, H, G with one S and a G",
        lake,
        "SF-HG is one.",
    )
    return grid_world(rows, straight=1 / 3, side=1 / 3) if slippery else grid_world(rows, straight=1.0, side=0.0)
