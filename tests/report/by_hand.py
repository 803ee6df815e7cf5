"""Experiments for reports, written cell by cell without running anything: every number is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from spanrl.experiments.results import Results, load_results
from spanrl.experiments.spec import Cell, Spec, SpecEntry
from spanrl.learning.run import Run

ENVS = (SpecEntry("three-state[delta=0.01]", "three states"), SpecEntry("riverswim", "riverswim"))
AGENTS = (SpecEntry("scal[span_bound=5]", "SCAL"), SpecEntry("ucrl", "ucrl"), SpecEntry("ucrl2", "UCRL2"))
EVIL = ("<img src=x onerror=alert(1)>&\"'", "</script><b>", "$x^2$ 5 %{x} _a_")
HORIZON = 10_000
POINTS = 20

Regret = Callable[[Cell, int, np.ndarray], np.ndarray]


def root(cell: Cell, place: int, t: np.ndarray) -> np.ndarray:
    """Return a regret of (1 + place + 0.1 seed) √t for the agent at this place."""
    return (1.0 + place + 0.1 * cell.seed) * np.sqrt(t)


def times(horizon: int, points: int) -> np.ndarray:
    """Return ``points`` measurement times a decade and the horizon."""
    n = int(np.log10(horizon) * points)
    return np.unique([*np.rint(10.0 ** (np.arange(n + 1) / points)).astype(np.int64), horizon])


def make_run(cell: Cell, t: np.ndarray, regret: np.ndarray) -> Run:
    """Return a run with this regret; planning takes a quarter of its two seconds."""
    meta = {
        "env": cell.env.id, "agent": cell.agent.id, "seed": cell.seed, "horizon": int(t[-1]), "points": POINTS,
        "gain": None if np.isnan(regret).all() else 0.75, "interrupted": False, "audit": False, "r_min": 0.0, "r_max": 1.0,
        "n_states": 3, "n_actions": 2, "seconds": {"planning": 0.5, "simulating": 1.25, "total": 2.0},
    }  # fmt: skip
    episodes = {
        "start": np.array([0]), "gain": np.array([1.0]), "span": np.array([2.0]),
        "sweeps": np.array([3]), "deterministic": np.array([True]),
    }  # fmt: skip
    return Run(
        t=t, reward=0.75 * t - np.nan_to_num(regret), regret=regret, pseudo_regret=0.5 * regret, span=2.0 + 1.0 / t,
        n_episodes=1 + np.log2(t).astype(np.int64), episodes=episodes, meta=meta,
    )  # fmt: skip


def experiment(
    folder: Path,
    *,
    envs: Sequence[SpecEntry] = ENVS,
    agents: Sequence[SpecEntry] = AGENTS,
    seeds: int = 4,
    regret: Regret = root,
    horizon: int = HORIZON,
    points: int = POINTS,
    failed: Iterable[str] = (),
    missing: Iterable[str] = (),
) -> Results:
    """Write an experiment whose cells, less the ``failed`` and the ``missing`` ids, are finished, and load it."""
    spec = Spec("by-hand", horizon, points, tuple(range(seeds)), tuple(envs), tuple(agents))
    folder.mkdir(parents=True)
    (folder / "spec.toml").write_text(spec.to_toml(), "utf-8")
    t = times(horizon, points)
    for cell in spec.cells():
        if cell.id in failed:
            text = folder / "failed" / f"{cell.folder}.txt"
            text.parent.mkdir(parents=True, exist_ok=True)
            text.write_text("ValueError: <script>alert(2)</script>\ntraceback\n", "utf-8")
        elif cell.id not in missing:
            make_run(cell, t, regret(cell, spec.agents.index(cell.agent), t)).save(folder / "cells" / cell.folder)
    return load_results(folder)
