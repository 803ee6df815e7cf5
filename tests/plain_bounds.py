"""The sets of UCRL2B, UCRL3 and KL-UCRL in plain numpy, from their formulas alone, for rewards in [0, 1]; and NOSS, one state at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import exp, inf, lgamma, log, sqrt
from typing import Any

import numpy as np

from spanrl import reference

DELTA = 0.05
ETA = 1.12


def crossing(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return the last x between ``inside``, where a condition holds, and ``outside``, at which it does."""
    if holds(outside):
        return outside
    for _ in range(100):
        x = (inside + outside) / 2
        inside, outside = (x, outside) if holds(x) else (inside, x)
    return inside


# --- UCRL2B -----------------------------------------------------------------------------------------------------------


def ucrl2b_set(counts: Any, allowed: np.ndarray, factor: float = 6.0) -> reference.Plausible:
    """Return [r̂ ± β_r] and [p̂ ± β_p] with β = 2√(σ̂² l/N) + 6 l/N, l = ln(6SAN/δ)."""
    N, (S, A) = np.maximum(1, counts.N), allowed.shape
    log_term, p, r = np.log(6 * S * A * N / DELTA), counts.successors / N[:, :, None], counts.rewards / N
    around_r = 2 * np.sqrt(counts.squares / N * log_term / N) + factor * log_term / N
    around_p = 2 * np.sqrt(p * (1 - p) * (log_term / N)[:, :, None]) + (factor * log_term / N)[:, :, None]
    return _or_anything(counts, allowed, p - around_p, p + around_p, r - around_r, r + around_r)


def _or_anything(counts: Any, allowed: np.ndarray, p_low: Any, p_high: Any, r_low: Any, r_high: Any) -> Any:
    """Return the intervals within [0, 1], and all of it for pairs never seen."""
    seen = counts.N > 0
    more = seen[:, :, None]
    return reference.Plausible(
        allowed,
        np.where(more, np.maximum(p_low, 0), 0),
        np.where(more, np.minimum(p_high, 1), 1),
        np.where(seen, np.maximum(r_low, 0), 0),
        np.where(seen, np.minimum(r_high, 1), 1),
    )


# --- UCRL3 ------------------------------------------------------------------------------------------------------------


def _ell(n: float, d: float) -> float:
    return ETA * log(log(n) * log(ETA * n) / (d * log(ETA) ** 2)) if n > 1 else inf


def _beta(n: float, d: float) -> float:
    return sqrt(2 * (1 + 1 / n) * log(sqrt(n + 1) / d) / n)


def _g(q: float) -> float:
    if q in (0.0, 1.0):
        return 0.0
    return 0.25 if abs(q - 0.5) < 1e-7 else (0.5 - q) / log(1 / q - 1)


@cache
def ucrl3_interval(k: float, n: float, d: float) -> tuple[float, float]:
    """Return the ends of the q that fulfil both conditions, by bisection."""
    p, a, beta = k / n, _ell(n, d) / n, _beta(n, d)

    def holds(q: float) -> bool:
        bernstein = abs(p - q) <= sqrt(2 * q * (1 - q) * a) + a / 3 if a < inf else True
        above = _g(q) if q < 0.5 else q * (1 - q)
        return bernstein and p - q <= beta * sqrt(above) and q - p <= beta * sqrt(_g(q))

    return crossing(holds, p, 0.0), crossing(holds, p, 1.0)


def ucrl3_set(counts: Any, allowed: np.ndarray, share: float = 3.0) -> reference.Plausible:
    """Return the intervals at level d = δ/((3 + 3S)SA)."""
    S, A = allowed.shape
    d, N = DELTA / ((share + share * S) * S * A), np.maximum(1, counts.N)
    ends = np.array(
        [
            [[ucrl3_interval(counts.successors[s, a, x], N[s, a], d) for x in range(S)] for a in range(A)]
            for s in range(S)
        ]
    )
    r = counts.rewards / N
    around = np.array([[ucrl3_radius(counts.squares[s, a], N[s, a], d) for a in range(A)] for s in range(S)])
    return _or_anything(counts, allowed, ends[..., 0], ends[..., 1], r - around, r + around)


def ucrl3_radius(squares: float, n: float, d: float) -> float:
    """Return min{½β, √(2σ̂²ℓ/n) + 7ℓ/(3n)}."""
    first = _beta(n, d) / 2
    return first if n < 2 else min(first, sqrt(2 * squares / n * _ell(n, d) / n) + 7 * _ell(n, d) / (3 * n))


# --- NOSS -------------------------------------------------------------------------------------------------------------


def noss_value(low: Any, high: Any, seen: Any, kappa: float, u: Any) -> tuple[float, set[int]]:
    """Return what a pair is worth without its reward, and S̃: the states seen and the best one, then one more at a time."""
    f, order = u - u.min(), np.argsort(-u, kind="stable")
    support = {int(x) for x in np.flatnonzero(seen)} | {int(order[0])}

    def largest(states: Any) -> float:
        """Return the largest Σ p f over these states, low ≤ p ≤ high, Σ p ≤ 1."""
        p, left = dict.fromkeys(states, 0.0), 1.0
        for x in states:
            p[x], left = low[x], left - low[x]
        for x in (x for x in order if x in p):
            more = min(high[x] - low[x], max(left, 0.0))
            p[x], left = p[x] + more, left - more
        return sum(p[x] * f[x] for x in p)

    for x in order:
        inside, outside = largest(support), largest(set(range(len(u))) - support)
        if outside <= min(kappa * np.ptp(u), inside):
            break
        support.add(int(x))
    return u.min() + largest(support), support


def noss_kappa(counts: Any) -> np.ndarray:
    """Return κ/sp(u) = 10·(number of successors seen)/(largest N)^⅔ [S, A]."""
    return np.asarray(10 * (counts.successors > 0).sum(axis=2) / max(1, counts.N.max()) ** (2 / 3))


# --- KL-UCRL ----------------------------------------------------------------------------------------------------------


def kl_radius(times: np.ndarray, S: int, level: float) -> float:
    """Return C/N: N·KL(p̂, q) ≤ ln(S·binom(S, K)/d) + ln(Π p̂ⱼ^nⱼ/KT) of the counts of one pair."""
    times = times[times > 0]
    n, K = times.sum(), len(times)
    kt = lgamma(K / 2) - lgamma(n + K / 2) + sum(lgamma(x + 0.5) - lgamma(0.5) for x in times)
    choices = log(S) + lgamma(S + 1) - lgamma(K + 1) - lgamma(S - K + 1)
    return float((choices - log(level) + (times * np.log(times / n)).sum() - kt) / n)


def kl_reward(paid: float, n: float, level: float) -> float:
    """Return the largest mean reward: the last q with B(k + ½, n − k + ½)/B(½, ½) ≤ q^k(1 − q)^(n−k)/d."""
    mixed = lgamma(paid + 0.5) + lgamma(n - paid + 0.5) - lgamma(n + 1) - 2 * lgamma(0.5)

    def holds(q: float) -> bool:
        like = (paid * log(q) if paid else 0.0) + ((n - paid) * log(1 - q) if n > paid else 0.0)
        return mixed <= like - log(level)

    return 1.0 if paid >= n else crossing(holds, max(paid / n, 1e-300), 1 - 1e-15)


def kl_max(p: np.ndarray, v: np.ndarray, radius: float) -> float:
    """Return the largest qᵀv with KL(p, q) ≤ radius (Filippi et al. 2010, MaxKL), by bisection on ν."""
    on, top = p > 0, v.max()
    x, w = p[on], v[on]

    def f(nu: float) -> float:
        return float((x * np.log(nu - w)).sum() + log((x / (nu - w)).sum()))

    moved, nu = 0.0, inf
    if top > w.max() and f(top) < radius:
        nu, moved = top, 1 - exp(f(top) - radius)
    elif np.ptp(w) == 0:
        return float(x @ w)
    else:
        far = w.max() + np.ptp(w)
        while f(far) > radius:
            far = w.max() + 2 * (far - w.max())
        nu = w.max() + crossing(lambda gap: f(w.max() + gap) <= radius, far - w.max(), 1e-14 * np.ptp(w))
    q = x / (nu - w)
    return float((1 - moved) * (q @ w) / q.sum() + moved * top)
