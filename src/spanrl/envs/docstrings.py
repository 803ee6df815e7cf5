"""The docstrings of environments: fixed headings, read for lists, for the documentation and by the tests.

The first line says what the factory returns, and is the summary. The headings come in this order (``Args`` only where
there are parameters)::

    States, Actions, Transitions, Rewards, Start, Constants, Args, Source

``Constants`` begins with the numbers of the default: ``S = 6, A = 2, g* = 0.222936, sp(h*) = 5.0183, D = 22.51.``
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

HEADINGS = ("States", "Actions", "Transitions", "Rewards", "Start", "Constants", "Args", "Source")
_HEADING = re.compile(r"^([A-Z]\w+):\n", re.MULTILINE)


def summary(factory: Callable[..., Any]) -> str:
    """Return the first line without its verb: what the environment is, in one sentence; "" without a docstring.

    >>> from spanrl.envs.two_state import two_state
    >>> summary(two_state)
    'Two states, deterministic: under a span bound the best policy is randomised.'
    """
    first = (inspect.getdoc(factory) or "").partition("\n")[0].removeprefix("Return ")
    return first[:1].upper() + first[1:]


def sections(factory: Callable[..., Any]) -> dict[str, str]:
    """Return the text under each heading, in order; what stands between the first line and the first heading is under "".

    >>> from spanrl.envs.two_state import two_state
    >>> sections(two_state)["Start"]
    's0.'
    """
    _, _, rest = (inspect.getdoc(factory) or "").partition("\n")
    free, *parts = _HEADING.split(rest)
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    return {"": free.strip()} | {heading: inspect.cleandoc(text) for heading, text in texts.items()}
