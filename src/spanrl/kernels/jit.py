"""The one decorator for compiled code. ``numba.config.CACHE_DIR`` is global, so it is set only while one of our functions is decorated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from spanrl.kernels.cache import cache_dir


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` on first use, to run without the interpreter lock, and keep the result on disk. No fastmath: bits matter."""
    folder = cache_dir()
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder) if folder else before
    try:
        return numba.njit(cache=folder is not None, nogil=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = before
