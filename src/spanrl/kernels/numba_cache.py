"""numba's cache on disk, made safe against a full disk and damaged files.

numba unpickles what it finds and hands it to the linker, so a file that was cut or changed ends in an error, or worse. Ours end with a
SHA-256 of what they hold: whatever does not fit is taken for missing, compiled again and overwritten. What cannot be
written is told once and costs the cache, not the work.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numba import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

from spanrl.kernels.cache import warn_unusable
from spanrl.kernels.fingerprint import fingerprint

_SEAL = hashlib.sha256().digest_size
_RENAMED = (ImportError, AttributeError)
"""What unpickling raises where a class of named tuples is no longer where it was."""


class _SealedFiles(IndexDataCacheFile):
    """Index and data files, each with its digest at the end, which unpickling does not look at.

    Code is kept with what it is the code of. numba writes the index first, so a process that is ended before it has written the code
    leaves a new index beside old code; and two processes may choose the same name for the code of two signatures.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep code."""
        super().save(key, (self._source_stamp, key, data))

    def load(self, key: Any) -> Any:
        """Return the code that was kept; None where there is none, or that of something else."""
        stamp, kept, data = super().load(key) or (None, None, None)
        return data if stamp == self._source_stamp and kept == key else None

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        return data + hashlib.sha256(data).digest()

    def _load_index(self) -> dict[Any, str]:
        head = pickle.dumps(self._version, protocol=-1)
        try:
            content = Path(self._index_path).read_bytes()
        except OSError:
            return {}
        if not content.startswith(head) or not _is_sealed(content[len(head) :]):
            return {}
        try:
            overloads: dict[Any, str] = super()._load_index()
        except _RENAMED:
            return {}
        return overloads

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        if not _is_sealed(Path(path).read_bytes()):
            raise OSError(f"{path} is damaged")  # numba compiles anew, as if there were none
        try:
            return super()._load_data(name)
        except _RENAMED as error:
            raise OSError(f"{path} is of another version: {error}") from None


def _is_sealed(content: bytes) -> bool:
    return hashlib.sha256(content[:-_SEAL]).digest() == content[-_SEAL:]


class _InOurFolder(CompileResultCacheImpl):
    """Keep kernels in the folder that numba's setting names and nowhere else: other places go stale (see :mod:`spanrl.kernels.cache`)."""

    _locator_classes = CompileResultCacheImpl._locator_classes[:1]  # its name differs between versions of numba


def _layouts(kind: Any) -> Iterator[tuple[str, ...]]:
    """Yield the fields of every named tuple among types, or within one, or within the signature of a function."""
    if isinstance(kind, (types.NamedTuple, types.NamedUniTuple)):
        yield (kind.instance_class.__name__, *kind.fields)
    within = kind if isinstance(kind, tuple) else (*getattr(kind, "types", ()), *getattr(kind, "args", ()))
    alone = (getattr(kind, name, None) for name in ("signature", "return_type", "dtype", "type"))
    for one in (*within, *(part for part in alone if part is not None)):
        if one is not kind:
            yield from _layouts(one)


class KernelCache(FunctionCache):
    """The cache of one kernel."""

    _impl_class = _InOurFolder

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        """Find the files of ``function``, compiled with ``options``; raise an OSError where the folder cannot be used."""
        try:
            super().__init__(function)
        except RuntimeError as error:  # numba's word for it
            raise OSError(str(error)) from None
        self._cache_file = _SealedFiles(self._cache_path, self._impl.filename_base, fingerprint(function, options))

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Add the fields of all tuples among the arguments, whose types name their class alone."""
        return (*super()._index_key(sig, codegen), tuple(_layouts(sig)))

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, where the disk lets us."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            warn_unusable(error.strerror or str(error))
