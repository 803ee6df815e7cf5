"""From Gymnasium's transition table ``env.unwrapped.P`` to an MDP (no import of Gymnasium is needed for it)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanrl.errors import ModelError
from spanrl.models import checks
from spanrl.models.mdp import MDP


def from_gymnasium(
    env: Any, r_min: float | None, r_max: float | None, start: ArrayLike | None, *, costs: bool = False
) -> MDP:
    """Read the table of ``env``; see :meth:`MDP.from_gymnasium`."""
    inner = getattr(env, "unwrapped", env)
    table = getattr(inner, "P", None)
    if not isinstance(table, dict) or not table:
        raise ModelError(
            f"MDP.from_gymnasium: {type(inner).__name__} has no transition table P; the table must be env.unwrapped.P[s][a]. "
            "Use an environment of the toy-text kind."
        )
    n_states = len(table)
    if start is None:
        start = getattr(inner, "initial_state_distrib", None)
        if start is None:
            raise ModelError(
                f"MDP.from_gymnasium: {type(inner).__name__} tells no start distribution. Pass start= (a state or a distribution)."
            )
    reset = checks.start_distribution("MDP.from_gymnasium", start, n_states)
    if r_min is None and r_max is None:
        r_min, r_max = declared_range(getattr(inner, "reward_range", None)) or (None, None)
    try:
        return _from_table(table, n_states, reset, r_min, r_max, costs)
    except (TypeError, KeyError, AttributeError) as error:
        raise ModelError(
            f"MDP.from_gymnasium: P must read P[s][a] = [(probability, next state, reward, terminated), …] with numbers ({error})."
        ) from None


def declared_range(declared: Any) -> tuple[float, float] | None:
    """Return a ``reward_range`` that is two finite numbers; anything else declares nothing."""
    try:
        low, high = (float(end) for end in declared)
    except (TypeError, ValueError):
        return None
    return (low, high) if np.isfinite(low) and np.isfinite(high) and low < high else None


def _from_table(table: Any, n_states: int, reset: Any, r_min: float | None, r_max: float | None, costs: bool) -> MDP:
    resets = [(int(s), float(reset[s])) for s in np.flatnonzero(reset)]
    state, action, ptr, succ, prob, reward, seen = [], [], [0], [], [], [], []
    for s in range(n_states):
        for a in sorted(table.get(s, {})):
            mean = total = 0.0
            for outcome in table[s][a]:
                if len(outcome) != 4:
                    raise ModelError(
                        f"MDP.from_gymnasium: outcomes must be (probability, next state, reward, terminated); got {outcome!r} "
                        f"in P[s={s}, a={a}]."
                    )
                p, s_next, r, terminated = outcome
                mean, total = mean + p * r, total + p
                seen.append(float(r))
                for target, weight in resets if terminated else [(int(s_next), 1.0)]:
                    succ.append(target)
                    prob.append(float(p) * weight)
            state.append(s)
            action.append(int(a))
            reward.append(
                mean / total if 0 < abs(total - 1) <= checks.SUM_TOL else mean
            )  # rows that are off are rescaled
            ptr.append(len(succ))
    low = min(seen, default=0.0) if r_min is None else r_min
    high = max(seen, default=1.0) if r_max is None else r_max
    if r_min is None and r_max is None and low == high:
        high = low + 1.0
    return MDP.from_pairs(state, action, ptr, succ, prob, reward, r_min=low, r_max=high, costs=costs, start=reset)
