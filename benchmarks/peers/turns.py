"""The peers' side of the conversation: ready, then one line of JSON for every line that comes, until there are no more."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

_answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # what a package prints, in C++ as well, does not get between the answers


def serve(package: str, go: Callable[[float], dict[str, Any]], result: Callable[[], dict[str, Any]] = dict) -> None:
    """Answer "go NUMBER" with what ``go`` returns (its own ``seconds`` among it), and "result" with what came of the last one."""
    _say({"version": version(package)})
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        _say(go(float(number)) if word == "go" else result())


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), file=_answers, flush=True)
