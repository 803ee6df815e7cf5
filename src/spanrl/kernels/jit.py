"""The decorators for compiled code. numba is imported, and a kernel made ready, when one is first called.

Three things keep the compiler's time down, which is most of the time of a first run. A kernel called by another has no entry for
Python, whose code is often longer than its own. A part has no code at all but in its callers, where numba would compile it again anyway.
Garbage collection is off meanwhile: numba keeps nearly all that it makes.

``numba.config.CACHE_DIR`` is global, so it is set only while the cache of one of our functions is made.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from pathlib import Path
from threading import RLock, local
from typing import Any, ClassVar

from spanrl.errors import OptionError
from spanrl.kernels.cache import INNER, cache_dir, warn_unusable


class _Here(local):
    """How kernels run in this thread. The default is the class's: looking for what is not there takes longer than a small kernel."""

    interpreted = False  # as plain Python


_LOCK = RLock()
_HERE = _Here()


class Kernel:
    """A function in no-Python mode, compiled on first use and kept on disk. No fastmath: bits matter.

    Other kernels may call it: numba asks a value for its ``_numba_type_``.
    """

    def __init__(self, function: Callable[..., Any], *, allocates: bool = False) -> None:
        """Keep ``function``; nothing is compiled yet."""
        update_wrapper(self, function)
        self.py_func, self._allocates = function, allocates
        self._dispatcher: Any = None
        self._inner: Any = None

    def __call__(self, *args: Any) -> Any:
        """Call the compiled function."""
        if _HERE.interpreted:
            return self.py_func(*args)
        return self._dispatcher(*args) if self._dispatcher else self._first_call(*args)

    def _first_call(self, *args: Any) -> Any:
        with _LOCK:
            self._dispatcher = self._dispatcher or self._decorated(inner=False)
        with _uncollected():
            return self._dispatcher(*args)

    def _decorated(self, *, inner: bool) -> Any:
        return _decorated(self.py_func, allocates=self._allocates, inner=inner)

    @property
    def _numba_type_(self) -> Any:
        with _LOCK:
            self._inner = self._inner or self._decorated(inner=True)
        return self._inner._numba_type_


class Signature:
    """What a function that is handed to a kernel takes and returns, by example.

    Kernels are compiled once for all functions of one signature, so it is fixed: each argument has the type of its example.
    """

    def __init__(self, name: str, result: str, examples: Callable[[], tuple[Any, ...]]) -> None:
        """Name the signature, and the result as numba names it; ``examples`` returns one value per argument, when first needed."""
        self.name, self._result, self._examples = name, result, examples

    @cached_property
    def numba(self) -> Any:
        """The signature as numba has it."""
        from numba import typeof, types

        return getattr(types, self._result)(*(typeof(value) for value in self._examples()))


class Passed(Kernel):
    """A compiled function that is handed to a :class:`Loop` as a value and called there by its address.

    It has the wrapper for C that numba asks of such a value, and one signature.
    """

    def __init__(self, function: Callable[..., Any], signature: Signature, *, allocates: bool) -> None:
        """Keep ``function``; nothing is compiled yet."""
        super().__init__(function, allocates=allocates)
        self.signature, self._address = signature, 0

    def __wrapper_address__(self) -> int:
        """Return the address by which compiled code calls it: numba asks a value of a function type for it."""
        return self._address or self._compiled()

    def numba_type(self) -> Any:
        """Return the type of all functions with this signature."""
        from numba import types

        return types.FunctionType(self.signature.numba)

    def _compiled(self) -> int:
        with _LOCK, _uncollected():
            if not self._address:
                signature = self.signature.numba
                dispatcher = _decorated(self.py_func, allocates=self._allocates, inner=False, passed=True)
                dispatcher.compile(signature.args)
                dispatcher.disable_compile()
                made = dispatcher.get_compile_result(signature)
                self._dispatcher = dispatcher
                self._address = made.library.get_pointer_to_function(made.fndesc.llvm_cfunc_wrapper_name)
        return self._address

    def _first_call(self, *args: Any) -> Any:
        self._compiled()
        return self._dispatcher(*args)


class Loop(Kernel):
    """A kernel that is handed :class:`Passed` functions. It is compiled once, whichever they are.

    There is one signature, so its entry is called directly: to find out the types of all tuples in every call would cost more than a
    small plan. Arguments of other types are refused there.
    """

    _entry: Any = None

    def __call__(self, *args: Any) -> Any:
        """Call the compiled function."""
        if _HERE.interpreted:
            return self.py_func(*args)
        if self._entry is None:
            self._compile(args)
        return self._entry(*args)

    def _compile(self, args: tuple[Any, ...]) -> None:
        from numba import typeof

        with _LOCK, _uncollected():
            if self._dispatcher is None:
                dispatcher = self._decorated(inner=False)
                kinds = tuple(arg.numba_type() if isinstance(arg, Passed) else typeof(arg) for arg in args)
                dispatcher.compile(kinds)
                dispatcher.disable_compile()
                self._dispatcher, self._entry = dispatcher, dispatcher.overloads[kinds].entry_point


class Check(Kernel):
    """Assertions about three arguments, made where kernels are interpreted; compiled code has nothing in their place."""

    def __call__(self, *args: Any) -> None:
        """Check."""
        self.py_func(*args)

    def _decorated(self, *, inner: bool) -> Any:
        import numba

        return numba.njit(inline="always")(_nothing)


def _nothing(one: Any, other: Any, third: Any) -> None:
    """Stand for a check in compiled code."""


class Part(Kernel):
    """A kernel that numba writes out in every kernel that calls it, and compiles by itself only where Python calls it."""

    targetoptions: ClassVar = {"inline": "always"}  # where numba looks whether to do so


def kernel(function: Callable[..., Any]) -> Any:
    """Turn ``function`` into a :class:`Kernel` that makes no arrays and is handed none by those it calls; views of its arguments are fine.

    No references to arrays are counted then: the caller holds them. On a small model that was most of the time of a plan.
    """
    return Kernel(function)


def allocating(function: Callable[..., Any]) -> Any:
    """Turn ``function`` into a :class:`Kernel` that makes arrays."""
    return Kernel(function, allocates=True)


def part(function: Callable[..., Any]) -> Any:
    """Turn ``function`` into a :class:`Part`: a layer between kernels, with one caller or little code."""
    return Part(function)


def passed(signature: Signature, *, allocates: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Turn a function into a :class:`Passed` one; say if it makes arrays."""
    return lambda function: Passed(function, signature, allocates=allocates)


def check_part(part: Any, signature: Signature) -> Passed:
    """Return a part that can be handed to a loop, or say what it must be."""
    if not isinstance(part, Passed) or part.signature is not signature:
        raise OptionError(
            f"Rules: {getattr(part, '__name__', part)!r} must be a compiled function of the signature {signature.name}. "
            f"Write @passed({signature.name}) above it."
        )
    return part


def loop(function: Callable[..., Any]) -> Any:
    """Turn ``function`` into a :class:`Loop`, which makes no arrays (see :func:`kernel`)."""
    return Loop(function)


def check(function: Callable[[Any, Any, Any], None]) -> Any:
    """Turn ``function`` into a :class:`Check`."""
    return Check(function)


class External:
    """A function of the C library, for kernels: numba asks for its type when it compiles one."""

    def __init__(self, name: str, result: str, *arguments: str) -> None:
        """Name the function and its types, as numba names them; ``T*`` is a pointer."""
        self._name, self._result, self._arguments = name, result, arguments

    def __call__(self, *args: Any) -> Any:
        """Call it from a kernel that is interpreted; arrays are handed over as ``array.ctypes``."""
        import ctypes

        return getattr(ctypes.CDLL(None), self._name)(*args)

    def __repr__(self) -> str:
        """Return what it is: part of the fingerprint of the kernels that call it."""
        return f"{self._result} {self._name}({', '.join(self._arguments)})"

    @property
    def _numba_type_(self) -> Any:
        from numba import types

        def typed(name: str) -> Any:
            return types.CPointer(typed(name[:-1])) if name.endswith("*") else getattr(types, name)

        return types.ExternalFunction(self._name, typed(self._result)(*map(typed, self._arguments)))


@contextmanager
def interpreted() -> Iterator[None]:
    """Run kernels as plain Python in this thread: the same bits, a hundred times slower, but the compiler need not be loaded."""
    import numpy as np

    before, _HERE.interpreted = _HERE.interpreted, True
    try:
        with np.errstate(all="ignore"):  # compiled code does not warn either
            yield
    finally:
        _HERE.interpreted = before


@contextmanager
def _uncollected() -> Iterator[None]:
    """Switch garbage collection off while a kernel is compiled."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _decorated(function: Callable[..., Any], *, allocates: bool, inner: bool, passed: bool = False) -> Any:
    import numba

    options: dict[str, Any] = {
        "nogil": True,  # threads may sweep different states
        "error_model": "numpy",  # a division by 0 is ∞ and needs no branch
        "no_cfunc_wrapper": not passed,  # the wrapper for C is what a value of a function is called by
        "no_cpython_wrapper": inner,
        "_nrt": allocates,  # numba's runtime, which counts references
    }
    dispatcher: Any = numba.njit(**options)(function)
    if not Path(function.__code__.co_filename).is_file():
        return dispatcher  # typed in by hand: there is nothing to find it by in another process
    folder = cache_dir()
    if folder is None:
        warn_unusable()
        return dispatcher
    from spanrl.kernels.numba_cache import KernelCache

    config: Any = numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder / INNER if inner else folder)
    try:
        dispatcher._cache = KernelCache(function, options)  # as numba's option cache=True does, with its own kind
    except OSError as error:
        warn_unusable(error.strerror or str(error))
    finally:
        config.CACHE_DIR = before
    return dispatcher
