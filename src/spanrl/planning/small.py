"""Solve the smallest models without the compiler: to load it takes longer than to solve them."""

from __future__ import annotations

from typing import Any

from spanrl.kernels.jit import interpreted
from spanrl.models.mdp import MDP
from spanrl.models.solution import Solution
from spanrl.planning.problem import Model
from spanrl.planning.solve import solve

_WORK = 50_000
"""Successors looked at, about half a microsecond each."""


def solve_small(model: Model, *, max_sweeps: int, **options: Any) -> Solution | None:
    """Return what :func:`solve` returns, bit for bit; None where that is too much work for interpreted kernels, or fails.

    >>> import spanrl
    >>> solution = solve_small(spanrl.make("two-state").mdp, max_sweeps=100, span_bound=0.75)
    >>> solution.policy.probs.round(4).tolist()
    [[1.0, 0.0], [0.1429, 0.8571]]
    >>> solve_small(spanrl.make("knight-quest").mdp, max_sweeps=100) is None
    True
    """
    if not isinstance(model, MDP) or model.succ.size * 100 > _WORK:
        return None
    affordable = _WORK // model.succ.size
    with interpreted():
        solution = solve(model, max_sweeps=min(max_sweeps, affordable), on_fail="return", **options)
    return solution if solution.converged else None
