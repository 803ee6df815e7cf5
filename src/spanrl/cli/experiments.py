"""The commands about experiments: run, status, report."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spanrl.cli.output import (
    Json,
    Scale,
    Settings,
    TextTable,
    check_scale,
    compiling,
    print_json,
    say,
    show,
    tell,
    tidy_path,
    to_number,
    to_whole,
)
from spanrl.errors import OptionError

if TYPE_CHECKING:
    from spanrl.experiments.driver import DriverResult
    from spanrl.experiments.spec import Cell, Spec

_LISTED = 20
_SUMMARISED = 2000  # cells; with more, reading all of them for one table takes too long
_STATES = ("finished", "running", "begun", "waiting", "failed")

Directory = Annotated[str, typer.Argument(metavar="DIR", help="Directory of an experiment.", show_default=False)]


def run(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC",
            help="A TOML file, or the name of a shipped experiment (spanrl list experiments).",
            show_default=False,
        ),
    ],
    out: Annotated[
        str,
        typer.Option(metavar="DIR", help="Where the results go; an unfinished experiment there is resumed."),
    ],
    workers: Annotated[
        str, typer.Option(metavar="N", help="Worker processes; as many as there are processors where left out.")
    ] = "",
    ray: Annotated[
        str, typer.Option(metavar="auto|ADDRESS", help="Compute on a Ray cluster instead of this machine alone.")
    ] = "",
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Only cells whose id contains it; * is any text. May be given again."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the cells and an estimate of the time; compute and write nothing.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also compute the cells that have failed before.")
    ] = False,
    checkpoint_every: Annotated[
        str, typer.Option(metavar="SECONDS", help="Time between two checkpoints of a cell.")
    ] = "30",
    cell_timeout: Annotated[
        str, typer.Option(metavar="SECONDS", help="End a cell that takes longer on the clock; it counts as failed.")
    ] = "",
) -> None:
    """Run an experiment: environments × agents × seeds. The same command resumes after a kill; nothing is lost or computed twice."""
    from spanrl.experiments.run import drive
    from spanrl.experiments.spec import read_spec

    seconds = to_number("run", "--checkpoint-every", checkpoint_every)
    limit = to_number("run", "--cell-timeout", cell_timeout) if cell_timeout else None
    count = to_whole("run", "--workers", workers, least=1) if workers else None
    if ray and workers:
        raise OptionError("run: --workers is for this machine, --ray for a cluster. Give one of them.")
    chosen, out = read_spec(spec), tidy_path(out)
    if dry_run:
        _dry_run(chosen, out, count, only or [], retry_failed)
        return
    outcome = drive(
        chosen,
        out=out,
        engine="ray" if ray else "local",
        workers=count,
        address=ray or None,
        only=only or [],
        retry_failed=retry_failed,
        checkpoint_every=seconds,
        cell_timeout=limit,
        show=not Settings.quiet,
    )
    _finish(outcome, out)


def _finish(outcome: DriverResult, out: str) -> None:
    """Print what came of it, and leave with the exit code that says so."""
    if outcome.interrupted:
        tell(f"{outcome.finished} of {outcome.cells} cells are finished. The same command resumes.")
        raise typer.Exit(130)
    if not Settings.quiet:
        _summarise(outcome, out)
    if outcome.failed:
        _list_failures(outcome, out)
    if outcome.failed or outcome.waiting:
        raise typer.Exit(1)


def _summarise(outcome: DriverResult, out: str) -> None:
    """Print the final regrets; whatever keeps us from it does not change what was done."""
    from spanrl.errors import RunFileError
    from spanrl.experiments.results import load_results

    try:
        if outcome.finished <= _SUMMARISED:
            say(str(load_results(out)))
        say(f"\n{outcome.finished} of {outcome.cells} cells finished in {out}. Next: spanrl report {out}", flush=True)
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except RunFileError as error:
        tell(str(error))


def _list_failures(outcome: DriverResult, out: str) -> None:
    for name, reason in list(outcome.failed.items())[:_LISTED]:
        tell(f"{name} failed: {reason}")
    hidden = len(outcome.failed) - _LISTED
    more = f" ({hidden} more are not listed)" if hidden > 0 else ""
    tell(
        f"{len(outcome.failed)} of {outcome.cells} cells failed{more}; the texts are in {Path(out) / 'failed'}. "
        "--retry-failed computes them again."
    )


def _dry_run(spec: Spec, out: str, workers: int | None, only: list[str], retry_failed: bool) -> None:
    """Print every cell with its state, and about how long the rest will take."""
    from spanrl.experiments.estimate import estimate
    from spanrl.experiments.progress import clock
    from spanrl.experiments.run import n_workers, select
    from spanrl.experiments.store import Store

    cells = select(spec.cells(), only)
    count = n_workers(workers, len(cells))
    store = Store(out)
    store.check(spec)
    states = store.states(spec)
    for cell in cells:
        say(f"{states[cell.id]:<10}{cell.id}")
    wanted = ("begun", "waiting", "failed") if retry_failed else ("begun", "waiting")
    todo: list[Cell] = [cell for cell in cells if states[cell.id] in wanted]
    if not Settings.quiet and todo:
        tell("trying each kind of cell for a moment …")
    with compiling("dry-run", 40):
        each = estimate(spec, store, todo)
    total = sum(
        each[cell.env.id, cell.agent.id] * (1 - (store.checkpoint_time(cell.folder) or 0) / spec.horizon)
        for cell in todo
    )
    longest = max(each.values(), default=0.0)
    print(
        f"{len(cells)} cells, {len(todo)} to compute: about {clock(max(total / count, longest))} with {count} workers "
        f"({total:.3g} s of computing)."
    )


def status(directory: Directory, as_json: Json = False) -> None:
    """Show how far an experiment is, whether it runs or not."""
    from spanrl.experiments.lost import REMEDY, SPEC_FILE, has_lost_its_spec
    from spanrl.experiments.spec import load_spec
    from spanrl.experiments.store import Store

    store = Store(directory)
    if has_lost_its_spec(store.dir):
        raise OptionError(f"status: {directory} cannot be read. {REMEDY}.")
    if not (store.dir / SPEC_FILE).is_file():
        raise OptionError(
            f"status: {directory} is no experiment, it has no {SPEC_FILE}. Give the directory of spanrl run."
        )
    spec = load_spec(store.dir / SPEC_FILE)
    states, driver = store.states(spec), store.lock.holder()
    counts = Counter(states.values())
    begun = [cell for cell in spec.cells() if states[cell.id] in ("running", "begun")]
    steps = {cell.id: store.checkpoint_time(cell.folder) for cell in begun}
    failed = {cell.id: store.reason(cell.folder) for cell in spec.cells() if states[cell.id] == "failed"}
    if as_json:
        content: dict[str, Any] = {
            "name": spec.name, "horizon": spec.horizon, "cells": len(states), "driver": driver and driver.get("pid"),
            **{state: counts[state] for state in _STATES},
        }  # fmt: skip
        print_json({**content, "steps": steps, "failures": failed})
        return
    told = f"process {driver['pid']} on {driver['host']}" if driver else "unknown"
    summary = TextTable(spec.name, "")
    for row in (
        ("horizon", f"{spec.horizon:,}"),
        ("driver", told if driver is not None else "none"),
        ("cells", f"{len(states):,}"),
        *((state, f"{counts[state]:,}") for state in _STATES),
    ):
        summary.add_row(*row)
    show(summary)
    per = Counter((cell.env.id, cell.agent.id, states[cell.id]) for cell in spec.cells())
    shown = [state for state in _STATES if counts[state]]
    table = TextTable("environment / agent", *shown)
    for env in spec.envs:
        for agent in spec.agents:
            table.add_row(f"{env.id} / {agent.id}", *(str(per[env.id, agent.id, state] or "") for state in shown))
    show(table)
    _show_some("at the last checkpoint", {name: f"{t or 0:,} of {spec.horizon:,} steps" for name, t in steps.items()})
    _show_some("failed", failed)


def _show_some(title: str, lines: dict[str, str]) -> None:
    """Print the first of some cells with a word on each."""
    if not lines:
        return
    table = TextTable(title, "")
    for name, text in list(lines.items())[:_LISTED]:
        table.add_row(name, text)
    show(table)
    if len(lines) > _LISTED:
        print(f"… {len(lines) - _LISTED} more; --json shows all.")


def report(directory: Directory, scale: Scale = "linear") -> None:
    """Write figures (PNG, PDF) and one self-contained report.html of the results in a directory."""
    from spanrl.experiments.results import load_results
    from spanrl.report.write import write_report

    check_scale("report", scale)
    results = load_results(directory)
    if not Settings.quiet:
        tell(f"drawing {len(results.groups)} curves …")
    page = write_report(results, scale=scale)
    say(f"{page}\n{page.parent / 'figures'}")
