"""The one decorator for compiled code, and where its compiled form is kept.

numba notices a change of the file a kernel stands in, not of the kernels it calls in other files. Our cache folder is therefore
named by a hash of all kernel sources: any change starts a fresh one. ``numba.config.CACHE_DIR`` is global, so it is set only
while one of our functions is decorated.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba


@cache
def cache_dir() -> Path | None:
    """Return the folder of the compiled kernels, made with mode 0700; None where it cannot be written."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for source in sorted((*package.glob("kernels/*.py"), *package.glob("confidence/*.py"))):
        digest.update(source.read_bytes())
    try:
        base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(base) / "spanrl" / f"kernels-{digest.hexdigest()[:16]}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return None
    return folder if os.access(folder, os.W_OK) else None


def mark_compiled(task: str) -> None:
    """Remember that all kernels of a task are in the cache."""
    folder = cache_dir()
    if folder is not None:
        with suppress(OSError):
            (folder / f"{task}.compiled").touch()


def is_compiled(task: str) -> bool:
    """Tell whether a task has run to its end before, so that the first run can announce the wait."""
    folder = cache_dir()
    return folder is not None and (folder / f"{task}.compiled").exists()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` in no-Python mode on first use and keep the result on disk. No fastmath: bits matter."""
    folder = cache_dir()
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder) if folder else before
    try:
        return numba.njit(cache=folder is not None)(function)
    finally:
        config.CACHE_DIR = before
