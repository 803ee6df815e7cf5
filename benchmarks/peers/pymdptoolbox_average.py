"""pymdptoolbox, relative value iteration: ``python pymdptoolbox_average.py MODEL.npz``."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

import numpy as np
from mdptoolbox.mdp import RelativeValueIteration
from scipy.sparse import csr_matrix
from turns import serve

MAX_ITER = 10**6  # its own cap, 1000, would stop it silently where mixing is slow


def main(path: str) -> None:
    model = np.load(path)
    reward = model["reward"]
    S, A = reward.shape
    state, action = np.divmod(np.repeat(np.arange(S * A), np.diff(model["succ_ptr"])), A)
    chosen = [action == a for a in range(A)]
    P = [csr_matrix((model["prob"][i], (state[i], model["succ"][i])), shape=(S, S)) for i in chosen]
    solver = RelativeValueIteration(P, reward, max_iter=MAX_ITER)

    def go(tolerance: float) -> dict[str, Any]:
        solver.epsilon, solver.V, solver.gain, solver.iter = tolerance, np.zeros(S), 0.0, 0  # as a new one has them
        begun = perf_counter()
        solver.run()
        return {"seconds": perf_counter() - begun}

    serve("pymdptoolbox", go, lambda: {"gain": float(solver.average_reward)})


if __name__ == "__main__":
    main(*sys.argv[1:])
