"""Howard's policy iteration for plain MDPs, multichain-safe (Puterman 1994, Sec. 9.2): exact, the oracle of the solver.

Evaluate (g, h) of the policy; improve first on max_a p(·|s,a)ᵀg, then, among the actions that attain it, on max_a r(s,a) + p(·|s,a)ᵀh;
keep the old action where it is still a maximiser. Ends after finitely many policies.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import SpanrlError
from spanrl.models.checks import immutable
from spanrl.models.mdp import MDP
from spanrl.models.policy import Policy
from spanrl.models.solution import span
from spanrl.planning.chain import BIAS_ACCURACY, GAIN_ACCURACY, ChainValue, is_accurate, refined, solve_chain
from spanrl.planning.direct import Direct, elimination_order
from spanrl.planning.exact import optimal_pairs
from spanrl.planning.iteration import Iteration
from spanrl.planning.problem import Problem, Vector, prepare
from spanrl.planning.rounds import Rounds

_MAX_POLICIES = 1000
_WARM_SWEEPS = 20_000
_WARM_ENTRIES = 4 * 10**8  # about two seconds
_WARM_TOL = 1e-7
_MEMORY = 1e8
_IMPROVES = 1e-9  # in units of the spread of the rewards; rounding of the evaluation lies far below
_FEW_STATES = 1000
_ILL = 1e-9  # a policy's equations must hold to this part of their terms


class OptimalPolicy(NamedTuple):
    """A policy that is optimal from every state, with its gain [S] and bias [S]."""

    policy: Policy
    gain: Vector
    bias: Vector


def solves_directly(mdp: MDP) -> bool:
    """Tell whether policy iteration is cheap: few states, or many with a graph whose factors stay small."""
    if mdp.n_states <= _FEW_STATES:
        return True
    from scipy.sparse import csr_array

    ptr = mdp.succ_ptr[mdp.pair_ptr]
    graph = csr_array((mdp.prob, mdp.succ.astype(np.int64), ptr), shape=(mdp.n_states, mdp.n_states))
    return elimination_order(graph) is not None


def unit(reward: Vector) -> float:
    """Return the scale of a model: the spread of its rewards (1 where they are all equal)."""
    return float(np.ptp(reward)) or 1.0


def differ(gains: Vector, reward: Vector) -> bool:
    """Tell whether gains differ by more than rounding."""
    return bool(np.ptp(gains) > _IMPROVES * unit(reward))


def policy_iteration(mdp: MDP, v: Vector | None = None) -> OptimalPolicy:
    """Return an optimal policy with its gain and bias in double precision; the optimal gain may differ between states.

    The first policy is greedy at v, by default after some sweeps of value iteration: a policy far from the optimum can have a bias
    so large that rounding hides every improvement. Nothing is certified here: one sweep at the bias does that where the gain is
    constant, :func:`accurate_optimum` elsewhere.
    """
    centred, shift = _centred(mdp)
    pairs, value = _iterate(mdp, centred, _first(mdp, centred, v))
    return OptimalPolicy(_policy(mdp, pairs), value.gain + shift, value.bias)


def accurate_optimum(mdp: MDP, *, constant: bool) -> OptimalPolicy:
    """Return an optimal policy with its gain and bias, as accurate as :func:`spanrl.planning.chain.chain_gain_bias` promises.

    ``constant`` tells that the optimal gain is the same in all states. Where double precision cannot tell whether the last policy is
    optimal, extended precision does, or decimals. Raises SpanrlError where none can.
    """
    centred, shift = _centred(mdp)
    if np.ptp(mdp.reward) == 0.0:
        return OptimalPolicy(_policy(mdp, mdp.pair_ptr[:-1]), np.full(mdp.n_states, shift), np.zeros(mdp.n_states))
    pairs = _first(mdp, centred, None)
    value = None
    try:
        pairs, value = _iterate(mdp, centred, pairs)
        if not _is_certain(mdp, centred, value, constant):
            value = refined(*centred.chain(pairs, np.zeros(mdp.n_states)))
    except SpanrlError:
        value = None
    if value is None or not _is_certain(mdp, centred, value, constant):
        pairs, value = optimal_pairs(mdp, centred, pairs, constant=constant)
    return OptimalPolicy(_policy(mdp, pairs), (value.gain + shift).astype(np.float64), value.bias.astype(np.float64))


def _centred(mdp: MDP) -> tuple[Problem, float]:
    """Return the problem with rewards around 0, and what was taken off: a large constant in the rewards would eat the digits."""
    shift = float(mdp.reward.min() / 2 + mdp.reward.max() / 2)
    return replace(prepare(mdp), reward=immutable(mdp.reward - shift, np.float64)), shift


def _first(mdp: MDP, problem: Problem, v: Vector | None) -> NDArray[np.int64]:
    """Return the pairs that are greedy at v, by default after some sweeps."""
    scale = unit(mdp.reward)
    if v is None:
        v = np.zeros(mdp.n_states)
        sweeps = min(_WARM_SWEEPS, max(200, _WARM_ENTRIES // mdp.succ.size))
        iteration = Iteration(problem, v, inf, _WARM_TOL * scale, 0, None, None, sweeps)
        Rounds(iteration, may_solve=True, memory=_MEMORY).run()
        v = iteration.v
    return problem.best(v, most=_WARM_TOL * scale).pair


def _iterate(mdp: MDP, problem: Problem, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], ChainValue]:
    """Return a policy that nothing improves, in double precision, and its value."""
    scale = unit(mdp.reward)
    for _ in range(_MAX_POLICIES):
        value = solve_chain(Direct(), *problem.chain(pairs, np.zeros(mdp.n_states)))
        if not value.gain_error <= _ILL * float(np.abs(problem.reward).max() + np.abs(value.bias).max()):
            raise SpanrlError("policy iteration: a policy is too ill-conditioned to be evaluated in double precision.")
        improved = _improve(mdp, problem, pairs, value.gain, value.bias, scale)
        if np.array_equal(improved, pairs):
            return pairs, value
        pairs = improved
    raise SpanrlError(f"policy iteration: no end after {_MAX_POLICIES} policies; the model is too ill-conditioned.")


def _is_certain(mdp: MDP, problem: Problem, value: ChainValue, constant: bool) -> bool:
    """Tell whether a policy's value is accurate and the policy optimal: no action is better by more than the accuracy promised allows.

    A constant optimal gain is at most max(Lh − h) for any h. Otherwise only actions that keep the gain are compared by the bias, and it
    must be clear for every transition whether it leads to another gain.
    """
    scale = unit(mdp.reward)
    pair = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.succ_ptr))
    state = mdp.pair_state[pair]
    move = np.where(mdp.succ == state, 0.0, mdp.prob)
    there, here, gain = value.bias[mdp.succ], value.bias[state], value.gain[mdp.pair_state]
    rise = np.add.reduceat(move * (there - here), mdp.succ_ptr[:-1])
    size = np.add.reduceat(move * (np.abs(there) + np.abs(here)), mdp.succ_ptr[:-1])
    rounding = np.finfo(value.bias.dtype).eps / 2 * (np.diff(mdp.succ_ptr) + 4)
    advantage = problem.reward + rise + rounding * (np.abs(problem.reward) + np.abs(gain) + size)
    if constant:
        undecided = float((advantage - value.gain.min()).max())
    else:
        same = (value.source[mdp.succ] == value.source[state]) & (value.source[state] >= 0)
        near = np.abs(value.gain[mdp.succ] - value.gain[state]) <= _IMPROVES * scale
        if (near & ~same & (mdp.succ != state)).any():
            return False
        change, noise = _gain_change(mdp, pair, value.gain.astype(np.float64), scale)
        undecided = float(np.where(change >= -noise, advantage - gain, 0.0).max())
    good = is_accurate(value, problem.reward) and undecided + value.gain_error <= GAIN_ACCURACY * scale
    return bool(good and undecided * value.time <= BIAS_ACCURACY * max(scale, span(value.bias)))


def _improve(
    mdp: MDP, problem: Problem, pairs: NDArray[np.int64], gain: Vector, bias: Vector, scale: float
) -> NDArray[np.int64]:
    """Return better pairs: by the gain where that is possible, otherwise by the bias.

    A pair is better by the gain where Σ p(x)(g(x) − g(s)) > 0, judged against its own terms: the chance of a better class may be tiny.
    """
    pair = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.succ_ptr))
    change, noise = _gain_change(mdp, pair, gain, scale)
    if (change > noise).any():
        top, first = _best(mdp, change)
        return np.where(top > noise[first], first, pairs)
    value = np.where(change >= -noise, problem.values(bias), -np.inf)
    top, first = _best(mdp, value)
    return np.where(value[pairs] >= top - _IMPROVES * max(scale, 1e-3 * float(np.ptp(bias))), pairs, first)


def _gain_change(mdp: MDP, pair: NDArray[np.int64], gain: Vector, scale: float) -> tuple[Vector, Vector]:
    """Return Σ p(x)(g(x) − g(s)) of every pair, and what of it may be rounding."""
    rise = gain[mdp.succ] - gain[mdp.pair_state[pair]]
    rise[np.abs(rise) <= _IMPROVES * scale] = 0.0
    change = np.bincount(pair, mdp.prob * rise, mdp.n_pairs).astype(np.float64)
    return change, _IMPROVES * np.bincount(pair, mdp.prob * np.abs(rise), mdp.n_pairs).astype(np.float64)


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
