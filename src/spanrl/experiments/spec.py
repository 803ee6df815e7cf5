"""What an experiment is: environments × agents × seeds, a horizon, and the times of measurement.

A spec is a TOML file. It is read once, and everything in it is tried: plugins are imported, grids expanded, each environment and each agent
is made. What results is normalised, and written to the folder of the experiment, so that a later spec can be compared with it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from spanrl.errors import OptionError, missing_extra
from spanrl.experiments.fields import Fields, parse_toml, read_fields, read_seeds, refuse_many_cells
from spanrl.experiments.grid import load_entries, make_agents, make_envs, read_tables
from spanrl.experiments.plugins import import_plugins
from spanrl.experiments.shipped import list_experiments, shipped
from spanrl.experiments.spec_entry import SpecEntry

__all__ = ["Cell", "Spec", "SpecEntry", "differences", "import_plugins", "list_experiments", "load_spec", "read_spec"]

HEADER = "# Written by spanrl run: the experiment of this directory, with every grid expanded."
"""The first line of a stored spec, by which we know our own."""

_RESTORE = "To restore it, move the file away and give the original spec to spanrl run, with the same --out."
_SEAL = "# Labels may be edited here, and the paths of models; all else is sealed by "

_NAMED = 5


class Cell(NamedTuple):
    """One run of an experiment."""

    env: SpecEntry
    agent: SpecEntry
    seed: int

    @property
    def id(self) -> str:
        """The readable name, ``<env>/<agent>/<seed>``."""
        return f"{self.env.id}/{self.agent.id}/{self.seed:03d}"

    @property
    def folder(self) -> str:
        """The folder of its files, below that of all cells."""
        return f"{self.env.folder}/{self.agent.folder}/{self.seed:03d}"


@dataclass(frozen=True)
class Spec:
    """A whole experiment, normalised; ``folders`` is where plugins are looked for, and is not written to files."""

    name: str
    horizon: int
    points: int
    seeds: tuple[int, ...]
    envs: tuple[SpecEntry, ...]
    agents: tuple[SpecEntry, ...]
    plugins: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    def cells(self) -> list[Cell]:
        """Return all cells, seed by seed, so that early results are balanced."""
        return [Cell(env, agent, seed) for seed in self.seeds for env in self.envs for agent in self.agents]

    def to_toml(self) -> str:
        """Return the text of a spec file: grids expanded, ids canonical, model paths absolute with their SHA-256."""
        try:
            import tomli_w
        except ImportError:
            raise missing_extra("spec", "tomli-w", "experiments") from None
        first, n_seeds = self.seeds[0], len(self.seeds)
        in_order = self.seeds == tuple(range(first, first + n_seeds))
        content = {
            "name": self.name,
            "horizon": self.horizon,
            "points": self.points,
            "seeds": f"{first}:{first + n_seeds}" if in_order else list(self.seeds),
            "plugins": list(self.plugins),
            "env": [entry.table() for entry in self.envs],
            "agent": [entry.table() for entry in self.agents],
        }
        return f"{HEADER}\n{_SEAL}{self.seal}\n{tomli_w.dumps(content)}"

    @property
    def seal(self) -> str:
        """The SHA-256 of all that decides which cells there are and what they hold: neither labels nor paths do."""
        envs, agents = ([[entry.id, entry.sha256] for entry in entries] for entries in (self.envs, self.agents))
        content = [self.name, self.horizon, self.points, list(self.seeds), list(self.plugins), envs, agents]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def read_spec(source: str | os.PathLike[str] | Mapping[str, Any]) -> Spec:
    """Read a spec and try all that it names: plugins are imported, every environment and every agent is made once.

    Args:
        source: the path of a TOML file (a text with a separator or the ending .toml), the name of a shipped experiment, or a mapping
            with the keys of such a file. Models are looked for beside the file, for a mapping in the current directory.

    >>> spec = read_spec({"name": "tiny", "horizon": 1e3, "seeds": 2, "env": [{"id": "two-state"}],
    ...                   "agent": [{"id": "scal", "span_bound": [2, 5]}]})
    >>> [cell.id for cell in spec.cells()][:2]
    ['two-state/scal[span_bound=2]/000', 'two-state/scal[span_bound=5]/000']
    """
    if isinstance(source, Mapping):
        return _read("spec", source, Path.cwd())
    path = _path(source)
    return _read(f"spec {path}", parse_toml(path), Path(os.path.abspath(path)).parent)


def load_spec(path: str | os.PathLike[str]) -> Spec:
    """Read a file that :meth:`Spec.to_toml` wrote, as it stands: nothing is imported, made or looked up."""
    who = f"spec {os.fspath(path)}"
    try:
        fields = read_fields(who, parse_toml(Path(path)))
        envs, agents = load_entries(who, "env", fields.env), load_entries(who, "agent", fields.agent)
        spec = _assembled(fields, read_seeds(who, fields.seeds), envs, agents, ())
    except OptionError as error:
        raise OptionError(f"{error} {_RESTORE}") from None
    lines = Path(path).read_text("utf-8").splitlines()
    seal = next((line.removeprefix(_SEAL) for line in lines if line.startswith(_SEAL)), spec.seal)  # none before 0.2.2
    if seal != spec.seal:
        raise OptionError(
            f"{who}: it was changed after spanrl run wrote it; labels and paths of models alone may be edited there. "
            f"Undo the change. {_RESTORE}"
        )
    return spec


def differences(old: Spec, new: Spec) -> list[str]:
    """Return what keeps ``new`` from going on where ``old`` is: none where it only adds seeds, entries, plugins or steps."""
    out = [
        f"{key}: {before} there, {after} here"
        for key, before, after in (("name", old.name, new.name), ("points", old.points, new.points))
        if before != after
    ]
    if new.horizon < old.horizon:
        out.append(f"horizon: {old.horizon} there, only {new.horizon} here")
    out += _missing("seeds", map(str, old.seeds), map(str, new.seeds))
    for key, before, after in (("env", old.envs, new.envs), ("agent", old.agents, new.agents)):
        now = {entry.id: entry for entry in after}
        out += _missing(f"{key}s", (entry.id for entry in before), now)
        for entry in before:
            out += _changes(f"{key} {entry.id}", entry, now.get(entry.id, entry))
    return out + _missing("plugins", old.plugins, new.plugins)


def _changes(what: str, old: SpecEntry, new: SpecEntry) -> list[str]:
    out = [f"label of {what}: {old.label!r} there, {new.label!r} here"] if old.label != new.label else []
    if old.sha256 != new.sha256:
        there, here = (f"SHA-256 {text[:12]}…" if text else "no model" for text in (old.sha256, new.sha256))
        out.append(f"model of {what}: {there} there, {here} here")
    return out


def _missing(what: str, old: Iterable[str], new: Iterable[str]) -> list[str]:
    kept = set(new)
    gone = [text for text in old if text not in kept]
    rest = f" … and {len(gone) - _NAMED} more" if len(gone) > _NAMED else ""
    return [f"{what} missing here: {', '.join(gone[:_NAMED])}{rest}"] if gone else []


def _path(source: Any) -> Path:
    if isinstance(source, str):
        is_path = source.endswith(".toml") or "/" in source or os.sep in source
        return Path(source) if is_path else shipped(source)
    if isinstance(source, os.PathLike):
        return Path(source)
    raise OptionError(
        f"spec: takes a path, the name of a shipped experiment or a mapping; got {type(source).__name__}."
    )


def _read(who: str, data: Mapping[str, Any], folder: Path) -> Spec:
    fields = read_fields(who, data)
    seeds = read_seeds(who, fields.seeds)
    envs, agents = read_tables(who, "env", fields.env), read_tables(who, "agent", fields.agent)
    refuse_many_cells(who, sum(table.size for table in envs), sum(table.size for table in agents), len(seeds))
    folders = tuple(dict.fromkeys((str(folder), os.getcwd()))) if fields.plugins else ()
    try:
        import_plugins(fields.plugins, folders)
    except OptionError as error:
        raise OptionError(f"{who}: {error}") from error.__cause__
    return _assembled(fields, seeds, make_envs(who, envs, folder), make_agents(who, agents), folders)


def _assembled(
    fields: Fields,
    seeds: tuple[int, ...],
    envs: tuple[SpecEntry, ...],
    agents: tuple[SpecEntry, ...],
    folders: tuple[str, ...],
) -> Spec:
    horizon, points = int(fields.horizon), int(fields.points)
    return Spec(fields.name, horizon, points, seeds, envs, agents, tuple(fields.plugins), folders)
