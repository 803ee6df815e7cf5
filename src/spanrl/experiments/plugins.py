"""Plugins: a user's modules that register agents and environments."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from spanrl.errors import OptionError
from spanrl.experiments.fields import told

_digests: dict[str, str] = {}


def plugin_digests() -> dict[str, str]:
    """Return a hash of the file of each plugin that was imported, since the bits of its cells depend on it."""
    return dict(_digests)


def import_plugins(plugins: Iterable[str], folders: Iterable[str]) -> None:
    """Import ``plugins``, looked for in ``folders`` first; what is imported already stays.

    The folders stay at the front of ``sys.path``: a plugin may import its neighbours later.
    """
    plugins, folders = list(plugins), list(folders)
    if not plugins:
        return
    sys.path[:] = folders + [folder for folder in sys.path if folder not in folders]
    importlib.invalidate_caches()
    for name in plugins:
        try:
            _digests[f"plugin {name}"] = _digest(importlib.import_module(name))
        except (Exception, SystemExit) as error:
            raise OptionError(
                f"plugins: {name!r} cannot be imported ({told(error)}). "
                f"It is looked for in {' and '.join(folders)} first."
            ) from error


def _digest(module: ModuleType) -> str:
    file = getattr(module, "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16] if file else ""
