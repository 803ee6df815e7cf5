"""mdpsolver, average reward: ``python mdpsolver_average.py MODEL.npz POLICY.npy ALGORITHM THREADS``; THREADS is one or many."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

import mdpsolver
import numpy as np
from turns import serve


def main(path: str, policy: str, algorithm: str, threads: str) -> None:
    model = np.load(path)
    S, A = model["reward"].shape
    ptr, succ, prob = (model[name].tolist() for name in ("succ_ptr", "succ", "prob"))
    rows = [[slice(ptr[i], ptr[i + 1]) for i in range(A * s, A * s + A)] for s in range(S)]
    tables = {
        "rewards": model["reward"].tolist(),
        "tranMatProbs": [[prob[row] for row in pairs] for pairs in rows],
        "tranMatColumns": [[succ[row] for row in pairs] for pairs in rows],
    }
    last: list[Any] = [None]

    def go(tolerance: float) -> dict[str, Any]:
        last[0] = solver = (
            mdpsolver.model()
        )  # anew: a second solve of the same object starts from the values of the first
        solver.mdp(**tables)
        begun = perf_counter()
        solver.solve(algorithm=algorithm, tolerance=tolerance, criterion="average", parallel=threads == "many")
        return {"seconds": perf_counter() - begun}

    def result() -> dict[str, Any]:
        np.save(policy, np.array(last[0].getPolicy()))
        return {"policy": policy}

    serve("mdpsolver", go, result)


if __name__ == "__main__":
    main(*sys.argv[1:])
