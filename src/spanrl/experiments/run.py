"""Run an experiment: environments × agents × seeds, on this machine or on a Ray cluster, with nothing lost on the way.

The result is a directory that can be read by anything that reads Parquet. Running it again resumes where it stopped: after a kill, with
more seeds, more entries or a longer horizon.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from math import isfinite
from typing import Any

from spanrl.agents.registry import list_agents
from spanrl.envs.registry import list_envs
from spanrl.errors import CellsFailedError, OptionError
from spanrl.experiments.driver import Driver, DriverResult
from spanrl.experiments.engine import Engine
from spanrl.experiments.local import LocalEngine
from spanrl.experiments.progress import display
from spanrl.experiments.results import Results, load_results
from spanrl.experiments.spec import Cell, Spec, read_spec
from spanrl.experiments.store import Store
from spanrl.options import one_of
from spanrl.tables import require_polars
from spanrl.terminal import visible

CHECKPOINT_EVERY = 30.0
"""Seconds between two checkpoints of a cell."""


def run_experiment(
    spec: str | os.PathLike[str] | Mapping[str, Any],
    *,
    out: str | os.PathLike[str],
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    cell_timeout: float | None = None,
) -> Results:
    """Compute all cells of an experiment that ``out`` does not hold yet; return the results of all.

    Args:
        spec: path of a TOML file, name of a shipped experiment, or a mapping with the same keys.
        out: directory; a new one, or one of the same experiment with fewer seeds, fewer entries or a shorter horizon.
        engine: "local" (processes on this machine) or "ray".
        workers: processes of the local engine; as many as there are processors where left out.
        address: of the Ray cluster, "auto" for the one this machine belongs to.
        cell_timeout: seconds on the clock after which a cell is ended and counts as failed; no limit where left out.

    Failed cells do not stop the others; a CellsFailedError that carries the ``results`` of the others tells of them in the end. Ctrl-C
    raises KeyboardInterrupt once the cells under way have written their checkpoints.

    Returns:
        The :class:`Results` of all finished cells.

    Raises:
        InputError: the spec or an option is wrong, or ``out`` belongs to another experiment.
        DirectoryInUseError: another process runs an experiment in ``out``.
        CellsFailedError: cells have failed.

    >>> import tempfile
    >>> spec = {"name": "tiny", "horizon": 100, "seeds": 1, "env": [{"id": "two-state"}], "agent": [{"id": "nothing"}]}
    >>> run_experiment(spec, out=tempfile.gettempdir() + "/never-made")
    Traceback (most recent call last):
        ...
    spanrl.errors.UnknownNameError: spec: agent[0]: id: unknown agent 'nothing'. Did you mean 'qlearning'?
    """
    outcome = drive(
        read_spec(spec), out=out, engine=engine, workers=workers, address=address, cell_timeout=cell_timeout, show=True
    )
    if outcome.interrupted:
        raise KeyboardInterrupt
    results = load_results(out)
    if outcome.failed:
        first, reason = next(iter(outcome.failed.items()))
        reason = visible(reason.rstrip("."))  # it may come from a plugin
        raise CellsFailedError(
            f"run: {len(outcome.failed)} of {outcome.cells} cells failed, {first} first: {reason}. "
            f"The texts are in {results.dir / 'failed'}.",
            results,
        )
    return results


def drive(
    spec: Spec,
    *,
    out: str | os.PathLike[str],
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    only: Sequence[str] = (),
    retry_failed: bool = False,
    checkpoint_every: float = CHECKPOINT_EVERY,
    cell_timeout: float | None = None,
    show: bool = False,
) -> DriverResult:
    """Compute the cells that are missing; tell what was done. Options that are wrong are refused before anything is touched."""
    require_polars()
    one_of("run", "engine", engine, ("local", "ray"))
    cells = select(spec.cells(), only)
    check_importable(spec)
    check_seconds("--checkpoint-every", checkpoint_every)
    if cell_timeout is not None:
        check_seconds("--cell-timeout", cell_timeout)
    count = n_workers(workers, len(cells))
    store = Store(out)
    store.check(spec)
    with ExitStack() as stack:
        chosen = _engine(engine, spec, store, count, address, checkpoint_every, cell_timeout)
        stack.callback(chosen.close)
        store.open(spec)
        stack.callback(store.close)
        stack.callback(chosen.close)  # before the lock goes: no worker of ours may write after that
        shown = display(show)
        stack.callback(shown.close)
        return Driver(spec, store, chosen, shown, cells).run(retry_failed=retry_failed)


def _engine(
    name: str, spec: Spec, store: Store, workers: int, address: str | None, every: float, limit: float | None
) -> Engine:
    if name == "ray":
        from spanrl.experiments.on_ray import RayEngine

        return RayEngine(address or "auto", spec.plugins, spec.folders, every, limit)
    return LocalEngine(
        store.dir,
        workers=workers,
        plugins=spec.plugins,
        folders=spec.folders,
        agents=[entry.id for entry in spec.agents],
        checkpoint_every=every,
        cell_timeout=limit,
    )


def check_seconds(option: str, value: Any) -> None:
    """Refuse what is no length of time."""
    if isinstance(value, bool) or not (isinstance(value, (int, float)) and value > 0 and isfinite(value)):
        raise OptionError(f"run: {option} must be a number of seconds > 0; got {value!r}.")


def check_importable(spec: Spec) -> None:
    """Refuse agents and environments that workers could not know, because the calling script itself registers them."""
    envs, agents = ({entry.name: entry.factory for entry in listed} for listed in (list_envs(), list_agents()))
    for key, used, known in (("env", spec.envs, envs), ("agent", spec.agents, agents)):
        for entry in used:
            name = entry.id.partition("[")[0]
            home = getattr(known.get(name, ""), "__module__", "spanrl")
            if home == "__main__" or not (spec.plugins or home.partition(".")[0] == "spanrl"):
                raise OptionError(
                    f"run: the {key} {name!r} is registered by {'the script' if home == '__main__' else home}, which workers do not "
                    "import. Put it into a module of its own, and name that in plugins."
                )


def select(cells: Sequence[Cell], patterns: Iterable[str]) -> list[Cell]:
    """Return the cells whose id contains one of the ``patterns``, in which * stands for any text; all where there are none.

    >>> from spanrl.experiments.spec import SpecEntry
    >>> cells = [Cell(SpecEntry("a[x=1]", "a"), SpecEntry("ucrl", "u"), seed) for seed in range(20)]
    >>> [cell.seed for cell in select(cells, ["[x=1]/ucrl/01*", "a*/003"])]
    [3, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
    """
    patterns = list(patterns)
    if not patterns:
        return list(cells)
    rules = [re.compile(".*".join(map(re.escape, pattern.split("*")))) for pattern in patterns]
    for pattern, rule in zip(patterns, rules, strict=True):
        if not any(rule.search(cell.id) for cell in cells):
            raise OptionError(
                f"run: --only {pattern!r} matches no cell. Cells are named like {cells[0].id}; * stands for any text."
            )
    return [cell for cell in cells if any(rule.search(cell.id) for rule in rules)]


def n_workers(workers: int | None, cells: int) -> int:
    """Return how many processes to use, no more than there are cells."""
    if workers is not None:
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
            raise OptionError(
                f"run: workers must be a whole number ≥ 1; got {workers!r}. Leave it out for one a processor."
            )
        return min(workers, cells)
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, cells)
