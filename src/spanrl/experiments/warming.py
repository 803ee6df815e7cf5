"""Compile what the cells of an experiment need before they are computed side by side: whatever its agents are, plugins included.

Which code an agent needs depends on its name and on those of its options that are words or flags; numbers select nothing.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable
from contextlib import suppress

from spanrl import names
from spanrl.envs.registry import make
from spanrl.kernels.cache import is_compiled, mark_compiled
from spanrl.learning.learn import learn
from spanrl.learning.optimum import find_diameter

_ENVS = "three-state", "two-state"
_STEPS = 1000


def is_warm(agents: Iterable[str]) -> bool:
    """Tell whether the code of all these agents, given by their texts, has been compiled before."""
    return all(is_compiled(_task(agent)) for agent in agents)


def warm_up(agents: Iterable[str], steps: int = _STEPS) -> None:
    """Run every kind of agent for some steps, so that its code is compiled and kept, or loaded."""
    kinds = {_task(agent): agent for agent in agents}
    find_diameter(make(_ENVS[0]).mdp)
    for task, agent in kinds.items():
        with suppress(Exception), warnings.catch_warnings():  # its cells will tell
            warnings.simplefilter("ignore")
            for env in _ENVS:
                learn(env, agent, horizon=steps, seed=0)
        mark_compiled(task)


def _task(agent: str) -> str:
    """Return the name under which it is remembered that an agent's code is compiled."""
    name, given = names.parse(agent)
    words = {option: value for option, value in given.items() if isinstance(value, (str, bool))}
    return "run-" + hashlib.sha256(f"{name} {sorted(words.items())}".encode()).hexdigest()[:12]
