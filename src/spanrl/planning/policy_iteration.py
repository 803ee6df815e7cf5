"""Howard's policy iteration for plain MDPs, multichain-safe (Puterman 1994, Sec. 9.2): exact, the oracle of the solver.

Evaluate (g, h) of the policy; improve first on max_a p(·|s,a)ᵀg, then, among the actions that attain it, on max_a r(s,a) + p(·|s,a)ᵀh;
keep the old action where it is still a maximiser. Ends after finitely many policies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import SpanrlError
from spanrl.models.checks import frozen
from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.planning.banded import band_order
from spanrl.planning.chain import chain_gain_bias
from spanrl.planning.iteration import Iteration
from spanrl.planning.problem import Problem, Vector, prepare

_MAX_POLICIES = 1000
_WARM_SWEEPS = 20_000
_WARM_ENTRIES = 4 * 10**8  # about two seconds
_WARM_TOL = 1e-7
_IMPROVES = 1e-9  # in units of the spread of the rewards; rounding of the evaluation lies far below
_FEW_STATES = 1000


@dataclass(frozen=True, eq=False)
class OptimalPolicy:
    """A policy that is optimal from every state, with its gain [S] and bias [S]."""

    policy: Policy
    gain: Vector
    bias: Vector


def solves_directly(mdp: MDP) -> bool:
    """Tell whether policy iteration is cheap: few states, or many in a narrow band."""
    if mdp.n_states <= _FEW_STATES:
        return True
    row = np.repeat(mdp.pair_state, np.diff(mdp.succ_ptr))
    return band_order(mdp.n_states, row, mdp.succ) is not None


def unit(reward: Vector) -> float:
    """Return the scale of a model: the spread of its rewards (1 where they are all equal)."""
    return float(np.ptp(reward)) or 1.0


def differ(gains: Vector, reward: Vector) -> bool:
    """Tell whether gains differ by more than rounding."""
    return bool(np.ptp(gains) > _IMPROVES * unit(reward))


def policy_iteration(mdp: MDP, v: Vector | None = None) -> OptimalPolicy:
    """Return an optimal policy with its gain and bias; the optimal gain may differ between states.

    The first policy is greedy at v, by default after some sweeps of value iteration: a policy far from the optimum can have a bias
    so large that rounding hides every improvement.
    """
    shift = float(mdp.reward.min() / 2 + mdp.reward.max() / 2)  # a large constant in the rewards would eat the digits
    centred = replace(prepare(mdp), reward=frozen(mdp.reward - shift, np.float64))
    scale = unit(mdp.reward)
    if v is None:
        v = np.zeros(mdp.n_states)
        sweeps = min(_WARM_SWEEPS, max(200, _WARM_ENTRIES // mdp.succ.size))
        Iteration(centred, v, inf, _WARM_TOL * scale, 0, None, None, sweeps).run(adapt=False)
    pairs = centred.best(v, most=_WARM_TOL * scale).pair
    for _ in range(_MAX_POLICIES):
        gain, bias = chain_gain_bias(*centred.chain(pairs, v))
        improved = _improve(mdp, centred, pairs, gain, bias, scale)
        if np.array_equal(improved, pairs):
            return OptimalPolicy(_policy(mdp, pairs), gain + shift, bias)
        pairs = improved
    raise SpanrlError(
        f"policy iteration: no end after {_MAX_POLICIES} policies; the model is too ill-conditioned. "
        "Use method='value-iteration'."
    )


def _improve(
    mdp: MDP, problem: Problem, pairs: NDArray[np.int64], gain: Vector, bias: Vector, scale: float
) -> NDArray[np.int64]:
    """Return better pairs: by the gain where that is possible, otherwise by the bias.

    A pair is better by the gain where Σ p(x)(g(x) − g(s)) > 0, judged against its own terms: the chance of a better class may be tiny.
    """
    state = mdp.pair_state
    pair = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.succ_ptr))
    rise = gain[mdp.succ] - gain[state[pair]]
    rise[np.abs(rise) <= _IMPROVES * scale] = 0.0
    change = np.bincount(pair, mdp.prob * rise, mdp.n_pairs).astype(np.float64)
    noise = _IMPROVES * np.bincount(pair, mdp.prob * np.abs(rise), mdp.n_pairs)
    if (change > noise).any():
        top, first = _best(mdp, change)
        return np.where(top > noise[first], first, pairs)
    value = np.where(change >= -noise, problem.values(bias), -np.inf)
    top, first = _best(mdp, value)
    return np.where(value[pairs] >= top - _IMPROVES * max(scale, 1e-3 * float(np.ptp(bias))), pairs, first)


def _best(mdp: MDP, value: Vector) -> tuple[Vector, NDArray[np.int64]]:
    """Return the largest value of each state and the first pair that has it."""
    top = np.maximum.reduceat(value, mdp.pair_ptr[:-1])
    good = np.flatnonzero(value >= top[mdp.pair_state])
    return top, good[np.searchsorted(mdp.pair_state[good], np.arange(mdp.n_states))]


def _policy(mdp: MDP, pairs: NDArray[np.int64]) -> Policy:
    probs = np.zeros((mdp.n_states, mdp.n_actions))
    probs[np.arange(mdp.n_states), mdp.action[pairs]] = 1.0
    probs.flags.writeable = False  # so that it is not copied
    return Policy(probs, state_names=mdp.state_names, action_names=mdp.action_names)
