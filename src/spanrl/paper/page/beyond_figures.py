"""Figures that the paper does not have: regret beside the explicit bound, and against a c that may be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from math import inf
from typing import Any

import numpy as np

from spanrl.axes import DARK_GREY, GREY
from spanrl.envs.registry import make
from spanrl.experiments.statistics import Estimate, mean_interval
from spanrl.learning.bound import regret_bound
from spanrl.models.mdp import MDP
from spanrl.paper.claims.regret import crossing
from spanrl.paper.curves import Curves, Experiment
from spanrl.paper.page.looks import (
    INK,
    SHADE,
    Picture,
    colour,
    draw,
    finished,
    legend,
    panels,
    positive_floor,
)
from spanrl.paper.page.notation import large
from spanrl.paper.page.places import PLACES
from spanrl.paper.replay import sizes
from spanrl.planning.analyse import analyse
from spanrl.report.chapters import thinned
from spanrl.report.text import LEVEL, runs_per_agent

BOUNDED = (2.0, 5.0)
"""The bounds whose regret is drawn beside the theorem."""


def bound(found: Experiment) -> Picture | None:
    """Draw the regret of SCAL beside the bound of the theorem and the trivial bound g* t; nothing without the bounds for it."""
    groups = [group for group in found.agents() if group.span_bound in BOUNDED]
    if not groups:
        return None
    mdp, gain = make(groups[0].env).mdp, groups[0].gain
    crossings = {group.span_bound: crossing(mdp, group.span_bound, gain) for group in groups}
    t = np.unique(np.geomspace(10, 2 * max(found.horizon, *crossings.values()), 100).astype(np.int64))
    figure, (ax,) = panels(1, legend_rows=3)
    ax.set_xscale("log")
    ax.set_yscale("log")
    (trivial,) = ax.plot(t, gain * t, color=GREY, linewidth=1.5, linestyle=(0, (1, 1.2)), label="trivial bound g* t")
    lines, theorems = [], []
    for group in groups:
        kept = thinned(group.t)
        kept = kept[group.t[kept] >= t[0]]
        lines.append(draw(ax, group, "regret", kept))
        theorems.append(_theorem(ax, mdp, group, t))
        _crossing(ax, group, crossings[group.span_bound], is_above=group is groups[-1])
    ax.set_xlim(t[0], t[-1])
    positive_floor(ax, [line.get_ydata() for line in lines])
    finished(ax, "step t", "regret")
    keys = [*chain.from_iterable(zip(lines, theorems, strict=True)), trivial]
    legend(figure, keys, 2)
    at = " and ".join(f"t = {large(T)} (c = {c:g})" for c, T in crossings.items())
    least = groups[0]
    ratio = _bound_at(mdp, least, found.horizon) / least.regret[:, -1].mean()
    caption = (
        f"Regret of SCAL with D = 200 (means of {runs_per_agent(len(group.seeds) for group in groups)} with {LEVEL} bands, the noise of "
        f"the rewards included) beside the bound of the theorem with all its constants, δ = 0.05. The bound says something only below "
        f"g* t: from {at} on, the marked points. At T = {large(found.horizon)} it is {ratio:,.0f} times the mean regret for "
        f"c = {least.span_bound:g}."
    )
    return Picture("bound", "Regret against the bound of the theorem", caption, figure, keys)


def _theorem(ax: Any, mdp: MDP, group: Curves, t: np.ndarray) -> Any:
    bounds = [_bound_at(mdp, group, int(T)) for T in t]
    style = {"linewidth": 1.5, "linestyle": (0, (6, 2, 1.5, 2))}
    return ax.plot(t, bounds, color=colour(group.span_bound), label=f"theorem, c = {group.span_bound:g}", **style)[0]


def _crossing(ax: Any, group: Curves, T: int, *, is_above: bool) -> None:
    """Mark where the bound falls below g* t; the upper line has room above it, the lower ones below."""
    ax.plot([T], [group.gain * T], "o", color=colour(group.span_bound), markeredgecolor=INK, markersize=7, zorder=3)
    place = (
        {"xytext": (-8, 5), "ha": "right", "va": "bottom"}
        if is_above
        else {"xytext": (9, -4), "ha": "left", "va": "top"}
    )
    ax.annotate(f"t = {large(T)}", (T, group.gain * T), textcoords="offset points", color=INK, **place)


def _bound_at(mdp: MDP, group: Curves, T: int) -> float:
    S, A = sizes(mdp)
    shape = {"n_states": S, "n_actions": A, "max_support": mdp.max_support}
    return regret_bound(T, **shape, span_bound=group.span_bound, r_max=mdp.r_max - mdp.r_min)


def sweep(found: Experiment) -> Picture | None:
    """Draw the pseudo-regret at the horizon against c; nothing if fewer than two bounds went as far as the experiment."""
    groups = [group for group in found.agents() if group.t[-1] == found.horizon]
    finals = {group.span_bound: mean_interval(group.pseudo_regret[:, -1:]) for group in groups}
    ucrl = finals.pop(inf, None)
    if len(finals) < 2:
        return None
    span = analyse(make(groups[0].env).mdp, diameter=False).span
    assert span is not None
    figure, (ax,) = panels(1)
    ax.set_xscale("log")
    ax.set_yscale("log")
    _mark_span(ax, span, (0.75 * min(*finals, span), 1.35 * max(*finals, span)))
    if ucrl is not None:
        _level(ax, ucrl)
    _points(ax, finals)
    finished(ax, "span bound c of SCAL", f"pseudo-regret at T = {large(found.horizon)}")
    ax.xaxis.set_major_formatter("{x:g}")
    caption = (
        f"Pseudo-regret of SCAL at T = {large(found.horizon)} against its bound c, means of "
        f"{runs_per_agent(len(group.seeds) for group in groups)} with {LEVEL} intervals; grey: c below sp(h*) = {span:.4g}. It is "
        f"{_told(finals)}" + (f"; that of UCRL, dashed, is {large(ucrl.mean[0])}." if ucrl is not None else ".")
    )
    return Picture(f"sweep-{found.name}", f"{PLACES[found.name]}: what a wrong c does", caption, figure)


def _mark_span(ax: Any, span: float, ends: tuple[float, float]) -> None:
    """Shade the bounds that are too small."""
    ax.set_xlim(*ends)
    ax.axvspan(ends[0], span, color=SHADE, linewidth=0, zorder=0)
    ax.axvline(span, color=DARK_GREY, linewidth=1.2)
    ax.annotate(
        f"sp(h*) = {span:.4g}", (span, 1), xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points",
        ha="center", va="bottom", color=DARK_GREY,
    )  # fmt: skip


def _level(ax: Any, ucrl: Estimate) -> None:
    """Draw the regret of UCRL, which has no c, across the panel, and name it where the line ends."""
    if np.isfinite(ucrl.low[0]):
        ax.axhspan(ucrl.low[0], ucrl.high[0], color=INK, alpha=0.13, linewidth=0)
    ax.axhline(ucrl.mean[0], color=INK, linestyle=(0, (5, 2)), linewidth=1.7)
    ax.annotate(
        "UCRL", (1, ucrl.mean[0]), xycoords=("axes fraction", "data"), xytext=(5, 0), textcoords="offset points", va="center", color=INK
    )  # fmt: skip


def _points(ax: Any, finals: Mapping[float, Estimate]) -> None:
    """Draw a point with its interval for every c, and a thin line to lead the eye."""
    ax.plot(list(finals), [one.mean[0] for one in finals.values()], color=GREY, linewidth=1, zorder=1.9)
    for c, (mean, low, high) in finals.items():
        ax.errorbar(
            [c], mean, [mean - low, high - mean], fmt="o", color=colour(c), ecolor=INK, elinewidth=1.2, capsize=3, markersize=7,
            markeredgecolor=INK, markeredgewidth=0.7,
        )  # fmt: skip


def _told(finals: Mapping[float, Estimate]) -> str:
    """Say the mean at the smallest c, at the largest, and at the best one."""
    best = min(finals, key=lambda c: float(finals[c].mean[0]))
    named = [c for c in finals if c in (min(finals), best, max(finals))]
    return ", ".join(f"{large(finals[c].mean[0])} at c = {c:g}{' (the least)' if c == best else ''}" for c in named)
