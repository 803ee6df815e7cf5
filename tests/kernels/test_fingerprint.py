"""The hash of what a kernel is made from: another one after every change that compiled code could show, the same in every process."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import spanrl
from spanrl.kernels.fingerprint import fingerprint
from spanrl.kernels.jit import Kernel, kernel, part

JIT = "from spanrl.kernels.jit import External, allocating, check, kernel, part, passed\n"

CHANGES = {
    # what changes: the kernel f in one file, the other file before, and what is replaced there
    "a function": ("from other import g\ndef f(x): return g(x)", "def g(x): return x + 1", "x + 1", "x + 2"),
    "a kernel": ("from other import g\ndef f(x): return g(x)", "@kernel\ndef g(x): return x + 1", "x + 1", "x + 2"),
    "a kernel of a kernel": (
        "from other import g\ndef f(x): return g(x)",
        "@kernel\ndef h(x): return x + 1\n@kernel\ndef g(x): return h(x)",
        "x + 1",
        "x - 1",
    ),
    "an operator": ("from other import g\ndef f(x): return g(x)", "def g(x): return x + 1", "x + 1", "x - 1"),
    "a number": ("from other import C\ndef f(x): return C * x", "C = 2.0", "2.0", "3.0"),
    "the type of a number": ("from other import C\ndef f(x): return C * x", "C = 1", "1", "1.0"),
    "a truth value": ("from other import C\ndef f(x): return C + x", "C = 1", "1", "True"),
    "the sign of zero": ("from other import C\ndef f(x): return C * x", "C = 0.0", "0.0", "-0.0"),
    "the width of a number": (
        "from other import C\ndef f(x): return C * x",
        "import numpy as np\nC = np.float64(1)",
        "float64",
        "float32",
    ),
    "a constant within": ("from other import g\ndef f(x): return g(x)", "def g(x): return x + 1", "1", "1.0"),
    "an array": (
        "from other import C\ndef f(x): return C[0]",
        "import numpy as np\nC = np.array([1.0, 2.0])",
        "1.0,",
        "1.5,",
    ),
    "the type of an array": (
        "from other import C\ndef f(x): return C[0]",
        "import numpy as np\nC = np.zeros(2)",
        "np.zeros(2)",
        "np.zeros(2, np.int64)",
    ),
    "the shape of an array": (
        "from other import C\ndef f(x): return C.size",
        "import numpy as np\nC = np.zeros((2, 3))",
        "2, 3",
        "3, 2",
    ),
    "the layout of an array": (
        "from other import C\ndef f(x): return C[0]",
        "import numpy as np\nC = np.ones((2, 3))",
        "(2, 3)",
        "(2, 3), order='F'",
    ),
    "a record": (
        "from other import C\ndef f(x): return C[0].b",
        "import numpy as np\nC = np.zeros(1, [('a', float), ('b', float)])",
        "('a', float), ('b', float)",
        "('b', float), ('a', float)",
    ),
    "a tuple": ("from other import C\ndef f(x): return C[0]", "C = (1.0, 'a')", "1.0", "2.0"),
    "a function in a tuple": (
        "from other import C\ndef f(x): return C[0](x)",
        "@kernel\ndef g(x): return x + 1\nC = (g,)",
        "x + 1",
        "x + 2",
    ),
    "a function in a dict": (
        "from other import C\ndef f(x): return C['g'](x)",
        "@kernel\ndef g(x): return x + 1\nC = {'g': g}",
        "x + 1",
        "x + 2",
    ),
    "which function has a name": (
        "from other import g, h, k\ndef f(x): return k(x) + g(x) + h(x)",
        "def g(x): return x\ndef h(x): return -x\nz = g\ndef k(x): return z(x)",
        "z = g",
        "z = h",
    ),
    "two functions that swap their names": (
        "from other import a, b\ndef f(x): return a(x) - b(x)",
        "def g(x): return x\ndef h(x): return -x\na, b = g, h",
        "g, h",
        "h, g",
    ),
    "a default": ("from other import g\ndef f(x): return g(x)", "@kernel\ndef g(x, y=1): return x + y", "y=1", "y=2"),
    "a default of a keyword": (
        "from other import g\ndef f(x): return g(x)",
        "def g(x, *, y=1): return x + y",
        "y=1",
        "y=2",
    ),
    "a default that is an array": (
        "from other import g\ndef f(x): return g(x)",
        "import numpy as np\ndef g(x, y=np.arange(5000)): return x + y[2500]",
        "np.arange(5000)",
        "np.arange(5000) * 2",
    ),
    "a function within a function": (
        "from other import g\ndef f(x): return g(x)",
        "def g(x):\n    def h(y): return y + 1\n    return h(x)",
        "y + 1",
        "y + 2",
    ),
    "what a function within calls": (
        "from other import g\ndef f(x): return g(x)",
        "def k(x): return x + 1\ndef g(x):\n    def h(y): return k(y)\n    return h(x)",
        "x + 1",
        "x + 2",
    ),
    "a value in a closure": (
        "from other import g\ndef f(x): return g(x)",
        "def make(k):\n    @kernel\n    def g(x): return k * x\n    return g\ng = make(2)",
        "make(2)",
        "make(3)",
    ),
    "a function in a closure": (
        "from other import g\ndef f(x): return g(x)",
        "def a(x): return x\ndef make(k):\n    def g(x): return k(x)\n    return g\ng = make(a)",
        "return x\n",
        "return -x\n",
    ),
    "a kernel that becomes a part": (
        "from other import g\ndef f(x): return g(x)",
        "@kernel\ndef g(x): return x",
        "@kernel",
        "@part",
    ),
    "a kernel that becomes a part in one of two places": (
        "from other import g, h\ndef f(x): return g(x) + h(x)",
        "def p(x): return x\ng, h = kernel(p), kernel(p)",
        "kernel(p), kernel(p)",
        "part(p), kernel(p)",
    ),
    "a kernel that makes arrays": (
        "from other import g\ndef f(x): return g(x)",
        "@kernel\ndef g(x): return x",
        "@kernel",
        "@allocating",
    ),
    "an option of numba's": (
        "from other import g\ndef f(x): return g(x)",
        "import numba\n@numba.njit(fastmath=False)\ndef g(x): return x",
        "fastmath=False",
        "fastmath=True",
    ),
    "an intrinsic of numba's": (
        "from other import g\ndef f(x): return g(x)",
        "from numba.extending import intrinsic\n@intrinsic\ndef g(context, x): return x + 1",
        "x + 1",
        "x + 2",
    ),
    "whose function it is": (
        "from other import m\ndef f(x): return m.pow(x, 2)",
        "import math as m",
        "math",
        "operator",
    ),
    "a function of Python's": (
        "from other import power\ndef f(x): return power(x, 2)",
        "from math import pow as power",
        "math",
        "operator",
    ),
    "a function of numpy's": (
        "from other import g\ndef f(x): return g(x)",
        "from numpy import median as g",
        "median",
        "mean",
    ),
    "a built-in function that is replaced": (
        "from other import *\ndef f(x): return max(x, 1)",
        "max_of = max",
        "max_of = max",
        "def max(a, b): return b",
    ),
    "a function of a module": (
        "import other\ndef f(x): return other.g(x)",
        "def g(x): return x + 1",
        "x + 1",
        "x + 2",
    ),
    "a value of a module": ("import other\ndef f(x): return other.C", "C = 1", "1", "2"),
    "a value of a module by getattr": ("import other\ndef f(x): return getattr(other, 'C')", "C = 1", "1", "2"),
    "a module within a module": (
        "import other\ndef f(x): return other.inner.g(x)",
        "import types\ninner = types.ModuleType('inner')\ndef g(x): return x + 1\ninner.g = g",
        "x + 1",
        "x + 2",
    ),
    "a module within a module, of which two functions ask": (
        "import other\ndef g(x): return other.inner.a\ndef f(x): return g(x) + other.inner.b",
        "import types\ninner = types.ModuleType('inner')\ninner.a, inner.b = 1, 2",
        "1, 2",
        "3, 2",
    ),
    "the fields of a tuple": (
        "from other import P\ndef f(x): return P(x, 2).a",
        "from collections import namedtuple\nP = namedtuple('P', 'a b')",
        "a b",
        "b a",
    ),
    "the fields of a tuple of values": (
        "from other import C\ndef f(x): return C.a",
        "from collections import namedtuple\nC = namedtuple('P', 'a b')(1, 2)",
        "a b",
        "b a",
    ),
    "a default of a field": (
        "from other import P\ndef f(x): return P(x).b",
        "from collections import namedtuple\nP = namedtuple('P', 'a b', defaults=[1])",
        "[1]",
        "[2]",
    ),
    "a member of an enumeration": (
        "from other import E\ndef f(x): return E.A.value",
        "from enum import Enum\nclass E(Enum):\n    A = 1",
        "A = 1",
        "A = 2",
    ),
    "a class": ("from other import C\ndef f(x): return C.a", "class C:\n    a = 1", "a = 1", "a = 2"),
    "a method": (
        "from other import C\ndef f(x): return C.a(x)",
        "class C:\n    @staticmethod\n    def a(x): return x + 1",
        "x + 1",
        "x + 2",
    ),
    "an object": (
        "from other import C\ndef f(x): return C.a",
        "class K:\n    def __init__(self, a): self.a = a\nC = K(1)",
        "K(1)",
        "K(2)",
    ),
    "an object with slots": (
        "from other import C\ndef f(x): return C.a",
        "class K:\n    __slots__ = ('a',)\nC = K()\nC.a = 1",
        "C.a = 1",
        "C.a = 2",
    ),
    "a function of the C library": (
        "from other import g\ndef f(x): return g(x)",
        "g = External('sin', 'float64', 'float64')",
        "'sin'",
        "'cos'",
    ),
    "its types": (
        "from other import g\ndef f(x): return g(x)",
        "g = External('abs', 'int32', 'int32')",
        "'int32', 'int32'",
        "'int64', 'int64'",
    ),
    "what is caught": (
        "from other import g\ndef f(x): return g(x)",
        "def g(x):\n    try:\n        x = 1 / x\n        x = x + 1\n    except Exception:\n        x = 0\n    return x",
        "        x = 1 / x\n        x = x + 1\n    except Exception:\n        x = 0\n",
        "        x = 1 / x\n    except Exception:\n        x = 0\n    x = x + 1\n",
    ),
}


def made(main, other):
    """Return f of the one file, which imports from the other; both are read anew."""
    before = sys.modules.get("other")
    modules = {}
    try:
        for name, text in (("other", other), ("main_", main)):
            modules[name] = ModuleType(name)
            if name == "other":
                sys.modules[name] = modules[name]
            exec(compile(JIT + text, f"{name}.py", "exec"), vars(modules[name]))
    finally:
        sys.modules.pop("other")
        if before is not None:
            sys.modules["other"] = before
    return modules["main_"].f


@pytest.mark.parametrize("what", CHANGES)
def test_another_after_a_change_of(what):
    main, other, old, new = CHANGES[what]
    assert old in other
    one, same, changed = (fingerprint(made(main, text)) for text in (other, other, other.replace(old, new, 1)))
    assert one == same, "read anew, all lies elsewhere in memory"
    assert one != changed


@pytest.mark.parametrize(
    "other",
    [
        "# a comment\n\ndef g(x):\n    # and another\n    return x + C\n\n\nC, D = 1, 5",
        "C, D = 1, 7\ndef g(x):\n    return x + C\ndef h(x):\n    return 0",
        "C, D = 1, object()\ndef g(x):\n    return x + C",
    ],
)
def test_the_same_where_nothing_changes_that_matters(other):
    main = "from other import g\ndef f(x): return g(x)"
    assert fingerprint(made(main, other)) == fingerprint(made(main, "C = 1\ndef g(x):\n    return x + C"))


def test_checks_do_not_matter():
    main = "from other import c\ndef f(x):\n    c(x, 1, 2)\n    return x"
    one, other = (fingerprint(made(main, f"@check\ndef c(x, y, z): assert x > {n}")) for n in (1, 2))
    assert one == other


def test_a_user_may_name_a_file_as_python_does(monkeypatch, tmp_path):
    """``code``, ``queue`` or ``statistics`` in the user's folder are the user's."""
    found = []
    for text in ("def g(x): return x + 1", "def g(x): return x + 2"):
        module = ModuleType("queue")
        module.__file__ = str(tmp_path / "queue.py")
        exec(compile(text, module.__file__, "exec"), vars(module))
        monkeypatch.setitem(sys.modules, "queue", module)
        importlib.import_module("spanrl.kernels.fingerprint")._is_outside.cache_clear()
        space = {"g": module.g}
        exec("def f(x): return g(x)", space)
        found.append(fingerprint(space["f"]))
    importlib.import_module("spanrl.kernels.fingerprint")._is_outside.cache_clear()
    assert found[0] != found[1]


def test_options_count():
    function = kernel(lambda x: x).py_func
    assert fingerprint(function, {"a": True}) == fingerprint(function, {"a": True})
    assert fingerprint(function, {"a": True}) != fingerprint(function, {"a": False})
    assert fingerprint(kernel(function)) != fingerprint(part(function))


def test_functions_that_call_each_other():
    text = "def g(x): return h(x)\ndef h(x): return g(x - 1) if x > 0 else 1"
    main = "from other import g\ndef f(x): return g(x)"
    one, same, changed = (fingerprint(made(main, each)) for each in (text, text, text.replace("else 1", "else 2")))
    assert one == same != changed


def test_a_variable_that_is_not_set_yet():
    def outer():
        def f(x):
            return later(x)

        before = fingerprint(f)

        def later(x):
            return x

        return before, fingerprint(f)

    before, after = outer()
    assert before != after


ODD = """
import numpy as np
from numpy import median, sum as total
from spanrl.kernels.fingerprint import fingerprint

class Thing:
    pass

NAMES, THING, LOCK = frozenset("abcdefgh"), Thing(), __import__("threading").Lock()
THING.other, THING.itself = Thing(), THING

def f(x, lock=LOCK, names={"p", "q", "r"}):
    if x in {"a", "b", "c", "d"}:
        return median(x) + total(x)
    return THING, NAMES, Thing, np.floor, (lambda: NAMES)
"""


def all_fingerprints():
    """Return those of all kernels of the package, and of a function with all that could differ between processes."""
    found = {}
    for module in pkgutil.walk_packages(spanrl.__path__, "spanrl."):
        if module.name.startswith(("spanrl.kernels", "spanrl.confidence", "spanrl.agents", "spanrl.models")):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, Kernel):
                    found[f"{value.__module__}.{name}"] = fingerprint(value)
    space = {"__name__": "odd"}
    exec(ODD, space)
    return found | {"odd": fingerprint(space["f"])}


def test_the_same_in_every_process():
    """Addresses differ there, and the order of sets."""
    here = all_fingerprints()
    assert len(here) > 80
    text = "import json, test_fingerprint as t; print(json.dumps(t.all_fingerprints()))"
    paths = [str(Path(__file__).parent), str(Path(spanrl.__file__).parents[1])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "77"}
    done = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == here
