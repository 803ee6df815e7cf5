"""Plugins: a user's modules that register agents and environments, and the digests of their files.

The bits of a cell depend on a plugin and on all that it imports from its own folders. So a checkpoint names each such module that its
process had imported, also those imported late, in the middle of a run, with the SHA-256 of its file; it is resumed only where all of them
are the same. Installed packages are not among them, nor are files that a plugin reads as data.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from spanrl.errors import OptionError
from spanrl.experiments.fields import told

_folders: list[str] = []  # whose modules count, unless they are installed
_packages: set[str] = set()  # which count wherever they are
_looked_at: set[str] = set()
_digests: dict[str, str] = {}


def import_plugins(plugins: Iterable[str], folders: Iterable[str]) -> None:
    """Import ``plugins``, looked for in ``folders`` first; what is imported already stays.

    The folders stay at the front of ``sys.path``: a plugin may import its neighbours later.
    """
    plugins, folders = list(plugins), list(folders)
    if not plugins:
        return
    sys.path[:] = folders + [folder for folder in sys.path if folder not in folders]
    importlib.invalidate_caches()
    _folders[:] = map(os.path.realpath, folders)
    _looked_at.clear()
    for name in plugins:
        try:
            _count(importlib.import_module(name))
        except (Exception, SystemExit) as error:
            raise OptionError(
                f"plugins: {name!r} cannot be imported ({told(error)}). "
                f"It is looked for in {' and '.join(folders)} first."
            ) from error
    plugin_digests()


def import_given(who: str, plugins: Iterable[str]) -> None:
    """Import plugins that are given one by one: paths of Python files, or names of modules, looked for in the current directory first."""
    for text in plugins:
        is_file = text.endswith(".py") or "/" in text or os.sep in text
        path = Path(os.path.abspath(text))
        name = path.stem if is_file else text
        if not all(step.isidentifier() for step in name.split(".")):
            raise OptionError(
                f"{who}: --plugin must be a Python file or the name of a module, such as my_agents.py; got {text!r}."
            )
        if is_file and not path.is_file():
            raise OptionError(
                f"{who}: --plugin must be a Python file or the name of a module; there is no file {text!r}."
            )
        import_plugins([name], [str(path.parent)] if is_file else [os.getcwd()])
        found = getattr(sys.modules[name], "__file__", None) or "Python itself"
        if is_file and os.path.realpath(found) != os.path.realpath(path):
            raise OptionError(
                f"{who}: the module {name!r} of --plugin {text} is already that of {found}. Rename the file."
            )


def plugin_digests() -> dict[str, str]:
    """Return the SHA-256 of the file of each module that plugins have brought along so far, as it was when first seen."""
    for name in sys.modules.keys() - _looked_at if _packages else ():
        _looked_at.add(name)
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and _counts(name, os.path.realpath(file)):
            _digests.setdefault(name, _digest(file))
    return dict(_digests)


def are_unchanged(digests: Any) -> bool:
    """Tell whether modules have the digests that a checkpoint names: as this process has imported them, or else as it would."""
    return isinstance(digests, dict) and all(
        digest == (_digests.get(name) or _digest(_find(name))) for name, digest in digests.items()
    )


def _count(plugin: ModuleType) -> None:
    """Let a plugin's package count, and, where that is not installed, all modules beside it."""
    top = sys.modules[plugin.__name__.partition(".")[0]]
    _packages.add(top.__name__)
    file = getattr(top, "__file__", None)
    if file and not _is_installed(os.path.realpath(file)):
        _folders.append(os.path.dirname(os.path.realpath(file)).removesuffix(f"{os.sep}{top.__name__}"))


def _counts(name: str, file: str) -> bool:
    top = name.partition(".")[0]
    if top in ("spanrl", "__main__"):
        return False
    return top in _packages or (any(_is_under(file, folder) for folder in _folders) and not _is_installed(file))


def _find(name: str) -> str | None:
    """Return the file that an import of a module would read; nothing is imported."""
    path = spec = None
    steps = name.split(".")
    for i in range(len(steps)):
        spec = PathFinder.find_spec(".".join(steps[: i + 1]), path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
    return spec.origin if spec else None


def _digest(file: str | None) -> str:
    """Return the SHA-256 of a file, "" where it cannot be read."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""
    except OSError:
        return ""


def _is_installed(file: str) -> bool:
    parts = Path(file).parts
    return "site-packages" in parts or "dist-packages" in parts or any(_is_under(file, root) for root in _standard())


@cache
def _standard() -> tuple[str, ...]:
    """Return the folders of Python's own library."""
    return tuple(os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))


def _is_under(file: str, folder: str) -> bool:
    return file.startswith(folder.rstrip(os.sep) + os.sep)
