"""Model files: one ``.npz`` with a format name and a version, written in one step, read without pickle."""

from __future__ import annotations

import os
import secrets
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np

from spanrl.errors import ModelError, ModelFileError
from spanrl.models.checks import Array

VERSION = 1
_PREFIX = "spanrl-"
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


def read(path: Path, kind: str, required: Sequence[str]) -> dict[str, Array]:
    """Read all arrays of a model file of the given kind."""
    with _opened(path) as data:
        found = _kind(path, data)
        if found != kind:
            raise ModelFileError(
                f"load: {path} holds a model of kind {found!r}, not {kind!r}. Load it with the class that saved it."
            )
        missing = [name for name in required if name not in data.files]
        if missing:
            raise ModelFileError(f"load: {path} is damaged: {missing[0]!r} is missing. Save the model again.")
        try:
            return {name: data[name] for name in data.files}
        except Exception as error:  # zlib, zipfile and numpy each have their own for a damaged entry
            raise ModelFileError(f"load: {path} is damaged ({error}). Save the model again.") from None


def rebuild(path: Path, build: Callable[[], Model]) -> Model:
    """Build a model from what a file held; what breaks a rule of the model is a damaged file."""
    try:
        return build()
    except (ModelError, ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
        raise ModelFileError(f"load: {path} is damaged: {error}") from None


def pack_names(state_names: tuple[str, ...] | None, action_names: tuple[str, ...] | None) -> dict[str, Array]:
    """Return the arrays that hold names, none where there are no names."""
    return {
        key: np.array(value, dtype=np.str_)
        for key, value in (("state_names", state_names), ("action_names", action_names))
        if value
    }


def unpack_names(data: dict[str, Array]) -> tuple[list[str] | None, list[str] | None]:
    """Return state names and action names of a file, None where it has none."""
    both = [[str(name) for name in data[key]] if key in data else None for key in ("state_names", "action_names")]
    return both[0], both[1]


@contextmanager
def _opened(path: Path) -> Iterator[np.lib.npyio.NpzFile]:
    """Open a file as an archive of arrays. We open and close it ourselves: numpy leaves damaged ones open."""
    try:
        with path.open("rb") as stream:
            starts_right = stream.read(2) == b"PK"
            if not zipfile.is_zipfile(stream):  # numpy would speak of pickle
                what = "not a model file or is damaged (its end is missing)" if starts_right else "not a model file"
                raise ModelFileError(f"load: {path} is {what}. Files of models are written by save().")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as data:
                yield data
    except ModelFileError:
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


def _kind(path: Path, data: np.lib.npyio.NpzFile) -> str:
    try:
        name, version = str(data["format"]), int(data["version"])
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
