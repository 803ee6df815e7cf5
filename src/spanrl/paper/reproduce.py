"""Reproduce the paper: check every claim, run every experiment, and show the outcome on one page.

The same call goes on where it was stopped: claims that were checked stay, experiments resume as ``spanrl run`` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from spanrl.axes import new_figure
from spanrl.errors import UnknownNameError
from spanrl.experiments.progress import Display, Tally, display, plain_lines
from spanrl.experiments.results import load_results
from spanrl.experiments.run import CHECKPOINT_EVERY, drive, n_workers
from spanrl.experiments.spec import Spec
from spanrl.kernels.cache import is_compiled, mark_compiled
from spanrl.options import one_of
from spanrl.paper.claims import SCALES, CheckResult, Claim, all_claims, expected_verdicts
from spanrl.paper.curves import Experiment, from_results
from spanrl.paper.experiments import EXPERIMENTS, experiment_spec, experiments_at
from spanrl.paper.folder import Folder
from spanrl.paper.pool import SLIPS, Answer, ask
from spanrl.paper.slips import Slip
from spanrl.paper.system import System
from spanrl.tables import require_polars

FIRST = "C2"
"""The claim that is checked first: it needs the kernels of learning, which take longest to compile, while another worker plans."""


@dataclass(frozen=True)
class Reproduction:
    """What a reproduction found: ``claims`` is the content of claims.json, ``run`` that of run.json.

    ``surprises`` are the claims, of those asked for, whose verdict is not the expected one; ``experiments`` holds those that are complete;
    ``problems`` are sentences on what else went wrong.
    """

    dir: Path
    scale: str
    claims: Mapping[str, Mapping[str, Any]]
    surprises: tuple[str, ...]
    experiments: Mapping[str, Experiment]
    slips: Sequence[Slip]
    run: Mapping[str, Any]
    problems: tuple[str, ...] = ()


def reproduce(
    *,
    out: str | os.PathLike[str],
    scale: str = "quick",
    only: Sequence[str] = (),
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    show: bool = False,
) -> Reproduction:
    """Check the claims of the paper and run its experiments; write claims.json, report.html, reproduction.md and figures.

    Args:
        out: directory; a new one, or one of the same scale to go on with.
        scale: "smoke", "quick" or "paper" (the paper's horizons and numbers of runs); smoke takes a minute, quick about three, paper
            about eleven on two cores.
        only: ids of claims; all of them where left out. G1 to G7 are about the experiments.
        engine: where the experiments run, "local" or "ray"; claims are checked on this machine.
        workers: processes on this machine; as many as there are processors where left out.
        address: of the Ray cluster.
        show: whether to tell how far it is on standard error.

    Ctrl-C raises KeyboardInterrupt; nothing that was finished is lost.
    """
    one_of("reproduce", "scale", scale, ("quick", "smoke", "paper"))
    one_of("reproduce", "engine", engine, ("local", "ray"))
    claims, chosen = select_claims(only), SCALES[scale]
    count = n_workers(workers, 10**6)
    require_polars()
    new_figure()  # matplotlib is needed in the end; better to say so now
    folder = Folder(out, chosen)
    options = {"engine": engine, "workers": workers, "address": address, "show": show, "retry_failed": True}
    with ExitStack() as stack:
        if engine == "ray":
            from spanrl.experiments.on_ray import RayEngine

            # a cluster that is not there is told before any work is done; the experiments share the connection
            stack.callback(RayEngine(address or "auto", (), (), CHECKPOINT_EVERY).close)
        folder.open()
        stack.callback(folder.close)
        told = plain_lines(show)
        if not is_compiled("reproduce"):
            told.say("compiling for first use, about half a minute, once …")
        asked = [claim.id for claim in claims if claim.experiment is None]
        _check(folder, asked if only else [*asked, SLIPS], count, show)
        if not only:
            mark_compiled("reproduce")
        wanted = [name for name in experiments_at(chosen) if not only or name in {claim.experiment for claim in claims}]
        folder.run["workers"] = count
        failed = _experiments(folder, wanted, claims, told, options)
        return _conclude(folder, [claim.id for claim in claims], failed, told)


def select_claims(only: Iterable[str]) -> list[Claim]:
    """Return the claims with these ids, in the order of the paper; all where there are none.

    >>> [claim.id for claim in select_claims(["o2", "E1"])]
    ['E1', 'O2']
    """
    claims, wanted = all_claims(), [name.upper() for name in only]
    known = [claim.id for claim in claims]
    for name in wanted:
        if name not in known:
            raise UnknownNameError(f"reproduce: unknown claim {name!r}. Claims are {', '.join(known)}.")
    return [claim for claim in claims if not wanted or claim.id in wanted]


def _check(folder: Folder, tasks: Sequence[str], workers: int, show: bool) -> None:
    """Check the claims, and measure the slips, that are not there yet."""
    todo = sorted((task for task in tasks if not _is_done(folder, task)), key=lambda task: task != FIRST)
    if len(todo) < len(tasks):
        plain_lines(show).say(f"checked before: {_counted([task for task in tasks if task not in todo])}")
    if not todo:
        return
    start, told, tally = perf_counter(), display(show), Tally(_counted(todo), cells=len(todo))

    def tick(running: Sequence[str]) -> None:
        tally.note = f"{tally.finished} of {tally.cells} finished, under way: {', '.join(running)}"
        told.update(tally)

    def done(task: str, answer: Answer) -> None:
        tally.finished += 1
        if task == SLIPS:
            folder.keep(task, answer.content or {"slips": [], "reason": answer.why}, answer.seconds)
            told.say(f"slips of the text: {answer.why or 'measured'}  ({answer.seconds:.1f} s)")
        else:
            _keep(
                folder,
                task,
                answer.content or CheckResult("not-run", {"reason": answer.why}).to_json(),
                answer.seconds,
                told,
            )

    told.say(f"checking {tally.name}")
    try:
        ask(todo, folder.scale, workers=min(workers, len(todo)), done=done, tick=tick)
    finally:
        told.close()
        folder.spend("claims", perf_counter() - start)


def _counted(tasks: Sequence[str]) -> str:
    """Say how many claims there are, and whether the slips are among the tasks."""
    n_claims = len(tasks) - (SLIPS in tasks)
    claims = [f"{n_claims} claims" if n_claims > 1 else "1 claim"] if n_claims else []
    return " and ".join(claims + ["the slips of the text"] * (SLIPS in tasks))


def _is_done(folder: Folder, task: str) -> bool:
    """Tell whether a task was done before; one that was given up is tried again."""
    found = folder.kept(task)
    return found is not None and found.get("verdict") != "not-run" and "reason" not in found


def _keep(folder: Folder, claim: str, outcome: dict[str, Any], seconds: float, told: Display) -> None:
    """Keep and tell what became of a claim."""
    folder.keep(claim, outcome, seconds)
    folder.write_claims(claim_entries(folder))
    verdict, expected = outcome["verdict"], expected_verdicts()[claim]["verdict"]
    mark = "" if verdict == expected else f"EXPECTED {expected}  "
    told.say(f"{claim:<3} {verdict:<8} {mark}({seconds:.1f} s)")


def _experiments(
    folder: Folder, wanted: Sequence[str], claims: Sequence[Claim], told: Display, options: Mapping[str, Any]
) -> list[str]:
    """Run the experiments, one after the other, and judge the claims about them; return what went wrong where there is no claim."""
    failed = []
    for name in wanted:
        spec, start = experiment_spec(name, folder.scale), perf_counter()
        judges = [claim for claim in claims if claim.experiment == name]
        told.say(f"experiment {name}: {len(spec.cells())} runs of {spec.horizon:.3g} steps")
        try:
            outcome = drive(spec, out=folder.experiment(name), **options)
        finally:
            folder.spend(f"experiment {name}", perf_counter() - start)
        if outcome.interrupted:
            raise KeyboardInterrupt
        if not judges:
            failed += [f"experiment {name}: {len(outcome.failed)} runs failed."] if outcome.failed else []
        for claim in judges:
            begun = perf_counter()
            judged = _judge(claim, folder, spec).to_json()
            _keep(folder, claim.id, judged, perf_counter() - begun, told)
    return failed


def _judge(claim: Claim, folder: Folder, spec: Spec) -> CheckResult:
    results = load_results(folder.experiment(spec.name))
    if results.failed:
        first, why = next(iter(results.failed.items()))
        return CheckResult(
            "not-run", {"error": f"{len(results.failed)} of {len(spec.cells())} runs failed, {first} first: {why}"}
        )
    if results.missing:
        return CheckResult("not-run", {"reason": f"{len(results.missing)} of {len(spec.cells())} runs are missing"})
    measured, judge = from_results(results), claim.judge
    assert judge is not None
    return replace(claim, check=lambda system, scale: judge(system, measured)).run(System.real(), folder.scale)


def claim_entries(folder: Folder) -> dict[str, dict[str, Any]]:
    """Return the content of claims.json: every claim, those that were not checked as ``not-run``."""
    expected, out = expected_verdicts(), {}
    for claim in all_claims():
        found = folder.kept(claim.id)
        outcome = (
            CheckResult.from_json(found)
            if found
            else CheckResult("not-run", {"reason": "not asked for, or not yet done"})
        )
        out[claim.id] = {
            "verdict": outcome.verdict,
            "expected": expected[claim.id]["verdict"],
            "reason": expected[claim.id].get("reason", ""),
            "title": claim.title,
            "statement": claim.statement,
            "place": claim.place,
            "tolerance": claim.tolerance,
            "scale": folder.scale.name,
            "numbers": dict(outcome.to_json()["numbers"]),
        }
    return out


def _slips(folder: Folder) -> tuple[Slip, ...]:
    found = folder.kept(SLIPS) or {"slips": []}
    return tuple(Slip(**slip) for slip in found["slips"])


def complete_experiments(folder: Folder) -> dict[str, Experiment]:
    """Return the experiments of the directory that are complete at its scale."""
    found = {}
    for name in EXPERIMENTS:
        if (folder.experiment(name) / "spec.toml").is_file():
            results = load_results(folder.experiment(name))
            if not results.failed and not results.missing and results.groups:
                found[name] = from_results(results)
    return found


def _conclude(folder: Folder, ids: Sequence[str], failed: Sequence[str], told: Display) -> Reproduction:
    """Write what was found."""
    from spanrl.paper.page.write import write_pages

    told.say("drawing …")
    start = perf_counter()
    entries = claim_entries(folder)
    folder.write_claims(entries)
    surprises = tuple(name for name in ids if entries[name]["verdict"] != entries[name]["expected"])
    found = Reproduction(
        folder.path, folder.scale.name, entries, surprises, complete_experiments(folder), _slips(folder), folder.run
    )
    slips = [f"slip {slip.id}: its numbers do not show it." for slip in found.slips if not slip.shown]
    undrawn = [f"figure {name} could not be drawn: {why}" for name, why in write_pages(found).items()]
    folder.spend("pages", perf_counter() - start)
    return replace(found, problems=(*failed, *slips, *undrawn))
