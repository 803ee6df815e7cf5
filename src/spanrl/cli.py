"""The command ``spanrl``: parse, call the public functions, print, exit code. Nothing is computed here.

Exit codes: 0 done; 1 work failed (not converged, …); 2 wrong input; 130 interrupted. Errors are one line on standard error.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spanrl import __version__
from spanrl.errors import InputError, ModelError, OptionError, SpanrlError

if TYPE_CHECKING:
    from spanrl.models.bounded import BoundedMDP
    from spanrl.models.mdp import MDP

app = typer.Typer(
    name="spanrl",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Average-reward Markov decision processes with a bound on the bias span.",
    epilog="Exit codes: 0 done, 1 work failed, 2 wrong input, 130 interrupted. NO_COLOR switches colours off.",
)

_SHOWN = 40
_MODEL_HELP = "An environment, such as two-state or 'three-state[delta=0.01]', or the path of a saved .npz model."
_JSON_HELP = "Print one JSON object and nothing else."

Json = Annotated[bool, typer.Option("--json", help=_JSON_HELP)]
ModelText = Annotated[str, typer.Argument(metavar="MODEL", help=_MODEL_HELP, show_default=False)]


class _Settings:
    quiet = False


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"spanrl {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version)
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No messages or progress on standard error. May stand anywhere.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error. May stand anywhere.")] = False,
) -> None:
    """Take the options that stand before the command; main() has acted on them already."""


@app.command("list")
def list_(
    what: Annotated[
        str, typer.Argument(help="What to list: envs or agents; both where left out.", show_default=False)
    ] = "",
    as_json: Json = False,
) -> None:
    """List what can be used by name, with its parameters: environments and agents."""
    from spanrl import names
    from spanrl.agents.registry import list_agents
    from spanrl.envs.registry import list_envs

    kinds: dict[str, tuple[str, Callable[[], Sequence[Any]]]] = {
        "envs": ("environment", list_envs),
        "agents": ("agent", list_agents),
    }
    if what and what not in kinds:
        raise names.unknown("list", "kind of thing", what, kinds)
    chosen = {kind: kinds[kind] for kind in ([what] if what else kinds)}
    if as_json:
        fields = ("name", "summary", "source")
        _print_json(
            {
                kind: [
                    {
                        **{f: getattr(e, f) for f in fields},
                        "parameters": {k: p.default for k, p in e.parameters.items()},
                    }
                    for e in entries()
                ]
                for kind, (_, entries) in chosen.items()
            }
        )
        return
    for title, entries in chosen.values():
        table = _table(title, "parameters (default)", "what it is")
        for entry in entries():
            given = [
                key if one.default is None else f"{key}={names.format_value(one.default)}"
                for key, one in entry.parameters.items()
            ]
            table.add_row(entry.name, ", ".join(given) or "–", entry.summary)
        _show(table)


@app.command()
def analyse(
    model: ModelText,
    diameter: Annotated[
        str, typer.Option(help="auto (small models), yes or no: the diameter takes one shortest-path problem a state.")
    ] = "auto",
    as_json: Json = False,
) -> None:
    """Show what a known model is: communication class, optimal gain, bias span, diameter, optimal policy."""
    from spanrl.models.mdp import MDP

    wanted: dict[str, str | bool] = {"auto": "auto", "yes": True, "no": False}
    if diameter not in wanted:
        raise OptionError(f"analyse: --diameter must be auto, yes or no; got {diameter!r}.")
    mdp = _load(model)
    if not isinstance(mdp, MDP):
        raise ModelError(
            f"analyse: {model} is a bounded model, which is a set of MDPs; analyse takes one MDP. Use plan."
        )
    from spanrl.planning.analyse import analyse as compute

    with _compiling("analyse"):
        result = compute(mdp, diameter=wanted[diameter], progress=_on_terminal())
    if as_json:
        _print_json(
            {**{name: getattr(result, name) for name in result.__dataclass_fields__}, "policy": result.policy.probs}
        )
        return
    table = _table(model, "")
    for label, value in (
        ("states", result.n_states),
        ("actions", result.n_actions),
        ("pairs", result.n_pairs),
        ("successors of a pair, at most", result.max_support),
        ("class", result.classification),
        (
            "optimal gain g*",
            _number(
                result.gain,
                "differs between states" if result.span is None else f"{result.gains[0]:.9g} from every state",
            ),
        ),
        ("span of the optimal bias sp(h*)", _number(result.span, "–")),
        ("diameter D", _number(result.diameter, "not computed (--diameter yes)")),
    ):
        table.add_row(label, str(value))
    _show(table)
    columns = {"optimal action": [result.policy.describe(s) for s in range(min(mdp.n_states, _SHOWN))]}
    if result.span is None:
        columns["gain"] = [f"{g:.6g}" for g in result.gains[:_SHOWN]]
    columns["bias"] = [f"{h:.6g}" for h in result.bias[:_SHOWN]]
    _show_states(mdp, columns)


@app.command()
def plan(
    model: ModelText,
    span_bound: Annotated[
        str, typer.Option("--span-bound", help="Bound c on the span of the bias, a number ≥ 0 or inf.")
    ] = "inf",
    tol: Annotated[str, typer.Option(help="Width of the certified gain interval at which to stop.")] = "1e-6",
    sense: Annotated[
        str, typer.Option(help="For bounded models: optimistic (best model) or pessimistic (worst model).")
    ] = "optimistic",
    method: Annotated[
        str, typer.Option(help="auto, value-iteration, modified-policy-iteration or policy-iteration.")
    ] = "auto",
    policy: Annotated[str, typer.Option(help="In truncated states: mixture (the paper) or greedy.")] = "mixture",
    max_sweeps: Annotated[str, typer.Option(help="Give up after so many sweeps.")] = "1e7",
    as_json: Json = False,
) -> None:
    """Solve a model, with or without a bound on the bias span, and show the policy with its certified gain."""
    bound, width, most = (
        _to_number("plan", "--span-bound", span_bound),
        _to_number("plan", "--tol", tol),
        _to_number("plan", "--max-sweeps", max_sweeps),
    )
    if not 1 <= most < math.inf or most != int(most):
        raise OptionError(f"plan: --max-sweeps must be a whole number ≥ 1; got {max_sweeps}.")
    loaded = _load(model)
    from spanrl.planning.solve import check_options, solve

    check_options(loaded, bound, width, sense, method, policy=policy)
    with _compiling("plan"):
        solution = solve(
            loaded, span_bound=bound, tol=width, sense=sense, method=method, policy=policy, max_sweeps=int(most)
        )
    if as_json:
        fields = {name: getattr(solution, name) for name in solution.__dataclass_fields__ if not name.startswith("_")}
        chain, reward = solution.optimistic
        chain = chain.tocoo()
        extended = {
            "transitions": [
                [int(s), int(t), float(p)] for s, t, p in zip(chain.row, chain.col, chain.data, strict=True)
            ],
            "reward": reward,
        }
        _print_json({**fields, "policy": solution.policy.probs, "optimistic": extended})
        return
    table = _table(model, "")
    low, high = solution.gain_bounds
    for label, value in (
        ("span bound c", _number(bound, "–")),
        ("gain g⁺", f"{solution.gain:.9g}"),
        ("certified in", f"[{low:.9g}, {high:.9g}]"),
        ("span of the bias", f"{solution.span:.9g}"),
        ("truncated states", f"{int(solution.truncated.sum())} of {solution.truncated.size}"),
        (
            "feasible",
            "yes"
            if solution.feasible
            else "no: the gain is an upper bound; the policy may have another gain and a span above c",
        ),
        ("policy", "deterministic" if solution.policy.is_deterministic else "randomised"),
        ("sweeps", solution.sweeps),
    ):
        table.add_row(label, str(value))
    _show(table)
    shown = range(min(loaded.n_states, _SHOWN))
    _show_states(
        loaded,
        {
            "action": [solution.policy.describe(s) for s in shown],
            "bias": [f"{h:.6g}" for h in solution.bias[:_SHOWN]],
            "truncated": ["yes" if t else "" for t in solution.truncated[:_SHOWN]],
        },
    )


@app.command()
def learn(
    env: Annotated[str, typer.Argument(metavar="ENV", help=_MODEL_HELP, show_default=False)],
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="An agent, such as ucrl or 'scal[span_bound=5]'.", show_default=False)
    ],
    horizon: Annotated[str, typer.Option(help="Number of steps, such as 1e6.")] = "1e6",
    seed: Annotated[
        str, typer.Option(help="Seed of the environment and the agent: the same seed, the same run.")
    ] = "0",
    points: Annotated[str, typer.Option(help="Measurement times a decade of steps.")] = "100",
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Write the run to a new folder: two Parquet tables and meta.json.")
    ] = "",
    plot: Annotated[
        str, typer.Option(metavar="FILE", help="Write a figure of regret and span: .png, .pdf or .svg.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Let an agent learn in an environment it does not know, and show its regret."""
    from spanrl.agents.registry import make_agent
    from spanrl.learning.learn import learn as run_agent
    from spanrl.learning.files import check_free
    from spanrl.learning.worlds import as_world

    steps, per_decade = _to_number("learn", "--horizon", horizon), _to_number("learn", "--points", points)
    whole_seed = _to_seed(seed)
    world, chosen = as_world(env).env, make_agent(agent)
    if out:
        check_free(out)
    if plot:
        _check_figure(plot)
    with _compiling("learn", 30):
        result = run_agent(world, chosen, horizon=steps, seed=whole_seed, points=per_decade, progress=_on_terminal())
    if out:
        result.save(out)
    if plot:
        from spanrl.report.figures import plot_learning

        plot_learning(result).savefig(plot)
    if as_json:
        _print_json({name: getattr(result, name) for name in result.__dataclass_fields__})
    else:
        _show_run(result, out, plot)
    if result.interrupted:
        raise typer.Exit(130)


def _show_run(run: Any, out: str, plot: str) -> None:
    """Print the summary of a run and a few rows of its curve."""
    meta, seconds = run.meta, run.meta["seconds"]
    done = int(run.t[-1]) if run.t.size else 0
    table = _table(f"{meta['agent']} on {meta['env']}", "")
    rows = [
        ("steps", f"{done:,}" + (f" of {meta['horizon']:,}: interrupted" if run.interrupted else "")),
        ("seed", str(meta["seed"])),
        ("optimal gain g*", _number(meta["gain"], "not known")),
    ]
    if done:
        rows += [
            ("average reward", f"{run.reward[-1] / done:.6g}"),
            ("regret", f"{run.regret[-1]:.6g}"),
            ("pseudo-regret", f"{run.pseudo_regret[-1]:.6g}"),
            ("episodes", f"{run.n_episodes[-1]:,}"),
            ("span of the optimistic bias", f"{run.span[-1]:.6g}"),
        ]
    busy = seconds["planning"] + seconds["simulating"]
    rows += [("seconds", f"{busy:.3g}"), ("of which planning", f"{seconds['planning']:.3g}")]
    if busy > 0:
        rows.append(("steps a second", f"{done / busy:,.0f}"))
    rows += [(what, where) for what, where in (("written to", out), ("figure", plot)) if where]
    for row in rows:
        table.add_row(*row)
    _show(table)
    powers = [i for i, t in enumerate(run.t) if t >= 10 and math.log10(t).is_integer()]
    if powers:
        curve = _table("t", "regret", "pseudo-regret", "episodes", "span")
        for i in powers:
            curve.add_row(
                f"{run.t[i]:,}",
                f"{run.regret[i]:.5g}",
                f"{run.pseudo_regret[i]:.5g}",
                f"{run.n_episodes[i]:,}",
                f"{run.span[i]:.4g}",
            )
        _show(curve)


def _check_figure(path: str) -> None:
    """Refuse a figure that could not be written, before the work begins."""
    from spanrl.axes import new_axes

    where = Path(path)
    if where.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise OptionError(f"learn: --plot must end in .png, .pdf or .svg; got {path!r}.")
    if not where.parent.is_dir() or where.is_dir():
        raise OptionError(f"learn: --plot must be a file in a folder that exists; got {path!r}.")
    new_axes()


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    _Settings.quiet = "--quiet" in arguments
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # ∞ and g⁺ where the encoding has none
    try:
        code = app(
            [word for word in arguments if word not in ("--debug", "--quiet")],
            prog_name="spanrl",
            standalone_mode=False,
        )
        if sys.stdout is not None:  # None where it was closed before we started
            sys.stdout.flush()
        return _fail("interrupted.", 130) if code == 130 else int(code or 0)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted.", 130)
    except (BrokenPipeError, SystemExit):
        # the reader, such as head, has seen enough; the libraries we print with leave on their own then
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if debug:
            raise
        if isinstance(error, SpanrlError):
            return _fail(str(error), 2 if isinstance(error, InputError) else 1)
        return _other_error(error)


def _other_error(error: Exception) -> int:
    """Report an error that is not ours: wrong usage (the command-line library has moved its classes between versions), or a fault."""
    message = getattr(error, "format_message", None)
    if message is None:
        what = f"{error.strerror}" if isinstance(error, OSError) else f"internal error, {type(error).__name__}: {error}"
        return _fail(f"{what}. Run again with --debug for the traceback.", 1)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(message())
        return 0
    return _fail(f"{message()} Try 'spanrl --help'.", 2)


def _fail(message: str, code: int) -> int:
    """Print one line on standard error and return the exit code."""
    print(f"spanrl: {' '.join(message.split())}", file=sys.stderr)
    return code


def _load(text: str) -> MDP | BoundedMDP:
    """Return the model of a saved file or a named environment."""
    path = Path(text)
    if path.suffix == ".npz" or path.is_file() or "/" in text or os.sep in text:
        from spanrl.models import files
        from spanrl.models.bounded import BoundedMDP
        from spanrl.models.mdp import MDP

        return BoundedMDP.load(path) if files.kind_of(path) == "bounded" else MDP.load(path)
    from spanrl.envs.registry import make

    return make(text).mdp


@contextmanager
def _compiling(task: str, seconds: int = 10) -> Iterator[None]:
    """Say that the first run of a task compiles, where it does; remember that it has."""
    from spanrl.kernels.cache import cache_dir, is_compiled, mark_compiled

    if not _Settings.quiet and not is_compiled(task):
        kept = (
            "once"
            if cache_dir()
            else "each time, as the cache cannot be written: set NUMBA_CACHE_DIR to a writable folder"
        )
        print(f"spanrl: compiling for first use, about {seconds} seconds, {kept} …", file=sys.stderr, flush=True)
    yield
    mark_compiled(task)


def _on_terminal() -> bool:
    return sys.stderr.isatty() and not _Settings.quiet


def _to_seed(text: str) -> int:
    """Return a seed: exactly where it is written as an integer, and 1e3 is one, too."""
    try:
        return int(float(text)) if "e" in text.lower() and float(text).is_integer() else int(text)
    except (ValueError, OverflowError):
        raise OptionError(f"learn: --seed must be a whole number ≥ 0; got {text!r}.") from None


def _to_number(who: str, option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"{who}: {option} must be a number such as 0.75, 1e7 or inf; got {text!r}.") from None


def _number(value: float | None, missing: str) -> str:
    if value is None:
        return missing
    return "∞" if value == math.inf else f"{value:.9g}"


def _plain(value: Any) -> Any:
    """Turn arrays and special numbers into what JSON has: ∞ as "inf", NaN as null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(_plain(value), allow_nan=False))


def _table(*columns: str) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(Text(column), overflow="fold", no_wrap=i == 0)
    return table


def _show(table: Any) -> None:
    from rich.console import Console

    Console(highlight=False, markup=False, emoji=False).print(table)


def _show_states(model: MDP | BoundedMDP, columns: dict[str, list[str]]) -> None:
    """Print one row a state, the first ones only where there are many."""
    table = _table("state", *columns)
    names = getattr(model, "state_names", None)
    for s, row in enumerate(zip(*columns.values(), strict=True)):
        table.add_row(names[s] if names else str(s), *row)
    _show(table)
    if model.n_states > _SHOWN:
        print(f"… {model.n_states - _SHOWN} more states; --json shows all.")


if __name__ == "__main__":
    sys.exit(main())
