"""The command reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanrl.cli.output import Settings, TextTable, say, show, tell, tidy_path, to_whole
from spanrl.errors import OptionError

if TYPE_CHECKING:
    from spanrl.paper.reproduce import Reproduction


DURATIONS = "smoke takes a minute, quick about three, paper about eleven on two cores"


def reproduce(
    more: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Ids of claims, the same as --only.", show_default=False)
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            metavar="smoke|quick|paper",
            help=f"How much to do; paper has the paper's horizons and numbers of runs. {DURATIONS}.",
        ),
    ] = "quick",
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID...",
            help="Ids of claims, such as --only L2 S1 G3; all where left out. G1 to G7 are about the experiments.",
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="Folder of the outcome; reproduction-SCALE where left out.",
        ),
    ] = "",
    workers: Annotated[
        str,
        typer.Option(metavar="N", help="Processes on this machine; as many as there are processors where left out."),
    ] = "",
    ray: Annotated[
        str, typer.Option(metavar="auto|ADDRESS", help="Run the experiments on a Ray cluster; claims are checked here.")
    ] = "",
) -> None:
    """Check every claim of the paper, run its experiments, and show the outcome on one page.

    Exit code 1 where a verdict is not the expected one. After a kill, the same command resumes.
    """
    from spanrl.paper.reproduce import reproduce as run_all

    count = to_whole("reproduce", "--workers", workers, least=1) if workers else None
    ids = [part for text in (*(only or ()), *(more or ())) for part in text.split(",") if part]
    if (only or more) and not ids:
        raise OptionError("reproduce: --only must name claims, such as --only L2 S1.")
    target = tidy_path(out) or f"reproduction-{scale}"
    try:
        found = run_all(
            out=target, scale=scale, only=ids, engine="ray" if ray else "local", workers=count, address=ray or None,
            show=not Settings.quiet,
        )  # fmt: skip
    except KeyboardInterrupt:
        tell(f"what was done is kept in {target}. The same command resumes.")
        raise
    _summarise(found, ids, target)
    if found.surprises or found.problems:
        raise typer.Exit(1)


def _summarise(found: Reproduction, ids: list[str], out: str) -> None:
    from spanrl.paper.claims.base import WHY
    from spanrl.paper.page.summary import verdicts

    asked = [name for name in found.claims if not ids or name in {one.upper() for one in ids}]
    if not Settings.quiet:
        table = TextTable("claim", "verdict", "expected", "")
        for name in asked:
            entry = found.claims[name]
            table.add_row(name, entry["verdict"], entry["expected"], entry["title"])
        show(table)
    say(
        f"{len(asked) - len(found.surprises)} of {len(asked)} verdicts are as expected: "
        f"{verdicts(found.claims[name] for name in asked)}. "
        f"{Path(out) / 'report.html'} shows them all."
    )
    for name in found.surprises:
        entry = found.claims[name]
        why = next((str(entry["numbers"][key]) for key in WHY if key in entry["numbers"]), "")
        tell(f"{name} {entry['verdict']}, expected {entry['expected']}: {why}")
    for line in found.problems:
        tell(line)
