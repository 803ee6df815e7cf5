"""The directory of an experiment: folders and renames, nothing else.

::

    DIR/spec.toml                       what is being computed, normalised and sealed
    DIR/cells/<env>/<agent>/<seed>/     a finished cell: curve.parquet, episodes.parquet, meta.json
    DIR/checkpoints/<cell>.ckpt         the exact state of a cell, kept when it is finished, for a longer horizon
    DIR/failed/<cell>.txt               why a cell failed
    DIR/set-aside/                      what was found damaged
    DIR/tmp/                            half-written things; emptied when a driver starts and when it ends
    DIR/lock                            held by the driver

One driver holds the lock, and it alone renames into ``cells/``. Every file appears whole or not at all, so that whatever is killed
at whatever moment, the next driver finds a state to go on from.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from spanrl.errors import OptionError, RunFileError
from spanrl.experiments.engine import is_full
from spanrl.experiments.lock import Lock
from spanrl.experiments.lost import SPEC_FILE, has_lost_its_spec, spec_of_cells
from spanrl.experiments.spec import HEADER, Cell, Spec, differences, load_spec
from spanrl.experiments.spec_entry import check_model
from spanrl.learning.files import META_FILE, read_meta, sync_folder, verify, write_files
from spanrl.learning.snapshot import read_head
from spanrl.tables import write_bytes


class Store:
    """A directory, for reading; :meth:`open` also takes the lock, for writing."""

    def __init__(self, dir: str | os.PathLike[str]) -> None:  # noqa: A002
        """Point at a directory; nothing is read yet."""
        if not isinstance(dir, str | os.PathLike) or not os.fspath(dir):
            raise OptionError(f"run: the directory must be a path; got {dir!r}. Give a new folder to --out.")
        self.dir = Path(os.path.abspath(dir))
        self.lock = Lock(self.dir / "lock")

    def check(self, spec: Spec) -> None:
        """Refuse a directory that is something else, or of a spec that ``spec`` does not go on with; nothing is touched."""
        self._check_place()
        there = load_spec(self.dir / SPEC_FILE) if self._has_spec() else spec_of_cells(self.dir, spec)
        self._check_spec(there, spec)

    def open(self, spec: Spec) -> None:
        """Take the lock and make the directory that of ``spec``, or refuse and leave everything as it is."""
        self.check(spec)
        try:
            self.dir.mkdir(parents=True, exist_ok=True)
            self.lock.take()
        except OSError as error:
            raise self._unusable(error) from None
        try:
            self.check(spec)  # once more: the lock is held now
            shutil.rmtree(self.dir / "tmp", ignore_errors=True)
            text = spec.to_toml().encode()
            if not self._has_spec() or (self.dir / SPEC_FILE).read_bytes() != text:
                self.write(SPEC_FILE, text)
        except OSError as error:
            self.lock.release()
            raise self._unusable(error) from None
        except BaseException:
            self.lock.release()
            raise

    def states(self, spec: Spec) -> dict[str, str]:
        """Return for each cell whether it is finished, running, begun, waiting or failed; nothing is verified."""
        states, running = {}, set((self.lock.holder() or {}).get("running", ()))
        for cell in spec.cells():
            if cell.id in running:
                states[cell.id] = "running"
            elif self._reaches(cell, spec.horizon):
                states[cell.id] = "finished"
            elif os.path.exists(self.failure(cell.folder)):
                states[cell.id] = "failed"
            else:
                states[cell.id] = "begun" if os.path.exists(self.checkpoint(cell.folder)) else "waiting"
        return states

    def reason(self, folder: str) -> str:
        """Return in one line why a cell failed."""
        try:
            with self.failure(folder).open(encoding="utf-8", errors="replace") as stream:
                return stream.readline().strip()
        except OSError:
            return ""

    def close(self) -> None:
        """Remove what is half-written and give the lock back."""
        with suppress(OSError):
            shutil.rmtree(self.dir / "tmp", ignore_errors=True)
        self.lock.release()

    def cell_folder(self, folder: str) -> Path:
        """Return where a finished cell lies."""
        return self.dir / "cells" / folder

    def checkpoint(self, folder: str) -> Path:
        """Return where the checkpoint of a cell lies."""
        return self.dir / "checkpoints" / f"{folder}.ckpt"

    def failure(self, folder: str) -> Path:
        """Return where the text of a failed cell lies."""
        return self.dir / "failed" / f"{folder}.txt"

    def temporary(self) -> Path:
        """Return a new name under ``tmp/``."""
        (self.dir / "tmp").mkdir(parents=True, exist_ok=True)
        return self.dir / "tmp" / secrets.token_hex(8)

    def finished_horizon(self, cell: Cell) -> int | None:
        """Return the horizon to which a cell is computed, None where it is not; raise a RunFileError where its files are damaged."""
        folder = self.cell_folder(cell.folder)
        if not folder.exists():
            return None
        content = verify(folder)
        if content["id"] != cell.id:
            raise RunFileError(f"load: {folder} holds {content['id']}, not {cell.id}. Compute it.")
        check_model(cell.env, content, folder)
        return int(content["spec"]["horizon"])

    def checkpoint_time(self, folder: str) -> int | None:
        """Return the steps done at the checkpoint of a cell, None where there is none that can be read."""
        try:
            return int(read_head(self.checkpoint(folder))["t"])
        except (OSError, RunFileError, KeyError, TypeError, ValueError, OverflowError):
            return None

    def write(self, name: str, data: bytes, *, wait: bool = True) -> None:
        """Put a file into place, whole or not at all; ``wait`` until it would survive a loss of power, too."""
        target, temporary = self.dir / name, self.temporary()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(temporary, data, wait=wait)
            os.replace(temporary, target)
            if wait:
                sync_folder(target.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def write_checkpoint(self, folder: str, data: bytes, *, wait: bool = True) -> None:
        """Put the checkpoint of a cell into place."""
        self.write(f"checkpoints/{folder}.ckpt", data, wait=wait)

    def write_temporary(self, files: Mapping[str, bytes]) -> Path:
        """Write the files of a cell into a new folder under ``tmp/``, for :meth:`adopt`."""
        folder = self.temporary()
        try:
            write_files(folder, files)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    def adopt(self, folder: str, temporary: Path) -> None:
        """Rename a computed cell, a folder under ``tmp/``, into ``cells/``, in place of a shorter one; forget that it ever failed."""
        target = self.cell_folder(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        old = self.temporary()
        if target.exists():
            os.rename(target, old)
        os.rename(temporary, target)
        sync_folder(target.parent)
        shutil.rmtree(old, ignore_errors=True)
        failure = self.failure(folder)
        failure.unlink(missing_ok=True)
        with suppress(OSError):  # folders that are empty now
            failure.parent.rmdir()
            failure.parents[1].rmdir()
            failure.parents[2].rmdir()

    def set_aside(self, path: Path) -> Path:
        """Move something damaged out of the way; its files get another ending, so that they are not taken for results."""
        relative = path.relative_to(self.dir)
        target = _free(self.dir / "set-aside" / relative)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(path, target)
        for file in [target] if target.is_file() else [each for each in target.rglob("*") if each.is_file()]:
            os.rename(file, file.with_name(f"{file.name}.damaged"))
        return target if target.exists() else target.with_name(f"{target.name}.damaged")

    def _reaches(self, cell: Cell, horizon: int) -> bool:
        try:
            return int(read_meta(self.cell_folder(cell.folder) / META_FILE)["spec"]["horizon"]) == horizon
        except RunFileError:
            return False

    def _unusable(self, error: OSError) -> OptionError:
        remedy = "Free some space" if is_full(error) else "Give another --out"
        return OptionError(f"run: {self.dir} cannot be used ({error.strerror or error}). {remedy}.")

    def _check_place(self) -> None:
        try:
            known = not self.dir.exists() or self._has_spec() or has_lost_its_spec(self.dir)
            occupied = not known and _is_occupied(self.dir)
        except OSError as error:
            raise self._unusable(error) from None
        if occupied:
            raise OptionError(
                f"run: {self.dir} is no experiment of ours and not an empty folder. Give a new folder to --out."
            )

    def _has_spec(self) -> bool:
        """Tell whether there is a spec that we wrote; one of the user's is not ours to replace."""
        path = self.dir / SPEC_FILE
        return path.is_file() and path.read_bytes().startswith(HEADER.encode())

    def _check_spec(self, there: Spec, here: Spec) -> None:
        found = differences(there, here)
        if found:
            raise OptionError(
                f"run: {self.dir} holds another experiment: {'; '.join(found)}. Seeds, entries and a longer horizon may be added; "
                "for anything else give another --out."
            )


def _is_occupied(folder: Path) -> bool:
    """Tell whether there is more than a driver leaves that was killed before it wrote anything."""
    return not folder.is_dir() or any(path.name not in ("lock", "tmp") for path in folder.iterdir())


def _free(path: Path) -> Path:
    """Return the path, with a number where it is taken."""
    for number in range(2, 10**6):
        if not path.exists() and not path.with_name(f"{path.name}.damaged").exists():
            return path
        path = path.with_name(f"{path.name.split('~')[0]}~{number}")
    raise RunFileError(f"set-aside: {path} is full. Remove it.")
