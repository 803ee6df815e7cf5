"""Gain and bias of a Markov reward process (P, r), multichain-safe.

With recurrent classes C and the stationary distribution μ_C of each: g is μ_Cᵀr on C, and on transient states the mean of the gains of
the classes reached. The bias is the solution of h = r − g + Ph with μ_Cᵀh = 0 on every class, which is P*h = 0: the bias proper
(Puterman 1994, App. A). Small chains, and large ones whose states can be ordered in a narrow band, are solved directly and the residual
is checked; the others by sweeps that end with a residual of at most 1e-11 of the rewards' range, or raise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanrl.errors import SpanrlError
from spanrl.kernels.chains import solve_transient, stationary_sweeps
from spanrl.kernels.iterate import value_iteration
from spanrl.kernels.layout import PLAIN, Arrays, workspace
from spanrl.models.checks import frozen
from spanrl.planning.banded import band_order
from spanrl.planning.multichain import closed_components
from spanrl.planning.problem import Vector, longest_step

DIRECT = 2000
"""Up to this many states in a class the linear systems are solved directly; beyond, only where their band is narrow."""

_RESIDUAL = 1e-11
_DIRECT_RESIDUAL = 1e-9
_ROUNDING = 1.4e-14  # in units of the vector: below this a residual is noise
_DAMPING = 0.9  # a chain may be periodic
_MAX_SWEEPS = 10**7
_ENTRIES_A_CALL = 2 * 10**7  # a kernel call lasts 0.1 s at the most


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
        left = into.sum(axis=1)
        one = len(closed) == 1  # then there is nothing to solve, and nothing to round
        gain[transient] = gain[recurrent][0] if one else _transient(inside, left, into @ gain[recurrent])
        bias[transient] = _transient(inside, left, r[transient] - gain[transient] + into @ bias[recurrent])
    return gain, bias


def _recurrent(P: Any, r: Vector) -> tuple[float, Vector]:
    """Return gain and bias of an irreducible chain."""
    order = _elimination_order(P)
    return _recurrent_sweeps(P, r) if order is None else _recurrent_direct(P, r, order)


def _recurrent_direct(P: Any, r: Vector, order: NDArray[Any]) -> tuple[float, Vector]:
    """Solve (I − P)h + g e = r with h = 0 in the last state, and μ(I − P) = 0, by one sparse factorisation."""
    from scipy.sparse import csc_array, hstack

    n = r.size
    matrix = _leaving(P, np.zeros(n)).tocsr()[order][:, order].tocsc()
    factor = _factor(hstack((matrix[:, : n - 1], csc_array(np.ones((n, 1))))))  # the last column makes room for g
    solution = factor.solve(r[order])
    gain = float(solution[-1])
    last = np.zeros(n)
    last[-1] = 1.0
    mu = factor.solve(last, trans="T")  # μᵀ(I − P) = 0 in all columns but the last, μᵀe = 1 there
    solution[-1] = 0.0
    bias = np.empty(n)
    bias[order] = solution - mu @ solution
    residual = float(np.abs(r - gain + P @ bias - bias).max())
    if not residual <= _DIRECT_RESIDUAL * float(np.abs(r).max() + np.abs(bias).max()):
        raise SpanrlError(
            f"evaluate: a chain of {n} states is too ill-conditioned to evaluate: a residual of {residual:.3g} is left."
        )
    return gain, bias


def _recurrent_sweeps(P: Any, r: Vector) -> tuple[float, Vector]:
    """Iterate damped relative values and the stationary distribution until both equations hold to 1e-11 of the scale."""
    arrays = _plain(P)
    reward, ws = frozen(r, np.float64), workspace(arrays)
    v, u = np.zeros(r.size), np.empty(r.size)
    tol, a = _RESIDUAL * max(float(np.ptp(r)), 1e-300), _DAMPING * longest_step(arrays)
    for n in _calls(arrays):
        _, lo, hi, _, done, _ = value_iteration(arrays, reward, 1.0, ws, v, u, np.inf, tol, 0.0, 0.0, a, 0, n, np.inf)
        tol = max(tol, _ROUNDING * float(np.abs(v).max()))
        if done:
            break
    else:
        raise _too_slow(r.size)
    transposed = _plain(P.T.tocsr())
    mu, work = np.full(r.size, 1.0 / r.size), np.empty(r.size)
    for n in _calls(arrays):
        if stationary_sweeps(transposed, mu, work, a, _RESIDUAL, n) <= _RESIDUAL:
            return (lo + hi) / 2, v - mu @ v
    raise _too_slow(r.size)


def transient_solution(P: Any, left: Vector, b: Vector) -> Vector | None:
    """Solve x = b + Px directly for a transient block P that is left with the probabilities ``left``; None where that costs too much."""
    order = _elimination_order(P)
    if order is None:
        return None
    x = np.empty(b.size)
    x[order] = _factor(_leaving(P, left).tocsr()[order][:, order]).solve(b[order])
    return x


def _transient(P: Any, left: Vector, b: Vector) -> Vector:
    """Solve x = b + Px for a transient block P that is left with the probabilities ``left``."""
    direct = transient_solution(P, left, b)
    if direct is not None:
        return direct
    arrays, x = _plain(P.tocsr()), np.zeros(b.size)
    scale = max(float(np.abs(b).max()), 1e-300)
    for n in _calls(arrays):
        if solve_transient(arrays, b, x, n) <= _RESIDUAL * max(scale, float(np.abs(x).max())):
            return x
    raise _too_slow(b.size)


def _elimination_order(P: Any) -> NDArray[Any] | None:
    """Return the order in which to eliminate the states of a small or banded chain; None where that would fill too much."""
    n = P.shape[0]
    if n <= DIRECT:
        return np.arange(n)
    P = P.tocsr()
    return band_order(n, np.repeat(np.arange(n), np.diff(P.indptr)), P.indices)


def _leaving(P: Any, left: Vector) -> Any:
    """Return I − P with 1 − p(s, s) summed from what leaves s: exact also where p(s, s) rounds to 1 (the idea of GTH)."""
    from scipy.sparse import diags_array

    others = P - diags_array(P.diagonal())
    return diags_array(others.sum(axis=1) + left) - others


def _factor(matrix: Any) -> Any:
    """Return the sparse LU factors of a matrix, or say that it is singular to working precision.

    A large one comes in the order of its band; with row pivots its factors stay within three times the band.
    """
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    natural = {"permc_spec": "NATURAL"} if matrix.shape[0] > DIRECT else {}
    try:
        return splu(csc_array(matrix), **natural)
    except RuntimeError:
        raise SpanrlError(
            f"evaluate: the linear system of a chain of {matrix.shape[0]} states is singular to working precision: some states are "
            "left with a probability too small to compute with. Drop such transitions."
        ) from None


def _calls(arrays: Arrays) -> Iterator[int]:
    """Yield the number of sweeps of each kernel call: short calls, until the sweeps are used up."""
    n = max(1, _ENTRIES_A_CALL // max(1, arrays.succ.size))
    return (n for _ in range(-(-_MAX_SWEEPS // n)))


def _too_slow(n: int) -> SpanrlError:
    return SpanrlError(
        f"evaluate: no convergence on {n} states of a chain after {_MAX_SWEEPS:g} sweeps: it mixes too slowly."
    )


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
