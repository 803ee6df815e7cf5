"""Draw the figures of docs/answers.md: python examples/answers.py [FOLDER]."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import spanrl
from spanrl.axes import image, new_figure

QUEUES = "two-queues[places=12,service_x=0.6,service_y=0.5,cost_y=1.2]"


def draw() -> dict[str, Any]:
    """Return the figures by the names of their files."""
    queues = spanrl.solve(spanrl.make(QUEUES).mdp).policy.plot(ax=new_figure().add_subplot())
    queues.set(xlabel="customers in the first queue", ylabel="customers in the second")
    stock = spanrl.solve(spanrl.make("inventory").mdp).policy.plot(ax=new_figure().add_subplot())
    return {"policy-two-queues.png": queues.figure, "policy-inventory.png": stock.figure}


def main(folder: Path) -> None:
    """Write them."""
    for name, figure in draw().items():
        (folder / name).write_bytes(image(figure, "png"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "figures")
