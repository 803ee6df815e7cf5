"""UCRL3's interval for a probability: two conditions on q, each of which holds for all numbers of samples at once.

For k successes in n trials, p̂ = k/n, and a level d it is the set of the q in [0, 1] with

    |p̂ − q| ≤ √(2q(1−q) ℓ/n) + ℓ/(3n),         ℓ = η ln(ln n · ln(ηn)/(d ln²η)),  η = 1.12      (Bernstein, by peeling)
    p̂ − q ≤ β √g̲(q)  and  q − p̂ ≤ β √g(q),     β² = 2(1 + 1/n) ln(√(n+1)/d)/n                   (sub-Gaussian, by mixture)

    g(q) = (½ − q)/ln(1/q − 1),   g̲(q) = g(q) for q < ½ and q(1−q) from ½ on      (Bourel, Maillard & Talebi 2020).

**The set is an interval, and p̂ is in it.** √(q(1−q)) is concave; g is half the logarithmic mean of q and 1 − q, which is concave, and the
two pieces of g̲ meet at ½ with equal slopes. So each condition says that a convex function of q, not above 0 at p̂, is not above 0.

**Proof.** Bernoulli(q) is sub-Gaussian with the variance g(q) (Kearns & Saul 1998), above its mean also with q(1−q) if q ≥ ½ (Hoeffding
1963). Mixed over a Gaussian, or over its half, exp(λS − λ²g n/2) is a supermartingale, and Ville's inequality gives the second line: each
side fails, at any n, with probability ≤ d. For the first, cut the numbers into blocks [ηᵏ, ηᵏ⁺¹): Bernstein's maximal inequality fails in
block k with probability ≤ e^(−ℓ/η) ≤ d/(k(k+1)) on each side, and these sum to d over k ≥ 1. Of the blocks below 8 only six
contain a whole number, so the sum is below 0.11 d. All four fail with probability below 2.22 d, for which UCRL3 sets 3 d aside.

Differs from the paper:

- As it is printed, g̲ stands on the side q − p̂ and g on the side p̂ − q. That cannot hold: where q = 0.96 and d = 0.01, one failure
  at the first trial, which has the probability 0.04, would exclude q. Hoeffding's inequality has them as above. For q ≤ ½ it is the same.
- Block k = 0, which is n = 1, has no share of d, and ln 1 = 0: at n = 1 the first condition says nothing.
"""

from __future__ import annotations

from math import exp, inf, log, sqrt, tanh

from spanrl.kernels.jit import kernel

ETA = 1.12
_LOG_ETA = log(ETA)
_SMALLEST = 745.0  # e⁻ˣ is 0 beyond
_EPS = 2.0**-52
_MAX_STEPS = 200  # four to ten are taken


@kernel
def peeling(n, log_level):
    """Return ℓ = η ln(ln n · ln(ηn)/(d ln²η)) of ln(1/d); ∞ for n < 2."""
    if n < 2.0:
        return inf
    return ETA * (log_level + log(log(n) * log(ETA * n) / (_LOG_ETA * _LOG_ETA)))


@kernel
def laplace(n, log_level):
    """Return β = √(2(1 + 1/n) ln(√(n+1)/d)/n) of ln(1/d), n ≥ 1."""
    return sqrt(2.0 * (1.0 + 1.0 / n) * (log_level + 0.5 * log(n + 1.0)) / n)


@kernel
def ucrl3_interval(k, n, log_level):
    """Return the least and the greatest q of the set, (0, 1) if n = 0.

    Args:
        k: number of successes, 0 ≤ k ≤ n.
        n: number of trials.
        log_level: ln(1/d) > 0.

    Returns:
        ``(low, high)`` with 0 ≤ low ≤ k/n ≤ high ≤ 1, each end exact to some roundings of itself; a low end far below k/n, of the size
        e⁻ˣ, to some x roundings of itself.
    """
    if n <= 0.0:
        return 0.0, 1.0
    a, beta = peeling(n, log_level) / n, laplace(n, log_level)
    p, p_c = k / n, (n - k) / n
    low, _ = _bernstein_end(p, p_c, a)
    _, high = _bernstein_end(p_c, p, a)  # failures fall where successes rise
    if p > 0.5 and p - 0.5 >= 0.5 * beta:
        low = max(low, _parabola_end(p, p_c, 0.5 * beta * beta)[0])
    else:
        low = max(low, _shares(_log_odds(p, p_c, beta))[0])
    high = min(high, _shares(_log_odds(p_c, p, beta))[1])
    return min(p, low), max(p, high)


@kernel
def _bernstein_end(p, p_c, a):
    """Return (q, 1 − q) for the least q ≥ 0 with p − q ≤ √(2a q(1−q)) + a/3, where p + p_c = 1."""
    m = p - a / 3.0
    if not m > 0.0:
        return 0.0, 1.0
    return _parabola_end(m, p_c + a / 3.0, a)


@kernel
def _parabola_end(m, m_c, a):
    """Return (q, 1 − q) for the lesser root of (m − q)² = 2a q(1−q), where m + m_c = 1, both in [0, 1]."""
    # (1+2a) q² − 2(m+a) q + m² = 0: q is the product of the roots over the greater one, and 1 − q has the mirrored equation.
    root = sqrt(a * (a + 2.0 * m * m_c))
    return m / (m + a + root) * m, (m_c + a + root) / (1.0 + 2.0 * a)


@kernel
def _log_odds(p, p_c, beta):
    """Return x = ln(1/q − 1) of the q < p with p − q = β √g(q), ∞ if p − q is less for all of them that a double holds.

    In x, g is tanh(x/2)/(2x) and q = 1/(1+eˣ): nothing cancels. Newton's steps, within a bracket.
    """
    if p <= 0.0:
        return inf
    x_low = log(p_c / p) if p_c > 0.0 else -_SMALLEST
    x_high = _SMALLEST
    if _gap(p, p_c, x_high, beta) < 0.0:
        return inf
    q = p - beta * sqrt(_g(x_low))
    x = log((1.0 - q) / q) if 0.0 < q < 1.0 else 0.5 * beta * beta / (p * p)
    for _ in range(_MAX_STEPS):
        if not x_low < x < x_high:
            x = 0.5 * (x_low + x_high)
        gap = _gap(p, p_c, x, beta)
        if gap > 0.0:
            x_high = x
        else:
            x_low = x
        step = gap / _slope(x, beta)
        x -= step
        if abs(step) <= _EPS * abs(x) or x_high - x_low <= _EPS * abs(x):
            break
    return x


@kernel
def _gap(p, p_c, x, beta):
    """Return p − q − β √g(q); the difference is taken where q or 1 − q is small."""
    q, q_c = _shares(x)
    return (p - q if x > 0.0 else q_c - p_c) - beta * sqrt(_g(x))


@kernel
def _slope(x, beta):
    """Return the derivative of the gap with respect to x, nearly: it only steers the steps."""
    q, q_c = _shares(x)
    g = _g(x)
    slope = -x / 24.0 if abs(x) < 1e-3 else (q * q_c - g) / x  # (tanh(x/2))' = 2q(1−q)
    return q * q_c - 0.5 * beta * slope / sqrt(g)


@kernel
def _g(x):
    """Return (½ − q)/ln(1/q − 1) = tanh(x/2)/(2x)."""
    return 0.25 if x == 0.0 else 0.5 * tanh(0.5 * x) / x


@kernel
def _shares(x):
    """Return q = 1/(1+eˣ) and 1 − q."""
    e = exp(-abs(x))
    small, large = e / (1.0 + e), 1.0 / (1.0 + e)
    return (small, large) if x > 0.0 else (large, small)
