"""Ourselves and the two textbooks, in a process like the peers': ``python own_average.py MODEL.npz METHOD``.

METHOD is solve, or one of ``textbooks.METHODS``; run it in the environment of the project.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from turns import Prepare, Result, serve_models

from spanrl import MDP, solve

sys.path.append(str(Path(__file__).parents[1]))
from textbooks import METHODS

Solver = Callable[[MDP, float], dict[str, Any]]


def main(path: str, method: str) -> None:
    run: Solver = _ours if method == "solve" else partial(_textbook, METHODS[method])
    run(MDP.from_dense([[[1.0]]], [[0.5]]), 1e-6)  # compiles
    serve_models("spanrl", lambda path: load(path, run), path)


def load(path: str, run: Solver) -> tuple[Prepare, Result]:
    model = np.load(path)
    first = model["pair_ptr"]
    state = np.repeat(np.arange(first.size - 1), np.diff(first))
    mdp = MDP.from_pairs(state, *(model[name] for name in ("action", "succ_ptr", "succ", "prob", "reward")))
    last: list[dict[str, Any]] = [{}]

    def prepare(tolerance: float) -> Callable[[], object]:
        def once() -> None:
            last[0] = run(mdp, tolerance)

        return once

    return prepare, lambda: last[0]


def _ours(mdp: MDP, tolerance: float) -> dict[str, Any]:
    solution = solve(mdp, tol=tolerance)
    low, high = solution.gain_bounds
    return {"gain": solution.gain, "low": low, "high": high}


def _textbook(textbook: Callable[[MDP, float], tuple[float, Any]], mdp: MDP, tolerance: float) -> dict[str, Any]:
    return {"gain": textbook(mdp, tolerance)[0]}


if __name__ == "__main__":
    main(*sys.argv[1:])
