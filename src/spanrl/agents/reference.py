"""The paper in one file: ScOpt (Fig. 3), UCRL and SCAL (Fig. 1) of Fruit, Pirotta, Lazaric & Ortner, ICML 2018, in plain numpy.

Read it beside the figures: same order, same letters. It is slow, and it is what the compiled agents are tested against, episode by episode.
Arrays are dense: p̂ and the ends of B_p are [S, A, S], r̂ and the ends of B_r [S, A], policies [S, A]; A [S, A] says which actions there are.

Differs from the paper: the rewards lie in [r_min, r_max], its 0 being our r_min; episodes go on while ν < max{1, N}, as the proof counts
them, where the figure prints ≤; η_k is capped by 1 and by the radii, without which M‡ may be empty (docs/slips.md).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Actions = NDArray[np.bool_]


class Plausible(NamedTuple):
    """ℳ, a set of MDPs: an interval for each reward and for each transition probability (Sec. 3.1)."""

    A: Actions
    p_low: Array
    p_high: Array
    r_low: Array
    r_high: Array


class Plan(NamedTuple):
    """What ScOpt returns: v_n, π_n = G_c v_n, the bracket min(T_c v_n − v_n) ≤ g⁺ ≤ max(T_c v_n − v_n), and n."""

    v: Array
    policy: Array
    gain_bounds: tuple[float, float]
    n: int


class Episode(NamedTuple):
    """One episode k: when it started, and its plan."""

    t_k: int
    plan: Plan


class Counts:
    """N_k(s, a), how often each successor followed, and the rewards, of all episodes before k."""

    def __init__(self, S: int, A: int) -> None:
        """Start with nothing."""
        self.N, self.successors = np.zeros((S, A)), np.zeros((S, A, S))
        self.rewards, self.squares = np.zeros((S, A)), np.zeros((S, A))

    def add(self, s: int, a: int, r: float, s_next: int) -> None:
        """Take in one step; the squares are those of deviations from the mean (Welford 1962)."""
        before = self.rewards[s, a] / max(1, self.N[s, a])
        self.N[s, a] += 1
        self.successors[s, a, s_next] += 1
        self.rewards[s, a] += r
        self.squares[s, a] += (r - before) * (r - self.rewards[s, a] / self.N[s, a])


def sp(v: Array) -> float:
    """Return sp{v} = max v − min v."""
    return float(v.max() - v.min())


def extreme(low: Array, high: Array, v: Array, sign: float) -> float:
    """Return the largest (sign −1: smallest) pᵀv over the distributions p with low ≤ p ≤ high: fill up the best successors first."""
    p, left = low.copy(), 1.0 - low.sum()
    for s in np.argsort(-sign * v, kind="stable"):
        if left <= 0:
            break
        p[s] += min(high[s] - low[s], left)
        left -= p[s] - low[s]
    return float(p @ v)


def values(M: Plausible, v: Array, sign: float = 1.0) -> Array:
    """Return r̃ + p̃ᵀv of every pair, with the best (sign −1: the worst) r̃ and p̃ in the set; an action that is not there is no choice."""
    S, A = M.A.shape
    q = np.full((S, A), -sign * inf)
    for s, a in zip(*np.nonzero(M.A), strict=True):
        r = M.r_high[s, a] if sign > 0 else M.r_low[s, a]
        q[s, a] = r + extreme(M.p_low[s, a], M.p_high[s, a], v, sign)
    return q


def T(M: Plausible, v: Array, c: float) -> Array:
    """Return T_c v = min{L̃v, min L̃v + c} (Def. 1)."""
    Lv = values(M, v).max(axis=1)
    return np.asarray(np.minimum(Lv, Lv.min() + c))


def G(M: Plausible, v: Array, c: float) -> Array:
    """Return the decision rule G_c v (Def. 2): greedy; in truncated states mixed with the smallest action to be worth T_c v (App. C)."""
    most, least = values(M, v), values(M, v, -1.0)
    high, low = most.max(axis=1), least.min(axis=1)
    top = high.min() + c
    policy = np.zeros(M.A.shape)
    for s in range(len(v)):
        weight = 0.0 if high[s] <= top else 1.0 if low[s] > top else (high[s] - top) / (high[s] - low[s])
        policy[s, most[s].argmax()] += 1.0 - weight
        policy[s, least[s].argmin()] += weight
    return policy


def scopt(M: Plausible, c: float, epsilon: float, gamma: float = 0.0, s_bar: int = 0) -> Plan:
    """Iterate v_{n+1} = T_c v_n − (T_c v_n)(s̄)e from v₀ = 0 (c = ∞: extended value iteration).

    Args:
        M: the set of plausible MDPs.
        c: the bound on the span, ≥ 0.
        epsilon: accuracy ε > 0 of the gain.
        gamma: contraction factor γ in [0, 1); with 0 its term is absent.
        s_bar: the reference state s̄.

    Returns:
        The plan.

    >>> from spanrl import reference
    >>> import numpy as np
    >>> P, r = np.array([[[1.0, 0], [0, 1]], [[0, 1], [1, 0]]]), np.array([[0.5, 0.5], [1, 1]])
    >>> known = reference.Plausible(np.ones((2, 2), bool), P, P, r, r)
    >>> reference.scopt(known, c=0.25, epsilon=1e-6).gain_bounds[1] <= 1.0
    True
    """
    v = np.zeros(M.A.shape[0])
    # 1. n = 0, v₁ = T_c v₀ − (T_c v₀)(s̄)e
    n, Tv = 0, T(M, v, c)
    first = sp(Tv - v)
    # 2. as long as sp{v_{n+1} − v_n} + 2γⁿ/(1 − γ)·sp{v₁ − v₀} > ε:
    while sp(Tv - v) + (2 * gamma**n / (1 - gamma) * first if gamma else 0.0) > epsilon:
        # (a) n += 1
        n, v = n + 1, Tv - Tv[s_bar]
        # (b) v_{n+1} = T_c v_n − (T_c v_n)(s̄)e
        Tv = T(M, v, c)
    step = Tv - v
    return Plan(v, G(M, v, c), (float(step.min()), float(step.max())), n)


def beta(variance: Array, N: Array, b: float, size: float) -> Array:
    """Return the radius √(14 σ̂² b/max{1, N}) + (49/3)·size·b/max{1, N − 1}."""
    return np.sqrt(14 * variance * b / np.maximum(1, N)) + 49 / 3 * size * b / np.maximum(1, N - 1)


def radii(counts: Counts, A: Actions, t_k: int, delta: float, r_range: float) -> tuple[Array, Array]:
    """Return β_r [S, A] and β_p [S, A, S], with b = ln(2SAt_k/δ)."""
    N = counts.N
    b = log(2 * len(A) * A.sum(axis=1).max() * t_k / delta)
    p_hat = counts.successors / np.maximum(1, N)[:, :, None]
    sigma2_r, sigma2_p = counts.squares / np.maximum(1, N - 1), p_hat * (1 - p_hat)
    return beta(sigma2_r, N, b, r_range), beta(sigma2_p, N[:, :, None], b, 1.0)


def confidence_set(counts: Counts, A: Actions, t_k: int, delta: float, r_min: float, r_max: float) -> Plausible:
    """Return ℳ_k: [r̂ ± β_r] ∩ [r_min, r_max] and [p̂ ± β_p] ∩ [0, 1]; all of it for a pair never seen."""
    N, seen = np.maximum(1, counts.N), counts.N > 0
    r_hat, p_hat = counts.rewards / N, counts.successors / N[:, :, None]
    beta_r, beta_p = radii(counts, A, t_k, delta, r_max - r_min)
    return Plausible(
        A,
        np.where(seen[:, :, None], np.maximum(0.0, p_hat - beta_p), 0.0),
        np.where(seen[:, :, None], np.minimum(1.0, p_hat + beta_p), 1.0),
        np.where(seen, np.maximum(r_min, r_hat - beta_r), r_min),
        np.where(seen, np.minimum(r_max, r_hat + beta_r), r_max),
    )


def modified(M: Plausible, r_min: float, eta: float = 0.0, s_bar: int = 0) -> Plausible:
    """Return ℳ‡: B_r‡ = [r_min, max B_r], and B_p‡(s, a, s̄) = B_p(s, a, s̄) ∩ [η, 1] (Def. 3)."""
    p_low = M.p_low.copy()
    p_low[:, :, s_bar] = np.maximum(p_low[:, :, s_bar], eta)
    return M._replace(p_low=p_low, r_low=np.full_like(M.r_low, r_min))


def plan(
    counts: Counts, A: Actions, t_k: int, *, c: float = inf, delta: float = 0.05, r_min: float = 0.0, r_max: float = 1.0,
    perturb: bool = False,
) -> Plan:  # fmt: skip
    """Do steps 2 and 3 of the figure: the confidence set, and an r_max/√t_k-approximation of its best policy.

    Args:
        counts: the experience before t_k.
        A: which actions there are, [S, A].
        t_k: the first step of the episode, from 1.
        c: the bound on the span; ∞ is UCRL, anything else SCAL.
        delta: the confidence δ in (0, 1).
        r_min, r_max: the range of the rewards.
        perturb: take η_k and γ_k = 1 − η_k as in the theorem; the paper's experiments, and the default, have η_k = γ_k = 0.

    Returns:
        The plan.
    """
    # 2. the estimates and their set, ℳ_k for UCRL, ℳ‡_k for SCAL
    M = confidence_set(counts, A, t_k, delta, r_min, r_max)
    eta = 0.0
    if perturb:
        beta_p = radii(counts, A, t_k, delta, r_max - r_min)[1]
        eta = min(1.0, (r_max - r_min) / (c * t_k), float(beta_p[A][:, 0].min()))
    if c < inf:
        M = modified(M, r_min, eta)
    # 3. π̃_k, as good as the best policy of the set up to r_max/√t_k
    return scopt(M, c, (r_max - r_min) / sqrt(t_k), 1.0 - eta if perturb else 0.0)


def learn(
    step: Callable[[int, int], tuple[float, int]], s: int, A: Actions, T: int, rng: np.random.Generator, *,
    c: float = inf, delta: float = 0.05, r_min: float = 0.0, r_max: float = 1.0,
) -> list[Episode]:  # fmt: skip
    """Play T steps as UCRL (c = ∞) or SCAL from state s; ``step(s, a)`` returns the reward and the next state.

    Args:
        step: the environment.
        s: the first state.
        A: which actions there are, [S, A].
        T: how many steps to play.
        rng: draws the actions of mixtures.
        c, delta, r_min, r_max: as in :func:`plan`.

    Returns:
        The episodes.
    """
    counts, t, episodes = Counts(*A.shape), 1, []
    # episodes k = 1, 2, …
    while t <= T:
        # 1. t_k = t, ν_k = 0
        t_k, nu, steps = t, np.zeros(A.shape), []
        # 2. and 3. see plan
        pi = plan(counts, A, t_k, c=c, delta=delta, r_min=r_min, r_max=r_max)
        episodes.append(Episode(t_k, pi))
        # 4. a_t ∼ π̃_k(·|s_t)
        a = int(rng.choice(A.shape[1], p=pi.policy[s]))
        # 5. as long as ν_k(s_t, a_t) < max{1, N_k(s_t, a_t)}:
        while t <= T and nu[s, a] < max(1, counts.N[s, a]):
            # (a) play a_t, see r_t and s_{t+1}
            r, s_next = step(s, a)
            steps.append((s, a, r, s_next))
            # (b) ν_k(s_t, a_t) += 1
            nu[s, a] += 1
            # (c) a_{t+1} ∼ π̃_k(·|s_{t+1}), t += 1
            s, t = s_next, t + 1
            a = int(rng.choice(A.shape[1], p=pi.policy[s]))
        # 6. N_{k+1} = N_k + ν_k
        for one in steps:
            counts.add(*one)
    return episodes
