"""What an agent is told about a problem before it starts: sizes, the range of the rewards, which actions exist. Never the model."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanrl.errors import OptionError
from spanrl.models import checks
from spanrl.models.mdp import MDP
from spanrl.models.rows import available_pairs


class _Horizon:
    """The field ``horizon``, which remembers that it was read: a run of such an agent cannot be made longer later."""

    def __get__(self, info: Any, owner: Any = None) -> int | None:
        if info is None:
            return None  # the default
        info.__dict__["horizon_was_read"] = True
        value: int | None = info.__dict__["_horizon"]
        return value

    def __set__(self, info: Any, value: int | None) -> None:
        info.__dict__["_horizon"] = value


@dataclass(frozen=True, eq=False)
class ProblemInfo:
    """The problem as an agent knows it at the start.

    Args:
        n_states, n_actions: S, and the number of actions.
        r_min, r_max: range of the rewards.
        available: [S, A], which actions exist; None for all. Every state has one.
        horizon: the number of steps, for agents that want to know it; None where it is open.

    >>> ProblemInfo(3, 2, available=[[True, False], [True, False], [True, True]]).n_pairs
    4
    """

    n_states: int
    n_actions: int
    _: KW_ONLY
    r_min: float = 0.0
    r_max: float = 1.0
    available: ArrayLike | None = None
    horizon: _Horizon = _Horizon()

    def __post_init__(self) -> None:
        """Check the numbers once."""
        who = "ProblemInfo"
        for name in ("n_states", "n_actions"):
            value = getattr(self, name)
            if isinstance(value, bool) or not (isinstance(value, Integral) and int(value) >= 1):
                raise OptionError(f"{who}: {name} must be a whole number ≥ 1; got {value!r}.")
        r_min, r_max = checks.reward_range(who, self.r_min, self.r_max)
        object.__setattr__(self, "r_min", r_min)
        object.__setattr__(self, "r_max", r_max)
        horizon = self.horizon
        if horizon is not None and (isinstance(horizon, bool) or not isinstance(horizon, Integral) or horizon < 1):
            raise OptionError(f"{who}: horizon must be a whole number ≥ 1, or None; got {horizon!r}.")
        self.__dict__["horizon_was_read"] = False  # by others than us
        _ = self.action  # wrong availability is told now

    def is_longer_than(self, steps: int) -> bool:
        """Tell whether the horizon is known and longer, for a warning; this does not count as reading it."""
        horizon = self.__dict__["_horizon"]
        return horizon is not None and horizon > steps

    @property
    def horizon_was_read(self) -> bool:
        """Whether anyone has asked for the horizon."""
        return bool(self.__dict__["horizon_was_read"])

    @classmethod
    def from_mdp(cls, mdp: MDP, horizon: int | None = None) -> ProblemInfo:
        """Tell of an MDP what an agent may know."""
        available = np.zeros((mdp.n_states, mdp.n_actions), dtype=bool)
        available[mdp.pair_state, mdp.action] = True
        return cls(mdp.n_states, mdp.n_actions, r_min=mdp.r_min, r_max=mdp.r_max, available=available, horizon=horizon)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        state, action = available_pairs("ProblemInfo", self.available, int(self.n_states), int(self.n_actions))
        return checks.immutable(state, np.int64), checks.immutable(action, np.int64)

    @property
    def pair_state(self) -> NDArray[np.int64]:
        """The state of each pair, [n_pairs]."""
        return self._pairs[0]

    @property
    def action(self) -> NDArray[np.int64]:
        """The action of each pair, [n_pairs]."""
        return self._pairs[1]

    @cached_property
    def pair_ptr(self) -> NDArray[np.int64]:
        """The pairs of state s are ``pair_ptr[s]:pair_ptr[s+1]``, [S+1]."""
        return checks.immutable(np.searchsorted(self.pair_state, np.arange(self.n_states + 1)), np.int64)

    @property
    def n_pairs(self) -> int:
        """The number of available pairs."""
        return self.action.size

    @cached_property
    def max_actions(self) -> int:
        """A, the largest number of actions of a state."""
        return int(np.diff(self.pair_ptr).max())

    @property
    def size(self) -> float:
        """The length r_max − r_min of the reward interval: the paper's r_max."""
        return self.r_max - self.r_min
