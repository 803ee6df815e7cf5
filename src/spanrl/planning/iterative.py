"""The equations of a chain by IDR, as far as it gets: for large blocks whose factors would fill up. Residuals tell how far that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spanrl.kernels.krylov import gather, iterate, new_system, start
from spanrl.kernels.policies import Chain, new_chain
from spanrl.planning import prices
from spanrl.planning.problem import Vector

_REDUCTION, _MOST_ITERATIONS = 1e-10, 3000  # of the residual; of IDR
_HORIZON = 1e12  # of relative values: what it spoils is small, and solved for again


def leaving_solver(A: Any) -> Callable[[Vector], Vector]:
    """Return what solves Ax = b, A = I − P (scipy sparse) of states that are left."""
    chain = _chain(A)
    chain.prob[:] /= np.repeat(chain.out, np.diff(chain.ptr))
    diagonal = chain.out.copy()
    chain.out[:], chain.cut[:] = 1.0, 1  # rows without a horizon
    solve = _solver(chain, 1.0)
    return lambda b: solve(b / diagonal)


def relative_solver(A: Any) -> Callable[[Vector], Vector]:
    """Return what solves Ax = b but for constants in x and b, A = I − P (scipy sparse) of a recurrent class."""
    return _solver(_chain(A), _HORIZON)


def _chain(A: Any) -> Chain:
    """Return I − A but for its diagonal, which is what each state is left with."""
    from scipy.sparse import diags_array

    diagonal = A.diagonal()
    others = (diags_array(diagonal) - A).tocsr()
    others.eliminate_zeros()
    chain = new_chain(diagonal.size, others.nnz)
    chain.ptr[:], chain.succ[:], chain.prob[:] = others.indptr, others.indices, others.data
    chain.out[:] = diagonal
    return chain


def _solver(chain: Chain, horizon: float) -> Callable[[Vector], Vector]:
    system, n = new_system(chain), max(1, int(prices.KERNEL_CALL / prices.krylov_iteration(chain)))

    def solve(b: Vector) -> Vector:
        progress = start(chain, system, horizon, b)
        while progress.n < _MOST_ITERATIONS and progress.norm > _REDUCTION * progress.first:
            progress = iterate(chain, system, progress, _REDUCTION, min(n, _MOST_ITERATIONS - progress.n))
        gather(chain, system)
        x: Vector = system.x.copy()
        return x

    return solve
