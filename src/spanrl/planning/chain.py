"""Gain and bias of a Markov reward process (P, r), multichain-safe.

With recurrent classes C and the stationary distribution μ_C of each: g is μ_Cᵀr on C, and on transient states the mean of the gains of
the classes reached. The bias is the solution of h = r − g + Ph with μ_Cᵀh = 0 on every class, which is P*h = 0: the bias proper
(Puterman 1994, App. A). Small chains are solved directly; large ones by sweeps that end with a residual of at most 1e-10 of the rewards'
range, or raise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import SpanrlError
from spanrl.kernels.chains import solve_transient, stationary_sweeps
from spanrl.kernels.iterate import value_iteration
from spanrl.kernels.layout import PLAIN, Arrays, workspace
from spanrl.models.checks import frozen
from spanrl.planning.multichain import closed_components
from spanrl.planning.problem import Vector

DIRECT = 2000
"""Up to this many states in a class the linear systems are solved directly."""

_RESIDUAL = 1e-11
_CHUNK = 1000
_MAX_CHUNKS = 10_000


def chain_gain_bias(P: Any, r: Vector) -> tuple[Vector, Vector]:
    """Return gain [S] and bias [S] of the chain P (scipy sparse) with rewards r."""
    S = r.size
    P = P.tocsr()
    row = np.repeat(np.arange(S), np.diff(P.indptr))
    label, closed = closed_components(S, row, P.indices)
    gain, bias = np.zeros(S), np.zeros(S)
    order = np.argsort(label, kind="stable")
    bounds = np.searchsorted(label[order], np.arange(label.max() + 2))
    recurrent = np.zeros(S, dtype=bool)
    for k in closed:
        states = order[bounds[k] : bounds[k + 1]]
        recurrent[states] = True
        if states.size == 1:
            gain[states] = r[states]
        else:
            gain[states], bias[states] = _recurrent(P[states][:, states] if states.size < S else P, r[states])
    transient = np.flatnonzero(~recurrent)
    if transient.size:
        into, inside = P[transient][:, np.flatnonzero(recurrent)], P[transient][:, transient]
        gain[transient] = _transient(inside, into @ gain[recurrent])
        bias[transient] = _transient(inside, r[transient] - gain[transient] + into @ bias[recurrent])
    return gain, bias


def _recurrent(P: Any, r: Vector) -> tuple[float, Vector]:
    """Return gain and bias of an irreducible chain."""
    if r.size <= DIRECT:
        return _recurrent_direct(P, r)
    return _recurrent_sweeps(P, r)


def _recurrent_direct(P: Any, r: Vector) -> tuple[float, Vector]:
    """Solve (I − P)h + g e = r with h(0) = 0, and μ(I − P) = 0, by one sparse factorisation."""
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import splu

    n = r.size
    system = (eye_array(n, format="csc") - csc_array(P)).tolil()
    system[:, 0] = np.ones((n, 1))  # the unknown h(0) = 0 makes room for g
    factor = splu(csc_array(system))
    solution = factor.solve(r)
    gain, bias = float(solution[0]), solution.copy()
    bias[0] = 0.0
    unit = np.zeros(n)
    unit[0] = 1.0
    mu = factor.solve(unit, trans="T")  # μᵀ(I − P) = 0 off the first column, μᵀe = 1 in it
    return gain, bias - mu @ bias


def _recurrent_sweeps(P: Any, r: Vector) -> tuple[float, Vector]:
    """Iterate damped relative values and the stationary distribution until both equations hold to 1e-11 of the scale."""
    n = r.size
    arrays = _plain(P)
    reward, ws = frozen(r, np.float64), workspace(arrays)
    v, u = np.zeros(n), np.empty(n)
    tol = _RESIDUAL * max(float(np.ptp(r)), 1e-300)
    for _ in range(_MAX_CHUNKS):
        _, lo, hi, _, done = value_iteration(arrays, reward, 1.0, ws, v, u, np.inf, tol, 0.0, 0.0, 0.9, 0, _CHUNK)
        tol = max(tol, 4e-16 * float(np.ptp(v)))  # rounding limits the width
        if done:
            break
    else:
        raise SpanrlError(
            f"evaluate: no convergence on a chain of {n} states; its gain is in [{lo:.9g}, {hi:.9g}]. It mixes too slowly."
        )
    transposed = _plain(P.T.tocsr())
    mu, work = np.full(n, 1.0 / n), np.empty(n)
    for _ in range(_MAX_CHUNKS):
        if stationary_sweeps(transposed, mu, work, 0.9, _RESIDUAL, _CHUNK) <= _RESIDUAL:
            break
    else:
        raise SpanrlError(
            f"evaluate: the stationary distribution of a chain of {n} states did not converge. It mixes too slowly."
        )
    return (lo + hi) / 2, v - mu @ v


def _transient(P: Any, b: Vector) -> Vector:
    """Solve x = b + Px for a transient block P."""
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import splu

    n = b.size
    if n <= DIRECT:
        return np.asarray(splu(csc_array(eye_array(n) - P)).solve(b))
    arrays, x = _plain(P.tocsr()), np.zeros(n)
    scale = max(float(np.abs(b).max()), 1e-300)
    for _ in range(_MAX_CHUNKS):
        change = solve_transient(arrays, b, x, _CHUNK)
        if change <= _RESIDUAL * max(scale, float(np.abs(x).max())):
            return x
    raise SpanrlError(f"evaluate: no convergence on {n} transient states; they are left too slowly.")


def _plain(P: Any) -> Arrays:
    empty = frozen(np.empty(0), np.float64)
    return Arrays(
        PLAIN,
        frozen(np.arange(P.shape[0] + 1), np.int64),
        frozen(P.indptr, np.int64),
        frozen(P.indices, np.uint32),
        frozen(P.data, np.float64),
        empty,
        empty,
        empty,
    )


def is_recurrent_everywhere(P: Any) -> NDArray[np.bool_]:
    """Return which states of a chain are recurrent."""
    P = P.tocsr()
    label, closed = closed_components(P.shape[0], np.repeat(np.arange(P.shape[0]), np.diff(P.indptr)), P.indices)
    return np.isin(label, closed)
