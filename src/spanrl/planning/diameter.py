"""The diameter D = max_{s≠s'} of the least expected time from s to s' (Jaksch et al. 2010).

For each target the least times τ solve τ(s) = min_a [1 + Σ_x p(x|s,a) τ(x)], τ(target) = 0. A pair is judged by the time until it
leaves s, (1 + Σ_{x≠s} p(x)τ(x)) / Σ_{x≠s} p(x), so that a large p(s) costs no digits. Sweeps choose the pairs and end with a certificate:
with residuals of at most ε, τ/(1+ε) ≤ τ* ≤ τ/(1−ε). Between them the times of the chosen pairs are found by IDR, or by Gauss–Seidel
sweeps where that does not help. Where these take too long, policy iteration with a direct solution ends with a policy that nothing
improves; where times are so long that their rounding hides a step, it goes on in decimals.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import SpanrlError
from spanrl.kernels.chains import freeze_toward, hitting_times, pairs_toward
from spanrl.kernels.krylov import gather, iterate, new_system, start
from spanrl.kernels.policies import longest_rows, new_chain
from spanrl.models.mdp import MDP
from spanrl.planning.direct import DIRECT, Direct
from spanrl.planning.elimination import Budget
from spanrl.planning.exact import least_times
from spanrl.planning.problem import Problem, Vector, prepare
from spanrl.terminal import error_console

Reverse = tuple[NDArray[np.int64], NDArray[np.int64]]

ACCURACY = 1e-9
"""Relative accuracy of the diameter."""

_LARGE_ACCURACY = 1e-6  # where decimals would take too long
_TOL = 1e-11  # residuals at which the sweeps end
_UNIT = 2.0**-53
_MOST_UPDATES, _FEW_UPDATES = 5e8, 2e7  # of decimals, for all targets together: some minutes, some ten seconds
_REDUCTION, _MOST_ITERATIONS = 1e-4, 200  # what a system leaves of its residual, iterations
_INNER, _BUDGET = 20, 50  # sweeps between two choices of the pairs, choices a kernel call
_PATIENCE = 2  # kernel calls before the direct way is tried
_MAX_CALLS = 20_000
_MAX_POLICIES = 1000


def diameter(mdp: MDP, *, progress: bool = False, patient: bool = True) -> float:
    """Return D; infinite where some state cannot be reached from some other.

    The relative accuracy is 1e-9, on models too large for decimal arithmetic 1e-6. Raises SpanrlError where that is out of reach; unless
    ``patient``, some ten seconds of decimals are out of reach.
    """
    if mdp.n_states == 1:
        return 0.0
    problem, reverse = prepare(mdp), _reverse(mdp)
    largest, updates = 0.0, Budget(_MOST_UPDATES if patient else _FEW_UPDATES)
    for target in _targets(mdp.n_states, progress):
        times = _times_to(mdp, problem, target, reverse, updates)
        if times is None:
            return np.inf
        largest = max(largest, float(times.max()))
    return largest


def times_to(mdp: MDP, target: int) -> Vector | None:
    """Return the least expected times τ(s → target) [S] in a communicating model; None where some state cannot reach it."""
    return _times_to(mdp, prepare(mdp), target, _reverse(mdp), Budget(_MOST_UPDATES))


def _times_to(mdp: MDP, problem: Problem, target: int, reverse: Reverse, updates: Budget) -> Vector | None:
    m, S = problem.arrays, mdp.n_states
    pair, queue, tau = np.empty(S, dtype=np.int64), np.empty(S, dtype=np.int64), np.zeros(S)
    if pairs_toward(*reverse, mdp.pair_state, target, pair, queue) < S:
        return None
    proper = pair.copy()  # leads to the target: the first policy of the direct way
    _solve_times(problem, target, queue, tau, pair)
    for n_calls in range(_MAX_CALLS):
        residual = hitting_times(m, target, queue, tau, pair, _TOL, _INNER, _BUDGET)
        if residual <= _TOL and _rounding(mdp, tau) <= ACCURACY:
            return tau
        if residual <= _TOL or n_calls == _PATIENCE:
            direct = _times_directly(mdp, problem, target, proper, updates)
            if direct is not None:
                return direct
            if residual <= _TOL:
                break
    raise SpanrlError(
        f"diameter: the times to state {target} did not converge (so far {tau.max():.6g}). Use diameter=False to leave it out."
    )


def _solve_times(problem: Problem, target: int, order: NDArray[np.int64], tau: Vector, pair: NDArray[np.int64]) -> None:
    """Bring τ near the least times by policy iteration, each policy evaluated by IDR, as long as that helps."""
    m, S = problem.arrays, tau.size
    chain, d = new_chain(S, longest_rows(m.pair_ptr, m.succ_ptr)), np.empty(S)
    system = new_system(chain)
    for _ in range(_MAX_POLICIES):
        if hitting_times(m, target, order, tau, pair, _TOL, _INNER, 1) <= _TOL:
            return
        freeze_toward(m, target, tau, pair, chain, d)
        progress = iterate(chain, system, start(chain, system, 1.0, d), _REDUCTION, _MOST_ITERATIONS)
        gather(chain, system)
        moved = tau + system.x
        if not (progress.norm <= progress.first * _REDUCTION and np.isfinite(moved).all() and moved.min() >= 0.0):
            return
        tau[:] = moved


def _rounding(mdp: MDP, tau: Vector) -> float:
    """Return by how much a residual 1 + Σ p(x)(τ(x) − τ(s)) may be off."""
    return float((mdp.max_support + 4) * 2 * _UNIT * tau.max())


def _times_directly(mdp: MDP, problem: Problem, target: int, pair: NDArray[np.int64], updates: Budget) -> Vector | None:
    """Find τ by policy iteration from a policy that reaches the target; None where the model is too large for it."""
    best: _Times | None = None
    for way in (Direct(), Direct(refined=True)):
        found = _policies(mdp, problem, target, pair if best is None else best.pair, way)
        best = found or best
        if best is not None and best.accuracy <= ACCURACY:
            return best.tau
    if mdp.n_states <= DIRECT:
        try:
            return least_times(mdp, problem, target, pair if best is None else best.pair, updates, ACCURACY)
        except SpanrlError:
            pass
    if best is None or best.accuracy <= _LARGE_ACCURACY:
        return None if best is None else best.tau
    raise SpanrlError(
        f"diameter: times of {best.tau.max():.3g} to state {target} are too long to be computed to {_LARGE_ACCURACY:g} on "
        f"{mdp.n_states} states. Use diameter=False to leave it out."
    )


class _Times(NamedTuple):
    """Times to a target by a policy that nothing improves beyond rounding, and their relative accuracy."""

    pair: NDArray[np.int64]
    tau: Vector
    accuracy: float


@np.errstate(over="ignore", invalid="ignore")  # what is not finite is looked at
def _policies(mdp: MDP, problem: Problem, target: int, pair: NDArray[np.int64], way: Direct) -> _Times | None:
    """Improve policies until nothing does; None where one cannot be solved directly."""
    others = np.flatnonzero(np.arange(mdp.n_states) != target)
    state = np.repeat(mdp.pair_state, np.diff(mdp.succ_ptr))
    move = way.numbers(np.where(mdp.succ == state, 0.0, mdp.prob))
    tau = way.numbers(np.zeros(mdp.n_states))
    rounding = (mdp.max_support + 4) * float(np.finfo(tau.dtype).eps)
    for _ in range(_MAX_POLICIES):
        chain, _ = problem.chain(pair, np.zeros(mdp.n_states))
        inside, into = chain[others][:, others], chain[others][:, [target]]
        try:
            found = way.transient(inside, way.numbers(into.toarray()[:, 0]), way.numbers(np.ones(others.size)))
        except SpanrlError:
            return None
        if not ((found.x > 0) & np.isfinite(found.x)).all():  # too ill-conditioned
            return None
        tau[others] = found.x
        # By how much a pair is better than the policy: −(1 + Σ p(x)(τ(x) − τ(s))).
        gap = -1 - np.add.reduceat(move * (tau[mdp.succ] - tau[state]), mdp.succ_ptr[:-1])
        gap[mdp.pair_state == target] = -1
        best = np.maximum.reduceat(gap, mdp.pair_ptr[:-1])
        noise = rounding * float(tau.max())
        if not (best > 2 * noise).any():
            off = max(float(best.max()), float(np.abs(gap[pair[others]]).max()), 0.0)
            return _Times(pair, tau.astype(np.float64), off + noise)
        good = np.flatnonzero(gap >= best[mdp.pair_state])
        chosen = good[np.searchsorted(mdp.pair_state[good], np.arange(mdp.n_states))]
        pair = np.where(best > 2 * noise, chosen, pair)
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
