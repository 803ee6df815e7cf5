"""What the commands share: settings, numbers read from text, tables and JSON on standard output."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Annotated, Any

import typer

from spanrl.errors import OptionError
from spanrl.terminal import visible, visible_lines

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Costs = Annotated[
    bool,
    typer.Option(
        "--costs", help="Show rewards as costs, lower is better; a saved model with costs is shown so anyway."
    ),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="FILE|MODULE",
        help="A Python file or module that registers environments and agents. May be given again.",
        show_default=False,
    ),
]
Scale = Annotated[
    str,
    typer.Option(metavar="linear|log", help="Axes of regrets and rewards; on linear ones a steady loss is straight."),
]
_GAP = 3  # between two columns
MODEL_HELP = "An environment, such as two-state, 'three-state[delta=0.01]' or gym:FrozenLake-v1, or the path of a saved .npz model."


_AGAIN = 2.0  # seconds until an interrupt without effect is raised again


class Settings:
    """Options that may stand anywhere on the command line."""

    quiet = False


def check_scale(who: str, scale: str) -> None:
    """Refuse a scale that is not one, before the work begins."""
    if scale not in ("linear", "log"):
        raise OptionError(f"{who}: --scale must be linear or log; got {scale!r}.")


def import_plugins(who: str, plugins: list[str] | None) -> None:
    """Import the plugins of a command, where there are any."""
    if plugins:
        from spanrl.experiments.plugins import import_given

        import_given(who, plugins)


@contextmanager
def compiling(task: str, seconds: int = 10) -> Iterator[None]:
    """Say that the first run of a task compiles, where it does; remember that it has."""
    from spanrl.kernels.cache import cache_dir, is_compiled, mark_compiled

    if not Settings.quiet and not is_compiled(task):
        tell(f"compiling for first use, about {seconds} seconds, {'once' if cache_dir() else 'each time'} …")
    yield
    mark_compiled(task)


@contextmanager
def terminable() -> Iterator[Callable[[], None]]:
    """Take SIGTERM, and SIGHUP where it is not ignored, for Ctrl-C: what was done so far is shown and kept.

    An exception that a signal raises inside a callback of the interpreter or the compiler is discarded there, so it is raised once more
    after a while, unless the function that is yielded has said that it was heard.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield lambda: None  # signals are not ours there
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        raise KeyboardInterrupt

    def heard() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)

    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    before = {number: signal.getsignal(number) for number in wanted}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:  # nohup stays in force
            signal.signal(number, interrupt)
    try:
        yield heard
    finally:
        heard()
        for number, handler in before.items():
            if handler is not None:  # None: it was set outside Python
                signal.signal(number, handler)


def tell(line: str) -> None:
    """Print a line on standard error; a closed terminal is no error."""
    with suppress(OSError, ValueError):
        print(f"spanrl: {visible(line)}", file=sys.stderr, flush=True)


def on_terminal() -> bool:
    """Tell whether standard error is a terminal and messages are wanted."""
    return sys.stderr.isatty() and not Settings.quiet


def to_whole(who: str, option: str, text: str, least: int = 0) -> int:
    """Return a whole number ≥ ``least`` that stands in an option: exactly where it is written with digits, and 1e3 is one, too."""
    try:
        whole = int(float(text)) if "e" in text.lower() and float(text).is_integer() else int(text)
    except (ValueError, OverflowError):
        whole = least - 1
    if whole < least:
        raise OptionError(f"{who}: {option} must be a whole number ≥ {least}; got {text!r}.")
    return whole


def to_number(who: str, option: str, text: str) -> float:
    """Return a number that stands in an option."""
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"{who}: {option} must be a number such as 0.75, 1e7 or inf; got {text!r}.") from None


def tidy_path(path: str) -> str:
    """Return a path as it is used and shown: x/../y is y, whether there is an x or not."""
    return os.path.normpath(path) if path else path


def number(value: float | None, missing: str) -> str:
    """Return a number as it is shown; ``missing`` where there is none."""
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


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object."""
    print(json.dumps(_plain(value), allow_nan=False))


class TextTable:
    """A table to be printed: a title for each column, and rows of text."""

    def __init__(self, *columns: str) -> None:
        """Take the titles; a column without one says what its row does not need to be told."""
        self.columns = [visible(column) for column in columns]
        self.rows: list[list[str]] = []

    def add_row(self, *cells: str) -> None:
        """Add a row, a text for each column."""
        self.rows.append([visible(cell) for cell in cells])


def show(content: TextTable) -> None:
    """Print a table; where the terminal is too narrow for it, each row as a paragraph."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    fits = _least_width(content) <= console.width
    console.print(_side_by_side(content) if fits else _stacked(content))


def _least_width(content: TextTable) -> int:
    """Return the width at which the first column is whole and no word of the others is cut."""
    from rich.cells import cell_len

    first, *others = zip(content.columns, *content.rows, strict=True)
    words = [max((cell_len(word) for cell in column for word in cell.split()), default=0) for column in others]
    return max(map(cell_len, first)) + sum(words) + _GAP * len(content.columns)


def _side_by_side(content: TextTable) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    out = Table(box=SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(content.columns):
        out.add_column(column, overflow="fold", no_wrap=i == 0)
    for row in content.rows:
        out.add_row(*row)
    return out


def _stacked(content: TextTable) -> Any:
    """Return the first cell of each row, and below it the others that are not empty, each with its title."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    title, *titles = content.columns
    parts: list[Any] = [Text(title, style="bold", overflow="fold")]
    for first, *others in content.rows:
        if titles == [""]:  # the first column says what the second one is
            parts.append(Text(f"{first}: {others[0]}", overflow="fold"))
            continue
        parts.append(Text(first, overflow="fold"))
        told = (f"{what}: {cell}" for what, cell in zip(titles, others, strict=True) if cell)
        parts += [Padding(Text(line, overflow="fold"), (0, 0, 0, 2)) for line in told]
    return Padding(Group(*parts), (1, 0, 1, 1))


def show_sentence(text: str) -> None:
    """Print a sentence, broken between words where the terminal is too narrow for it."""
    from rich.console import Console

    Console(highlight=False, markup=False, emoji=False).print(visible(text))


def say(text: str, *, flush: bool = False) -> None:
    """Print text on standard output."""
    print(visible_lines(text), flush=flush)
