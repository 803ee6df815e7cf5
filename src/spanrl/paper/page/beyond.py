"""What goes beyond the paper: its slips, the regret beside the bound, a c that may be wrong, and what planning costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

from spanrl.envs.registry import make
from spanrl.paper.claims import SCALES
from spanrl.paper.claims.experiments import LINEAR, SUBLINEAR
from spanrl.paper.curves import Experiment, merged
from spanrl.paper.experiments import experiments_at
from spanrl.paper.page.contents import PLANNING
from spanrl.paper.page.experiments import AGENT_HEADERS, agent_row, reference
from spanrl.paper.page.findings import Cost, Final, costs, finals
from spanrl.paper.page.notation import large, number, power
from spanrl.paper.page.parts import ALL, Drawn, Figures, Missing, figures, guarded, numbers_table
from spanrl.paper.page.places import PLACES, SWEPT, sweep_of
from spanrl.paper.page.sentences import joined
from spanrl.paper.slips import Slip
from spanrl.planning.analyse import analyse
from spanrl.report.table import Cell, Table
from spanrl.report.text import LEVEL, UNKNOWN

if TYPE_CHECKING:
    from spanrl.paper.reproduce import Reproduction

COST_HEADERS = (
    "Agent",
    "Domain",
    "Episodes per run",
    "Sweeps per episode (median)",
    "µs of planning per episode (median)",
    "Share of planning",
)
SWEEP_HEADERS = ("Agent", "T", *AGENT_HEADERS[1:])
BACKUP_HEADERS = ("Domain and bound", "Backups of EVI", "Backups of ScOpt", "ScOpt / EVI")
SLIPS_INTRO = "Small mistakes and gaps of the text, each with numbers that show it; none touches the main results."
NO_SLIPS = "The slips of the text were not measured."
NO_BACKUPS = "The backups of EVI and ScOpt on the same sets were not counted."

_BACKUPS = ": backups of EVI, of ScOpt"


@dataclass(frozen=True)
class Sweep:
    """What a wrong c does on a domain."""

    place: str
    figures: Sequence[Drawn | Missing]
    sentence: str
    table: Table


@dataclass(frozen=True)
class Beyond:
    """All that the paper does not have."""

    slips: Sequence[tuple[Slip, Table]]
    bound: Sequence[Drawn | Missing]
    sweeps: Sequence[Sweep | Missing]
    planning: Sequence[Drawn | Missing]
    costs: Sequence[Table | Missing]


def beyond(found: Reproduction, drawn: Figures) -> Beyond:
    """Gather it; parts that cannot be made say so."""
    backups = found.claims.get("R5", {})
    return Beyond(
        slips=[(slip, _slip_numbers(slip)) for slip in found.slips],
        bound=figures(drawn, "bound") or [Missing("The three-state experiment is not complete here.", ALL)],
        sweeps=[guarded(PLACES[name], partial(_sweep, name, found, drawn)) for name in SWEPT],
        planning=figures(drawn, "planning"),
        costs=[
            guarded(PLANNING, partial(_cost_table, found.experiments)),
            guarded(PLANNING, partial(_backup_table, backups)),
        ],
    )


def _slip_numbers(slip: Slip) -> Table:
    return numbers_table(slip.numbers, f"Numbers that show it: {slip.title}.", "untitled")


def _sweep(name: str, found: Reproduction, drawn: Figures) -> Sweep | Missing:
    if not {name, sweep_of(name)} <= found.experiments.keys():
        if sweep_of(name) in experiments_at(SCALES[found.scale]):
            return Missing(f"{PLACES[name]}: the sweep over c is not complete here.", ALL)
        return Missing(f"{PLACES[name]}: a sweep over c is not part of the scale {found.scale}.")
    rows = sweep_rows(name, found.experiments)
    caption = f"{PLACES[name]}: SCAL by its bound, and UCRL; [{LEVEL}] intervals, comparisons paired on common seeds."
    table = Table(SWEEP_HEADERS, [_sweep_row(row) for row in rows], caption)
    return Sweep(PLACES[name], figures(drawn, f"sweep-{name}"), sweep_sentence(name, rows), table)


def sweep_rows(name: str, experiments: Mapping[str, Experiment]) -> list[Final]:
    """Return the agents of an experiment and of its sweep, each at its own horizon."""
    agents = merged(experiments, name, sweep_of(name)).agents()
    return finals(agents, reference(agents))


def _sweep_row(row: Final) -> list[str | Cell]:
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


def _cost_table(experiments: Mapping[str, Experiment]) -> Table | Missing:
    """Return what planning cost every agent of the experiments that compare SCAL and UCRL."""
    rows = [_cost_row(cost) for cost in costs({name: experiments[name] for name in PLACES if name in experiments})]
    caption = (
        "What planning costs: UCRL plans by extended value iteration, SCAL by ScOpt, both from the last episode’s bias."
    )
    return (
        Table(COST_HEADERS, rows, caption, "finals costs") if rows else Missing("No experiment is complete here.", ALL)
    )


def _cost_row(cost: Cost) -> list[str]:
    share = UNKNOWN if isnan(cost.share) else f"{100 * cost.share:.1f}\u00a0%"
    return [
        cost.name, PLACES[cost.experiment], number(cost.episodes), number(cost.sweeps), number(cost.microseconds), share,
    ]  # fmt: skip


def _backup_table(entry: Mapping[str, Any]) -> Table | Missing:
    rows = list(backup_rows(entry))
    caption = "The same sets solved by both from 0 to the same accuracy, by backups of pairs: claim R5."
    return Table(BACKUP_HEADERS, rows, caption, "finals narrow") if rows else Missing(NO_BACKUPS, "R5")


def backup_rows(entry: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield where, backups of EVI, of ScOpt and their ratio, from the numbers of claim R5."""
    for name, value in entry.get("numbers", {}).items():
        if name.endswith(_BACKUPS):
            evi, scopt = map(float, value)  # JSON has counts as 600 or 600.0, and "nan" for what a broken formula gave
            yield [name.removesuffix(_BACKUPS), number(evi), number(scopt), number(scopt / evi) if evi else UNKNOWN]
