"""IMED-RL in plain numpy, on the whole history: policy iteration and scipy's bounded search; and broken versions of it."""

from __future__ import annotations

from collections import Counter
from math import inf, log

import numpy as np
from scipy.optimize import minimize_scalar

from spanrl import ProblemInfo

CLOSE = 1e-6  # indices that differ by less are a tie


class PseudoCode:
    """The algorithm of the module's docstring on the whole history, each line one method; policy iteration and scipy do the rest."""

    def __init__(self, info: ProblemInfo) -> None:
        self.info, self.S, self.top = info, int(info.n_states), info.r_max
        self.pairs = [range(i, j) for i, j in zip(info.pair_ptr, info.pair_ptr[1:], strict=False)]
        self.history = [Counter() for _ in range(info.n_pairs)]

    def n(self, i):
        return self.history[i].total()

    def observe(self, i, reward, succ):
        self.history[i][reward, succ] += 1

    def skeleton(self, s):
        most = max(self.n(i) for i in self.pairs[s])
        return [i for i in self.pairs[s] if self.n(i) >= log(max(most, 1)) ** 2]

    def model(self, i):
        p, r = np.full(self.S, 1 / self.S), self.top
        for (reward, succ), k in self.history[i].items():
            p[succ] += k
            r += k * reward
        return r / (self.n(i) + 1), p / (self.n(i) + 1)

    def bias(self):
        """Policy iteration: h = r + Ph − ge with h(0) = 0, then greedy."""
        rows, skeleton = [self.model(i) for i in range(len(self.history))], [self.skeleton(s) for s in range(self.S)]
        policy = [pairs[0] for pairs in skeleton]
        while True:
            system = np.eye(self.S) - np.array([rows[i][1] for i in policy])
            system[:, 0] = 1.0  # h(0) = 0, and the gain in its place
            h = np.linalg.solve(system, np.array([rows[i][0] for i in policy]))
            h[0] = 0.0
            q = [rows[i][0] + rows[i][1] @ h for i in range(len(rows))]
            better = [
                max(pairs, key=q.__getitem__) if max(q[i] for i in pairs) > q[policy[s]] + 1e-11 else policy[s]
                for s, pairs in enumerate(skeleton)
            ]
            if better == policy:
                return h - h.max()
            policy = better

    def mu(self, s, q):
        return max(q[i] for i in self.skeleton(s))

    def law(self, i, phi):
        return zip(*((r + phi[succ], k) for (r, succ), k in self.history[i].items()), strict=True)

    def k_inf(self, x, p, mu, top):
        if top - mu < 1e-12:
            return inf
        end = 1 / (top - mu)

        def f(z):
            with np.errstate(divide="ignore"):
                return -p @ np.log(np.maximum(1 - (x - mu) * z, 0))

        found = minimize_scalar(f, bounds=(0, end), method="bounded", options={"xatol": 1e-11})
        return max(-found.fun, -f(end), 0.0)

    def index(self, i, mu, phi, q):
        if q[i] >= mu - 1e-12:
            return log(self.n(i))
        x, k = (np.array(part, dtype=float) for part in self.law(i, phi))
        return self.n(i) * self.k_inf(x, k / k.sum(), mu, self.top + phi.max()) + log(self.n(i))

    def indices(self, s, phi):
        q = {i: r + p @ phi for i, (r, p) in ((i, self.model(i)) for i in self.pairs[s])}
        return {i: self.index(i, self.mu(s, q), phi, q) for i in self.pairs[s]}

    def allowed(self, s, phi):
        """Return the pairs that may be played: the first never played, or those of the least index."""
        new = [i for i in self.pairs[s] if self.n(i) == 0]
        if new:
            return new[:1]
        found = self.indices(s, phi)
        return [i for i, h in found.items() if h <= min(found.values()) + CLOSE]


class NoLogarithm(PseudoCode):
    def index(self, i, mu, phi, q):
        return super().index(i, mu, phi, q) - log(self.n(i))


class LogarithmOfM(PseudoCode):
    """ln(M − (X − μ)λ), with min φ = 0."""

    def index(self, i, mu, phi, q):
        h = super().index(i, mu, phi, q)
        return h + self.n(i) * log(self.top - phi.min()) if q[i] < mu - 1e-12 else h


class LogSkeleton(PseudoCode):
    def skeleton(self, s):
        most = max(self.n(i) for i in self.pairs[s])
        return [i for i in self.pairs[s] if self.n(i) >= log(max(most, 1))]


class NoSkeleton(PseudoCode):
    def skeleton(self, s):
        return list(self.pairs[s])


class Marginals(PseudoCode):
    """r and s' as if they were independent."""

    def law(self, i, phi):
        seen = self.history[i]
        rewards, succs = Counter(), Counter()
        for (r, succ), k in seen.items():
            rewards[r] += k
            succs[succ] += k
        return zip(*((r + phi[s], m * k) for r, m in rewards.items() for s, k in succs.items()), strict=True)


class Pessimist(PseudoCode):
    """The pseudo-observation pays r_min."""

    def model(self, i):
        r, p = super().model(i)
        return r - (self.top - self.info.r_min) / (self.n(i) + 1), p


class MeanOnly(PseudoCode):
    """X is replaced by its mean: no variance, K too large."""

    def law(self, i, phi):
        x, k = (np.array(part) for part in super().law(i, phi))
        return [k @ x / k.sum()], [1.0]


MUTANTS = (NoLogarithm, LogarithmOfM, LogSkeleton, NoSkeleton, Marginals, Pessimist, MeanOnly)
