"""Where compiled kernels are kept; numba is not imported to find out.

Each kernel is kept with a hash of all that it was made from (:mod:`spanrl.kernels.fingerprint`), so that none is ever stale. The folder is
named by what they have in common: how they are compiled, and by which version of numba.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from contextlib import suppress
from errno import EACCES
from functools import cache
from importlib.metadata import version
from pathlib import Path

INNER = "inner"  # the folder within of kernels that other kernels call
_COMPILING = "jit.py", "fingerprint.py", "numba_cache.py"
_WARNED: set[Path] = set()  # caches that a warning has named already


@cache
def compiler_digest() -> str:
    """Return a hash of how kernels are compiled and of numba's version: two versions in one folder drop each other's work."""
    digest = hashlib.sha256(version("numba").encode())
    for name in _COMPILING:
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.hexdigest()[:16]


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


def cache_dir() -> Path | None:
    """Return the folder of the compiled kernels, made with mode 0700; None where it cannot be written."""
    folder, fault = find_cache()
    return None if fault else folder


@cache
def find_cache() -> tuple[Path, str]:
    """Return the folder of the compiled kernels and why it cannot be used; no reason where it can."""
    try:
        base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError as error:
        return Path("~/.cache/spanrl"), str(error)  # there is no home
    folder = Path(base) / "spanrl" / f"kernels-{compiler_digest()}"
    try:
        for part in (folder, folder / INNER):
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.access(part, os.W_OK):
                return folder, os.strerror(EACCES)
    except OSError as error:
        return folder, error.strerror or str(error)
    return folder, ""


def warn_unusable(why: str = "") -> None:
    """Say once that the cache cannot be used and why, by default as :func:`find_cache` says: kernels are compiled in every process then."""
    folder, fault = find_cache()
    if folder not in _WARNED:
        _WARNED.add(folder)
        warnings.warn(
            f"kernels: the cache {folder} cannot be used ({why or fault}), so kernels are compiled anew in every process. "
            "Free some space, or set NUMBA_CACHE_DIR to a folder that can be written.",
            RuntimeWarning,
            stacklevel=2,
        )


def mark_compiled(task: str) -> None:
    """Remember that all kernels of a task are in the cache."""
    folder = cache_dir()
    if folder is not None:
        with suppress(OSError):
            _mark(folder, task).touch()


def is_compiled(task: str) -> bool:
    """Tell whether a task has run to its end before, so that the first run can announce the wait."""
    folder = cache_dir()
    return folder is not None and _mark(folder, task).exists()


def _mark(folder: Path, task: str) -> Path:
    """Return the file that says so: with other sources it is another one."""
    return folder / f"{task}-{source_digest()}.compiled"
