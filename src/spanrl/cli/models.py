"""The commands about things that are known: list, analyse, plan."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spanrl.cli.output import (
    MODEL_HELP,
    Costs,
    Json,
    Plugins,
    Settings,
    TextTable,
    compiling,
    import_plugins,
    number,
    on_terminal,
    print_json,
    show,
    show_sentence,
    tell,
    to_number,
)
from spanrl.cli.policy_file import check_policy_file, write_policy
from spanrl.errors import ModelError, OptionError
from spanrl.terminal import visible

if TYPE_CHECKING:
    from spanrl.models.bounded import BoundedMDP
    from spanrl.models.mdp import MDP
    from spanrl.models.solution import Solution

_MANY = 10_000  # states: below, an answer takes seconds
_SHOWN = 40
ModelText = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP, show_default=False)]


def list_(
    what: Annotated[
        str, typer.Argument(help="What to list: envs, agents or experiments; all where left out.", show_default=False)
    ] = "",
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """List what can be used by name: environments and agents with their parameters, and experiments."""
    from spanrl import names
    from spanrl.agents.registry import list_agents
    from spanrl.envs.registry import list_envs
    from spanrl.experiments.shipped import list_experiments

    kinds: dict[str, tuple[str, Callable[[], Sequence[Any]]]] = {
        "envs": ("environment", list_envs),
        "agents": ("agent", list_agents),
        "experiments": ("experiment", list_experiments),
    }
    if what and what not in kinds:
        raise names.unknown("list", "kind of thing", what, kinds)
    import_plugins("list", plugin)
    chosen = {kind: kinds[kind] for kind in ([what] if what else kinds)}
    if as_json:
        print_json({kind: [_described(entry) for entry in entries()] for kind, (_, entries) in chosen.items()})
        return
    for title, entries in chosen.values():
        with_parameters = title != "experiment"
        table = TextTable(title, *(["parameters (default)"] if with_parameters else []), "what it is")
        for entry in entries():
            given = [
                key if one.default is None else f"{key}={names.format_value(one.default)}"
                for key, one in (entry.parameters if with_parameters else {}).items()
            ]
            table.add_row(entry.name, *([", ".join(given) or "–"] if with_parameters else []), entry.summary)
        show(table)
        if title == "environment":
            show_sentence("Gymnasium's are named by their ids, such as gym:FrozenLake-v1.")


def _described(entry: Any) -> dict[str, Any]:
    """Return what JSON shows of an environment, an agent or an experiment."""
    out = {name: getattr(entry, name) for name in ("name", "summary", "source") if hasattr(entry, name)}
    if hasattr(entry, "parameters"):
        out["parameters"] = {key: one.default for key, one in entry.parameters.items()}
    return out


def analyse(
    model: ModelText,
    diameter: Annotated[
        str, typer.Option(help="auto (small models), yes or no: the diameter takes one shortest-path problem a state.")
    ] = "auto",
    costs: Costs = False,
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """Show what a known model is: communication class, optimal gain, bias span, diameter, optimal policy."""
    from spanrl.models.mdp import MDP

    wanted: dict[str, str | bool] = {"auto": "auto", "yes": True, "no": False}
    if diameter not in wanted:
        raise OptionError(f"analyse: --diameter must be auto, yes or no; got {diameter!r}.")
    import_plugins("analyse", plugin)
    mdp = _load(model, costs)
    if not isinstance(mdp, MDP):
        raise ModelError(
            f"analyse: {model} is a bounded model, which is a set of MDPs; analyse takes one MDP. Use plan."
        )
    from spanrl.planning.analyse import analyse as compute

    with compiling("analyse"):
        result = compute(mdp, diameter=wanted[diameter], progress=on_terminal())
    if as_json:
        print_json(
            {
                **{name: getattr(result, name) for name in result.__dataclass_fields__ if name != "costs"},
                "policy": result.policy.probs,
                **_sense_and_names(mdp),
            }
        )
        return
    table = TextTable(model, "")
    for label, value in (
        ("states", result.n_states),
        ("actions", result.n_actions),
        ("pairs", result.n_pairs),
        ("successors of a pair, at most", result.max_support),
        ("class", result.classification),
        (
            "lowest average cost g*" if result.costs else "optimal gain g*",
            number(
                result.gain,
                "differs between states" if result.span is None else f"{result.gains[0]:.9g} from every state",
            ),
        ),
        ("span of the optimal bias sp(h*)", number(result.span, "–")),
        ("diameter D", number(result.diameter, "not computed (--diameter yes)")),
    ):
        table.add_row(label, str(value))
    show(table)
    columns = {"optimal action": [result.policy.describe(s) for s in range(min(mdp.n_states, _SHOWN))]}
    if result.span is None:
        columns["cost" if result.costs else "gain"] = [f"{g:.6g}" for g in result.gains[:_SHOWN]]
    columns["bias"] = [f"{h:.6g}" for h in result.bias[:_SHOWN]]
    _show_states(mdp, columns)
    print(f"The bias is the one with {result.normalisation}; plan shifts it to 0 in the first state.")


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
    threads: Annotated[
        str, typer.Option(help="Threads that share the sweeps of a model with 10⁶ transitions or more.")
    ] = "1",
    memory: Annotated[
        str,
        typer.Option(
            metavar="BYTES",
            help="Memory that sparse factors may take, such as 5e8; by default 256 MiB, or as much as the model where that is more.",
        ),
    ] = "",
    policy_out: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Write the policy to a new file: .csv, .parquet, .json, or .png, a picture, where states have one or two coordinates.",
        ),
    ] = "",
    costs: Costs = False,
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """Solve a model, with or without a bound on the bias span, and show the policy with its certified gain."""
    bound, width = to_number("plan", "--span-bound", span_bound), to_number("plan", "--tol", tol)
    most, n_threads = _at_least_one("--max-sweeps", max_sweeps), _at_least_one("--threads", threads)
    limit = to_number("plan", "--memory", memory) if memory else None
    import_plugins("plan", plugin)
    loaded = _load(model, costs)
    from spanrl.planning.options import check_options
    from spanrl.planning.small import solve_small
    from spanrl.planning.solve import solve

    check_options(loaded, bound, width, sense, method, policy=policy, memory=limit)
    if policy_out:
        check_policy_file(policy_out, loaded)
    options: dict[str, Any] = {
        "span_bound": bound, "tol": width, "sense": sense, "method": method, "policy": policy, "max_sweeps": most,
        "memory": limit,
    }  # fmt: skip
    solution = solve_small(loaded, **options)
    if solution is None:
        with compiling("plan"):
            solution = solve(loaded, **options, threads=n_threads, progress=on_terminal())
    try:
        if policy_out:  # first, as whoever reads what is printed may stop reading
            write_policy(policy_out, solution.policy)
    finally:  # what cannot be written can still be read
        _show_plan(model, loaded, bound, solution, as_json)
    if policy_out and not as_json:
        print(f"The policy is in {visible(policy_out)}.")


def _show_plan(model: str, loaded: MDP | BoundedMDP, bound: float, solution: Solution, as_json: bool) -> None:
    """Print a solution, for people or as JSON."""
    if as_json:
        from spanrl.models.costs import flip

        names = (
            name
            for name in solution.__dataclass_fields__
            if not name.startswith("_") and name not in ("seconds", "costs")
        )
        fields = {name: getattr(solution, name) for name in names}  # the same text each time
        chain, reward = solution.optimistic
        chain = chain.tocoo()
        extended = {
            "transitions": [
                [int(s), int(t), float(p)] for s, t, p in zip(chain.row, chain.col, chain.data, strict=True)
            ],
            "reward": flip(solution.costs, reward),
        }
        print_json({**fields, "policy": solution.policy.probs, "optimistic": extended, **_sense_and_names(loaded)})
        return
    table = TextTable(model, "")
    low, high = solution.gain_bounds
    for label, value in (
        ("span bound c", number(bound, "–")),
        ("average cost g⁺" if solution.costs else "gain g⁺", f"{solution.gain:.9g}"),
        ("certified in", f"[{low:.9g}, {high:.9g}]"),
        ("span of the bias", f"{solution.span:.9g}"),
        ("truncated states", f"{int(solution.truncated.sum())} of {solution.truncated.size}"),
        (
            "feasible",
            "yes"
            if solution.feasible
            else "no: the {} bound; the policy may have another one and a span above c".format(
                "cost is a lower" if solution.costs else "gain is an upper"
            ),
        ),
        ("policy", "deterministic" if solution.policy.is_deterministic else "randomised"),
        ("method", f"{solution.method}, {solution.sweeps} sweeps"),
    ):
        table.add_row(label, str(value))
    show(table)
    shown = range(min(loaded.n_states, _SHOWN))
    _show_states(
        loaded,
        {
            "action": [solution.policy.describe(s) for s in shown],
            "bias": [f"{h:.6g}" for h in solution.bias[:_SHOWN]],
            "truncated": ["yes" if t else "" for t in solution.truncated[:_SHOWN]],
        },
    )
    print("The bias is 0 in the first state; that of analyse, where P*h = 0, differs by a constant.")


def _at_least_one(option: str, text: str) -> int:
    """Read a whole number ≥ 1."""
    value = to_number("plan", option, text)
    if not 1 <= value < math.inf or value != int(value):
        raise OptionError(f"plan: {option} must be a whole number ≥ 1; got {text}.")
    return int(value)


def _load(text: str, costs: bool) -> MDP | BoundedMDP:
    """Return the model of a saved file or a named environment, and say so where that is large and the rest may take a while."""
    model = _loaded(text)
    if costs:
        model = replace(model, costs=True)
    if model.n_states >= _MANY and not Settings.quiet:
        tell(f"{text} has {model.n_states:,} states; this may take minutes …")
    return model


def _loaded(text: str) -> MDP | BoundedMDP:
    path = Path(text)
    if not text.startswith("gym:") and (path.suffix == ".npz" or path.is_file() or "/" in text or os.sep in text):
        from spanrl.models import files
        from spanrl.models.bounded import BoundedMDP
        from spanrl.models.mdp import MDP

        return BoundedMDP.load(path) if files.kind_of(path) == "bounded" else MDP.load(path)
    from spanrl.envs.registry import make

    return make(text).mdp


def _sense_and_names(model: MDP | BoundedMDP) -> dict[str, Any]:
    """Return what JSON shows of costs, and of the names of states and actions, where a model has any."""
    from spanrl.models.label_files import plain

    found = {key: getattr(model, key, None) for key in ("state_names", "action_names")}
    names = {key: [plain(name) for name in given] for key, given in found.items() if given is not None}
    return ({"costs": True} if model.costs else {}) | names


def _show_states(model: MDP | BoundedMDP, columns: dict[str, list[str]]) -> None:
    """Print one row per state, the first ones only where there are many."""
    table = TextTable("state", *columns)
    label = getattr(model, "state_label", str)
    for s, row in enumerate(zip(*columns.values(), strict=True)):
        table.add_row(label(s), *row)
    show(table)
    if model.n_states > _SHOWN:
        print(f"… {model.n_states - _SHOWN} more states; --json shows all.")
