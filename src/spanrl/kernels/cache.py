"""Where compiled kernels are kept; numba is not imported to find out.

numba notices a change of the file a kernel stands in, not of the kernels it calls in other files. Our cache folder is therefore
named by a hash of all kernel sources and numba's version: any change starts a fresh one.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

INNER = "inner"  # the folder within of kernels that other kernels call


@cache
def kernel_digest() -> str:
    """Return a hash of the sources of all kernels and of numba's version: two versions in one folder drop each other's work."""
    return hashlib.sha256(f"{digest_of('kernels', 'confidence')} {version('numba')}".encode()).hexdigest()[:16]


@cache
def source_digest() -> str:
    """Return a hash of all sources that the bits of a run depend on."""
    return digest_of(".", "agents", "confidence", "envs", "kernels", "learning", "models", "planning")


def digest_of(*folders: str) -> str:
    """Return a hash of the sources and tables in some folders of the package."""
    digest = hashlib.sha256()
    package, kinds = Path(__file__).parents[1], (".py", ".toml")
    for source in sorted(path for folder in folders for path in (package / folder).glob("*") if path.suffix in kinds):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


@cache
def cache_dir() -> Path | None:
    """Return the folder of the compiled kernels, made with mode 0700; None where it cannot be written."""
    try:
        base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(base) / "spanrl" / f"kernels-{kernel_digest()}"
        for part in (folder, folder / INNER):
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return None
    return folder if all(os.access(part, os.W_OK) for part in (folder, folder / INNER)) else None


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
