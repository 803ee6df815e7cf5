"""Problems of an engineer as functions of one state, and oracles for their gains that use nothing of spanrl."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.optimize import linprog

Functions = tuple[Any, Callable[[Any], list[Any]], Callable[[Any, Any], Iterator[tuple[float, Any, float]]]]


def two_queues(n: int) -> Functions:
    """Return start, actions and outcomes of two queues of up to n with one server: arrivals .25 and .15, services .7 and .5."""

    def actions(state: Any) -> list[str]:
        return ["x", "y"]

    def outcomes(state: tuple[int, int], action: str) -> Iterator[tuple[float, tuple[int, int], float]]:
        x, y = state
        mu = 0.7 if action == "x" else 0.5
        for p, dx, dy in (
            (mu, -(action == "x"), -(action == "y")), ((1 - mu) * 0.25, 1, 0), ((1 - mu) * 0.15, 0, 1), ((1 - mu) * 0.6, 0, 0),
        ):  # fmt: skip
            yield p, (min(max(x + dx, 0), n), min(max(y + dy, 0), n)), x + 1.5 * y

    return (0, 0), actions, outcomes


def two_queues_of_arrays(n: int) -> Callable[[Any, str], Iterator[tuple[float, Any, Any]]]:
    """Return the outcomes of :func:`two_queues` for many states at a time."""

    def outcomes(states: Any, action: str) -> Iterator[tuple[float, Any, Any]]:
        mu, cost = 0.7 if action == "x" else 0.5, states[:, 0] + 1.5 * states[:, 1]
        done = (-1, 0) if action == "x" else (0, -1)
        for p, move in ((mu, done), ((1 - mu) * 0.25, (1, 0)), ((1 - mu) * 0.15, (0, 1)), ((1 - mu) * 0.6, (0, 0))):
            yield p, np.clip(states + move, 0, n), cost

    return outcomes


def single_queue(arrival: float, service: float, room: int) -> Functions:
    """Return an uncontrolled queue in slots: the average cost is the mean number, Σ n ρⁿ / Σ ρⁿ with ρ = arrival / service."""

    def outcomes(x: int, action: str) -> Iterator[tuple[float, int, float]]:
        yield arrival, min(x + 1, room), float(x)
        yield service, max(x - 1, 0), float(x)
        yield 1 - arrival - service, x, float(x)

    return 0, lambda x: ["serve"], outcomes


def stock() -> Functions:
    """Return an inventory with a lead time of two days: orders of 0, 4 or 8, demand 0..3, lost sales."""
    demand = {0: 0.2, 1: 0.4, 2: 0.3, 3: 0.1}

    def day(state: tuple[int, int, int], order: int) -> Iterator[tuple[float, tuple[int, int, int], float]]:
        here, tomorrow, later = state
        for wanted, p in demand.items():
            sold = min(here, wanted)
            cost = 4.0 * (order > 0) + 0.2 * (here - sold) + 5.0 * (wanted - sold)
            yield p, (here - sold + tomorrow, later, order), cost

    return (0, 0, 0), lambda state: [q for q in (0, 4, 8) if sum(state) + q <= 16], day


def machine() -> Functions:
    """Return a machine that wears from 0 to 4; a repair costs 3 and fails in 3 of 10 cases, a new machine costs 12."""

    def day(wear: int, choice: str) -> Iterator[tuple[float, int, float]]:
        if choice == "replace":
            yield 1.0, 0, 12.0
        elif choice == "repair":
            yield from ((0.7, wear - 1, 3.0), (0.3, wear, 3.0))
        else:
            cost = 10.0 if wear == 4 else 0.5 * wear
            yield from ((0.8, wear, cost), (0.2, min(wear + 1, 4), cost))

    return 0, lambda wear: ["run", "repair", "replace"] if wear else ["run"], day


def least_cost(start: Any, actions: Any, outcomes: Any) -> float:
    """Return the lowest average cost by the linear program over frequencies of pairs (Puterman, Sec. 8.8), for unichain models."""
    states, pairs, rows, costs = [start], [], [], []
    for state in states:
        for action in actions(state):
            row: dict[Any, float] = {}
            mean = 0.0
            for p, succ, cost in outcomes(state, action):
                row[succ] = row.get(succ, 0.0) + p
                mean += p * cost
                if succ not in states:
                    states.append(succ)
            pairs.append(state)
            rows.append(row)
            costs.append(mean)
    flow = np.zeros((len(states) + 1, len(pairs)))
    flow[-1] = 1.0
    for i, (state, row) in enumerate(zip(pairs, rows, strict=True)):
        flow[states.index(state), i] += 1.0
        for succ, p in row.items():
            flow[states.index(succ), i] -= p
    target = np.zeros(len(states) + 1)
    target[-1] = 1.0
    found = linprog(costs, A_eq=flow, b_eq=target, method="highs")
    assert found.success
    return float(found.fun)
