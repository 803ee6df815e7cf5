"""From Gymnasium's transition table ``env.unwrapped.P`` to an MDP (no import of Gymnasium is needed for it).

An outcome with ``terminated`` goes on at a start state: it becomes one outcome per state to start from.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanrl.errors import ModelError
from spanrl.models import checks
from spanrl.models.mdp import MDP


class GymTable(NamedTuple):
    """The pairs of a table, sorted, and their outcomes: those of pair i are ``ptr[i]:ptr[i + 1]`` of prob, succ, reward and ends."""

    start: NDArray[np.float64]  # [S]: where episodes begin
    range: tuple[float, float]  # of the rewards
    state: Any  # [pairs]
    action: Any
    mean: Any  # reward
    ptr: Any  # [pairs + 1]
    prob: Any  # [outcomes]
    succ: Any
    reward: Any
    ends: Any


def from_gymnasium(
    env: Any, r_min: float | None, r_max: float | None, start: ArrayLike | None, *, costs: bool = False
) -> MDP:
    """Read the table of ``env``; see :meth:`MDP.from_gymnasium`."""
    table = read_table("MDP.from_gymnasium", env, r_min, r_max, start)
    low, high = table.range
    mdp = MDP.from_pairs(
        table.state,
        table.action,
        table.ptr,
        table.succ,
        table.prob,
        table.mean,
        r_min=low,
        r_max=high,
        start=table.start,
    )
    return replace(mdp, costs=True) if costs else mdp


def read_table(
    who: str, env: Any, r_min: float | None = None, r_max: float | None = None, start: ArrayLike | None = None
) -> GymTable:
    """Return what the table of ``env`` says, in the declared range of rewards or in that of its own."""
    inner = getattr(env, "unwrapped", env)
    table = getattr(inner, "P", None)
    if not isinstance(table, dict) or not table:
        raise ModelError(
            f"{who}: {type(inner).__name__} has no transition table P; the table must be env.unwrapped.P[s][a]. "
            "Use an environment of the toy-text kind."
        )
    if start is None:
        start = getattr(inner, "initial_state_distrib", None)
        if start is None:
            raise ModelError(
                f"{who}: {type(inner).__name__} tells no start distribution. Pass start= (a state or a distribution)."
            )
    reset = checks.start_distribution(who, start, len(table))
    if r_min is None and r_max is None:
        r_min, r_max = declared_range(getattr(inner, "reward_range", None)) or (None, None)
    try:
        return _read(who, table, reset, r_min, r_max)
    except ModelError:
        raise
    except (TypeError, KeyError, AttributeError, ValueError, OverflowError) as error:
        raise ModelError(
            f"{who}: P must read P[s][a] = [(probability, next state, reward, terminated), …] with numbers ({error})."
        ) from None


def declared_range(declared: Any) -> tuple[float, float] | None:
    """Return a ``reward_range`` that is two finite numbers; anything else declares nothing."""
    try:
        low, high = (float(end) for end in declared)
    except (TypeError, ValueError):
        return None
    return (low, high) if np.isfinite(low) and np.isfinite(high) and low < high else None


def _read(who: str, table: Any, reset: NDArray[np.float64], r_min: float | None, r_max: float | None) -> GymTable:
    resets = [(int(s), float(reset[s])) for s in np.flatnonzero(reset)]
    out = GymTable(reset, (0.0, 1.0), [], [], [], [0], [], [], [], [])
    for s in range(len(table)):
        for a in sorted(table.get(s, {})):
            mean = total = 0.0
            for outcome in table[s][a]:
                if len(outcome) != 4:
                    raise ModelError(
                        f"{who}: outcomes must be (probability, next state, reward, terminated); got {outcome!r} "
                        f"in P[s={s}, a={a}]."
                    )
                p, s_next, r, terminated = outcome
                mean, total = mean + p * r, total + p
                for target, weight in resets if terminated else [(int(s_next), 1.0)]:
                    out.succ.append(target)
                    out.prob.append(float(p) * weight)
                    out.reward.append(float(r))
                    out.ends.append(bool(terminated))
            out.state.append(s)
            out.action.append(int(a))
            # rows that are off are rescaled
            out.mean.append(mean / total if 0 < abs(total - 1) <= checks.SUM_TOL else mean)
            out.ptr.append(len(out.succ))
    low = min(out.reward, default=0.0) if r_min is None else r_min
    high = max(out.reward, default=1.0) if r_max is None else r_max
    if r_min is None and r_max is None and low == high:
        high = low + 1.0
    return out._replace(range=(low, high))
