"""The largest mean over a ball of the Kullback–Leibler divergence, max{qᵀw : KL(p, q) = Σ pᵢ ln(pᵢ/qᵢ) ≤ ε}.

The sum runs over the successors that are listed, those with pᵢ > 0: what a q gives to other states costs nothing but the mass that the
listed ones lose. With W the largest value of all states, for every ν ≥ W and every q of the ball, by the inequality of the means,

    ν − qᵀw ≥ Σ qᵢ(ν − wᵢ) ≥ e^{−KL(p, q)} Π (ν − wᵢ)^{pᵢ}   so that   qᵀw ≤ ν − e^{−ε} Π (ν − wᵢ)^{pᵢ},

and the least of these bounds is attained (Filippi, Cappé & Garivier 2010, Sec. IV, by the multipliers): by qᵢ ∝ pᵢ/(ν − wᵢ) where their
divergence is ε or, where it is less even at ν = W, by these with ν = W and the mass that is left on the best state. The bound is convex in
ν: what ν is off matters in second order only, and the value found is never too small.

With the gaps zᵢ = W − wᵢ, their mean m = Σ pᵢzᵢ, ρᵢ = zᵢ/m and θ = m/(m + ν − W) in (0, 1] all is free of units and of the level of w:

    ν − wᵢ = xᵢ m/θ,   xᵢ = 1 − θ + θρᵢ,   Σ pᵢxᵢ = 1,
    W − max qᵀw = m(1 + (e^{L − ε} − 1)/θ),   L = Σ pᵢ ln xᵢ,
    f(θ) = KL(p, q(θ)) = L + ln Σ pᵢ/xᵢ.

f grows from 0, like θ²·Var(ρ)/2 at first, like −(1 − p₁) ln(1 − θ) at last if the best state is listed. Both are tame in s = −ln(1 − θ), in
which Newton's steps are taken for √f, kept in a bracket: on f itself, in ν, they diverge. Mostly two to four suffice.
"""

from __future__ import annotations

from math import exp, expm1, inf, log, log1p, sqrt

import numpy as np

from spanrl.kernels.jit import kernel

_ROUGHLY, _PRECISELY = 1e-7, 1e-12
"""How far s may be off, relatively: for values, whose error is the square of it, and for distributions."""

KL_ROUNDING = 8e-15
"""What rounding may take from a value, in units of the largest one, with up to a dozen successors: logarithms take more than products."""

_SMALL = 1.0 / 64.0
_LEAST_MEAN = 1e-290  # of the gaps, below which they are none
_LAST = 2.0**50  # θ/(1 − θ) at which ν is W but for rounding
_LARGE = 1e6
_FAR = 10.0  # the longest step in s, and the first
_MOST_STEPS = 100


@kernel
def _log_excess(u, x):
    """Return ln x − u for x = 1 + u, without the loss of digits for small u."""
    if abs(u) >= _SMALL:
        return log(x) - u
    series = 1.0 / 7.0 + u * (-1.0 / 8.0 + u * (1.0 / 9.0 - u / 10.0))
    series = 1.0 / 3.0 + u * (-1.0 / 4.0 + u * (1.0 / 5.0 + u * (-1.0 / 6.0 + u * series)))
    return u * u * (u * series - 0.5)


@kernel
def _tilted(listed, p, first, end, w, top, scale, theta, left):
    """Return (L, R, θ·dR/dθ) for R = Σ pᵢ/xᵢ − 1; ``scale`` is 1/m and ``left`` 1 − θ.

    As Σ pᵢuᵢ = 0 for u = x − 1, these are sums of squares: nothing cancels however small θ is.
    """
    logs, ratio, slope, j, last, one = 0.0, 0.0, 0.0, np.uint64(first), np.uint64(end), np.uint64(1)
    while j < last:
        rho = (top - w[listed[j]]) * scale
        x, u = left + theta * rho, theta * (rho - 1.0)
        share = p[j] * u * u / x
        logs += p[j] * _log_excess(u, x)
        ratio += share
        slope += share * (1.0 + x) / x
        j += one
    return logs, ratio, slope


@kernel
def kl_answer(listed, p, first, end, w, top, radius, close):
    """Solve for the row first:end of ``listed`` with the distribution p, the values w and the largest of these, ``top``.

    Returns:
        ``(gap, scale, theta, left, share, moved)``: the maximum is top − gap. It is attained by qⱼ = share·pⱼ/xⱼ with
        xⱼ = left + theta·scale·(top − wⱼ), and ``moved`` more on a best state. A row that lists nothing allows everything.
    """
    if first == end:
        return 0.0, 0.0, 0.0, 1.0, 0.0, 1.0
    mean, least, spread, j, last, one = 0.0, inf, 0.0, np.uint64(first), np.uint64(end), np.uint64(1)
    while j < last:
        z = top - w[listed[j]]
        mean += p[j] * z
        least = min(least, z)
        j += one
    if mean < _LEAST_MEAN or radius <= 0.0:
        return mean, 0.0, 0.0, 1.0, 1.0, 0.0
    scale = 1.0 / mean
    if least * scale * _LAST > 1.0:  # the best state is not listed, and ν may be W
        logs, ratio, _ = _tilted(listed, p, first, end, w, top, scale, 1.0, 0.0)
        f = logs + log1p(ratio)
        if f <= radius:
            kept = exp(f - radius)
            return mean * exp(logs - radius), scale, 1.0, 0.0, kept / (1.0 + ratio), 1.0 - kept
    j = np.uint64(first)
    while j < last:
        rho = (top - w[listed[j]]) * scale
        spread += p[j] * (rho - 1.0) * (rho - 1.0)
        j += one
    t, low, high, theta, kept = expm1(min(sqrt(2.0 * radius / spread), _FAR)), 0.0, _LAST, 1.0, 1.0
    for _ in range(_MOST_STEPS):
        theta = t / (1.0 + t)
        logs, ratio, slope = _tilted(listed, p, first, end, w, top, scale, theta, 1.0 / (1.0 + t))
        f = logs + log1p(ratio)
        low, high = (low, t) if f > radius else (t, high)
        growth = slope / (1.0 + ratio) - ratio  # θ·df/dθ = t·df/ds
        step = 2.0 * (sqrt(radius * f) - f) * t / growth if growth > 0.0 else _FAR
        if abs(step) <= close * min(t, 1.0):
            break
        if low == _LAST:
            kept = exp(f - radius)
            break
        t += (1.0 + t) * expm1(min(step, _FAR))
        if not low < t < high:
            t = _between(low, high)
    gap = mean * (1.0 + expm1(logs - radius) / theta)
    return max(gap, 0.0), scale, theta, 1.0 / (1.0 + t), kept / (1.0 + ratio), 1.0 - kept


@kernel
def _between(low, high):
    """Return the next t where a step of Newton's leaves the bracket; its upper end is tried itself when t is large."""
    if low == 0.0:
        return high / 16.0
    if high == _LAST:
        return 16.0 * low if low < _LARGE else _LAST
    return sqrt(low * high)


@kernel
def kl_values(m, reward, sign, ws, pairs, q):
    """Set q(i) = r(i) + sign·max{pᵀw : p in KL ball i}."""
    succ_ptr, listed, p, radius, w, top = m.succ_ptr, m.succ, m.low, m.slack, ws.w, ws.keys[0]
    for i in pairs:
        gap, _, _, _, _, _ = kl_answer(listed, p, succ_ptr[i], succ_ptr[i + 1], w, top, radius[i], _ROUGHLY)
        q[i] = reward[i] + sign * (top - gap)


@kernel
def kl_row(m, ws, i, coef, at):
    """Write the distribution that attains the maximum of pair i over its listed successors, from ``coef[at]`` on.

    Returns what the best state, ``ws.order[0]``, is given besides.
    """
    first, end, listed, p, w, top = m.succ_ptr[i], m.succ_ptr[i + 1], m.succ, m.low, ws.w, ws.keys[0]
    _, scale, theta, left, share, moved = kl_answer(listed, p, first, end, w, top, m.slack[i], _PRECISELY)
    for j in range(first, end):
        coef[at + j - first] = share * p[j] / (left + theta * scale * (top - w[listed[j]]))
    return moved
