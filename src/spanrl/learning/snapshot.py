"""The exact state of a run between two steps, as bytes: what a checkpoint file holds.

::

    spanrl-checkpoint 1
    <SHA-256 of all that follows>
    {"t": …, …}                one line of JSON: numbers, text, lists
    <arrays, as numpy's .npz>

Floats keep every bit in both parts. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spanrl.errors import InputError, RunFileError
from spanrl.models.checks import Array
from spanrl.models.npz import Archive
from spanrl.regular import regular_bytes

VERSION = 1
_MAGIC = f"spanrl-checkpoint {VERSION}".encode()

State = dict[str, Any]
"""Names with numbers, text, lists of them, None, or arrays."""


def pack(state: Mapping[str, Any]) -> bytes:
    """Return ``state`` as bytes."""
    arrays: dict[str, Any] = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    odd = next((name for name, value in arrays.items() if value.dtype.hasobject), None)
    if odd is not None:
        raise InputError(f"checkpoint: {odd!r} must be an array of numbers; got one of objects.")
    rest = {name: value for name, value in state.items() if name not in arrays}
    body = io.BytesIO()
    body.write(json.dumps({name: _plain(value) for name, value in rest.items()}).encode() + b"\n")
    np.savez(body, **arrays)
    content = body.getvalue()
    return b"\n".join((_MAGIC, hashlib.sha256(content).hexdigest().encode(), content))


def unpack(data: bytes, who: str = "checkpoint") -> State:
    """Return the state that was packed, or raise a RunFileError that begins with ``who``."""
    line, _, arrays = _content(data, who).partition(b"\n")
    try:
        state: State = dict(json.loads(line))
        archive = Archive(io.BytesIO(arrays), packed=False)
        return state | archive.read_all(archive.names)
    except (
        Exception
    ) as error:  # the digest fits: another program wrote it, and zipfile, numpy and json each have their own words
        raise RunFileError(f"{who}: the checkpoint cannot be read ({error}).") from None


def check_seal(path: Path) -> None:
    """Raise a RunFileError unless the file holds a checkpoint as it was written."""
    _content(regular_bytes(path), "checkpoint")


def _content(data: bytes, who: str) -> bytes:
    """Return what the seal covers."""
    magic, _, rest = data.partition(b"\n")
    digest, _, content = rest.partition(b"\n")
    if magic != _MAGIC:
        raise RunFileError(f"{who}: this is no checkpoint of version {VERSION}.")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise RunFileError(f"{who}: the checkpoint is cut or was changed (its SHA-256 is another).")
    return content


def _plain(value: Any) -> Any:
    """Return what JSON gives back as it was; anything else is refused rather than changed on the way."""
    if isinstance(value, np.generic):
        return value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [_plain(entry) for entry in value]
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: _plain(entry) for key, entry in value.items()}
    raise InputError(
        "checkpoint: a learner's state must hold numbers, text, arrays, lists, and dicts with text as keys; "
        f"got {type(value).__name__}{' with other keys' if type(value) is dict else ''}."
    )


def columns(rows: list[tuple[Any, ...]], kinds: Mapping[str, type[np.generic]]) -> dict[str, Array]:
    """Return rows as one array a column."""
    table = zip(*rows, strict=True) if rows else ((),) * len(kinds)
    return {name: np.array(values, dtype=kind) for (name, kind), values in zip(kinds.items(), table, strict=True)}


def read_head(path: Path) -> State:
    """Return the numbers of a checkpoint file, without its arrays; nothing is verified."""
    with path.open("rb") as stream:
        if stream.readline().rstrip() != _MAGIC:
            raise RunFileError(f"checkpoint: {path} is no checkpoint of version {VERSION}.")
        stream.readline()
        try:
            head: State = json.loads(stream.readline())
        except (ValueError, RecursionError):
            raise RunFileError(f"checkpoint: {path} is cut or was changed.") from None
    return head
