"""What the code of a kernel depends on, as a hash: its own bytecode, that of every function it calls, and the values it takes from outside.

numba notices a change of the file that a kernel stands in, not of a function or a constant in another. Our cached kernels carry this hash
instead, wherever they stand, in the package or in a program of a user: one that does not fit is compiled anew.
"""

from __future__ import annotations

import builtins
import hashlib
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_OUTSIDE = frozenset({*sys.stdlib_module_names, "numpy", "numba", "llvmlite", "scipy"})
"""Packages whose functions change with their versions alone."""


def fingerprint(function: Any) -> str:
    """Return a hash of all that the compiled code of ``function`` is made from, but for its arguments.

    ``function`` is a function of Python, or one of our kernels.
    """
    digest, known, todo = hashlib.sha256(), set(), [function]
    while todo:
        one = todo.pop()
        plain = getattr(one, "py_func", one)
        if id(plain) in known:
            continue
        known.add(id(plain))
        digest.update(f"{type(one).__name__} {getattr(one, '_allocates', None)} {plain.__defaults__!r}".encode())
        for code in _codes(plain.__code__):
            digest.update(code.co_code + repr((code.co_names, code.co_varnames, _plain(code.co_consts))).encode())
        for name, value in _values(plain):
            if callable(getattr(value, "py_func", None)) or isinstance(value, FunctionType):
                todo.append(value)
            else:
                digest.update(f"{name} {_told(value)}".encode())
    return digest.hexdigest()


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _plain(constants: tuple[Any, ...]) -> list[Any]:
    """Return the constants of a code object without the codes among them, whose text names an address."""
    return [value for value in constants if not isinstance(value, CodeType)]


def _values(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield all values that a function takes from outside, by name, in an order that does not change."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    yield from ((name, cell.cell_contents) for name, cell in cells)
    names = [name for code in _codes(function.__code__) for name in code.co_names]
    for name in dict.fromkeys(names):
        if name not in function.__globals__:
            continue  # a built-in function, or an attribute
        value = function.__globals__[name]
        if not isinstance(value, ModuleType):
            yield name, value
        elif value.__name__.partition(".")[0] not in _OUTSIDE:
            yield from (
                (f"{name}.{part}", getattr(value, part)) for part in dict.fromkeys(names) if hasattr(value, part)
            )


def _told(value: Any) -> str:
    """Return a value that compiled code has built in, as text."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, type):
        return f"{value.__name__} {getattr(value, '_fields', ())} {getattr(value, '_field_defaults', {})}"
    if hasattr(builtins, getattr(value, "__name__", "")) or isinstance(value, ModuleType):
        return str(value.__name__)
    return repr(value)
