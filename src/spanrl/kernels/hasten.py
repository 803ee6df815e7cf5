"""Value iteration on a plain model in fewer and cheaper sweeps; only sweeps over all actions certify anything.

* *short lists*: most sweeps take only the actions that were nearly best in the last sweep over all of them, copied into rows of their own.
  An action may be left out by mistake; the next sweep over all actions finds it.
* *extrapolation*: where the last step is nearly λ times the one before, all further ones together are nearly λ/(1−λ) times the last
  (Aitken). One slow mode, such as two halves that are seldom left, or a period of two, is gone at once. A leap that widens the bracket
  is taken back.

A sweep is one pass: it goes from v to v + a(Lv − v) − shift, keeps the value of each pair and returns the bracket on its way.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from spanrl.kernels.extract import best_pairs, best_values
from spanrl.kernels.jit import allocating, kernel

# The numbers below are rules of thumb; none of them touches the certificate.
_REACH = 0.6  # of a step: actions this far behind the best are kept
_FEW = 0.2  # of the pairs beyond one a state: a list is made where no more are left; branches are mispredicted where numbers vary much
_SHORT = 1.02  # pairs a state: a list that is not worth cutting again
_SHRINK = 0.1  # the bracket narrows by this much before a list is cut again
_CLOSE = 0.9  # of tol: the bracket of a list that is worth a sweep over all actions
_LONG = 24  # sweeps over a list before all actions are looked at again
_EVERY = 8  # sweeps between two looks at the steps
_LEAST, _MOST = 0.5, 0.999999  # |λ| and λ of modes that are extrapolated; λ ≥ −1
_CLEAN = 0.25  # of the last step: what extrapolation may leave
_PATIENCE = 100  # sweeps in which the bracket must halve
_IDLE, _STILL = 30, 0.99  # sweeps in which it must become narrower than that
_ROUNDING = 1.8e-15  # eight units in the last place of the largest value

GO_ON, CLOSED, STUCK = 0, 1, 2


class Rows(NamedTuple):
    """The pairs of each state and their rows: a plain model, or room for a list of some of its pairs."""

    pair_ptr: Any  # int64 [S+1]
    succ_ptr: Any  # int64 [n_pairs+1]
    succ: Any  # uint32 [n]
    prob: Any  # float64 [n]
    reward: Any  # float64 [n_pairs]


class Pace(NamedTuple):
    """Where an iteration stands between two calls."""

    blank: bool  # whether v = 0: then there is nothing to multiply
    at: int = 0  # v is row ``at`` of the three last vectors
    lo: float = -inf  # the bracket of the last sweep over all actions
    hi: float = inf
    shift: float = 0.0
    halve: float = inf  # width of which the bracket must get to a half
    near: float = 0.0  # the width at the last sweep over all actions, where a list is to be made from it
    leap: float = 0.0  # how many times the last step was added to v by extrapolation, before this sweep
    since_look: int = 0  # sweeps since steps were looked at
    since_half: int = 0  # sweeps since the bracket got to a half


@kernel
def sweep(rows, v, out, q, a, shift):
    """Set q to the value of each pair at v, and out = v + a(Lv − v) − shift; return (min(Lv − v), max(Lv − v))."""
    pair_ptr, succ_ptr, succ, prob, reward = rows.pair_ptr, rows.succ_ptr, rows.succ, rows.prob, rows.reward
    lo, hi = np.inf, -np.inf
    i, j, one, two = np.uint64(0), np.uint64(0), np.uint64(1), np.uint64(2)
    for s in range(v.size):
        best, last = -np.inf, np.uint64(pair_ptr[s + 1])
        while i < last:
            value = reward[i]
            end = np.uint64(succ_ptr[i + one])
            while j + one < end:
                value += prob[j] * v[succ[j]]
                value += prob[j + one] * v[succ[j + one]]
                j += two
            if j < end:
                value += prob[j] * v[succ[j]]
                j += one
            q[i] = value
            best = max(best, value)
            i += one
        d = best - v[s]
        lo = min(lo, d)
        hi = max(hi, d)
        out[s] = v[s] + a * d - shift
    return lo, hi


@kernel
def first_sweep(rows, out, q, a):
    """Do what :func:`sweep` does at v = 0 without a shift."""
    pair_ptr, reward = rows.pair_ptr, rows.reward
    lo, hi = np.inf, -np.inf
    i, one = np.uint64(0), np.uint64(1)
    for s in range(out.size):
        best, last = -np.inf, np.uint64(pair_ptr[s + 1])
        while i < last:
            q[i] = reward[i]
            best = max(best, reward[i])
            i += one
        lo = min(lo, best)
        hi = max(hi, best)
        out[s] = a * best
    return lo, hi


@kernel
def widen(v, lo, hi):
    """Return (lo, hi), widened by eight units in the last place of the largest value, for what rounding has taken from Lv and Lv − v."""
    size = 0.0
    for s in range(v.size):
        size = max(size, abs(v[s]))
    size = _ROUNDING * (size + max(abs(lo), abs(hi)))
    return lo - size, hi + size


@kernel
def find_near(pair_ptr, q, reach, pairs, ptr):
    """Write the pairs within ``reach`` of the best of their state, and where those of each state begin; return how many there are.

    ``ptr`` may be the same memory as ``pair_ptr``.
    """
    n, i, one = np.uint64(0), np.uint64(0), np.uint64(1)
    ptr[0] = 0
    for s in range(ptr.size - 1):
        best, first, last = -np.inf, i, np.uint64(pair_ptr[s + 1])
        while i < last:
            best = max(best, q[i])
            i += one
        i, least = first, best - reach
        while i < last:
            pairs[n] = i  # overwritten by the next one where it is not within reach
            n += np.uint64(q[i] >= least)
            i += one
        ptr[s + 1] = n
    return n


@kernel
def copy_rows(rows, pairs, n, out):
    """Copy the rows of the first n of ``pairs``, which rise; ``out`` may be the same memory as ``rows``."""
    at, one = np.uint64(0), np.uint64(1)
    out.succ_ptr[0] = 0
    for k in range(n):
        i = np.uint64(pairs[k])
        j, end = np.uint64(rows.succ_ptr[i]), np.uint64(rows.succ_ptr[i + one])
        out.reward[k] = rows.reward[i]
        while j < end:
            out.succ[at] = rows.succ[j]
            out.prob[at] = rows.prob[j]
            j += one
            at += one
        out.succ_ptr[k + 1] = at


@kernel
def extrapolate(x, y, z):
    """Where z − y is nearly λ(y − x), up to constants, add f = λ/(1−λ) times z − y to z; return f, or 0 where it is not."""
    S, sum_1, sum_2, squares, products = x.size, 0.0, 0.0, 0.0, 0.0
    for s in range(S):
        d, e = y[s] - x[s], z[s] - y[s]
        sum_1 += d
        sum_2 += e
        squares += d * d
        products += d * e
    squares -= sum_1 * sum_1 / S
    mode = (products - sum_1 * sum_2 / S) / squares if squares > 0.0 else 0.0
    if not (abs(mode) >= _LEAST and -1.0 <= mode <= _MOST):
        return 0.0
    f = mode / (1.0 - mode)
    rest_low, rest_high, low, high = np.inf, -np.inf, np.inf, -np.inf
    for s in range(S):
        d, e = y[s] - x[s], z[s] - y[s]
        low, high = min(low, e), max(high, e)
        e -= mode * d
        rest_low, rest_high = min(rest_low, e), max(rest_high, e)
    if not abs(f) * (rest_high - rest_low) <= _CLEAN * (high - low):
        return 0.0
    for s in range(S):
        z[s] += f * (z[s] - y[s])
    return f


@kernel
def take_back(y, z, f):
    """Undo z ← z + f(z − y)."""
    for s in range(y.size):
        z[s] = (z[s] + f * y[s]) / (1.0 + f)


@allocating
def new_list(S, n_pairs, n):
    """Return room for a list of pairs."""
    return Rows(
        np.empty(S + 1, np.int64),
        np.empty(n_pairs + 1, np.int64),
        np.empty(n, np.uint32),
        np.empty(n),
        np.empty(n_pairs),
    )


@allocating
def hasten(model, x, q, pace, tol, a, budget, left):
    """Sweep until the bracket over all actions is at most ``tol`` wide, it does not narrow any more, or the budget is spent.

    v is ``x[pace.at]``. At least ``budget`` sweeps are made, with those over the list that is under way, and at most ``left``, the last
    one over all actions. On success q holds the values of all pairs at v. Returns (sweeps, what came of it, pace). Where the budget ends
    does not matter: lists are made from q at the beginning of the sweep that needs them.
    """
    blank, at, lo, hi, shift, halve, near, leap, since_look, since_half = pace
    S, n_pairs, n, outcome = x.shape[1], model.reward.size, 0, GO_ON
    few, pairs, some = S + _FEW * (n_pairs - S), np.empty(n_pairs + 1, np.int64), new_list(S, n_pairs, model.succ.size)
    listed, since_all, cut = False, 0, 0.0
    while outcome == GO_ON and n < left and (n < budget or listed):
        if near > 0.0:
            kept = find_near(model.pair_ptr, q, _REACH * a * near, pairs, some.pair_ptr)
            listed, since_all, cut, near = kept <= few, 0, _SHRINK * near, 0.0
            if listed:
                copy_rows(model, pairs, kept, some)
        n += 1
        since_look += 1
        since_half += 1
        v, out = x[at], x[(at + 1) % 3]
        if listed and since_all < _LONG and n < left:
            low, high = sweep(some, v, out, q, a, shift)
            since_all += 1
            listed = high - low > _CLOSE * tol
            if listed and high - low <= cut and some.pair_ptr[S] > _SHORT * S:
                cut = _SHRINK * (high - low)
                copy_rows(
                    some, pairs, find_near(some.pair_ptr, q, _REACH * a * (high - low), pairs, some.pair_ptr), some
                )
        else:
            low, high = first_sweep(model, out, q, a) if blank else sweep(model, v, out, q, a, shift)
            blank, before = False, hi - lo
            lo, hi = widen(v, low, high)
            if hi - lo <= tol:
                outcome = CLOSED
                break
            listed = False
            if leap != 0.0 and hi - lo > before:
                take_back(x[(at + 2) % 3], v, leap)
                leap = 0.0
                continue
            leap = 0.0
            if hi - lo <= halve / 2.0:
                halve, since_half = hi - lo, 0
            elif since_half > _PATIENCE or (since_half > _IDLE and hi - lo > _STILL * halve):
                outcome = STUCK
            near = high - low if n_pairs > S else 0.0
        at = (at + 1) % 3
        shift = a * (low + high) / 2.0
        if since_look >= _EVERY and outcome == GO_ON and n + 1 < left:  # a leap is looked at, and taken back if need be
            since_look = 0
            leap = extrapolate(x[(at + 1) % 3], x[(at + 2) % 3], x[at])
            if leap != 0.0:
                listed, near = False, 0.0
    return n, outcome, Pace(blank, at, lo, hi, shift, halve, near, leap, since_look, since_half)


@kernel
def choose(pair_ptr, q, most, tie, noise, top, pair, at_pair):
    """Set top to the largest q of each state, pair to the first one that ties with it and at_pair to its q.

    Ties are values within ``tie`` of the spread of all values and within ``most``, or within ``noise`` of the largest.
    """
    low, high = best_values(pair_ptr, q, 1.0, top)
    best_pairs(pair_ptr, q, 1.0, top, max(min(tie * (high - low), most), noise * max(abs(low), abs(high))), pair)
    for s in range(top.size):
        at_pair[s] = q[pair[s]]
