"""Tables on disk: Parquet, by polars, of which this module alone knows.

The bytes of a table depend on its columns and on the version of polars alone: no time, host, path or number of threads is in them.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from spanrl.errors import InputError, MissingExtraError, RunFileAccessError, RunFileError, SpanrlError, missing_extra
from spanrl.regular import regular_bytes, written_whole

Array = np.ndarray[Any, np.dtype[Any]]
Constant = bool | int | float | str

_ROWS_IN_A_GROUP = 1 << 18
_LARGEST = 2**63 - 1
_ROWS_A_BYTE = 100  # at most in a file that is read; one of ours needs about a byte per row, a forged one has no limit
_USERS: dict[str, int] = {}  # the process that first used polars; a forked child inherits it


def require_polars() -> Any:
    """Return the module polars, or say how to install it; refuse where it would hang: its threads do not survive a fork."""
    try:
        import polars
    except ImportError:
        raise missing_extra("tables", "polars", "experiments") from None
    first = _USERS.setdefault("first", os.getpid())
    if first != os.getpid():
        raise SpanrlError(
            f"tables: polars reads and writes these files, and hangs in a process forked (from {first}) after it was used there. "
            "Start processes by spawn or forkserver, or save in the parent."
        )
    return polars


def write_table(path: Path, columns: Mapping[str, Array | Constant]) -> None:
    """Write ``columns`` to ``path``, through to the disk."""
    write_bytes(path, table_bytes(columns))


def table_bytes(columns: Mapping[str, Array | Constant]) -> bytes:
    """Return ``columns`` as Parquet: arrays of one length, and constants that stand in every row.

    Numbers, NaN and −0.0 included, keep every bit. Text becomes String, whole constants Int64.
    """
    polars = require_polars()
    lengths = {name: len(value) for name, value in columns.items() if isinstance(value, np.ndarray)}
    if len(set(lengths.values())) != 1:
        raise InputError(f"write_table: the arrays must have one length; got {lengths or 'no array'}.")
    n_rows = next(iter(lengths.values()))
    frame = polars.DataFrame([_series(polars, name, value, n_rows) for name, value in columns.items()])
    buffer = io.BytesIO()
    # All that the writer could choose by itself is fixed here, so that equal columns give equal bytes.
    frame.write_parquet(
        buffer, compression="zstd", compression_level=3, statistics=True, row_group_size=_ROWS_IN_A_GROUP
    )
    return buffer.getvalue()


def read_table(path: Path, *, only: Sequence[str] | None = None, sha256: str | None = None) -> dict[str, Array]:
    """Return the columns of a Parquet file, or ``only`` some, in their order; text as numpy text.

    With ``sha256`` the bytes of the file must have this digest.
    """
    polars = require_polars()
    data = read_bytes(path)
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise RunFileError(f"load: {path} is cut or was changed (its SHA-256 is another). Save it again.")
    most = _ROWS_A_BYTE * len(data)
    try:
        # By its bytes: a path with brackets would be a pattern, one with "=" would add a column.
        table = polars.read_parquet(io.BytesIO(data), columns=only, n_rows=most + 1)
        if len(table) > most:
            raise RunFileError(f"load: {path} declares more than {most} rows in {len(data)} bytes. Save it again.")
        return {column.name: _array(polars, column) for column in table.get_columns()}
    except RunFileError:
        raise
    except (Exception, polars.exceptions.PanicException) as error:
        reason = str(error).partition("\n")[0]
        raise RunFileError(f"load: {path} is damaged or no Parquet file ({reason}). Save it again.") from None


def frame(kinds: Mapping[str, type[Constant]], blocks: Iterable[Mapping[str, Array | Constant | None]]) -> Any:
    """Return a polars DataFrame with the columns ``kinds`` and the rows of all ``blocks``, one below the other.

    A block has arrays of one length and constants, or None for nothing, that stand in each of its rows.
    """
    polars = require_polars()
    types = _types(polars)
    parts = [polars.DataFrame(schema={name: types[kind] for name, kind in kinds.items()})]
    for block in blocks:
        n_rows = next((len(value) for value in block.values() if isinstance(value, np.ndarray)), 1)
        parts.append(
            polars.DataFrame([_series(polars, name, block[name], n_rows, types[kind]) for name, kind in kinds.items()])
        )
    return polars.concat(parts, rechunk=True)


def to_pandas(table: Any) -> Any:
    """Return a polars DataFrame as one of pandas, or say how to install it."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise MissingExtraError("to_pandas: pandas is not installed. Run: pip install pandas.") from None
    return pandas.DataFrame({column.name: column.to_numpy() for column in table.get_columns()})  # without pyarrow


def write_csv(path: Path, table: Any) -> None:
    """Write a polars DataFrame as CSV: under another name first, so that ``path`` is there whole or as it was."""
    with written_whole(path) as stream:
        table.write_csv(stream)


def csv_bytes(table: Any) -> bytes:
    """Return a polars DataFrame as CSV."""
    return str(table.write_csv()).encode()


def write_bytes(path: Path, data: bytes, *, wait: bool = True) -> None:
    """Write ``data`` to ``path`` and, unless told otherwise, wait until it is on the disk."""
    with path.open("wb") as stream:
        stream.write(data)
        stream.flush()
        if wait:
            os.fsync(stream.fileno())


def read_bytes(path: Path) -> bytes:
    """Return what is in a file of a saved run."""
    try:
        return regular_bytes(path)
    except FileNotFoundError:
        raise RunFileError(f"load: {path} is missing. Give the folder of a saved run.") from None
    except OSError as error:
        reason = error.strerror or error
        raise RunFileAccessError(f"load: {path} cannot be read ({reason}). Give the folder of a saved run.") from None


def _series(polars: Any, name: str, value: Array | Constant | None, n_rows: int, kind: Any = None) -> Any:
    if isinstance(value, np.ndarray):
        return polars.Series(name, value.tolist() if value.dtype.kind == "U" else value)
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise InputError(f"write_table: {name} must fit into 64 bits (at most {_LARGEST}); got {value}.")
    dtype = kind if value is None else _types(polars)[type(value)]
    return polars.repeat(value, n_rows, dtype=dtype, eager=True).alias(name)


def _types(polars: Any) -> dict[type[Constant], Any]:
    return {str: polars.String, bool: polars.Boolean, int: polars.Int64, float: polars.Float64}


def _array(polars: Any, column: Any) -> Array:
    array: Array = column.to_numpy()
    return array.astype(np.str_) if column.dtype == polars.String else array
