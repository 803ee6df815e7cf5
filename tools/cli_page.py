"""Write docs/cli.md from the command line itself: ``python tools/cli_page.py docs/cli.md``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import typer

from spanrl.cli import app

EXAMPLES = {
    "list": "spanrl list agents",
    "analyse": 'spanrl analyse "three-state[delta=0.005]"',
    "plan": "spanrl plan two-state --span-bound 0.75",
    "learn": 'spanrl learn two-state "scal[span_bound=2]" --horizon 1e4 --seed 0',
    "run": "spanrl run small --out results",
    "status": "spanrl status results",
    "report": "spanrl report results",
    "reproduce": "spanrl reproduce --only L2 G3 --scale smoke --out reproduction",
}
"""A command each to begin with; the tests run them in this order."""

HEAD = """# The command line

All commands of `spanrl` with their options; `spanrl COMMAND -h` says the same. Made by `tools/cli_page.py`.

* Numbers like `4e8` are accepted. Environments and agents are written `name` or `name[key=value,…]`; put quotes around brackets. Unknown
  names suggest the nearest.
* `--json` prints one JSON object and nothing else on standard output, ∞ as the text "inf". `--quiet` and `--debug` may stand anywhere.
* Errors are one line on standard error. Exit codes: 0 done; 1 work failed (cells, claims, not converged); 2 wrong input; 130 interrupted.
* Tables fit the terminal: where it is too narrow for columns, each row becomes a paragraph. `NO_COLOR` switches colours off.
* `spanrl --install-completion` makes your shell complete commands and options: once, then open a new terminal. `spanrl
  --show-completion` prints what it would install.
"""


def page() -> str:
    """Return the text of the page."""
    command = typer.main.get_command(app)
    parts = [HEAD, _table(command.params), "## Commands", _overview(command.commands)]
    for name, one in command.commands.items():
        parts += [f"## spanrl {name}", _prose(one.help), f"```text\n{_usage(name, one)}\n```"]
        parts.append(_table(one.params))
        if name in EXAMPLES:
            parts.append(f"```console\n$ {EXAMPLES[name]}\n```")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _overview(commands: dict[str, Any]) -> str:
    rows = [f"| [`{name}`](#spanrl-{name}) | {_first_line(one.help)} |" for name, one in commands.items()]
    return "\n".join(["| command | what it does |", "|---|---|", *rows])


def _usage(name: str, command: Any) -> str:
    arguments = []
    for one in command.params:
        if one.param_type_name == "argument":
            shown = _metavar(one) + ("..." if one.nargs == -1 else "")
            arguments.append(shown if one.required else f"[{shown}]")
    return " ".join(["spanrl", name, *arguments, "[OPTIONS]"])


def _table(params: list[Any]) -> str:
    rows = ["| | meaning | default |", "|---|---|---|"]
    for one in params:
        if one.param_type_name == "argument":
            shown = f"`{_metavar(one)}`"
        else:
            value = "" if getattr(one, "is_flag", False) or not one.metavar else f" {one.metavar}".replace("|", "\\|")
            shown = ", ".join(f"`{option}{value}`" for option in one.opts)
        default = "required" if one.required else f"`{one.default}`" if _is_shown(one.default) else ""
        rows.append(f"| {shown} | {_cell(one.help or '')} | {default} |")
    return "\n".join(rows)


def _is_shown(default: Any) -> bool:
    return isinstance(default, (str, int, float)) and not isinstance(default, bool) and default != ""


def _metavar(argument: Any) -> str:
    return argument.metavar or argument.name


def _cell(text: str) -> str:
    return _prose(text).replace("|", "\\|").replace("*", "\\*")


def _prose(text: str) -> str:
    """Return help text as Markdown: paragraphs on one line each."""
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()))


def _first_line(text: str) -> str:
    return " ".join(text.strip().split("\n\n")[0].split())


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
