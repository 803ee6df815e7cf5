"""The reproduction in a few numbers: what is as expected, what is not, and how much was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spanrl.paper.page.making import Spent, duration
from spanrl.paper.page.notation import large
from spanrl.paper.page.parts import is_surprise

if TYPE_CHECKING:
    from spanrl.paper.reproduce import Reproduction

PAPER = "Efficient Bias-Span-Constrained Exploration-Exploitation in Reinforcement Learning"
AUTHORS = "Ronan Fruit, Matteo Pirotta, Alessandro Lazaric and Ronald Ortner"


def unexpected(found: Reproduction) -> list[str]:
    """Return the claims that are not as expected: of those asked for, and of those checked before."""
    return [name for name, entry in found.claims.items() if name in found.surprises or is_surprise(entry)]


def as_expected(found: Reproduction) -> tuple[int, int]:
    """Return how many claims are as expected, and of how many that were asked for or checked."""
    looked = [name for name, entry in found.claims.items() if entry["verdict"] != "not-run" or name in found.surprises]
    return len(looked) - len(unexpected(found)), len(looked)


def steps(found: Reproduction) -> tuple[int, int]:
    """Return the number of runs and of steps of all complete experiments."""
    groups = [group for one in found.experiments.values() for group in one.groups]
    return sum(len(group.seeds) for group in groups), sum(len(group.seeds) * int(group.t[-1]) for group in groups)


def facts(found: Reproduction, time: Spent) -> dict[str, str]:
    """Return the numbers that stand at the head."""
    good, looked = as_expected(found)
    n_runs, n_steps = steps(found)
    left = len(found.claims) - looked
    return {
        "Claims as expected": f"{good} of {looked}",
        **({"Claims not run": str(left)} if left else {}),
        "Runs": f"{n_runs:,}",
        "Steps simulated": large(n_steps),
        "Time": duration(time.total),
    }
