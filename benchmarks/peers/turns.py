"""The peers' side of the conversation: ready, then one line of JSON for every line that comes, until there are no more."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from time import perf_counter, process_time
from typing import Any

_answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # what a package prints, in C++ as well, does not get between the answers


Prepare = Callable[[float], Callable[[], object]]
Result = Callable[[], dict[str, Any]]


def serve(package: str, go: Callable[[float], dict[str, Any]]) -> None:
    """Answer "go NUMBER" with what ``go`` returns, its own ``seconds`` among it."""
    _say({"version": version(package)})
    for line in sys.stdin:
        _say(go(float(line.split()[1])))


def serve_models(package: str, load: Callable[[str], tuple[Prepare, Result]], path: str) -> None:
    """Answer "go NUMBER" with the time of a solve, and "result" with what came of the last one.

    ``load`` makes of the path of a model what prepares a solve to a tolerance and what tells its result; "load PATH" goes on to another
    model, and "prepare NUMBER" prepares the next solve before its limit runs. What is prepared is not timed.
    """
    prepare, result = load(path)
    prepared: Callable[[], object] | None = None
    _say({"version": version(package)})
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "load":
            del prepare, result  # the old model with them
            prepared = None
            prepare, result = load(rest)
            _say({})
        elif word == "prepare":
            prepared = prepare(float(rest))
            _say({})
        elif word == "go":
            run, prepared = prepared or prepare(float(rest)), None
            _say(_timed(run))
        else:
            _say(result())


def _timed(run: Callable[[], object]) -> dict[str, Any]:
    """Call it; return the ``seconds`` that passed and those of the processor, in all threads of this process."""
    begun, begun_processor = perf_counter(), process_time()
    run()
    return {"seconds": perf_counter() - begun, "processor": process_time() - begun_processor}


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), file=_answers, flush=True)
