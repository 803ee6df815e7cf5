"""A directory whose spec.toml is lost: the cells say of themselves what they are.

``spanrl run`` with the original spec restores the file, once every finished cell has proved to be one of that spec.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spanrl.errors import RunFileError
from spanrl.experiments.spec import Spec
from spanrl.experiments.spec_entry import MODEL, SpecEntry
from spanrl.learning.files import META_FILE, SPEC, read_meta
from spanrl.learning.snapshot import read_head

SPEC_FILE = "spec.toml"
REMEDY = "It has lost its spec.toml: spanrl run with the original spec and this --out restores it"

_OURS = ("lock", "tmp", "cells", "checkpoints", "failed", "set-aside", "figures", "report.html")


def has_lost_its_spec(root: Path) -> bool:
    """Tell whether a directory is an experiment of ours but for its spec: nothing else is in it, and a cell or a checkpoint is whole."""
    if (root / SPEC_FILE).exists() or not root.is_dir() or any(path.name not in _OURS for path in root.iterdir()):
        return False
    return any(True for _ in _metas(root)) or any(_is_checkpoint(path) for path in root.glob("checkpoints/*/*/*.ckpt"))


def spec_of_cells(root: Path, like: Spec) -> Spec:
    """Return the spec of the finished cells; names, labels and plugins, of which they know nothing, are those of ``like``.

    An experiment without a finished cell is ``like``.
    """
    digests = {entry.id: entry.sha256 for entry in like.envs}  # cells of spanrl before 0.2.2 do not say
    found = [
        {**content["spec"], MODEL: content["run"].get(MODEL, digests.get(content["spec"]["env"], ""))}
        for content in _metas(root)
    ]
    if not found:
        return like
    labels = {entry.id: entry.label for entry in (*like.envs, *like.agents)}
    envs = {
        (cell["env"], cell[MODEL]): SpecEntry(cell["env"], labels.get(cell["env"], ""), "", cell[MODEL])
        for cell in found
    }
    agents = {cell["agent"]: SpecEntry(cell["agent"], labels.get(cell["agent"], "")) for cell in found}
    other = (cell["points"] for cell in found if cell["points"] != like.points)
    return Spec(
        name=like.name, horizon=max(cell["horizon"] for cell in found), points=next(other, like.points),
        seeds=tuple(sorted({cell["seed"] for cell in found})), envs=tuple(envs.values()), agents=tuple(agents.values()),
        plugins=like.plugins,
    )  # fmt: skip


def _metas(root: Path) -> Iterator[dict[str, Any]]:
    """Yield the meta.json of every cell that is whole."""
    for path in sorted(root.glob(f"cells/*/*/*/{META_FILE}")):
        try:
            content = read_meta(path)
        except RunFileError:
            continue
        if _describes_a_cell(content):
            yield content


def _describes_a_cell(content: dict[str, Any]) -> bool:
    spec, run = content.get("spec"), content.get("run")
    kinds = {"env": str, "agent": str, "seed": int, "horizon": int, "points": int}
    return isinstance(spec, dict) and isinstance(run, dict) and all(type(spec.get(key)) is kinds[key] for key in SPEC)


def _is_checkpoint(path: Path) -> bool:
    try:
        read_head(path)
    except (OSError, RunFileError):
        return False
    return True
