"""What a worker may say to the driver; a plugin can reach the pipe, so nothing else is believed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert

from spanrl.experiments.engine import Failed, Finished, Moved, Said, Stopped


class _Message(Struct, tag_field="event", tag=lambda name: name.strip("_").lower(), forbid_unknown_fields=True):
    pass


class _Compiled(_Message):
    pass


class _Said(_Message):
    line: str


class _Moved(_Message):
    id: str
    t: int
    resumed: bool = False


class _Failed(_Message):
    id: str
    reason: str
    text: str
    disk_full: bool = False


class _Stopped(_Message):
    id: str


class _Finished(_Message):
    id: str
    folder: str


_ANY = _Compiled | _Said | _Moved | _Failed | _Stopped | _Finished


def event_of(message: Any, tmp: Path) -> Said | Moved | Failed | Stopped | Finished | None:
    """Return the event that a message tells, None for "compiled".

    Raises a ValueError where it tells none, or where a finished cell does not lie in a folder of its own under ``tmp``.
    """
    try:
        said = convert(message, _ANY)
    except ValidationError as error:
        raise ValueError(str(error)) from None
    if isinstance(said, _Finished):
        folder = Path(said.folder)
        if folder.parent != tmp or folder.name == os.pardir:
            raise ValueError(f"{folder} is no folder under {tmp}")
        return Finished(said.id, folder)
    if isinstance(said, _Said):
        return Said(said.line)
    if isinstance(said, _Moved):
        return Moved(said.id, said.t, said.resumed)
    if isinstance(said, _Failed):
        return Failed(said.id, said.reason, said.text, said.disk_full)
    return Stopped(said.id) if isinstance(said, _Stopped) else None
