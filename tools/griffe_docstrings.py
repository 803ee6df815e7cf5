"""Docstrings as the site shows them: doctests become code blocks, roles and literal blocks of reStructuredText become Markdown."""

from __future__ import annotations

import re

import griffe

_ROLE = re.compile(r":(?:class|data|func|meth|mod|attr):`~?([^`]+)`")
_DOCTEST = re.compile(r"(?m)^( *)>>> .*\n?(?:^(?!\s*$).*\n?)*(?:\n(?=\1>>> )(?:^(?!\s*$).*\n?)+)*")


def markdown(text: str) -> str:
    """Return a docstring with its doctests fenced and its roles replaced by code.

    >>> markdown("See :class:`spanrl.MDP`.\\n\\n>>> 1 + 1\\n2")
    'See `spanrl.MDP`.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```\\n'
    """
    text = _ROLE.sub(r"`\1`", text)
    text = re.sub(r"(?m)^( *)(.*)::$", lambda found: f"{found[1]}{found[2]}:" if found[2] else "", text)
    return _DOCTEST.sub(_fenced, text)


def _fenced(found: re.Match[str]) -> str:
    indent = found[1]
    return f"{indent}```pycon\n{found[0].rstrip()}\n{indent}```\n"


class Docstrings(griffe.Extension):
    """Rewrite every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:  # noqa: PLR6301
        """Rewrite the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)
