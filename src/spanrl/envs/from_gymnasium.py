"""A Gymnasium environment as one of ours: its transition table, which compiled code plays (no import of Gymnasium is needed for it).

The table must be the whole truth: no wrapper but Gymnasium's standard ones, which change nothing but cut episodes (``TimeLimit``), and in a
trial of some random steps the environment does nothing that the table does not know. Episodes are cut as there; or, where it is asked
for, the time is part of the state, and a cut is a transition like any other: then the model knows all, and its g* is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isclose
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.envs.env import FIXED, Env, EnvInfo, OutcomeArrays, from_arrays
from spanrl.errors import ModelError
from spanrl.models.gym_table import GymTable, read_table

STANDARD = ("TimeLimit", "OrderEnforcing", "PassiveEnvChecker")
"""The wrappers that ``gymnasium.make`` puts around an environment."""

PLAYED = "from its table"
MOST_STATES = 10**6
"""With the time in the state, a model has at most so many: states of the table times steps."""

_WHO = "Env.from_gymnasium"
_TRIAL = 200  # steps


def from_gymnasium(env: Any, *, time_in_state: bool = False) -> Env:
    """Return the table of ``env``, to be played as the environment plays; see :meth:`Env.from_gymnasium`."""
    name, limit = gym_name(env), step_limit(env)
    other = next((type(layer).__name__ for layer in wrappers(env) if not is_standard(layer)), None)
    if other is not None:
        raise ModelError(
            f"{_WHO}: {name} has the wrapper {other}, of which its table P may know nothing; the wrappers must be "
            f"{', '.join(STANDARD)} alone. learn plays it step by step."
        )
    inner = getattr(env, "unwrapped", env)
    own = getattr(inner, "inner", None)  # an environment of ours seen through Gymnasium, without the detour
    if isinstance(own, Env) and limit is None:
        return _named(own, name)
    table = read_table(_WHO, inner)
    _check_truth(name, env, inner, table)
    if not time_in_state:
        return _env(name, table, limit, table.start)
    if limit is None:
        raise ModelError(f"{_WHO}: {name} has no time limit, so its state needs no time. Leave time_in_state out.")
    return _with_time(name, table, limit)


def gym_name(env: Any) -> str:
    """Return the id of an environment, or the name of its class where it has none."""
    spec = getattr(env, "spec", None)
    return str(getattr(spec, "id", None) or type(getattr(env, "unwrapped", env)).__name__)


def wrappers(env: Any) -> Iterator[Any]:
    """Yield the wrappers, the outermost first."""
    layer = env
    while hasattr(layer, "env") and layer is not getattr(layer, "unwrapped", layer):
        yield layer
        layer = layer.env


def is_standard(wrapper: Any) -> bool:
    """Tell whether a wrapper is one of Gymnasium's own that leave the table true; a class of the same name is not."""
    kind = type(wrapper)
    return kind.__name__ in STANDARD and kind.__module__.partition(".")[0] == "gymnasium"


def step_limit(env: Any) -> int | None:
    """Return the steps after which a wrapper cuts an episode, None where none does."""
    limits = [getattr(layer, "_max_episode_steps", None) for layer in wrappers(env)]  # as TimeLimit calls it
    return min((int(limit) for limit in limits if limit is not None), default=None)


def _check_truth(name: str, env: Any, inner: Any, table: GymTable) -> None:
    """Refuse a table that does not fit the spaces, or that the environment contradicts."""
    spaces = env.observation_space, env.action_space
    sizes = [(int(getattr(space, "start", 0)), int(getattr(space, "n", 0))) for space in spaces]
    if sizes != [(0, len(table.start)), (0, max(table.action) + 1)]:
        raise ModelError(
            f"{_WHO}: the table P of {name} has other states or actions than its spaces. Correct one of them."
        )
    if getattr(inner, "fickle_passenger", False):  # Taxi's passengers may change their mind
        raise ModelError(
            f"{_WHO}: the table P of {name} does not know that passengers change their mind. Leave fickle_passenger out."
        )
    if not _agrees(env, inner.P):
        raise ModelError(f"{_WHO}: {name} does what its table P does not know. Correct the table, or remove it.")


def _agrees(env: Any, table: Any) -> bool:
    """Tell whether the table knows all that happens; what it cannot look up it does not know."""
    try:
        return _is_known(env, table)
    except (LookupError, TypeError, ValueError):
        return False


def _is_known(env: Any, table: Any) -> bool:
    """Play random actions; tell whether the table knows all that happens."""
    rng = np.random.default_rng(0)
    state, _ = env.reset(seed=0)
    for _ in range(_TRIAL):
        actions = sorted(table[int(state)])
        action = actions[rng.integers(len(actions))]
        succ, reward, terminated, truncated, _ = env.step(action)
        known = (
            p > 0 and s == succ and bool(ends) == bool(terminated) and isclose(r, reward, rel_tol=1e-6, abs_tol=1e-9)
            for p, s, r, ends in table[int(state)][action]
        )  # fmt: skip
        if not any(known):
            return False
        state = env.reset()[0] if terminated or truncated else succ
    return True


def _env(name: str, table: GymTable, limit: int | None, start: NDArray[np.float64], **options: Any) -> Env:
    """Return the environment of a table."""
    low, high = table.range
    law = np.full(len(table.succ), FIXED)
    columns = OutcomeArrays(*map(np.asarray, (table.ptr, table.prob, table.succ, table.reward, law, table.ends)))
    info = EnvInfo(name, f"Gymnasium's {name}.", "https://gymnasium.farama.org", played=PLAYED)
    return from_arrays(
        table.state, table.action, columns, step_limit=limit, info=info, r_min=low, r_max=high, start=start, **options
    )


def _with_time(name: str, table: GymTable, limit: int) -> Env:
    """Return the environment whose states are (state, steps since the episode began), as far as they can be reached."""
    n_states = len(table.start)
    if n_states * limit > MOST_STATES:
        raise ModelError(
            f"{_WHO}: with the time in the state, {name} has up to {n_states:,} × {limit:,} states, more than {MOST_STATES:,}. "
            "Give a smaller max_episode_steps, or leave time_in_state out."
        )
    base = _Table(table)
    layers = base.layers(limit)
    first = np.cumsum([0, *(layer.size for layer in layers)])
    blocks = [base.block(layers, first, k, is_last=k + 1 == limit) for k in range(len(layers))]
    state, action, count, prob, succ, reward, ends = (np.concatenate(column) for column in zip(*blocks, strict=True))
    timed = table._replace(
        state=state,
        action=action,
        ptr=np.concatenate(([0], np.cumsum(count))),
        prob=prob,
        succ=succ,
        reward=reward,
        ends=ends,
    )
    start = np.zeros(first[-1])
    start[: layers[0].size] = table.start[layers[0]]
    steps = np.repeat(np.arange(len(layers)), np.diff(first))
    names = np.column_stack((np.concatenate(layers), steps))
    return _env(name, timed, None, start, state_names=names)


class _Table:
    """The arrays of a table, those of outcomes without the impossible ones."""

    def __init__(self, table: GymTable) -> None:
        prob = np.array(table.prob)
        keep = np.flatnonzero(prob > 0)
        self.start, self.starts = table.start, np.flatnonzero(table.start)
        self.state, self.action = np.array(table.state), np.array(table.action)
        self.ptr = np.searchsorted(keep, table.ptr)
        self.prob, self.succ, self.reward = prob[keep], np.array(table.succ)[keep], np.array(table.reward)[keep]
        self.ends = np.array(table.ends, dtype=np.bool_)[keep]

    def layers(self, limit: int) -> list[NDArray[np.int64]]:
        """Return the states that an episode may be in after k = 0, 1, … steps; fewer than ``limit`` where it is over by then."""
        out = [self.starts]
        while len(out) < limit:
            which, _, _ = self._outcomes(out[-1])
            more = np.unique(self.succ[which[~self.ends[which]]])
            if not more.size:
                break
            out.append(more)
        return out

    def block(
        self, layers: list[NDArray[np.int64]], first: NDArray[np.int64], k: int, *, is_last: bool
    ) -> tuple[NDArray[Any], ...]:
        """Return (state, action, number of outcomes) of the pairs after k steps, and (prob, succ, reward, ends) of their outcomes."""
        which, pairs, owner = self._outcomes(layers[k])
        prob, ends = self.prob[which], self.ends[which]
        succ = np.searchsorted(self.starts, self.succ[which])  # of those that end an episode
        if not is_last and k + 1 < len(layers):
            succ = np.where(ends, succ, first[k + 1] + np.searchsorted(layers[k + 1], self.succ[which]))
        if is_last:  # all others are cut, and begin anew as well
            copies = np.where(ends, 1, self.starts.size)
            place = np.arange(copies.sum()) - np.repeat(np.cumsum(copies) - copies, copies)
            which, owner, ends = np.repeat(which, copies), np.repeat(owner, copies), np.repeat(ends, copies)
            succ = np.where(ends, np.repeat(succ, copies), place)
            prob = np.where(ends, 1.0, self.start[self.starts[place]]) * np.repeat(prob, copies)
        state = first[k] + np.searchsorted(layers[k], self.state[pairs])
        count = np.bincount(owner, minlength=pairs.size)
        return state, self.action[pairs], count, prob, succ, self.reward[which], ends

    def _outcomes(self, states: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the outcomes of all pairs of some states, these pairs, and to which of them each outcome belongs."""
        pairs = np.flatnonzero(np.isin(self.state, states))
        count = self.ptr[pairs + 1] - self.ptr[pairs]
        owner = np.repeat(np.arange(pairs.size), count)
        return self.ptr[pairs][owner] + np.arange(owner.size) - (np.cumsum(count) - count)[owner], pairs, owner


def _named(env: Env, name: str) -> Env:
    """Return an environment of ours under the name that Gymnasium has for it."""
    return replace(env, info=replace(env.info, id=name, played=PLAYED))
