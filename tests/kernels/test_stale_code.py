"""Compiled code is never stale: each process here finds on disk what the last one compiled, and files that have changed since."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import spanrl

KERNELS = """
import helpers
import tools.deep
from helpers import CHOICE, SCALE, TABLE, Level, Pair, Same, inline, plus
from spanrl.kernels.jit import Signature, kernel, loop, passed

NUMBER = Signature("NUMBER", "float64", lambda: (1.0,))
PAIR = Signature("PAIR", "float64", lambda: (Pair(1, 2.0),))


@kernel
def calls_another(x):
    return plus(x)

@kernel
def reads_a_number(x):
    return SCALE * x

@kernel
def reads_an_array(x):
    return TABLE[1] + x

@kernel
def reads_a_tuple(x):
    return CHOICE[0] + x

@kernel
def reads_an_enum(x):
    return Level.HIGH.value + x

@kernel
def has_another_within(x):
    return inline(x)

@kernel
def looks_into_a_module(x):
    return helpers.shift(x)

@kernel
def looks_further_in(x):
    return tools.deep.shift(x)

@kernel
def is_handed_fields(pair):
    return pair.first - 10.0 * pair.second

@kernel
def is_handed_equal_fields(same):
    return same.first - 10.0 * same.second

@kernel
def is_handed_fields_within(x, pairs):
    return pairs[0].first + x

@kernel
def makes_fields(x):
    return Same(x, 2.0 * x).first

@passed(NUMBER)
def one(x):
    return plus(x)

@passed(NUMBER)
def other(x):
    return 100.0 * x

@passed(PAIR)
def of_fields(pair):
    return pair.first - 10.0 * pair.second

@loop
def goes_round(f, x):
    return f(x) + SCALE

@loop
def goes_round_with_fields(f, pair):
    return f(pair)
"""

HELPERS = """
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.jit import kernel, part

SCALE = 2.0
TABLE = np.array([1.0, 2.0])
CHOICE = (3.0, "three")


class Level(IntEnum):
    HIGH = 5


class Pair(NamedTuple):
    first: Any
    second: Any


class Same(NamedTuple):
    first: Any
    second: Any


@kernel
def plus(x):
    return x + 1.0


@part
def inline(x):
    return x + 1.0


@kernel
def shift(x):
    return x + 1.0
"""

DEEP = """
from spanrl.kernels.jit import kernel


@kernel
def shift(x):
    return x + 1.0
"""

RUN = """
import json

import programs as p
from helpers import Pair, Same

plain = [kernel for name, kernel in vars(p).items() if name.startswith(("calls_", "reads_", "has_", "looks_", "makes_"))]
found = {kernel.__name__: kernel(4.0) for kernel in plain}
pair, same = Pair(second=2.0, first=1), Same(second=2.0, first=1.0)
found["is_handed_fields"] = p.is_handed_fields(pair)
found["is_handed_equal_fields"] = p.is_handed_equal_fields(same)
found["is_handed_fields_within"] = p.is_handed_fields_within(0.0, (same, pair))
found["one"] = p.one(4.0)
found["other"] = p.other(4.0)
found["of_fields"] = p.of_fields(Pair(1, 2.0))
found["goes_round"] = p.goes_round(p.one, 4.0)
again = p.goes_round(p.other, 4.0)
found["goes_round_with_fields"] = p.goes_round_with_fields(p.of_fields, Pair(1, 2.0))
kernels = {name: getattr(p, name) for name in found}
hits = {name: sum(kernel._dispatcher.stats.cache_hits.values()) for name, kernel in kernels.items()}
signatures = len(p.goes_round._dispatcher.signatures)
print(json.dumps({"found": found, "again": again, "hits": hits, "signatures": signatures}))
"""

FIRST = {
    "calls_another": 5.0, "reads_a_number": 8.0, "reads_an_array": 6.0, "reads_a_tuple": 7.0, "reads_an_enum": 9.0,
    "has_another_within": 5.0, "looks_into_a_module": 5.0, "looks_further_in": 5.0, "makes_fields": 4.0,
    "is_handed_fields": -19.0, "is_handed_equal_fields": -19.0, "is_handed_fields_within": 1.0, "one": 5.0, "other": 400.0,
    "of_fields": -19.0, "goes_round": 7.0, "goes_round_with_fields": -19.0,
}  # fmt: skip

FIELDS = ("    first: Any\n    second: Any\n", "    second: Any\n    first: Any\n")
STEPS = {
    "kernels": (
        {"helpers.py": [("x + 1.0", "x + 2.0")], "tools/deep.py": [("x + 1.0", "x + 3.0")]},
        {
            "calls_another": 6.0, "has_another_within": 6.0, "looks_into_a_module": 6.0, "looks_further_in": 7.0, "one": 6.0,
        },
    ),
    "values and the order of fields": (
        {
            "helpers.py": [
                ("SCALE = 2.0", "SCALE = 5.0"), ("[1.0, 2.0]", "[1.0, 7.0]"), ("(3.0,", "(6.0,"), ("HIGH = 5", "HIGH = 9"), FIELDS,
            ]
        },
        {
            "reads_a_number": 20.0, "reads_an_array": 11.0, "reads_a_tuple": 10.0, "reads_an_enum": 13.0, "makes_fields": 8.0,
            "is_handed_fields": -19.0, "is_handed_equal_fields": -19.0, "is_handed_fields_within": 1.0, "of_fields": -8.0,
            "goes_round": 11.0, "goes_round_with_fields": -8.0,
        },
    ),
}  # fmt: skip
"""What is changed in which file, and the values of all kernels that must be compiled anew then.

In the end ``Pair(1, 2.0)`` means second=1, first=2.0: of the same types as before. Tuples that are made by name are worth the same.
"""


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Run a program, and again after every change: return what each run printed. A process costs a second."""
    folder = tmp_path_factory.mktemp("stale")
    (folder / "tools").mkdir()
    for name, text in (
        ("programs.py", KERNELS), ("helpers.py", HELPERS), ("run.py", RUN), ("tools/__init__.py", ""), ("tools/deep.py", DEEP)
    ):  # fmt: skip
        (folder / name).write_text(text)
    printed = {"nothing": run(folder)}
    for what, (changes, _) in STEPS.items():
        for name, replaced in changes.items():
            source = (folder / name).read_text()
            for old, new in replaced:
                assert old in source
                source = source.replace(old, new)
            (folder / name).write_text(source)
        printed[what] = run(folder)
    return printed


def run(folder):
    """Run the program in a process of its own; Python's own cache of bytecode is not asked, whose clock has seconds."""
    paths = [str(folder), str(Path(spanrl.__file__).parents[1])]
    env = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-B", str(folder / "run.py")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_first_run_compiles(history):
    printed = history["nothing"]
    assert printed["found"] == FIRST
    assert set(printed["hits"].values()) == {0}


@pytest.mark.parametrize("what", STEPS)
def test_what_has_changed_is_compiled_anew_and_all_else_is_found(history, what):
    """A loop that is handed a new part by its address stays as it is."""
    kernels, rest = (values for _, values in STEPS.values())
    printed = history[what]
    assert printed["found"] == FIRST | kernels | ({"goes_round": 8.0} if what == "kernels" else rest)
    anew = {name for name, hits in printed["hits"].items() if not hits}
    assert anew == set(STEPS[what][1])


def test_every_kernel_is_found_by_a_process_that_it_has_not_changed_for(history):
    found = {name for what in STEPS for name, hits in history[what]["hits"].items() if hits}
    assert found == set(FIRST)


def test_a_loop_is_compiled_once_for_all_functions_and_found_by_the_next_process(history):
    for what in ("nothing", "kernels"):
        assert history[what]["again"] == 402.0
        assert history[what]["signatures"] == 1
    assert history["kernels"]["hits"]["goes_round"] == 1


MOVED = """
import json
from {home} import Pair
from spanrl.kernels.jit import kernel

@kernel
def less(pair):
    return pair.first - pair.second

print(json.dumps(less(Pair(3.0, 1.0))))
"""


def test_a_class_that_has_moved_to_another_module_is_compiled_anew(tmp_path):
    """As after an update of the package: what lies in the cache names a module that is gone."""
    fields = "from typing import Any, NamedTuple\n\nclass Pair(NamedTuple):\n    first: Any\n    second: Any\n"
    for home in ("before", "after"):
        (tmp_path / f"{home}.py").write_text(fields)
        (tmp_path / "run.py").write_text(MOVED.format(home=home))
        assert run(tmp_path) == 2.0
        (tmp_path / f"{home}.py").unlink()
