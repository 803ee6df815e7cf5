"""Pure simulation: nanoseconds and instructions per step.

Instructions are counted by ``perf stat`` where the machine has counters, otherwise by valgrind. valgrind knows no AVX-512: the kernels are
compiled for a generic processor there. One process loads everything and forks; the children play 0 or T steps more, and what they count
differs by T steps.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

from harness import REPEATS, Row, interleaved, value_row

from spanrl import make, simulate, solve

_TARGETS = {"three-state": 8.0, "knight-quest": 12.0}
_NAMES = {"three-state": "three-state", "knight-quest": "Knight Quest"}
_GROUP = "Pure simulation"

_CODE = textwrap.dedent("""
    import os, sys
    from spanrl import Policy, make, simulate

    def play(name, steps):
        env = make(name)
        simulate(env, policies[name], horizon=steps, seed=0)

    T, names, policies = int(sys.argv[1]), sys.argv[2:], {}
    for name in names:
        mdp = make(name).mdp
        probs = mdp.to_dense()[2].astype(float)
        policies[name] = Policy(probs / probs.sum(1, keepdims=True))
        play(name, 1000)
    for name in (None, *names):
        child = os.fork()
        if child == 0:
            for other in names:
                play(other, 1000 + (T if other == name else 0))
            os._exit(0)
        print(child, name, flush=True)
        assert os.waitpid(child, 0)[1] == 0
""")


def simulation_rows(smoke: bool) -> list[Row]:
    T = 10**6 if smoke else 2 * 10**7
    runs = {}
    for name in _TARGETS:
        env = make(name)
        policy = solve(env.mdp).policy

        def run(env=env, policy=policy) -> None:
            simulate(env, policy, horizon=T, seed=0)

        runs[name] = run
    times = interleaved(runs, 3 if smoke else 2 * REPEATS)
    rows = [
        value_row(
            _GROUP, _NAMES[name], [s / T * 1e9 for s in times[name].seconds], "ns per step", target=target,
            data={"readme": f"Pure simulation, {_NAMES[name]}"},
        )
        for name, target in _TARGETS.items()
    ]  # fmt: skip
    if smoke:
        return [*rows, Row(_GROUP, "instructions", None, "a step", note="not counted at toy size: it takes a minute")]
    return [*rows, *instruction_rows()]


def instruction_rows() -> list[Row]:
    """Count by the first means that works."""
    why = []
    for count in (_by_perf, _by_valgrind):
        try:
            return count()
        except (RuntimeError, subprocess.SubprocessError) as error:
            why.append(str(error))
    return [Row(_GROUP, "instructions", None, "a step", note="; ".join(why))]


def _by_perf() -> list[Row]:
    T, counts = 10**8, {}
    for name in _TARGETS:
        counts[name] = [_perf_count(name, steps) for steps in (T, 2 * T)]
    return [
        Row(_GROUP, f"{_NAMES[name]}, instructions", (two - one) / T, "a step", note="perf stat")
        for name, (one, two) in counts.items()
    ]


def _perf_count(name: str, steps: int) -> float:
    if shutil.which("perf") is None:
        raise RuntimeError("perf: not installed")
    code = _CODE.partition("for name in (None")[0] + "for name in names: play(name, T)"
    command = ["perf", "stat", "-x", ",", "-e", "instructions:u", sys.executable, "-c", code, str(steps), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    found = re.search(r"^(\d+),[^\n]*instructions", done.stderr, re.MULTILINE)
    if found is None:
        reason = "instructions not supported here" if "not supported" in done.stderr else done.stderr.strip()[-80:]
        raise RuntimeError(f"perf: {reason}")
    return float(found[1])


def _by_valgrind() -> list[Row]:
    if shutil.which("valgrind") is None:
        raise RuntimeError("valgrind: not installed")
    T, names = 3 * 10**6, list(_TARGETS)
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ, "NUMBA_CACHE_DIR": cache, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "",
            "NUMBA_DISABLE_INTEL_SVML": "1",
        }  # fmt: skip
        subprocess.run([sys.executable, "-c", _CODE, "1", *names], env=environment, check=True, capture_output=True)
        tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        done = subprocess.run(
            [*tool, sys.executable, "-c", _CODE, str(T), *names],
            env=environment, capture_output=True, text=True, check=True, timeout=240,
        )  # fmt: skip
    children = {name: child for child, name in (line.split() for line in done.stdout.splitlines())}
    counts = {
        name: int(re.search(rf"=={child}== Collected : (\d+)", done.stderr)[1]) for name, child in children.items()
    }
    return [
        Row(
            _GROUP, f"{_NAMES[name]}, instructions", (counts[name] - counts["None"]) / T, "a step",
            note="valgrind, kernels compiled for a generic processor; perf counts nothing here",
        )
        for name in names
    ]  # fmt: skip
