"""pymdptoolbox, relative value iteration: ``python pymdptoolbox_average.py MODEL.npz``.

It wants every action in every state: one that is not available is a copy of the state's first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from mdptoolbox.mdp import RelativeValueIteration
from scipy.sparse import csr_matrix
from turns import Prepare, Result, serve_models

MAX_ITER = 10**6  # its own cap, 1000, would stop it silently where mixing is slow


def main(path: str) -> None:
    serve_models("pymdptoolbox", load, path)


def load(path: str) -> tuple[Prepare, Result]:
    model = np.load(path)
    first, action = model["pair_ptr"][:-1], model["action"]
    S, n = first.size, action.size
    state = np.repeat(np.arange(S), np.diff(model["pair_ptr"]))
    pair = np.repeat(first[:, None], action.max() + 1, axis=1)  # [S, A]
    pair[state, action] = np.arange(n)
    rows = csr_matrix((model["prob"], model["succ"], model["succ_ptr"]), shape=(n, S))
    solver = RelativeValueIteration([rows[pairs] for pairs in pair.T], model["reward"][pair], max_iter=MAX_ITER)

    def prepare(tolerance: float) -> Callable[[], object]:
        solver.epsilon, solver.V, solver.gain, solver.iter = tolerance, np.zeros(S), 0.0, 0  # as a new one has them
        return solver.run

    return prepare, lambda: {"gain": float(solver.average_reward)}


if __name__ == "__main__":
    main(*sys.argv[1:])
