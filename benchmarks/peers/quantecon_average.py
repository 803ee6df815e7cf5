"""QuantEcon, nearly undiscounted: ``python quantecon_average.py MODEL.npz POLICY.npy METHOD``.

It has no average reward: the tolerance is 1 − β, and its policy is judged by its gain.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from quantecon.markov import DiscreteDP
from scipy.sparse import csr_matrix
from turns import Prepare, Result, serve_models

ACCURACY = 1e-6  # of the gain, to which values in units of 1 / (1 − β) are iterated
MAX_ITER = 10**6  # its own cap, 250, would stop it silently


def main(path: str, policy: str, method: str) -> None:
    one = np.ones(1)
    tiny = discrete(np.array([0, 1]), np.zeros(1, dtype=int), np.array([0, 1]), np.zeros(1, np.uint32), one, one)
    tiny.solve(method)  # compiles
    serve_models("quantecon", lambda path: load(path, policy, method), path)


def discrete(pair_ptr: Any, action: Any, succ_ptr: Any, succ: Any, prob: Any, reward: Any) -> DiscreteDP:
    S = pair_ptr.size - 1
    rows = csr_matrix((prob, succ, succ_ptr), shape=(action.size, S))
    return DiscreteDP(reward, rows, 0.5, np.repeat(np.arange(S), np.diff(pair_ptr)), action)


def load(path: str, policy: str, method: str) -> tuple[Prepare, Result]:
    problem = discrete(**np.load(path))
    last: list[Any] = [None]

    def prepare(tolerance: float) -> Callable[[], object]:
        problem.beta = 1 - tolerance

        def solve() -> None:
            last[0] = problem.solve(method, epsilon=ACCURACY / tolerance, max_iter=MAX_ITER)

        return solve

    def result() -> dict[str, Any]:
        np.save(policy, last[0].sigma)
        return {"policy": policy}

    return prepare, result


if __name__ == "__main__":
    main(*sys.argv[1:])
