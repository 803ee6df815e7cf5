"""A bar for solves that take longer than a second: how far the bracket has come on its way to the tolerance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf, log
from time import perf_counter
from typing import TYPE_CHECKING, Any

from spanrl.terminal import error_console

if TYPE_CHECKING:
    from spanrl.planning.iteration import Iteration

_PATIENCE = 1.0  # seconds before the bar appears


@contextmanager
def watching(show: bool) -> Iterator[Callable[[Iteration], None] | None]:
    """Provide what an iteration calls now and then, to draw a bar on standard error; None where ``show`` is False."""
    if not show:
        yield None
        return
    bar = _Bar()
    try:
        yield bar.update
    finally:
        bar.close()


class _Bar:
    """A bar from the widest bracket, on a logarithmic scale, to the tolerance."""

    def __init__(self) -> None:
        self._begun, self._widest, self._narrowest = perf_counter(), 0.0, inf
        self._bar: Any = None
        self._task: Any = None

    def update(self, iteration: Iteration) -> None:
        """Draw, once the solve has taken a while."""
        width = iteration.width
        if width < inf:
            self._widest, self._narrowest = max(self._widest, width), min(self._narrowest, width)
        if self._bar is None:
            if perf_counter() - self._begun < _PATIENCE:
                return
            self._start()
        self._bar.update(
            self._task, completed=self._part(iteration.tol), now=f"{iteration.sweeps:,} sweeps, width {width:.2g}"
        )

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def _start(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = TextColumn("solve"), BarColumn(), TextColumn("{task.fields[now]}"), TimeElapsedColumn()
        self._bar = Progress(*columns, console=error_console(), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("solve", total=1.0, now="")

    def _part(self, tol: float) -> float:
        """Return the part of the way from the widest bracket to the tolerance."""
        if not tol < self._narrowest <= self._widest < inf:
            return 0.0 if self._narrowest == inf else 1.0
        return log(self._widest / self._narrowest) / log(self._widest / tol)
