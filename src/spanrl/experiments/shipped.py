"""The experiments that ship with the package, by name."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from spanrl import names
from spanrl.errors import UnknownNameError

FOLDER = Path(__file__).parents[1] / "paper" / "specs"


class Experiment(NamedTuple):
    """A shipped experiment: what :func:`list_experiments` shows."""

    name: str
    summary: str
    path: Path


def list_experiments() -> list[Experiment]:
    """Return the shipped experiments, sorted by name, each with name, summary (the first line of its file) and path.

    >>> [experiment.name for experiment in list_experiments()][:2]
    ['diameter', 'infinite-diameter']
    """
    return sorted(Experiment(path.stem, _summary(path), path) for path in FOLDER.glob("*.toml"))


def shipped(name: str) -> Path:
    """Return the file of a shipped experiment."""
    known = {experiment.name: experiment.path for experiment in list_experiments()}
    if name not in known:
        error = names.unknown("spec", "experiment", name, known)
        raise UnknownNameError(f"{error} A spec of your own is a file that ends in .toml.")
    return known[name]


def _summary(path: Path) -> str:
    return path.read_text("utf-8").partition("\n")[0].removeprefix("#").strip()
