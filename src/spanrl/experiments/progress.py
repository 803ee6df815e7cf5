"""How far an experiment is: cells, steps per second, time left; a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol

from spanrl.terminal import error_console, visible, visible_lines

_WINDOW = 15.0  # seconds over which the speed is taken
_SHORTEST = 1.0  # seconds that tell of a speed
_SHOWN = 12  # cells under way that are listed
_LINE_EVERY = 5.0


@dataclass
class Tally:
    """What the driver knows at a moment. ``steps`` counts those done since it started."""

    name: str
    cells: int = 0
    finished: int = 0
    failed: int = 0
    waiting: int = 0
    running: dict[str, tuple[int, int]] = field(default_factory=dict)  # id → steps done, horizon
    steps: int = 0
    steps_left: int = 0
    note: str = ""
    _past: deque[tuple[float, int]] = field(default_factory=deque)

    def tick(self) -> None:
        """Note the time, for the speed, once there is one."""
        if self.steps == 0:
            return
        now = monotonic()
        self._past.append((now, self.steps))
        while len(self._past) > 2 and now - self._past[0][0] > _WINDOW:
            self._past.popleft()

    @property
    def speed(self) -> float:
        """Steps a second of late; 0 where nothing is known yet."""
        if len(self._past) < 2:
            return 0.0
        (begun, before), (now, steps) = self._past[0], self._past[-1]
        return (steps - before) / (now - begun) if now - begun >= _SHORTEST else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The time left at this speed; None where it is not known."""
        return self.steps_left / self.speed if self.speed > 0 else None

    def __str__(self) -> str:
        """Say it in one line."""
        parts = [
            f"{self.finished} of {self.cells} cells finished",
            f"{len(self.running)} running",
            f"{self.waiting} waiting",
            f"{self.failed} failed",
        ]
        if self.speed > 0:
            parts.append(f"{self.speed:.3g} steps/s")
        if self.seconds_left is not None and (self.running or self.waiting):
            parts.append(f"{clock(self.seconds_left)} left")
        return ", ".join(parts)


def clock(seconds: float) -> str:
    """Return a time as h:mm:ss.

    >>> clock(3725.2), clock(59.7)
    ('1:02:05', '0:01:00')
    """
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


class Display(Protocol):
    """Where progress is shown."""

    def update(self, tally: Tally) -> None:
        """Show how far it is; called several times a second."""

    def say(self, line: str) -> None:
        """Show a line that stays."""

    def close(self) -> None:
        """Take away what does not stay."""


class Silent:
    """Show nothing."""

    def update(self, tally: Tally) -> None:
        """Ignore it."""

    def say(self, line: str) -> None:
        """Ignore it."""

    def close(self) -> None:
        """Do nothing."""


class Lines:
    """Plain lines on standard error: what is said, and now and then how far it is."""

    def __init__(self) -> None:
        """Show the first line after a moment."""
        self._shown, self._last = monotonic(), ""

    def update(self, tally: Tally) -> None:
        """Show a line every few seconds, where something has changed."""
        line = tally.note or str(tally)
        if monotonic() - self._shown >= _LINE_EVERY and line != self._last:
            self._shown, self._last = monotonic(), line
            self.say(line)

    def say(self, line: str) -> None:
        """Print it."""
        print(f"spanrl: {visible_lines(line)}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Do nothing."""


class LiveTable:
    """A table on a terminal that is drawn anew in place."""

    def __init__(self) -> None:
        """Take hold of the terminal."""
        from rich.live import Live

        self._console = error_console()
        self._live = Live(console=self._console, transient=True, refresh_per_second=8)
        self._live.start()

    def update(self, tally: Tally) -> None:
        """Draw it."""
        self._live.update(_panel(tally))

    def say(self, line: str) -> None:
        """Print it above the table."""
        self._live.console.print(f"spanrl: {visible_lines(line)}", soft_wrap=True)

    def close(self) -> None:
        """Remove the table."""
        self._live.stop()


def _panel(tally: Tally) -> Any:
    """Return the live table: one line in all, and one for each cell under way."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    done = sum(t for t, _ in tally.running.values())
    horizon = max((h for _, h in tally.running.values()), default=1)
    overall = Table.grid(padding=(0, 2))
    share = (tally.finished * horizon + done) / max(tally.cells * horizon, 1)
    overall.add_row(
        Text(visible(tally.name), style="bold"),
        ProgressBar(total=1.0, completed=share, width=28),
        Text(f"{share:4.0%}"),
    )
    cells = Table.grid(padding=(0, 2))
    for name, (t, last) in list(tally.running.items())[:_SHOWN]:
        cells.add_row(
            Text(visible(name), overflow="ellipsis", no_wrap=True),
            ProgressBar(total=last, completed=t, width=20),
            Text(f"{t:.2e}"),
        )
    hidden = len(tally.running) - _SHOWN
    more = [Text(f"… and {hidden} more", style="dim")] if hidden > 0 else []
    style = "red" if tally.failed else ""
    return Group(overall, Text(visible(tally.note or str(tally)), style=style), cells, *more)


class Guarded:
    """A display that turns silent when it can no longer be seen: a closed terminal or pipe is no reason to stop computing."""

    def __init__(self, inner: Display) -> None:
        """Guard ``inner``."""
        self._inner = inner

    def update(self, tally: Tally) -> None:
        """Show it if possible."""
        with self._guard():
            self._inner.update(tally)

    def say(self, line: str) -> None:
        """Show it if possible."""
        with self._guard():
            self._inner.say(line)

    def close(self) -> None:
        """Take it away if possible."""
        with self._guard():
            self._inner.close()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError):
            self._inner = Silent()


def plain_lines(wanted: bool) -> Display:
    """Return plain lines on standard error, where they are wanted."""
    return Guarded(Lines()) if wanted and sys.stderr is not None else Silent()


def display(wanted: bool) -> Display:
    """Return what suits standard error: a live table in a terminal, of which there may be one at a time, else plain lines."""
    if wanted and sys.stderr is not None and sys.stderr.isatty():
        return Guarded(LiveTable())
    return plain_lines(wanted)
