"""A fixed schedule: every episode has the same number of steps, whatever is visited, as ``episodes="every-100"``.

For agents that may change their policy only at given times: once per shift, per day, per release. Regret bounds that count episodes (those
of UCRL2 and SCAL, by the doubling of visits) do not cover it: with n steps per episode there are T/n of them, and one that begins with a
bad policy keeps it for n steps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spanrl.agents.episodes import LIMIT, UNLIMITED, EpisodeRule
from spanrl.kernels.jit import passed
from spanrl.models.info import ProblemInfo
from spanrl.options import require

_NAME = re.compile(r"every-([1-9][0-9]{0,14})")


@passed(LIMIT)
def limit_by_schedule(known, settings, pairs, allowed):
    """Allow as many steps as the setting says, and any visits within them."""
    for k in range(pairs.size):
        allowed[k] = UNLIMITED
    return int(settings[0])


@dataclass(frozen=True)
class FixedSchedule(EpisodeRule):
    """End every episode after ``steps`` steps, 1 or more."""

    steps: int

    limit: ClassVar = limit_by_schedule

    def settings(self, info: ProblemInfo) -> NDArray[np.float64]:
        """Return the steps."""
        return np.array([self.steps], dtype=np.float64)


def named_schedule(who: str, name: Any) -> FixedSchedule:
    """Return the schedule of a name ``every-N``."""
    found = _NAME.fullmatch(name)
    require(
        found is not None,
        who,
        "episodes='every-N' needs a whole number N of 1 to 15 digits",
        name,
        "Use every-100, say.",
    )
    assert found is not None
    return FixedSchedule(int(found[1]))
