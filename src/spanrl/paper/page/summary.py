"""The reproduction in a few numbers: how many statements hold and how many do not, and how much was done."""

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


def unheld(found: Reproduction) -> list[str]:
    """Return the claims that fail or are vacuous, and are known to."""
    alarming = unexpected(found)
    return [name for name, e in found.claims.items() if e["verdict"] in ("fails", "vacuous") and name not in alarming]


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
    n_runs, n_steps = steps(found)
    count = Counter(str(entry["verdict"]) for entry in found.claims.values())
    told = {"Hold": "holds", "Fail": "fails", "Vacuous": "vacuous", "Not run": "not-run"}
    return {
        "Statements": str(len(found.claims)),
        **{name: str(count[verdict]) for name, verdict in told.items()},
        "Runs": f"{n_runs:,}",
        "Steps simulated": large(n_steps),
        "Time": duration(time.total),
    }
