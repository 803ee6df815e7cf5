"""Models from functions: the whole of ``from_function`` over a bare loop, and a million states from arrays in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from harness import REPEATS, Row, interleaved, ratio_row, value_row

from spanrl import MDP

_GIB = 2**30
_MOST_RATIO, _MOST_SECONDS, _MOST_MEMORY = 2.5, 15.0, 4.0
_ALONE = """
import json, sys
from time import perf_counter
sys.path.insert(0, {folder!r})
from building import build_call_centre
from memory import peak_memory
build_call_centre(3)
begun = perf_counter()
mdp = build_call_centre({n}, reachable={reachable})
print(json.dumps(dict(seconds=perf_counter() - begun, memory=peak_memory(), states=mdp.n_states, outcomes=8 * mdp.n_pairs)))
"""

Problem = tuple[Any, Callable[[Any], list[Any]], Callable[[Any, Any], Any]]


def building_rows(smoke: bool) -> list[Row]:
    """Three problems as functions of a state, and one of arrays, once for the full grid and once for what is reached."""
    n = 10 if smoke else 150
    problems: dict[str, Problem] = {
        "two queues": two_queues(n),
        "inventory with lead time": inventory(n),
        "walk, nothing to compute": walk(20 * n),
    }
    return [_ratio_row(name, problem) for name, problem in problems.items()] + _grid_rows(smoke)


def _ratio_row(name: str, problem: Problem) -> Row:
    _start, actions, outcomes = problem
    mdp = MDP.from_function(*problem, costs=True)
    states = list(mdp.state_names or ())

    def bare() -> None:
        for state in states:
            for action in actions(state):
                for _p, _next, _cost in outcomes(state, action):
                    pass

    times = interleaved({"all": lambda: _void(MDP.from_function(*problem, costs=True)), "bare": bare}, REPEATS)
    case = f"{name}: S = {mdp.n_states:,}, {mdp.n_pairs:,} pairs"
    target = None if "nothing" in name else _MOST_RATIO
    return ratio_row("from_function over a bare loop", case, times["all"], times["bare"], target=target)


def _grid_rows(smoke: bool) -> list[Row]:
    rows = []
    for reachable in (False, True):
        folder, n = str(Path(__file__).parent), 10 if smoke else 100
        code = _ALONE.format(folder=folder, n=n, reachable=reachable)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        what = (
            f"{'reachable part' if reachable else 'full grid'}, S = {found['states']:,}, {found['outcomes']:,} outcomes"
        )
        data = {"states": found["states"]}
        rows += [
            value_row("from_grid, a call centre", f"{what}: time", [found["seconds"]], "s", target=_MOST_SECONDS, data=data),
            value_row("from_grid, a call centre", f"{what}: memory", [found["memory"] / _GIB], "GiB", target=_MOST_MEMORY),
        ]  # fmt: skip
    return rows


def _void(value: object) -> None:
    del value


def two_queues(n: int) -> Problem:
    """Two queues of up to n, one server, arrivals and a service per slot: eight outcomes per pair."""

    def outcomes(state: tuple[int, int], action: str) -> Iterator[tuple[float, tuple[int, int], float]]:
        x, y = state
        mu, cost = 0.7 if action == "x" else 0.5, x + 1.5 * y
        for done, p in ((0, 1 - mu), (1, mu)):
            left_x, left_y = (max(x - done, 0), y) if action == "x" else (x, max(y - done, 0))
            for to_x, p_x in ((0, 0.75), (1, 0.25)):
                for to_y, p_y in ((0, 0.85), (1, 0.15)):
                    yield p * p_x * p_y, (min(left_x + to_x, n), min(left_y + to_y, n)), cost

    return (0, 0), lambda state: ["x", "y"], outcomes


def inventory(n: int) -> Problem:
    """Stock of up to n, an order that comes two days later, demand 0..4."""
    orders, demands = (0, 5, 10), [(0, 0.1), (1, 0.2), (2, 0.4), (3, 0.2), (4, 0.1)]

    def actions(state: tuple[int, int, int]) -> list[int]:
        stock, tomorrow, then = state
        return [order for order in orders if stock + tomorrow + then + order <= n]

    def outcomes(state: tuple[int, int, int], order: int) -> list[tuple[float, tuple[int, int, int], float]]:
        stock, tomorrow, then = state
        return [
            (p, (max(stock - d, 0) + tomorrow, then, order), 0.5 * stock + 8.0 * max(d - stock, 0) + 4.0 * (order > 0))
            for d, p in demands
        ]

    return (0, 0, 0), actions, outcomes


def walk(n: int) -> Problem:
    """Two steps on a line: functions that take no time show what is left of ours."""

    def outcomes(x: int, action: str) -> list[tuple[float, int, float]]:
        return [(0.9, min(x + 1, n) if action == "up" else max(x - 1, 0), 1.0), (0.1, x, 0.0)]

    return 0, lambda x: ["up", "down"], outcomes


def build_call_centre(n: int, *, reachable: bool = False) -> MDP:
    """Callers of two kinds wait (x, y), z agents are busy, each up to n − 1; a free agent takes one kind, the other, or none."""

    def outcomes(states: Any, action: str) -> Iterator[tuple[Any, Any, Any]]:
        x, y, z = states.T
        cost = x + 2.0 * y
        takes = {"first": x > 0, "second": y > 0, "none": np.zeros(len(x), dtype=bool)}[action] & (z < n - 1)
        x, y, z = x - takes * (action == "first"), y - takes * (action == "second"), z + takes
        ends = 0.3 * z / (n - 1)
        for p, dx, dy, dz, extra in (
            (0.2, 1, 0, 0, 0.0), (0.15, 0, 1, 0, 0.0), (0.05, 1, 1, 0, 0.0), (0.05, 2, 0, 0, 0.0), (ends, 0, 0, -1, 0.0),
            (0.05, -1, 0, 0, 3.0 * (x > 0)), (0.05, 0, -1, 0, 3.0 * (y > 0)), (0.45 - ends, 0, 0, 0, 0.0),
        ):  # fmt: skip
            yield p, np.clip(np.stack((x + dx, y + dy, z + dz), axis=1), 0, n - 1), cost + extra

    shape, actions = (n, n, n), ["first", "second", "none"]
    return MDP.from_grid(shape, actions, outcomes, start=(0, 0, 0), reachable=reachable, costs=True)


if __name__ == "__main__":
    begun = perf_counter()
    for row in building_rows("--smoke" in sys.argv):
        print(f"{row.group} | {row.case} | {row.value:.3g} {row.unit} | target {row.target}")
    print(f"{perf_counter() - begun:.0f} s")
