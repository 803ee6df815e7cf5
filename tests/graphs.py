"""Random graphs for the tests of elimination."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def random_graph(rng: np.random.Generator, S: int, degree: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw a graph: successors of each state, compressed; loops and states without neighbours included."""
    length = rng.integers(0, degree + 1, S)
    succ = np.concatenate([np.sort(rng.choice(S, n, replace=False)) for n in length]) if length.sum() else np.empty(0)
    return np.concatenate(([0], np.cumsum(length))), succ.astype(np.uint32)
