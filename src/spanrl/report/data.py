"""The data of the charts: short lists of numbers, which the page holds as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spanrl.axes import PALETTE
from spanrl.experiments.coincidence import WITHIN
from spanrl.experiments.plotting import TITLES
from spanrl.report.chapters import Chapter, Curve
from spanrl.report.text import LEVEL, runs_per_agent

SHOWN_FIRST = 10
"""So many agents, the best ones, are drawn when a chart opens; the legend brings the others."""

_DIGITS = 6


def chart_data(chapters: Sequence[Chapter], agents: Mapping[str, str], horizon: int) -> dict[str, Any]:
    """Return all that the charts need; ``agents``: id → name, in the order of their colours."""
    places = {agent: i for i, agent in enumerate(agents)}
    return {
        "colours": PALETTE,
        "within": WITHIN,
        "agents": list(agents.values()),
        "chapters": [
            {
                "folder": chapter.folder,
                "unknown": not chapter.gain_known,
                "first": SHOWN_FIRST,
                "quantities": [_quantity(chapter, value, horizon) for value in chapter.curves],
                "series": [_series(chapter, row.agent, places[row.agent]) for row in chapter.ranking],
            }
            for chapter in chapters
        ],
    }


def _quantity(chapter: Chapter, value: str, horizon: int) -> dict[str, str]:
    x, y = chapter.scales(value)
    return {"key": value, "title": TITLES[value], "caption": chart_caption(chapter, value, horizon), "x": x, "y": y}


def _series(chapter: Chapter, agent: str, place: int) -> dict[str, Any]:
    curves = {value: of_agent[agent] for value, of_agent in chapter.curves.items()}
    t = next(iter(curves.values())).t
    return {"agent": place, "t": t.tolist(), "values": {value: _numbers(curve) for value, curve in curves.items()}}


def _numbers(curve: Curve) -> dict[str, list[float | None]]:
    has_band = np.isfinite(curve.low).any()
    names = ("mean", "low", "high") if has_band else ("mean",)
    return {name: [_rounded(value) for value in getattr(curve, name).tolist()] for name in names}


def _rounded(value: float) -> float | int | None:
    """Return ``value`` with six digits, whole numbers as integers, which are shorter; None for what is no number."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() else short


def chart_caption(chapter: Chapter, value: str, horizon: int) -> str:
    """Return the sentence under a chart: what it shows, of how many runs, up to which T."""
    counts = [row.n for row in chapter.ranking]
    band = f" with {LEVEL} t intervals" if max(counts) > 1 else ""
    title = TITLES[value]
    return f"{title[0].upper()}{title[1:]} on {chapter.title}: mean{band}, {runs_per_agent(counts)}, T = {horizon:,}."
