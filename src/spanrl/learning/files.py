"""The files of a run.

A saved run is a folder of exactly three files: ``curve.parquet`` (a row per measurement time), ``episodes.parquet`` (a row per episode) and
``meta.json``, which says what was run, by which versions and in how many seconds, and holds the SHA-256 of the tables and of its own
content. The tables depend on the numbers of the run and on the version of polars alone. A folder is written under another name and
renamed in one step: it is there whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct, ValidationError, convert

from spanrl import __version__
from spanrl.errors import InputError, OptionError, RunFileAccessError, RunFileError
from spanrl.models.checks import Array
from spanrl.tables import read_bytes, read_table, require_polars, table_bytes, write_bytes

VERSION = 1
"""Format version of a saved run."""

CURVE: dict[str, type[np.generic]] = {
    "t": np.int64,
    "reward": np.float64,
    "regret": np.float64,
    "pseudo_regret": np.float64,
    "span": np.float64,
    "n_episodes": np.int64,
}
EPISODES: dict[str, type[np.generic]] = {
    "start": np.int64,
    "gain": np.float64,
    "span": np.float64,
    "sweeps": np.int64,
    "deterministic": np.bool_,
}
AUDIT: dict[str, type[np.generic]] = {"contains": np.bool_, "gain_low": np.float64, "gain_high": np.float64}

_CELL = ("env", "agent", "seed")
SPEC = (*_CELL, "horizon", "points")
"""What a run was asked for: these keys of its ``meta`` decide every bit of its tables."""

_Whole = Annotated[int, Meta(ge=1, le=2**62)]
_Finite = Annotated[float, Meta(ge=-1.7e308, le=1.7e308)]
_Seconds = Annotated[float, Meta(ge=0.0, le=1.7e308)]


class _SpecFields(Struct):
    env: str
    agent: str
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    horizon: _Whole
    points: _Whole


class _RunFields(Struct):
    gain: _Finite | None
    interrupted: bool
    audit: bool
    r_min: _Finite
    r_max: _Finite
    n_states: _Whole
    n_actions: _Whole
    optimal_span: _Finite | None = None  # of cells, as are the following
    diameter: _Finite | Literal["inf"] | None = None
    parameters: dict[str, dict[str, str]] = {}


class _SecondsFields(Struct):
    planning: _Seconds
    simulating: _Seconds
    total: _Seconds


class _MetaFields(Struct):
    """What meta.json must hold; more may stand there."""

    id: str
    spec: _SpecFields
    run: _RunFields
    seconds: _SecondsFields
    versions: dict[str, str | None]
    git: str | None
    sha256: dict[str, str]


CURVE_FILE, EPISODES_FILE, META_FILE = "curve.parquet", "episodes.parquet", "meta.json"
REMEDY = "Run and save it again."


def episode_kinds(names: Iterable[str]) -> dict[str, type[np.generic]]:
    """Return the columns of the episodes, with those of an audit where there are any."""
    return EPISODES | AUDIT if AUDIT.keys() & set(names) else EPISODES


def check_free(dir: str | os.PathLike[str]) -> Path:  # noqa: A002
    """Return the path where a run can be saved as ``dir``, or refuse; worth asking before a long run starts."""
    require_polars()
    if not isinstance(dir, str | os.PathLike):
        raise OptionError(f"save: the folder must be a path; got {dir!r}. Give the name of a new folder.")
    try:
        target = Path(os.path.realpath(os.path.abspath(dir)))  # x/../y is y, whether there is an x or not
        if _exists(target) and not target.is_dir():
            raise OptionError(
                f"save: {target} is a file, and a run is saved as a folder. Give the name of a new folder."
            )
        if _exists(target) and any(target.iterdir()):
            raise OptionError(f"save: the folder {target} is not empty, and nothing is overwritten. Give a new folder.")
        above = next((parent for parent in target.parents if _exists(parent)), target)
        usable = above.is_dir() and os.access(above, os.W_OK | os.X_OK)
    except OSError as error:
        raise OptionError(f"save: {dir} cannot be used ({error.strerror or error}). Give a new folder.") from None
    if not usable:
        what = "may not be written to" if above.is_dir() else "is a file"
        raise OptionError(f"save: {target} cannot be made, since {above} {what}. Give a new folder elsewhere.")
    return target


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True  # any other error is the caller's; Path.exists hides it in some versions of Python


def write_run(target: Path, content: Mapping[str, bytes]) -> None:
    """Write all files into a sibling folder, then rename it; whatever happens, ``target`` is whole or untouched."""
    temporary = target.with_name(f".{target.name[:40]}.tmp-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_files(temporary, content)
        os.rename(temporary, target)
        sync_folder(target.parent)
    except BaseException as error:  # also an interrupt leaves nothing behind
        shutil.rmtree(temporary, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        raise RunFileError(f"save: cannot write {target} ({error.strerror or error}). Nothing was saved.") from None


def write_files(folder: Path, content: Mapping[str, bytes]) -> None:
    """Write the files of a new folder through to the disk."""
    folder.mkdir()
    for name, data in content.items():
        write_bytes(folder / name, data)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def pack_run(curve: Mapping[str, Array], episodes: Mapping[str, Array], meta: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the content of the three files."""
    cell = {key: meta[key] for key in _CELL}
    tables = {CURVE_FILE: table_bytes({**cell, **curve}), EPISODES_FILE: table_bytes({**cell, **episodes})}
    content = {
        "id": f"{meta['env']}/{meta['agent']}/{meta['seed']:03d}",
        "format_version": VERSION,
        "spec": {key: meta[key] for key in SPEC},
        "versions": computed_with(),
        "git": git_hash(),
        "seconds": meta["seconds"],
        "run": {key: value for key, value in meta.items() if key not in (*SPEC, "seconds")},
        "sha256": {name: _digest(data) for name, data in tables.items()},
    }
    content["sha256"][META_FILE] = _digest(_dumps(content))
    return {**tables, META_FILE: _dumps(content, indent=2) + b"\n"}


def read_run(dir: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, Array], dict[str, Any]]:  # noqa: A002
    """Return (curve, episodes, meta) of a saved run, every bit of it, or raise a RunFileError that names the file at fault."""
    if not isinstance(dir, str | os.PathLike):
        raise OptionError(f"load: the folder must be a path; got {dir!r}. Give the folder of a saved run.")
    folder = Path(dir)
    content = read_meta(folder / META_FILE)
    digests = content["sha256"]
    curve, episodes = (_read_columns(folder / name, digests) for name in (CURVE_FILE, EPISODES_FILE))
    return curve, episodes, {**content["spec"], **content["run"], "seconds": content["seconds"]}


def verify(folder: Path) -> dict[str, Any]:
    """Return the content of meta.json once all three files proved to be what was written; no table is decoded."""
    content = read_meta(folder / META_FILE)
    for name in (CURVE_FILE, EPISODES_FILE):
        _check_digest(folder / name, content["sha256"])
    return content


@cache
def computed_with() -> dict[str, str | None]:
    """Return the versions that a run is computed with."""
    names = ("numpy", "numba", "polars")
    return {"python": platform.python_version(), "spanrl": __version__} | {name: _version(name) for name in names}


def _dumps(content: dict[str, Any], **options: Any) -> bytes:
    return json.dumps(content, allow_nan=False, default=_plain, **options).encode()


def _plain(value: object) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise InputError(f"save: meta must hold numbers, text, lists and dicts alone; got {type(value).__name__}.")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def git_hash(root: Path = Path(__file__).parents[3]) -> str | None:
    """Return the commit that ``root``, the folder above src/, has checked out; None where it is no checkout of ours."""
    if not (root / ".git").exists():
        return None
    command = ["git", f"--git-dir={root / '.git'}", "rev-parse", "--verify", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def read_meta(path: Path) -> dict[str, Any]:
    """Return the content of meta.json, once it proved to be what was written."""
    data = read_bytes(path)
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise RunFileError(f"load: {path} is not JSON; it is damaged or of another program. {REMEDY}") from None
    version = content.get("format_version") if isinstance(content, dict) else None
    if version is None:
        raise RunFileError(f"load: {path} does not describe a run (it has no format_version). {REMEDY}")
    if version != VERSION:
        raise RunFileAccessError(
            f"load: {path} has format version {version!r}, this spanrl reads version {VERSION}. Load it with the spanrl that saved it."
        )
    if not _sealed(content):
        raise RunFileError(f"load: {path} was changed after it was saved (its SHA-256 is another). {REMEDY}")
    try:
        convert(content, _MetaFields)
    except ValidationError as error:
        raise RunFileError(f"load: {path} does not describe a run ({error}). {REMEDY}") from None
    return dict(content)


def _sealed(content: dict[str, Any]) -> bool:
    digests = content.get("sha256")
    if not isinstance(digests, dict):
        return False
    seal = digests.pop(META_FILE, None)
    try:
        return bool(seal == _digest(_dumps(content)))
    except ValueError:  # Python reads NaN and 1e999, which we never write
        return False


def _check_digest(path: Path, digests: Mapping[str, str]) -> None:
    if _digest(read_bytes(path)) != digests.get(path.name):
        raise RunFileError(f"load: {path} is cut or was changed (its SHA-256 is not that in {META_FILE}). {REMEDY}")


def _read_columns(path: Path, digests: Mapping[str, str]) -> dict[str, Array]:
    """Return the columns of a table that is what was written."""
    _check_digest(path, digests)
    table = read_table(path)
    kinds = CURVE if path.name == CURVE_FILE else episode_kinds(table)
    wanted = ", ".join((*_CELL, *kinds))
    if ", ".join(table) != wanted:
        raise RunFileError(f"load: {path} must have the columns {wanted}; got {', '.join(table)}. {REMEDY}")
    columns = {name: table[name] for name in kinds}
    check_columns(path, columns, kinds)
    return columns


def check_columns(path: Path, columns: Mapping[str, Array], kinds: Mapping[str, type[np.generic]]) -> None:
    """Check the types of columns, and that times come one after the other."""
    for name, kind in kinds.items():
        if columns[name].dtype != kind:
            raise RunFileError(
                f"load: {path} must hold {kind.__name__} in column {name!r}; got {columns[name].dtype}. {REMEDY}"
            )
    t = columns["t" if "t" in kinds else "start"]
    if (t[1:] <= t[:-1]).any() or (t < 0).any():
        raise RunFileError(f"load: {path} must hold rising times ≥ 0. {REMEDY}")
