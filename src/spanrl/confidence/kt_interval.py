"""The interval of the beta-binomial mixture (KT) for a mean in [0, 1], which holds for all numbers of samples at once.

For k successes in n trials, or the sum k of n samples in [0, 1], it is the set of the q in [0, 1] with

    B(k+½, n−k+½)/B(½, ½) ≤ (1/d) qᵏ (1−q)ⁿ⁻ᵏ.

The left side is the likelihood averaged over q with the law Beta(½, ½) of Krichevsky & Trofimov. Divided by the likelihood of the true
mean it is a supermartingale that starts at 1 (a martingale if all samples are 0 or 1), so by Ville's inequality the true mean is in all
these sets, n = 0, 1, 2, …, with probability ≥ 1 − d (Robbins 1970; Howard, Ramdas, McAuliffe & Sekhon 2021).

With q̂ = k/n and kl(p, q) = p ln(p/q) + (1−p) ln((1−p)/(1−q)) the condition reads

    n kl(q̂, q) ≤ ln(1/d) + excess(k, n),   excess = ln of the greatest likelihood over the average one.

Both sides are small where the logarithms of likelihoods are of the order of n, so neither is computed from those:

- ln Γ(x+½) = x ln x − x + ½ ln 2π + s(x) with a small s, and in the excess all but the s, ½ ln n and a constant cancels;
- with q = q̂ − v/n the deviance n kl(q̂, q) is −k ln(1 − v/k) − (n−k) ln(1 + v/(n−k)): its terms are of the order of v, and their rounding
  moves q by no more than roundings of q̂(1−q̂).
"""

from __future__ import annotations

from math import exp, expm1, log, log1p, pi, sqrt

from spanrl.kernels.jit import kernel

_NEGLIGIBLE = 1e-100  # a count as small as this changes no bit of an interval, and dividing by it is still safe
_LOG_2 = log(2.0)
_EXP_8 = exp(8.0)
_CLOSE = 1e-5  # the steps are of third order: after one of this relative size the error is below rounding
_MAX_STEPS = 100  # one to three are taken


@kernel
def kt_interval(k, n, log_level):
    """Return the least and the greatest q with B(k+½, n−k+½)/B(½, ½) ≤ (1/d) qᵏ (1−q)ⁿ⁻ᵏ, (0, 1) if n = 0.

    Args:
        k: sum of the samples, a real number in [0, n]; what rounding puts outside is moved to the nearer end.
        n: number of samples, ≥ 0.
        log_level: ln(1/d) > 0.

    Returns:
        ``(low, high)`` with 0 ≤ low ≤ k/n ≤ high ≤ 1, each end exact to a few units in the last place of the smaller of q and 1 − q,
        as far as a double holds 1 − q. Only for k < ln(1/d) does low lose digits: its relative error is about 1e-16·ln(1/d)/k.
    """
    if n <= 0:
        return 0.0, 1.0
    k = min(max(k, 0.0), n)
    m = n - k
    level = log_level + kt_excess(k, n)
    fall, left = _fall(k, m, level)
    rise, room = _fall(m, k, level)  # failures fall where successes rise
    mean = k / n
    return min(mean, _share(left, m + fall, n)), max(mean, _share(k + rise, room, n))


@kernel
def kt_excess(k, n):
    """Return ln[q̂ᵏ (1−q̂)ⁿ⁻ᵏ / (B(k+½, n−k+½)/B(½, ½))] with q̂ = k/n, for 0 ≤ k ≤ n and n > 0: about ½ ln(πn/2), never below 0."""
    # ln Γ(n+1) has its s at n + ½; n ln(n+½) − n ln n − ½ is what its n ln n leaves.
    return (
        0.5 * log(0.5 * pi * (n + 0.5))
        + (n * log1p(0.5 / n) - 0.5)
        + log_gamma_rest(n + 0.5)
        - log_gamma_rest(k)
        - log_gamma_rest(n - k)
    )


@kernel
def log_gamma_rest(x):
    """Return ln Γ(x+½) − (x ln x − x + ½ ln 2π) for x ≥ 0: between −½ ln 2 and 0.

    From 8 on by the series Σⱼ B₂ⱼ(½)/(2j(2j−1) x²ʲ⁻¹), whose ninth term is below 1e-16 there; below 8 by eight steps of
    Γ(y+1) = y Γ(y), up to x + 8.
    """
    if x < _NEGLIGIBLE:
        return -0.5 * _LOG_2
    y = x if x >= 8.0 else x + 8.0
    u = 1.0 / y
    z = u * u
    series = 1414477.0 / 738017280.0 + z * (-8191.0 / 1277952.0 + z * (118518239.0 / 4010803200.0))
    series = -31.0 / 40320.0 + z * (127.0 / 215040.0 + z * (-511.0 / 608256.0 + z * series))
    series = u * (-1.0 / 24.0 + z * (7.0 / 2880.0 + z * series))
    if x >= 8.0:
        return series
    c = (x + 4.0) * (x + 4.0)
    steps = (c - 12.25) * (c - 6.25) * (c - 2.25) * (c - 0.25)  # (x+½)(x+3/2)…(x+15/2)
    z *= z
    return series + (x * log1p(8.0 / x) - log(_EXP_8 * steps * z * z))


@kernel
def _fall(a, b, level):
    """Return (v, a − v) with v in [0, a] such that −a ln(1 − v/a) − b ln(1 + v/b) = ``level``: how far a of a + b counts may fall.

    The left side D grows with v, like v² first and like −a ln(a−v) in the end: up to a/2 the unknown is v, beyond it ln(a−v).
    """
    if a < _NEGLIGIBLE:
        return 0.0, 0.0
    if b < _NEGLIGIBLE:
        return -a * expm1(-level / a), a * exp(-level / a)
    if level > a * _LOG_2 - b * log1p(0.5 * a / b):
        left = _left(a, b, level)
        return a - left, left
    n = a + b
    root = sqrt(level)
    v_low, v_high = 0.0, 0.75 * a  # the root is at most a/2; rounding gets some room
    v = min(sqrt(2.0 * level * b / n * a) + 2.0 / 3.0 * level * (a - b) / n, 0.5 * a)  # right up to the order v³ of D
    for _ in range(_MAX_STEPS):
        # Halley's step for √D, which is nearly linear in v.
        h = sqrt(-a * log1p(-v / a) - b * log1p(v / b))
        wide, narrow = b + v, a - v
        slope = 0.5 * n / wide * (v / narrow) / h
        curvature = a / (narrow * narrow) + b / (wide * wide)
        step = (h - root) / (slope - 0.25 * (h - root) * (curvature - 2.0 * slope * slope) / (h * slope))
        if abs(step) <= _CLOSE * v:
            v -= step
            break
        if h > root:
            v_high = v
        else:
            v_low = v
        v -= step
        if not v_low < v < v_high:
            v = 0.5 * (v_low + v_high)
    return v, a - v


@kernel
def _left(a, b, level):
    """Return w = a − v for the v of :func:`_fall`, if w ≤ a/2.

    D = ``level`` says w = w₀ eʸ with a ln(a/w₀) = ``level`` + b ln(1+a/b) and y + (b/a) ln(1 − w/(a+b)) = 0. The left side of the latter
    is concave in y with a slope of ½ at least, and not above 0 at y = 0, where Halley's steps begin.
    """
    n = a + b
    start = a * exp(-(level + b * log1p(a / b)) / a)
    y, w = 0.0, start
    for _ in range(_MAX_STEPS):
        wide = n - w
        gap = y + b / a * log1p(-w / n)
        slope = 1.0 - b / a * (w / wide)
        step = gap / (slope + 0.5 * gap * (b / a * (w / wide) * (n / wide)) / slope)
        y -= step
        w = start * exp(y)
        if abs(step) <= _CLOSE:
            break
    return min(w, 0.5 * a)


@kernel
def _share(part, rest, n):
    """Return part/n = 1 − rest/n from the smaller of the two."""
    return part / n if part < rest else 1.0 - rest / n
