"""The public names, pinned; and what `import spanrl` does not import."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys

import pytest

import spanrl

PUBLIC = [
    "__version__",
    "Analysis",
    "BiasDifferences",
    "BoundedMDP",
    "Comparison",
    "Env",
    "Evaluation",
    "Explanation",
    "FOCUS",
    "IMEDRL",
    "KLUCRL",
    "LearnedModel",
    "MDP",
    "PSRL",
    "Policy",
    "ProblemInfo",
    "QLearning",
    "Results",
    "Run",
    "SCAL",
    "SCALPlus",
    "Solution",
    "TSDE",
    "TUCRL",
    "UCRL",
    "UCRL2",
    "UCRL2B",
    "UCRL3",
    "analyse",
    "bellman",
    "check_agent",
    "check_env",
    "clip_span",
    "compare",
    "evaluate",
    "evi",
    "gain_curve",
    "learn",
    "list_agents",
    "list_envs",
    "load_results",
    "make",
    "make_agent",
    "reference",
    "register_agent",
    "register_env",
    "regret_bound",
    "run_experiment",
    "scopt",
    "simulate",
    "solve",
    "span_bellman",
    "span_greedy",
    "span_policy_bellman",
    "streams",
]

HEAVY = ("numba", "scipy", "polars", "gymnasium", "ray", "matplotlib", "plotly", "numpy", "rich", "typer")


def test_all_is_pinned() -> None:
    """A name added or removed here is a decision: change the changelog with it."""
    assert spanrl.__all__ == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_is_there(name: str) -> None:
    value = getattr(spanrl, name)
    assert value is getattr(spanrl, name), "the same object every time"
    if name != "__version__":
        assert value.__name__.rpartition(".")[2] == name
        assert value.__doc__, f"{name} has no docstring"


def test_star_import() -> None:
    namespace: dict[str, object] = {}
    exec("from spanrl import *", namespace)
    assert set(PUBLIC) <= namespace.keys()


def test_dir() -> None:
    assert dir(spanrl) == sorted(PUBLIC)


def test_unknown_attribute() -> None:
    with pytest.raises(AttributeError, match="module 'spanrl' has no attribute 'no_such_name'"):
        _ = spanrl.no_such_name
    assert not hasattr(spanrl, "sole")


def test_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert spanrl.__version__ == version("spanrl")


def test_import_is_light() -> None:
    code = f"import json, sys, spanrl; dir(spanrl); print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == []


def test_models_do_not_import_the_compiler() -> None:
    code = (
        "import sys; from spanrl import MDP, BoundedMDP, Policy, make; make('two-state'); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in ("__version__", "reference")])
def test_docstrings_are_complete(name: str) -> None:
    """Arguments, result, errors, and an example, which the doctests run."""
    thing = getattr(spanrl, name)
    text = inspect.getdoc(thing) or ""
    assert ">>> " in text
    if inspect.isclass(thing):
        assert "Args:" in text or "Attributes:" in text
        return
    signature = inspect.signature(thing)
    assert ("Args:" in text) == bool(signature.parameters)
    assert ("Raises:" in text) == bool(signature.parameters)
    assert ("Returns:" in text) == (signature.return_annotation != "None")
