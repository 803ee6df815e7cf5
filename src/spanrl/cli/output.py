"""What the commands share: settings, numbers read from text, tables and JSON on standard output."""

from __future__ import annotations

import json
import math
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Annotated, Any

import typer

from spanrl.errors import OptionError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
MODEL_HELP = "An environment, such as two-state or 'three-state[delta=0.01]', or the path of a saved .npz model."


class Settings:
    """Options that may stand anywhere on the command line."""

    quiet = False


@contextmanager
def compiling(task: str, seconds: int = 10) -> Iterator[None]:
    """Say that the first run of a task compiles, where it does; remember that it has."""
    from spanrl.kernels.cache import cache_dir, is_compiled, mark_compiled

    if not Settings.quiet and not is_compiled(task):
        tell(f"compiling for first use, about {seconds} seconds, {'once' if cache_dir() else 'each time'} …")
    yield
    mark_compiled(task)


@contextmanager
def terminable() -> Iterator[None]:
    """Take SIGTERM, and SIGHUP where it is not ignored, for Ctrl-C: what was done so far is shown and kept."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are not ours there
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    wanted = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in wanted}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:  # nohup stays in force
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: it was set outside Python
                signal.signal(number, handler)


def tell(line: str) -> None:
    """Print a line on standard error; that nobody can see it any more changes nothing."""
    with suppress(OSError, ValueError):
        print(f"spanrl: {line}", file=sys.stderr, flush=True)


def on_terminal() -> bool:
    """Tell whether somebody looks at standard error and wants to be told."""
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


def table(*columns: str) -> Any:
    """Return an empty table."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    out = Table(box=SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(columns):
        out.add_column(Text(column), overflow="fold", no_wrap=i == 0)
    return out


def show(content: Any) -> None:
    """Print a table."""
    from rich.console import Console

    Console(highlight=False, markup=False, emoji=False).print(content)
