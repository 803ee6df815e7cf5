"""The time, read inside compiled code: what a phase of a long kernel takes."""

from __future__ import annotations

import time

from spanrl.kernels.jit import External, kernel

SAMPLING, COUNTS, SETS, SORTING, SWEEPS = range(5)
"""The phases of a run, as positions in an array of seconds."""

_MONOTONIC = getattr(time, "CLOCK_MONOTONIC", -1)  # where there is none, all phases take no time

_gettime = External("clock_gettime", "int32", "int32", "int64*")


@kernel
def _read(buffer):
    _gettime(_MONOTONIC, buffer.ctypes)
    return buffer[0] + 1e-9 * buffer[1]


@kernel
def _nothing(buffer):
    return 0.0


now = _read if _MONOTONIC >= 0 else _nothing
"""Return seconds from a moment that does not matter; ``buffer`` is an int64 array [2]."""
