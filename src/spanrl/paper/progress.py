"""Tell how far a reproduction is: a bar on a terminal, plain lines elsewhere; a line for every claim that was checked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from spanrl.terminal import error_console, visible_lines


class ProgressLines:
    """Where progress is shown: nowhere if ``show`` is False."""

    def __init__(self, show: bool) -> None:
        """Say nothing yet."""
        self._show = show
        self._bar: Any = None

    def begin(self, what: str, count: int) -> None:
        """Say what is checked, and show a bar on a terminal."""
        self.say(f"checking {what}")
        if self._show and sys.stderr is not None and sys.stderr.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (BarColumn(28), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=error_console(), transient=True)
            self._bar.start()
            self._bar.add_task("", total=count)

    def under_way(self, claims: Sequence[str]) -> None:
        """Show which claims are being checked."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=", ".join(claims))

    def checked(self, claim: str, verdict: str, expected: str, seconds: float) -> None:
        """Say what became of a claim."""
        mark = "as expected" if verdict == expected else f"EXPECTED {expected}"
        self.say(f"{claim:<3} {verdict:<8} {mark}  ({seconds:.1f} s)")
        self.advance()

    def advance(self) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.advance(self._bar.task_ids[0])

    def say(self, line: str) -> None:
        """Say a line that stays; a closed terminal is no error."""
        if not self._show or sys.stderr is None:
            return
        with suppress(OSError, ValueError):
            if self._bar is not None:
                self._bar.console.print(f"spanrl: {visible_lines(line)}", soft_wrap=True)
            else:
                print(f"spanrl: {visible_lines(line)}", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
