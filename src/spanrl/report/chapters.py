"""What a report tells of each environment, gathered once for the figures and the page alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spanrl.report.standings import Standing, standings
from spanrl.report.text import display_names

if TYPE_CHECKING:
    from spanrl.experiments.results import Results

MOST_POINTS = 200
"""A curve is drawn by at most so many points; a screen shows no more."""

TITLES = {
    "regret": "regret",
    "pseudo_regret": "pseudo-regret",
    "reward": "cumulative reward",
    "span": "span of the optimistic bias",
    "n_episodes": "episodes",
}
"""The quantities a report shows over time, and what stands at their axes."""

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
    """One environment: its agents best first, their curves by quantity and agent, and the share of planning in their time."""

    env: str
    folder: str
    title: str
    measure: str
    ranking: list[Standing]
    curves: dict[str, dict[str, Curve]]
    planning_share: dict[str, float]

    @property
    def gain_known(self) -> bool:
        """Whether there is a regret to speak of."""
        return self.measure == "regret"


def chapters(results: Results) -> list[Chapter]:
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
        )
        for entry in envs
    ]


def thinned(t: NDArray[np.int64], most: int = MOST_POINTS) -> NDArray[np.int64]:
    """Return indices of at most ``most`` of the times, evenly spread on a logarithmic axis, the first and the last always among them."""
    if len(t) <= most:
        return np.arange(len(t))
    logs = np.log(np.maximum(t, 1))
    wanted = np.linspace(logs[0], logs[-1], most)
    after = np.clip(np.searchsorted(logs, wanted), 1, len(t) - 1)
    before = after - 1
    return np.unique(np.where(wanted - logs[before] < logs[after] - wanted, before, after))


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
