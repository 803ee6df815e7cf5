"""Average-reward Markov decision processes with a bound on the bias span.

The public names are loaded when they are first used (PEP 562): ``import spanrl`` alone is light.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from spanrl import gym_hook
from spanrl.agents import BUILT_IN

__version__ = "0.4.1"

_HOME = {
    "MDP": "models.mdp",
    "BoundedMDP": "models.bounded",
    "BiasDifferences": "planning.differences",
    "Policy": "models.policy",
    "Solution": "models.solution",
    "Evaluation": "models.solution",
    "Analysis": "models.solution",
    "Explanation": "models.explanation",
    "bellman": "planning.operators",
    "clip_span": "planning.operators",
    "span_bellman": "planning.operators",
    "span_policy_bellman": "planning.operators",
    "span_greedy": "planning.operators",
    "solve": "planning.solve",
    "scopt": "planning.solve",
    "evi": "planning.solve",
    "gain_curve": "planning.solve",
    "evaluate": "planning.evaluate",
    "analyse": "planning.analyse",
    "compare": "planning.compare",
    "Comparison": "planning.compare",
    "Env": "envs.env",
    "make": "envs.registry",
    "list_envs": "envs.registry",
    "register_env": "envs.registry",
    "ProblemInfo": "models.info",
    **{kind: f"agents.{module}" for module, _, kind in (where.partition(":") for where in BUILT_IN.values())},
    "make_agent": "agents.registry",
    "list_agents": "agents.registry",
    "register_agent": "agents.registry",
    "streams": "seeding",
    "simulate": "learning.simulate",
    "learn": "learning.learn",
    "Run": "learning.run",
    "LearnedModel": "learning.learned",
    "regret_bound": "learning.bound",
    "run_experiment": "experiments.run",
    "load_results": "experiments.results",
    "Results": "experiments.results",
    "check_env": "learning.check",
    "check_agent": "learning.check",
}

_MODULES = {"reference": "agents.reference"}

__all__ = ["__version__", *sorted([*_HOME, *_MODULES])]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(f"spanrl.{_MODULES[name]}")
    elif name in _HOME:
        value = getattr(import_module(f"spanrl.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'spanrl' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


gym_hook.install()
