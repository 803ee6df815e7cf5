"""What the code of a kernel depends on, as a hash: its own bytecode, that of every function it calls, and the values it takes from outside.

numba notices a change of the file that a kernel stands in, not of a function or a constant in another. Our cached kernels carry this hash
instead, wherever they stand, in the package or in a program of a user: one that does not fit is compiled anew.

All is told by what it holds, never by where it lies in memory: two processes must agree. What numba is taught elsewhere about a function
that is no kernel (``numba.extending.overload``) is not looked for.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from inspect import getattr_static
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from spanrl.kernels.jit import Check

_OUTSIDE = frozenset({"numpy", "numba", "llvmlite", "scipy"})
"""Packages whose functions change with their versions alone, as those of Python do."""

_SIMPLE = frozenset({type(None), bool, int, float, complex, str, bytes})
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_WITHIN = "py_func", "_pyfunc", "_defn"  # where kernels, and what numba makes of functions, keep the function
_DULL = frozenset({"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__firstlineno__"})


def fingerprint(function: Any, options: Any = None) -> str:
    """Return a hash of all that the compiled code of ``function`` is made from, but for its arguments.

    ``function`` is a function of Python, or one of our kernels; ``options`` are told as well.
    """
    teller = _Teller()
    teller.tell(options)
    teller.tell(function)
    return teller.digest.hexdigest()


class _Teller:
    """Tells values to a hash, each that can refer to others once: then it has a number, which also tells who is meant where."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._known: dict[int, Any] = {}  # by address; they are held, so that no other can have it
        self._open: list[ModuleType] = []  # modules that are being told

    def tell(self, value: Any, names: Iterable[str] = ()) -> None:
        """Tell any value; of modules, what they have by these names."""
        if type(value) in _SIMPLE:
            self._write(type(value).__name__, repr(value))
        elif isinstance(value, CodeType):
            self._tell_code(value)
        elif isinstance(value, (np.ndarray, np.generic)):
            self._tell_array(np.asarray(value))
        elif isinstance(value, Enum):
            self._tell_all(type(value), value.name, value.value)
        elif isinstance(value, (tuple, list)):
            self._tell_all(type(value), len(value), *value)
        elif isinstance(value, dict):
            self._tell_all(type(value), len(value), *(part for item in value.items() for part in item))
        elif isinstance(value, (set, frozenset)):
            self._tell_all(
                type(value), sorted(fingerprint(part) for part in value)
            )  # their order changes with the process
        elif isinstance(value, ModuleType):
            self._tell_module(value, tuple(names))
        elif isinstance(value, Check):
            self._write("check")  # compiled code has nothing in its place
        elif (function := _python_function(value)) is not None:
            self._tell_function(value, function)
        elif isinstance(value, type):
            self._tell_class(value)
        else:
            self._tell_object(value)

    def _write(self, *texts: str | bytes) -> None:
        for text in texts:
            data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
            self.digest.update(b"%d:" % len(data) + data)  # so that no two lists of texts look alike

    def _tell_all(self, *values: Any) -> None:
        for value in values:
            self.tell(value)

    def _is_known(self, value: Any) -> bool:
        """Tell a value's number; return whether it had one."""
        known = id(value) in self._known
        number, _ = self._known.setdefault(id(value), (len(self._known), value))
        self._write(f"#{number}")
        return known

    def _tell_code(self, code: CodeType) -> None:
        self._write(code.co_code, getattr(code, "co_exceptiontable", b""))
        self._write(f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount} {code.co_flags}")
        self._write(repr((code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars)))
        self._tell_all(len(code.co_consts), *code.co_consts)

    def _tell_function(self, value: Any, function: FunctionType) -> None:
        """Tell a function and how it is compiled, then all that it takes from outside, in an order that does not change."""
        self._write(type(value).__name__, str(getattr(value, "_allocates", None)))
        self._tell_all(getattr(value, "targetoptions", None), getattr(value, "locals", None))
        if self._is_known(function):
            return
        if _is_outside(function.__module__):
            self._write(function.__module__, function.__qualname__)
            return
        self._tell_all(function.__code__, function.__defaults__, function.__kwdefaults__)
        codes = list(_codes(function.__code__))
        names = dict.fromkeys(name for code in codes for name in code.co_names)
        texts = dict.fromkeys(text for code in codes for text in code.co_consts if isinstance(text, str))  # for getattr
        for name, given in _outer_values(function, names):
            self._write(name)
            self.tell(given, (*names, *texts))

    def _tell_module(self, module: ModuleType, names: tuple[str, ...]) -> None:
        """Tell what a function can have of a module, or of modules within."""
        self._write(module.__name__)
        if _is_outside(module.__name__) or module in self._open:
            return
        self._open.append(module)
        for name in names:
            try:
                value = getattr(module, name)
            except Exception:  # a module that looks for names when asked may fail in any way
                continue
            self._write(name)
            self.tell(value, names)
        self._open.pop()

    def _tell_array(self, array: np.ndarray[Any, Any]) -> None:
        self._write(str(array.dtype), str(array.shape), str(array.flags.f_contiguous))
        if array.dtype.hasobject:
            self.tell(array.tolist())
        else:
            self._write(array.tobytes())

    def _tell_class(self, kind: type) -> None:
        """Tell what compiled code can have of a class: the fields of tuples, the members of enumerations; else all that it holds."""
        self._write(kind.__module__, kind.__qualname__)
        if self._is_known(kind) or _is_outside(kind.__module__):
            return
        if issubclass(kind, Enum):
            self.tell({name: member.value for name, member in kind.__members__.items()})
        elif hasattr(kind, "_fields"):
            self._tell_all(kind._fields, getattr(kind, "_field_defaults", None))
        else:
            held = {name: value for name, value in vars(kind).items() if name not in _DULL}
            self.tell({name: getattr(value, "__func__", getattr(value, "fget", value)) for name, value in held.items()})

    def _tell_object(self, value: Any) -> None:
        """Tell an object by its names, its text without addresses, and what it holds."""
        kind = type(value)
        named = getattr(value, "__module__", ""), getattr(value, "__qualname__", getattr(value, "__name__", ""))
        self._write(kind.__module__, kind.__qualname__, *map(str, named), _ADDRESS.sub("", repr(value)))
        if self._is_known(value) or _is_outside(kind.__module__):
            return
        slots = [name for one in kind.__mro__ for name in _listed(vars(one).get("__slots__", ()))]
        held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        self.tell(
            {name: part for name, part in {**getattr(value, "__dict__", {}), **held}.items() if name not in _DULL}
        )


def _python_function(value: Any) -> FunctionType | None:
    """Return the function that a kernel was made from, or a function itself; None of anything else."""
    if isinstance(value, FunctionType):
        return value
    for name in _WITHIN:
        if getattr_static(value, name, None) is not None:  # others may answer to any name
            found = getattr(value, name)
            if isinstance(found, FunctionType):
                return found
    return None


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _outer_values(function: FunctionType, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield all values that a function takes from outside, by name: built-in functions, and attributes, are none of them."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            yield name, None  # not set yet
    for name in names:
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _listed(slots: Any) -> list[str]:
    """Return the names of ``__slots__``, which may be one text."""
    return [slots] if isinstance(slots, str) else list(slots)


@cache
def _is_outside(module: str | None) -> bool:
    """Tell whether a module changes with versions alone; a user's may have the name of one of Python's."""
    top = (module or "").partition(".")[0]
    if top in _OUTSIDE:
        return True
    if top not in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    return file is None or Path(file).is_relative_to(Path(os.__file__).parent)
