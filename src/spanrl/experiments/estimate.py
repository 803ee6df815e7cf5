"""How long an experiment will take: finished cells tell it, and where there are none, a moment of each kind of cell does."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Run a cell for a moment; take its speed in the second half of it for the rest."""
    computation = Computation(job, None)
    begun = perf_counter()
    half: list[tuple[float, int]] = []
    last = (0.0, 0)

    def look(t: int, checkpoint: object) -> None:
        nonlocal last
        spent = perf_counter() - begun
        last = spent, t
        if not half and spent > seconds / 2:
            half.append(last)
        if spent > seconds:
            raise _EnoughError

    try:
        computation.run(look)
    except _EnoughError:
        (before, steps), (spent, t) = half[0], last
        speed = (t - steps) / (spent - before) if t > steps else max(t, 1) / spent
        return spent + (job.horizon - t) / speed
    except Exception as error:
        raise OptionError(f"run: the cell {job.id} would fail: {told(error)}.") from error
    return perf_counter() - begun
