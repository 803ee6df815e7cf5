"""How long an experiment will take: finished cells tell it, and where there are none, a moment of each kind of cell does."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from time import perf_counter

from spanrl.errors import OptionError, RunFileError
from spanrl.experiments.cell import Computation
from spanrl.experiments.driver import job_of
from spanrl.experiments.engine import Job
from spanrl.experiments.fields import told
from spanrl.experiments.spec import Cell, Spec
from spanrl.experiments.store import Store
from spanrl.learning.files import META_FILE, read_meta

_BUDGET = 10.0  # seconds for all trials together
_TRIAL = 0.5  # seconds for one of them
_TINY = 200


class _EnoughError(Exception):
    """The trial has lasted long enough."""


def estimate(spec: Spec, store: Store, cells: Sequence[Cell]) -> dict[tuple[str, str], float]:
    """Return about how many seconds a cell of each environment and agent takes from its beginning."""
    kinds = {(cell.env.id, cell.agent.id): cell for cell in reversed(cells)}  # the first cell of each kind
    all_of: dict[tuple[str, str], list[Cell]] = {}
    for cell in spec.cells():
        all_of.setdefault((cell.env.id, cell.agent.id), []).append(cell)
    trial = min(_TRIAL, _BUDGET / max(len(kinds), 1))
    out = {}
    for kind, cell in kinds.items():
        known = _known(store, all_of[kind], spec.horizon)
        out[kind] = known if known is not None else _try(job_of(cell, spec), trial)
    return out


def _known(store: Store, cells: Sequence[Cell], horizon: int) -> float | None:
    """Return the seconds of a cell of the kind that is finished."""
    for cell in cells:
        try:
            content = read_meta(store.cell_folder(cell.folder) / META_FILE)
        except RunFileError:
            continue
        return float(content["seconds"]["total"]) * horizon / int(content["spec"]["horizon"])
    return None


def _try(job: Job, seconds: float) -> float:
    """Run a cell for a moment, and extrapolate."""
    tiny = job._replace(horizon=min(job.horizon, _TINY))
    try:
        Computation(tiny, None).run(lambda t, checkpoint: None)  # what is compiled or loaded first is not the cell's
        computation = Computation(job, None)
        seen = _watch(computation, seconds)
        return _extrapolate(seen, job.horizon, computation.seconds_a_step())
    except Exception as error:
        raise OptionError(f"run: the cell {job.id} would fail: {told(error)}.") from error


def _watch(computation: Computation, seconds: float) -> list[tuple[int, float]]:
    """Return the steps done and the seconds they took, at the middle and at the end of a trial."""
    begun = perf_counter()
    seen: list[tuple[int, float]] = []

    def look(t: int, checkpoint: object) -> None:
        past = perf_counter() - begun
        if past > seconds / 2 * (1 + len(seen)):
            seen.append(computation.spent())
        if past > seconds:
            raise _EnoughError

    try:
        computation.run(look)
    except _EnoughError:
        return seen
    return [computation.spent()]


def _extrapolate(seen: list[tuple[int, float]], horizon: int, step: float | None) -> float:
    """Return the seconds to the horizon: steps cost ``step`` each, and all else comes with episodes, whose number grows like log t."""
    t, spent = seen[-1]
    if t >= horizon:
        return spent
    if step is None or t < 2:
        return spent * horizon / max(t, 1)
    before, spent_before = seen[0] if 1 < seen[0][0] < t else (1, 0.0)
    grown = max((spent - spent_before) - step * (t - before), 0.0) / log(t / before)
    return spent + step * (horizon - t) + grown * log(horizon / t)
