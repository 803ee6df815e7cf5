"""What numba compiles for ``spanrl learn``: seconds by kernel from an empty cache, and nothing at all for a second model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from typing import Any

from harness import Row

_TARGET = 40.0
_LISTED = 0.2  # seconds; kernels that take less are counted together

_CODE = textwrap.dedent("""
    import contextlib, io, json, sys
    from time import perf_counter, process_time
    from numba.core import event

    class Times(event.Listener):
        # a kernel that calls others waits for them: what they take is theirs
        def __init__(self):
            self.under_way, self.seconds = [], []
        def on_start(self, event):
            self.under_way.append([perf_counter(), 0.0])
        def on_end(self, event):
            begun, inner = self.under_way.pop()
            taken = perf_counter() - begun
            if self.under_way:
                self.under_way[-1][1] += taken
            function = event.data["dispatcher"].py_func
            self.seconds.append([function.__module__.removeprefix("spanrl.") + "." + function.__name__, taken - inner])

    times, out = Times(), []
    event.register("numba:compile", times)
    from spanrl.cli import main
    for words in json.loads(sys.argv[1]):
        times.seconds, begun, worked = [], perf_counter(), process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(words) == 0
        out.append([perf_counter() - begun, process_time() - worked, times.seconds])
    print(json.dumps(out))
""")

_READY = "import numba; numba.njit(lambda x: x + 1)(1)"  # numba's own modules are read once, and kept as bytecode

_FIRST = ["learn", "knight-quest", "scal[span_bound=5]", "--horizon", "1e5", "--seed", "0", "--quiet"]
_SECOND = {
    "another size and seed (three-state, seed 1)": ["learn", "three-state", "scal[span_bound=2]", "--seed", "1"],
    "another agent (riverswim, UCRL)": ["learn", "riverswim", "ucrl", "--seed", "2"],
    "another kind of set (three-state, UCRL2)": ["learn", "three-state", "ucrl2", "--seed", "3"],
}


def compile_rows(smoke: bool) -> list[Row]:
    """Cold in full size, in one process; with whatever is in the cache at toy size."""
    short = ["--horizon", "1e4", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        cache = {} if smoke else {"XDG_CACHE_HOME": folder}
        subprocess.run([sys.executable, "-c", _READY], check=True)
        first, *others = _measure([_FIRST, *([*words, *short] for words in _SECOND.values())], cache)
    group = "Compiled again, after a first spanrl learn in the same process"
    rows = [
        Row(group, case, len(compiled), "kernels", 0.0, note=", ".join(name for name, _ in compiled))
        for case, (_, _, compiled) in zip(_SECOND, others, strict=True)
    ]
    if not smoke:
        rows += _cold_rows(*first)
    return rows


def _cold_rows(wall: float, worked: float, compiled: list[tuple[str, float]]) -> list[Row]:
    group = "Cold compilation of all that spanrl learn needs"
    seconds, times = Counter[str](), Counter[str]()
    for name, taken in compiled:
        seconds[name] += taken
        times[name] += 1
    total, small = sum(seconds.values()), [taken for taken in seconds.values() if taken < _LISTED]
    note = f"one run; {len(seconds)} kernels, {len(compiled)} signatures; the whole command: {wall:.1f} s, {worked:.1f} s of processor time"
    label = {"readme": "Cold compilation of everything `spanrl learn` needs, once"}
    rows = [Row(group, "in total", total, "s", _TARGET, note=note, data=label)]
    rows += [
        Row(group, name, taken, "s", note=f"{times[name]} signatures" if times[name] > 1 else "")
        for name, taken in seconds.most_common()
        if taken >= _LISTED
    ]
    return [*rows, Row(group, f"{len(small)} more, less than {_LISTED} s each", sum(small), "s")]


def _measure(commands: list[list[str]], environment: dict[str, str]) -> list[Any]:
    """Return the seconds of each command, those on the processor, and of what it compiled the name and the seconds."""
    everything = {**os.environ, **environment}
    if environment:
        everything.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", _CODE, json.dumps(commands)], env=everything, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)
