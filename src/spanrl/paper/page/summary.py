"""The reproduction in a few numbers: what is as expected, what is not, and how much was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from spanrl.paper.page.claims import ShownClaim
from spanrl.paper.page.making import Spent, duration
from spanrl.paper.page.notation import large

if TYPE_CHECKING:
    from spanrl.paper.reproduce import Reproduction

PAPER = "Efficient Bias-Span-Constrained Exploration-Exploitation in Reinforcement Learning"
AUTHORS = "Ronan Fruit, Matteo Pirotta, Alessandro Lazaric and Ronald Ortner"


def unexpected(found: Reproduction) -> list[str]:
    """Return the claims that are not as expected: of those asked for, and of those checked before."""
    return [name for name, e in found.claims.items() if name in found.surprises or ShownClaim(name, e).is_surprise]


def as_expected(found: Reproduction) -> tuple[int, int]:
    """Return how many claims are as expected, and of how many that were asked for or checked."""
    looked = _looked_at(found)
    return len(looked) - len(unexpected(found)), len(looked)


def _looked_at(found: Reproduction) -> list[str]:
    """Return the claims that were asked for or checked."""
    return [name for name, entry in found.claims.items() if entry["verdict"] != "not-run" or name in found.surprises]


def verdicts(entries: Iterable[Mapping[str, Any]]) -> str:
    """Say how many claims hold, fail and are vacuous, and how many of those asked for were not checked.

    >>> verdicts([{"verdict": "holds"}, {"verdict": "fails"}, {"verdict": "holds"}])
    '2 hold, 1 fails, 0 are vacuous'
    >>> verdicts([{"verdict": "vacuous"}, {"verdict": "not-run"}])
    '0 hold, 0 fail, 1 is vacuous, 1 was not run'
    """
    count = Counter(str(entry["verdict"]) for entry in entries)
    words = {
        "holds": ("holds", "hold"),
        "fails": ("fails", "fail"),
        "vacuous": ("is vacuous", "are vacuous"),
        "not-run": ("was not run", "were not run"),
    }
    said = {verdict: one if count[verdict] == 1 else several for verdict, (one, several) in words.items()}
    return ", ".join(
        f"{count[verdict]} {word}" for verdict, word in said.items() if verdict != "not-run" or count[verdict]
    )


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
        "Verdicts": verdicts(found.claims[name] for name in _looked_at(found)),
        "Claims as expected": f"{good} of {looked}",
        **({"Claims not run": str(left)} if left else {}),
        "Runs": f"{n_runs:,}",
        "Steps simulated": large(n_steps),
        "Time": duration(time.total),
    }
