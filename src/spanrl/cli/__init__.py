"""The command ``spanrl``: parse, call the public functions, print, exit code. Nothing is computed here.

Exit codes: 0 done; 1 work failed (cells, not converged, …); 2 wrong input; 130 interrupted (Ctrl-C, SIGTERM).
Errors are one line on standard error.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated

import typer

from spanrl import __version__
from spanrl.cli import bench, experiments, learning, models, paper
from spanrl.cli.output import Settings, tell
from spanrl.errors import InputError, SpanrlError

app = typer.Typer(
    name="spanrl",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Average-reward Markov decision processes with a bound on the bias span.",
    epilog="Exit codes: 0 done, 1 work failed, 2 wrong input, 130 interrupted. NO_COLOR switches colours off.",
)


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


for _name, _command in (
    ("list", models.list_),
    ("analyse", models.analyse),
    ("plan", models.plan),
    ("learn", learning.learn),
    ("run", experiments.run),
    ("status", experiments.status),
    ("report", experiments.report),
    ("reproduce", paper.reproduce),
    ("bench", bench.bench),
):
    app.command(_name)(_command)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    Settings.quiet = "--quiet" in arguments
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # ∞ and g⁺ where the encoding has none
    try:
        words = [word for word in arguments if word not in ("--debug", "--quiet")]
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code = app(words, prog_name="spanrl", standalone_mode=False)
        if sys.stdout is not None:  # None where it was closed before we started
            sys.stdout.flush()
        return _fail("interrupted.", 130) if code == 130 else int(code or 0)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted.", 130)
    except (BrokenPipeError, SystemExit) as left:
        if isinstance(left, SystemExit) and not left.code:  # the completion of shells has done its work
            return 0
        # the reader, such as head, has seen enough; the libraries we print with leave on their own then
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if debug:
            raise
        if isinstance(error, SpanrlError):
            return _fail(_with_help(str(error), arguments), 2 if isinstance(error, InputError) else 1)
        return _other_error(error)


def _other_error(error: Exception) -> int:
    """Report an error that is not ours: wrong usage (the command-line library has moved its classes between versions), or a fault."""
    message = getattr(error, "format_message", None)
    if message is None:
        return _fail(f"{_fault(error)}. Run again with --debug for the traceback.", 1)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(message())
        return 0
    context, said = getattr(error, "ctx", None), message().rstrip(".")
    end = "" if said.endswith("?") else "."
    return _fail(f"{said}{end} Try '{context.command_path if context else 'spanrl'} -h'.", 2)


def _with_help(message: str, arguments: list[str]) -> str:
    """Return a message; one about an option of the command points to the command's help."""
    command = next((word for word in arguments if not word.startswith("-")), "")
    return f"{message} Try 'spanrl {command} -h'." if message.startswith(f"{command}: --") else message


def _fault(error: Exception) -> str:
    """Name a fault: of the system with its file, where it has one, or our own."""
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this ({str(error).rstrip('. ') or 'no size was told'})"
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else f"{error.strerror or error}"
    return f"internal error, {type(error).__name__}: {error}"


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as one line."""
    if not Settings.quiet:
        tell(str(message))


def _fail(message: str, code: int) -> int:
    """Print one line on standard error and return the exit code."""
    tell(" ".join(message.split()))
    return code
