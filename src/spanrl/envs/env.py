"""An environment: an MDP, and how a step really pays.

A step from a pair (s, a) draws one *outcome* (probability, successor, reward, law), so that the reward may depend on
what happened. The outcomes of pair i are the entries ``out_ptr[i] … out_ptr[i+1]`` of four arrays::

    out_prob    probability, > 0; a pair's sum to one
    out_succ    the next state
    out_reward  the mean reward of the outcome, in [r_min, r_max]
    out_law     0 (FIXED)      pays out_reward
                1 (BERNOULLI)  pays r_max with probability (out_reward − r_min)/(r_max − r_min), otherwise r_min

The MDP is what remains when the noise is averaged out: r(s, a) = Σ out_prob · out_reward, p(s'|s, a) = Σ out_prob over
the outcomes that lead to s'. Agents see only what is drawn; environments never plan.

Some environments cut their episodes (``step_limit``): after so many steps without an outcome that ends the episode (``out_ends``)
the process jumps to a start state. The jump is no transition: nobody observes it, and the MDP does not know it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanrl.envs.reading import read_outcomes
from spanrl.errors import ModelError
from spanrl.models import checks
from spanrl.models.checks import Array, immutable
from spanrl.models.costs import flip, flip_ends, reward_range
from spanrl.models.mdp import MDP
from spanrl.models.rows import mean_rewards, row_totals
from spanrl.names import Value
from spanrl.options import one_of, whole_number

if TYPE_CHECKING:
    from spanrl.kernels.sampling import Sampler

FIXED, BERNOULLI = 0, 1
_BERNOULLI_RANGE = (
    "{}: Bernoulli rewards are r_min or r_max, which must be declared; the range was found from the data. "
    "Give r_min= and r_max= when you make the model."
)
_ARRAYS = ("out_ptr", "out_prob", "out_succ", "out_reward", "out_law")


class Outcome(NamedTuple):
    """One thing that may happen after a pair: probability, next state, mean reward, law of the reward, whether it ends an episode."""

    prob: float
    succ: int
    reward: float
    law: int = FIXED
    ends: bool = False


@dataclass(frozen=True)
class EnvInfo:
    """What an environment is: its canonical text form, one sentence, where it comes from, its parameters; how Gymnasium's is played."""

    id: str = "unnamed"
    summary: str = "An environment without a name."
    source: str = ""
    parameters: dict[str, Value] = field(default_factory=dict, hash=False)
    played: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Env:
    """An MDP with an outcome table; the arrays are read-only.

    Make one with :func:`spanrl.make`, :meth:`from_outcomes` or :meth:`from_mdp`; the constructor itself takes arrays
    that are valid already.

    Attributes:
        mdp: the model, with mean rewards.
        out_ptr, out_prob, out_succ, out_reward, out_law: the outcomes of pair i are ``out_ptr[i]:out_ptr[i + 1]``.
        info: name, summary, source and parameters.
        step_limit: steps after which an episode is cut; None where none is.
        out_ends: whether an outcome ends an episode (its successor is where the next one begins); None where episodes are not cut.

    >>> env = Env.from_outcomes({(0, 0): [(0.9, 0, 0.0), (0.1, 0, 1.0)]})
    >>> env.mdp.reward.tolist(), env.mdp.prob.tolist(), env.out_prob.tolist()
    ([0.1], [1.0], [0.9, 0.1])
    """

    mdp: MDP
    out_ptr: NDArray[np.int64]
    out_prob: NDArray[np.float64]
    out_succ: NDArray[np.uint32]
    out_reward: NDArray[np.float64]
    out_law: NDArray[np.uint8]
    info: EnvInfo = field(default_factory=EnvInfo)
    step_limit: int | None = None
    out_ends: NDArray[np.bool_] | None = None

    @classmethod
    def from_outcomes(
        cls,
        outcomes: Mapping[tuple[int, int], Sequence[Outcome | tuple[float, int, float]]],
        *,
        r_min: float | None = None,
        r_max: float | None = None,
        costs: bool = False,
        start: ArrayLike = 0,
        n_actions: int | None = None,
        state_names: Sequence[Any] | Array | None = None,
        action_names: Sequence[Any] | None = None,
        info: EnvInfo | None = None,
        step_limit: int | None = None,
    ) -> Env:
        """Build from the outcomes of every pair: ``{(state, action): [Outcome(prob, succ, reward, law), …]}``.

        Outcomes of a pair may share the successor and differ in the reward; equal ones are added up, those of
        probability zero dropped. Probabilities must sum to one within 1e-8. The mean reward is Σ prob · reward.
        With ``costs`` the numbers are costs, and the env pays rewards = −costs. ``step_limit`` cuts episodes after so many steps;
        without it, ``Outcome.ends`` means nothing. The other arguments are those of :meth:`MDP.from_pairs`; the range is that of all
        outcomes where it is left out.
        """
        if not isinstance(outcomes, Mapping):
            raise ModelError(
                f"Env: outcomes must map (state, action) to a list of outcomes; got {type(outcomes).__name__}."
            )
        pairs, rows = read_outcomes(outcomes, len(Outcome._fields))
        table = [Outcome(*outcome) for row in rows for outcome in row]
        ptr = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
        prob, reward = (checks.numeric("Env", n, [getattr(o, n) for o in table], (None,)) for n in ("prob", "reward"))
        succ, law = np.array([o.succ for o in table]), np.array([o.law for o in table])
        low, high, is_found = reward_range("Env", costs, r_min, r_max, reward, reward)
        reward = flip(costs, reward)
        _check_outcomes(pairs, ptr, reward, law, (low, high), costs)
        if is_found and (law == BERNOULLI).any():
            raise ModelError(_BERNOULLI_RANGE.format("Env"))
        named = {"n_actions": n_actions, "state_names": state_names, "action_names": action_names}
        arrays = OutcomeArrays(ptr, prob, succ, reward, law, np.array([bool(o.ends) for o in table], dtype=np.bool_))
        limit = None if step_limit is None else whole_number("Env", "step_limit", step_limit)
        states, actions = [s for s, _ in pairs], [a for _, a in pairs]
        env = from_arrays(
            states, actions, arrays, step_limit=limit, info=info, r_min=low, r_max=high, start=start, **named
        )
        if not costs and not is_found:
            return env
        return replace(env, mdp=replace(env.mdp, costs=bool(costs), range_is_found=is_found))

    @classmethod
    def from_mdp(cls, mdp: MDP, rewards: str = "mean", *, info: EnvInfo | None = None) -> Env:
        """Build from an MDP: ``rewards="mean"`` pays r(s, a) itself, ``"bernoulli"`` r_max or r_min with that mean.

        >>> mdp = MDP.from_dense([[[1.0]]], [[0.25]])
        >>> Env.from_mdp(mdp).out_law.tolist(), Env.from_mdp(mdp, "bernoulli").out_law.tolist()
        ([0], [1])
        """
        if not isinstance(mdp, MDP):
            raise ModelError(f"Env.from_mdp: takes an MDP; got {type(mdp).__name__}. Use make() for a name.")
        one_of("Env.from_mdp", "rewards", rewards, ("mean", "bernoulli"))
        if rewards == "bernoulli" and mdp.range_is_found:
            raise ModelError(_BERNOULLI_RANGE.format("Env.from_mdp"))
        reward = np.repeat(mdp.reward, np.diff(mdp.succ_ptr))
        random = (rewards == "bernoulli") & (reward > mdp.r_min) & (reward < mdp.r_max)
        law = np.where(random, BERNOULLI, FIXED)
        return cls(
            mdp,
            mdp.succ_ptr,
            mdp.prob,
            mdp.succ,
            immutable(reward, np.float64),
            immutable(law, np.uint8),
            info or EnvInfo(),
        )

    @classmethod
    def from_gymnasium(cls, env: Any, *, time_in_state: bool = False) -> Env:
        """Build from the transition table of a Gymnasium environment, which is reset and tried for some steps.

        Args:
            env: an environment with a table ``env.unwrapped.P`` and no wrapper but ``TimeLimit``, ``OrderEnforcing`` and
                ``PassiveEnvChecker``. An outcome with ``terminated`` goes on at a start state; a ``TimeLimit`` cuts episodes
                (:attr:`step_limit`), which the MDP does not know.
            time_in_state: make the steps since the episode began part of the state, named ``(state, steps)``; then a cut is a
                transition like any other, and the MDP knows all.

        Returns:
            An :class:`Env`.

        Raises:
            ModelError: there is no table, or it is not the whole truth.

        >>> import gymnasium
        >>> lake = gymnasium.make("FrozenLake-v1", max_episode_steps=20)
        >>> env, timed = Env.from_gymnasium(lake), Env.from_gymnasium(lake, time_in_state=True)
        >>> env.mdp.n_states, env.step_limit, timed.mdp.n_states, timed.step_limit
        (16, 20, 192, None)
        """
        from spanrl.envs.from_gymnasium import from_gymnasium

        return from_gymnasium(env, time_in_state=time_in_state)

    def outcomes(self, state: int, action: int) -> list[Outcome]:
        """Return the outcomes of an available pair, sorted by (successor, reward, law)."""
        i = self.mdp.pair(state, action)
        part = slice(self.out_ptr[i], self.out_ptr[i + 1])
        columns: list[Array] = [self.out_prob, self.out_succ, self.out_reward, self.out_law, *self._flags]
        return [Outcome(*row) for row in zip(*(column[part].tolist() for column in columns), strict=True)]

    def reset(self, rng: np.random.Generator) -> int:
        """Draw a start state. A single one costs no random number."""
        states = np.flatnonzero(self.mdp.start)
        if states.size == 1:
            return int(states[0])
        upper = np.cumsum(self.mdp.start[states])
        return int(states[np.searchsorted(upper[:-1], rng.random(), side="right")])

    def step(self, state: int, action: int, rng: np.random.Generator) -> tuple[float, int]:
        """Draw what an available action brings: (reward, next state). It takes one 64-bit number of ``rng``, as in :func:`spanrl.learn`."""
        reward, succ, _ = self.drawn(self.mdp.pair(state, action), rng)
        return reward, succ

    def drawn(self, pair: int, rng: np.random.Generator) -> tuple[float, int, bool]:
        """Draw an outcome of a pair of :attr:`sampler`: (reward, next state, whether it ends an episode that may be cut)."""
        from spanrl.kernels.sampling import draw

        word = rng.integers(0, 2**64 - 1, dtype=np.uint64, endpoint=True)
        sampler = self.sampler
        i = draw(sampler, pair, word)
        return float(sampler.reward[i]), int(sampler.succ[i]), bool(sampler.ends.size and sampler.ends[i])

    @cached_property
    def sampler(self) -> Sampler:
        """The outcomes with Bernoulli rewards split in two, and the tables to draw from them; its clock stands still."""
        from spanrl.kernels.sampling import Sampler, build_slots

        ptr, prob, succ, reward, ends = self._realised
        start, threshold, successors, outcome = (immutable(part, part.dtype) for part in build_slots(ptr, prob, succ))
        return Sampler(ptr, succ, reward, start, threshold, successors, outcome, ends, self.new_clock())

    def new_clock(self) -> NDArray[np.int64]:
        """Return a clock for one run: no step of the episode yet, and the limit; empty where episodes are not cut."""
        return np.array([] if self.step_limit is None else [0, self.step_limit], dtype=np.int64)

    @property
    def outcome_probs(self) -> NDArray[np.float64]:
        """The probabilities of the outcomes of :attr:`sampler`."""
        return self._realised[1]

    @cached_property
    def _realised(self) -> tuple[Array, Array, Array, Array, Array]:
        return _realised(self)

    @property
    def _flags(self) -> tuple[Array, ...]:
        return () if self.out_ends is None else (self.out_ends,)

    def __eq__(self, other: object) -> bool:
        """Equal when the MDP and the outcome table are equal, whatever the info says."""
        if not isinstance(other, Env):
            return NotImplemented
        if (self.mdp, self.step_limit) != (other.mdp, other.step_limit):
            return False
        mine, others = ([*(getattr(env, n) for n in _ARRAYS), *env._flags] for env in (self, other))
        return all(np.array_equal(a, b) for a, b in zip(mine, others, strict=True))

    def __hash__(self) -> int:
        """Hash by the MDP."""
        return hash(self.mdp)

    def __str__(self) -> str:
        """Show the id, the summary and the MDP."""
        return f"{self.info.id}\n{self.info.summary}\n{self.mdp}"

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<Env {self.info.id}: {self.mdp.n_states} states, {self.mdp.n_actions} actions>"


class OutcomeArrays(NamedTuple):
    """The outcomes of pairs as arrays: those of pair i are the entries ``ptr[i]:ptr[i + 1]`` of the others."""

    ptr: Array
    prob: Array
    succ: Array
    reward: Array
    law: Array
    ends: Array


def from_arrays(
    states: ArrayLike, actions: ArrayLike, table: OutcomeArrays, *, step_limit: int | None, info: EnvInfo | None,
    **options: Any,
) -> Env:  # fmt: skip
    """Return an Env of pairs, sorted by (state, action), and their outcomes; ``options`` are those of :meth:`MDP.from_pairs`."""
    mean = mean_rewards(table.ptr, table.prob, table.reward)
    mdp = MDP.from_pairs(states, actions, table.ptr, table.succ, table.prob, mean, **options)
    if step_limit is None:
        table = table._replace(ends=np.zeros(table.succ.size, dtype=np.bool_))
    ptr, prob, succ, reward, law, ends = _canonical(table)
    return Env(
        mdp,
        immutable(ptr, np.int64),
        immutable(prob, np.float64),
        immutable(succ, np.uint32),
        immutable(reward, np.float64),
        immutable(law, np.uint8),
        info or EnvInfo(),
        step_limit,
        None if step_limit is None else immutable(ends, np.bool_),
    )


def _check_outcomes(
    pairs: list[tuple[int, int]], ptr: Array, reward: Array, law: Array, ends: tuple[float, float], costs: bool
) -> None:
    """Check what the MDP cannot see: every pair has outcomes, each reward is in range, each law is known."""

    def where(j: int) -> str:
        s, a = pairs[checks.pair_of(ptr, j)]
        return f"outcome {j - ptr[checks.pair_of(ptr, j)]} of (s={s}, a={a})"

    checks.reject(
        "Env",
        np.diff(ptr) == 0,
        lambda i: "pair (s={}, a={})".format(*pairs[i]),
        "must have an outcome",
        None,
        "Give at least one outcome, or leave the pair out.",
    )
    checks.reject(
        "Env",
        ~np.isin(law, (FIXED, BERNOULLI)),
        lambda j: f"law of {where(j)}",
        "must be 0 (fixed) or 1 (Bernoulli)",
        law,
        "Choose one of the two laws.",
    )
    what = "cost" if costs else "reward"
    checks.rewards(
        "Env", "the outcomes", flip(costs, reward), *flip_ends(costs, *ends), lambda j: f"{what} of {where(j)}"
    )


def _canonical(table: OutcomeArrays) -> OutcomeArrays:
    """Sort each pair's outcomes by (successor, reward, law, ends), add up equal ones, drop zeros, rescale as the MDP does."""
    n_pairs = table.ptr.size - 1
    pair = np.repeat(np.arange(n_pairs), np.diff(table.ptr))
    keep = np.flatnonzero(table.prob)
    keys = (pair, table.succ, table.reward, table.law, table.ends)  # the first one counts most
    order = keep[np.lexsort([key[keep] for key in reversed(keys)])]
    pair, succ, reward, law, ends = (key[order] for key in keys)
    first = np.ones(pair.size, dtype=bool)
    first[1:] = np.any([column[1:] != column[:-1] for column in (pair, succ, reward, law, ends)], axis=0)
    prob = np.bincount(np.cumsum(first) - 1, weights=table.prob[order])
    pair, succ, reward, law, ends = (column[first] for column in (pair, succ, reward, law, ends))
    ptr = np.concatenate(([0], np.cumsum(np.bincount(pair, minlength=n_pairs))))
    return OutcomeArrays(ptr, prob / row_totals(ptr, prob)[pair], succ, reward, law, ends)


def _realised(env: Env) -> tuple[Array, Array, Array, Array, Array]:
    """Return (ptr, prob, succ, reward, ends) of what can really happen, sorted by (pair, reward, successor, ends), equal outcomes added up.

    Where episodes are cut, the states to begin anew from are the outcomes of one pair more.
    """
    mdp = env.mdp
    pair = np.repeat(np.arange(mdp.n_pairs), np.diff(env.out_ptr))
    random = env.out_law == BERNOULLI
    share = (env.out_reward - mdp.r_min) / (mdp.r_max - mdp.r_min)
    prob = np.concatenate((np.where(random, env.out_prob * share, env.out_prob), (env.out_prob * (1 - share))[random]))
    reward = np.concatenate((np.where(random, mdp.r_max, env.out_reward), np.full(random.sum(), mdp.r_min)))
    flags = np.zeros(pair.size, dtype=np.bool_) if env.out_ends is None else env.out_ends
    pair, succ, ends = (np.concatenate((column, column[random])) for column in (pair, env.out_succ, flags))
    if env.step_limit is not None:
        starts = np.flatnonzero(mdp.start)
        ending = (
            np.full(starts.size, mdp.n_pairs),
            mdp.start[starts],
            starts,
            np.zeros(starts.size),
            np.zeros(starts.size),
        )
        columns = zip((pair, prob, succ, reward, ends), ending, strict=True)
        pair, prob, succ, reward, ends = (np.concatenate((old, new.astype(old.dtype))) for old, new in columns)
    order = np.lexsort((ends, succ, reward, pair))
    order = order[prob[order] > 0]
    pair, prob, succ, reward, ends = (column[order] for column in (pair, prob, succ, reward, ends))
    first = np.ones(pair.size, dtype=bool)
    first[1:] = (np.diff(pair) != 0) | (np.diff(reward) != 0) | (np.diff(succ.astype(np.int64)) != 0) | np.diff(ends)
    prob = np.bincount(np.cumsum(first) - 1, weights=prob)
    ptr = np.concatenate(([0], np.cumsum(np.bincount(pair[first], minlength=mdp.n_pairs))))
    return (
        immutable(ptr, np.int64),
        immutable(prob, np.float64),
        immutable(succ[first], np.uint32),
        immutable(reward[first] + 0.0, np.float64),
        immutable(ends[first] if env.step_limit is not None else ends[:0], np.bool_),
    )
