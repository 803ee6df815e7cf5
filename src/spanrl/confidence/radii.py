"""Confidence radii: one function a named bound, compiled, with its formula and source.

N is the number of samples, N⁺ = max(1, N); ``size`` is the length of the interval that the samples lie in.
"""

from __future__ import annotations

from math import sqrt

from spanrl.kernels.jit import kernel


@kernel
def bernstein(variance, n, log_term, scale, size):
    """Return √(14 α σ̂² b/N⁺) + (49/3) α·size·b/max(1, N−1) with b = ln(2SAt/δ).

    Empirical Bernstein (Maurer & Pontil 2009, Theorem 4) at level δ/(60 t⁷SA), as SCAL and its UCRL use it for rewards and, with
    σ̂² = p̂(1 − p̂) and size 1, for each transition probability (Fruit et al. 2018, Sec. 3.1 and appendix on the regret).
    """
    root, linear = bernstein_factors(log_term, scale)
    return root * sqrt(variance / max(1, n)) + linear * size / max(1, n - 1)


@kernel
def bernstein_factors(log_term, scale):
    """Return (√(14 α b), (49/3) α b): what :func:`bernstein` multiplies the standard error √(σ̂²/N⁺) and size/max(1, N−1) with."""
    return sqrt(14.0 * scale * log_term), 49.0 / 3.0 * scale * log_term


@kernel
def hoeffding(n, log_term, size):
    """Return size·√(7 b/(2N⁺)) with b = ln(2SAt/δ): the rewards of UCRL2 (Jaksch, Ortner & Auer 2010, Eq. 3)."""
    return size * sqrt(7.0 * log_term / (2.0 * max(1, n)))


@kernel
def weissman(n, n_states, log_term):
    """Return √(14 S b/N⁺) with b = ln(2At/δ): the L1 distance of a distribution over S states (Jaksch et al. 2010, Eq. 4).

    From the bound of Weissman et al. 2003.
    """
    return sqrt(14.0 * n_states * log_term / max(1, n))
