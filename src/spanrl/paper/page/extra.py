"""The section beyond the paper: its slips, the regret beside the bound, a c that may be wrong, and what planning costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from math import isfinite, isnan
from typing import Any

from spanrl.envs.registry import make
from spanrl.paper.claims.experiments import LINEAR, SUBLINEAR
from spanrl.paper.curves import Experiment, merged
from spanrl.paper.page.contents import BEYOND
from spanrl.paper.page.experiments import AGENT_HEADERS, agent_row, joined, reference
from spanrl.paper.page.findings import Cost, Final, costs, finals
from spanrl.paper.page.parts import Drawn, cards, empty, formula, guarded, numbers_table, power, table
from spanrl.paper.slips import Slip
from spanrl.planning.analyse import analyse
from spanrl.report.text import LEVEL, UNKNOWN, number, plural

SWEEPS = {"three-state": "Three states, D = 200", "knight-quest": "Knight Quest"}
PLANNED = {
    "three-state": "three states, D = 200",
    "infinite-diameter": "three states, D = ∞",
    "knight-quest": "Knight Quest",
}
COST_HEADERS = (
    "Agent",
    "Domain",
    "Episodes a run",
    "Sweeps an episode",
    "µs of planning an episode",
    "Share of planning",
)
BACKUP_HEADERS = ("Domain and bound", "Backups of EVI", "Backups of ScOpt", "ScOpt beside EVI")

_ALL = "Run <code>spanrl reproduce</code> without <code>--only</code> in the same folder to fill it."
_BACKUPS = ": backups of EVI, of ScOpt"


def beyond_section(
    claims: Mapping[str, Mapping[str, Any]],
    experiments: Mapping[str, Experiment],
    drawn: Mapping[str, Drawn],
    slips: Sequence[Slip],
) -> str:
    """Return all that the paper does not have."""
    parts: dict[str, Callable[[], str]] = {
        "slips": partial(_slips, slips),
        "bound": lambda: cards(drawn, "bound") or empty("The three-state experiment is not complete here.", _ALL),
        "sweep": partial(_sweep, experiments, drawn),
        "planning": partial(_planning, claims, experiments, drawn),
    }
    inner = "\n".join(
        f'<section aria-labelledby="{key}">\n<h3 id="{key}">{BEYOND[key]}</h3>\n{guarded(BEYOND[key], part)}\n</section>'
        for key, part in parts.items()
    )
    return f'<section aria-labelledby="beyond">\n<h2 id="beyond">Beyond the paper</h2>\n{inner}\n</section>'


def _slips(slips: Sequence[Slip]) -> str:
    if not slips:
        return empty("The slips of the text could not be measured.", _ALL)
    shown = sum(slip.shown for slip in slips)
    intro = (
        f"<p>Small mistakes of the text, each with numbers that show it; none touches the main results. "
        f"{shown} of {len(slips)} are shown by the numbers below.</p>\n"
    )
    return intro + "\n".join(map(_slip, slips))


def _slip(slip: Slip) -> str:
    key = f"slip-{escape(slip.id)}"
    badge = ("neutral", "shown") if slip.shown else ("surprise", "not shown by these numbers")
    return (
        f'<article class="claim slip" aria-labelledby="{key}"><h4 id="{key}" class="claim-title"><a class="self" href="#{key}">'
        f"{formula(slip.title)}</a></h4>\n"
        f'<p class="claim-facts"><span class="badge {badge[0]}">{badge[1]}</span> <span class="place">{formula(slip.place)}</span></p>\n'
        f'<dl class="versus"><div><dt>Printed</dt><dd>{formula(slip.printed)}</dd></div>'
        f"<div><dt>Right</dt><dd>{formula(slip.found)}</dd></div></dl>\n"
        f'<details class="numbers" open><summary>{plural(len(slip.numbers), "number")}</summary>\n'
        f"{numbers_table(slip.numbers, f'Numbers that show it: {slip.title}.')}</details></article>"
    )


def _sweep(experiments: Mapping[str, Experiment], drawn: Mapping[str, Drawn]) -> str:
    intro = "<p>The paper leaves open what happens when c is wrong: below sp(h*), or far above it.</p>\n"
    parts = [_one_sweep(name, experiments, drawn) for name in SWEEPS if {name, f"{name}-sweep"} <= experiments.keys()]
    return intro + ("\n".join(parts) or empty("The sweeps over c are not complete here.", _ALL))


def _one_sweep(name: str, experiments: Mapping[str, Experiment], drawn: Mapping[str, Drawn]) -> str:
    found, rows = sweep_rows(name, experiments), []
    for row in found:
        first, *cells = agent_row(row)
        rows.append([first, power(row.t), *cells])
    caption = f"{SWEEPS[name]}: SCAL by its bound, and UCRL; [{LEVEL}] intervals, comparisons paired on common seeds."
    inner = table(("Agent", "T", *AGENT_HEADERS[1:]), rows, caption)
    return (
        f"{cards(drawn, f'sweep-{name}')}\n<p>{escape(sweep_sentence(name, found))}</p>\n"
        f'<details class="numbers"><summary>{SWEEPS[name]}: {plural(len(rows), "agent")} as a table</summary>\n{inner}</details>'
    )


def sweep_sentence(name: str, rows: Sequence[Final]) -> str:
    """Say for which bounds below sp(h*), and above it, the regret is linear late in the runs, and for which it is not."""
    span = analyse(make(rows[0].env).mdp, diameter=False).span
    assert span is not None
    scal = [row for row in rows if isfinite(row.span_bound)]
    sides = {
        f"Below sp(h*) = {number(span)}": [row for row in scal if row.span_bound < span],
        "Above it": [row for row in scal if row.span_bound >= span],
    }
    said = [f"{side} the pseudo-regret grows {_growth(them)}." for side, them in sides.items() if them]
    return f"{SWEEPS[name]}, late in the runs (the last decade and a half). {' '.join(said)}"


def _growth(rows: Sequence[Final]) -> str:
    """Say how fast the regret of some agents grows, as the claims call it."""
    kinds = {
        f"linearly (t to the power {LINEAR:g} or more)": [row for row in rows if row.slope >= LINEAR],
        "in between": [row for row in rows if SUBLINEAR < row.slope < LINEAR],
        f"sub-linearly ({SUBLINEAR:g} or less)": [row for row in rows if row.slope <= SUBLINEAR],
    }
    return "; ".join(
        f"{kind} with c = {joined([f'{row.span_bound:g}' for row in them])}" for kind, them in kinds.items() if them
    )


def sweep_rows(name: str, experiments: Mapping[str, Experiment]) -> list[Final]:
    """Return the agents of an experiment and of its sweep, each at its own horizon."""
    agents = merged(experiments, name, f"{name}-sweep").agents()
    return finals(agents, reference(agents))


def _planning(
    claims: Mapping[str, Mapping[str, Any]], experiments: Mapping[str, Experiment], drawn: Mapping[str, Drawn]
) -> str:
    rows = [cost_row(cost) for cost in costs({name: experiments[name] for name in PLANNED if name in experiments})]
    out = [cards(drawn, "planning")]
    caption = (
        "What planning costs: UCRL plans by extended value iteration, SCAL by ScOpt, both from the last episode’s bias."
    )
    out.append(
        table(COST_HEADERS, rows, caption, "finals costs") if rows else empty("No experiment is complete here.", _ALL)
    )
    backups = [[escape(where), *cells] for where, *cells in backup_rows(claims.get("R5", {}))]
    if backups:
        told = "The same sets solved by both from 0 to the same accuracy, by backups of pairs: claim R5."
        out.append(table(BACKUP_HEADERS, backups, told))
    else:
        remedy = "Run <code>spanrl reproduce --only R5</code> with the same scale and folder to fill it."
        out.append(empty("The backups of EVI and ScOpt on the same sets were not counted.", remedy))
    return "\n".join(out)


def cost_row(cost: Cost) -> list[str]:
    """Return the cells of an agent."""
    domain = escape(PLANNED.get(cost.experiment, cost.env))
    share = UNKNOWN if isnan(cost.share) else f"{100 * cost.share:.1f}\u00a0%"
    return [escape(cost.name), domain, number(cost.episodes), number(cost.sweeps), number(1e6 * cost.seconds), share]


def backup_rows(entry: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield where, backups of EVI, of ScOpt and their ratio, from the numbers of claim R5."""
    for name, value in entry.get("numbers", {}).items():
        if name.endswith(_BACKUPS) and isinstance(value, list) and all(isinstance(one, int) for one in value):
            evi, scopt = value
            yield [name.removesuffix(_BACKUPS), f"{evi:,}", f"{scopt:,}", number(scopt / evi) if evi else UNKNOWN]
