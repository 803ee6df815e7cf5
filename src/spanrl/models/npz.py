"""Arrays from a ``.npz`` that anybody may have made: what it declares is checked before anything is unpacked.

A member of the archive says how long it is packed and unpacked, and its header says which shape and type it has. All must fit together and
into the file, so that reading takes no more memory than the file can hold: its own size, or 1032 times that where members are deflated,
which is the most that the method can do. Nothing is unpickled.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from math import prod
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from spanrl.models.checks import Array

_PACKED = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}
"""How many times longer a member may be unpacked, by the method it is packed with; others are never written."""

_END_OF_BLOCK = 64  # bytes: of a deflated member that is nearly empty
_HEADERS: dict[tuple[int, int], Any] = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class Declared(NamedTuple):
    """What a member says that it holds."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Archive:
    """An open ``.npz``. Whatever is wrong with it raises: a ValueError in our words, or what zlib, zipfile and numpy have for it."""

    def __init__(self, stream: IO[bytes], *, packed: bool = True) -> None:
        """Read the directory of ``stream``; without ``packed`` no member may be deflated."""
        self._zip = zipfile.ZipFile(stream)
        self._methods = _PACKED if packed else {zipfile.ZIP_STORED: 1}
        self._size = stream.seek(0, 2)
        self.names = [name.removesuffix(".npy") for name in self._zip.namelist()]

    def declared(self, name: str) -> Declared:
        """Return shape and type of an array, once its sizes have proved possible; only its header is read."""
        info = self._zip.getinfo(f"{name}.npy")
        most = self._methods.get(info.compress_type, 0) * info.compress_size + _END_OF_BLOCK
        if info.compress_size > self._size or info.file_size > most:
            raise ValueError(f"{name!r} declares {info.file_size} bytes in a file of {self._size}")
        with self._zip.open(info) as stream:
            version = npy.read_magic(stream)
            if version not in _HEADERS:
                raise ValueError(f"{name!r} has a header of version {version}")
            shape, _, dtype = _HEADERS[version](stream)
            header = stream.tell()
        if dtype.hasobject or dtype.itemsize == 0 or any(n < 0 for n in shape):
            raise ValueError(f"{name!r} declares the type {dtype} and the shape {shape}")
        if header + dtype.itemsize * prod(shape) != info.file_size:
            raise ValueError(f"{name!r} declares the shape {shape} of {dtype} in {info.file_size} bytes")
        return Declared(shape, dtype)

    def read(self, name: str) -> Array:
        """Return an array."""
        self.declared(name)
        with self._zip.open(f"{name}.npy") as stream:
            array: Array = npy.read_array(stream, allow_pickle=False)
        return array

    def read_all(self, names: Iterable[str]) -> dict[str, Array]:
        """Return some arrays."""
        return {name: self.read(name) for name in names}
