"""Imports go downwards only (design.md): this test walks the ASTs, also inside functions and TYPE_CHECKING blocks."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import spanrl

ROOT = Path(spanrl.__file__).parent

ORDER = (
    ("errors", "regular"), ("names", "axes", "seeding", "terminal"), ("options", "tables", "display"), ("parameters",), ("registry",),
    ("models",), ("kernels",), ("planning",), ("confidence",), ("agents", "envs"),
    ("learning",), ("experiments",), ("report", "bench"), ("paper",),
    ("cli", "gym_hook"),
)  # fmt: skip
"""Layers from the bottom up; a layer may import itself and what stands before its own group."""

NEVER = {
    "agents": {"envs"},  # an agent cannot see g*
    "envs": {"agents", "planning"},  # environments never plan
    "report": {"planning", "learning", "kernels"},  # a report runs nothing
    "paper/oracles": {"kernels", "planning"},  # oracles are independent of what they check
}
TOP = {"paper", "cli"}
"""Above everything that has a public name: these alone may write ``import spanrl``, which reaches all of it."""

ONE_MODULE = ("jinja2", "matplotlib", "plotly", "ray", "gymnasium", "polars")
TYPES_ONLY = {("errors.py", "models"), ("errors.py", "experiments")}
"""Allowed under TYPE_CHECKING alone: an error names the type of what it carries."""


class Import(NamedTuple):
    """One imported module, and where."""

    module: str
    line: int
    for_types: bool


@cache
def imports(source: str, path: str) -> tuple[Import, ...]:
    """Return every module that ``source`` (the file ``path`` below src/spanrl) imports, wherever the statement stands."""
    tree = ast.parse(source)
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    package = ("spanrl", *Path(path).parent.parts)
    return tuple(
        Import(module, node.lineno, id(node) in for_types)  # type: ignore[attr-defined]
        for node in ast.walk(tree)
        for module in _modules(node, package)
    )


def _modules(node: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
        module = ".".join(part for part in (base, node.module or "") if part)
        if module == "spanrl":
            # `from spanrl import x` is a module, or a public name with its home elsewhere
            yield from (f"spanrl.{spanrl._HOME.get(alias.name, alias.name)}" for alias in node.names)
        else:
            yield module
    elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
        first = node.args[0] if node.args else None
        if isinstance(first, ast.JoinedStr) and first.values:
            first = first.values[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value.rstrip(".")


def layer(module: str) -> str:
    """Return the layer of a module of spanrl: the first name after the package, "" for the package itself."""
    return [*module.split("."), ""][1]


def allowed(who: str, target: str) -> bool:
    """Tell whether layer ``who`` may import layer ``target``."""
    rank = {name: i for i, group in enumerate(ORDER) for name in group}
    if target == who:
        return True
    if target not in rank or target in NEVER.get(who, ()):
        return False
    return rank[target] < rank[who]


def violations(path: str, source: str) -> list[str]:
    """Return what the file ``path`` (below src/spanrl) imports and should not."""
    if path == "__init__.py":  # the public names, lazily: no import of ours but of what imports nothing heavy itself
        light = ("spanrl.gym_hook", "spanrl.agents")  # the hook, and the table of the agents
        return [
            f"{path}:{i.line} imports {i.module}"
            for i in imports(source, path)
            if layer(i.module) != "" and i.module not in light
        ]
    who = Path(path).parts[0].removesuffix(".py")
    forbidden = NEVER["paper/oracles"] if Path(path).match("paper/oracles*.py") else set()
    out = []
    for found in imports(source, path):
        if found.module.split(".")[0] != "spanrl":
            continue
        target = layer(found.module)
        if target == "__version__" or (found.for_types and (path, target) in TYPES_ONLY):
            continue
        whole = target == "" and not (who in TOP and not forbidden)
        if whole or target in forbidden or (target and not allowed(who, target)):
            out.append(f"{path}:{found.line} imports {found.module}")
    return out


SOURCES = {str(path.relative_to(ROOT).as_posix()): path.read_text("utf-8") for path in sorted(ROOT.rglob("*.py"))}


@pytest.mark.parametrize("path", SOURCES)
def test_imports_go_downwards(path: str) -> None:
    assert violations(path, SOURCES[path]) == []


def test_every_file_has_a_layer() -> None:
    known = {name for group in ORDER for name in group} | {"__init__"}
    assert {Path(path).parts[0].removesuffix(".py") for path in SOURCES} <= known


@pytest.mark.parametrize("package", ONE_MODULE)
def test_optional_packages_appear_in_one_module(package: str) -> None:
    users = {
        path for path, text in SOURCES.items() if any(i.module.split(".")[0] == package for i in imports(text, path))
    }
    assert len(users) <= 1, users


@pytest.mark.parametrize(("package", "home"), [("polars", "tables.py"), ("matplotlib", "axes.py")])
def test_polars_and_matplotlib_have_their_homes(package: str, home: str) -> None:
    users = {
        path for path, text in SOURCES.items() if any(i.module.split(".")[0] == package for i in imports(text, path))
    }
    assert users == {home}


def test_numba_stays_in_the_kernels() -> None:
    users = {
        path for path, text in SOURCES.items() if any(i.module.split(".")[0] == "numba" for i in imports(text, path))
    }
    assert users == {"kernels/jit.py", "kernels/numba_cache.py"}


def test_models_need_numpy_alone() -> None:
    used = defaultdict(set)
    for path, text in SOURCES.items():
        if path.startswith("models/"):
            for found in imports(text, path):
                used[found.module.split(".")[0]].add(path)
    assert not used.keys() & {"scipy", "numba", "rich", "typer", *ONE_MODULE}


# --- the checker itself ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("models/x.py", "from spanrl.planning.solve import solve"),
        ("models/x.py", "import spanrl.planning.solve as s"),
        ("models/x.py", "def f():\n    from spanrl.envs import env"),
        ("models/x.py", "class C:\n    def f(self):\n        import spanrl.cli"),
        ("models/x.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from spanrl.envs.env import Env"),
        ("models/x.py", "from spanrl import solve"),
        ("models/x.py", "import spanrl"),
        ("experiments/x.py", "import spanrl"),
        ("paper/oracles.py", "def f():\n    import spanrl"),
        ("models/x.py", "from ..planning import solve"),
        ("models/x.py", "from .. import planning"),
        ("models/x.py", "from importlib import import_module\nimport_module('spanrl.envs.env')"),
        ("models/x.py", "import importlib\nimportlib.import_module(f'spanrl.envs.{x}')"),
        ("models/x.py", "try:\n    from spanrl.kernels import jit\nexcept ImportError:\n    pass"),
        ("kernels/x.py", "from spanrl.planning import problem"),
        ("envs/x.py", "from spanrl.planning.solve import solve"),
        ("envs/x.py", "from spanrl.agents import scal"),
        ("agents/x.py", "from spanrl.envs.registry import make"),
        ("agents/x.py", "from spanrl import make"),
        ("report/x.py", "from spanrl.planning.solve import solve"),
        ("report/x.py", "from spanrl.learning import learn"),
        ("report/x.py", "from spanrl.kernels import jit"),
        ("paper/oracles.py", "from spanrl.planning.solve import solve"),
        ("paper/oracles_chains.py", "def f():\n    from spanrl.kernels import jit"),
        ("paper/x.py", "from spanrl import cli"),
        ("errors.py", "from spanrl.models.solution import Solution"),
        ("errors.py", "from spanrl import names"),
        ("names.py", "from spanrl.models import mdp"),
        ("names.py", "from spanrl.parameters import Parameter"),
        ("options.py", "from spanrl.parameters import Parameter"),
        ("axes.py", "from spanrl.learning.run import Run"),
        ("axes.py", "from spanrl.tables import read_table"),
        ("learning/x.py", "from spanrl.report.figures import plot_learning"),
        ("planning/x.py", "from spanrl.nowhere import thing"),
        ("__init__.py", "from spanrl.models.mdp import MDP"),
        ("__init__.py", "from spanrl.agents.scal import SCAL"),
    ],
)
def test_the_checker_catches(path: str, source: str) -> None:
    assert len(violations(path, source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("models/x.py", "from spanrl.errors import ModelError\nfrom spanrl.models import checks\nfrom spanrl import names"),
        ("models/x.py", "from . import checks\nfrom .checks import frozen\nfrom ..errors import ModelError"),
        ("envs/x.py", "from spanrl.models.mdp import MDP\nfrom spanrl import MDP"),
        ("agents/x.py", "from spanrl.planning.solve import solve\nfrom spanrl import solve\nfrom spanrl.kernels import jit"),
        ("paper/claims/x.py", "from spanrl.planning import solve\nfrom spanrl.envs import env\nfrom spanrl.paper import oracles"),
        ("paper/system.py", "def f():\n    import spanrl"),
        ("paper/claims/x.py", "from . import base\nfrom .. import oracles"),
        ("paper/oracles.py", "from spanrl.models.mdp import MDP\nfrom spanrl.paper.oracles_sets import x"),
        ("parameters.py", "from spanrl import names, options\nfrom spanrl.errors import OptionError"),
        ("learning/x.py", "from spanrl.axes import new_axes\nfrom spanrl.tables import read_table\nfrom spanrl.seeding import streams"),
        ("report/x.py", "from spanrl.axes import new_axes\nfrom spanrl.tables import read_table"),
        ("cli.py", "from spanrl import __version__\nfrom spanrl.paper import claims\nfrom spanrl.planning.solve import solve"),
        ("errors.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from spanrl.models.solution import Solution"),
        ("models/x.py", '"""Say `import spanrl.cli`."""\n# from spanrl.cli import main\nimport numpy'),
    ],
)  # fmt: skip
def test_the_checker_lets_pass(path: str, source: str) -> None:
    assert violations(path, source) == []
