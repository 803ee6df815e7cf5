"""What a learner offers to those who run it, beyond ``act`` and ``observe``.

Its class says so in ``offers``, a set of the words below. What a class offers is not inherited: a subclass that changes anything says for
itself what is still true, and is asked step by step where it says nothing, which is always right.
"""

from __future__ import annotations

from typing import Any

EPISODES = "episodes"
"""Whole episodes in compiled code, planning included: :meth:`spanrl.agents.learner.Learner.play`."""

HOOK = "hook"
"""Episodes that Python begins and compiled code plays: ``begin_episode(batch, state)``, ``plan``, and ``on_episode``, a list of functions
that are called with the learner at the start of each. Who audits, replays or checks a claim adds one there."""

STEPS = "steps"
"""Compiled steps of an agent that decides anew at each: :class:`spanrl.agents.stepwise.StepLearner`."""

SETS = "sets"
"""A set of plausible models, ``confidence_set()``, which can be audited."""

RESUME = "resume"
"""Its whole state as numbers and arrays: ``get_state()`` and ``set_state(state)``."""


def offers(learner: Any) -> frozenset[str]:
    """Return what a learner, or its very class, offers."""
    declared = "offers" in vars(type(learner)) or "offers" in getattr(learner, "__dict__", {})
    return frozenset(learner.offers) if declared else frozenset()
