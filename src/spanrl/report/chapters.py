"""What a report tells of each environment, gathered once for the figures and the page alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spanrl.experiments.plotting import TITLES, scales_of
from spanrl.report.standings import Standing, standings
from spanrl.report.text import display_names

if TYPE_CHECKING:
    from spanrl.experiments.results import Results

MOST_POINTS = 200
"""A curve is drawn by at most so many points; a screen shows no more."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """The mean over ``n`` runs at the times ``t``, with its 95 % interval (NaN where one run alone gives none)."""

    n: int
    t: NDArray[np.int64]
    mean: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Chapter:
    """One environment: its agents best first, their curves by quantity and agent, the share of planning in their time, and its constants.

    ``scale`` is that of what is summed over time, "linear" or "log".
    """

    env: str
    folder: str
    title: str
    measure: str
    ranking: list[Standing]
    curves: dict[str, dict[str, Curve]]
    planning_share: dict[str, float]
    problem: dict[str, Any]
    scale: str = "linear"

    def scales(self, value: str) -> tuple[str, str]:
        """Return the scales of the time axis and of the values on which a quantity is drawn at first."""
        return scales_of(value, self.scale)

    @property
    def gain_known(self) -> bool:
        """Whether there is a regret to speak of."""
        return self.measure == "regret"


def chapters(results: Results, scale: str = "linear") -> list[Chapter]:
    """Return a chapter for every environment with a finished cell, in the order of the spec."""
    if results.cells.is_empty():
        return []
    known = {env for env, regret in results.cells.select("env", "regret").iter_rows() if np.isfinite(_number(regret))}
    found = set(results.cells["env"])
    envs = [entry for entry in results.envs if entry.id in found]
    measures = {entry.id: "regret" if entry.id in known else "reward" for entry in envs}
    values = [value for value in TITLES if value != "reward" or "reward" in measures.values()]
    curves = {value: _curves(results.mean(value)) for value in values}
    shares = _planning_shares(results.cells)
    ranking, names = standings(results, measures), display_names(results.envs)
    problems = {row["env"]: row for row in results.problems.iter_rows(named=True)}
    return [
        Chapter(
            env=entry.id,
            folder=entry.folder,
            title=names[entry.id],
            measure=measures[entry.id],
            ranking=ranking[entry.id],
            curves={
                value: {agent: curve for (env, agent), curve in curves[value].items() if env == entry.id}
                for value in _shown(measures[entry.id])
            },
            planning_share={agent: share for (env, agent), share in shares.items() if env == entry.id},
            problem=problems[entry.id],
            scale=scale,
        )
        for entry in envs
    ]


def thinned(t: NDArray[np.int64], most: int = MOST_POINTS) -> NDArray[np.int64]:
    """Return indices of at most ``most`` of the times, the first and the last always among them.

    Three in five are evenly spread on a logarithmic axis, the others on a linear one: a chart is read on either.
    """
    if len(t) <= most:
        return np.arange(len(t))
    return np.union1d(_spread(np.log(np.maximum(t, 1)), 3 * most // 5), _spread(t.astype(np.float64), 2 * most // 5))


def _spread(at: Floats, count: int) -> NDArray[np.int64]:
    """Return the indices of the increasing values ``at`` nearest to ``count`` evenly spread ones, ends included."""
    wanted = np.linspace(at[0], at[-1], count)
    after = np.clip(np.searchsorted(at, wanted), 1, len(at) - 1)
    before = after - 1
    return np.where(wanted - at[before] < at[after] - wanted, before, after)


def _shown(measure: str) -> list[str]:
    hidden = {"reward"} if measure == "regret" else {"regret", "pseudo_regret"}
    return [value for value in TITLES if value not in hidden]


def _curves(frame: Any) -> dict[tuple[str, str], Curve]:
    out = {}
    for (env, agent), part in frame.partition_by(["env", "agent"], as_dict=True, maintain_order=True).items():
        t = part["t"].to_numpy()
        kept = thinned(t)
        mean, low, high = (part[name].cast(float).to_numpy()[kept] for name in ("mean", "low", "high"))
        out[env, agent] = Curve(int(part["n"].max()), t[kept], mean, low, high)
    return out


def _planning_shares(cells: Any) -> dict[tuple[str, str], float]:
    sums = cells.select("env", "agent", "planning", "total").group_by("env", "agent", maintain_order=True).sum()
    return {(env, agent): min(planning / total, 1.0) for env, agent, planning, total in sums.iter_rows() if total > 0}


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)
