"""What a learner has seen: visits, reward statistics, and a growing sparse table of successors.

Rewards are kept as mean and sum of squared deviations (Welford 1962), brought up to date once an episode with all of its rewards at once:
for ν new rewards with deviations d = r − r̂ from the mean so far ::

    N' = N + ν,    r̂' = r̂ + Σd/N',    M' = M + Σd² − (Σd)²/N'

which for ν = 1 is Welford's recurrence. The sums run over the distinct (reward, successor) of a pair in sorted order, so that the result
does not depend on the order in which things happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Batch(NamedTuple):
    """New experience, added up: distinct (pair, reward, successor), sorted, and how often each was seen."""

    pair: NDArray[np.int64]
    reward: NDArray[np.float64]
    succ: NDArray[np.uint32]
    times: NDArray[np.int64]

    @classmethod
    def from_dict(cls, seen: dict[tuple[int, float, int], int]) -> Batch:
        """Sort what was collected one by one: {(pair, reward, successor): times}."""
        rows = sorted(seen.items())
        pair, reward, succ = zip(*(key for key, _ in rows), strict=True) if rows else ((), (), ())
        return cls(
            np.array(pair, dtype=np.int64),
            np.array(reward, dtype=np.float64),
            np.array(succ, dtype=np.uint32),
            np.array([times for _, times in rows], dtype=np.int64),
        )


class Shares(NamedTuple):
    """What confidence radii are made of: numbers that change only when a pair is visited."""

    p_hat: NDArray[np.float64]  # [n] p̂
    p_error: NDArray[np.float64]  # [n] √(p̂(1 − p̂)/N)
    r_error: NDArray[np.float64]  # [n_pairs] √(σ̂²_r/N), σ̂² unbiased and 0 for N ≤ 1
    inverse: NDArray[np.float64]  # [n_pairs] 1/max(1, N − 1)


@dataclass(eq=False)
class Counts:
    """The statistics of every pair. ``succ`` of each pair is sorted.

    Attributes:
        n: [n_pairs], N(s, a).
        r_mean: [n_pairs], the mean reward.
        r_sq: [n_pairs], the sum of squared deviations from it.
        succ_ptr, succ, times: the seen successors of pair i are ``succ[succ_ptr[i]:succ_ptr[i+1]]``, seen ``times``.
        shares: frequencies and standard errors.
    """

    n: NDArray[np.int64]
    r_mean: NDArray[np.float64]
    r_sq: NDArray[np.float64]
    succ_ptr: NDArray[np.int64]
    succ: NDArray[np.uint32]
    times: NDArray[np.int64]
    shares: Shares = field(init=False)

    def __post_init__(self) -> None:
        """Compute the shares."""
        self.share_out()

    def share_out(self) -> None:
        """Compute the shares of all pairs anew."""
        N = np.maximum(self.n, 1)
        row = np.repeat(N, np.diff(self.succ_ptr))
        p_hat = self.times / row
        errors = np.sqrt(p_hat * (1 - p_hat) / row), np.sqrt(self.r_variance / N)
        self.shares = Shares(p_hat, *errors, 1 / np.maximum(self.n - 1, 1))

    @classmethod
    def empty(cls, n_pairs: int) -> Counts:
        """Return the table before anything was seen."""
        zeros = (np.zeros(n_pairs, dtype=np.int64), np.zeros(n_pairs), np.zeros(n_pairs))
        nothing = (np.zeros(n_pairs + 1, dtype=np.int64), np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.int64))
        return cls(*zeros, *nothing)

    @property
    def n_pairs(self) -> int:
        """The number of pairs."""
        return self.n.size

    @property
    def r_variance(self) -> NDArray[np.float64]:
        """The unbiased sample variance of the rewards, 0 where N ≤ 1."""
        out: NDArray[np.float64] = np.where(self.n > 1, self.r_sq / np.maximum(self.n - 1, 1), 0.0)
        return out

    def statistics(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return (n, r_mean, r_sq)."""
        return self.n, self.r_mean, self.r_sq
