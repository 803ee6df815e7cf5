"""The text form of environments and agents, ``name[key=value,…]``, and "did you mean".

A name is a word of ``[A-Za-z0-9_.-]``; Gymnasium's environments are named ``gym:Name-v1``, ``gym:space/Name-v1`` or
``gym:module:Name-v1``.

Values are TOML numbers, ``true``/``false`` or bare words ``[A-Za-z0-9_.+-]+``. The canonical form names only the
parameters that differ from their defaults, in order of declaration, with numbers as Python's ``repr`` without a
trailing ``.0``, so that equal things have equal names.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from spanrl.errors import OptionError, UnknownNameError

Value = bool | int | float | str

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_GYM = re.compile(r"gym:([A-Za-z0-9_.]+:)?([A-Za-z0-9_-]+/)?[A-Za-z0-9_.-]+")
_WORD = re.compile(r"[A-Za-z0-9_.+-]+")
_INTEGER = re.compile(r"[+-]?(0|[1-9](_?[0-9])*)")
_FLOAT = re.compile(r"[+-]?((0|[1-9](_?[0-9])*)(\.[0-9](_?[0-9])*)?([eE][+-]?[0-9]+)?|inf|nan)")
_MOST_DIGITS = 100


def unknown(who: str, what: str, name: str, known: Iterable[str], otherwise: str = "") -> UnknownNameError:
    """Return the error for a ``name`` that is not among ``known``, with the nearest one, else all of them, or what to do ``otherwise``."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]!r}?" if near else otherwise or f"Known: {', '.join(known) or 'none'}."
    return UnknownNameError(f"{who}: unknown {what} {name!r}. {hint}")


def parse_value(text: str) -> Value:
    """Read one value: ``true``/``false``, an integer, a float, or a bare word."""
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text):
        if len(text) > _MOST_DIGITS:
            raise OptionError(f"text form: a value must have at most {_MOST_DIGITS} digits; got {len(text)}.")
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _WORD.fullmatch(text):
        return text
    raise OptionError(f"text form: a value must be a number, true, false or a word of [A-Za-z0-9_.+-]; got {text!r}.")


def parse(text: str) -> tuple[str, dict[str, Value]]:
    """Split ``name[key=value,…]`` into its name and parameters.

    >>> parse("three-state[delta=0.01]")
    ('three-state', {'delta': 0.01})
    """
    text = text.strip()
    name, bracket, rest = text.partition("[")
    if not (_NAME.fullmatch(name) or _GYM.fullmatch(name)) or (bracket and not rest.endswith("]")):
        raise OptionError(f"text form: must read name or name[key=value,...]; got {text!r}.")
    parameters: dict[str, Value] = {}
    for part in rest[:-1].split(",") if rest[:-1].strip() else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key.isidentifier():
            raise OptionError(f"text form: {part.strip()!r} in {text!r} must read key=value.")
        if key in parameters:
            raise OptionError(f"text form: {key!r} is given twice in {text!r}; give it once.")
        parameters[key] = parse_value(value)
    return name, parameters


def format_value(value: Value) -> str:
    """Write one value as it stands in the canonical form.

    >>> format_value(5.0), format_value(0.01), format_value(True)
    ('5', '0.01', 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = repr(value)
        return text[:-2] if text.endswith(".0") else text
    return str(value)


def canonical(name: str, parameters: Mapping[str, Value], defaults: Mapping[str, Value]) -> str:
    """Return the canonical text form: what has no default, and what differs from its default, in order of declaration.

    >>> canonical("riverswim", {"n_states": 6, "variant": "osband"}, {"variant": "strehl", "n_states": 6})
    'riverswim[variant=osband]'
    """
    required = [key for key in parameters if key not in defaults]
    changed = [key for key in defaults if parameters.get(key, defaults[key]) != defaults[key]]
    given = [f"{key}={format_value(parameters[key])}" for key in required + changed]
    return f"{name}[{','.join(given)}]" if given else name
