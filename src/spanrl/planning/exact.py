"""Policy iteration in decimal arithmetic, for models whose probabilities span too many orders of magnitude for double precision.

The rules of `policy_iteration`, without rules of thumb: values carry bounds on their errors, an action is better only where it is so beyond
them, and more digits are taken until what is left undecided is too small to matter.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, DecimalException
from math import inf
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import SpanrlError
from spanrl.models.mdp import MDP
from spanrl.planning.chain import BIAS_ACCURACY, GAIN_ACCURACY, ChainValue, solve_chain
from spanrl.planning.direct import DIRECT
from spanrl.planning.elimination import Budget, Numbers
from spanrl.planning.precise import DIGITS, Precise, decimal_digits
from spanrl.planning.problem import Problem, Vector

Pairs = NDArray[np.int64]
T = TypeVar("T")

_MAX_POLICIES = 1000


class _Model:
    """The rows of an MDP in decimal numbers."""

    def __init__(self, mdp: MDP, way: Precise) -> None:
        self.mdp, self.pair = mdp, np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.succ_ptr))
        self.state = mdp.pair_state[self.pair]
        self.prob = way.numbers(mdp.prob)
        self.prob[mdp.succ == self.state] = Decimal(0)  # staying is what is left
        self.leave = self.over_rows(self.prob)

    def over_rows(self, terms: Numbers) -> Numbers:
        """Return the sums of ``terms``, one per successor, over the rows [n_pairs]."""
        return np.add.reduceat(terms, self.mdp.succ_ptr[:-1])

    def rise(self, x: Numbers) -> Numbers:
        """Return Σ_x' p(x')(x(x') − x(s)) of every pair."""
        return self.over_rows(self.prob * (x[self.mdp.succ] - x[self.state]))

    def switch(self, pairs: Pairs, value: Numbers, own: int, allowed: NDArray[np.bool_], noise: Numbers) -> Pairs:
        """Return the best allowed pair of each state where its value exceeds ``own``, that of ``pairs``, by more than its noise."""
        lowest = value.min() - 1
        value = np.where(allowed, value, lowest)
        best = np.maximum.reduceat(value, self.mdp.pair_ptr[:-1])
        good = np.flatnonzero(value >= best[self.mdp.pair_state])
        first = good[np.searchsorted(self.mdp.pair_state[good], np.arange(self.mdp.n_states))]
        return np.where((best - own > noise[first]).astype(bool), first, pairs)


def optimal_pairs(mdp: MDP, problem: Problem, pairs: Pairs, *, constant: bool) -> tuple[Pairs, ChainValue]:
    """Return pairs that are optimal from every state, with their gain [S] and bias [S] in double precision, found from ``pairs``.

    ``constant`` tells that the optimal gain is the same in all states. Where it is not, gains of different classes that agree to 700 digits
    count as equal. Raises SpanrlError where that takes too many digits or too long.
    """
    if mdp.n_states > DIRECT:
        raise SpanrlError(f"analyse: {mdp.n_states} states are too many for decimal arithmetic.")
    spread = float(np.ptp(mdp.reward))

    def at(way: Precise) -> tuple[Pairs, ChainValue] | None:
        found, value, undecided = _optimal_pairs(mdp, problem, pairs, way, constant)
        gain, bias = value.gain.astype(np.float64), value.bias.astype(np.float64)
        scale = max(spread, float(np.ptp(bias)))
        good = max(value.gain_error, undecided) <= GAIN_ACCURACY * spread
        good &= max(value.bias_error, undecided * value.time) <= BIAS_ACCURACY * scale
        return (found, value._replace(gain=gain, bias=bias)) if good and np.isfinite(bias).all() else None

    return _with_digits(at, f"analyse: the optimal policy of {mdp.n_states} states")


def _optimal_pairs(
    mdp: MDP, problem: Problem, pairs: Pairs, way: Precise, constant: bool
) -> tuple[Pairs, ChainValue, float]:
    """Return optimal pairs with their value in decimals, and what is undecided: by how much an advantage may still be positive."""
    model, reward = _Model(mdp, way), way.numbers(problem.reward)
    for _ in range(_MAX_POLICIES):
        P, _ = problem.chain(pairs, np.zeros(mdp.n_states))
        value = solve_chain(way, P, problem.reward[pairs])
        gain, bias = value.gain, value.bias
        change = model.rise(gain)
        differs = (gain[mdp.succ] != gain[model.state]).astype(int)
        noise = 2 * Decimal(value.gain_error) * model.over_rows(model.prob * differs)
        better = model.switch(pairs, change, 0, np.ones(mdp.n_pairs, dtype=bool), noise)
        if np.array_equal(better, pairs):
            advantage = reward - gain[mdp.pair_state] + model.rise(bias)
            doubt = 2 * Decimal(value.bias_error) * model.leave + Decimal(value.gain_error)
            better = model.switch(pairs, advantage, 0, (change >= -noise).astype(bool), doubt)
            if np.array_equal(better, pairs):
                return pairs, value, _undecided(model, value, advantage, doubt, way, constant)
        pairs = better
    raise SpanrlError(f"policy iteration: no end after {_MAX_POLICIES} policies.")


def _undecided(
    model: _Model, value: ChainValue, advantage: Numbers, doubt: Numbers, way: Precise, constant: bool
) -> float:
    """Return by how much the gain may still be improved.

    A constant optimal gain is at most max(Lh − h) for any h. Otherwise it must be clear for every transition whether it leads to another
    gain: a chance of 1e-60, waited for long enough, is worth as much as any.
    """
    gain, state, succ = value.gain, model.mdp.pair_state, model.mdp.succ
    if constant:
        return float((gain[state] + advantage + doubt).max() - gain.min())
    same = (value.source[succ] == value.source[model.state]) & (value.source[succ] >= 0)
    near = np.array([abs(one) <= 2 * Decimal(value.gain_error) for one in gain[succ] - gain[model.state]])
    if (near & ~same & (succ != model.state)).any() and not way.has_most_digits:
        return inf
    return float(doubt.max())


def least_times(mdp: MDP, problem: Problem, target: int, pairs: Pairs, updates: Budget, accuracy: float) -> Vector:
    """Return the least expected times [S] to ``target``, right to the relative ``accuracy``, from ``pairs`` that all lead to it.

    Raises SpanrlError where that takes too many digits or too many updates.
    """

    def at(way: Precise) -> Vector | None:
        times, undecided = _least_times(mdp, problem, target, pairs, way)
        rounded = times.astype(np.float64)
        return rounded if undecided <= accuracy and np.isfinite(rounded).all() else None

    return _with_digits(at, f"diameter: the times to state {target}", updates)


def _least_times(mdp: MDP, problem: Problem, target: int, pairs: Pairs, way: Precise) -> tuple[Numbers, float]:
    """Return the times in decimals and ε with τ/(1+ε) ≤ τ* ≤ τ/(1−ε)."""
    model, others = _Model(mdp, way), np.flatnonzero(np.arange(mdp.n_states) != target)
    tau = way.numbers(np.zeros(mdp.n_states))
    every = np.ones(mdp.n_pairs, dtype=bool)
    for _ in range(_MAX_POLICIES):
        chain, _ = problem.chain(pairs, np.zeros(mdp.n_states))
        left = way.numbers(chain[others][:, [target]].toarray()[:, 0])
        found = way.transient(chain[others][:, others], left, way.numbers(np.ones(others.size)))
        tau[others] = found.x
        noise = 2 * Decimal(found.error) * model.leave
        better = model.switch(pairs, -model.rise(tau), 1, every, noise)
        better[target] = pairs[target]
        if np.array_equal(better, pairs):
            return tau, float(noise.max())
        pairs = better
    raise SpanrlError(f"diameter: no end after {_MAX_POLICIES} policies.")


def _with_digits(attempt: Callable[[Precise], T | None], what: str, updates: Budget | None = None) -> T:
    """Return the first result that is good enough, with more and more digits."""
    for digits in DIGITS:
        with decimal_digits(digits, updates) as way:
            try:
                result = attempt(way)
            except (DecimalException, OverflowError):
                continue
        if result is not None:
            return result
    raise SpanrlError(
        f"{what} cannot be found with {DIGITS[-1]} digits: transitions span too many orders of magnitude."
    )
