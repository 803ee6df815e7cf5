"""Have claims checked by worker processes, several at a time, each within a limit of time: a broken formula may never come to an end."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, NamedTuple

from spanrl.experiments.process import Process
from spanrl.paper.claims import Scale

MODULE = "spanrl.paper.worker"

SLIPS = "slips"
"""The task of measuring the slips of the text."""

LIMITS = {"smoke": 300.0, "quick": 600.0, "paper": 1800.0}
"""Seconds after which a claim is given up: many times what the slowest takes."""

_WAIT = 0.2


class Answer(NamedTuple):
    """What a worker found (None, and why, where it did not come to an end), and the seconds it took."""

    content: dict[str, Any] | None
    seconds: float
    why: str = ""


class _Task(NamedTuple):
    id: str
    begun: float


def ask(
    tasks: Sequence[str],
    scale: Scale,
    *,
    workers: int,
    done: Callable[[str, Answer], None],
    tick: Callable[[Sequence[str]], None] = lambda running: None,
    limit: float | None = None,
) -> None:
    """Have tasks done in this order: claims by their ids, and SLIPS.

    ``done(task, answer)`` is called as each is finished, ``tick(tasks under way)`` several times a second.
    """
    limit = limit or LIMITS[scale.name]
    inbox: queue.SimpleQueue[tuple[Process, dict[str, Any] | None]] = queue.SimpleQueue()
    waiting, busy, idle = list(tasks), dict[Process, _Task](), list[Process]()
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                process = idle.pop() if idle else Process(MODULE, {"do": "set", "scale": scale.name}, inbox)
                busy[process] = _Task(waiting.pop(0), monotonic())
                process.send({"do": "answer", "id": busy[process].id})
            tick([task.id for task in busy.values()])
            for process, task in list(busy.items()):
                if monotonic() - task.begun > limit:
                    del busy[process]
                    process.end()
                    done(task.id, Answer(None, monotonic() - task.begun, f"given up after {limit:g} s"))
            try:
                process, message = inbox.get(timeout=_WAIT)
            except queue.Empty:
                continue
            if process not in busy or (message is not None and message["event"] != "answered"):
                continue
            task = busy.pop(process)
            if message is None:
                why = process.exit_reason().partition("\n")[0]
                done(task.id, Answer(None, monotonic() - task.begun, why))
            else:
                idle.append(process)
                done(task.id, Answer(message["answer"], message["seconds"]))
    finally:
        for process in (*busy, *idle):
            process.end()
