"""The parameters of things that are made by name, read from a signature: environments and agents alike."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from spanrl import names
from spanrl.errors import OptionError
from spanrl.names import Value
from spanrl.options import Kind, typed

_KINDS: dict[str, Kind] = {"bool": bool, "int": int, "float": float, "str": str, "float | str": (float, str)}


_OBJECTS = ("BiasDifferences | None",)
"""Types of parameters that no text can hold: they are given in Python alone, and None by default."""


class Parameter(NamedTuple):
    """The declared type and default of a parameter; without a default it must be given."""

    kind: Kind
    default: Value | None


def declared(name: str, factory: Callable[..., Any]) -> dict[str, Parameter]:
    """Read parameters, types and defaults from the signature of ``factory``, in order of declaration; those of the text form alone."""
    out = {}
    for key, parameter in inspect.signature(factory).parameters.items():
        # annotations are strings where the factory's module postpones their evaluation
        annotation = getattr(parameter.annotation, "__name__", str(parameter.annotation))
        if annotation in _OBJECTS:
            continue
        required = parameter.default is parameter.empty
        kind = _KINDS.get(annotation) or (None if required else _KINDS.get(type(parameter.default).__name__))
        by_keyword = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if kind is None or not by_keyword:
            raise OptionError(
                f"{name}: every parameter must be a keyword of type bool, int, float or str, told by its annotation or its default; "
                f"{key!r} is not. Give it such a default."
            )
        out[key] = Parameter(kind, None if required else typed(name, key, parameter.default, kind))
    return out


def defaults(parameters: Mapping[str, Parameter]) -> dict[str, Value]:
    """Return the default of each parameter that has one."""
    return {key: parameter.default for key, parameter in parameters.items() if parameter.default is not None}


def values(name: str, parameters: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Value]:
    """Return the value of every parameter: those given, checked for their type, and the defaults of the rest."""
    for key in given:
        if key not in parameters:
            raise names.unknown(name, "parameter", key, parameters)
    out = {}
    for key, parameter in parameters.items():
        if key not in given and parameter.default is None:
            raise OptionError(f"{name}: {key} must be given. Write {name}[{key}=…].")
        out[key] = typed(name, key, given[key], parameter.kind) if key in given else parameter.default
    return out  # type: ignore[return-value]


def split(who: str, text: Any, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters of a text form, joined with those ``given`` as keywords."""
    if not isinstance(text, str):
        raise OptionError(f"{who}: takes a text such as name[key=value]; got {text!r}. Give its name.")
    bare, inside = names.parse(text)
    twice = sorted(inside.keys() & given.keys())
    if twice:
        raise OptionError(f"{who}: {twice[0]!r} is given in the text {text!r} and as a keyword. Give it once.")
    return bare, inside | dict(given)


def check_new_name(who: str, name: Any, known: Mapping[str, Any]) -> None:
    """Check a name that is to be registered."""
    if not isinstance(name, str) or ":" in name or names.parse(name) != (name, {}):
        raise OptionError(f"{who}: a name must be a word of [A-Za-z0-9_.-]; got {name!r}. Drop the brackets.")
    if name in known:
        raise OptionError(f"{who}: {name!r} is registered already. Choose another name.")
