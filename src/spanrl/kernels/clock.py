"""The time, read inside compiled code: what a phase of a long kernel takes."""

from __future__ import annotations

import time
from typing import Any

from spanrl.kernels.jit import kernel

SAMPLING, COUNTS, SETS, SORTING, SWEEPS = range(5)
"""The phases of a run, as positions in an array of seconds."""

_MONOTONIC = getattr(
    time, "CLOCK_MONOTONIC", -1
)  # of the C library; -1 where there is none: all phases take no time then


class _External:
    """A function of the C library, for kernels alone: numba asks for its type when it compiles one."""

    @property
    def _numba_type_(self) -> Any:
        from numba import types

        return types.ExternalFunction("clock_gettime", types.int32(types.int32, types.CPointer(types.int64)))


_gettime = _External()


@kernel
def _read(buffer):
    _gettime(_MONOTONIC, buffer.ctypes)
    return buffer[0] + 1e-9 * buffer[1]


@kernel
def _nothing(buffer):
    return 0.0


now = _read if _MONOTONIC >= 0 else _nothing
"""Return seconds from a moment that does not matter; ``buffer`` is an int64 array [2]."""
