"""Check claims in worker processes, several at a time, each within a limit of time: a formula that is broken may never come to an end."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, NamedTuple

from spanrl.experiments.process import Process
from spanrl.paper.claims import Outcome, Scale

MODULE = "spanrl.paper.worker"

LIMITS = {"smoke": 300.0, "quick": 600.0, "paper": 1800.0}
"""Seconds after which a claim is given up: many times what the slowest takes."""

_WAIT = 0.2


class Checked(NamedTuple):
    """What became of a claim, and the seconds it took."""

    outcome: Outcome
    seconds: float


class _Task(NamedTuple):
    id: str
    begun: float


def check_claims(
    ids: Sequence[str],
    scale: Scale,
    *,
    workers: int,
    done: Callable[[str, Checked], None],
    tick: Callable[[Sequence[str]], None] = lambda running: None,
    limit: float | None = None,
) -> None:
    """Check the claims in this order; call ``done(id, checked)`` as each is finished and ``tick(ids under way)`` several times a second."""
    limit = limit or LIMITS[scale.name]
    inbox: queue.SimpleQueue[tuple[Process, dict[str, Any] | None]] = queue.SimpleQueue()
    waiting, busy, idle = list(ids), dict[Process, _Task](), list[Process]()
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                process = idle.pop() if idle else Process(MODULE, {"do": "set", "scale": scale.name}, inbox)
                busy[process] = _Task(waiting.pop(0), monotonic())
                process.send({"do": "check", "id": busy[process].id})
            tick([task.id for task in busy.values()])
            for process, task in list(busy.items()):
                if monotonic() - task.begun > limit:
                    del busy[process]
                    process.end()
                    done(task.id, _given_up(f"given up after {limit:g} s", monotonic() - task.begun))
            try:
                process, message = inbox.get(timeout=_WAIT)
            except queue.Empty:
                continue
            if process not in busy or (message is not None and message["event"] != "checked"):
                continue
            task = busy.pop(process)
            if message is None:
                why = process.obituary().partition("\n")[0]
                done(task.id, _given_up(why, monotonic() - task.begun))
            else:
                idle.append(process)
                done(task.id, Checked(Outcome.from_json(message["outcome"]), message["seconds"]))
    finally:
        for process in (*busy, *idle):
            process.end()


def _given_up(why: str, seconds: float) -> Checked:
    return Checked(Outcome("not-run", {"reason": why}), round(seconds, 3))
