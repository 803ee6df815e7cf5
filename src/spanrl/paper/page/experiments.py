"""The section of the four experiments: verdict, figures, and tables of what each agent did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from html import escape
from math import isinf, isnan
from typing import Any

from spanrl.paper.claims.experiments import LEVEL as LEVEL_OF_ORDER
from spanrl.paper.claims.experiments import SIGNIFICANT, diameter_of
from spanrl.paper.curves import Curves, Experiment
from spanrl.paper.page.claims import claim_body, claim_head
from spanrl.paper.page.contents import EXPERIMENTS
from spanrl.paper.page.findings import ABOVE, BELOW, Final, OverTime, finals, over_time
from spanrl.paper.page.parts import Drawn, cards, empty, estimate, guarded, p_text, power, table
from spanrl.report.text import LEVEL, UNKNOWN, number, runs_per_agent

FIGURES = {
    "G1": ("diameter",),
    "G2": ("three-state", "three-state-scal"),
    "G3": ("infinite-diameter", "infinite-diameter-scal"),
    "G4": ("knight-quest",),
}

MANY = 10
"""Regrets that are so many times that of UCRL are not told in per cent."""

SIGNS = {BELOW: "▼", ABOVE: "▲", "": ""}

AGENT_HEADERS = (
    "Agent", "Runs", f"Regret [{LEVEL}]", f"Pseudo-regret [{LEVEL}]", "Beside UCRL", f"Less UCRL [{LEVEL}]", "p (Holm)", "Log-log slope",
)  # fmt: skip
DIAMETER_HEADERS = (
    "D = 1/δ",
    "Runs",
    f"Regret [{LEVEL}]",
    f"Pseudo-regret [{LEVEL}]",
    "Pseudo-regret / D",
    "Log-log slope",
)


def experiments_section(
    claims: Mapping[str, Mapping[str, Any]], experiments: Mapping[str, Experiment], drawn: Mapping[str, Drawn]
) -> str:
    """Return the experiments of the paper, each whether it was run or not."""
    inner = "\n".join(
        _experiment(name, claims[name], experiments.get(EXPERIMENTS[name]), drawn)
        for name in EXPERIMENTS
        if name in claims
    )
    return (
        '<section aria-labelledby="experiments">\n<h2 id="experiments">The experiments</h2>\n'
        "<p>Regret at t is t g* less the rewards received; pseudo-regret counts the mean rewards of what was played instead: the same mean "
        f"with far less noise, and what all tests here use. Bands and brackets are {LEVEL} t intervals of the mean.</p>\n"
        f"{inner}\n</section>"
    )


def _experiment(name: str, entry: Mapping[str, Any], found: Experiment | None, drawn: Mapping[str, Drawn]) -> str:
    remedy = f"Run <code>spanrl reproduce --only {escape(name)}</code> with the same scale and folder to fill it."
    shown = cards(drawn, *FIGURES[name])
    if found is None:
        middle = empty("This experiment is not complete here, so there are no tables of it.", remedy)
    elif name == "G1":
        middle = guarded("The table", partial(diameter_table, found))
    else:
        middle = guarded("The tables", partial(agent_tables, found))
    return (
        f'<article class="experiment" aria-labelledby="claim-{name}">\n{claim_head(name, entry, level=3)}\n'
        f"{claim_body(name, entry)}\n{shown}\n{middle}\n</article>"
    )


def diameter_table(found: Experiment) -> str:
    """Return the table of the regret of UCRL by diameter."""
    groups = sorted(found.groups, key=lambda group: diameter_of(group.env))
    rows = [diameter_row(row) for row in finals(groups)]
    return table(
        DIAMETER_HEADERS, rows, f"UCRL at T = {power(found.horizon)} on three states by diameter, {_runs(groups)}."
    )


def diameter_row(row: Final) -> list[str]:
    """Return the cells of a diameter."""
    D = diameter_of(row.env)
    per = number(row.pseudo_regret.value / D)
    return [
        number(D),
        f"{row.n:,}",
        estimate(row.regret),
        estimate(row.pseudo_regret),
        per,
        number(round(row.slope, 3)),
    ]


def agent_tables(found: Experiment) -> str:
    """Return the final table, the table over time, and what it says."""
    agents = found.agents()
    rows = [agent_row(row) for row in finals(agents, reference(agents))]
    caption = (
        f"At T = {power(found.horizon)}, {_runs(agents)}. Comparisons are of pseudo-regrets, paired on common seeds."
    )
    out = table(AGENT_HEADERS, rows, caption)
    if reference(agents) is None or len(agents) == 1:
        return out
    told = over_time(agents)
    return f"{out}\n{_slope_note()}\n{_time_table(told)}\n<p>{escape(order_sentence(told))}</p>\n<p>{escape(comparison_sentence(told))}</p>"


def reference(agents: Sequence[Curves]) -> Curves | None:
    """Return UCRL where it is among the agents."""
    return agents[0] if agents and isinf(agents[0].span_bound) else None


def agent_row(row: Final) -> list[str]:
    """Return the cells of an agent."""
    is_ucrl = isinf(row.span_bound)
    compared = ["", "", ""] if is_ucrl else [beside(row.ratio), estimate(row.difference), escape(p_text(row.p_value))]
    return [
        escape(row.name), f"{row.n:,}", estimate(row.regret), estimate(row.pseudo_regret), *compared, number(round(row.slope, 3)),
    ]  # fmt: skip


def beside(ratio: float) -> str:
    """Write a regret beside that of UCRL.

    >>> beside(0.25), beside(14.14), beside(float("nan"))
    ('25.0\\xa0%', '14.14 times', '–')
    """
    if isnan(ratio):
        return UNKNOWN
    return f"{100 * ratio:.1f}\u00a0%" if ratio < MANY else f"{number(ratio)} times"


def _slope_note() -> str:
    return (
        '<p class="note">p is that of the paired t-test against UCRL, corrected by Holm’s method. * below 0.05, ** below 0.01, *** below '
        "0.001. The slope is that of the mean pseudo-regret against t over the last decade and a half, both logarithmic.</p>"
    )


def _time_table(told: OverTime) -> str:
    rows = [
        [escape(name), *(_marked(mean, mark) for mean, mark in zip(means, marks, strict=True))]
        for name, means, marks in zip(told.names, told.means, told.marks, strict=True)
    ]
    caption = (
        f"Mean pseudo-regret over time; ▼ significantly below UCRL, ▲ significantly above it (level {SIGNIFICANT:g})."
    )
    return table(["Agent", *(f"t = {power(t)}" for t in told.times)], rows, caption)


def _marked(mean: float, mark: str) -> str:
    sign = (
        f' <span class="{mark}" role="img" aria-label="significantly {mark} UCRL">{SIGNS[mark]}</span>' if mark else ""
    )
    return number(mean) + (sign or '<span class="no-sign"></span>')


def order_sentence(told: OverTime) -> str:
    """Say at which times the order in c (smaller bound, smaller regret) is contradicted."""
    if len(told.names) < 3:
        return "With a single bound there is no order in c to look at."
    if not told.disordered:
        return (
            "Smaller c, smaller regret: at none of these times does a larger c have significantly less regret than the next smaller "
            f"one (level {LEVEL_OF_ORDER:g})."
        )
    return (
        f"Smaller c, smaller regret: this does not hold at {listed(told.disordered)}, where some larger c has significantly less regret "
        f"than the next smaller one (level {LEVEL_OF_ORDER:g})."
    )


def comparison_sentence(told: OverTime) -> str:
    """Say for every bound at which times SCAL is below UCRL, and where it is above; bounds of which the same is true stand together."""
    bounds = dict(zip(told.names, told.bounds, strict=True))
    said = [f"SCAL is significantly below UCRL {_by_bound(told, bounds, BELOW)}."]
    if any(ABOVE in marks for marks in told.marks):
        said.append(f"It is significantly above UCRL {_by_bound(told, bounds, ABOVE)}.")
    return " ".join([*said, "Elsewhere the runs do not tell the two apart."])


def _by_bound(told: OverTime, bounds: Mapping[str, float], mark: str) -> str:
    together: dict[str, list[str]] = {}
    for name in told.names[1:]:
        together.setdefault(spell(told.at(name, mark), told.times), []).append(f"{bounds[name]:g}")
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


def _runs(groups: Iterable[Curves]) -> str:
    return runs_per_agent(len(group.seeds) for group in groups)
