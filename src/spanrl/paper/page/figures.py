"""The figures of the reproduction: first those of the paper, then ours.

As in the paper, curves show the regret with the noise of the rewards in it, and every interval is the 95 % one of Student.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any

import numpy as np

from spanrl.axes import BLUE
from spanrl.experiments.statistics import mean_interval
from spanrl.paper.claims.comparing import diameter_of, fit_line, late_slope
from spanrl.paper.curves import Curves, Experiment, merged
from spanrl.paper.page import beyond_figures, cost
from spanrl.paper.page.looks import INK, Picture, draw, evenly, finished, legend, panels, positive_floor
from spanrl.paper.page.notation import large
from spanrl.paper.page.places import PLACES, SWEPT, sweep_of
from spanrl.report.text import LEVEL, plural, runs_per_agent

Maker = Callable[[], Picture | None]
"""Draws a figure; None where there is too little to draw."""

_LABELS = {"regret": "regret", "span": "span of the optimistic bias"}
_LEGEND_COLUMNS = 4


def makers(experiments: Mapping[str, Experiment]) -> dict[str, Maker]:
    """Return name → what draws the figure, for all experiments that are there, in the order of the page."""
    found: dict[str, Maker] = {}
    if one := experiments.get("diameter"):
        found["diameter"] = partial(diameter, one)
    for name in ("three-state", "infinite-diameter"):
        if one := experiments.get(name):
            found[name] = partial(three_states, one)
            found[f"{name}-scal"] = partial(three_states, one, scal_alone=True)
    if one := experiments.get("knight-quest"):
        found["knight-quest"] = partial(knight_quest, one)
    if one := experiments.get("three-state"):
        found["bound"] = partial(beyond_figures.bound, one)
    for name in SWEPT:
        if {name, sweep_of(name)} <= experiments.keys():
            found[f"sweep-{name}"] = partial(beyond_figures.sweep, merged(experiments, name, sweep_of(name)))
    if planned := {place: experiments[name] for name, place in PLACES.items() if name in experiments}:
        found["planning"] = partial(cost.planning, planned)
    if experiments:
        found["time"] = partial(cost.time, experiments)
    return found


def diameter(found: Experiment) -> Picture:
    """Draw the mean regret of UCRL at the horizon against 1/δ, with the line fitted to the means."""
    x = [diameter_of(group.env) for group in found.groups]
    means = [mean_interval(group.regret[:, -1:]) for group in found.groups]
    y, low, high = ([float(part[0]) for part in parts] for parts in zip(*means, strict=True))
    slope, intercept, r_squared = fit_line(x, y)
    figure, (ax,) = panels(1)
    line = np.array([0.0, 1.05 * max(x)])
    ax.plot(line, intercept + slope * line, color=BLUE, linewidth=1.5, label="least-squares line")
    ax.errorbar(
        x, y, [np.subtract(y, low), np.subtract(high, y)], fmt="o", color=INK, capsize=3, markersize=5,
        label=f"UCRL, mean of {plural(len(found.groups[0].seeds), 'run')}",
    )  # fmt: skip
    ax.text(
        0.97, 0.06, f"slope {slope:,.0f} per unit of 1/δ\nR² = {r_squared:.3f}", transform=ax.transAxes,
        ha="right", va="bottom", linespacing=1.5,
    )  # fmt: skip
    ax.set_xlim(0, line[-1])
    ax.set_ylim(bottom=1.3 * min(0.0, *np.nan_to_num(low)))
    finished(ax, "diameter D = 1/δ", f"regret at T = {large(found.horizon)}")
    ax.legend(loc="upper left", frameon=False)
    caption = (
        f"Regret of UCRL on the three-state domain at T = {large(found.horizon)} for {len(x)} values of δ: means of "
        f"{plural(len(found.groups[0].seeds), 'run')} with {LEVEL} intervals, the noise of the rewards included. The line "
        f"through the means rises by {slope:,.0f} a unit of 1/δ (R² = {r_squared:.3f}), though sp(h*) stays near 1."
    )
    return Picture("diameter", "Regret of UCRL against the diameter", caption, figure)


def three_states(found: Experiment, *, scal_alone: bool = False) -> Picture:
    """Draw span and regret over time on a three-state domain, with UCRL or without."""
    ucrl, *scal = found.agents()
    shown = scal if scal_alone else [ucrl, *scal]
    is_infinite = diameter_of(ucrl.env) == inf
    figure, span = _over_time(found, shown)
    if is_infinite and not scal_alone:
        span.set_yscale("log")
        positive_floor(span, [line.get_ydata() for line in span.lines])
        span.set_ylim(top=2 * ucrl.span.max())
    place = PLACES[found.name]
    what = f"{_setting(found, shown)}. "
    if scal_alone:
        what += f"The same without UCRL: at T the regret lies between {_least_and_most(scal)}."
    elif is_infinite:
        what += (
            f"UCRL ends with a regret of {_final(ucrl)}, which over the last decade and a half grew like t to the power "
            f"{late_slope(ucrl):.2f}; that of SCAL, hidden by the scale, lies between {_least_and_most(scal)}."
        )
    else:
        what += (
            f"At T the regret of UCRL is {_final(ucrl)}, that of SCAL lies between {_least_and_most(scal)}; the span of UCRL's bias "
            f"reaches {ucrl.span.max():.3g} in single runs, early on."
        )
    name, title = (
        (f"{found.name}-scal", f"{place}: SCAL alone") if scal_alone else (found.name, f"{place}: SCAL and UCRL")
    )
    return Picture(name, title, what, figure, span.lines)


def knight_quest(found: Experiment) -> Picture:
    """Draw regret and span over time on Knight Quest."""
    shown = found.agents()
    figure, span = _over_time(found, shown)
    ucrl, *scal = shown
    shares = ", ".join(
        f"{group.regret[:, -1].mean() / ucrl.regret[:, -1].mean():.0%} for c = {group.span_bound:g}" for group in scal
    ).replace("%", "\u00a0%")
    caption = (
        f"{_setting(found, shown)}. The regret of UCRL at T is {_final(ucrl)}; that of SCAL relative to it: {shares}."
    )
    return Picture("knight-quest", "Knight Quest: SCAL and UCRL", caption, figure, span.lines)


def _over_time(found: Experiment, shown: Sequence[Curves]) -> tuple[Any, Any]:
    """Draw regret, then span, of several agents against t; return the figure and the panel of the span."""
    figure, (regret, span) = panels(2, legend_rows=-(-len(shown) // _LEGEND_COLUMNS))
    for ax, value in ((regret, "regret"), (span, "span")):
        for group in shown:
            draw(ax, group, value, evenly(group.t))
        ax.set_xlim(0, 1.02 * found.horizon)
        if value == "span":
            ax.set_ylim(bottom=0)
        finished(ax, "step t", _LABELS[value])
    legend(figure, span.lines, _LEGEND_COLUMNS)
    return figure, span


def _setting(found: Experiment, shown: Sequence[Curves]) -> str:
    runs = runs_per_agent(len(group.seeds) for group in shown)
    return (
        f"Regret, then span of the optimistic bias, over T = {large(found.horizon)} steps: means of {runs} with {LEVEL} intervals, the "
        f"noise of the rewards included"
    )


def _final(group: Curves) -> str:
    return large(float(group.regret[:, -1].mean()))


def _least_and_most(groups: Sequence[Curves]) -> str:
    ordered = sorted(groups, key=lambda group: float(group.regret[:, -1].mean()))
    return " and ".join(f"{_final(group)} (c = {group.span_bound:g})" for group in (ordered[0], ordered[-1]))
