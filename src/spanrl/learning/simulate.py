"""Play a fixed policy: the compiled simulation alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.envs.env import Env
from spanrl.errors import OptionError
from spanrl.kernels.interact import interact
from spanrl.kernels.sampling import Sampler, build_slots
from spanrl.models.checks import SUM_TOL, immutable
from spanrl.models.costs import flip
from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.options import whole_number
from spanrl.seeding import get_state, streams

BUDGET = 1 << 20
"""Steps between two looks at signals: about 10 ms."""


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """What a policy did: ``reward`` in total (−cost, in a model with costs), ``visits`` [S, A], and the last ``state``."""

    horizon: int
    reward: float
    visits: NDArray[np.int64]
    state: int
    costs: bool = False

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<Simulation: {self.horizon:,} steps, average {'cost' if self.costs else 'reward'} {self.mean:.6g}>"

    @property
    def mean(self) -> float:
        """The average reward per step; the average cost, in a model with costs."""
        return flip(self.costs, self.reward / self.horizon)


def simulate(mdp: MDP | Env, policy: Policy, *, horizon: int, seed: int) -> Simulation:
    """Play ``policy`` for ``horizon`` steps from the start distribution, with the rewards of an ``Env`` or the mean rewards of an ``MDP``.

    Where an ``Env`` cuts its episodes, they are cut here, too.

    Args:
        mdp: an ``Env`` or an ``MDP``.
        policy: a policy for it.
        horizon: number of steps, ≥ 1.
        seed: a whole number ≥ 0.

    Returns:
        Rewards and visits, and their means.

    Raises:
        OptionError: an option is out of its range, or the policy is one of another model.

    >>> import spanrl
    >>> env = spanrl.make("three-state")
    >>> result = simulate(env, spanrl.solve(env.mdp).policy, horizon=100_000, seed=0)
    >>> result
    <Simulation: 100,000 steps, average reward 0.66...>
    >>> abs(result.mean - 2 / 3) < 0.01
    True
    """
    env = Env.from_mdp(mdp) if isinstance(mdp, MDP) else mdp
    if not isinstance(env, Env):
        raise OptionError(f"simulate: the model must be an MDP or an Env; got {type(mdp).__name__}. Use make(name).")
    steps = whole_number("simulate", "horizon", horizon)
    rng = streams(seed)[0]
    sampler, pair_of = _joined(env, _weights(env.mdp, policy))
    S = env.mdp.n_states
    tally, left = np.zeros(sampler.succ.size, dtype=np.int64), np.full(2 * S, steps)
    state, words, done = env.reset(rng), get_state(rng), 0
    pairs, unused = np.repeat(np.arange(S), 2), np.zeros(4, dtype=np.uint64)
    while done < steps:
        more, state, _ = interact(
            sampler, pairs, np.zeros(S), False, left, tally, words, unused, state, min(BUDGET, steps - done)
        )
        done += more
    visits = np.zeros((S, env.mdp.n_actions), dtype=np.int64)
    played = pair_of < env.mdp.n_pairs
    pair_of = pair_of[played]
    np.add.at(visits, (env.mdp.pair_state[pair_of], env.mdp.action[pair_of]), tally[played])
    return Simulation(steps, float(np.sum(tally * sampler.reward)), visits, int(state), env.mdp.costs)


def _weights(mdp: MDP, policy: Any) -> NDArray[np.float64]:
    """Return the probability of each pair, once the policy fits the model."""
    shape = (mdp.n_states, mdp.n_actions)
    if not isinstance(policy, Policy) or policy.probs.shape != shape:
        came = policy.probs.shape if isinstance(policy, Policy) else type(policy).__name__
        raise OptionError(f"simulate: the policy must be a Policy of shape {shape}; got {came}.")
    weight: NDArray[np.float64] = policy.probs[mdp.pair_state, mdp.action]
    missing = np.flatnonzero(np.abs(np.bincount(mdp.pair_state, weight, mdp.n_states) - 1.0) > SUM_TOL)
    if missing.size:
        where = mdp.name_of_state(int(missing[0]))
        raise OptionError(f"simulate: the policy plays an action that is not available in state {where}.")
    return weight


def _joined(env: Env, weight: NDArray[np.float64]) -> tuple[Sampler, NDArray[np.int64]]:
    """Return a sampler with one pair per state, whose outcomes are those of all actions weighted by the policy; and their pairs."""
    table, mdp = env.sampler, env.mdp
    n_rows = (
        table.out_ptr.size - 1
    )  # where episodes are cut, the last one is no pair, but the states to begin anew from
    weight, state_of = np.append(weight, 1.0)[:n_rows], np.append(mdp.pair_state, mdp.n_states)[:n_rows]
    row = np.repeat(np.arange(n_rows), np.diff(table.out_ptr))
    prob = env.outcome_probs * weight[row]
    keep = np.flatnonzero(prob > 0)
    ptr = np.searchsorted(state_of[row[keep]], np.arange(state_of[-1] + 2))
    ptr, prob = immutable(ptr, np.int64), immutable(prob[keep], np.float64)
    succ, reward = immutable(table.succ[keep], np.uint32), immutable(table.reward[keep], np.float64)
    start, threshold, successors, outcome = (immutable(part, part.dtype) for part in build_slots(ptr, prob, succ))
    ends = immutable(table.ends[keep] if table.ends.size else table.ends, np.bool_)
    return Sampler(ptr, succ, reward, start, threshold, successors, outcome, ends, env.new_clock()), row[keep]
