"""What the comparisons of SCAL and UCRL say, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spanrl.paper.claims import comparing
from spanrl.paper.page.findings import ABOVE, BELOW, OverTime
from spanrl.paper.page.notation import power

PAPER_SAYS = {"three-state": "The paper says that SCAL always performs better than UCRL (claim G5)."}
"""Experiment → what the paper says of all its bounds at once."""


def sentences(name: str, told: OverTime) -> list[str]:
    """Say what the tables of an experiment show, and how that compares with what the paper says."""
    at_the_end = [f"{PAPER_SAYS[name]} {horizon_sentence(told)}"] if name in PAPER_SAYS else []
    return [order_sentence(told), comparison_sentence(told), *at_the_end]


def order_sentence(told: OverTime) -> str:
    """Say at which times the order in c (smaller bound, smaller regret) is contradicted."""
    if len(told.names) < 3:
        return "With a single bound there is no order in c to look at."
    if not told.disordered:
        return (
            "Smaller c, smaller regret: at none of these times does a larger c have significantly less regret than the next "
            f"smaller one (level {comparing.LEVEL:g})."
        )
    return (
        f"Smaller c, smaller regret: this does not hold at {listed(told.disordered)}, where some larger c has significantly less regret "
        f"than the next smaller one (level {comparing.LEVEL:g})."
    )


def comparison_sentence(told: OverTime) -> str:
    """Say for every bound at which times SCAL is below UCRL, and where it is above; bounds of which the same is true stand together."""
    said = [f"SCAL is significantly below UCRL {_by_bound(told, BELOW)}."]
    if any(ABOVE in marks for marks in told.marks):
        said.append(f"It is significantly above UCRL {_by_bound(told, ABOVE)}.")
    return " ".join([*said, "Elsewhere the difference is not significant at this level."])


def horizon_sentence(told: OverTime) -> str:
    """Say with which bounds SCAL is better than UCRL at the horizon, with which it is not, and with which it is worse."""
    at = {mark: [f"{c:g}" for c, marks in _scal(told) if marks[-1] == mark] for mark in (BELOW, "", ABOVE)}
    if not (at[""] or at[ABOVE]):
        return "At T this shows with every c."
    said = [f"this shows with c = {joined(at[BELOW])}" if at[BELOW] else "this shows with no c"]
    if at[""]:
        said.append(f"with c = {joined(at[''])} the difference is not significant at this level")
    if at[ABOVE]:
        said.append(f"with c = {joined(at[ABOVE])} SCAL is significantly worse")
    return f"At T {'; '.join(said)}."


def _scal(told: OverTime) -> list[tuple[float, tuple[str, ...]]]:
    """Return bound and marks of every agent but UCRL."""
    return list(zip(told.bounds, told.marks, strict=True))[1:]


def _by_bound(told: OverTime, mark: str) -> str:
    together: dict[str, list[str]] = {}
    for c, marks in _scal(told):
        times = [t for t, one in zip(told.times, marks, strict=True) if one == mark]
        together.setdefault(spell(times, told.times), []).append(f"{c:g}")
    return "; ".join(f"{when} with c = {joined(them)}" for when, them in together.items())


def spell(times: Sequence[int], among: Sequence[int]) -> str:
    """Say at which times, among those looked at.

    >>> spell([100, 1000], [10, 100, 1000]), spell([], [10]), spell([10], [10]), spell([10], [10, 100])
    ('from t = 100 on', 'at no t', 'at every t', 'at t = 10')
    """
    if not times:
        return "at no t"
    if len(times) == len(among):
        return "at every t"
    if len(times) > 1 and list(times) == list(among)[-len(times) :]:
        return f"from t = {power(times[0])} on"
    return f"at {listed(times)}"


def listed(times: Iterable[int]) -> str:
    """Write times one after the other.

    >>> listed([1000, 10000, 100000])
    't = 10³, 10⁴ and 10⁵'
    """
    return f"t = {joined([power(t) for t in times])}"


def joined(words: Sequence[str]) -> str:
    """Write words one after the other.

    >>> joined(["2", "5", "10"])
    '2, 5 and 10'
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
