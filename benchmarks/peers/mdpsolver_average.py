"""mdpsolver, average reward: ``python mdpsolver_average.py MODEL.npz POLICY.npy ALGORITHM THREADS``; THREADS is one or many."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import mdpsolver
import numpy as np
from turns import Prepare, Result, serve_models


def main(path: str, policy: str, algorithm: str, threads: str) -> None:
    serve_models("mdpsolver", lambda path: load(path, policy, algorithm, threads), path)


def load(path: str, policy: str, algorithm: str, threads: str) -> tuple[Prepare, Result]:
    model = np.load(path)
    pairs, action = model["pair_ptr"], model["action"]
    ptr, succ, prob, reward = (model[name].tolist() for name in ("succ_ptr", "succ", "prob", "reward"))
    states = [range(*ends) for ends in zip(pairs[:-1].tolist(), pairs[1:].tolist(), strict=True)]
    tables = {
        "rewards": [[reward[i] for i in state] for state in states],
        "tranMatProbs": [[prob[ptr[i] : ptr[i + 1]] for i in state] for state in states],
        "tranMatColumns": [[succ[ptr[i] : ptr[i + 1]] for i in state] for state in states],
    }
    last: list[Any] = [None]

    def prepare(tolerance: float) -> Callable[[], object]:
        last[0] = solver = (
            mdpsolver.model()
        )  # anew: a second solve of the same object starts from the values of the first
        solver.mdp(**tables)
        many = threads == "many"
        return lambda: solver.solve(algorithm=algorithm, tolerance=tolerance, criterion="average", parallel=many)

    def result() -> dict[str, Any]:
        np.save(policy, action[pairs[:-1] + np.array(last[0].getPolicy())])
        return {"policy": policy}

    return prepare, result


if __name__ == "__main__":
    main(*sys.argv[1:])
