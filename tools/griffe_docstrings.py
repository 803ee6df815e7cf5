"""Docstrings as the site shows them: doctests become code blocks, roles and literal blocks of reStructuredText become Markdown."""

from __future__ import annotations

import re

import griffe

_ROLE = re.compile(r":(?:class|data|func|meth|mod|attr):`~?([^`]+)`")
_STAR = re.compile(r"(?<![\w*\\])([ghP]|Var)\*(?![*\w])")
_DOCTEST = re.compile(r"(?m)^( *)>>> .*\n?(?:^(?!\s*$).*\n?)*(?:\n(?=\1>>> )(?:^(?!\s*$).*\n?)+)*")


def markdown(text: str) -> str:
    """Return a docstring with its doctests fenced and its roles replaced by code.

    >>> markdown("See :class:`spanrl.MDP`.\\n\\n>>> 1 + 1\\n2")
    'See `spanrl.MDP`.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```\\n'
    """
    out, end = [], 0
    for found in _DOCTEST.finditer(text):
        out += [_prose(text[end : found.start()]), f"{found[1]}```pycon\n{found[0].rstrip()}\n{found[1]}```\n"]
        end = found.end()
    return "".join([*out, _prose(text[end:])])


def _prose(text: str) -> str:
    """Return text outside doctests: stars of h* and g* are no emphasis."""
    text = _ROLE.sub(r"`\1`", text)
    text = re.sub(r"(?m)^( *)(.*)::$", lambda found: f"{found[1]}{found[2]}:" if found[2] else "", text)
    return without_emphasis(text)


def without_emphasis(text: str) -> str:
    """Return Markdown in which the star of an optimal quantity, outside code, is a star.

    >>> print(without_emphasis("*sp(h*)* ≤ c, `g*`, g*"))
    *sp(h\\*)* ≤ c, `g*`, g\\*
    """
    parts = re.split(r"(```.*?```|`[^`\n]*`)", text, flags=re.DOTALL)
    return "".join(part if i % 2 else _STAR.sub(r"\1\\*", part) for i, part in enumerate(parts))


class Docstrings(griffe.Extension):
    """Rewrite every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)
