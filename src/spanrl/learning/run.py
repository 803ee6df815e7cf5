"""The result of learning, and its files.

A saved run is a folder of exactly three files: ``curve.parquet`` (a row a measurement time), ``episodes.parquet`` (a row an episode) and
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
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl import __version__
from spanrl.axes import BLUE, DARK_GREY, new_axes, tidy
from spanrl.errors import InputError, OptionError, RunFileError
from spanrl.models.checks import Array, frozen
from spanrl.tables import read_table, require_polars, write_bytes, write_table

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
_SPEC = (*_CELL, "horizon", "points")
_REST = ("gain", "interrupted", "audit", "r_min", "r_max", "n_states", "n_actions")
_META = (*_SPEC, *_REST, "seconds")
_CURVE_FILE, _EPISODES_FILE, _META_FILE = "curve.parquet", "episodes.parquet", "meta.json"
_REMEDY = "Run and save it again."


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Result of :func:`spanrl.learn`, in the user's units.

    At the measurement times ``t`` (steps done; the last is the horizon): the cumulative ``reward``, the ``regret`` t·g* − reward, the
    ``pseudo_regret``, the ``span`` of the optimistic bias of the episode under way, and the number of episodes begun. Regrets are NaN
    where g* is not known. ``episodes`` has a row an episode: its ``start``, the optimistic ``gain`` and ``span``, the ``sweeps`` of the
    solver, and whether the policy was ``deterministic``; with ``audit=True`` also whether the confidence set ``contains`` the true model,
    and the bracket ``gain_low``, ``gain_high``. ``meta`` tells env, agent, seed, horizon, points, gain, interrupted, audit, r_min,
    r_max, n_states, n_actions and seconds (planning, simulating, total).
    """

    t: NDArray[np.int64]
    reward: NDArray[np.float64]
    regret: NDArray[np.float64]
    pseudo_regret: NDArray[np.float64]
    span: NDArray[np.float64]
    n_episodes: NDArray[np.int64]
    episodes: dict[str, Array]
    meta: dict[str, Any]

    def __post_init__(self) -> None:
        """Check that all is there, and freeze the arrays."""
        kinds = _episode_kinds(self.episodes)
        _check_names("episodes", self.episodes, kinds)
        _check_names("meta", [key for key in self.meta if key in _META], _META)
        for name, kind in CURVE.items():
            object.__setattr__(self, name, frozen(getattr(self, name), kind))
        object.__setattr__(self, "episodes", {name: frozen(self.episodes[name], kind) for name, kind in kinds.items()})
        object.__setattr__(self, "meta", dict(self.meta))
        _check_lengths("curve", {name: getattr(self, name) for name in CURVE})
        _check_lengths("episodes", self.episodes)

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before its horizon."""
        return bool(self.meta["interrupted"])

    def save(self, dir: str | os.PathLike[str]) -> None:  # noqa: A002
        """Write curve.parquet, episodes.parquet and meta.json as the new folder ``dir``; parents are made, nothing is overwritten."""
        _write(check_free(dir), self)

    @classmethod
    def load(cls, dir: str | os.PathLike[str]) -> Run:  # noqa: A002
        """Return the run that was saved in ``dir``, every bit of it, or raise a RunFileError that names the file at fault."""
        folder = Path(dir)
        content = _read_meta(folder / _META_FILE)
        digests = content["sha256"]
        curve = _read_columns(folder / _CURVE_FILE, digests)
        episodes = _read_columns(folder / _EPISODES_FILE, digests)
        try:
            meta = {**content["spec"], **content["run"], "seconds": content["seconds"]}
            return cls(**curve, episodes=episodes, meta=meta)
        except (InputError, KeyError, TypeError) as error:
            raise RunFileError(f"load: {folder / _META_FILE} does not describe this run ({error}). {_REMEDY}") from None

    def plot(self, ax: Any = None) -> Any:
        """Draw the regret over time, the pseudo-regret dashed, or the reward where g* is unknown; return the axes."""
        ax = ax if ax is not None else new_axes()
        if np.isnan(self.regret).all():
            ax.plot(self.t, self.reward, color=BLUE, linewidth=2, label="cumulative reward (gain unknown)")
            ax.set_ylabel("cumulative reward")
        else:
            ax.plot(self.t, self.regret, color=BLUE, linewidth=2, label="regret")
            ax.plot(self.t, self.pseudo_regret, color=DARK_GREY, linewidth=1, linestyle="--", label="pseudo-regret")
            ax.set_ylabel("regret")
        ax.set_xlabel("step t")
        title = f"{self.meta['agent']} on {self.meta['env']}"
        ax.set_title(title + (f"\n{self._steps()}" if self.interrupted else ""), fontsize="medium")
        ax.margins(x=0.02)
        ax.legend(frameon=False)
        tidy(ax)
        return ax

    def _steps(self) -> str:
        done = int(_last(self.t))
        return f"interrupted after {done:,} of {self.meta['horizon']:,} steps" if self.interrupted else f"{done:,}"

    def _regret(self) -> str:
        regret, steps = float(_last(self.regret)), float(_last(self.t))
        if np.isnan(regret):
            return "unknown, as is the optimal gain"
        return f"{regret:.6g} ({regret / max(steps, 1.0) ** 0.5:.3g} √t)"

    def __str__(self) -> str:
        """Summarise in a few lines."""
        meta, seconds = self.meta, self.meta["seconds"]
        lines = {
            "steps": self._steps(),
            "reward": f"{_last(self.reward):.6g}",
            "regret": self._regret(),
            "episodes": f"{_last(self.n_episodes):,}",
            "span": f"{_last(self.span):.6g}",
            "seconds": f"{seconds['total']:.3g} (planning {seconds['planning']:.3g}, simulating {seconds['simulating']:.3g})",
        }
        head = f"Run: {meta['agent']} on {meta['env']}, seed {meta['seed']}"
        return "\n".join([head, *(f"{name:<10}{text}" for name, text in lines.items())])

    def __repr__(self) -> str:
        """Return a one-line summary."""
        meta, regret = self.meta, _last(self.regret)
        steps = self._steps() if self.interrupted else f"{self._steps()} steps"
        known = "" if np.isnan(regret) else f", regret {regret:.6g}"
        return f"<Run: {meta['agent']} on {meta['env']}, seed {meta['seed']}, {steps}{known}>"


def _last(values: Array) -> Any:
    return values[-1] if values.size else values.dtype.type(0)


def _episode_kinds(names: Iterable[str]) -> dict[str, type[np.generic]]:
    return EPISODES | AUDIT if AUDIT.keys() & set(names) else EPISODES


def _check_names(what: str, came: Iterable[str], needed: Iterable[str]) -> None:
    odd = sorted(set(came) ^ set(needed))
    if odd:
        fault = "missing" if odd[0] in needed else "too much"
        raise InputError(f"Run: {what} must have {', '.join(needed)}; {odd[0]!r} is {fault}.")


def _check_lengths(what: str, columns: Mapping[str, Array]) -> None:
    shapes = {name: values.shape for name, values in columns.items()}
    if len(set(shapes.values())) != 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise InputError(f"Run: the arrays of the {what} must be vectors of one length; got shapes {shapes}.")


def check_free(dir: str | os.PathLike[str]) -> Path:  # noqa: A002
    """Return the path where a run can be saved as ``dir``, or refuse; worth asking before a long run starts."""
    require_polars()
    try:
        target = Path(os.path.realpath(dir))
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


def _write(target: Path, run: Run) -> None:
    """Write all files into a sibling folder, then rename it; whatever happens, ``target`` is whole or untouched."""
    temporary = target.with_name(f".{target.name[:40]}.tmp-{os.getpid()}-{secrets.token_hex(4)}")
    cell = {key: run.meta[key] for key in _CELL}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        write_table(temporary / _CURVE_FILE, cell | {name: getattr(run, name) for name in CURVE})
        write_table(temporary / _EPISODES_FILE, cell | run.episodes)
        write_bytes(temporary / _META_FILE, _meta_json(run, temporary))
        _sync_folder(temporary)
        os.rename(temporary, target)
        _sync_folder(target.parent)
    except BaseException as error:  # also an interrupt leaves nothing behind
        shutil.rmtree(temporary, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        raise RunFileError(f"save: cannot write {target} ({error.strerror or error}). Nothing was saved.") from None


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _meta_json(run: Run, folder: Path) -> bytes:
    meta = run.meta
    content = {
        "id": f"{meta['env']}/{meta['agent']}/{meta['seed']:03d}",
        "format_version": VERSION,
        "spec": {key: meta[key] for key in _SPEC},
        "versions": {"python": platform.python_version(), "spanrl": __version__}
        | {name: _version(name) for name in ("numpy", "numba", "polars")},
        "git": _git_hash(Path(__file__).parents[3]),
        "seconds": meta["seconds"],
        "run": {key: value for key, value in meta.items() if key not in (*_SPEC, "seconds")},
        "sha256": {name: _digest((folder / name).read_bytes()) for name in (_CURVE_FILE, _EPISODES_FILE)},
    }
    content["sha256"][_META_FILE] = _digest(_dumps(content))
    return _dumps(content, indent=2) + b"\n"


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
def _git_hash(root: Path) -> str | None:
    """Return the commit that ``root``, the folder above src/, has checked out; None where it is no checkout of ours."""
    if not (root / ".git").exists():
        return None
    command = ["git", f"--git-dir={root / '.git'}", "rev-parse", "--verify", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise RunFileError(f"load: {path} is missing. Give the folder of a saved run.") from None
    except OSError as error:
        raise RunFileError(
            f"load: {path} cannot be read ({error.strerror or error}). Give the folder of a saved run."
        ) from None


def _read_meta(path: Path) -> dict[str, Any]:
    """Return the content of meta.json, once it proved to be what was written."""
    data = _read(path)
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise RunFileError(f"load: {path} is not JSON; it is damaged or of another program. {_REMEDY}") from None
    version = content.get("format_version") if isinstance(content, dict) else None
    if version is None:
        raise RunFileError(f"load: {path} does not describe a run (it has no format_version). {_REMEDY}")
    if version != VERSION:
        raise RunFileError(
            f"load: {path} has format version {version}, this spanrl reads version {VERSION}. Load it with the spanrl that saved it."
        )
    if not _sealed(content):
        raise RunFileError(f"load: {path} was changed after it was saved (its SHA-256 is another). {_REMEDY}")
    return dict(content)


def _sealed(content: dict[str, Any]) -> bool:
    digests = content.get("sha256")
    if not isinstance(digests, dict):
        return False
    seal = digests.pop(_META_FILE, None)
    try:
        return bool(seal == _digest(_dumps(content)))
    except ValueError:  # Python reads NaN and 1e999, which we never write
        return False


def _read_columns(path: Path, digests: Mapping[str, str]) -> dict[str, Array]:
    """Return the columns of a table that is what was written."""
    if _digest(_read(path)) != digests.get(path.name):
        raise RunFileError(f"load: {path} is cut or was changed (its SHA-256 is not that in {_META_FILE}). {_REMEDY}")
    table = read_table(path)
    kinds = CURVE if path.name == _CURVE_FILE else _episode_kinds(table)
    wanted = ", ".join((*_CELL, *kinds))
    if ", ".join(table) != wanted:
        raise RunFileError(f"load: {path} must have the columns {wanted}; got {', '.join(table)}. {_REMEDY}")
    for name, kind in kinds.items():
        if table[name].dtype != kind:
            raise RunFileError(
                f"load: {path} must hold {kind.__name__} in column {name!r}; got {table[name].dtype}. {_REMEDY}"
            )
    return {name: table[name] for name in kinds}
