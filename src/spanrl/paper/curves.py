"""What an experiment measured, as arrays over its seeds: read from its directory, or computed on the spot by functions under test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.agents.registry import make_agent
from spanrl.experiments.results import Results
from spanrl.experiments.spec import Spec
from spanrl.learning.run import Run
from spanrl.paper.system import System

VALUES = ("reward", "regret", "pseudo_regret", "span", "n_episodes")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curves:
    """The runs of one agent in one environment: k seeds, n times, each value [k, n]; ``span_bound`` is ∞ for UCRL.

    ``sweeps`` is the number of sweeps of all plans of a run, ``planning`` and ``simulating`` are seconds, [k] each.
    """

    env: str
    agent: str
    span_bound: float
    gain: float
    seeds: NDArray[np.int64]
    t: NDArray[np.int64]
    reward: Floats
    regret: Floats
    pseudo_regret: Floats
    span: Floats
    n_episodes: Floats
    sweeps: Floats
    planning: Floats
    simulating: Floats

    @property
    def name(self) -> str:
        """The name of the agent in figures: UCRL, or SCAL with its bound."""
        return "UCRL" if self.span_bound == inf else f"SCAL c = {self.span_bound:g}"


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper, measured; the groups are in the order of its spec."""

    name: str
    horizon: int
    groups: tuple[Curves, ...]

    def agents(self, env: str | None = None) -> tuple[Curves, ...]:
        """Return the agents in one environment (the only one where none is named), UCRL first, then by the span bound."""
        groups = [group for group in self.groups if env in (None, group.env)]
        return tuple(sorted(groups, key=lambda group: (group.span_bound < inf, group.span_bound)))


def from_results(results: Results) -> Experiment:
    """Return what the directory of an experiment holds."""
    groups = []
    for group in results.groups:
        folders = [results.dir / "cells" / found.cell.folder for found in group.cells]
        groups.append(_curves(group.env.id, group.agent.id, [Run.load(folder) for folder in folders]))
    return Experiment(results.name, results.horizon, tuple(groups))


def measure(system: System, spec: Spec) -> Experiment:
    """Compute an experiment here and now with the functions under test, one run after the other."""
    groups = []
    for env in spec.envs:
        place = system.make(env.id)
        for agent in spec.agents:
            made, options = make_agent(agent.id), {"horizon": spec.horizon, "points": spec.points}
            runs = [system.learn(place, made, seed=seed, **options) for seed in spec.seeds]
            groups.append(_curves(env.id, agent.id, runs))
    return Experiment(spec.name, spec.horizon, tuple(groups))


def _curves(env: str, agent: str, runs: Sequence[Run]) -> Curves:
    seconds = [run.meta["seconds"] for run in runs]
    return Curves(
        env=env,
        agent=agent,
        span_bound=bound_of(agent),
        gain=runs[0].meta["gain"],
        seeds=np.array([run.meta["seed"] for run in runs]),
        t=runs[0].t,
        **{value: np.array([getattr(run, value) for run in runs], dtype=np.float64) for value in VALUES},
        sweeps=np.array([run.episodes["sweeps"].sum() for run in runs], dtype=np.float64),
        planning=np.array([one["planning"] for one in seconds]),
        simulating=np.array([one["simulating"] for one in seconds]),
    )


def bound_of(agent: str) -> float:
    """Return the span bound of an agent, ∞ where it has none.

    >>> bound_of("scal[span_bound=5]"), bound_of("ucrl")
    (5.0, inf)
    """
    made: Any = make_agent(agent)
    return float(getattr(made, "span_bound", inf))


def merged(experiments: Mapping[str, Experiment], *names: str) -> Experiment:
    """Return the groups of several experiments in one environment as one, in the order of the names."""
    found = [experiments[name] for name in names]
    return Experiment(names[0], found[0].horizon, tuple(group for one in found for group in one.groups))
