"""The section beyond the paper: its slips, the regret beside the bound, a c that may be wrong, and what planning costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

from spanrl.envs.registry import make
from spanrl.paper.claims import SCALES
from spanrl.paper.claims.experiments import LINEAR, SUBLINEAR
from spanrl.paper.curves import Experiment, merged
from spanrl.paper.experiments import experiments_at
from spanrl.paper.page.contents import BEYOND
from spanrl.paper.page.experiments import AGENT_HEADERS, agent_row, reference
from spanrl.paper.page.findings import Cost, Final, costs, finals
from spanrl.paper.page.notation import formula, large, number, power
from spanrl.paper.page.parts import Figures, cards, empty, guarded, numbers_table, table
from spanrl.paper.page.places import PLACES, SWEPT, sweep_of
from spanrl.paper.page.sentences import joined
from spanrl.paper.slips import Slip
from spanrl.planning.analyse import analyse
from spanrl.report.text import LEVEL, UNKNOWN, plural

if TYPE_CHECKING:
    from spanrl.paper.reproduce import Reproduction

COST_HEADERS = (
    "Agent",
    "Domain",
    "Episodes a run",
    "Sweeps an episode (median)",
    "µs of planning an episode (median)",
    "Share of planning",
)
SWEEP_HEADERS = ("Agent", "T", *AGENT_HEADERS[1:])
BACKUP_HEADERS = ("Domain and bound", "Backups of EVI", "Backups of ScOpt", "ScOpt / EVI")
SLIPS_INTRO = "Small mistakes and gaps of the text, each with numbers that show it; none touches the main results."
NO_SLIPS = "The slips of the text were not measured."
NO_BACKUPS = "The backups of EVI and ScOpt on the same sets were not counted."

_ALL = "Run <code>spanrl reproduce</code> without <code>--only</code> in the same folder to fill it."
_BACKUPS = ": backups of EVI, of ScOpt"


def beyond_section(found: Reproduction, drawn: Figures) -> str:
    """Return all that the paper does not have."""
    parts: dict[str, Callable[[], str]] = {
        "slips": partial(_slips, found.slips),
        "bound": lambda: cards(drawn, "bound") or empty("The three-state experiment is not complete here.", _ALL),
        "sweep": partial(_sweeps, found, drawn),
        "planning": partial(_planning, found, drawn),
    }
    inner = "\n".join(
        f'<section aria-labelledby="{key}">\n<h3 id="{key}">{BEYOND[key]}</h3>\n{guarded(BEYOND[key], part)}\n</section>'
        for key, part in parts.items()
    )
    return f'<section aria-labelledby="beyond">\n<h2 id="beyond">Beyond the paper</h2>\n{inner}\n</section>'


def _slips(slips: Sequence[Slip]) -> str:
    if not slips:
        return empty(NO_SLIPS, _ALL)
    shown = sum(slip.shown for slip in slips)
    intro = f"<p>{SLIPS_INTRO} {shown} of {len(slips)} are shown by the numbers below.</p>\n"
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
        f"{numbers_table(slip.numbers, f'Numbers that show it: {slip.title}.', 'untitled')}</details></article>"
    )


def _sweeps(found: Reproduction, drawn: Figures) -> str:
    intro = "<p>The paper leaves open what happens when c is wrong: below sp(h*), or far above it.</p>\n"
    return intro + "\n".join(_sweep(name, found, drawn) for name in SWEPT)


def _sweep(name: str, found: Reproduction, drawn: Figures) -> str:
    if reason := no_sweep(name, found):
        return empty(reason, _ALL if _is_in_scale(name, found) else "")
    rows = sweep_rows(name, found.experiments)
    caption = f"{PLACES[name]}: SCAL by its bound, and UCRL; [{LEVEL}] intervals, comparisons paired on common seeds."
    inner = table(SWEEP_HEADERS, map(sweep_row, rows), caption)
    return (
        f"{cards(drawn, f'sweep-{name}')}\n<p>{escape(sweep_sentence(name, rows))}</p>\n"
        f'<details class="numbers"><summary>{PLACES[name]}: {plural(len(rows), "agent")} as a table</summary>\n{inner}</details>'
    )


def no_sweep(name: str, found: Reproduction) -> str:
    """Say why a sweep cannot be shown; nothing where it can."""
    if {name, sweep_of(name)} <= found.experiments.keys():
        return ""
    if _is_in_scale(name, found):
        return f"{PLACES[name]}: the sweep over c is not complete here."
    return f"{PLACES[name]}: a sweep over c is not part of the scale {found.scale}."


def _is_in_scale(name: str, found: Reproduction) -> bool:
    """Tell whether the sweep beside an experiment belongs to the scale."""
    return sweep_of(name) in experiments_at(SCALES[found.scale])


def sweep_rows(name: str, experiments: Mapping[str, Experiment]) -> list[Final]:
    """Return the agents of an experiment and of its sweep, each at its own horizon."""
    agents = merged(experiments, name, sweep_of(name)).agents()
    return finals(agents, reference(agents))


def sweep_row(row: Final) -> list[str]:
    """Return the cells of an agent of a sweep."""
    first, *cells = agent_row(row)
    return [first, power(row.t), *cells]


def sweep_sentence(name: str, rows: Sequence[Final]) -> str:
    """Say how fast the regret grows with bounds below sp(h*) and above it, which bound does best, and what too small a bound costs."""
    span = analyse(make(rows[0].env).mdp, diameter=False).span
    assert span is not None
    scal = [row for row in rows if isfinite(row.span_bound)]
    small, enough = ([row for row in scal if (row.span_bound < span) == is_small] for is_small in (True, False))
    sides = {f"Below sp(h*) = {number(span)}": small, "Above it": enough}
    said = [f"{side} the pseudo-regret grows {_growth(them)}." for side, them in sides.items() if them]
    return " ".join(
        [
            f"{PLACES[name]}, late in the runs (the last decade and a half).",
            *said,
            *_best(scal, span),
            *_too_small(small, enough),
        ]
    )


def _growth(rows: Sequence[Final]) -> str:
    """Say how fast the regret of some agents grows, as the claims call it."""
    kinds = {
        f"linearly (t to the power {LINEAR:g} or more)": [row for row in rows if row.slope >= LINEAR],
        f"at a rate in between ({SUBLINEAR:g} to {LINEAR:g})": [row for row in rows if SUBLINEAR < row.slope < LINEAR],
        f"sub-linearly ({SUBLINEAR:g} or less)": [row for row in rows if row.slope <= SUBLINEAR],
        "at a rate that could not be measured": [row for row in rows if isnan(row.slope)],
    }
    return "; ".join(f"{kind} with {_bounds(them)}" for kind, them in kinds.items() if them)


def _best(scal: Sequence[Final], span: float) -> list[str]:
    """Say which bound has the least regret, of those that went furthest, and on which side of sp(h*) it lies."""
    furthest = max(row.t for row in scal)
    rows = [row for row in scal if row.t == furthest and isfinite(row.pseudo_regret.value)]
    if len(rows) < 2:
        return []
    best = min(rows, key=lambda row: row.pseudo_regret.value)
    side = "below" if best.span_bound < span else "above"
    least = large(best.pseudo_regret.value)
    return [
        f"At T = {power(furthest)} the least mean pseudo-regret, {least}, is that of c = {best.span_bound:g}, {side} sp(h*)."
    ]


def _too_small(rows: Sequence[Final], enough: Sequence[Final]) -> list[str]:
    """Say which bounds below sp(h*) cost linear regret, unless the runs end before that shows."""
    if not rows:
        return []
    if any(row.slope >= LINEAR for row in enough):
        return [
            "With bounds above sp(h*) the regret grows linearly too: these runs are too short to tell what a smaller one costs."
        ]
    linear = [row for row in rows if row.slope >= LINEAR]
    if len(linear) == len(rows):
        return ["Every bound below sp(h*) that was tried costs linear regret."]
    if not linear:
        return ["No bound below sp(h*) that was tried costs linear regret within these runs."]
    others = [row for row in rows if row not in linear]
    return [
        f"Of the bounds below sp(h*), linear regret comes with {_bounds(linear)}, and not with {_bounds(others)} within these runs."
    ]


def _bounds(rows: Sequence[Final]) -> str:
    return f"c = {joined([f'{row.span_bound:g}' for row in rows])}"


def _planning(found: Reproduction, drawn: Figures) -> str:
    rows = cost_rows(found.experiments)
    out = [cards(drawn, "planning")]
    caption = (
        "What planning costs: UCRL plans by extended value iteration, SCAL by ScOpt, both from the last episode’s bias."
    )
    out.append(
        table(COST_HEADERS, rows, caption, "finals costs") if rows else empty("No experiment is complete here.", _ALL)
    )
    backups = [[escape(where), *cells] for where, *cells in backup_rows(found.claims.get("R5", {}))]
    if backups:
        told = "The same sets solved by both from 0 to the same accuracy, by backups of pairs: claim R5."
        out.append(table(BACKUP_HEADERS, backups, told, "finals narrow"))
    else:
        remedy = "Run <code>spanrl reproduce --only R5</code> with the same scale and folder to fill it."
        out.append(empty(NO_BACKUPS, remedy))
    return "\n".join(out)


def cost_rows(experiments: Mapping[str, Experiment]) -> list[list[str]]:
    """Return the cells of every agent of the experiments that compare SCAL and UCRL."""
    return [_cost_row(cost) for cost in costs({name: experiments[name] for name in PLACES if name in experiments})]


def _cost_row(cost: Cost) -> list[str]:
    share = UNKNOWN if isnan(cost.share) else f"{100 * cost.share:.1f}\u00a0%"
    return [
        escape(cost.name), PLACES[cost.experiment], number(cost.episodes), number(cost.sweeps), number(cost.microseconds), share,
    ]  # fmt: skip


def backup_rows(entry: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield where, backups of EVI, of ScOpt and their ratio, from the numbers of claim R5."""
    for name, value in entry.get("numbers", {}).items():
        if name.endswith(_BACKUPS):
            evi, scopt = map(float, value)  # JSON has counts as 600 or 600.0, and "nan" for what a broken formula gave
            yield [name.removesuffix(_BACKUPS), number(evi), number(scopt), number(scopt / evi) if evi else UNKNOWN]
