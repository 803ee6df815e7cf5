"""Model files: one ``.npz`` with a format name and a version, written in one step, read without pickle."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np

from spanrl.errors import ModelError, ModelFileError
from spanrl.models.checks import Array
from spanrl.models.npz import Archive
from spanrl.regular import regular_bytes

VERSION = 1
_PREFIX = "spanrl-"
_LONGEST = 400  # bytes of the names of format and version
Model = TypeVar("Model")


def write(path: Path, kind: str, arrays: dict[str, Array], *, overwrite: bool) -> None:
    """Write ``arrays`` to ``path`` under a temporary name, then rename: a reader never sees half a file."""
    if not overwrite and os.path.lexists(path):
        raise ModelFileError(
            f"save: {path} exists, and nothing is overwritten unasked. Give a new name, or overwrite=True."
        )
    temporary = path.parent / f".{path.name[:40]}.tmp-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        stream = temporary.open("xb")
    except OSError as error:
        raise ModelFileError(
            f"save: cannot write {path} ({error.strerror}). Check that the folder exists and is writable."
        ) from None
    try:
        with stream:
            np.savez_compressed(stream, format=np.array(_PREFIX + kind), version=np.array(VERSION), **arrays)  # type: ignore[arg-type]
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException as error:  # also an interrupt leaves no half file behind
        temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise ModelFileError(f"save: cannot write {path} ({error.strerror}). Nothing was changed.") from None


def kind_of(path: Path) -> str:
    """Return which model a file holds ("mdp" or "bounded"), or raise."""
    with _opened(path) as data:
        return _kind(path, data)


def read(
    path: Path, kind: str, lengths: Mapping[str, str], optional: Sequence[str] = (), *, sha256: str | None = None
) -> dict[str, Array]:
    """Read the arrays of a model file of the given kind that are known, once what they declare fits together.

    ``lengths`` names those that must be there, as :class:`spanrl.models.pairs.PairTable` does; ``optional`` ones may be.
    The bytes of the file must have the digest ``sha256`` if that is given.
    """
    with _opened(path, sha256) as data:
        found = _kind(path, data)
        if found != kind:
            raise ModelFileError(
                f"load: {path} holds a model of kind {found!r}, not {kind!r}. Load it with the class that saved it."
            )
        missing = [name for name in lengths if name not in data.names]
        if missing:
            raise ModelFileError(f"load: {path} is damaged: {missing[0]!r} is missing. Save the model again.")
        unknown = next((name for name in data.names if name not in {*lengths, *optional, "format", "version"}), None)
        if unknown is not None:
            raise ModelFileError(
                f"load: {path} is damaged: it holds {unknown!r}, which no model has. Save the model again."
            )
        try:
            _check_lengths(data, lengths)
            return data.read_all([*lengths, *(name for name in optional if name in data.names)])
        except MemoryError:
            raise  # the model may be as large as it says
        except Exception as error:  # zlib, zipfile and numpy each have their own for a damaged entry
            raise ModelFileError(f"load: {path} is damaged ({error}). Save the model again.") from None


def _check_lengths(data: Archive, lengths: Mapping[str, str]) -> None:
    """Check the declared shapes against each other; nothing is unpacked yet."""
    shapes = {name: data.declared(name).shape for name in lengths}
    n_states, n_pairs, n_succ = (prod(shapes[name]) for name in ("pair_ptr", "action", "succ"))
    known = {"S+1": n_states, "S": n_states - 1, "n": n_pairs, "n+1": n_pairs + 1, "m": n_succ, "2": 2, "0": 0}
    for name, length in lengths.items():
        allowed = [(known[one],) for one in length.split(" or ")] if length else [()]
        if shapes[name] not in allowed:
            raise ValueError(f"{name} must have shape {allowed[0]}, as the other arrays say; got shape {shapes[name]}")


def whole(value: Array) -> int:
    """Return a single whole number that a file holds."""
    if value.ndim != 0 or value.dtype.kind not in "iu":
        raise ModelError(f"a single whole number is stored as {value.dtype} of shape {value.shape}.")
    return int(value)


def flags(**values: bool) -> dict[str, Array]:
    """Return the arrays of the flags that are true; those that are not stand in no file."""
    return {name: np.array(1) for name, value in values.items() if value}


def flag(data: Mapping[str, Array], name: str) -> bool:
    """Return a flag of a file: true or false, false where it is not there."""
    value = whole(data[name]) if name in data else 0
    if value not in (0, 1):
        raise ModelError(f"{name} must be 0 or 1; got {value}.")
    return bool(value)


def rebuild(path: Path, build: Callable[[], Model]) -> Model:
    """Build a model from what a file held; what breaks a rule of the model is a damaged file."""
    try:
        return build()
    except (ModelError, ValueError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"load: {path} is damaged: {error}") from None


@contextmanager
def _opened(path: Path, sha256: str | None = None) -> Iterator[Archive]:
    """Open a file as an archive of arrays."""
    try:
        with _stream(path, sha256) as stream:
            starts_right = stream.read(2) == b"PK"
            if not zipfile.is_zipfile(stream):
                what = "not a model file or is damaged (its end is missing)" if starts_right else "not a model file"
                raise ModelFileError(f"load: {path} is {what}. Files of models are written by save().")
            yield Archive(stream)
    except (ModelFileError, MemoryError):
        raise
    except FileNotFoundError:
        raise ModelFileError(f"load: no file {path}. Give the path of a saved model.") from None
    except OSError as error:
        raise ModelFileError(
            f"load: {path} is not a model file that can be read ({error.strerror or error}). Give the path of a saved model."
        ) from None
    except Exception as error:  # zlib, zipfile and numpy each have their own for a damaged archive
        raise ModelFileError(
            f"load: {path} is not a model file or is damaged ({error}). Save the model again."
        ) from None


def _stream(path: Path, sha256: str | None) -> BinaryIO:
    """Return the bytes of a file; where they must have a digest, the very bytes that were hashed, whatever becomes of the file."""
    if sha256 is None:
        return io.BytesIO(regular_bytes(path)) if not path.is_file() else path.open("rb")
    data = regular_bytes(path)
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise ModelFileError(
            f"load: the model file {path} has changed (its SHA-256 is {found[:12]}…, not {sha256[:12]}…). "
            "Bring back the old file, or take the new one as another model."
        )
    return io.BytesIO(data)


def _kind(path: Path, data: Archive) -> str:
    try:
        shapes = [data.declared(name) for name in ("format", "version")]
        if any(shape or dtype.itemsize > _LONGEST for shape, dtype in shapes):
            raise ValueError("format and version are single words")
        name, version = str(data.read("format")), int(data.read("version"))
    except (KeyError, ValueError, TypeError):
        raise ModelFileError(f"load: {path} is not a model file. Files of models are written by save().") from None
    if not name.startswith(_PREFIX):
        raise ModelFileError(
            f"load: {path} is not a model file (its format is {name!r}). Files of models are written by save()."
        )
    if version != VERSION:
        raise ModelFileError(
            f"load: {path} has format version {version}, this spanrl reads version {VERSION}. Save it again with this version."
        )
    return name.removeprefix(_PREFIX)
