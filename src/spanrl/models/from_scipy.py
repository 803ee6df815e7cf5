"""From one scipy sparse matrix per action to an MDP (no import of scipy is needed for it)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanrl.errors import ModelError
from spanrl.models import checks
from spanrl.models.mdp import MDP
from spanrl.models.rows import available_pairs


def from_scipy(matrices: Sequence[Any], r: ArrayLike, available: ArrayLike | None, options: dict[str, Any]) -> MDP:
    """Lay the rows of all matrices out by pairs; see :meth:`MDP.from_scipy`."""
    rule = "MDP: matrices must hold one scipy sparse matrix an action"
    if not isinstance(matrices, Sequence):
        raise ModelError(f"{rule}; got {type(matrices).__name__}. Pass a list.")
    if len(matrices) == 0:
        raise ModelError(f"{rule}; got none.")
    for a, matrix in enumerate(matrices):
        if not hasattr(matrix, "tocsr"):
            raise ModelError(f"{rule}; that of action {a} is {type(matrix).__name__}. Use from_dense for arrays.")
    csr = [matrix.tocsr() for matrix in matrices]
    S, A = csr[0].shape[0], len(csr)
    for a, matrix in enumerate(csr):
        if matrix.shape != (S, S):
            raise ModelError(f"MDP: matrix of action {a} must have shape ({S}, {S}); got {matrix.shape}.")
    r_dense = checks.numeric("MDP", "r", r, (S, A))
    states, actions = available_pairs("MDP", available, S, A)
    lengths = np.stack([np.diff(matrix.indptr) for matrix in csr], axis=1)[states, actions]
    ptr = np.concatenate(([0], np.cumsum(lengths)))
    first = np.stack([matrix.indptr[:-1] for matrix in csr], axis=1)[states, actions]
    inside = np.arange(ptr[-1]) - np.repeat(ptr[:-1], lengths) + np.repeat(first, lengths)
    owner = np.repeat(actions, lengths)
    succ, prob = np.empty(ptr[-1], dtype=np.int64), np.empty(ptr[-1])
    for a, matrix in enumerate(csr):
        mine = owner == a
        succ[mine], prob[mine] = matrix.indices[inside[mine]], matrix.data[inside[mine]]
    return MDP.from_pairs(states, actions, ptr, succ, prob, r_dense[states, actions], n_actions=A, **options)
