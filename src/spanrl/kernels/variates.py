"""Random variates of a posterior: normal, gamma, beta and Dirichlet, from the agent's own stream of SFC64 words.

``words`` is the state of the generator, uint64 [4], read and advanced in place; a variate is a function of it and of its parameters, which
are floats > 0. A Dirichlet row is a row of independent gammas over their sum, a beta the case of two; they are drawn by rejection:

    normal        V / U of a point (U, V) uniform in {v² ≤ −4u² ln u}: Kinderman and Monahan (1977), bounds by Leva (1992)
    Gamma(α), α≥1 d·(1 + X/√(9d))³ with d = α − 1/3 and X normal: Marsaglia and Tsang (2000)
    Gamma(α), α<1 Gamma(α+1)·U^(1/α), as a logarithm, since for α = 1e-3 nearly half of them are below the least double

Functions are those of :mod:`math`, which compiled and interpreted take from the same C library; numpy has logarithms of its own.
"""

from __future__ import annotations

import math

import numpy as np

from spanrl.kernels.jit import kernel
from spanrl.kernels.sampling import sfc64

_STEP = 2.0**-52
_LEAST, _MOST = 2.0**-1022, 1.0 - 2.0**-53  # the smallest normal double, and the largest double below 1
_WIDTH = 1.7156  # ≥ 2·√(2/e): the region of Kinderman and Monahan has |v| ≤ √(2/e)


@kernel
def uniform(words):
    """Return a uniform variate in (0, 1): an odd multiple of 2⁻⁵³, so that neither it nor 1 minus it is ever 0."""
    x, words[0], words[1], words[2], words[3] = sfc64(words[0], words[1], words[2], words[3])
    return (np.float64(np.int64(x >> np.uint64(12))) + 0.5) * _STEP


@kernel
def normal(words):
    """Return a standard normal variate, from 2.7 words on average; there is a logarithm in one of 80 only."""
    while True:
        u, v = uniform(words), _WIDTH * (uniform(words) - 0.5)
        if _is_below(u, v):
            return v / u


@kernel
def _is_below(u, v):
    """Tell whether v² ≤ −4u² ln u. Two ellipses of Leva, one inside the region and one around it, spare the logarithm."""
    x, y = u - 0.449871, abs(v) + 0.386595
    Q = x * x + y * (0.19600 * y - 0.25472 * x)
    if Q < 0.27597:
        return True
    return Q <= 0.27846 and v * v <= -4.0 * u * u * math.log(u)


@kernel
def gamma(shape, words):
    """Return a Gamma(shape, 1) variate for a shape in [1, 1e12]; it is > 0."""
    if shape == 1.0:  # a state that was never seen, with the uniform prior: most of the entries of a posterior
        return -math.log(uniform(words))
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(words)
        t = c * x
        if t > -1.0 and _is_accepted(d, x, t, uniform(words)):
            v = 1.0 + t
            return d * (v * v * v)


@kernel
def _is_accepted(d, x, t, u):
    """Tell whether ln u < x²/2 + d·(1 − v + ln v), v = (1 + t)³; 1 − 0.0331x⁴ is below the exponential of that.

    Written in t, since d times the rounding of v would be 1e-4 for d = 1e12; that of t costs 1e-9.
    """
    square = x * x
    if u < 1.0 - 0.0331 * (square * square):
        return True
    return math.log(u) < 0.5 * square + d * (3.0 * math.log1p(t) - t * (3.0 + t * (3.0 + t)))


@kernel
def log_gamma(shape, words):
    """Return the logarithm of a Gamma(shape, 1) variate for a shape in (0, 1e12]; it is finite for shapes ≥ 1e-300."""
    if shape >= 1.0:
        return math.log(gamma(shape, words))
    return math.log(gamma(shape + 1.0, words)) + math.log(uniform(words)) / shape


@kernel
def beta(a, b, words):
    """Return a Beta(a, b) variate; it is in (0, 1), also where the nearest double is 0 or 1."""
    if min(a, b) >= 1.0:  # no underflow: see dirichlet_row
        x = gamma(a, words)
        p = x / (x + gamma(b, words))
    else:
        gap = log_gamma(a, words) - log_gamma(b, words)
        odds = math.exp(-abs(gap))  # of the smaller against the larger: no overflow
        p = (odds if gap < 0.0 else 1.0) / (1.0 + odds)
    return min(max(p, _LEAST), _MOST)


@kernel
def dirichlet_row(prior, succ, times, words, out):
    """Fill ``out`` [S] with a Dirichlet variate over all states, of parameters ``prior``, and prior + times[j] for the states succ[j].

    It is ≥ 0 and sums to 1. States are drawn in the order of their numbers, in whatever order they are listed.
    """
    for s in range(out.size):
        out[s] = prior
    for j in range(succ.size):
        out[succ[j]] += times[j]
    if prior >= 1.0:  # gammas lie between 1e-48 and 1e13 then: without logarithms, in 0.6 of the time
        total = 0.0
        for s in range(out.size):
            out[s] = gamma(out[s], words)
            total += out[s]
    else:
        total = _draw_in_logs(words, out)
    for s in range(out.size):
        out[s] /= total


@kernel
def _draw_in_logs(words, out):
    """Replace shapes by gammas, all divided by the largest of them, and return the sum."""
    top, total = -np.inf, 0.0
    for s in range(out.size):
        out[s] = log_gamma(out[s], words)
        top = max(top, out[s])
    for s in range(out.size):
        out[s] = math.exp(out[s] - top)
        total += out[s]
    return total
