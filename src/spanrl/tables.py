"""Tables on disk: Parquet, by polars, of which this module alone knows.

The bytes of a table depend on its columns and on the version of polars alone: no time, host, path or number of threads is in them.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spanrl.errors import InputError, MissingExtraError, RunFileError

Array = np.ndarray[Any, np.dtype[Any]]
Constant = bool | int | float | str

_ROWS_IN_A_GROUP = 1 << 18
_LARGEST = 2**63 - 1


def require_polars() -> Any:
    """Return the module polars, or say how to install it."""
    try:
        import polars
    except ImportError:
        raise MissingExtraError("tables: polars is not installed. Run: pip install 'spanrl[experiments]'.") from None
    return polars


def write_table(path: Path, columns: Mapping[str, Array | Constant]) -> None:
    """Write ``columns`` to ``path``, through to the disk: arrays of one length, and constants that stand in every row.

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
    write_bytes(path, buffer.getvalue())


def read_table(path: Path) -> dict[str, Array]:
    """Return the columns of a Parquet file in their order; text as numpy text."""
    polars = require_polars()
    try:
        # By its bytes: a path with brackets would be a pattern, one with "=" would add a column.
        frame = polars.read_parquet(io.BytesIO(path.read_bytes()))
    except FileNotFoundError:
        raise RunFileError(f"load: {path} is missing. Give the folder of a saved run.") from None
    except OSError as error:
        raise RunFileError(f"load: {path} cannot be read ({error.strerror or error}).") from None
    except (Exception, polars.exceptions.PanicException) as error:
        reason = str(error).partition("\n")[0]
        raise RunFileError(f"load: {path} is damaged or no Parquet file ({reason}). Save it again.") from None
    return {column.name: _array(polars, column) for column in frame.get_columns()}


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` and wait until it is on the disk."""
    with path.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _series(polars: Any, name: str, value: Array | Constant, n_rows: int) -> Any:
    if isinstance(value, np.ndarray):
        return polars.Series(name, value.tolist() if value.dtype.kind == "U" else value)
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise InputError(f"write_table: {name} must fit into 64 bits (at most {_LARGEST}); got {value}.")
    kinds = {str: polars.String, bool: polars.Boolean, int: polars.Int64, float: polars.Float64}
    return polars.repeat(value, n_rows, dtype=kinds[type(value)], eager=True).alias(name)


def _array(polars: Any, column: Any) -> Array:
    array: Array = column.to_numpy()
    return array.astype(np.str_) if column.dtype == polars.String else array
