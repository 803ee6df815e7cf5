"""Figures of what it costs: planning an episode by EVI and by ScOpt, and where the time of the experiments goes."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np

from spanrl.axes import BLUE, DARK_GREY
from spanrl.experiments.statistics import Floats
from spanrl.paper.curves import Curves, Experiment
from spanrl.paper.page.findings import microseconds_an_episode, sweeps_an_episode
from spanrl.paper.page.looks import INK, SHADE, WIDTH, Picture, colour, finished, legend, panels
from spanrl.paper.page.notation import number
from spanrl.report.text import runs_per_agent

_ROW, _MARGIN = 0.235, 0.75  # inches
_ROOM = 1.5  # beside the outermost values


def planning(found: Mapping[str, Experiment]) -> Picture:
    """Draw sweeps and microseconds of planning per episode, one row per agent, by the name of the place."""
    figure, axes = panels(2)
    rows: list[tuple[float, Curves | None, str]] = []
    y = 0.0
    for place, one in found.items():
        rows.append((y, None, place))
        rows += [(y + 1 + i, group, group.name) for i, group in enumerate(one.agents())]
        y = rows[-1][0] + 1.4
    values = (sweeps_an_episode, microseconds_an_episode)
    for ax, value, label in zip(axes, values, ("sweeps per episode", "µs of planning per episode"), strict=True):
        ax.set_xscale("log")
        dots = [(at, group, value(group)) for at, group, _ in rows if group is not None]
        ends = np.concatenate([values for _, _, values in dots])
        ax.set_xlim(
            ends.min() / _ROOM, ends.max() * _ROOM
        )  # before anything is drawn: equal values have no limits of their own
        for at, group, found_values in dots:
            _dot(ax, at, group, found_values)
        ax.set_ylim(y - 0.7, -0.7)
        finished(ax, label, "")
        ax.grid(visible=False, axis="y")
        ax.set_yticks([at for at, _, _ in rows], [text for _, _, text in rows])
        ax.tick_params(axis="y", length=0)
        for text, (_, agent, _) in zip(ax.get_yticklabels(), rows, strict=True):
            text.set_fontweight("bold" if agent is None else "normal")
    figure.set_size_inches(WIDTH, _MARGIN + _ROW * y)
    runs = runs_per_agent(len(group.seeds) for one in found.values() for group in one.groups)
    caption = (
        f"The cost of a plan, by extended value iteration (UCRL) and by ScOpt (SCAL), each on the data of its own runs and from a warm "
        f"start: sweeps, then microseconds, per episode, median and range of {runs}. {_compared(found)}"
    )
    return Picture("planning", "The cost of planning an episode", caption, figure)


def _dot(ax: Any, at: float, group: Curves, values: Floats) -> None:
    median = np.median(values)
    ax.axhline(at, color=SHADE, linewidth=0.8, zorder=0)
    ax.errorbar(
        [median], [at], xerr=[[median - values.min()], [values.max() - median]], fmt="D" if group.span_bound == inf else "o",
        color=colour(group.span_bound), ecolor=INK, markersize=6.5, markeredgecolor=INK, markeredgewidth=0.7, elinewidth=1.2, capsize=2.5,
    )  # fmt: skip


def _compared(found: Mapping[str, Experiment]) -> str:
    """Say in a sentence how many sweeps the plans of SCAL take relative to those of UCRL."""
    parts = []
    for place, one in found.items():
        ucrl, *scal = one.agents()
        ratios = [float(np.median(sweeps_an_episode(group)) / np.median(sweeps_an_episode(ucrl))) for group in scal]
        ends = dict.fromkeys(f"{ratio:.2g}" for ratio in (min(ratios), max(ratios)))
        parts.append(f"{' to '.join(ends)} ({place})")
    return f"Sweeps of ScOpt relative to those of EVI: {', '.join(parts)}."


def time(experiments: Mapping[str, Experiment]) -> Picture:
    """Draw the seconds of planning and of simulation of each experiment, all runs together."""
    names = list(experiments)
    parts = {
        part: np.array([sum(getattr(group, part).sum() for group in experiments[name].groups) for name in names])
        for part in ("planning", "simulating")
    }
    total = parts["planning"] + parts["simulating"]
    figure, (ax,) = panels(1)
    finished(ax, "seconds of all runs together", "")
    bars = [
        ax.barh(names, parts["planning"], color=BLUE, label="planning"),
        ax.barh(names, parts["simulating"], left=parts["planning"], color="#c9d6e6", label="simulation"),
    ]
    shares = [
        f"{number(float(f'{all_:.2g}'))} s, {share:.0%} planning".replace("%", "\u00a0%")
        for all_, share in zip(total, parts["planning"] / total, strict=True)
    ]
    ax.bar_label(bars[1], shares, padding=5, color=DARK_GREY)
    ax.set_xlim(0, 2.2 * total.max())  # room for the words behind the longest bar
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    figure.set_size_inches(0.64 * WIDTH, 1.25 + 0.33 * len(names))
    legend(figure, bars, 2)
    planned, largest = (f"{part / total.sum():.0%}" for part in (parts["planning"].sum(), total.max()))
    caption = (
        f"Seconds of planning and of simulation, all runs of an experiment together (each on one core): {number(float(total.sum()))} s, "
        f"of which planning takes {planned}; the experiment {names[int(np.argmax(total))]} takes {largest}."
    )
    return Picture("time", "Where the time goes", caption.replace("%", "\u00a0%"), figure, bars)
