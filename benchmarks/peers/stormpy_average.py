"""stormpy, long-run average: ``python stormpy_average.py MODEL.drn``.

Version 2.0 keeps the precision of long-run averages to itself: it is 1e-6, relative.
"""

from __future__ import annotations

import sys
from typing import Any

import stormpy
from turns import Prepare, Result, serve_models


def main(path: str) -> None:
    serve_models("stormpy", load, path)


def load(path: str) -> tuple[Prepare, Result]:
    model = stormpy.build_model_from_drn(path)
    question = stormpy.parse_property('R{"reward"}max=? [LRA]')
    environment = stormpy.environments.sound()
    last: list[Any] = [None]

    def solve() -> None:
        last[0] = stormpy.model_checking(model, question, environment=environment)

    return lambda tolerance: solve, lambda: {"gain": last[0].get_value(0)}


if __name__ == "__main__":
    main(*sys.argv[1:])
