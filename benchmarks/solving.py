"""Whole solves: what each accelerator gains, and what a start of the command costs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from time import perf_counter

from harness import Row, interleaved

from models import boxed, garnet
from spanrl import make, scopt, solve


def accelerator_rows(smoke: bool) -> list[Row]:
    """Each accelerator stays only where it gains 1.3 times or more; the value is time with it over time without it."""
    rows = []
    S = 2000 if smoke else 10**4
    repeats = 2 if smoke else 5
    slow, fast = garnet(S, 4, 5, stay=0.99), garnet(S, 4, 5)
    for name, mdp, target in (("slow mixing", slow, 1 / 1.3), ("fast mixing", fast, 1.2)):
        seconds = interleaved(
            {"auto": lambda mdp=mdp: solve(mdp), "plain": lambda mdp=mdp: solve(mdp, method="value-iteration")}, repeats
        )
        note = f"auto {seconds['auto']:.3f} s, value iteration {seconds['plain']:.3f} s"
        rows.append(
            Row(
                "Frozen policies, chosen by rule, against value iteration",
                f"{name}, S = {S:g}",
                seconds["auto"] / seconds["plain"],
                "×",
                target,
                note,
            )
        )
    box = boxed(garnet(S, 4, 5, stay=0.9), width=0.02, rest=1e-4)
    cold = scopt(box, 0.2)
    seconds = interleaved({"warm": lambda: scopt(box, 0.2, v_init=cold.bias), "cold": lambda: scopt(box, 0.2)}, repeats)
    rows.append(
        Row(
            "Warm start against cold start",
            f"box, S = {S:g}, c = 0.2",
            seconds["warm"] / seconds["cold"],
            "×",
            1 / 1.3,
            f"cold {cold.sweeps} sweeps",
        )
    )
    return rows


def domain_rows(smoke: bool) -> list[Row]:
    """The paper's largest domain."""
    mdp = make("knight-quest").mdp
    seconds = interleaved({"free": lambda: solve(mdp), "bounded": lambda: scopt(mdp, 2.0)}, 3 if smoke else 9)
    return [
        Row("Knight Quest to 1e-6", "no bound on the span", seconds["free"] * 1e3, "ms"),
        Row("Knight Quest to 1e-6", "c = 2", seconds["bounded"] * 1e3, "ms"),
    ]


def start_rows(smoke: bool) -> list[Row]:
    """Time the command itself, with an empty kernel cache and again."""
    command = [sys.executable, "-m", "spanrl.cli", "plan", "two-state", "--span-bound", "0.75"]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        environment.pop("NUMBA_CACHE_DIR", None)
        seconds = []
        for _ in range(2 if smoke else 6):
            start = perf_counter()
            subprocess.run(command, env=environment, check=True, capture_output=True)
            seconds.append(perf_counter() - start)
    return [
        Row("spanrl plan two-state --span-bound 0.75", "first start, compiles", seconds[0], "s"),
        Row(
            "spanrl plan two-state --span-bound 0.75",
            "second start",
            sorted(seconds[1:])[len(seconds[1:]) // 2],
            "s",
            2.0,
        ),
    ]
