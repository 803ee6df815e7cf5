"""The figures of a report on an experiment: one per quantity and environment, for print."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from spanrl.axes import BLUE, DARK_GREY, draw_mean, literal, new_figure, set_scales, tidy
from spanrl.experiments.coincidence import coinciding
from spanrl.experiments.plotting import TITLES
from spanrl.report.chapters import Chapter
from spanrl.report.text import elided, runs_per_agent

MOST_AGENTS = 12
"""A figure shows at most so many agents, the best ones: more lines cannot be told apart in print."""

_WIDTH, _HEIGHT, _ROW = 6.4, 3.9, 0.19  # inches; a row of the legend adds to the height
_LONG_NAME, _LONG_NOTE = 22, 70


def figures(chapter: Chapter, names: Mapping[str, str], horizon: int) -> Iterator[tuple[str, Any]]:
    """Yield (file name without its ending, figure) for all that is drawn of one environment; ``names``: agent → name, in order."""
    for value in chapter.curves:
        yield f"{value}--{chapter.folder}", plot_curves(chapter, value, names, horizon)
    if chapter.planning_share:
        yield f"planning_share--{chapter.folder}", plot_planning_share(chapter, names, horizon)


def plot_curves(chapter: Chapter, value: str, names: Mapping[str, str], horizon: int) -> Any:
    """Return a figure of the mean of ``value`` over time, a line an agent, with 95 % bands."""
    several = any(row.n > 1 for row in chapter.ranking[:MOST_AGENTS])
    figure, ax = _panel(chapter, "mean with 95 % intervals; " if several else "", horizon)
    order = list(names)
    handles, labels = [], []
    curves = {agent: chapter.curves[value][agent] for agent in _best(chapter)}
    for agent, curve in curves.items():
        handles.append(draw_mean(ax, curve.t, curve.mean, curve.low, curve.high, order.index(agent)))
        labels.append(_label(names[agent]))
    x, y = chapter.scales(value)
    set_scales(ax, x, y)
    ax.margins(x=0.01)
    ax.set_xlabel("step t")
    ax.set_ylabel(TITLES[value])
    tidy(ax)
    for group in coinciding(curves, y):
        together = (
            "all agents" if len(group) == len(curves) else " = ".join(elided(names[one], _LONG_NAME) for one in group)
        )
        ax.set_title(f"{ax.get_title()}\none line: {_label(together, _LONG_NOTE)}", fontsize="small", color=DARK_GREY)
    columns = min(len(labels), max(1, 3 - max(map(len, labels)) // _LONG_NAME))
    figure.set_size_inches(_WIDTH, _HEIGHT + _ROW * math.ceil(len(labels) / columns))
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize="small", handlelength=3
    )
    return figure


def plot_planning_share(chapter: Chapter, names: Mapping[str, str], horizon: int) -> Any:
    """Return a figure of the share of planning in the time of the runs, one bar per agent."""
    figure, ax = _panel(chapter, "", horizon)
    agents = [agent for agent in _best(chapter) if agent in chapter.planning_share]
    shares = [100 * chapter.planning_share[agent] for agent in agents]
    tidy(ax)
    bars = ax.barh(range(len(agents)), shares, color=BLUE)
    ax.bar_label(
        bars, [f"{share:.0f} %" if share >= 1 else f"{share:.1g} %" for share in shares], padding=4, fontsize="small"
    )
    ax.set_yticks(range(len(agents)), [_label(names[agent], 40) for agent in agents], fontsize="small")
    ax.invert_yaxis()
    ax.set_xlim(0, 110)  # room for the number behind a full bar
    ax.set_xticks(range(0, 101, 20))
    ax.set_xlabel("share of planning in the running time, in %")
    ax.grid(visible=False, axis="y")
    figure.set_size_inches(_WIDTH, 1.3 + 0.26 * len(agents))
    return figure


def _panel(chapter: Chapter, what: str, horizon: int) -> tuple[Any, Any]:
    """Return a figure and its axes, with the environment above and below it what is shown, T and the number of runs."""
    figure = new_figure()
    ax = figure.add_subplot()
    shown = [row.n for row in chapter.ranking[:MOST_AGENTS]]
    caption = f"{what}{runs_per_agent(shown)}, T = {horizon:,}"
    if len(chapter.ranking) > MOST_AGENTS:
        caption += f"; the {MOST_AGENTS} best of {len(chapter.ranking)} agents"
    figure.suptitle(_label(chapter.title), fontsize="medium", fontweight="bold")
    ax.set_title(caption, fontsize="small", color=DARK_GREY)
    return figure, ax


def _best(chapter: Chapter) -> list[str]:
    return [row.agent for row in chapter.ranking[:MOST_AGENTS]]


def _label(text: str, longest: int = 60) -> str:
    """Return ``text``, shortened, as matplotlib takes it literally."""
    return literal(elided(text, longest))
