"""Text on its way to a terminal or a notebook: what would act there instead of being read is made visible, and bars find their console."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from time import perf_counter
from typing import Any

_PATIENCE = 1.0  # seconds before a bar appears

_ACTING = {
    "Cc",
    "Cf",
    "Cs",
    "Zl",
    "Zp",
}  # controls, marks of format and direction, halves of pairs, separators of lines
_JOINERS = "\u200c\u200d"  # some scripts are written with them


def visible(text: str) -> str:
    """Return ``text`` with everything that a terminal would obey, a line break included, written as Python writes it.

    Names of models and plugins, and their errors, may hold escape sequences, backspaces or marks that turn the direction of writing. They
    stay as they are in files; every line that is printed goes through here.

    >>> print(visible("a\x1b[31mred\u202e\\n"))
    a\\x1b[31mred\\u202e\\n
    """
    if text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _ACTING and c not in _JOINERS else c for c in text)


def visible_lines(text: str) -> str:
    """Return ``text`` with all but its line breaks made visible; tabulators become spaces.

    >>> print(visible_lines("one\\ntwo\\x07"))
    one
    two\\x07
    """
    return "\n".join(visible(line.expandtabs()) for line in text.split("\n"))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def error_console() -> Any:
    """Return rich's console on standard error, for bars and lines.

    In a notebook rich draws by ipywidgets; where these are not installed it would warn and draw nothing, so it is given the one line that
    notebooks can overwrite, too.
    """
    from rich.console import Console

    plain: dict[str, Any] = {"stderr": True, "highlight": False, "markup": False, "emoji": False}
    console = Console(**plain)
    if console.is_jupyter and find_spec("ipywidgets") is None:
        return Console(**plain, force_jupyter=False, force_terminal=True)
    return console


@contextmanager
def counting(what: str, *, show: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Provide a function of (done, known so far) that draws a bar on standard error after a second; None where ``show`` is False."""
    if not show:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = BarColumn(), TextColumn("{task.completed:,} of {task.total:,} {task.description}"), TimeElapsedColumn()
    begun, bar = perf_counter(), Progress(*columns, console=error_console(), transient=True)
    task = bar.add_task(what, total=0)

    def tell(done: int, known: int) -> None:
        bar.update(task, completed=done, total=known)
        if not bar.live.is_started and perf_counter() - begun > _PATIENCE:
            bar.start()

    try:
        yield tell
    finally:
        bar.stop()
