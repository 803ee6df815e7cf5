"""The diameter D = max_{s≠s'} of the least expected time from s to s' (Jaksch et al. 2010)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import SpanrlError
from spanrl.kernels.chains import hitting_times, pairs_toward
from spanrl.models.mdp import MDP
from spanrl.planning.problem import Vector, prepare

Reverse = tuple[NDArray[np.int64], NDArray[np.int64]]

_TOL = 1e-11  # relative accuracy, certified; rounding allows no less than a few 1e-16 of the time itself
_INNER = 20
_BUDGET = 50
_MAX_CALLS = 20_000


def diameter(mdp: MDP, *, progress: bool = False) -> float:
    """Return D to a relative accuracy of 1e-11; infinite where some state cannot be reached with certainty from some other."""
    S = mdp.n_states
    if S == 1:
        return 0.0
    reverse = _reverse(mdp)
    largest = 0.0
    for target in _targets(S, progress):
        times = times_to(mdp, target, reverse)
        if times is None:
            return np.inf
        largest = max(largest, float(times.max()))
    return largest


def times_to(mdp: MDP, target: int, reverse: Reverse | None = None) -> Vector | None:
    """Return the least expected times τ(s → target) [S]; None where some state cannot reach it.

    Only for communicating models: there a state that can come nearer always exists, so that the first policy is proper.
    """
    rev_ptr, rev_pair = reverse or _reverse(mdp)
    m, S = prepare(mdp).arrays, mdp.n_states
    pair, queue, tau = np.empty(S, dtype=np.int64), np.empty(S, dtype=np.int64), np.zeros(S)
    if pairs_toward(rev_ptr, rev_pair, mdp.pair_state, target, pair, queue) < S:
        return None
    for _ in range(_MAX_CALLS):
        if hitting_times(m, target, queue, tau, pair, _TOL, _INNER, _BUDGET) <= max(_TOL, 1e-15 * float(tau.max())):
            return tau
    raise SpanrlError(
        f"diameter: the times to state {target} did not converge (so far {tau.max():.6g}); the model is left too slowly."
    )


def _reverse(mdp: MDP) -> Reverse:
    """Return, compressed by state, the pairs that may lead to it."""
    pair = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.succ_ptr))
    order = np.argsort(mdp.succ, kind="stable")
    ptr = np.concatenate(([0], np.cumsum(np.bincount(mdp.succ, minlength=mdp.n_states))))
    return ptr, pair[order]


def _targets(S: int, progress: bool):  # type: ignore[no-untyped-def]
    """Yield all states, with a progress bar on standard error where asked for."""
    if not progress:
        return range(S)
    from rich.console import Console
    from rich.progress import track

    return track(range(S), description="diameter", console=Console(stderr=True), transient=True)
