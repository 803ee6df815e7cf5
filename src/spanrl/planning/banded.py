"""When is a sparse linear system cheap to solve directly, whatever its size? When its states can be ordered in a narrow band."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_FILL = 3 * 10**7  # entries of the factors, which with row pivots stay within three bands


def band_order(n: int, row: NDArray[Any], col: NDArray[Any]) -> NDArray[np.int32] | None:
    """Return an order of the n states in which elimination fills at most some 10⁷ entries (reverse Cuthill–McKee), or None."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    if row.size > _MOST_FILL:
        return None
    ones = np.ones(row.size, dtype=np.int8)
    graph = csr_array((ones, (row.astype(np.int64), col.astype(np.int64))), shape=(n, n))
    order = reverse_cuthill_mckee((graph + graph.T).tocsr(), symmetric_mode=True)
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    width = int(np.abs(rank[row] - rank[col]).max(initial=0))
    return order if 3 * (width + 1) * n <= _MOST_FILL else None
