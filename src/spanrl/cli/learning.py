"""The command learn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import typer

from spanrl.cli.output import (
    MODEL_HELP,
    Costs,
    Json,
    Plugins,
    Scale,
    TextTable,
    check_scale,
    compiling,
    import_plugins,
    number,
    on_terminal,
    print_json,
    show,
    show_sentence,
    terminable,
    tidy_path,
    to_number,
    to_whole,
)
from spanrl.errors import OptionError, RunFileError, SpanrlError


def learn(
    env: Annotated[str, typer.Argument(metavar="ENV", help=MODEL_HELP, show_default=False)],
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="An agent, such as ucrl or 'scal[span_bound=5]'.", show_default=False)
    ],
    horizon: Annotated[str, typer.Option(help="Number of steps, such as 1e6.")] = "1e6",
    seed: Annotated[
        str, typer.Option(help="Seed of the environment and the agent: the same seed, the same run.")
    ] = "0",
    points: Annotated[str, typer.Option(help="Measurement times per decade of steps.")] = "100",
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Write the run to a new folder: two Parquet tables and meta.json.")
    ] = "",
    plot: Annotated[
        str, typer.Option(metavar="FILE", help="Write a figure of regret and span: .png, .pdf or .svg.")
    ] = "",
    costs: Costs = False,
    scale: Scale = "linear",
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """Let an agent learn in an environment it does not know, and show its regret."""
    from spanrl.agents.registry import make_agent
    from spanrl.learning.files import check_free
    from spanrl.learning.learn import learn as run_agent
    from spanrl.learning.worlds import TableWorld, as_world

    steps, per_decade = to_number("learn", "--horizon", horizon), to_number("learn", "--points", points)
    whole_seed = to_whole("learn", "--seed", seed)
    check_scale("learn", scale)
    import_plugins("learn", plugin)
    world, chosen = as_world(env), make_agent(agent)
    source = world.env if isinstance(world, TableWorld) else env
    if costs:
        if not isinstance(world, TableWorld):
            raise OptionError(f"learn: --costs needs a model; {env} is played step by step. Leave it out.")
        source = replace(world.env, mdp=replace(world.env.mdp, costs=True))
    if out:
        out = tidy_path(out)
        check_free(out)
    if plot:
        _check_figure(plot)
    with terminable() as heard:
        with compiling("learn", 30):
            result = run_agent(
                source, chosen, horizon=steps, seed=whole_seed, points=per_decade, progress=on_terminal()
            )
        heard()
        written = {}
        try:
            if out:
                _save(result, out)
                written["written to"] = out
            if plot:
                _write_figure(result, plot, scale)
                written["figure"] = plot
        finally:  # what cannot be written can still be read
            if as_json:
                public = (name for name in result.__dataclass_fields__ if not name.startswith("_"))
                print_json({name: getattr(result, name) for name in public})
            else:
                _show_run(result, written)
    if result.interrupted:
        raise typer.Exit(130)


def _save(run: Any, folder: str) -> None:
    """Save a run; the folder was looked at before, so that a failure is none of the user's."""
    try:
        run.save(folder)
    except RunFileError as error:
        raise SpanrlError(str(error)) from None


def _write_figure(run: Any, path: str, scale: str) -> None:
    """Write the figure of a run; a half-written one is removed."""
    from spanrl.report.figures import plot_learning

    image, where = BytesIO(), Path(path)
    plot_learning(run, scale).savefig(image, format=where.suffix[1:].lower())
    try:
        where.write_bytes(image.getvalue())
    except OSError as error:
        if where.is_file():
            where.unlink()
        raise SpanrlError(
            f"learn: the figure {path} cannot be written ({error.strerror or error}). Give another --plot."
        ) from None


def _show_run(run: Any, written: Mapping[str, str]) -> None:
    """Print the summary of a run, where it was written, and a few rows of its curve."""
    from spanrl.models.costs import flip

    meta, seconds = run.meta, run.meta["seconds"]
    done = int(run.t[-1]) if run.t.size else 0
    table = TextTable(f"{meta['agent']} on {meta['env']}", "")
    rows = [
        ("steps", f"{done:,}" + (f" of {meta['horizon']:,}: interrupted" if run.interrupted else "")),
        *([("played", meta["played"])] if "played" in meta else []),
        ("seed", str(meta["seed"])),
        (
            "lowest average cost g*" if run.costs else "optimal gain g*",
            number(meta["gain"] if meta["gain"] is None else flip(run.costs, meta["gain"]), "not known"),
        ),
    ]
    if done:
        rows += [
            ("average cost" if run.costs else "average reward", f"{flip(run.costs, run.reward[-1] / done):.6g}"),
            ("regret", f"{run.regret[-1]:.6g}"),
            ("pseudo-regret", f"{run.pseudo_regret[-1]:.6g}"),
            *([("the regret is", run.regret_note)] if run.regret_note else []),
            ("episodes", f"{run.n_episodes[-1]:,}"),
            ("span of the optimistic bias", f"{run.span[-1]:.6g}"),
        ]
    busy = seconds["planning"] + seconds["simulating"]
    rows += [("seconds", f"{busy:.3g}"), ("of which planning", f"{seconds['planning']:.3g}")]
    if busy > 0:
        rows.append(("steps per second", f"{done / busy:,.0f}"))
    rows += written.items()
    for row in rows:
        table.add_row(*row)
    show(table)
    for note in run.notes:
        show_sentence(f"Note: {note}")
    powers = [i for i, t in enumerate(run.t) if t >= 10 and math.log10(t).is_integer()]
    if powers:
        columns = {"regret": run.regret, "pseudo-regret": run.pseudo_regret}
        if math.isnan(run.regret[-1]):
            columns = {"cost" if run.costs else "reward": flip(run.costs, run.reward)}
        curve = TextTable("t", *columns, "episodes", "span")
        for i in powers:
            values = (f"{column[i]:.5g}" for column in columns.values())
            curve.add_row(f"{run.t[i]:,}", *values, f"{run.n_episodes[i]:,}", f"{run.span[i]:.4g}")
        show(curve)


def _check_figure(path: str) -> None:
    """Refuse a figure that could not be written, before the work begins."""
    from spanrl.axes import new_axes

    where = Path(path)
    if where.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise OptionError(f"learn: --plot must end in .png, .pdf or .svg; got {path!r}.")
    if not where.parent.is_dir() or where.is_dir():
        raise OptionError(f"learn: --plot must be a file in a folder that exists; got {path!r}.")
    new_axes()
