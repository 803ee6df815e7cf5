"""Read the cells of an experiment: meta.json of each at once, curves one by one, each verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl import tables
from spanrl.errors import RunFileError
from spanrl.experiments.lost import REMEDY, SPEC_FILE, has_lost_its_spec
from spanrl.experiments.spec import Cell, load_spec
from spanrl.experiments.spec_entry import SpecEntry, check_model
from spanrl.experiments.statistics import Floats
from spanrl.learning.files import CURVE, CURVE_FILE, META_FILE, check_columns, read_meta
from spanrl.models.costs import flip

VALUES = tuple(name for name in CURVE if name != "t")
"""What is measured along a run: reward, regret, pseudo_regret, span, n_episodes."""

_RECOMPUTE = "Run the experiment again to recompute it."


class Problem(NamedTuple):
    """What a cell knows of its environment: its size; g*, sp(h*) and D, NaN where they are not known; whether g* is exact.

    Where it has ``costs``, g* is −cost, as in all files.
    """

    n_states: int
    n_actions: int
    gain: float
    span: float
    diameter: float
    exact: bool
    costs: bool

    def in_units(self) -> dict[str, Any]:
        """Return all of it in the user's units: g* of a model with costs is a cost.

        >>> Problem(3, 2, -2.5, 1.0, 9.0, True, True).in_units()["gain"]
        2.5
        """
        return self._asdict() | {"gain": flip(self.costs, self.gain)}


class StoredCell(NamedTuple):
    """What the meta.json of a finished cell says."""

    cell: Cell
    horizon: int
    gain: float
    seconds: dict[str, float]
    sha256: str
    problem: Problem
    parameters: dict[str, dict[str, str]]


class Curve(NamedTuple):
    """The measurement times [n] of one run, and a row a name of VALUES [5, n]."""

    t: NDArray[np.int64]
    values: Floats


class Group(NamedTuple):
    """The finished cells of an agent in an environment."""

    env: SpecEntry
    agent: SpecEntry
    cells: list[StoredCell]


def read_cells(root: Path) -> dict[str, Any]:
    """Return the fields of ``Results``: what is finished, failed and missing in the directory of an experiment."""
    if has_lost_its_spec(root):
        raise RunFileError(f"load_results: {root} cannot be read. {REMEDY}.")
    if not (root / SPEC_FILE).is_file():
        raise RunFileError(
            f"load_results: {root} is no experiment (it has no spec.toml). Give the folder that was --out of spanrl run."
        )
    spec = load_spec(root / SPEC_FILE)
    groups: dict[tuple[str, str], Group] = {}
    versions: dict[str, set[str]] = {}
    failed, missing = {}, []
    for cell in spec.cells():
        folder = root / "cells" / cell.folder
        text = root / "failed" / f"{cell.folder}.txt"
        found, computed_with = _read_finished(folder, cell) if folder.is_dir() else (None, {})
        if found is not None and found.horizon == spec.horizon:
            groups.setdefault((cell.env.id, cell.agent.id), Group(cell.env, cell.agent, [])).cells.append(found)
            for name, version in computed_with.items():
                versions.setdefault(name, set()).update([version] if version else [])
        elif text.is_file():
            failed[cell.id] = next(iter(text.read_text("utf-8", errors="replace").splitlines()), "")
        else:
            missing.append(cell.id)
    kinds = [(env.id, agent.id) for env in spec.envs for agent in spec.agents]
    return {
        "dir": root, "spec": spec, "failed": failed, "missing": tuple(missing),
        "versions": {name: tuple(sorted(found)) for name, found in versions.items()},
        "groups": tuple(groups[kind] for kind in kinds if kind in groups),
    }  # fmt: skip


def _read_finished(folder: Path, cell: Cell) -> tuple[StoredCell, dict[str, str | None]]:
    """Return what meta.json says of a finished cell, and the versions it was computed with."""
    path = folder / META_FILE
    try:
        content = read_meta(path)
        if content["id"] != cell.id:
            raise RunFileError(f"load_results: {path} is of the cell {content['id']}, not {cell.id}. Compute it.")
        check_model(cell.env, content, path)
        run = content["run"]
        gain, span, diameter = (
            np.nan if run.get(name) is None else float(run[name]) for name in ("gain", "optimal_span", "diameter")
        )
        is_exact = run.get("regret_exact", True) is True
        problem = Problem(run["n_states"], run["n_actions"], gain, span, diameter, is_exact, run.get("costs") is True)
        parameters = run.get("parameters", {})  # cells of spanrl before 0.4 do not say
        horizon, digest = content["spec"]["horizon"], content["sha256"][CURVE_FILE]
        found = StoredCell(cell, horizon, problem.gain, content["seconds"], digest, problem, parameters)
        return found, content["versions"] | {"git": content["git"]}
    except RunFileError as error:
        raise _recompute(error) from None
    except KeyError as error:
        raise RunFileError(f"load_results: {path} does not describe a cell ({error}). {_RECOMPUTE}") from None


def read_curve(folder: Path, sha256: str, horizon: int) -> Curve:
    """Return the curve of a finished cell, which must have this digest and end at the horizon."""
    try:
        columns = tables.read_table(folder / CURVE_FILE, only=tuple(CURVE), sha256=sha256)
        check_columns(folder / CURVE_FILE, columns, CURVE)
        if not columns["t"].size or columns["t"][-1] != horizon:
            raise RunFileError(
                f"load_results: {folder / CURVE_FILE} does not end at the horizon {horizon}. Compute it."
            )
    except RunFileError as error:
        raise _recompute(error) from None
    return Curve(columns["t"], np.array([columns[name] for name in VALUES], dtype=np.float64))


def _recompute(error: RunFileError) -> RunFileError:
    """Return ``error`` with the remedy of an experiment in place of that of a single run, its last sentence."""
    return RunFileError(f"{str(error).rpartition('. ')[0]}. {_RECOMPUTE}")
