"""An environment or agent of an experiment, and what keeps several of them apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanrl.errors import OptionError, RunFileError
from spanrl.experiments.fields import shown

_TO_FOLDER = str.maketrans({"[": "--", ",": "--", "=": "-", "]": None, ":": "+", "/": "++"})
_LONGEST_FOLDER = 200


MODEL = "model_sha256"
"""Where checkpoints and the meta.json of cells (under "run") keep the digest of their model file."""


@dataclass(frozen=True)
class SpecEntry:
    """An environment or agent of an experiment.

    ``id`` is the canonical text form, for a saved model the stem of its file; ``label`` is its name in figures. A model also has the
    absolute path of its file and the ``sha256`` of it.
    """

    id: str
    label: str
    model: str = ""
    sha256: str = ""

    @property
    def folder(self) -> str:
        """The id as the name of a folder.

        A colon and a slash of Gymnasium's names never stand side by side, and no name of ours has a plus: one folder, one name.

        >>> SpecEntry("scal[span_bound=5,p_scale=0.05]", "SCAL").folder
        'scal--span_bound-5--p_scale-0.05'
        >>> SpecEntry("gym:my_games:toys/Maze-v0", "maze").folder
        'gym+my_games+toys++Maze-v0'
        """
        return self.id.translate(_TO_FOLDER)

    def table(self) -> dict[str, str]:
        """Return the entry as a table of a spec file."""
        out = {"id": self.model or self.id}
        if self.label != self.id:
            out["label"] = self.label
        return out | ({"sha256": self.sha256} if self.model else {})


def check_model(env: SpecEntry, content: Mapping[str, Any], where: Path) -> None:
    """Raise a RunFileError where a cell, by the ``content`` of its meta.json, was computed with another model file than that of ``env``."""
    found = content["run"].get(MODEL, env.sha256)  # cells of spanrl before 0.3 do not say
    if found != env.sha256:
        raise RunFileError(
            f"load: {where} was computed with another model file (its SHA-256 is {str(found)[:12]}…, not {env.sha256[:12]}…). Compute it."
        )


def check_entries(who: str, key: str, entries: Sequence[SpecEntry]) -> tuple[SpecEntry, ...]:
    """Check that ids, folders and labels can be told apart, and that the folders can be made."""
    for entry in entries:
        if entry.id.startswith("."):
            raise OptionError(f"{who}: an id must not start with a dot; got the {key} {entry.id!r}. Rename it.")
        if len(entry.folder.encode()) > _LONGEST_FOLDER:
            raise OptionError(
                f"{who}: an id must fit into a folder name of {_LONGEST_FOLDER} bytes; got the {key} {shown(entry.id)}."
            )
    twice = _repeated(entry.id for entry in entries)
    if twice is not None:
        raise OptionError(f"{who}: the {key} {twice!r} is there twice. Give it once.")
    folders = {entry.folder.casefold(): entry.id for entry in entries}
    for entry in entries:
        other = folders[entry.folder.casefold()]
        if other != entry.id:
            raise OptionError(f"{who}: {key}s {entry.id!r} and {other!r} would share a folder. Rename one.")
    twice = _repeated(entry.label for entry in entries)
    if twice is not None:
        raise OptionError(f"{who}: two {key}s have the label {twice!r}. Give each its own.")
    return tuple(entries)


def _repeated(texts: Iterable[str]) -> str | None:
    """Return the first text that was there before."""
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            return text
        seen.add(text)
    return None
