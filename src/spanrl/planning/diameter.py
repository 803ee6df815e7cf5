"""The diameter D = max_{s≠s'} of the least expected time from s to s' (Jaksch et al. 2010).

For each target the least times τ solve τ(s) = min_a [1 + Σ_x p(x|s,a) τ(x)], τ(target) = 0. A pair is judged by the time until it
leaves s, (1 + Σ_{x≠s} p(x)τ(x)) / Σ_{x≠s} p(x), so that a large p(s) costs no digits. Gauss–Seidel sweeps with chosen pairs end with a
certificate; where they take too long, policy iteration with a direct solution ends with a policy that nothing improves.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import SpanrlError
from spanrl.kernels.chains import hitting_times, pair_times, pairs_toward
from spanrl.models.mdp import MDP
from spanrl.planning.chain import transient_solution
from spanrl.planning.problem import Problem, Vector, prepare
from spanrl.terminal import error_console

Reverse = tuple[NDArray[np.int64], NDArray[np.int64]]

_TOL = 1e-11  # relative accuracy that the sweeps certify
_INNER, _BUDGET = 20, 50  # sweeps between two choices of the pairs, choices a kernel call
_PATIENCE = 20  # kernel calls before the direct way is tried
_MAX_CALLS = 20_000
_MAX_POLICIES = 1000
_IMPROVES = 1e-12


def diameter(mdp: MDP, *, progress: bool = False) -> float:
    """Return D; infinite where some state cannot be reached from some other.

    The relative accuracy is 1e-11, or about D·1e-16 where that is more: the times are as sensitive as that to rounding of the rows.
    """
    if mdp.n_states == 1:
        return 0.0
    problem, reverse = prepare(mdp), _reverse(mdp)
    largest = 0.0
    for target in _targets(mdp.n_states, progress):
        times = _times_to(mdp, problem, target, reverse)
        if times is None:
            return np.inf
        largest = max(largest, float(times.max()))
    return largest


def times_to(mdp: MDP, target: int) -> Vector | None:
    """Return the least expected times τ(s → target) [S] in a communicating model; None where some state cannot reach it."""
    return _times_to(mdp, prepare(mdp), target, _reverse(mdp))


def _times_to(mdp: MDP, problem: Problem, target: int, reverse: Reverse) -> Vector | None:
    m, S = problem.arrays, mdp.n_states
    pair, queue, tau = np.empty(S, dtype=np.int64), np.empty(S, dtype=np.int64), np.zeros(S)
    if pairs_toward(*reverse, mdp.pair_state, target, pair, queue) < S:
        return None
    proper = pair.copy()  # leads to the target: the first policy of the direct way
    for n_calls in range(_MAX_CALLS):
        if hitting_times(m, target, queue, tau, pair, _TOL, _INNER, _BUDGET) <= _TOL:
            return tau
        if n_calls == _PATIENCE:
            direct = _times_directly(mdp, problem, target, proper)
            if direct is not None:
                return direct
    raise SpanrlError(
        f"diameter: the times to state {target} did not converge (so far {tau.max():.6g}). Use diameter=False to leave it out."
    )


def _times_directly(mdp: MDP, problem: Problem, target: int, pair: NDArray[np.int64]) -> Vector | None:
    """Find τ by policy iteration from a policy that reaches the target; None where that does not work out."""
    others = np.flatnonzero(np.arange(mdp.n_states) != target)
    tau, value = np.zeros(mdp.n_states), np.empty(mdp.n_pairs)
    for _ in range(_MAX_POLICIES):
        chain, _ = problem.chain(pair, tau)
        inside, into = chain[others][:, others], chain[others][:, [target]]
        solution = transient_solution(inside, np.asarray(into.sum(axis=1)).ravel(), np.ones(others.size))
        if solution is None or not (solution > 0).all():  # too large, or too ill-conditioned
            return None
        tau[others] = solution
        pair_times(problem.arrays, target, tau, value)
        best = np.minimum.reduceat(value, mdp.pair_ptr[:-1])
        good = np.flatnonzero(value <= best[mdp.pair_state])
        chosen = good[np.searchsorted(mdp.pair_state[good], np.arange(mdp.n_states))]
        better = best < value[pair] * (1 - _IMPROVES)
        better[target] = False
        if not better.any():
            return tau
        pair = np.where(better, chosen, pair)
    return None


def _reverse(mdp: MDP) -> Reverse:
    """Return, compressed by state, the pairs that may lead to it."""
    pair = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.succ_ptr))
    order = np.argsort(mdp.succ, kind="stable")
    ptr = np.concatenate(([0], np.cumsum(np.bincount(mdp.succ, minlength=mdp.n_states))))
    return ptr, pair[order]


def _targets(S: int, progress: bool) -> Iterable[int]:
    """Yield all states, with a progress bar on standard error where asked for."""
    if not progress:
        return range(S)
    from rich.progress import track

    return track(range(S), description="diameter", console=error_console(), transient=True)
