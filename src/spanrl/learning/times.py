"""When a run is measured."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=16)  # many runs have the same horizon
def measurement_times(horizon: int, points: int) -> NDArray[np.int64]:
    """Return the integers nearest 10^(i/points), ``points`` a decade, up to the horizon, and the horizon itself.

    A longer horizon only adds to them.

    >>> measurement_times(20, 4).tolist()
    [1, 2, 3, 6, 10, 18, 20]
    """
    last = int(np.ceil(np.log10(horizon) * points)) + 1
    powers = np.rint(10.0 ** (np.arange(last + 1) / points))
    times = powers[powers < horizon].astype(np.int64)
    unique = np.unique(np.append(times, horizon))
    unique.flags.writeable = False
    return unique
