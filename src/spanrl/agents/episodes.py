"""When episodes end, and how precisely each is planned: the parts of a learner that are called once per episode.

An episode rule is an :class:`EpisodeRule` whose compiled ``limit(known, settings, pairs, allowed)`` writes how often each pair of the
policy may be played, and returns how many steps the episode may have, 1 or more each. The pair about to be played with no visit left ends
the episode, unplayed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spanrl.confidence.estimate import known_example
from spanrl.kernels.jit import Passed, Signature, passed
from spanrl.models.info import ProblemInfo
from spanrl.options import one_of

UNLIMITED = 2**62
"""Steps or visits without a limit."""

EPISODE_RULES = {
    "doubling": "episodes:DOUBLING",
    "vm": "vm:VM",
    "powers": "powers:POWERS",
}
"""Episode rules by name: the module in this folder, and the object. ``every-N`` is one more, for any N (:mod:`spanrl.agents.schedule`)."""

_SCHEDULE = "every-"


def _limit_examples() -> tuple[Any, ...]:
    whole = np.zeros(1, dtype=np.int64)
    return known_example(), np.zeros(1), whole, whole


LIMIT = Signature("LIMIT", "int64", _limit_examples)
"""The signature of a ``limit(known, settings, pairs, allowed)``: what is known, float64 [n], int64 [2S], int64 [2S]; it returns steps."""

TOLERANCE = Signature("TOLERANCE", "float64", lambda: (known_example(),))
"""The signature of a ``tolerance(known)``: it returns how wide the gain bracket of a plan may be."""


class EpisodeRule:
    """The base of episode rules."""

    limit: ClassVar[Passed]

    def settings(self, info: ProblemInfo) -> NDArray[np.float64]:
        """Return the numbers that ``limit`` takes; a place to warn of what will be slow."""
        return np.zeros(0)


@passed(LIMIT)
def limit_by_doubling(known, settings, pairs, allowed):
    """Allow max{1, N_k} visits: an episode ends when a pair's visits have doubled (Jaksch, Ortner & Auer 2010)."""
    n = known.seen.n
    for k in range(pairs.size):
        allowed[k] = max(1, n[pairs[k]])
    return UNLIMITED


class Doubling(EpisodeRule):
    """End an episode when the pair about to be played has been played max{1, N_k} times in it."""

    limit = limit_by_doubling


DOUBLING = Doubling()


@passed(TOLERANCE)
def one_over_root(known):
    """Return (r_max − r_min)/√t_k, as UCRL2 and SCAL have it."""
    return (known.r_max - known.r_min) / np.sqrt(known.t)


def episode_rule(who: str, name: Any) -> EpisodeRule:
    """Return the rule of a name."""
    if isinstance(name, str) and name.startswith(_SCHEDULE):
        from spanrl.agents.schedule import named_schedule

        return named_schedule(who, name)
    one_of(who, "episodes", name, (*EPISODE_RULES, f"{_SCHEDULE}N"))
    module, _, found = EPISODE_RULES[name].partition(":")
    rule: EpisodeRule = getattr(import_module(f"spanrl.agents.{module}"), found)
    return rule
