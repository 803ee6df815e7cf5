"""Register our environments with Gymnasium once both packages are imported, in whichever order, without importing Gymnasium ourselves."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def install() -> None:
    """Register now where Gymnasium is imported already, otherwise as soon as it is."""
    if "gymnasium" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _Finder())


def _register() -> None:
    with suppress(ImportError):  # never in the way of an import
        importlib.import_module("spanrl.envs.gym")


class _Finder(MetaPathFinder):
    """Waits for the import of Gymnasium, lets the usual finders do it, and registers afterwards."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "gymnasium" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)  # this may have been a mere look whether it is installed
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_register(module: ModuleType) -> None:
            sys.meta_path.remove(self)
            run(module)
            _register()

        spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec
